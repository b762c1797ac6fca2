# SPDX-License-Identifier: Apache-2.0
"""test_serve_output.py - `caisson serve`: output and streams of any size and kind."""
import base64
import functools
import json
import re
import time

import daemon_lib
import pytest
from daemon_controls import Bare, bare
from daemon_lib import CEILING, CHANNEL, MIB, Daemon, Events, Watch, WebSocket, check_another, gone, some_quick
from process import Later, call_yourself, unique
from lib import EXACT, at_most, control, landed
from cell_lib import until

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
slow = pytest.mark.slow


@functools.cache
def yes():
    """The output of `yes` in half a second, with no layer of ours around it."""
    return control(["/usr/bin/yes"], timeout=0.5, begun=lambda p, _: p.out_bytes > 20 * MIB).out_bytes


def check_wall(r, seconds, slack=1.0):
    """Ended by the deadline: by the interrupt, or within the grace after it."""
    assert r.status == "timeout" and r.kind == "wall" and r["exit_code"] == 124 and not r["success"], r
    assert seconds <= r["execution_time"] <= seconds + at_most(2 + slack), r


# ---- how much -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("lang,code", [pytest.param("python", "import subprocess; subprocess.run(['yes'])", marks=quick, id="child"),
                                       pytest.param("python", "while True: print('y')", marks=slow, id="print"),
                                       pytest.param("bash", "yes", marks=slow, id="bash")])
def test_output_flood(daemon, lang, code, stopped_by):
    """Counted, cut and flagged; the daemon stays small, and others are served."""
    landed(yes() > 20 * MIB, "yes")
    with Watch(daemon, neighbour=True) as w:
        r = daemon.execute(code, language=lang, timeout=1)
    check_wall(r, 1)
    assert r["truncated"] is True and r.stdout == b"y\n" * 5000, r
    assert r["stdout_bytes"] > (MIB if "print" not in code else 100000), r
    w.check()
    stopped_by("bounded capture; deadline")


@slow
def test_ten_gigabytes_of_output(daemon, stopped_by):
    landed(control(["/usr/bin/head", "-c", "100M", "/dev/zero"]).out_bytes == 100 << 20, "head")
    with Watch(daemon, neighbour=True) as w:
        r = daemon.execute("head -c 10G /dev/zero; echo over >&2", language="bash", timeout=20)
    assert r["stdout_bytes"] <= 10 << 30 and r["truncated"] is True and len(r.stdout) == 10000, r
    assert r.status == "timeout" or r["stdout_bytes"] == 10 << 30, r
    w.check()
    stopped_by("bounded capture; deadline")


@quick
def test_output_is_counted_to_the_byte(daemon, stopped_by):
    """Output that was not kept is still counted, to the byte, on both streams."""
    n = 30 * MIB + 12345
    landed(control(["/usr/bin/head", "-c", str(n), "/dev/zero"]).out_bytes == n, n)
    r = daemon.execute(f"head -c {n} /dev/zero; head -c {MIB + 7} /dev/zero >&2", language="bash", timeout=20)
    assert r.status == "ok" and (r["stdout_bytes"], r["stderr_bytes"]) == (n, MIB + 7) and r["truncated"] is True, r
    for chars, cut in ((9999, False), (10000, False), (10001, True)):
        r = daemon.execute(f"print('é' * {chars}, end='')")
        assert r["truncated"] is cut and r["stdout"] == "é" * min(chars, 10000), r
    stopped_by("bounded capture, in characters")


