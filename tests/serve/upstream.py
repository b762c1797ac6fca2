#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""upstream.py - An MCP server on stdin and stdout that tests can look behind.

usage: upstream.py LOG      one line of JSON per call and per cancellation goes to LOG, so that a test sees what really came
"""
import json
import sys
import threading
import time

LOG = sys.argv[1]
READ = {"readOnlyHint": True}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "echo", "description": "Says it again.", "inputSchema": TEXT, "annotations": READ},
    {"name": "slow", "description": "Takes its time.", "annotations": READ,
     "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}},
    {"name": "big", "description": "Says a lot.", "annotations": READ,
     "inputSchema": {"type": "object", "properties": {"bytes": {"type": "integer"}}, "required": ["bytes"]}},
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}, "annotations": READ},
    {"name": "write", "description": "Changes something.", "inputSchema": TEXT},
    {"name": "destroy", "description": "Changes more.", "inputSchema": TEXT, "annotations": {"destructiveHint": True}},
]
out, cancelled = threading.Lock(), set()


def note(**what):
    with open(LOG, "a") as f:
        f.write(json.dumps(what) + "\n")


def send(message):
    with out:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def call(n, name, arguments):
    note(call=name, arguments=arguments)
    text, error = json.dumps({"tool": name, "arguments": arguments}), False
    if name == "slow":
        end = time.monotonic() + arguments["seconds"]
        while time.monotonic() < end:
            if n in cancelled:
                note(cancelled=name)
                return
            time.sleep(0.01)
    elif name == "big":
        text = "x" * arguments["bytes"]
    elif name == "fail":
        text, error = "it did not work", True
    send({"id": n, "result": {"content": [{"type": "text", "text": text}], "isError": error}})


def main():
    for line in sys.stdin:
        m = json.loads(line)
        method, params, n = m.get("method"), m.get("params", {}), m.get("id")
        if method == "notifications/cancelled":
            cancelled.add(params.get("requestId"))
        elif n is None:
            continue
        elif method == "initialize":
            send({"id": n, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "upstream", "version": "1"}}})
        elif method == "tools/list":
            send({"id": n, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            threading.Thread(target=call, args=(n, params["name"], params.get("arguments", {})), daemon=True).start()
        elif method == "ping":
            send({"id": n, "result": {}})
        else:
            send({"id": n, "error": {"code": -32601, "message": "no such method"}})


main()
