# SPDX-License-Identifier: Apache-2.0
"""test_life.py - How a daemon begins and ends: drained, killed, started again; and its addresses."""
import http.client
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from daemon import read_response
from process import BIN, HANG, SLOW, Later, alive, call_yourself, free_port, name_of, status_of, unique, wait_until
from serve_lib import Held, clean_env, records

from integ_lib import as_user, needs_root

needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="no curl here (apt-get install curl)")


# ---- drain -----------------------------------------------------------------------------------------------------------


def refuses(d):
    try:
        socket.create_connection(("127.0.0.1", d.port), 5).close()
        return False
    except OSError:
        return True


def test_sigterm_lets_executions_finish(serve):
    d = serve()
    name = unique()
    held = Held(d, "print('finished')")
    run = d.begin(held.code, session_id=name, timeout=100)
    assert held.there()
    d.p.send_signal(signal.SIGTERM)
    assert wait_until(lambda: refuses(d)), "new connections are refused at once"
    assert d.running(), "running code was ended"
    held.let_go()
    r = run.result()
    assert r.status == 200 and r.json["stdout"] == "finished\n" and r.json["success"], r
    assert d.end() == 0
    assert d.settled() == []


def test_sigint_is_the_same(serve):
    d = serve()
    d.stop(signal.SIGINT)


def test_queued_calls_finish_too(serve):
    d = serve()
    name = unique()
    held = Held(d, "0")
    calls = [d.begin(held.code, session_id=name, timeout=100)]
    assert held.there()
    calls += [d.begin("import time; time.sleep(0.1); %d" % i, session_id=name) for i in (1, 2)]
    assert wait_until(lambda: d.sessions().get(name, {}).get("queued") == 3)
    d.p.send_signal(signal.SIGTERM)
    assert wait_until(lambda: d.log("drain"))
    held.let_go()
    assert sorted(c.result().json["result"]["text/plain"] for c in calls) == ["0", "1", "2"]
    assert d.end() == 0 and d.settled() == []


def test_streams_finish_too(serve):
    d = serve()
    held = Held(d, "print('end')")
    with d.stream("print('up', flush=True)\n" + held.code, timeout=100) as s:
        it = iter(s)
        next(it)
        d.p.send_signal(signal.SIGTERM)
        assert wait_until(lambda: d.log("drain"))
        held.let_go()
        events = list(it)
    assert events[-1][0] == "done" and events[-1][1]["stdout"] == "up\nend\n"
    assert d.end() == 0


def test_answer_that_is_being_sent_is_sent_whole(serve):
    """A large answer, a slow client, and SIGTERM in the middle of it."""
    d = serve("--max-output", "20000000")
    body = b'{"code": "print(\'x\' * 15000000)"}'
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(60)
        s.connect(("127.0.0.1", d.port))
        s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = s.recv(1000, socket.MSG_PEEK)
        assert head.startswith(b"HTTP/1.1 200")
        d.p.send_signal(signal.SIGTERM)
        assert wait_until(lambda: refuses(d) or not d.running())
        with s.makefile("rb") as f:
            r = read_response(f)
    assert len(r.body) == int(r.headers["content-length"]), "%d of %s bytes" % (len(r.body), r.headers["content-length"])
    assert len(r.json["stdout"]) == 15000001
    assert d.end() == 0


def test_health_reports_draining(serve):
    d = serve()
    held = Held(d)
    run = d.begin(held.code, timeout=100)
    with d.connect() as s, s.makefile("rb") as f:
        def ask(path, body=None):
            s.sendall(b"%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (
                b"POST" if body else b"GET", path, b"Content-Length: %d\r\n" % len(body) if body else b"") + (body or b""))
            return read_response(f)
        assert ask(b"/health").status == 200
        assert held.there()
        d.p.send_signal(signal.SIGTERM)
        assert wait_until(lambda: refuses(d))
        # An existing connection may get an answer, or be closed.
        try:
            r = ask(b"/health")
            assert r is None or (r.status, r.json["status"]) == (503, "draining"), r
            if r:
                r = ask(b"/execute", b'{"code": "1"}')
                assert r is None or (r.status, r.error["code"]) == (503, "draining"), r
        except (BrokenPipeError, ConnectionResetError):
            pass
    held.let_go()
    assert run.result().status == 200
    assert d.end() == 0