@pytest.mark.parametrize("how", some_quick(("events", "websocket"), "events"))
def test_output_flood_to_a_client_that_does_not_read(daemon, how, stopped_by):
    """Back-pressure into the cell: the daemon does not grow, the deadline holds, others are served."""
    landed(yes() > 20 * MIB, "yes")
    name = unique("f")[:12]
    code = call_yourself(name) + "import subprocess; subprocess.run(['yes'])"
    with Watch(daemon, neighbour=True) as w:
        if how == "events":
            client = Events(daemon, code, timeout=1, receive_buffer=4096)
        else:
            client = WebSocket(daemon, receive_buffer=4096)
            client.send({"type": "execute", "code": code, "timeout": 1})
        with client:
            until(lambda: daemon.named(name), 10, "the flood")
            gone(daemon, name, 6)          # although its output was not read
            if how == "events":
                last = [(event, text) for event, text, _ in client][-1]
            else:
                last = [json.loads(m) for m in client.messages()][-1]
                last = last["type"], json.dumps(last["result"])
    w.check()
    assert last[0] == "done", last
    r = json.loads(last[1])
    assert r["status"] == "timeout" and r["truncated"] is True, r
    stopped_by("back-pressure; deadline")


@slow
def test_displays_do_not_pass_the_back_pressure(daemon, stopped_by):
    """Output without a reader, with a display now and then: the writers wait as they do without displays."""
    code = CHANNEL + "block, end = b'x' * 60000, time.monotonic() + %s\nwhile time.monotonic() < end:\n" \
        "    os.write(1, block)\n    put(b'{\"type\":\"display\"}\\n' * 20)"
    b = Bare(code % 0.2)
    landed(b.bytes > 10000 and len(b.stdout) > 100000, b)
    clients = [WebSocket(daemon, receive_buffer=2048) for _ in range(3)]
    with Watch(daemon, neighbour=True) as w:
        for c in clients:
            c.send({"type": "execute", "code": code % 3, "timeout": 6})
        time.sleep(4)
    for c in clients:
        c.close()
    w.check(ceiling=CEILING)
    stopped_by("back-pressure")


@slow
def test_deaf_flood_to_a_client_that_does_not_read(daemon, stopped_by):
    """Its deadline opens the pipes again, so that it can hear of it. One that does not want to hear fills the grace with output and
    displays, and the daemon still keeps none of it."""
    code = CHANNEL + "import signal, threading\nsignal.signal(2, signal.SIG_IGN)\nblock, end = b'x' * 60000, time.monotonic() + %s\n" \
        "def flood():\n    while time.monotonic() < end: os.write(1, block)\nthreading.Thread(target=flood, daemon=True).start()\n" \
        "while time.monotonic() < end: put(b'{\"type\":\"display\",\"data\":{\"a\":\"' + block + b'\"}}\\n')"
    b = Bare(code % 0.2)
    landed(b.bytes > MIB and len(b.stdout) > 50000, b)
    clients = [WebSocket(daemon, receive_buffer=2048) for _ in range(3)]
    with Watch(daemon, neighbour=True) as w:
        for c in clients:
            c.send({"type": "execute", "code": code % 30, "timeout": 1})
        time.sleep(4)
    for c in clients:
        c.close()
    w.check(ceiling=CEILING)
    stopped_by("back-pressure; deadline")


def stream_times(daemon, names, times):
    """How long each of many short streams took, of clients that read side by side. All of them must be whole."""
    def client(name):
        took = []
        for _ in range(times):
            begin = time.monotonic()
            with Events(daemon, "for i in range(20): print('line', i)", session_id=name, timeout=60) as s:
                events = list(s)
            took.append(time.monotonic() - begin)
            said = "".join(json.loads(text)["data"] for kind, text, _ in events if kind == "stdout")
            assert said == "".join(f"line {i}\n" for i in range(20)) and events[-1][0] == "done", events[-1]
        return took
    return [t for later in [Later(functools.partial(client, n)) for n in names] for t in later.result()]


