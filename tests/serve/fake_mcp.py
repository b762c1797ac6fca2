#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""fake_mcp.py - An MCP server over stdio whose behaviour, good or bad, the test chooses. Standard library only.

usage: fake_mcp.py [legacy|modern|mute|dies|nonsense|closes]   mute: never answers; dies: at its first unknown request
"""
import json
import os
import subprocess
import sys
import threading
import time

KIND = sys.argv[1] if len(sys.argv) > 1 else "legacy"
MODERN = "2026-07-28"
lock = threading.Lock()
cancelled, answers, met = [], {}, []
names = ["echo", "sleep", "big", "large", "die", "nonsense", "shout", "change", "ask", "env", "progress", "fail", "error", "cancelled",
         "leave", "stuck", "state", "input", "meet"]


def put(message):
    text = message if isinstance(message, str) else json.dumps(message, separators=(",", ":"))
    with lock:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def text(s, **more):
    return {"content": [{"type": "text", "text": s}], **more}


def tool(name):
    return {"name": name, "description": "does " + name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": name == "echo"}}


def call(id, params):
    name, a = params["name"], params.get("arguments", {})
    token = params.get("_meta", {}).get("progressToken")
    if name == "echo":
        return text(a.get("text", ""), structuredContent={"got": a})
    if name == "sleep":
        time.sleep(a["seconds"])
        return text("slept")
    if name == "meet":
        met.append(id)
        while len(met) < a["count"]:
            time.sleep(0.01)
        return text("met")
    if name in ("big", "large"):
        return text("x" * a["bytes"])
    if name == "die":
        os._exit(3)
    if name == "nonsense":
        for _ in range(a.get("lines", 3)):
            put("this is no JSON {")
        return text("after nonsense")
    if name == "shout":
        for i in range(a["lines"]):
            print("line %d of many" % i, file=sys.stderr)
        return text("shouted")
    if name == "change":
        names.append("new_%d" % len(names))
        put({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text("changed")
    if name == "ask":
        for i, method in enumerate(("ping", "sampling/createMessage", "elicitation/create", "roots/list")):
            put({"jsonrpc": "2.0", "id": "q%d" % i, "method": method, "params": {}})
        while len(answers) < 4:
            time.sleep(0.01)
        return text(json.dumps(answers))
    if name == "env":
        return text(json.dumps(dict(os.environ)), structuredContent={"cwd": os.getcwd(), "pid": os.getpid(), "uid": os.getuid(), "argv": sys.argv})
    if name == "progress":
        for i in range(3):
            put({"jsonrpc": "2.0", "method": "notifications/progress",
                 "params": {"progressToken": token, "progress": i + 1, "total": 3, "message": "step %d" % i}})
            time.sleep(0.08)
        return text("done")
    if name == "fail":
        return text("it went wrong", isError=True)
    if name == "cancelled":
        return text(json.dumps(cancelled))
    if name == "leave":
        p = subprocess.Popen(["sleep", "300"], start_new_session=True)
        return text(str(p.pid))
    if name == "state":
        if params.get("requestState") != "s1":
            return {"resultType": "input_required", "requestState": "s1"}
        return text("with state")
    if name == "input":
        return {"resultType": "input_required", "inputRequests": {"k": {"method": "elicitation/create", "params": {}}}}
    raise KeyError(name)


def answer(m):
    method, params = m["method"], m.get("params", {})
    modern = KIND == "modern"
    if method == "initialize" and not modern:
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "fake", "version": "1"}}
    if method == "server/discover" and modern:
        return {"resultType": "complete", "supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": True}}, "ttlMs": 0,
                "cacheScope": "private"}
    if method == "tools/list":
        i = int(params.get("cursor", 0))
        return {"tools": [tool(n) for n in names[i:i + 7]], **({"nextCursor": str(i + 7)} if i + 7 < len(names) else {})}
    if method == "tools/call":
        return call(m["id"], params)
    raise KeyError(method)


def handle(m):
    reply = {"jsonrpc": "2.0", "id": m["id"]}
    try:
        reply["result"] = answer(m)
    except KeyError as e:
        if KIND == "dies":
            os._exit(7)
        reply["error"] = {"code": -32601, "message": "there is no %s" % e}
    put(reply)


if KIND == "nonsense":
    while True:
        put("nothing but nonsense")
if KIND == "closes":
    sys.stdout.close()
    os.close(1)
for line in sys.stdin:
    m = json.loads(line)
    if KIND in ("mute", "closes"):
        continue
    if "method" not in m:
        answers[m["id"]] = m.get("result", m.get("error", {}).get("code"))
    elif m["method"] == "notifications/cancelled":
        cancelled.append(m["params"]["requestId"])
    elif m.get("params", {}).get("name") == "stuck":
        time.sleep(300)  # and reads nothing any more
    elif m["method"] == "subscriptions/listen":
        pass
    elif "id" in m:
        threading.Thread(target=handle, args=(m,), daemon=True).start()