def test_drain_has_an_end(serve):
    d = serve("--drain-timeout", "1s")
    run = d.begin("import time; time.sleep(100)", timeout=110)
    assert wait_until(lambda: d.health()["sandboxes"]["busy"] == 1)
    began = time.monotonic()
    d.stop()
    assert time.monotonic() - began > 0.9
    try:
        assert run.result(60).status == 503
    except OSError:
        pass
    assert d.log("drain_timeout")


def test_second_sigterm_ends_at_once(serve):
    d = serve("--drain-timeout", "300s")
    run = d.begin("import time; time.sleep(100)", timeout=110)
    assert wait_until(lambda: d.health()["sandboxes"]["busy"] == 1)
    d.p.send_signal(signal.SIGTERM)
    assert wait_until(lambda: d.log("drain"))
    assert d.running()
    d.p.send_signal(signal.SIGTERM)
    assert d.end() == 0
    assert d.settled() == []
    try:
        run.result(60)
    except OSError:
        pass


def test_stop_is_quick_when_nothing_runs(serve):
    """A pool of ready kernels does not delay the end."""
    d = serve("--pool", "8", "--drain-timeout", "300s")
    for i in range(4):
        d.execute("import subprocess; subprocess.Popen(['sleep', '100'])\nNone", session_id=unique())
    d.stop()


def test_signal_during_the_start(serve):
    """At any moment of the start: it ends, and nothing is left."""
    for ms in (1, 3, 10, 30, 60):
        d = serve(wait=False)
        time.sleep(ms / 1000)
        d.p.send_signal(signal.SIGTERM)
        assert d.end() in (0, -signal.SIGTERM, 125)
        assert d.settled() == [], ms


# ---- killed -----------------------------------------------------------------------------------------------------------------


def busy(serve, **kw):
    """A daemon with a session, a running execution and processes in it."""
    d = serve(**kw)
    name = unique()
    d.execute(call_yourself("busy-kernel") + "import subprocess; p = subprocess.Popen(['sleep', '1000'])", session_id=name)
    run = d.begin("import time; time.sleep(100)", session_id=name, timeout=110)
    assert wait_until(lambda: d.sessions()[name]["state"] == "busy")
    return d, name, run


def next_start_leaves_nothing(d, what):
    """Start again with the same state and stop: nothing of either daemon is left."""
    old_dirs = d.dirs
    d.start()
    d.wait_ready()
    assert d.execute("print('back')")["stdout"] == "back\n"
    d.p.send_signal(signal.SIGTERM)
    assert d.end() == 0
    left = d.settled()
    assert not left, (what, left)
    for o in old_dirs:
        assert wait_until(lambda: not [p for p in o.iterdir() if p.is_dir()]), (what, list(o.iterdir()))
        assert not (o / "cgroup.procs").read_text().split(), what
        o.rmdir()


def test_kill_9_of_the_keeper(serve):
    """The front does not continue without the keeper. (test_adopt.py has the front alone.)"""
    d, _, run = busy(serve)
    os.kill(d.keeper, signal.SIGKILL)
    assert d.end() == -signal.SIGKILL
    assert d.settled() == [], "the front or the warden still runs"
    next_start_leaves_nothing(d, "kill -9 of the keeper")


def test_kill_9_of_the_warden(serve):
    """No cell can be made any more: the daemon reports this and ends, and its supervisor restarts it. Several times, because it is a race."""
    for _ in range(3):
        d, _, run = busy(serve)
        os.kill(d.warden(), signal.SIGKILL)
        assert d.end(25) == 125, "it waited as in a drain"
        assert d.log("warden_gone")
        # Cells must die with their warden; the next start removes leftover cgroups and records.
        assert wait_until(lambda: not d.processes()), [(p, name_of(p)) for p in d.processes()]
        next_start_leaves_nothing(d, "kill -9 of the warden")


def test_kill_9_of_the_warden_while_the_pool_is_filled(serve):
    d = serve("--pool", "60", wait=False)
    assert wait_until(lambda: d.running() and 2 <= len(d.kernels()) < 60)
    os.kill(d.warden(), signal.SIGKILL)
    assert d.end(25) == 125
    assert wait_until(lambda: not d.processes()), [(p, name_of(p)) for p in d.processes()]
    next_start_leaves_nothing(d, "kill -9 of the warden of a pool")


def test_kill_9_of_keeper_and_warden(serve):
    d, _, run = busy(serve)
    for pid in (d.warden(), d.keeper):
        os.kill(pid, signal.SIGKILL)
    d.end()
    assert wait_until(lambda: not d.processes()), [(p, name_of(p)) for p in d.processes()]
    next_start_leaves_nothing(d, "kill -9 of both")


