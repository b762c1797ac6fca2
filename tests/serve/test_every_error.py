# SPDX-License-Identifier: Apache-2.0
"""test_every_error.py - Every error of the OpenAPI document, from every operation that declares it.

The test walks the document's own table (`x-errors`: operation, status, code). Errors of the form of a request are caused
from the document alone; the others are caused here, one kind at a time, for all operations that share it. `make
api-coverage` checks that all suites together cover the whole table.
"""
import concurrent.futures
import contextlib
import io
import json
import re
import secrets
import subprocess
import tarfile
import time
from urllib.parse import urlencode

import pytest

from box_lib import Box
from daemon import read_response
from process import Later, unique, wait_until
from serve_lib import Held

from integ_lib import needs_root

EXECUTION = PROCESS = "0" * 32  # well formed, and unused
LIMITS = {"string": ("minLength", "maxLength"), "integer": ("minimum", "maximum"), "number": ("minimum", "maximum"),
          "array": ("minItems", "maxItems"), "object": ("minProperties", "maxProperties")}
WRONG = {"string": 1, "integer": "x", "number": "x", "boolean": "x", "array": "x", "object": "x"}


class Operation:
    """An operation of the document, and how it is called."""

    def __init__(self, method, path, raw):
        self.method, self.path, self.id = method.upper(), path, raw["operationId"]
        self.errors = raw["x-errors"]
        self.query = {p["name"]: p for p in raw.get("parameters", []) if p["in"] == "query"}
        content = raw.get("requestBody", {}).get("content", {})
        self.takes_bytes = bool(content) and "application/json" not in content
        self.schema = content.get("application/json", {}).get("schema")

    def url(self, query=None, **params):
        values = {"name": "nobody", "session_id": "nobody", "asset": "nothing", "port": 8000, "path": "", "execution_id": EXECUTION, "process_id": PROCESS, "approval_id": EXECUTION, **params}
        text = query if isinstance(query, str) else urlencode(query or {}, doseq=True)
        return self.path.format(**values) + ("?" + text if text else "")

    def fields(self):
        """The fields of the body or the query: {name: schema}."""
        return self.schema["properties"] if self.schema else {n: p["schema"] for n, p in self.query.items()}

    def good(self):
        """The smallest accepted request, from the examples."""
        if self.schema:
            return {n: self.schema["properties"][n]["examples"][0] for n in self.schema.get("required", [])}
        return {n: p["example"] for n, p in self.query.items() if p["required"]}

    def call(self, d, fields=None, headers=None, body=None, query=None, **params):
        if self.schema is not None and body is None:
            body = self.good() if fields is None else fields
        elif self.schema is None and query is None:
            query = self.good() if fields is None else fields
        if self.takes_bytes and body is None:
            body = b""
        return d.request(self.method, self.url(query, **params), body, headers=headers)


def operations(d):
    doc = d.get("/openapi.json").json
    return {op["operationId"]: Operation(m, p, op) for p, ops in doc["paths"].items() for m, op in ops.items()}


@pytest.fixture
def all_of_it(daemon):
    return operations(daemon)


def is_refused(r, status, code):
    assert (r.status, r.error["code"]) == (status, code), r


def only(ops, *names):
    return [ops[n] for n in names]


def having(ops, status, code):
    return [op for op in ops.values() if code in op.errors.get(str(status), [])]


# ---- errors of the form of a request ---------------------------------------------------------------------------------------------


def kinds_of(schema):
    kinds = schema["type"]
    return [k for k in ([kinds] if isinstance(kinds, str) else kinds) if k != "null"]


def bad_values(schema, code):
    """Values of a field that should be refused with this code."""
    kind = kinds_of(schema)[0]
    low, high = (schema.get(k) for k in LIMITS.get(kind, ("", "")))
    if code == "wrong_type":
        yield WRONG[kind]
    elif code == "out_of_range" and high is not None:
        size = int(high) + 1
        make = {"string": lambda: "x" * size, "array": lambda: ["x"] * size, "object": lambda: {"k%d" % i: "x" for i in range(size)}}
        yield make.get(kind, lambda: size)()
        if kind == "string" and low:
            yield ""
    elif code == "invalid_value":
        yield from {"string": ["\0", "a\0b", "a b"], "array": [["a\0"], ["a"]], "object": [{"a": "\0"}]}.get(kind, [])


