"""Checks `cargo metadata` (standard input) against the minimum supported Rust version (argument).

Every workspace member must declare it, and no crate that a member needs outside its tests may ask for
a newer one.
"""

import json
import sys


def version(text):
    return [int(part) for part in text.split("-")[0].split(".")][:2]


def main():
    metadata, supported = json.load(sys.stdin), sys.argv[1]
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    problems = []

    for member in metadata["workspace_members"]:
        if packages[member]["rust_version"] != supported:
            problems.append(f"{packages[member]['name']} does not declare rust-version {supported}")

    needed, waiting = set(), list(metadata["workspace_members"])
    while waiting:
        package = waiting.pop()
        if package in needed:
            continue
        needed.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])

    for package in sorted(needed):
        wants = packages[package]["rust_version"]
        if wants and version(wants) > version(supported):
            name = f"{packages[package]['name']} {packages[package]['version']}"
            problems.append(f"{name} needs Rust {wants}")

    print(f"{len(needed)} crates are content with Rust {supported}" if not problems else "\n".join(problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
