"""A server on the official Python SDK (`mcp`), with the modern era's own features:
a question to the user (MRTR), a changing tool list (`subscriptions/listen`), progress."""

from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import Completion
from pydantic import BaseModel

server = MCPServer("interop-mcp", version="1.0.0", log_level="WARNING")


class Quotient(BaseModel):
    quotient: int
    remainder: int


class Name(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool()
def divide(a: int, b: int) -> Quotient:
    """Divide with remainder; a zero divisor is a tool error."""
    if b == 0:
        raise ToolError("division by zero")
    return Quotient(quotient=a // b, remainder=a % b)


def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


@server.tool()
def greet(who: Annotated[Name, Resolve(ask_name)]) -> str:
    """Ask the user's name, then greet."""
    return f"Hello, {who.name}!"


@server.tool()
async def count(to: int, ctx: Context) -> int:
    """Count up, reporting progress at each step."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return to


@server.tool()
async def grow(ctx: Context) -> str:
    """Add the tool `grown`, and say that the list has changed."""
    server.add_tool(lambda: "grown", name="grown", description="Added at run time.")
    await ctx.notify_tools_changed()
    return "grew"


@server.resource("interop://greeting", mime_type="text/plain")
def greeting() -> str:
    return "Hello from mcp"


@server.resource("interop://square/{n}", mime_type="text/plain")
def square(n: int) -> str:
    return str(n * n)


@server.prompt()
def review(language: str) -> str:
    return f"Review this {language} code."


@server.completion()
async def complete(ref, argument, context) -> Completion:
    return Completion(values=[v for v in ("python", "rust") if v.startswith(argument.value)])


if __name__ == "__main__":
    server.run()