def attempts(op, code):
    """Requests that should be answered with this code: keywords of call()."""
    texts = {"malformed_json": "{", "duplicate_key": '{"a": 1, "a": 1}', "too_deep": "[" * 40 + "]" * 40, "not_an_object": "[]",
             "too_many_values": "[" + "1," * 100001 + "1]", "unknown_field": '{"no_such_field": 1}'}
    if code in texts:
        yield {"body": texts[code], "headers": {"Content-Type": "application/json"}}
    elif code == "unknown_parameter":
        yield {"query": "no_such=1"}
    elif code == "token_in_url":
        yield {"query": "token=secret"}
    elif code == "body_not_allowed":
        yield {"body": b"{}"}
    elif code == "invalid_query":
        yield {"query": "%s=%%zz" % next(iter(op.query))}
    elif code == "unsupported_media_type":
        yield {"body": b"{}", "headers": {"Content-Type": "text/plain"}}
    elif code == "forbidden_origin":
        yield {"headers": {"Origin": "http://elsewhere.example"}}
    elif code == "forbidden_host":
        yield {"headers": {"Host": "elsewhere.example"}}
    elif code == "missing_field":
        yield {"fields": {}}
    else:
        for name, schema in op.fields().items():
            for value in bad_values(schema, code):
                yield {"fields": {**op.good(), name: value}}


@pytest.fixture
def target(daemon):
    """A sandbox, with an execution in it."""
    with Box(daemon) as box:
        yield {"name": box.name, "execution_id": box.shell("true")["execution_id"]}


FORM = [(400, c) for c in ("unknown_parameter", "token_in_url", "body_not_allowed", "malformed_json", "duplicate_key", "too_deep",
                           "too_many_values", "invalid_query")] + [
    (403, "forbidden_origin"), (415, "unsupported_media_type"), (421, "forbidden_host")] + [
    (422, c) for c in ("not_an_object", "unknown_field", "missing_field", "wrong_type", "out_of_range", "invalid_value")]


@pytest.mark.parametrize("status,code", FORM, ids=lambda v: str(v))
def test_form(daemon, all_of_it, target, status, code):
    # Two that no field shows: a header (test_output), a part of the path (test_ports).
    ops = [op for op in having(all_of_it, status, code)
           if (op.id, code) != ("resume_execution", "invalid_value") and not (code == "out_of_range" and "{port}" in op.path)]
    assert ops
    for op in ops:
        tried = []
        for how in attempts(op, code):
            tried.append(op.call(daemon, **how, **target))
            if tried[-1].status == status and tried[-1].error["code"] == code:
                break
        else:
            raise AssertionError((op.id, tried))


def test_number_that_nothing_can_hold(daemon, all_of_it):
    for op in having(all_of_it, 400, "out_of_range"):
        is_refused(op.call(daemon, body='{"a": 1e999}', headers={"Content-Type": "application/json"}), 400, "out_of_range")


def test_too_large(serve):
    d = serve("--max-body", "64K")
    for op in having(operations(d), 413, "payload_too_large"):
        is_refused(op.call(d, body=b" " * 70000, headers={"Content-Type": "application/json"}), 413, "payload_too_large")


def test_tokens(serve, tmp_path):
    """No token, and then too many wrong ones."""
    file = tmp_path / "tokens"
    file.write_text("me:%s\n" % secrets.token_hex(32))
    file.chmod(0o600)
    d = serve("--token-file", file, "--pool", "0", wait=False)
    assert wait_until(lambda: d.running() and knock(d))
    ops = operations(d)
    for op in having(ops, 401, "unauthorized"):
        is_refused(op.call(d), 401, "unauthorized")
    wrong = {"Authorization": "Bearer " + secrets.token_hex(32)}

    def limited(op):
        # A block may end on the way, and a wrong token then begins the next one.
        return wait_until(lambda: op.call(d, headers=wrong).error["code"] == "rate_limited")

    with concurrent.futures.ThreadPoolExecutor(16) as pool:  # each answer is delayed by a second
        limits = having(ops, 429, "rate_limited")
        assert not [op.id for op, yes in zip(limits, pool.map(limited, limits)) if not yes]


def knock(d):
    with contextlib.suppress(OSError):
        return d.get("/health").status == 200


# ---- missing objects --------------------------------------------------------------------------------------------------------------