@slow
def test_half_of_64_clients_never_read(daemon, stopped_by):
    """32 floods without readers: the 32 clients that read have, at the 99th percentile, at most twice the time they have without them."""
    landed(yes() > 20 * MIB, "yes")
    names = [unique("r") for _ in range(32)]
    stream_times(daemon, names, 2)  # sandboxes are made, and not counted
    calm, beside = [], []
    with Watch(daemon) as w:
        for _ in range(2):
            calm += stream_times(daemon, names, 8)
            silent = [Events(daemon, "import subprocess; subprocess.run(['yes'])", timeout=100, receive_buffer=4096) for _ in range(32)]
            until(lambda: daemon.health()["sandboxes"]["busy"] == 32, 60, "32 floods")
            stuck = until_still(daemon)
            beside += stream_times(daemon, names, 8)
            landed(stuck <= daemon.health()["sandboxes"]["busy"], "the floods were there all the time")
            for s in silent:
                s.close()
            until(lambda: daemon.health()["sandboxes"]["busy"] == 0, 60, "their end")
    w.check()
    p99 = [sorted(times)[int(len(times) * 0.99)] for times in (calm, beside)]
    assert p99[1] <= 2 * p99[0] or not EXACT, f"{p99[0] * 1e3:.1f} ms without them, {p99[1] * 1e3:.1f} ms beside them"
    stopped_by("back-pressure")


def until_still(daemon):
    """Wait until no flood makes progress: all of them wait for their readers. Returns their number."""
    seen = []

    def still():
        text = daemon.request("GET", "/metrics").body.decode()
        seen.append(next(line for line in text.splitlines() if line.startswith("caisson_output_bytes_total")))
        return len(seen) > 20 and len(set(seen[-20:])) == 1
    until(still, 60, "back-pressure on every flood")
    return daemon.health()["sandboxes"]["busy"]


# ---- without a newline, drop by drop --------------------------------------------------------------------------

@quick
def test_output_in_single_bytes(daemon, stopped_by):
    """Single bytes arrive as they are written; the deadline is not moved by them."""
    code = "import os, time\nwhile True:\n    os.write(1, b'.')\n    time.sleep(0.1)"
    c = control(["/usr/bin/python3", "-c", code], timeout=0.5 if EXACT else 1.5)
    landed(c.timed_out and 0 < c.out_bytes < 20, c)
    begun = time.monotonic()
    seconds = 1 if EXACT else 3
    with Events(daemon, code, timeout=seconds) as e:
        got = list(e)
    drops = [(json.loads(text)["data"], at) for event, text, at in got if event == "stdout"]
    assert len(drops) >= 5 and {d for d, _ in drops} == {"."}, drops
    assert drops[0][1] - begun < 0.8 * seconds and drops[-1][1] - drops[0][1] > 0.5, "the bytes were held back and came together"
    assert got[-1][0] == "done" and json.loads(got[-1][1])["status"] == "timeout", got[-1]
    stopped_by("deadline")


@quick
def test_endless_line(daemon, stopped_by):
    """One line of 20 MiB through the stream: all of it comes, nothing grows."""
    n = 20 * MIB
    line = f"tr '\\0' z </dev/zero | head -c {n}"
    landed(control(["/bin/bash", "-c", line]).out_bytes == n, line)
    got = 0
    with Watch(daemon) as w, Events(daemon, line, language="bash", timeout=30) as e:
        for event, text, _ in e:
            if event == "stdout":
                data = json.loads(text)["data"]
                assert not data.strip("z"), data[:50]
                got += len(data)
    assert got == n, got
    w.check()
    stopped_by("nothing to stop: bytes, not lines")


# ---- which bytes ------------------------------------------------------------------------------------------------

STRANGE = {
    "every byte": bytes(range(256)) * 3 + bytes(reversed(range(256))),
    "lone surrogate": b"a\xed\xa0\x80b\xed\xbf\xbf",
    "overlong": b"\xc0\x80 \xe0\x80\xaf \xf0\x80\x80\xaf",
    "cut short": b"abc\xf0\x9f\x98",
    "beyond unicode": b"\xf4\x90\x80\x80 \xf8\x88\x80\x80\x80",
    "nul": b"a\0b\0\0",
    "bom": b"\xef\xbb\xbfhello",
    "escapes": b"\x1b[2J\x1b]0;title\x07\x1bP1$r\x1b\\\x9b31m\r\x08\x7f",
    "text": "ä€😀\u2028\u2029\ufffe\u0085".encode(),
    "json": b'"}],\\u0000\\","exit_code":0}\n',
    "events": b"data: x\n\nevent: done\ndata: {}\n\n\r\r\n",
}


