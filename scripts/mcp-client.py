#!/usr/bin/env python3
"""Drives `editgate tools serve` with FastMCP, a client of a third party, and says what came of it.

    python3 -m venv client && client/bin/pip install fastmcp
    client/bin/python scripts/mcp-client.py [target/release/editgate]

Every tool reads a CRLF file, edits its second line, and is refused a path outside; the bytes must be right afterwards.
"""
import asyncio
import pathlib
import sys
import tempfile

import fastmcp
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

BINARY = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/release/editgate").resolve())
TOOLS = {
    "edit_file": ("read_file", {"mode": "replace", "line": 2, "content": "TWO"}, {"mode": "write", "content": ""}),
    "EditFile": ("ReadFile", {"old": "two", "new": "TWO"}, {"old": "a", "new": "b"}),
    "filesystem_write": ("filesystem_read", {"action": "edit", "old": "two", "new": "TWO"},
                         {"action": "write", "content": ""}),
}


async def main():
    print(f"fastmcp {fastmcp.__version__}")
    for tool, (reader, edit, outside) in TOOLS.items():
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root, "f.txt")
            file.write_bytes(b"one\r\ntwo\r\n")
            async with Client(StdioTransport(BINARY, ["tools", "serve", tool, "--root", root])) as client:
                names = [each.name for each in await client.list_tools()]
                assert names[0] == tool and reader in names, names
                read = await client.call_tool(reader, {"path": "f.txt"})
                assert "two" in read.content[0].text, read
                done = await client.call_tool(tool, {"path": "f.txt", **edit})
                assert file.read_bytes() == b"one\r\nTWO\r\n", file.read_bytes()
                denied = await client.call_tool(tool, {"path": "../x", **outside}, raise_on_error=False)
                assert denied.is_error, denied
                print(f"{tool}: {', '.join(names)}: read, edited ({done.content[0].text.splitlines()[0]}), "
                      f"refused ({denied.content[0].text.splitlines()[0][:60]})")


asyncio.run(main())