def test_not_there(daemon, all_of_it):
    for code in ("no_such_sandbox", "no_such_session", "not_found"):
        for op in having(all_of_it, 404, code):
            is_refused(op.call(daemon), 404, code)
    with Box(daemon) as box:
        for code in ("no_such_process", "no_such_execution"):
            for op in having(all_of_it, 404, code):
                is_refused(op.call(daemon, name=box.name), 404, code)
        done = box.shell("true")["execution_id"]
        daemon.execute("1", session_id=box.name + "-s")
        for op in having(all_of_it, 404, "nothing_runs"):
            is_refused(op.call(daemon, name=box.name, session_id=box.name + "-s", execution_id=done), 404, "nothing_runs")


def test_ports(daemon, all_of_it):
    with Box(daemon) as box:
        for op in having(all_of_it, 404, "no_such_port"):
            is_refused(op.call(daemon, name=box.name), 404, "no_such_port")
        for op in only(all_of_it, "open_port", "get_port", "close_port"):
            is_refused(op.call(daemon, name=box.name, port=70000), 422, "out_of_range")
        for port in range(1000, 1032):
            assert all_of_it["open_port"].call(daemon, name=box.name, port=port).status == 201
        is_refused(all_of_it["open_port"].call(daemon, name=box.name), 409, "too_many_ports")


def test_upgrade_required(daemon, all_of_it):
    with Box(daemon) as box:
        p = box.start("sleep", "600")
        for op in having(all_of_it, 426, "upgrade_required"):
            is_refused(op.call(daemon, name=box.name, process_id=p.id), 426, "upgrade_required")


def test_assets_of_the_page(daemon, all_of_it):
    names = re.findall(r'"/?(?:docs/)?([\w.-]+\.(?:css|js))"', daemon.get("/docs").body.decode())
    assert names
    for name in names:
        assert all_of_it["docs_asset"].call(daemon, asset=name).status == 200, name


# ---- sandboxes --------------------------------------------------------------------------------------------------------------------


def test_stopped(daemon, all_of_it):
    with Box(daemon) as box:
        done = box.shell("true")["execution_id"]
        box.post("/kill")
        for op in having(all_of_it, 409, "sandbox_stopped"):
            fields = {**op.good(), **{n: box.name for n in ("session_id",) if op.id == "execute"}}
            if op.id == "create_sandbox":
                fields["name"] = box.name
            if op.id == "list_artifacts":
                fields["execution_id"] = done
            is_refused(op.call(daemon, fields, name=box.name), 409, "sandbox_stopped")


def test_specs(daemon, all_of_it):
    for code, spec in (("not_supported", {"servers": ["x"]}), ("invalid_value", {"workspace": "x:y"}), ("unknown_secret", {"secrets": ["x"]}), ("invalid_value", {"egress": ["*"]}),
                       ("image_unavailable", {"image": "other"}), ("out_of_range", {"memory_mib": 1048576})):
        for op in only(all_of_it, "create_sandbox", "run_python", "run_shell"):
            is_refused(op.call(daemon, {**op.good(), **spec}), 422, code)
    for op in only(all_of_it, "create_sandbox", "run_python", "run_shell"):
        is_refused(op.call(daemon, {**op.good(), "workspace": "none-such"}), 404, "no_such_workspace")
    is_refused(all_of_it["execute"].call(daemon, {"code": "1", "image": "other"}), 422, "image_unavailable")
    is_refused(all_of_it["execute"].call(daemon, {"code": "1", "servers": ["x"]}), 422, "not_supported")
    with Box(daemon) as box:
        is_refused(all_of_it["create_sandbox"].call(daemon, {"name": box.name, "pids": 99}), 409, "spec_conflict")
        is_refused(all_of_it["execute"].call(daemon, {"code": "1", "session_id": box.name, "image": "other"}), 409, "spec_conflict")


def test_no_room(serve):
    d = serve("--max-sandboxes", "1", "--pool", "0")
    ops = operations(d)
    with Box(d, "one"):
        for op in only(ops, "create_sandbox", "run_python", "run_shell", "execute"):
            is_refused(op.call(d), 429, "busy")


def test_languages(serve, daemon, all_of_it):
    with Box(daemon) as box:
        for op in having(all_of_it, 422, "unknown_language"):
            is_refused(op.call(daemon, {"code": "1", "language": "cobol"}, name=box.name), 422, "unknown_language")
            is_refused(op.call(daemon, {"code": "1", "language": "bash", "stdin": "x"}, name=box.name), 422, "unsupported_field")


