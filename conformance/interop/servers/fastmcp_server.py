"""A server on FastMCP, the most used Python framework."""

from fastmcp import FastMCP

server = FastMCP("interop-fastmcp", version="1.0.0")


@server.tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool
def describe(text: str) -> dict[str, int]:
    """Count the words and characters of a text."""
    return {"words": len(text.split()), "chars": len(text)}


@server.tool
def fail(reason: str) -> str:
    """Always fail with the reason given."""
    raise ValueError(reason)


@server.resource("interop://greeting", mime_type="text/plain")
def greeting() -> str:
    return "Hello from fastmcp"


@server.resource("interop://square/{n}", mime_type="text/plain")
def square(n: int) -> str:
    return str(n * n)


@server.prompt
def review(language: str) -> str:
    return f"Review this {language} code."


if __name__ == "__main__":
    # The banner looks for a newer release on the network.
    server.run(show_banner=False)
