# SPDX-License-Identifier: Apache-2.0
"""mcp_lib.py - Two small clients of the Model Context Protocol, one for each era, over Streamable HTTP."""
import itertools
import json

from serve_lib import check_schema

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


class RpcError(Exception):
    def __init__(self, status, error):
        super().__init__("%d %s" % (status, error))
        self.status, self.code, self.error = status, error["code"], error


def events(body):
    """The messages of a stream of Server-Sent Events."""
    for block in body.decode().replace("\r\n", "\n").split("\n\n"):
        data = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
        if data and data[0]:
            yield json.loads("\n".join(data))


class Client:
    """Shared by both: requests, notifications on their way, tools."""

    def __init__(self, daemon, **headers):
        self.daemon, self.headers = daemon, {k.replace("_", "-"): v for k, v in headers.items()}
        self.ids = itertools.count(1)
        self.notes = []  # of the last request

    def post(self, message, **headers):
        all_headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **self.headers, **headers}
        return self.daemon.request("POST", "/mcp", body=json.dumps(message).encode(), headers=all_headers)

    def finish(self, r, wanted):
        if r.headers["content-type"].startswith("text/event-stream"):
            messages = list(events(r.body))
        else:
            messages = [r.json]
        self.notes = messages[:-1]
        answer = messages[-1]
        assert answer["jsonrpc"] == "2.0" and answer["id"] == wanted, answer
        if "error" in answer:
            raise RpcError(r.status, answer["error"])
        return answer["result"]

    def tools(self):
        return {t["name"]: t for t in self.call("tools/list")["tools"]}

    def tool(self, name, _meta=None, **arguments):
        """A result of a tool; its structured content is checked against the tool's schema."""
        params = {"name": name, "arguments": arguments}
        result = self.call("tools/call", params, meta=_meta or {})
        schema = self.tools()[name].get("outputSchema")
        if schema and not result["isError"]:
            assert not check_schema(result["structuredContent"], schema, {}), result
        return result


class Legacy(Client):
    def __init__(self, daemon, version="2025-11-25", capabilities=None, **headers):
        super().__init__(daemon, **headers)
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
                   "params": {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "t", "version": "1"}}}
        r = self.post(message)
        self.hello = self.finish(r, 0)
        self.headers["Mcp-Session-Id"] = r.headers["mcp-session-id"]
        self.headers["MCP-Protocol-Version"] = self.hello["protocolVersion"]
        assert self.notify("notifications/initialized").status == 202

    def notify(self, method, params=None):
        return self.post({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def call(self, method, params=None, meta=None, **headers):
        n = next(self.ids)
        params = dict(params or {})
        if meta:
            params["_meta"] = meta
        return self.finish(self.post({"jsonrpc": "2.0", "id": n, "method": method, "params": params}, **headers), n)


class Modern(Client):
    def __init__(self, daemon, capabilities=None, **headers):
        super().__init__(daemon, **headers)
        self.capabilities = capabilities or {}

    def message(self, method, params=None, meta=None):
        envelope = {META + "protocolVersion": MODERN, META + "clientCapabilities": self.capabilities}
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": {**(params or {}), "_meta": {**envelope, **(meta or {})}}}

    def headers_of(self, message):
        name = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(message["method"])
        name = "taskId" if message["method"].startswith("tasks/") else name
        h = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
        if name and name in message["params"]:
            h["Mcp-Name"] = message["params"][name]
        return h

    def call(self, method, params=None, meta=None, **headers):
        m = self.message(method, params, meta)
        result = self.finish(self.post(m, **{**self.headers_of(m), **headers}), m["id"])
        assert result["resultType"] in ("complete", "input_required", "task"), result
        return result
