# SPDX-License-Identifier: Apache-2.0
"""mcp_client.py - A small client of the Model Context Protocol, of both eras, that hides nothing."""
import http.client
import itertools
import json

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"
TASKS = META + "tasks"
BOTH_TYPES = "application/json, text/event-stream"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId",
         "tasks/cancel": "taskId"}


class Answer:
    """Of one POST: its status, headers and messages, whether they came as JSON or as events."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.messages = []
        if "event-stream" in self.headers.get("content-type", ""):
            self.messages = list(events(response))
        else:
            body = response.read()
            if body:
                self.messages = [json.loads(body)]

    @property
    def last(self):
        return self.messages[-1]

    @property
    def result(self):
        assert "result" in self.last, self.last
        return self.last["result"]

    @property
    def error(self):
        assert "error" in self.last, self.last
        return self.last["error"]

    @property
    def text(self):
        return "\n".join(b["text"] for b in self.result["content"] if b["type"] == "text")


def raw_events(response):
    """Each as a dict of its fields; data is a message, or empty."""
    event = {}
    for raw in response:
        line = raw.decode().rstrip("\n")
        name, colon, value = line.partition(":")
        if colon and name:
            event[name] = value.lstrip(" ")
        elif not line and event:
            event["data"] = json.loads(event["data"]) if event["data"] else ""
            yield event
            event = {}


def events(response):
    return (e["data"] for e in raw_events(response) if e["data"])


class Client:
    def __init__(self, daemon, token=None, capabilities=None):
        self.daemon, self.token = daemon, token
        self.capabilities = capabilities or {}
        self.ids = itertools.count(1)
        self.session = None

    def connection(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=timeout)

    def headers(self, more):
        h = {"Content-Type": "application/json", "Accept": BOTH_TYPES}
        if self.token:
            h["Authorization"] = "Bearer " + self.token
        h.update(more or {})
        return {k: v for k, v in h.items() if v is not None}

    def send(self, message, headers=None, timeout=60):
        """The response, not read."""
        c = self.connection(timeout)
        c.request("POST", "/mcp", json.dumps(message), self.headers(headers))
        r = c.getresponse()
        r.keep = c
        return r

    def modern_message(self, method, params=None, capabilities=None, meta=None):
        params = dict(params or {})
        params["_meta"] = {META + "protocolVersion": MODERN, META + "clientInfo": {"name": "t", "version": "1"},
                           META + "clientCapabilities": self.capabilities if capabilities is None else capabilities, **(meta or {})}
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}

    def modern_headers(self, m, headers=None):
        h = {"MCP-Protocol-Version": MODERN, "Mcp-Method": m["method"]}
        if m["method"] in NAMED:
            h["Mcp-Name"] = m["params"].get(NAMED[m["method"]])
        return {**h, **(headers or {})}

    def modern(self, method, params=None, headers=None, timeout=60, **kw):
        m = self.modern_message(method, params, **kw)
        return Answer(self.send(m, self.modern_headers(m, headers), timeout))

    def tool(self, name, arguments=None, headers=None, more=None, **kw):
        return self.modern("tools/call", {"name": name, "arguments": arguments or {}, **(more or {})}, headers, **kw)

    def listen(self, timeout=60, **wanted):
        """An open subscription: (its id, the messages as they come, the response)."""
        m = self.modern_message("subscriptions/listen", {"notifications": wanted})
        r = self.send(m, self.modern_headers(m), timeout)
        return m["id"], events(r), r

    # -- legacy --

    def initialize(self, version=LEGACY, capabilities=None):
        a = Answer(self.send({"jsonrpc": "2.0", "id": next(self.ids), "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "t", "version": "1"}}}))
        self.session = a.headers["mcp-session-id"]
        return a

    def legacy(self, method, params=None, headers=None, timeout=60):
        m = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, **({"params": params} if params else {})}
        return Answer(self.send(m, {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": LEGACY, **(headers or {})}, timeout))
