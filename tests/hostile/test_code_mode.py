# SPDX-License-Identifier: Apache-2.0
"""test_code_mode.py - Requests of code to the host: forged, repeated, for others, deep, giant, endless.

The records of the MCP server behind the daemon, and the ledger, show what happened; the tests never trust the code.
"""
import json
import os
import sys
from pathlib import Path

import daemon_lib
import pytest
from daemon_lib import CEILING, CHANNEL, MIB, NEIGHBOUR_SECONDS, Daemon, Watch
from process import Later, unique
from lib import CAISSON, landed, session
from cell_lib import until

hostile_test, whole_module = daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
slow = pytest.mark.slow
pytestmark = pytest.mark.skipif(not (CAISSON.parent / "caisson-bridge").exists(), reason="no caisson-bridge beside the daemon")

UPSTREAM = Path(__file__).resolve().parents[1] / "serve" / "upstream.py"

# The guest's own reader is left alone: requests from here have no waiter in the kernel, and the answers are dropped there. Its ids are small.
RAW = CHANNEL + """
def ask(i, op="mcp.call", **fields):
    put(json.dumps({"type": "rpc_request", "id": i + 1000000, "op": op, **fields}).encode() + b"\\n")

def call(i, server, tool, arguments, **more):
    ask(i, server=server, tool=tool, arguments=arguments if isinstance(arguments, str) else json.dumps(arguments), **more)
"""



def barrier(server="mine"):
    """When it has come back, all that was sent before it has been handled; by then the server is known and runs, too."""
    return f"\nimport mcp.runtime\nawait mcp.runtime.call_tool({server!r}, 'echo', {{'text': 'barrier'}})\n"


class Behind:
    """The servers' notes."""

    def __init__(self, where):
        self.where = where

    def log(self, name):
        return self.where / f"{name}.log"

    def calls(self, name):
        try:
            notes = [json.loads(line) for line in self.log(name).read_text().splitlines()]
            return [n["arguments"] for n in notes if "call" in n and n["arguments"] != {"text": "barrier"}]
        except FileNotFoundError:
            return []


@pytest.fixture(scope="module")
def behind(whole_module):
    where = session().dir / unique("behind")
    where.mkdir(mode=0o755)
    return Behind(where)


@pytest.fixture(scope="module")
def daemon(behind):
    config = behind.where / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {
        name: {"command": sys.executable, "args": [str(UPSTREAM), str(behind.log(name))], **({"caisson": rules} if rules else {})}
        for name, rules in (("mine", None), ("other", {"default": "all"}), ("asks", {"allow": ["write"], "approve": ["write"]}))}}))
    with Daemon("--mcp-config", config, *(("--mcp-user", "root") if os.geteuid() == 0 else ())) as d:
        yield d


def box(d, *servers, **spec):
    name = unique()
    r = d.request("POST", "/v1/sandboxes", {"name": name, "servers": list(servers), **spec})
    assert r.status == 201, r
    return name


def run(d, name, code, timeout=30):
    return d.execute(code, session_id=name, timeout=timeout)


def ledger(d, event, name=None):
    lines = [json.loads(line) for line in (d.state / "ledger" / "ledger.jsonl").read_text().splitlines()]
    return [e for e in lines if e["event"] == event and name in (None, e["sandbox"])]


def check_lands(d, behind, name, server="mine"):
    """The positive control: a request that is sent this way and may be made is made."""
    word = unique("w")
    run(d, name, RAW + f"call(9, {server!r}, 'echo', {{'text': {word!r}}})" + barrier(server))
    landed(until(lambda: {"text": word} in behind.calls(server), 10, "a call that may be made"), behind.calls(server))


# ---- forged responses -------------------------------------------------------------------------------------------

FORGED = ['{"type":"rpc_response","id":1,"ok":true,"result":{"content":[]}}', '{"type":"rpc_part","id":1,"text":"{}"}',
          '{"type":"ack"}', '{"type":"execute","id":"x","code":"print(1)"}', '{"type":"approval","decision":"approve"}']


@slow
def test_forged_responses_change_nothing(daemon, behind, stopped_by):
    """Answers to oneself on the streams and on the channel: text, or types that the host does not take from a kernel."""
    name = box(daemon, "mine", "asks")
    check_lands(daemon, behind, name)
    before = len(ledger(daemon, "tool.begin", name))
    text = "\n".join(FORGED) + "\n"
    r = run(daemon, name, RAW + f"import sys\nput({text.encode()!r}); os.write(1, {text.encode()!r})\nprint('x')")
    assert r.status == "ok" and r.stdout == text.encode() + b"x\n", r
    assert len(ledger(daemon, "tool.begin", name)) == before and not ledger(daemon, "approval.begin", name)
    stopped_by("a kernel's messages have their own types")