def test_kill_9_of_an_init(serve):
    d, name, run = busy(serve)
    kernel, = d.named("busy-kernel")
    os.kill(d.init_of(kernel), signal.SIGKILL)
    r = run.result().json
    assert (r["status"], r["state"], r["success"]) == ("failed", "reset", False) and r["cause"]["kind"] == "init" and r["epoch"] >= 1, r
    assert not alive(kernel), "processes of the cell are left"
    assert d.execute("print('again')", session_id=name)["stdout"] == "again\n"
    d.stop()


def test_kill_9_of_a_kernel(serve):
    d, name, run = busy(serve)
    kernel, = d.named("busy-kernel")
    os.kill(kernel, signal.SIGKILL)
    r = run.result().json
    assert (r["status"], r["signal"], r["exit_code"], r["state"], r["epoch"]) == ("signal", "KILL", 137, "reset", 1), r
    assert d.execute("print('again')", session_id=name)["stdout"] == "again\n"
    d.stop()


def test_kill_9_of_an_idle_kernel(serve):
    """The kernel of a session dies between two calls: the next call reports that the state is lost."""
    d = serve()
    name = unique()
    d.execute(call_yourself("idle-kernel") + "x = 1", session_id=name)
    os.kill(d.named("idle-kernel")[0], signal.SIGKILL)
    assert wait_until(lambda: d.sessions()[name]["epoch"] == 1)
    r = d.execute("'x' in globals()", session_id=name)
    assert r["result"]["text/plain"] == "False" and r["epoch"] == 1, r


def test_kill_9_of_everything_at_once(serve):
    d, _, run = busy(serve)
    for pid in [d.keeper, *[p for p in d.processes() if p != d.keeper]]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    d.end()
    next_start_leaves_nothing(d, "kill -9 of everything")


def test_daemon_and_command_on_one_state(serve):
    """They can share journals: neither removes the other's cells. A second daemon is refused: test_state.py."""
    d = serve()
    name = unique()
    d.execute("x = 1", session_id=name)
    r = subprocess.run([BIN, "exec", "--state", d.state, "--", "echo", "beside"], env=clean_env(CAISSON_STATE=None), capture_output=True, timeout=30 * SLOW)
    assert r.returncode == 0 and r.stdout == b"beside\n", r
    assert d.execute("x", session_id=name)["result"]["text/plain"] == "1"


def test_chaos(serve):
    """Clients that leave, sessions that are removed, kernels, cells and zygotes that are killed, all at once: the daemon continues, and leaves nothing."""
    rng = random.Random(int(os.environ.get("CAISSON_CHAOS_SEED", "0")) or None)
    d = serve("--pool", "3", "--idle-timeout", "1s")
    end = time.monotonic() + float(os.environ.get("CAISSON_CHAOS_SECONDS", "4")) * SLOW
    odd = []

    def client():
        mine = random.Random(rng.random())
        while time.monotonic() < end:
            what = mine.choice(["run", "session", "leave", "stream", "delete", "interrupt", "bash", "exit", "ws"])
            name = "chaos-%d" % mine.randrange(4)
            try:
                if what == "leave":
                    with d.connect() as s:
                        body = json.dumps({"code": "import time; time.sleep(%f)" % mine.random(), **({"session_id": name} if mine.random() < 0.5 else {})}).encode()
                        s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                        time.sleep(mine.random() * 0.1)
                elif what == "stream":
                    with d.stream("for i in range(2000): print('x' * 100)", session_id=name) as s:
                        for i, _ in enumerate(s):
                            if mine.random() < 0.01:
                                break
                elif what == "ws":
                    with d.websocket() as w:
                        w.execute("import time; print(1); time.sleep(0.2)", session_id=name)
                        if mine.random() < 0.5:
                            w.send({"type": "interrupt"})
                            w.until("done", "refused")
                elif what == "delete":
                    r = d.end_session(name)
                    assert r.status in (204, 404), r
                elif what == "interrupt":
                    r = d.request("POST", "/sessions/%s/interrupt" % name)
                    assert r.status in (202, 404), r
                else:
                    fields = {"run": {}, "session": {"session_id": name}, "bash": {"language": "bash"}, "exit": {"session_id": name}}[what]
                    r = d.try_execute({"run": "print(1)", "session": "x = 1", "bash": "echo 1", "exit": "import os; os._exit(1)"}[what], **fields)
                    assert r.status in (200, 409, 429, 503), r
            except (ConnectionError, ValueError, AttributeError):
                pass  # of a cut stream
            except AssertionError as e:
                odd.append(e)
    clients = [Later(client) for _ in range(6)]
    while time.monotonic() < end:
        time.sleep(0.15)
        victims = [*d.kernels(), *d.inits()] if rng.random() < 0.8 else [d.zygote()]
        victims = [v for v in victims if v]
        if victims:
            try:
                os.kill(rng.choice(victims), signal.SIGKILL)  # of this daemon, in its own cgroups
            except ProcessLookupError:
                pass
    for c in clients:
        c.result(60)
    assert d.running() and not odd, odd[:3]
    assert wait_until(lambda: d.health()["sandboxes"]["live"] == 0 and d.health()["pool"]["making"] == 0 and d.health()["pool"]["zygote"]), d.health()
    assert d.execute("print('alive')")["stdout"] == "alive\n"
    m = d.metrics()
    assert wait_until(lambda: d.metrics()["caisson_sandboxes_busy"] == 0), m
    assert wait_until(lambda: len(d.inits()) <= 8), "there are cells without an owner"
    d.stop()