@quick
def test_every_byte_passes(daemon, stopped_by):
    """Every byte comes out as it went in; results and events are valid JSON, and plain."""
    for name, data in STRANGE.items():
        code = f"import os; d = bytes.fromhex('{data.hex()}'); os.write(1, d); os.write(2, d[::-1])"
        c = control(["/usr/bin/python3", "-c", code])
        landed(c.stdout == data and c.stderr == data[::-1], c)
        answer = daemon.request("POST", "/execute", {"code": code})
        r = answer.json
        assert r["status"] == "ok" and r["stdout_bytes"] == len(data) and not r["truncated"], (name, r)
        assert not any(b < 0x20 for b in answer.body.rstrip(b"\n")), f"{name}: a control character is in the answer"
        for stream, want in (("stdout", data), ("stderr", data[::-1])):
            try:
                assert r[stream] == want.decode("utf-8") and stream + "_base64" not in r, (name, r)
            except UnicodeDecodeError:
                assert base64.b64decode(r[stream + "_base64"]) == want, (name, r)
                r[stream].encode("utf-8")
        with Events(daemon, code) as e:
            events = list(e)
        text = "".join(json.loads(t)["data"] for event, t, _ in events if event == "stdout")
        assert [x[0] for x in events if x[0] not in ("stdout", "stderr", "result")] == ["started", "done"], (name, events)
        # Text that is cut at the very end stays away from the stream, and is in the result.
        assert data.decode("utf-8", "replace").startswith(text) or text.replace("\ufffd", "") in data.decode("utf-8", "ignore"), \
            (name, text)
    stopped_by("nothing to stop: output is data")


@quick
def test_characters_in_pieces(daemon, stopped_by):
    """A character that arrives in four writes is one character in the stream and in the result."""
    code = "import os, time\nfor b in '😀é€'.encode():\n    os.write(1, bytes([b])); time.sleep(0.02)"
    landed(control(["/usr/bin/python3", "-c", code]).stdout == "😀é€".encode(), code)
    with Events(daemon, code) as e:
        events = list(e)
    assert "".join(json.loads(t)["data"] for x, t, _ in events if x == "stdout") == "😀é€", events
    r = json.loads(events[-1][1])
    assert r["stdout"] == "😀é€" and "stdout_base64" not in r, r
    r = daemon.execute("print('\\ud800 lone'); raise ValueError('\\udfff')")
    assert r.stdout == b"\\ud800 lone\n" and r["error"]["name"] == "ValueError" and r["state"] == "discarded", r
    stopped_by("nothing to stop: output is data")


@quick
def test_nul_in_messages(daemon, stopped_by):
    """Text with U+0000 is text: the interpreter and its variables live on."""
    codes = ["raise ValueError('a\\0b')", "display({'text/plain': 'a\\0b'}, raw=True)",
             "class A:\n    def __repr__(self): return 'a\\0b'\nA()"]
    for code in codes:
        b = Bare(code)
        landed(b"\\u0000" in b"".join(b.lines), b)
        name = unique()
        daemon.execute("x = 5", session_id=name)
        r = daemon.execute(code, session_id=name)
        assert r.kind is None and r["state"] == "kept", r
        assert daemon.execute("x", session_id=name)["result"] == {"text/plain": "5"}
    stopped_by("nothing to stop: output is data")


EVIL = "\x1b[31m\x1b]0;pwned\x07\r\n{\"level\":\"error\",\"event\":\"forged\"}\x00\u2028\x9b2J"