def test_too_many_wait(daemon, all_of_it):
    """More than a sandbox's queue holds, through both names of it."""
    with Box(daemon) as box:
        sleep = {"code": "import time; time.sleep(60)"}
        waiting = [Later(lambda: box.post("/execute", sleep)) for _ in range(80)]
        assert wait_until(lambda: any(w.done() for w in waiting)), box.about()
        is_refused(all_of_it["execute_in_sandbox"].call(daemon, sleep, name=box.name), 429, "session_busy")
        is_refused(all_of_it["execute"].call(daemon, {**sleep, "session_id": box.name}), 429, "session_busy")
        own = Later(lambda: daemon.post("/execute", {**sleep, "session_id": box.name + "-s"}))
        assert wait_until(lambda: daemon.sessions().get(box.name + "-s", {}).get("state") == "busy")
        daemon.request("DELETE", box.url)
        daemon.end_session(box.name + "-s")
        is_refused(own.result(), 409, "session_ended")
        codes = [w.result() for w in waiting]
        assert {r.error["code"] for r in codes} == {"session_ended", "session_busy"}, codes


# ---- keys ----------------------------------------------------------------------------------------------------------------------------


def test_idempotency_keys(daemon, all_of_it):
    with Box(daemon) as box:
        for op in having(all_of_it, 422, "key_reused"):
            key = {"Idempotency-Key": unique("key")}
            name, good = unique("keyed"), op.good()
            first, other = ({**good, "name": name}, {**good, "name": name + "x"}) if op.id == "create_sandbox" else \
                ({**good, "timeout": 20}, {**good, "timeout": 21})
            is_refused(op.call(daemon, first, {"Idempotency-Key": "not a key"}, name=box.name), 400, "invalid_value")
            assert op.call(daemon, first, key, name=box.name).status in (200, 201)
            is_refused(op.call(daemon, other, key, name=box.name), 422, "key_reused")
            if op.id in ("create_sandbox", "start_process"):
                daemon.request("DELETE", "/v1/sandboxes/" + name)
                continue
            is_refused(op.call(daemon, {**first, "stream": True}, key, name=box.name), 422, "unsupported_field")
            held = Held(daemon)
            slow = {"cmd": "python3", "args": ["-c", held.code]} if "cmd" in good else \
                {"script": "python3 - <<'END'\n%s\nEND" % held.code} if "script" in good else {"code": held.code}
            key = {"Idempotency-Key": unique("key")}
            later = Later(lambda: op.call(daemon, slow, key, name=box.name))
            assert held.there()
            is_refused(op.call(daemon, slow, key, name=box.name), 409, "in_progress")
            held.let_go()
            assert later.result().status == 200


def test_key_of_a_sandbox_that_is_being_made(serve):
    """The cell does not exist yet: the first request waits, the second gets 409."""
    d = serve("--pool", "0")
    create, start = only(operations(d), "create_sandbox", "start_process")

    def meet(op, body):
        for _ in range(50):
            name, key = unique("slow"), {"Idempotency-Key": unique("key")}
            if op is start:
                d.post("/v1/sandboxes", {"name": name})
            both = [Later(lambda: op.call(d, body or {"name": name}, key, name=name)) for _ in range(4)]
            answers = [b.result() for b in both]
            made = len(d.get("/v1/sandboxes/%s/processes" % name).json["processes"]) if op is start else 1
            d.request("DELETE", "/v1/sandboxes/" + name)
            assert made == 1, answers
            if any(r.status == 409 and r.error["code"] == "in_progress" for r in answers):
                return
        raise AssertionError("never met on the way")

    meet(create, None)
    meet(start, {"cmd": "sleep", "args": ["1000"]})


# ---- processes and commands --------------------------------------------------------------------------------------------------------------


def test_processes(daemon, all_of_it):
    with Box(daemon) as box:
        where = {"name": box.name}
        start, stdin, send = only(all_of_it, "start_process", "write_stdin", "signal_process")
        is_refused(start.call(daemon, {"cmd": "no-such-program"}, **where), 422, "cannot_start")
        ended, deaf, reader = box.start("true"), box.start("sleep", "600"), box.start("sleep", "600", stdin=True)
        ended.wait()
        is_refused(stdin.call(daemon, {"data": "x"}, process_id=ended.id, **where), 409, "not_running")
        is_refused(send.call(daemon, {}, process_id=ended.id, **where), 409, "not_running")
        is_refused(stdin.call(daemon, {"data": "x"}, process_id=deaf.id, **where), 409, "stdin_closed")
        full = [stdin.call(daemon, {"data": "x" * 700000}, process_id=reader.id, **where) for _ in range(4)]
        is_refused(full[-1], 429, "stdin_full")
        for op in having(all_of_it, 422, "invalid_cwd"):
            is_refused(op.call(daemon, {**op.good(), "cwd": "/no/such"}, **where), 422, "invalid_cwd")