# ---- idle -----------------------------------------------------------------------------------------------------------------


def test_idle_sessions_are_reaped_and_no_others(serve):
    d = serve("--idle-timeout", "4s")
    idle, used, running = unique("idle"), unique("used"), unique("running")
    held = Held(d, "print('ran on')")
    run = d.begin(held.code, session_id=running, timeout=100)
    assert held.there()
    d.execute("x = 0", session_id=used)
    d.execute(call_yourself("idle-one"), session_id=idle)
    pid, = d.named("idle-one")
    end = time.monotonic() + HANG
    while idle in d.sessions() and time.monotonic() < end:  # each call restarts its idle time
        r = d.execute("x += 1; x", session_id=used)
        assert r["epoch"] == 0 and r["success"], r
        time.sleep(0.1)
    assert idle not in d.sessions() and wait_until(lambda: not alive(pid))
    held.let_go()
    r = run.result().json
    assert r["stdout"] == "ran on\n", "a session that runs code was taken for idle"
    assert d.execute("'idle_one' in globals()", session_id=idle)["epoch"] == 0, "the session was not made anew"
    assert wait_until(lambda: d.sessions() == {})
    assert d.metrics()["caisson_sessions_reaped_total"] >= 3
    assert {e["session"] for e in d.log("session_end") if "idle" in e["why"]} >= {idle, used, running}


def test_session_that_waits_for_input_is_not_idle(serve):
    d = serve("--idle-timeout", "1s")
    with d.websocket() as w:
        w.execute("print(input())", session_id=unique(), timeout=100)
        ask = w.until("input_request")[-1]
        name = unique("idle")
        d.execute("1", session_id=name)
        assert wait_until(lambda: name not in d.sessions()), "the idle session is still there"
        w.send({"type": "input_response", "id": ask["id"], "value": "late"})
        assert "late" in w.until("done")[-1]["result"]["stdout"]


# ---- starting -------------------------------------------------------------------------------------------------------------


def fails(*args, env=None):
    p = subprocess.run([str(BIN), "serve", *map(str, args)], env=clean_env(**(env or {})), capture_output=True, timeout=HANG)
    lines = p.stderr.decode().splitlines()
    assert p.returncode == 125 and len(lines) == 1 and lines[0].startswith("caisson serve: ") and p.stdout == b"", p
    return lines[0]


def test_port_in_use(serve, tmp_path):
    d = serve()
    line = fails("--state", tmp_path / "s", "--listen", "127.0.0.1:%d" % d.port)
    assert str(d.port) in line and "in use" in line, line
    assert d.execute("1")["success"]


def test_socket_in_use(serve, short_dir, tmp_path):
    serve(socket=short_dir / "s.sock")
    line = fails("--state", tmp_path / "s", "--listen", "none", "--socket", short_dir / "s.sock")
    assert str(short_dir / "s.sock") in line, line
    (short_dir / "file").write_text("precious")
    line = fails("--state", tmp_path / "s", "--listen", "none", "--socket", short_dir / "file")
    assert str(short_dir / "file") in line and (short_dir / "file").read_text() == "precious"