@quick
@pytest.mark.parametrize("form", ["json", "text"])
def test_output_forges_no_log_line(daemon, form, stopped_by):
    """No text of a guest or a client is a line of its own, or an escape sequence, in the log."""
    shown = json.dumps({"x": EVIL}, ensure_ascii=False)
    landed("\x9b" in shown and "\u2028" in shown, "a log that only quotes would carry C1 and U+2028 as they are")
    with Daemon("--log-level", "debug", log_format=form) as d:
        text = EVIL.replace("\0", "")
        d.execute(f"import sys\nprint({EVIL!r}); sys.stderr.write({EVIL!r})\nraise type({text!r}, (Exception,), {{}})({text!r})")
        d.execute(f"# {text}\n1")
        for fields in ({"language": text}, {"session_id": text}, {"code": "1", text: 1}):
            assert 400 <= d.request("POST", "/execute", {"code": "1", **fields}).status < 500
        raw = text.replace("\r\n", "").encode("utf-8", "replace")
        d.raw(b"GET /" + raw.replace(b"\x1b", b"%1b").replace(b" ", b"%20") + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 1)
        d.raw(b"GET /%1b%5b31m%0a%0dforged%c2%9b HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\x1b[31m\r\n"
              b"User-Agent: \xc2\x9b\xe2\x80\xa8\r\nConnection: close\r\n\r\n", 1)
        d.raw(b"\x1b[31m\x1b\x07 / HTTP/1.1\r\n\r\n", 1)
        d.execute("import ctypes; ctypes.string_at(0)")
        log = d.log_path.read_bytes()
    bad = sorted({b for b in log if (b < 0x20 and b != 0x0a) or b == 0x7f})
    assert not bad, f"control characters in the log: {bad}"
    text = log.decode("utf-8")
    assert not re.search("[\x80-\x9f\u2028\u2029]", text), "C1 controls or line separators in the log"
    for line in text.splitlines():
        if form == "json":
            assert json.loads(line)["event"] != "forged", line
        else:
            assert re.match(r"\d\d:\d\d:\d\d\.\d{3} (debug|info|warning|error) [a-z_]+ ", line), line
    stopped_by("escaping in the log")


# ---- streams that end early or late --------------------------------------------------------------------------

@quick
def test_closes_its_streams(daemon, stopped_by):
    """Closed descriptors: the code continues, its end is reported, and the next execution is not lost."""
    code = "echo before; exec 0<&- 1>&- 2>&-; sleep 0.3; exit 5"
    c = control(["/bin/bash", "-c", code])
    landed(c.exit == 5 and c.stdout == b"before\n", c)
    r = daemon.execute(code, language="bash", timeout=5)
    assert r["exit_code"] == 5 and r.stdout == b"before\n" and r["execution_time"] < at_most(3), r
    name = unique()
    r = daemon.execute("import os, time\nprint('before')\nx = 7\nos.close(1); os.close(2); os.close(0); time.sleep(0.3)",
                       session_id=name, timeout=5)
    assert r.status == "ok" and r.stdout == b"before\n" and 0.3 <= r["execution_time"] < at_most(3), r
    r = daemon.execute("x * 6", session_id=name, timeout=5)
    assert r["result"] == {"text/plain": "42"} and r["state"] == "kept", r
    r = daemon.execute("print('into nothing')", session_id=name, timeout=5)
    assert r["execution_time"] < at_most(3), r       # an error of the code's own, or nothing: not a wait
    stopped_by("nothing to stop: the end comes on the channel, or from wait")


@quick
@pytest.mark.parametrize("what", ["closerange(3, 1024)", "dup2(os.open('/dev/null', os.O_RDWR), control.channel._out_fd)",
                                  "dup2(os.open('/dev/zero', os.O_RDWR), control.channel.in_fd)"],
                         ids=["all closed", "out is null", "in is zero"])
