#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bridge_driver.py - The client that the conformance suite starts: caisson-bridge, with the server that the suite names.

usage: bridge_driver.py URL     MCP_CONFORMANCE_SCENARIO and MCP_CONFORMANCE_CONTEXT as the suite sets them

Lists the server's tools and calls each of them once, or does as the scenario's context asks.
"""
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / d) for d in ("lib", "serve", "integ")]

from bridge_lib import Bridge, CallError  # noqa: E402

VALUES = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


def arguments_for(tool):
    schema = tool["inputSchema"]
    properties = schema.get("properties", {})
    return {name: VALUES.get(properties.get(name, {}).get("type"), "text") for name in schema.get("required", [])}


def main():
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"mcpServers": {"suite": {"type": "http", "url": sys.argv[-1]}}}, f)
        f.flush()
        with Bridge(f.name) as bridge:
            tools = bridge.tools("suite")
            print("tools: %s" % [t["name"] for t in tools])
            known = {t["name"] for t in tools}
            calls = context.get("toolCalls") or [{"name": t["name"], "arguments": arguments_for(t)} for t in tools]
            if "json_schema_echo" in known:
                focal = next(t for t in tools if t["name"] != "json_schema_echo")
                calls = [{"name": "json_schema_echo", "arguments": {"schema": focal["inputSchema"]}}]
            for call in calls:
                if call["name"] not in known:
                    continue
                try:
                    print("%s: %s" % (call["name"], bridge.call("suite", call["name"], call["arguments"])))
                except CallError as e:
                    print("%s: %s" % (call["name"], e))


main()