@pytest.mark.parametrize("args,says", [
    (["--frobnicate"], "--frobnicate"), (["--listen"], "--listen"), (["--listen", "nonsense"], "--listen"), (["--listen", "127.0.0.1:99999"], "--listen"),
    (["--listen", "example.com:80"], "--listen"), (["--listen", "127.0.0.1"], "--listen"), (["--pool", "-1"], "--pool"), (["--pool", "many"], "--pool"),
    (["--pool", "1001"], "--pool"), (["--timeout", "0"], "--timeout"), (["--timeout", "5m", "--max-timeout", "1m"], "--timeout"),
    (["--memory", "1K"], "--memory"), (["--memory", "lots"], "--memory"), (["--socket", "relative"], "--socket"),
    (["--socket", "/" + "x" * 200], "--socket"), (["--state", "relative"], "--state"), (["--image", "python:3.11"], "--image"),
    (["--tls-cert", "/x"], "--tls"), (["--tls-cert", "/nonexistent", "--tls-key", "/nonexistent"], "/nonexistent"), (["--log-level", "loud"], "--log-level"),
    (["--log-format", "xml"], "--log-format"), (["--cpus", "0"], "--cpus"), (["--allow-origin", "evil"], "--allow-origin"), (["extra"], "extra"),
    (["--listen", "none", "--socket", "none"], "none"), (["--max-sandboxes", "0"], "--max-sandboxes"), (["--pids", "0"], "--pids"),
    (["--state", "/proc/nothing"], "/proc/nothing"), (["--state", "/dev/null"], "/dev/null")], ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else "")
def test_bad_flags(args, says, tmp_path):
    if "--state" not in args:
        args = ["--state", tmp_path / "s", *args]
    if "--listen" not in args:
        args = ["--listen", "127.0.0.1:%d" % free_port(), *args]
    line = fails(*args)
    assert says in line, line
    assert records(tmp_path / "s") == []


@pytest.mark.parametrize("name,value", [("CAISSON_POOL", "x"), ("CAISSON_LISTEN", "x"), ("MAX_EXECUTION_TIME", "x"), ("MAX_MEMORY_MB", "1.5"), ("MAX_MEMORY_MB", "-1")])
def test_bad_variables(name, value, tmp_path):
    listen = [] if name == "CAISSON_LISTEN" else ["--listen", "127.0.0.1:%d" % free_port()]
    assert name in fails("--state", tmp_path / "s", *listen, env={name: value})


def test_variables_are_flags(serve, short_dir):
    port = free_port()
    d = serve("--max-output", "7", listen="none", socket="none", wait=False, log_format=None)
    assert d.end() == 125  # a daemon without any address
    d.argv = [str(BIN), "serve"]
    d.port = port
    d.env.update({"CAISSON_LISTEN": "127.0.0.1:%d" % port, "CAISSON_STATE": str(d.state), "CAISSON_SOCKET": str(short_dir / "v.sock"), "CAISSON_POOL": "2",
                  "CAISSON_TIMEOUT": "2s", "CAISSON_MAX_OUTPUT": "7", "CAISSON_PRELOAD": "csv", "CAISSON_IDLE_TIMEOUT": "", "MAX_EXECUTION_TIME": "5"})
    d.kill()
    d.start()
    d.wait_ready()
    assert d.execute("print('0123456789')")["stdout"] == "0123456"
    assert d.execute("import sys; 'csv' in sys.modules")["result"]["text/plain"] == "True"
    assert d.try_execute("1", timeout=6).status == 422 and d.try_execute("1", timeout=5).status == 200
    assert d.execute("import time; time.sleep(20)")["cause"]["limit"] == 2000
    assert (short_dir / "v.sock").exists()


def test_flags_come_before_variables(serve):
    d = serve("--max-timeout", "9s", env={"CAISSON_MAX_TIMEOUT": "8s", "MAX_EXECUTION_TIME": "7"})
    assert d.try_execute("1", timeout=9).status == 200 and d.try_execute("1", timeout=10).status == 422


def test_help_and_version(tmp_path):
    for args, has in [(["--help"], "--idle-timeout"), (["-h"], "CAISSON_MAX_BODY"), (["--version"], "caisson ")]:
        p = subprocess.run([str(BIN), "serve", *args], env=clean_env(CAISSON_LISTEN="nonsense"), capture_output=True, text=True, timeout=20)
        assert p.returncode == 0 and has in p.stdout and p.stderr == "", p