def test_closes_the_channel(daemon, what, stopped_by):
    """A kernel whose channel is closed ends, or is ended, soon or by the deadline; the session gets another one."""
    code = f"import os\nfrom caisson_kernel import control\nos.{what}"
    b = bare(code)
    landed(not any(b"execution_done" in x for x in b.lines) or b.exit, b)
    name = unique()
    daemon.execute("x = 1", session_id=name)
    t = time.monotonic()
    r = daemon.execute(code, session_id=name, timeout=2)
    assert time.monotonic() - t < at_most(6), r
    check_another(daemon, name)
    stopped_by("end of file on the channel; deadline")


@slow
def test_kernel_main_thread_leaves(daemon, stopped_by):
    """The kernel's main thread ends alone (exit, not exit_group): it answers nothing, and the deadline ends it."""
    code = "import ctypes, threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n" \
           "ctypes.CDLL(None).syscall(60, 0)"
    b = Bare(code, seconds=0.7)
    landed(b.lives and b.lines == [b""], b)
    t = time.monotonic()
    r = daemon.execute(code, timeout=1)
    assert not r["success"] and time.monotonic() - t < at_most(5), r
    stopped_by("deadline; SIGKILL to the cell")


ORPHAN = """
import ctypes, os, time
def orphan(name):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(15, name.encode())
            time.sleep(60)
        os._exit(0)
    os.wait()
    time.sleep(0.1)
"""


@quick
def test_orphan_holds_the_pipes(daemon, stopped_by):
    """The answer does not wait for a process that still has the pipes; the cell's end is the orphan's."""
    line = '{ /usr/bin/python3 -c "$1"; echo $? >&2; } | cat'
    c = control(["/bin/bash", "-c", line, "x", ORPHAN + "orphan('x'); print('done', flush=True); os._exit(3)"], timeout=0.8,
                begun=lambda p, _: p.out == b"done\n")
    landed(c.timed_out and c.stdout == b"done\n", c)
    a, b, c, s = unique("a"), unique("b"), unique("c"), unique("s")
    for name, tail, exit_code in ((a, "print('done')", 0), (b, "print('done'); os._exit(3)", 3)):
        r = daemon.execute(ORPHAN + f"orphan({name!r})\n{tail}", timeout=20)
        assert r["exit_code"] == exit_code and r.stdout == b"done\n" and r["execution_time"] < at_most(3), r
        gone(daemon, name)
    r = daemon.execute(ORPHAN + f"orphan({c!r})\nos._exit(3)", session_id=s, timeout=20)
    assert r["exit_code"] == 3 and r["state"] == "reset" and r["execution_time"] < at_most(3), r
    assert daemon.execute("print('on')", session_id=s).stdout == b"on\n"
    assert daemon.end_session(s).status == 204
    gone(daemon, c)
    stopped_by("the channel ends an execution, not the pipes; pid namespace")


# ----  --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("game", some_quick(("nonblock", "small", "large", "closed and open"), "nonblock"))
def test_pipe_games(daemon, game, stopped_by):
    """Flags and size of the guest's ends are its own business; the daemon neither spins nor loses a byte."""
    setup = {"nonblock": "for fd in (1, 2): fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)",
             "small": "fcntl.fcntl(1, 1031, 4096)", "large": "fcntl.fcntl(1, 1031, 1 << 20)",
             "closed and open": "fd = os.open('/dev/stdout', os.O_WRONLY); os.close(1); os.dup2(fd, 1)"}[game]
    code = f"import fcntl, os, sys, time\n{setup}\nprint('y' * 3000000, end='')\ntime.sleep(0.4)\nsys.stderr.write('over')"
    cpu = daemon.cpu()
    with Events(daemon, code, timeout=20) as e:
        events = list(e)
    spent = daemon.cpu() - cpu
    landed(events[-1][0] == "done", events[-1])
    r = json.loads(events[-1][1])
    assert r["status"] == "ok" and r["stdout_bytes"] == 3000000 and r["stderr"] == "over", r
    assert sum(len(json.loads(t)["data"]) for x, t, _ in events if x == "stdout") == 3000000
    assert spent < 0.6, f"the daemon spun: {spent:.2f} s of processor time"
    stopped_by("nothing to stop: the daemon's ends are its own")


