# SPDX-License-Identifier: Apache-2.0
"""mcp_lib.py - A host that answers a kernel's requests, for tests: three servers, a memory, and a list of the requests."""
import json

WEATHER = {"name": "weather", "alias": "weather", "description": "Weather of cities"}
FILES = {"name": "file-system", "alias": "file_system", "description": "Files"}
MCP = {"servers": [WEATHER, FILES], "saved_tools": 0}

TOOLS = {
    "weather": [
        {"name": "get_weather", "description": "The weather of a city, now.",
         "annotations": {"readOnlyHint": True},
         "inputSchema": {"type": "object", "required": ["city"], "additionalProperties": False, "properties": {
             "city": {"type": "string", "minLength": 1, "description": "Name of the city"},
             "units": {"type": "string", "enum": ["metric", "imperial"], "default": "metric"},
             "days": {"type": "integer", "minimum": 1, "maximum": 10},
             "at": {"type": "object", "required": ["lat"], "properties": {"lat": {"type": "number"}}},
             "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}}}}},
        {"name": "get-forecast", "description": "The days to come.", "inputSchema": {"type": "object", "properties": {
            "from": {"type": "string"}, "user-id": {"type": "integer"}}}},
        {"name": "slow", "description": "Takes its time.", "inputSchema": {"type": "object"}},
    ],
    "file-system": [{"name": "read", "description": "Read a file.", "inputSchema": {
        "type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}}],
}


def text(value):
    return {"content": [{"type": "text", "text": value}]}


class Refusal(Exception):
    def __init__(self, code, message, **more):
        self.error = dict(code=code, message=message, **more)


class Host:
    """Answers for one kernel. `calls` has [(server, tool, arguments)]; `answers` tool -> result or function of the arguments."""

    def __init__(self, kernel, mcp=MCP):
        self.kernel, self.mcp = kernel, mcp
        self.calls, self.asked, self.cancelled = [], [], []
        self.answers = {"get_weather": text('{"temp": 21.5}')}
        self.memory, self.tools, self.clock = {}, {}, 1700000000000

    def op_mcp_servers(self, m):
        return {"servers": [dict(s, loaded=True) for s in self.mcp["servers"]] + [
            {"name": "other", "alias": "other", "description": "Not here", "loaded": False}]}

    def op_mcp_tools(self, m):
        return {"tools": TOOLS[m["server"]]}

    def op_mcp_call(self, m):
        arguments = json.loads(m["arguments"])
        self.calls.append((m["server"], m["tool"], arguments))
        answer = self.answers[m["tool"]]
        return answer(arguments) if callable(answer) else answer

    def op_mcp_search(self, m):
        return {"results": [{"server": "weather", "alias": "weather", "tool": "get-forecast", "description": "d", "score": 9,
                             "inputSchema": {"type": "object"}, "query": m["query"], "limit": m["limit"]}]}

    def op_memory_save(self, m):
        was = self.memory.get(m["key"])
        if "revision" in m and m["revision"] != (was["revision"] if was else 0):
            raise Refusal("conflict", "changed")
        self.clock += 1
        self.memory[m["key"]] = {
            "key": m["key"], "value": m["value"], "metadata": m["metadata"], "revision": was["revision"] + 1 if was else 1,
            "created_at": was["created_at"] if was else self.clock, "updated_at": self.clock, "size": len(m["value"])}
        return self.memory[m["key"]]

    def op_memory_load(self, m):
        return self.memory.get(m["key"], {"found": False})

    def op_memory_list(self, m):
        return {"memories": [self.memory[k] for k in sorted(self.memory)]}

    def op_memory_delete(self, m):
        return {"deleted": self.memory.pop(m["key"], None) is not None}

    def op_tool_save(self, m):
        self.tools[m["name"]] = {"name": m["name"], "source": m["source"], "created_at": 1, "updated_at": 1}
        return {}

    def op_tool_list(self, m):
        return {"tools": list(self.tools.values())}

    def op_tool_delete(self, m):
        return {"deleted": self.tools.pop(m["name"], None) is not None}

    def answer(self, m):
        self.asked.append(m["op"])
        try:
            self.reply(m, getattr(self, "op_" + m["op"].replace(".", "_"))(m))
        except Refusal as refusal:
            self.kernel.send({"type": "rpc_response", "id": m["id"], "ok": False, "error": refusal.error})

    def reply(self, m, result):
        line = json.dumps(result)
        if len(line) <= 1 << 20:
            self.kernel.send({"type": "rpc_response", "id": m["id"], "ok": True, "result": result})
            return
        for at in range(0, len(line), 1 << 20):
            self.kernel.send({"type": "rpc_part", "id": m["id"], "text": line[at:at + (1 << 20)]})
        self.kernel.send({"type": "rpc_response", "id": m["id"], "ok": True})

    def start(self, code):
        self.kernel.start(code, raw=lambda id: {"type": "execute", "id": id, "code": code, "name": "<execution-%d>" %
                                                self.kernel.count, "mcp": self.mcp})

    def finish(self, hold=None):
        """`hold`: a function that may keep a call's request, by returning True, instead of having it answered."""
        take = self.kernel.message

        def message(timeout_s):
            while True:
                m = take(timeout_s)
                if m["type"] == "rpc_cancel":
                    self.cancelled.append(m["id"])
                elif m["type"] != "rpc_request":
                    return m
                elif not (hold and m["op"] == "mcp.call" and hold(m)):
                    self.answer(m)

        self.kernel.message = message
        try:
            return self.kernel.finish()
        finally:
            del self.kernel.message

    def run(self, code, hold=None):
        self.start(code)
        return self.finish(hold)