def test_state_directory_is_made(serve, tmp_path):
    """Also a directory for the socket, at the first start."""
    for i in range(5):
        state = tmp_path / ("s%d" % i)
        p = subprocess.Popen([str(BIN), "serve", "--state", str(state), "--listen", "none", "--pool", "0"], env=clean_env(CAISSON_STATE=None),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            assert wait_until(lambda: (state / "caisson.sock").exists() or p.poll() is not None), "the daemon neither serves nor ended"
            assert p.poll() is None, p.stderr.read()
            assert stat.S_IMODE(state.stat().st_mode) == 0o700
        finally:
            p.terminate()
            try:
                p.wait(HANG)
            finally:
                if p.poll() is None:
                    p.kill()
                p.communicate()


# ---- unix socket and TLS -----------------------------------------------------------------------------------------------------


@needs_curl
def test_unix_socket(serve, short_dir):
    path = short_dir / "c.sock"
    d = serve("--pool", "1", socket=path)
    assert stat.S_ISSOCK(path.stat().st_mode) and stat.S_IMODE(path.stat().st_mode) == 0o660
    r = subprocess.run(["curl", "-sS", "--unix-socket", path, "http://any.host.will.do/execute", "-d", '{"code": "print(6 * 7)"}'],
                       capture_output=True, timeout=60)
    assert json.loads(r.stdout)["stdout"] == "42\n", r
    assert wait_until(lambda: any(e["peer"].startswith("unix") for e in d.log("request"))), d.log("request")


@needs_curl
def test_unix_socket_alone_and_in_the_state_directory(short_dir, serve):
    """--listen none: no port. The socket has its default path."""
    d = serve("--pool", "1", listen="none", wait=False, state=short_dir / "st")
    d.argv = [a for i, a in enumerate(d.argv) if a != "--socket" and d.argv[i - 1] != "--socket"]
    assert d.end() == 125
    d.kill()
    d.start()
    sock = short_dir / "st" / "caisson.sock"
    assert wait_until(lambda: sock.exists() and b"healthy" in subprocess.run(
        ["curl", "-s", "--unix-socket", sock, "http://x/health"], capture_output=True).stdout), d.log_text()
    listening = subprocess.run(["ss", "-ltnp"], capture_output=True, text=True).stdout if shutil.which("ss") else ""
    assert "pid=%d," % d.pid not in listening


@needs_curl
def test_unix_socket_owner_beside_tokens(serve, short_dir, tmp_path):
    """A client of the socket is `local`; with a token it is the token's owner."""
    token = "t" * 40
    (tmp_path / "tokens").write_text("alice:%s\n" % token)
    (tmp_path / "tokens").chmod(0o600)
    path = short_dir / "c.sock"
    d = serve("--token-file", tmp_path / "tokens", socket=path)

    def ask(*args):
        return json.loads(subprocess.run(["curl", "-sS", "--unix-socket", path, "http://x/execute", *args], capture_output=True, timeout=60).stdout)
    ask("-d", '{"code": "x = 1", "session_id": "a"}')
    assert ask("-d", '{"code": "x", "session_id": "a"}')["result"]["text/plain"] == "1"
    r = ask("-H", "Authorization: Bearer " + token, "-d", '{"code": "\'x\' in globals()", "session_id": "a"}')
    assert r["result"]["text/plain"] == "False"
    assert ask("-H", "Authorization: Bearer wrong", "-d", '{"code": "1"}')["error"]["code"] == "unauthorized"
    assert set(d.sessions(token=token)) == {"a"}


def test_stale_socket_is_replaced(serve, short_dir):
    path = short_dir / "c.sock"
    d = serve(socket=path)
    d.p.kill()
    d.end()
    assert path.exists()
    d.kill()
    d.start()
    d.wait_ready()
    assert d.execute("1")["success"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("no openssl here (apt-get install openssl)")
    where = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", where / "key.pem", "-out", where / "cert.pem"],
                   check=True, capture_output=True)
    (where / "key.pem").chmod(0o600)
    return where


@needs_curl
@pytest.mark.filterwarnings("ignore:ssl.OP_NO:DeprecationWarning")
def test_tls(serve, certificate):
    d = serve("--tls-cert", certificate / "cert.pem", "--tls-key", certificate / "key.pem", wait=False)

    def ask(*args, **kw):
        return subprocess.run(["curl", "-sS", "--cacert", certificate / "cert.pem", *args], capture_output=True, timeout=60, **kw)
    url = "https://localhost:%d" % d.port
    assert wait_until(lambda: b'"healthy"' in ask(url + "/health").stdout), d.log_text()
    r = ask(url + "/execute", "-d", '{"code": "print(6 * 7)"}')
    assert json.loads(r.stdout)["stdout"] == "42\n", r
    big = ask(url + "/execute", "--data-binary", "@-", input=json.dumps({"code": "#" * 1000000 + "\nprint('big')"}).encode())
    assert json.loads(big.stdout)["stdout"] == "big\n"
    streamed = ask("-N", url + "/execute", "-d", '{"code": "print(1)", "stream": true}').stdout
    assert b"event: done" in streamed
    assert "https://127.0.0.1:%d" % d.port in d.out_path.read_text()
    # Neither plain HTTP nor an old protocol gets anything.
    with socket.create_connection(("127.0.0.1", d.port), 10) as s:
        s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        s.settimeout(15)
        try:
            assert b"200" not in s.recv(1000)
        except ConnectionResetError:
            pass
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.options |= ssl.OP_NO_TLSv1_2 | ssl.OP_NO_TLSv1_3
    with socket.create_connection(("127.0.0.1", d.port), 10) as s, pytest.raises((ssl.SSLError, ConnectionResetError)):
        old.wrap_socket(s)
    assert ask(url + "/health").returncode == 0
    for _ in range(30):  # handshakes that never complete
        socket.create_connection(("127.0.0.1", d.port), 5).close()
    assert ask(url + "/health").returncode == 0
    d.port = None
    d.stop()


def test_tls_key_that_does_not_fit(certificate, tmp_path):
    subprocess.run(["openssl", "ecparam", "-genkey", "-name", "prime256v1", "-out", tmp_path / "other.pem"], check=True, capture_output=True)
    line = fails("--state", tmp_path / "s", "--listen", "127.0.0.1:%d" % free_port(), "--tls-cert", certificate / "cert.pem", "--tls-key", tmp_path / "other.pem")
    assert "key" in line


# ---- privileges ----------------------------------------------------------------------------------------------------------------


not_sanitized = pytest.mark.skipif(SLOW > 1, reason="a sanitized build has no filter: its runtime needs more system calls")


@needs_root
@not_sanitized
def test_front_has_no_power(serve):
    """Judged from outside: user, capabilities, filter, and no inherited descriptor."""
    d = serve()
    s = status_of(d.pid)
    assert s["CapEff"] == s["CapPrm"] == s["CapBnd"] == s["CapInh"] == s["CapAmb"] == "0" * 16, s
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2" and "0" not in s["Uid"].split() and "0" not in s["Gid"].split() and not s["Groups"].split(), s
    jail = d.health()["isolation"]["front"]
    assert jail == {"own_user": True, "seccomp": True, "landlock": True}, jail
    assert d.health()["isolation"]["level"] == "full"


@needs_root
@not_sanitized
def test_services_have_no_power(serve, tmp_path):
    """The services for packages, workspaces, images and the network have none either; each has its own user. One of them keeps one
    capability of root: it can read an image store that belongs to another user."""
    store = tmp_path / "images"
    store.mkdir(mode=0o700)
    d = serve("--pip-index", "https://packages.test/simple", "--image-store", str(store))
    assert d.post("/v1/sandboxes", {"name": unique(), "image": "nobody/has:this"}).status == 422  # the image opener has opened the store
    # The process that restarts them, and makes volumes for workspaces, is their parent and reads nothing from strangers.
    users = {}
    for name in ("gate", "package store", "workspace store", "image opener"):
        pids = wait_until(lambda name=name: [p for p in d.named("caisson-" + name.replace(" ", "-")) if status_of(p)["Seccomp"] == "2"])
        assert pids, name
        for s in map(status_of, pids):
            keeps = "%016x" % (1 << 2 if name == "image opener" else 0)  # CAP_DAC_READ_SEARCH
            assert s["CapEff"] == s["CapPrm"] == s["CapBnd"] == keeps and s["CapInh"] == s["CapAmb"] == "0" * 16, (name, s)
            assert s["NoNewPrivs"] == "1" and not s["Groups"].split(), (name, s)
            users[name] = s["Uid"].split()[0], s["Gid"].split()[0]
    users["front"] = status_of(d.pid)["Uid"].split()[0], status_of(d.pid)["Gid"].split()[0]
    assert not any("0" in u for u in users.values()) and len(set(users.values())) == len(users), users


@needs_root
@not_sanitized
def test_front_can_not_be_dumped_or_traced_by_its_own_user(serve):
    d = serve()
    uid = int(status_of(d.pid)["Uid"].split()[0])
    code = "import os\nos.setgroups([]); os.setgid(%d); os.setuid(%d)\ntry: open('/proc/%d/mem', 'rb'); print('open')\nexcept OSError as e: print(type(e).__name__)" % (uid, uid, d.pid)
    r = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True)
    assert r.stdout.strip() == "PermissionError", r