@slow
def test_code_cannot_approve_for_its_owner(daemon, behind, stopped_by):
    name = box(daemon, "asks")
    code = RAW + "\n".join(
        ["call(1, 'asks', 'write', {'text': 'evil'})"] +
        [f"ask({i + 2}, op={op!r}, id2=1, decision='approve', approve=True)" for i, op in enumerate(
            ("approval.decide", "approvals", "mcp.approve", "approve"))] + ["time.sleep(1)"])
    later = Later(lambda: run(daemon, name, code))
    a = until(lambda: daemon.request("GET", "/v1/approvals").json["approvals"], 10, "an approval that waits")
    landed(a[0]["tool"] == "write", a)
    later.result()
    assert {"text": "evil"} not in behind.calls("asks")
    assert ledger(daemon, "approval.end", name)[-1]["outcome"] == "dropped"
    assert not daemon.request("GET", "/v1/approvals").json["approvals"]
    stopped_by("the word comes from outside")


# ---- forged requests --------------------------------------------------------------------------------------------

@quick
def test_another_sandbox_owner_or_server(daemon, behind, stopped_by):
    """A request that names objects of others is a request of this sandbox, with its permissions."""
    theirs = box(daemon, "other")
    check_lands(daemon, behind, theirs, "other")
    name = box(daemon, "mine")
    check_lands(daemon, behind, name)
    lies = "sandbox=%r, session_id=%r, owner='root', servers=['other'], execution='0' * 32" % (theirs, theirs)
    r = run(daemon, name, RAW + f"call(1, 'other', 'destroy', {{'text': 'evil'}}, {lies})\n"
                                f"call(2, 'mine', 'write', {{'text': 'evil'}}, {lies}, verdict='allow', read_only=True, approve=True)\n"
                                f"call(3, 'mine', 'echo', {{'text': 'as me'}}, {lies})" + barrier())
    assert r.status == "ok", r
    until(lambda: {"text": "as me"} in behind.calls("mine"), 10, "the call that is allowed")
    assert {"text": "evil"} not in behind.calls("other") + behind.calls("mine")
    assert all(e["server"] == "other" for e in ledger(daemon, "tool.begin", theirs))
    assert [(e["server"], e["code"]) for e in ledger(daemon, "tool.refused", name)] == [("other", "unknown_server"), ("mine", "refused")]
    assert not ledger(daemon, "tool.refused", theirs)
    stopped_by("the sandbox is known by the descriptor")


@slow
def test_request_ids_twice_and_of_others(daemon, behind, stopped_by):
    """Several requests with one id are one request; cancelling an id of another sandbox has no effect."""
    name, theirs = box(daemon, "mine"), box(daemon, "mine")
    check_lands(daemon, behind, name)
    slow_one = Later(lambda: run(daemon, theirs, "print(await mcp_mine.slow(seconds=2))"))
    until(lambda: {"seconds": 2} in behind.calls("mine"), 10, "a call of a neighbour")
    before = len(behind.calls("mine"))
    run(daemon, name, RAW + "for _ in range(50): call(7, 'mine', 'slow', {'seconds': 0.5})\n"
                            "for i in range(1000): put(json.dumps({'type': 'rpc_cancel', 'id': i + 100}).encode() + b'\\n')\ntime.sleep(1)")
    assert len(behind.calls("mine")) == before + 1
    assert slow_one.result().status == "ok" and [e["outcome"] for e in ledger(daemon, "tool.end", theirs)] == ["ok"]
    assert ledger(daemon, "tool.refusals", name)[0]["requests"] == 49
    stopped_by("ids are a kernel's own")


BAD_IDS = ["0", "-1", "1.5", "9007199254740993", "\"1\"", "null", "[1]", "1e3", "true"]


@slow
def test_invalid_request_ids(daemon, behind, stopped_by):
    name = box(daemon, "mine")
    check_lands(daemon, behind, name)
    before = len(behind.calls("mine"))
    lines = b"".join(b'{"type":"rpc_request","id":%s,"op":"mcp.call","server":"mine","tool":"echo","arguments":"{\\"text\\":\\"x\\"}"}\n' % i.encode()
                     for i in BAD_IDS)
    r = run(daemon, name, RAW + f"put({lines!r})" + barrier())
    assert r.status == "ok" and len(behind.calls("mine")) == before, r
    stopped_by("strict ids")


# ---- code in the agent's place ----------------------------------------------------------------------------------

@slow
def test_the_guests_checks_are_not_the_hosts(daemon, behind, stopped_by):
    """Code that replaced the runtime in its kernel, and asks without any of its checks, is held by the host's rules alone."""
    check_lands(daemon, behind, box(daemon, "mine"))
    name = box(daemon, "mine", tools={"budget": 3, "max_argument_bytes": 100})
    code = RAW + """
from caisson_kernel.codemode import schema, servers
for module in (schema, servers):
    for attribute in [a for a in dir(module) if callable(getattr(module, a)) and not a.startswith('_')]:
        setattr(module, attribute, lambda *a, **k: True)
for i in range(10): call(i + 1, 'mine', 'echo', {'text': 'n%d' % i})
call(20, 'mine', 'write', {'text': 'evil'})
call(21, 'mine', 'echo', {'text': 'evil' * 100})
time.sleep(0.5)
"""
    run(daemon, name, code)
    mine = [c for c in behind.calls("mine") if str(c.get("text", "")).startswith("n")]
    assert len(mine) == 3 and not any("evil" in str(c) for c in behind.calls("mine"))
    assert {e["code"] for e in ledger(daemon, "tool.refused", name)} >= {"budget", "refused", "too_large"}
    stopped_by("tool rules are kept outside")