def test_too_many_processes(daemon, all_of_it):
    with Box(daemon, pids=600) as box:
        for _ in range(64):
            box.start("sleep", "600")
        is_refused(all_of_it["start_process"].call(daemon, {"cmd": "true"}, name=box.name), 429, "too_many_processes")


def test_too_many_commands(daemon, all_of_it):
    """As many commands as the first process of a cell manages: one more of any kind is refused."""
    sockets = []
    with Box(daemon, pids=600) as box:
        box.shell("echo x > f")
        body = json.dumps({"cmd": "sleep", "args": ["600"]}).encode()
        try:
            for _ in range(256):
                s = daemon.connect()
                sockets.append(s)
                s.sendall(b"POST %s/exec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
                    box.url.encode(), len(body), body))
            assert wait_until(lambda: len(daemon.named("sleep")) >= 256), len(daemon.named("sleep"))
            for op in having(all_of_it, 429, "busy"):
                if "{name}" in op.path and op.id != "list_artifacts":
                    is_refused(op.call(daemon, name=box.name), 429, "busy")
        finally:
            for s in sockets:
                s.close()


# ---- files -----------------------------------------------------------------------------------------------------------------------------


def archive(*names, size=0):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = size
            tar.addfile(info, io.BytesIO(bytes(size)))
    return out.getvalue()


FILE_OPS = ("read_file", "write_file", "delete_file", "move_file", "make_directory", "list_files", "stat_file", "read_archive",
            "write_archive", "watch_files")
SETUP = "mkdir -p d/sub e shut && echo 1 > f && echo 2 > g && ln -s loop loop && mkfifo fifo && chmod 000 shut"


@pytest.fixture
def files(daemon, all_of_it):
    """A sandbox with every kind of obstacle for a path, and a function that calls an operation on a path."""
    with Box(daemon) as box:
        assert box.shell(SETUP)["ok"]

        def call(name, path, to="new", content=None, **more):
            op = all_of_it[name]
            fields = {"from": path, "to": to, **more} if name == "move_file" else {"path": path, **more}
            if op.takes_bytes:
                return op.call(daemon, fields, body=content or (archive("x") if name == "write_archive" else b"x"), name=box.name)
            return op.call(daemon, fields, name=box.name)

        yield call


@pytest.mark.parametrize("name", FILE_OPS)
def test_paths(files, name):
    long = "n" * 300
    is_refused(files(name, long), 422, "bad_path")
    is_refused(files(name, "shut/x"), 403, "permission_denied")
    is_refused(files(name, "f/x"), 409, "not_a_directory")
    is_refused(files(name, "loop/x"), 409, "too_many_links")
    is_refused(files(name, "none/x"), 404, "no_such_file")


def test_conflicts(files):
    is_refused(files("read_file", "d"), 409, "is_a_directory")
    is_refused(files("write_file", "d"), 409, "is_a_directory")
    is_refused(files("write_archive", ".", content=archive("d")), 409, "is_a_directory")
    is_refused(files("read_file", "fifo"), 409, "not_a_file")
    is_refused(files("delete_file", "d"), 409, "directory_not_empty")
    is_refused(files("move_file", "f", to="g"), 409, "file_exists")
    is_refused(files("make_directory", "f"), 409, "file_exists")
    is_refused(files("move_file", "f", to="d", overwrite=True), 409, "is_a_directory")
    is_refused(files("move_file", "e", to="d", overwrite=True), 409, "directory_not_empty")
    is_refused(files("move_file", "f", to="/proc/f"), 409, "other_filesystem")
    is_refused(files("write_archive", ".", content=b"no archive" * 100), 422, "bad_archive")


def test_full_disk_of_a_sandbox(daemon, all_of_it):
    with Box(daemon, disk_mib=1) as box:
        for op, path, content in ((all_of_it["write_file"], "new", bytes(2000000)), (all_of_it["write_archive"], ".", archive("a", size=2000000))):
            is_refused(op.call(daemon, {"path": path}, body=content, name=box.name), 507, "disk_full")