@slow
def test_idle_sessions_cost_nothing(daemon, stopped_by):
    """Half-closed streams, a stopped kernel and a full pipe cause no busy loop."""
    names = [unique() for _ in range(3)]
    daemon.execute("import os; os.close(1); os.close(2)", session_id=names[0])
    daemon.execute("import subprocess; subprocess.Popen(['sh', '-c', 'sleep 0.2; kill -STOP $PPID'])", session_id=names[1])
    daemon.execute("import subprocess; subprocess.Popen(['sh', '-c', 'sleep 0.2; exec 1>&- 2>&-; sleep 60'])", session_id=names[2])
    time.sleep(0.4)
    cpu = daemon.cpu()
    time.sleep(0.8)
    spent = daemon.cpu() - cpu
    assert spent < 0.15, f"{spent:.2f} s of processor time in 0.8 idle seconds"
    stopped_by("nothing to stop")


STDIN = {"never read": "import time; time.sleep(0.3)", "closed": "import os; os.close(0)", "one line": "input()"}


@pytest.mark.parametrize("name", some_quick(STDIN, "one line"))
def test_unread_stdin(daemon, name, stopped_by):
    """Almost a whole body of stdin for code that does not want it: no deadlock, no growth that stays, the right end."""
    data = "i" * 1000000 + "\n" + "j" * 6500000
    landed(control(["/bin/bash", "-c", "sleep 0.3; exit 4"], stdin=data.encode()).exit == 4, "stdin")
    with Watch(daemon) as w:
        r = daemon.execute(STDIN[name] + "\nraise SystemExit(4)", stdin=data, timeout=10)
    assert r["exit_code"] == 4 and r["execution_time"] < at_most(6), r
    w.check()
    stopped_by("answers on demand, line by line")


@slow
def test_fifty_megabytes(daemon, stopped_by):
    """50 MB of stdin: 413 as the daemon is, and without harm where it was asked for."""
    data = ("i" * 999 + "\n") * 50000
    landed(len(data) == 50_000_000, "the text")
    with Watch(daemon) as w:
        r = daemon.request("POST", "/execute", {"code": "1", "stdin": data})
    assert r.status == 413, r
    w.check()
    with Daemon("--max-body", "64M") as d, Watch(d) as w:
        r = d.execute("import time; time.sleep(0.3); raise SystemExit(4)", stdin=data, timeout=20)
        assert r["exit_code"] == 4, r
        r = d.execute("n = 0\nfor line in __import__('sys').stdin: n += 1\n    \nn", stdin=data[:5_000_000], timeout=100)
        assert r["result"] == {"text/plain": "5000"}, r
        w.check(ceiling=400 * MIB)
    stopped_by("--max-body; answers on demand")


@pytest.mark.parametrize("count", [pytest.param(30, marks=quick), pytest.param(1000, marks=slow)])
def test_rapid_runs(daemon, count, stopped_by):
    """Fresh sandboxes, over at once, the output still in the pipe: nothing is lost, nothing sticks, nothing adds up."""
    want = b"y" * 9000 + b"\n"
    ends = [("print('y' * 9000)", 0), ("import os; os.write(1, b'y' * 9000 + b'\\n'); os._exit(3)", 3),
            ("import os, signal; os.write(1, b'y' * 9000 + b'\\n'); os.kill(os.getpid(), 9)", 137)]
    for code, exit_code in ends:
        c = control(["/usr/bin/python3", "-c", code])
        landed(c.stdout == want and c.exit == exit_code, c)
    daemon.good()
    before, memory = daemon.descriptors(), daemon.rss()
    bad, worst = [], 0.0
    for i in range(count):
        code, exit_code = ends[i % 3]
        t = time.monotonic()
        r = daemon.execute(code)
        worst = max(worst, time.monotonic() - t)
        if (r.stdout, r["exit_code"]) != (want, exit_code):
            bad.append((i, len(r.stdout), r["exit_code"], r.kind))
    assert not bad, f"{len(bad)} of {count}: {bad[:5]}"
    assert worst < at_most(5), f"one took {worst:.1f} s"
    daemon.quiet()
    assert daemon.rss() < memory + 24 * MIB, f"{memory >> 20} became {daemon.rss() >> 20} MiB"
    until(lambda: daemon.descriptors() <= before + 48, 10, f"{before} descriptors, not {daemon.descriptors()}")
    stopped_by("nothing to stop: no leak")