# ---- deep, giant, nonsense --------------------------------------------------------------------------------------

DEEP = '"[" * 100000 + "]" * 100000'
NONSENSE = {
    "deep": f"'{{\"text\":' + {DEEP} + '}}'", "half": "'{\"text\":'", "number": "'{\"text\": 1' + '0' * 5000 + '}'", "nan": "'{\"text\": NaN}'",
    "twice": "'{\"text\": 1, \"text\": 2}'", "list": "'[]'", "wide": "'{\"text\": [' + '0,' * 300000 + '0]}'", "lines": "'{\"text\":\\n1}'",
    "giant": "'{\"text\": \"' + 'x' * (9 << 20) + '\"}'", "none": "''", "nul": "'{\"text\": \"a\\x00b\"}'",
}


@pytest.mark.parametrize("what", daemon_lib.some_quick(NONSENSE, "deep"))
def test_nonsense_arguments(daemon, behind, what, stopped_by):
    name = box(daemon, "mine", tools={"max_argument_bytes": 8 * MIB})
    check_lands(daemon, behind, name)
    before = len(behind.calls("mine"))
    with Watch(daemon) as w:
        r = run(daemon, name, RAW + f"call(1, 'mine', 'echo', {NONSENSE[what]})" + barrier() + "print('alive')")
    assert r.stdout == b"alive\n" and len(behind.calls("mine")) == before, r
    assert w.rss < CEILING + 64 * MIB, w.rss
    stopped_by("bounds before the parser")


@slow
@pytest.mark.parametrize("line", ["b'x' * (17 << 20)", "b'{' * 100000", "b'{\"type\":\"rpc_request\",\"type\":\"x\"}\\n'", "b'\\xff\\n'"])
def test_nonsense_lines(daemon, behind, line, stopped_by):
    """They end the kernel that sent them, and no other."""
    name = box(daemon, "mine")
    check_lands(daemon, behind, name)
    r = run(daemon, name, RAW + f"put({line})\nput(b'\\n')\ntime.sleep(5)")
    assert r.status == "error" and r.kind == "protocol", r
    stopped_by("bounds of a line")


# ---- floods ----------------------------------------------------------------------------------------------------------

@quick
def test_flood_of_requests(daemon, behind, stopped_by):
    """Requests without end whose answers are not read: the kernel is ended, this is recorded, and the neighbours work."""
    name = box(daemon, "mine")
    check_lands(daemon, behind, name)
    before = len(behind.calls("mine"))
    with Watch(daemon, neighbour=True) as w:
        r = run(daemon, name, RAW + "i = 1\nwhile True:\n    call(i, 'mine', 'slow', {'seconds': 0.2})\n    i += 1", timeout=20)
    assert r.status == "error" and r.kind == "protocol", r
    refused = ledger(daemon, "tool.refusals", name)
    assert refused and refused[0]["requests"] >= 10000, refused
    assert len(behind.calls("mine")) - before < 5000
    assert w.late < NEIGHBOUR_SECONDS and not w.failed and w.rss < CEILING + 64 * MIB, (w.late, w.failed, w.rss)
    stopped_by("64 in flight, a rate, and an end")


@slow
def test_flood_of_refused_calls_does_not_fill_the_ledger(daemon, behind, stopped_by):
    name = box(daemon, "mine")
    check_lands(daemon, behind, name)
    run(daemon, name, RAW + "for i in range(3000):\n    call(i + 1, 'mine', 'write', {'text': 'x'})\n    time.sleep(0.001)" + barrier(), timeout=30)
    assert len(ledger(daemon, "tool.refused", name)) == 100
    assert ledger(daemon, "tool.refusals", name)[0]["tools"] >= 2000
    stopped_by("counted, beyond the first hundred")


@slow
def test_unread_results(daemon, behind, stopped_by):
    """Large answers to code that has stopped its kernel's reader: bounded in the daemon."""
    name = box(daemon, "mine")
    check_lands(daemon, behind, name)
    with Watch(daemon, neighbour=True) as w:
        r = run(daemon, name, RAW + "import signal\nfor i in range(10): call(i + 1, 'mine', 'big', {'bytes': 30 << 20})\n"
                                    "os.kill(os.getpid(), signal.SIGSTOP)", timeout=10)
    assert r.status == "timeout", r
    assert w.rss < CEILING + 512 * MIB and not w.failed, (w.rss, w.failed)
    stopped_by("128 MiB of results in a sandbox")