def few_files(n):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))


def test_connections_can_not_end_the_daemon(serve):
    """More connections than it may open files: some wait, no sandbox is lost, and the daemon continues when they are gone."""
    d = serve("--pool", "4", preexec_fn=few_files(256))
    name = unique()
    d.execute("x = 'kept'", session_id=name)
    held = [Held(d) for _ in range(4)]
    runs = [d.begin(h.code, timeout=100) for h in held]
    assert all(h.there() for h in held)
    many = []
    try:
        for _ in range(400):
            try:
                many.append(socket.create_connection(("127.0.0.1", d.port), 2))
            except OSError:
                break
        for h in held:
            h.let_go()
        assert all(r.result().status == 200 for r in runs)
        assert d.running(), d.log_text()[-1500:]
    finally:
        for s in many:
            s.close()
    def quiet():  # connections over the limit were closed at once, and the first one after them may be too
        try:
            return d.health()["status"] == "healthy"
        except (OSError, http.client.HTTPException):
            return False
    assert wait_until(quiet), d.log_text()[-1500:]
    r = d.execute("x", session_id=name)
    assert r["result"]["text/plain"] == "'kept'" and r["epoch"] == 0, r
    assert d.execute("1")["success"]


def test_sandboxes_beyond_the_open_files(serve):
    """Without descriptors for another sandbox, only that request fails."""
    d = serve("--pool", "1", preexec_fn=few_files(160))
    names = ["n%d" % i for i in range(24)]
    answers = [d.try_execute("1", session_id=n) for n in names]
    assert d.running() and {r.status for r in answers} <= {200, 429, 503}, answers
    for r in answers:
        if r.status != 200:
            assert r.error
    for n in names:
        d.end_session(n)
    assert wait_until(lambda: d.try_execute("print(2)").status == 200)