def test_full_memory_of_a_sandbox(daemon, all_of_it):
    with Box(daemon, memory_mib=96) as box:
        assert box.post("/execute", {"code": "v = b'x' * (60 << 20)"}).json["ok"]
        for op, path, content in ((all_of_it["write_file"], "new", bytes(40 << 20)), (all_of_it["write_archive"], ".", archive("a", size=40 << 20))):
            is_refused(op.call(daemon, {"path": path}, body=content, name=box.name), 507, "memory_full")
        assert box.post("/execute", {"code": "print(len(v))"}).json["stdout"] == "62914560\n"


def test_no_process_left_for_a_call(daemon, all_of_it):
    with Box(daemon, pids=12) as box:
        done = box.shell("true")["execution_id"]
        while box.post("/processes", {"cmd": "sleep", "args": ["600"]}).status == 201:
            pass
        for op in having(all_of_it, 503, "process_limit"):
            fields = {"execution_id": done} if op.id == "list_artifacts" else op.good()
            is_refused(op.call(daemon, fields, name=box.name), 503, "process_limit")


def test_call_that_is_killed_in_the_sandbox(daemon, all_of_it):
    """The code may signal the process that works on its files: the call reports that it was ended."""
    with Box(daemon, cpus=0.5) as box:
        done = box.shell("echo x > f; mkdir d")["execution_id"]
        box.start("bash", "-c", "while :; do kill -9 -1; done")

        def ended(op):
            fields = {"execution_id": done} if op.id == "list_artifacts" else {**op.good(), **({"path": "f"} if "path" in op.query else {})}
            r = op.call(daemon, fields, name=box.name)
            return r.status == 503 and r.error["code"] == "file_call_ended"

        # Most calls end before the signal comes; side by side they take longer.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            left = having(all_of_it, 503, "file_call_ended")
            deadline = time.monotonic() + 120
            while left and time.monotonic() < deadline:
                left = [op for op, hit in zip(left, pool.map(ended, left)) if not hit]
        assert not left, [op.id for op in left]


@pytest.mark.parametrize("name", ["write_file", "write_archive"])
def test_sandbox_that_ends_during_an_upload(daemon, all_of_it, name):
    op = all_of_it[name]
    with Box(daemon) as box, daemon.connect() as s, s.makefile("rb") as f:
        s.sendall(b"PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n%s" % (
            op.url({"path": "half" if name == "write_file" else "."}, name=box.name).encode(), archive("half")[:512]))
        assert wait_until(lambda: workers(daemon))
        box.post("/kill")
        is_refused(read_response(f), 409, "sandbox_ended")


def workers(d):
    """Processes of cells that are copies of their init: those that work on files."""
    inits = set(d.inits())
    return [p for p in d.processes() if any(ppid(p) == i for i in inits)]


def ppid(pid):
    with contextlib.suppress(OSError), open("/proc/%d/stat" % pid) as f:
        return int(f.read().rpartition(")")[2].split()[1])


# ---- output -------------------------------------------------------------------------------------------------------------------------------


def test_output(daemon, all_of_it):
    with Box(daemon) as box:
        done = box.shell("true")["execution_id"]
        is_refused(all_of_it["resume_execution"].call(daemon, {"cursor": "0"}, name=box.name, execution_id=done), 409, "not_streamed")
        is_refused(all_of_it["resume_execution"].call(daemon, {}, {"Last-Event-ID": "x"}, name=box.name, execution_id=done), 422, "invalid_value")


# ---- faults of the daemon ---------------------------------------------------------------------------------------------------------------------


@needs_root
def test_not_recorded(serve, short_dir):
    where = short_dir / "disk"
    where.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "none", where], capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        d = serve("--pool", "4", state=where / "state")  # existing cells: another one could not be recorded either
        ops, box = operations(d), Box(d, "j")
        assert wait_until(lambda: d.health()["pool"]["kernels_ready"] >= 4), d.health()

        def refused(op):
            """A call that succeeds takes the last free bytes; but it may also free some, and an open port takes none."""
            with open(where / "ballast", "ab", buffering=0) as f, contextlib.suppress(OSError):
                while True:
                    f.write(bytes(4096))
            r = op.call(d, name=box.name)
            if r.status != 503 and op.id == "open_port":
                ops["close_port"].call(d, name=box.name)
            return r.status == 503 and r.error["code"]

        for op in having(ops, 503, "not_recorded"):
            said = wait_until(lambda: refused(op))
            assert said == "not_recorded" or (said == "sandbox_failed" and op.id in ("run_python", "run_shell", "execute")), (op.id, said)
        (where / "ballast").unlink()
        d.stop()
    finally:
        subprocess.run(["umount", "-l", where], check=True)