@quick
def test_many_displays(daemon, stopped_by):
    """10,000 displays (2,000 in `make test`): as many as the cap, a true count of the rest, and the flag; in the stream too."""
    many = 10000 if EXACT else 2000
    code = f"for i in range({many}): display(i)"
    b = Bare(CHANNEL + f"put(b'{{\"type\":\"display\"}}\\n' * {many})")
    landed(sum(b'"display"' in x for x in b.lines) == many, b)
    with Watch(daemon, neighbour=True) as w, Events(daemon, code, timeout=60) as e:
        events = list(e)
    r = json.loads(events[-1][1])
    shown = sum(x == "display" for x, _, _ in events)
    assert r["status"] == "ok" and r["truncated"] is True, r
    assert 0 < len(r["displays"]) == shown <= 1000 and shown + r["displays_dropped"] == many, (shown, r["displays_dropped"])
    w.check()
    stopped_by("64 displays per execution")


@pytest.mark.parametrize("what,size", [pytest.param("display", 20_000_000, marks=quick), pytest.param("display", 100_000_000, marks=slow),
                                       pytest.param("result", 100_000_000, marks=slow), pytest.param("error", 100_000_000, marks=slow)])
def test_large_bundles(daemon, what, size, stopped_by):
    """A bundle, a result or an exception of 100 MB becomes a sentence; it breaks neither the kernel nor the daemon."""
    code = {"display": f"display({{'text/html': 'x' * {size}}}, raw=True)",
            "result": f"class A:\n    def _repr_html_(self): return 'x' * {size}\nA()",
            "error": f"raise ValueError('x' * {size})"}[what]
    name = unique()
    with Watch(daemon, neighbour=True) as w:
        answer = daemon.request("POST", "/execute", {"code": code, "session_id": name, "timeout": 60})
    r = answer.json
    landed(r["status"] == ("error" if what == "error" else "ok"), str(r)[:500])
    assert len(answer.body) < 20 * MIB and r["state"] == "kept", str(r)[:500]
    shown = {"display": r["displays"], "result": r["result"], "error": r["error"]}[what]
    assert shown and ("large" in str(shown) or "shown" in str(shown) or "cut" in str(shown) or r["truncated"]), str(shown)[:300]
    w.check(ceiling=200 * MIB)
    stopped_by("8 MiB per bundle, in the driver")


@slow
def test_large_bundles_past_the_driver(daemon, stopped_by):
    """The driver's own caps are the code's to remove: the host has its own, for each line and for all of them."""
    code = CHANNEL + "line = b'{\"type\":\"display\",\"data\":{\"text/html\":\"' + b'x' * (15 << 20) + b'\"}}\\n'\n" \
        "for _ in range(10): put(line)"
    landed(Bare(code).bytes >= 40 * MIB, "bytes on the channel")
    with Watch(daemon, neighbour=True) as w:
        answer = daemon.request("POST", "/execute", {"code": code, "timeout": 30})
    r = answer.json
    assert r["displays_dropped"] == 8 and len(r["displays"]) == 2 and r["truncated"] is True, {k: str(v)[:200] for k, v in r.items()}
    assert len(answer.body) <= 33 * MIB, len(answer.body)
    w.check(ceiling=260 * MIB)
    stopped_by("32 MiB of displays per execution")