@needs_root
def test_missing_layer_stops_the_start(short_dir):
    """An ordinary user who may not make cgroups: the daemon does not start, and one line names the missing part."""
    short_dir.chmod(0o777)
    if not os.access(BIN, os.X_OK) or subprocess.run([*as_user(), "test", "-x", BIN]).returncode:
        pytest.skip("an ordinary user cannot reach %s" % BIN)
    if subprocess.run([*as_user(), BIN, "exec", "--state", short_dir / "probe", "--", "true"], env=clean_env(), capture_output=True).returncode == 0:
        pytest.skip("an ordinary user can make whole cells here")
    p = subprocess.Popen([*as_user(), BIN, "serve", "--state", short_dir / "s", "--listen", "127.0.0.1:%d" % free_port()], env=clean_env(CAISSON_STATE=None),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        code = p.wait(HANG)
    except subprocess.TimeoutExpired:
        code = None
        p.terminate()
    err = p.communicate(timeout=20)[1].decode()
    assert code == 125 and len(err.splitlines()) == 1 and "cgroup" in err, err[-600:]
    for flag in re.findall(r"--[a-z][a-z-]+", err):
        assert flag in subprocess.run([BIN, "serve", "--help"], capture_output=True, text=True).stdout, "the named fix does not work here: " + flag


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_any_free_port_is_named(serve, address):
    """With port 0 the chosen port is in the log, on the terminal and in /health, and the daemon serves there."""
    if address == "[::1]" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6 here")
    d = serve(wait=False, listen=address, any_port=True)
    assert wait_until(lambda: d.running() and d.log_path.exists() and d.log("listening")), d.log_text()
    said = d.log("listening")[0]["address"]
    host, _, port = said.rpartition(":")
    assert host == address and int(port) > 0, said
    assert wait_until(lambda: "http://%s/health" % said in d.out_path.read_text())
    with urllib.request.urlopen("http://%s/openapi.json" % said, timeout=20) as r:
        assert r.status == 200
    try:
        with urllib.request.urlopen("http://%s/health" % said, timeout=20) as r:
            health = json.load(r)
    except urllib.error.HTTPError as e:  # it is still starting
        health = json.load(e)
    assert health["listen"] == said, health
