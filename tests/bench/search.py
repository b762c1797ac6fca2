#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""search.py - Searching the documentation of a thousand tools, from code in a cell.

One MCP server with a thousand tools, one sandbox that uses it, and questions as models ask them: exact, in other words, with
typos. The code in the cell measures the time, from the call to the list: there and back over the kernel's channel, with the
search in the index. Writes its part of docs/benchmarks.md.
"""
import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import chart
from serve import ROOT, Daemon

TOOLS = 1000
GOAL_MS = 5
VERBS = "create list delete update search get move merge export watch".split()
NOUNS = "issue invoice customer report branch ticket calendar message contract dataset".split()
QUESTIONS = ["create invoice", "delte custmer", "how do I export a report", "mesages", "watch the calendar of a customer by owner and state", "zzz"]
SERVER = """
import json, sys
tools = json.load(open(sys.argv[1]))
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    answer = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "many", "version": "1"}},
              "tools/list": {"tools": tools}}.get(m["method"])
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **({"result": answer} if answer else {"error": {"code": -32601, "message": "no"}})}), flush=True)
"""
CODE = """
import json, time, mcp.runtime as rt
took = []
for i in range(%d):
    for question in %r:
        begin = time.perf_counter()
        found = rt.search_tool_docs_sync(question, limit=20)
        took.append((time.perf_counter() - begin) * 1000)
        assert bool(found) == (question != "zzz"), question
print(json.dumps(took))
"""


def tools():
    for i in range(TOOLS):
        verb, noun = VERBS[i % 10], NOUNS[i // 10 % 10]
        yield {"name": "%s_%s_%d" % (verb, noun, i // 100), "annotations": {"readOnlyHint": True},
               "description": "%s the %s number %d with its owner, its state and everything that belongs to it; answers with a document and the "
                              "time of the last change" % (verb.capitalize(), noun, i),
               "inputSchema": {"type": "object", "properties": {"identifier": {"type": "string", "description": "which one of them"},
                                                                "filter": {"type": "string", "description": "words that must be in it"}}}}


def measure(args, directory):
    listed, server, config = (Path(directory, name) for name in ("tools.json", "server.py", "mcp.json"))
    listed.write_text(json.dumps(list(tools())))
    server.write_text(SERVER)
    config.write_text(json.dumps({"mcpServers": {"many": {"command": "/usr/bin/python3", "args": [str(server), str(listed)]}}}))
    user = ["--mcp-user", "root"] if os.geteuid() == 0 else []
    daemon = Daemon(args.build, directory, "--mcp-config", config, *user)
    try:
        head = {"Content-Type": "application/json"}
        daemon.connection.request("POST", "/v1/sandboxes", json.dumps({"name": "bench", "servers": ["many"]}), head)
        r = daemon.connection.getresponse()
        if r.status != 201:
            raise RuntimeError(r.read())
        r.read()
        for rounds in (1, args.rounds):  # the first starts the server
            code = {"code": CODE % (rounds, QUESTIONS), "timeout": 120}
            daemon.connection.request("POST", "/v1/sandboxes/bench/execute", json.dumps(code), head)
            result = json.loads(daemon.connection.getresponse().read())
            if not result.get("ok"):
                raise RuntimeError(result)
        return json.loads(result["stdout"])
    finally:
        daemon.stop()


def write_document(args, took):
    took.sort()
    out = [f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}; {len(QUESTIONS)} questions, {args.rounds} times each.",
           "", f"| search over {TOOLS} tools, from python in a cell | median | p95 |", "|---|---:|---:|",
           f"| `search_tool_docs_sync(question, limit=20)` | {statistics.median(took):.2f} ms | {took[int(len(took) * .95)]:.2f} ms |",
           "", f"Goal: a median of at most {GOAL_MS} ms: {chart.met(statistics.median(took) <= GOAL_MS)}. Command: `tests/bench/search.py`."]
    chart.publish(args.output, "search", out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--rounds", type=int, default=50)
    p.add_argument("--output", type=Path)
    args = p.parse_args()
    args.build = args.build.resolve()
    with tempfile.TemporaryDirectory(prefix="caisson-bench-") as directory:
        took = measure(args, directory)
    write_document(args, took)
    return 0


if __name__ == "__main__":
    sys.exit(main())
