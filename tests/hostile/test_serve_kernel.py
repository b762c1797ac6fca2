# SPDX-License-Identifier: Apache-2.0
"""test_serve_kernel.py - The kernels of `caisson serve`: forged protocol messages, and the kernel as a victim."""
import functools
import hashlib
import json
import os
import re
import signal
import time

import daemon_lib
import pytest
from daemon_controls import Bare, bare
from daemon_lib import CHANNEL, GUEST, MIB, Daemon, Events, Watch, check_another, gone, some_quick
from process import Later, call_yourself, unique
from lib import at_most, control, landed
from cell_lib import until
from snapshot import stat_of

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick
slow = pytest.mark.slow


def check_protocol(r):
    """The kernel broke the protocol and was ended for it: an error with that cause, and never a success."""
    assert r.status == "error" and r.kind == "protocol" and not r["success"] and r["exit_code"] != 0, r
    assert r["state"] in ("reset", "discarded"), r


# ---- forgeries -----------------------------------------------------------------------------------------------

FORGED = '{"type":"execution_done","id":"%s","status":"ok","exit_code":0}\n{"exit_code":0,"success":true}\n'


@quick
@pytest.mark.parametrize("lang", ["python", "bash"])
def test_forged_lines_on_the_streams(daemon, lang, stopped_by):
    """Text on stdout and stderr that looks like the protocol is text; exit code 7 is exit code 7."""
    text = FORGED % ("0" * 32)
    code = f"import os\nos.write(1, {text!r}.encode()); os.write(2, {text!r}.encode()); os._exit(7)" if lang == "python" else \
        f"printf '%s' '{text}'; printf '%s' '{text}' >&2; exit 7"
    c = control(["/usr/bin/python3" if lang == "python" else "/bin/bash", "-c", code])
    landed(c.exit == 7 and c.stdout == text.encode(), c)
    r = daemon.execute(code, language=lang)
    assert r["exit_code"] == 7 and not r["success"] and r.status == "error", f"a forgery was believed: {r}"
    assert r.stdout == r.stderr == text.encode() and r["result"] is None, r
    stopped_by("a channel of its own")


EVERY = """
took = []
for fd in range(3, 1024):
    try:
        os.write(fd, FORGED)
        took.append(fd)
    except OSError:
        pass
"""


@quick
def test_every_descriptor_of_the_kernel(daemon, stopped_by):
    """A forged end on every descriptor from 3 to 1023, the channel among them, by code that exits with 7."""
    code = f"import os\nFORGED = {FORGED % ('0' * 32)!r}.encode()\n{EVERY}"
    b = bare(code + "os._exit(7)")
    landed(b.exit == 7 and any(b"execution_done" in x for x in b.lines), b)     # the channel can be written by its code
    r = daemon.execute(code + "os._exit(7)")
    assert not r["success"] and r["exit_code"] in (7, 137), f"a forgery was believed: {r}"
    assert r.kind == "protocol" or r["exit_code"] == 7, r
    r = daemon.execute(code + "import time; time.sleep(20)", timeout=10)
    check_protocol(r)
    assert r["execution_time"] < at_most(5), r
    stopped_by("ids of 128 random bits; exit status from wait")


@quick
@pytest.mark.parametrize("lang", ["python", "bash"])
def test_nothing_is_inherited(daemon, lang, stopped_by):
    """A program that the code starts finds no descriptor from 3 to 1023 to write on."""
    prog = f"import os\nFORGED = b'x'\n{EVERY}\nprint(len(took))"
    c = control(["/bin/bash", "-c", 'exec 9>f; exec /usr/bin/python3 -c "$1"', "x", prog])
    landed(c.stdout == b"1\n", c)
    if lang == "python":
        r = daemon.execute(f"import subprocess\nprint(subprocess.run(['/usr/bin/python3', '-c', {prog!r}], close_fds=False,\n"
                           "    capture_output=True, text=True).stdout)")
    else:
        r = daemon.execute("cat >/tmp/p <<'END'\n" + prog + "\nEND\n/usr/bin/python3 /tmp/p", language="bash")
    assert r.stdout.strip() == b"0", r
    stopped_by("close-on-exec")


def forged_end(d, name, timing):
    """Code that sends a perfect end and exits with 7. timing "held": both are there before the daemon looks."""
    mark = unique("k")[:12]
    code = CHANNEL + "import signal\ngo = []\nsignal.signal(signal.SIGUSR1, lambda *_: go.append(1))\n" + call_yourself(mark) + \
        "while not go: time.sleep(0.01)\nput(done(execution_id()))\nos._exit(7)"
    later = Later(lambda: d.execute(code, session_id=name, timeout=60))
    kernel = until(lambda: d.named(mark), 10, "the kernel").pop()
    if timing != "held":
        os.kill(kernel, signal.SIGUSR1)
    else:
        os.kill(d.pid, signal.SIGSTOP)
        try:
            os.kill(kernel, signal.SIGUSR1)
            until(lambda: not (s := stat_of(kernel)) or s[1] == "Z", 10, "the end of the kernel")
        finally:
            os.kill(d.pid, signal.SIGCONT)
    return later.result()


@quick
def test_a_perfect_forgery_is_found_out(daemon, stopped_by):
    """The code knows its own id, reports that it is done and well, and exits with 7. It may get that answer; but the session does not
    continue as if nothing had happened: the next answer reports a new interpreter."""
    b = bare(CHANNEL + "put(done('the-id'))\nos._exit(7)")
    landed(b.exit == 7 and any(b"execution_done" in x for x in b.lines), b)
    name = unique()
    daemon.execute("x = 1", session_id=name)
    first = forged_end(daemon, name, "free")
    assert (first.status, first["exit_code"]) in (("ok", 0), ("error", 7)), first
    check_another(daemon, name)
    stopped_by("wait tells of the end; epoch")


@quick
def test_exit_status_is_from_wait(daemon, stopped_by):
    """The same, but the process is dead before the daemon reads the first byte of the forgery: 7 is 7."""
    landed(bare(CHANNEL + "put(done('the-id'))\nos._exit(7)").exit == 7, "the exit")
    r = forged_end(daemon, unique(), "held")
    assert r["exit_code"] == 7 and not r["success"] and r["state"] == "reset", f"a forgery was believed: {r}"
    stopped_by("exit status from wait")


# Forged messages, and the fate of the execution: "broken", or "ignored" if the host does not handle them.
MESSAGES = {
    "wrong id": ("done('0' * 32)", "broken"),
    "no id": ("b'{\"type\":\"execution_done\",\"exit_code\":0}\\n'", "broken"),
    "null id": ("done(None)", "broken"),
    "number": ("done(0)", "broken"),
    "list": ("done([execution_id()])", "broken"),
    "cut id": ("done(execution_id()[:-1])", "broken"),
    "long id": ("done(execution_id() + '0')", "broken"),
    "upper case": ("done(execution_id().upper() + ' ')", "broken"),
    "ready again": ("b'{\"type\":\"ready\",\"pid\":1,\"language\":\"bash\"}\\n'", "ignored"),
    "host's words": ("b'{\"type\":\"execute\",\"id\":\"1\",\"code\":\"1\"}\\n{\"type\":\"ack\"}\\n'", "ignored"),
    "input_response": ("b'{\"type\":\"input_response\",\"id\":1,\"value\":\"x\"}\\n'", "ignored"),
    "rpc_response": ("b'{\"type\":\"rpc_response\",\"id\":1,\"success\":true,\"payload\":1}\\n'", "ignored"),
    "unknown": ("b'{\"type\":\"shutdown\"}\\n{\"type\":\"\"}\\n'", "ignored"),
    "result twice": ("b'{\"type\":\"result\",\"data\":{\"text/plain\":\"1\"}}\\n' * 3", "ignored"),
    "error twice": ("b'{\"type\":\"error\",\"name\":\"E\",\"value\":\"v\",\"traceback\":[]}\\n' * 3", "ignored"),
    "wrong kinds": ("b'{\"type\":\"display\",\"data\":1,\"metadata\":[],\"display_id\":{},\"update\":9}\\n"
                    "{\"type\":\"error\",\"name\":1,\"traceback\":{}}\\n{\"type\":\"clear_output\",\"wait\":[]}\\n"
                    "{\"type\":\"input_request\",\"id\":{},\"prompt\":0}\\n{\"type\":\"rpc_request\"}\\n'", "ignored"),
}


@quick
def test_forged_messages(daemon, stopped_by):
    """A forged message ends the execution that sent it, or is ignored; it never turns a failure into a success."""
    b = bare(CHANNEL + "".join(f"put({x})\n" for x, _ in MESSAGES.values()))
    wrong = []
    for name, (expression, expected) in MESSAGES.items():
        want = eval(expression, {"execution_id": lambda: "the-id", "done": lambda i: json.dumps(
            {"type": "execution_done", "id": i, "status": "ok", "exit_code": 0}).encode() + b"\n"})
        landed(all(x in b.lines for x in want.splitlines()), (name, b))
        r = daemon.execute(CHANNEL + f"put({expression})\ntime.sleep(0.1)\nraise SystemExit(9)", timeout=10)
        found = "broken" if r.kind == "protocol" else "ignored" if r["exit_code"] == 9 and r.kind is None else "?"
        if found != expected or r.status != "error" or r["success"]:
            wrong.append((name, r))
    assert not wrong, "\n".join(map(str, wrong))
    stopped_by("ids of 128 random bits; the rest is ignored")


@quick
def test_done_twice_and_early(daemon, stopped_by):
    """An end before the end, and a second one: the next execution is not the one that they end."""
    code = CHANNEL + "i = execution_id()\nput(done(i))\ntime.sleep(0.3)\nput(done(i))"
    b = Bare(code.replace("execution_id()\nput", "'the-id'\nput"))
    landed(sum(b"execution_done" in x for x in b.lines) == 3, b)
    name = unique()
    assert daemon.execute(code, session_id=name).status in ("ok", "error")
    for _ in range(4):
        r = daemon.execute("import time; time.sleep(0.1); 6 * 7", session_id=name)
        assert r["result"] == {"text/plain": "42"} or r.kind == "protocol", f"another execution's end was believed: {r}"
    assert r["result"] == {"text/plain": "42"}, r
    stopped_by("ids of 128 random bits")


@quick
def test_for_another_session(daemon, stopped_by):
    """A knows the id of B's execution and reports that it is done: A is ended for this, B continues."""
    a, b = unique("a"), unique("b")
    with Events(daemon, CHANNEL + "print(execution_id(), flush=True)\ntime.sleep(0.8)\nprint('whole')", session_id=b) as e:
        events = iter(e)
        assert next(events)[0] == "started"
        event, text, _ = next(events)
        i = json.loads(text)["data"].strip()
        landed(event == "stdout" and re.fullmatch("[0-9a-f]{32}", i), text)
        check_protocol(daemon.execute(CHANNEL + f"put(done({i!r}))\ntime.sleep(5)", session_id=a))
        last = [x for x in events][-1]
    r = json.loads(last[1])
    assert last[0] == "done" and r["status"] == "ok" and r["stdout"].endswith("whole\n") and r["execution_time"] >= 0.8, r
    stopped_by("a channel for each kernel")


FLOODS = {
    "input": "{\"type\":\"input_request\",\"id\":1,\"prompt\":\"p\"}",
    "rpc": "{\"type\":\"rpc_request\",\"id\":\"" + "z" * 2000 + "\"}",
    "display": "{\"type\":\"display\"}",
    "clear": "{\"type\":\"clear_output\"}",
    "unknown": "{\"type\":\"x\"}",
    "nothing": "",
}


@pytest.mark.parametrize("name", some_quick(FLOODS, "input"))
def test_floods_of_messages(daemon, name, stopped_by):
    """Messages without end, whose answers are not read: the daemon does not grow, and serves others meanwhile."""
    line = FLOODS[name].encode() + b"\n"
    code = CHANNEL + f"block = {line!r} * {max(1, 60000 // len(line))}\nend = time.monotonic() + %s\n" \
        "while time.monotonic() < end: put(block)"
    landed(bare(code % 0.1).bytes > MIB, "bytes on the channel")
    with Watch(daemon, neighbour=True) as w:
        r = daemon.execute(code % 0.7, timeout=20)
    assert r.status in ("ok", "error"), r
    if name == "display":
        assert len(r["displays"]) <= 64 and r["displays_dropped"] > 1000 and r["truncated"], r
    w.check()
    stopped_by("bounded queues; a budget per round")


@slow
def test_messages_beside_output(daemon, stopped_by):
    """Each display makes the daemon read all output first: with a writer that never stops, others still have their turn."""
    code = CHANNEL + "import subprocess\np = subprocess.Popen(['yes'])\nblock = b'{\"type\":\"display\"}\\n' * 3000\n" \
        "end = time.monotonic() + %s\nwhile time.monotonic() < end: put(block)\np.kill()"
    landed(Bare(code % 0.2).bytes > MIB, "bytes on the channel")
    with Watch(daemon, neighbour=True) as w:
        r = daemon.execute(code % 4, timeout=30)
    assert r["truncated"] is True, r
    w.check()
    stopped_by("a budget per round")


@slow
def test_session_floods_while_idle(daemon, stopped_by):
    """Code continues to write on the channel after its execution: nothing is blocked by it, and DELETE ends it."""
    name, mark = unique(), unique("i")[:12]
    code = CHANNEL + "import threading\n" + "block = b'{\"type\":\"display\"}\\n' * 3000\n" \
        "def flood():\n    while True: put(block)\n" + call_yourself(mark) + \
        "threading.Thread(target=flood, daemon=True).start()"
    landed(Bare(code + "\ntime.sleep(0.2)", seconds=1).bytes > MIB, "bytes on the channel")
    # Its lines and the kernel's own may be torn into each other: then the kernel is ended for it.
    assert daemon.execute(code, session_id=name).status in ("ok", "error")
    with Watch(daemon, neighbour=True) as w:
        time.sleep(0.8)
    w.check()
    assert daemon.end_session(name).status == 204
    gone(daemon, mark)
    stopped_by("a budget per round")


# ---- the kernel and pid 1 as victims ----------------------------------------------------------------------------------

KILLS = {
    "kill": ("os.kill(os.getpid(), 9)", 137), "segv": ("os.kill(os.getpid(), 11)", 139), "abort": ("os.abort()", 134),
    "exit": ("os._exit(7)", 7),
    "killed by a child": ("subprocess.run(['/bin/sh', '-c', 'kill -9 $PPID; sleep 5'])", 137),
    "exec": ("os.execv('/bin/sh', ['sh', '-c', 'exit 7'])", 7), "exec and stay": ("os.execv('/bin/sleep', ['sleep', '60'])", 137),
    "stopped by a child": ("subprocess.run(['/bin/sh', '-c', 'kill -STOP $PPID; sleep 60'])", 124),
    "deaf": ("[signal.signal(s, signal.SIG_IGN) for s in range(1, 32) if s not in (9, 19)]; time.sleep(60)", 124),
}


@pytest.mark.parametrize("name", some_quick(KILLS, "killed by a child", "exec", "exec and stay", "exit"))
def test_kernel_is_killed_or_replaced(daemon, name, stopped_by):
    """wait reports how the kernel's process ended; the session continues with another one, and reports this."""
    how, exit_code = KILLS[name]
    code = f"import os, signal, subprocess, time\nx = 1\n{how}"
    b = Bare(code, seconds=0.5)
    landed(not any(b"execution_done" in x for x in b.lines), b)
    name = unique()
    r = daemon.execute(code, session_id=name, timeout=1 if exit_code == 124 else 30)
    assert r["exit_code"] == exit_code and not r["success"] and r["state"] == "reset", r
    if "sleep', ['" in how:    # its channel was closed on exec
        check_protocol(r)
    else:
        assert r.status == {124: "timeout", 7: "error"}.get(exit_code, "signal"), r
    r = daemon.execute("'x' in globals()", session_id=name)
    assert r["result"] == {"text/plain": "False"} and r["epoch"] >= 1 and r["state"] == "kept", r
    stopped_by("exit status from wait; epoch")


INIT = """
import ctypes, errno, os, resource
libc = ctypes.CDLL(None, use_errno=True)
got = {}
def attempt(name, call):
    try:
        r = call()
        got[name] = 'OK' if r is None or not isinstance(r, int) or r >= 0 else errno.errorcode[ctypes.get_errno()]
    except OSError as e:
        got[name] = errno.errorcode[e.errno]
p = VICTIM
buf = ctypes.create_string_buffer(8)
class Iov(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
iov = Iov(ctypes.addressof(buf), 8)
far = Iov(0x400000, 8)
attempt('kill 0', lambda: os.kill(p, 0))
attempt('mem', lambda: open('/proc/%d/mem' % p, 'r+b').close())
attempt('fd', lambda: os.listdir('/proc/%d/fd' % p))
attempt('environ', lambda: open('/proc/%d/environ' % p).read())
attempt('exe', lambda: open('/proc/%d/exe' % p, 'rb').close())
attempt('root', lambda: os.listdir('/proc/%d/root/' % p))
attempt('ptrace', lambda: libc.ptrace(16, p, 0, 0))
attempt('seize', lambda: libc.ptrace(0x4206, p, 0, 0))
attempt('vm_read', lambda: libc.syscall(310, p, ctypes.byref(iov), 1, ctypes.byref(far), 1, 0))
attempt('vm_write', lambda: libc.syscall(311, p, ctypes.byref(iov), 1, ctypes.byref(far), 1, 0))
attempt('getfd', lambda: libc.syscall(438, os.pidfd_open(p), 3, 0))
attempt('prlimit', lambda: libc.prlimit(p, 7, ctypes.byref((ctypes.c_long * 2)(3, 3)), None))
attempt('oom', lambda: open('/proc/%d/oom_score_adj' % p, 'w').write('1000'))
attempt('setns', lambda: libc.setns(os.pidfd_open(p), 0x20000))
attempt('stop', lambda: os.kill(p, 19))
attempt('kill', lambda: os.kill(p, 9))
print(got)
"""
REFUSED = {"EPERM", "EACCES", "ENOSYS", "ESRCH", "ENOENT", "EBADF", "EROFS"}


@quick
def test_pid_1_is_out_of_reach(daemon, stopped_by):
    """The cell's pid 1, from inside the kernel itself: not to be killed, read, written, traced or entered."""
    c = control(["/usr/bin/python3", "-c", INIT.replace("VICTIM", "__import__('subprocess').Popen(['sleep', '9']).pid")])
    lines = eval(c.stdout.decode())
    landed(all(lines[k] == "OK" for k in ("kill 0", "kill", "mem", "fd", "root", "exe", "ptrace", "prlimit")), lines)
    binary = hashlib.sha256((GUEST.parent / "caisson-init").read_bytes()).digest()
    r = daemon.execute(INIT.replace("VICTIM", "1"))
    got = eval(r.stdout.decode())
    # A process may always be asked for, and signals without a handler do not reach a pid 1.
    open_doors = {k: v for k, v in got.items() if v not in REFUSED}
    assert not open_doors, f"pid 1 can be reached: {open_doors}"
    assert hashlib.sha256((GUEST.parent / "caisson-init").read_bytes()).digest() == binary
    stopped_by("init: other user, non-dumpable, pid 1", second="seccomp")


PLANT = """
import os, site, sys
evil = "import os\\nopen('/tmp/planted', 'a').write(__name__ + '\\\\n')\\n"
v = 'python%d.%d' % sys.version_info[:2]
places = ['/workspace', '/tmp', os.path.expanduser('~'), os.path.expanduser('~/.local/lib/%s/site-packages' % v)]
for d in places:
    os.makedirs(d, exist_ok=True)
    for n in ('sitecustomize.py', 'usercustomize.py', 'caisson_kernel.py', 'json.py', 'asyncio.py', 'random.py', 'os.py'):
        open(d + '/' + n, 'w').write(evil)
    open(d + '/evil.pth', 'w').write("import os; open('/tmp/planted', 'a').write('pth\\\\n')\\n")
    for n in ('python3', 'bash', 'node', 'Rscript', 'sh'):
        open(d + '/' + n, 'w').write('#!/bin/sh\\necho ' + n + ' >>/tmp/planted\\n')
        os.chmod(d + '/' + n, 0o755)
for n in ('.bashrc', '.profile', '.bash_profile', '.Rprofile', '.Renviron', '.inputrc'):
    open(os.path.expanduser('~/' + n), 'w').write('echo rc >>/tmp/planted\\n')
os.environ.update(LD_PRELOAD='/tmp/evil.so', PYTHONPATH='/workspace', PYTHONSTARTUP='/workspace/os.py', BASH_ENV='/workspace/sh',
                  ENV='/workspace/sh', NODE_OPTIONS='--require /workspace/x.js', PATH='/workspace:/tmp:/home/agent', PYTHONHOME='/workspace')
refused = 0
for f in ('/usr/local/bin/python3', '/usr/bin/python3', '/usr/lib/%s/os.py' % v, '/etc/ld.so.preload', '/etc/profile', '/etc/passwd',
          '/usr/local/lib/%s/sitecustomize.py' % v, '/run/caisson/kernel.pyz', '/proc/self/exe'):
    try:
        open(f, 'a').close()
    except OSError:
        refused += 1
print('refused', refused)
"""


@quick
def test_planted_files_and_environment(daemon, stopped_by):
    """Everything that an interpreter might load from where the code can write: no kernel of the daemon's loads it, neither the
    session's next one nor those of its other languages; and no other sandbox ever sees it."""
    name = unique()
    r = daemon.execute(PLANT, session_id=name)
    assert r.stdout == b"refused 9\n", r
    # The plants are good: a python that is started in the ordinary way, with a HOME to look into, runs them.
    r = daemon.execute("import os, subprocess\nsubprocess.run(['/usr/bin/python3', '-c', '0'], env={'HOME': '/home/agent'})\n"
                       "t = open('/tmp/planted').read(); os.unlink('/tmp/planted'); print(t)", session_id=name)
    landed(b"usercustomize" in r.stdout and b"pth" in r.stdout, r)
    daemon.execute("import os; os._exit(1)", session_id=name)
    for lang, code, want in (("python", "import json, random, asyncio; print(6 * 7)", b"42\n"), ("bash", "echo $((6 * 7))", b"42\n"),
                             ("javascript", "console.log(6 * 7)", b"42\n"), ("r", "cat(6 * 7, '\\n')", b"42 \n")):
        if daemon.request("POST", "/execute", {"code": code, "language": lang, "timeout": 30}).status != 200:
            print(f"no {lang} here: not tried")
            continue
        r = daemon.execute(code, session_id=name, language=lang, timeout=30)
        assert r.status == "ok" and r.stdout == want, (lang, r)
    r = daemon.execute("import os; print(os.path.exists('/tmp/planted') and open('/tmp/planted').read())", session_id=name)
    assert r.stdout == b"False\n", f"a kernel of the session ran the planted code: {r}"
    r = daemon.execute("import os; print([os.listdir(d) for d in ('/workspace', '/tmp', '/home/agent')], os.environ.get('LD_PRELOAD'))")
    assert r.stdout == b"[[], [], []] None\n", f"another sandbox sees the planted code: {r}"
    stopped_by("isolated interpreters (-I, --norc, --vanilla); fork from the zygote; a cell for each")


@pytest.mark.parametrize("kind", some_quick(("link", "directory", "fifo", "unwritable"), "link", "fifo"))
def test_files_in_the_way_of_a_driver(daemon, kind, stopped_by):
    """The driver of a cold kernel is written to /tmp: whatever the code has put in its place, the host does not follow it, pid 1
    does not wait for it, and the session can be ended."""
    name = unique()
    r = daemon.execute("import os\nopen('/workspace/target', 'w').write('mine')\nfor i in range(1, 9):\n"
                       "    for n in ('driver.sh', 'kernel.pyz', 'driver.js', 'driver.R'):\n"
                       f"        p, kind = '/tmp/.kernel-%d-%s' % (i, n), {kind!r}\n"
                       "        if kind == 'link': os.symlink('/workspace/target', p)\n"
                       "        elif kind == 'directory': os.mkdir(p)\n"
                       "        elif kind == 'fifo': os.mkfifo(p)\n"
                       "        else: os.close(os.open(p, os.O_CREAT | os.O_WRONLY, 0))\n"
                       "print(len(os.listdir('/tmp')))", session_id=name)
    landed(r.stdout == b"32\n", r)
    t = time.monotonic()
    answer = daemon.request("POST", "/execute", {"code": "echo hello", "language": "bash", "session_id": name, "timeout": 5})
    assert time.monotonic() - t < at_most(20), "pid 1 waits"
    assert answer.status in (200, 503), answer
    if answer.status == 200:
        assert answer.json["stdout"] == "hello\n", answer
    r = daemon.execute("print(open('/workspace/target').read())", session_id=name)
    assert r.stdout == b"mine\n", f"the link was followed: {r}"
    t = time.monotonic()
    assert daemon.end_session(name).status == 204 and time.monotonic() - t < at_most(5)
    stopped_by("O_EXCL, O_NOFOLLOW in pid 1, as the cell's user")


# ---- nonsense on the channel --------------------------------------------------------------------------------------------

NONSENSE = {
    "no json": "b'hello\\n'",
    "half a line": "b'{\"type\":\"execution_done\"'",
    "array": "b'[1]\\n'",
    "number": "b'7\\n'",
    "type is a number": "b'{\"type\":7}\\n'",
    "no type": "b'{\"exit_code\":0}\\n'",
    "duplicate keys": "b'{\"type\":\"display\",\"data\":1,\"data\":2}\\n'",
    "NaN": "b'{\"type\":\"display\",\"data\":NaN}\\n'",
    "infinity": "b'{\"type\":\"display\",\"data\":1e999999}\\n'",
    "huge integer": "b'{\"type\":\"display\",\"data\":' + b'9' * 100000 + b'}\\n'",
    "invalid UTF-8": "b'{\"type\":\"display\",\"data\":\"\\xff\\xfe\\xed\\xa0\\x80\"}\\n'",
    "lone surrogate": "b'{\"type\":\"display\",\"data\":\"\\\\ud800\"}\\n'",
    "control bytes": "b'{\"type\":\"display\",\"data\":\"\\x01\"}\\n'",
    "trailing": "b'{\"type\":\"display\"} {}\\n'",
    "deep": "b'{\"type\":\"display\",\"data\":' + b'[' * 100000 + b']' * 100000 + b'}\\n'",
    "deep objects": "b'{\"type\":\"display\",\"data\":' + b'{\"a\":' * 100000 + b'1' + b'}' * 100000 + b'}\\n'",
    "long line": "b'x' * (20 << 20)",
    "long string": "b'{\"type\":\"display\",\"data\":\"' + b'x' * (20 << 20)",
    "NULs": "b'\\0' * (20 << 20)",
}


@quick
def test_nonsense_on_the_channel(daemon, stopped_by):
    """Each execution fails with its cause, at once; the session has another kernel; the daemon is neither large nor late."""
    b = bare(CHANNEL + "".join(f"put({x})\n" for n, x in NONSENSE.items() if "<< 20" not in x))
    landed(b.exit == 0 and len(b.lines) > 12 and b.bytes > 500000, b)     # whatever it is, the pipe takes it
    session, wrong, epoch = unique(), [], 0
    with Watch(daemon, neighbour=True) as w:
        for name, expression in NONSENSE.items():
            r = daemon.execute(CHANNEL + f"put({expression})\n" + ("time.sleep(8)" if name != "half a line" else "print(1)"),
                               session_id=session, timeout=10)
            if r.kind != "protocol" or r["state"] != "reset" or r["execution_time"] > at_most(5) or r["epoch"] <= epoch:
                wrong.append((name, r))
            epoch = r["epoch"]
            check_protocol(r)
    assert not wrong, "\n".join(map(str, wrong))
    w.check()
    r = daemon.execute("print('on')", session_id=session)
    assert r.stdout == b"on\n" and r["state"] == "kept", r
    stopped_by("a strict parser with limits")


@quick
def test_gigabyte_line_on_the_channel(daemon, stopped_by):
    code = CHANNEL + "block = b'x' * (1 << 20)\nfor _ in range(1024): put(block)"
    landed(Bare(code).bytes >= 40 * MIB, "bytes on the channel")
    with Watch(daemon, neighbour=True) as w:
        r = daemon.execute(code, timeout=20)
    check_protocol(r)
    w.check()
    stopped_by("16 MiB per line")


@slow
def test_half_a_line_and_then_nothing(daemon, stopped_by):
    """A line that never ends, in drops: the deadline ends it; and half a line before an exit changes no exit status."""
    code = CHANNEL + "put(b'{\"type\":')\n"
    landed(bare(code + "os._exit(7)").lines == [b'{"type":'], "half a line")
    r = daemon.execute(code + "for c in b'\"execution_done\",\"id\":\"': put(bytes([c])); time.sleep(0.05)\ntime.sleep(60)", timeout=1)
    assert r.status == "timeout" and not r["success"], r
    r = daemon.execute(code + "os._exit(7)")
    assert r["exit_code"] == 7 and not r["success"], r
    stopped_by("deadline")


# Lines within 16 MiB that are expensive to parse.
DEAR = {
    "objects": "b'{\"type\":\"display\",\"data\":[' + b'{},' * 5000000 + b'0]}\\n'",
    "arrays": "b'{\"type\":\"result\",\"data\":[' + b'[],' * 5000000 + b'0]}\\n'",
    "numbers": "b'{\"type\":\"x\",\"data\":[' + b'0.1,' * 4000000 + b'0]}\\n'",
    "keys": "b'{\"type\":\"x\",' + b','.join(b'\"%d\":0' % i for i in range(1400000)) + b'}\\n'",
    "traceback": "b'{\"type\":\"error\",\"name\":\"a\",\"value\":\"b\",\"traceback\":[' + b'\"\",' * 5000000 + b'\"\"]}\\n'",
}


@pytest.mark.parametrize("name", some_quick(DEAR, "objects"))
def test_many_values_in_one_line(name, stopped_by):
    """The memory and the time of a line are bounded, not only its bytes. (A daemon of its own: it does not shrink again.)"""
    code = CHANNEL + f"put({DEAR[name]})\ntime.sleep(1)"
    landed(Bare(code.replace("sleep(1)", "sleep(0)"), seconds=8).bytes > 13 * MIB, "bytes on the channel")
    with Daemon("--pool", 8) as d:
        d.execute("1")
        with Watch(d, neighbour=True) as w:
            d.execute(code, timeout=20)
        w.check(ceiling=128 * MIB)
    stopped_by("a strict parser with limits")


ASK = "m = b'{\"type\":\"input_request\",\"id\":1}\\n' * 1000\nfor _ in range(%d): put(m)"  # answers are five times as long
HELD = {  # code, how it ends, bytes that it says
    "half a line": ("import threading\nthreading.Timer(0.2, put, (b'x' * (15 << 20),)).start()", None, 14 * MIB),
    "half a small line": ("import threading\nthreading.Timer(0.2, put, (b'x' * 1000000,)).start()", None, 900000),
    "answers": (ASK % 100, None, 3 << 20),
    "too many answers": (ASK % 200, "protocol", 6 << 20),
}


@slow
@pytest.mark.parametrize("name", list(HELD))
def test_idle_sessions_leave_nothing_with_the_daemon(daemon, name, stopped_by):
    """Half a message of a kernel, or one that it does not read, when its execution is over: some kilobytes per session, not megabytes. A kernel that
    leaves more is ended, and its session has another one."""
    code, kind, said = HELD[name]
    small = name == "half a small line"
    landed(Bare(CHANNEL + code + "\ntime.sleep(0.5)").bytes > said, "bytes on the channel")
    before, sessions = daemon.rss(), [unique() for _ in range(8)]
    for s in sessions:
        r = daemon.execute(CHANNEL + code, session_id=s, timeout=20)
        assert r.kind == kind and r.status == ("error" if kind else "ok"), r
    time.sleep(2.5)
    grown = daemon.rss() - before
    assert grown < (4 if small else 32) * MIB, f"eight idle sessions hold {grown >> 20} MiB of the daemon's memory"
    for s in sessions:
        r = daemon.execute("6 * 7", session_id=s)
        # A kernel that was quick enough has read its answers, and holds nothing any more.
        assert r["result"] == {"text/plain": "42"} and (r["epoch"] >= 1 or name == "answers"), f"an idle kernel holds too much memory, and lives: {r}"
    stopped_by("a smaller bound between executions")


CONTROL_FLOODS = {  # lines that take the front's time, and what one of them is
    "displays": "line = b'{\"type\":\"display\",\"data\":{\"text/plain\":\"' + b'x' * (8 << 20) + b'\"}}\\n'",
    "clear_output": "line = b'{\"type\":\"clear_output\"}\\n' * 1000",
}


@pytest.mark.parametrize("name", some_quick(CONTROL_FLOODS, "displays"))
def test_a_flood_of_control_lines_slows_its_own_cell(name, stopped_by):
    """The front reads a cell that sends dear lines for a ninth of its time, after a burst: most of its time is left for others.
    Judged by processor time of the front, which a busy machine does not change. (A daemon of its own: it is idle otherwise.)"""
    code = CHANNEL + CONTROL_FLOODS[name] + "\nend = time.monotonic() + %s\nwhile time.monotonic() < end: put(line)"
    landed(Bare(code % 0.5).bytes > 100000, "bytes on the channel")
    with Daemon("--pool", 2) as d:
        d.execute("1")
        flood = Later(functools.partial(d.execute, code % 20, timeout=25))
        until(lambda: d.health()["sandboxes"]["busy"] == 1, 20, "the flood")
        until(lambda: d.cpu() > 1.0, 20, "work that the flood makes")
        time.sleep(6)       # the burst is over, and its last long line
        before, began = d.cpu(), time.monotonic()
        time.sleep(8)
        used, passed = d.cpu() - before, time.monotonic() - began
        landed(not flood.done(), "the flood goes on")
        assert used < passed / 2, f"{used:.1f} of {passed:.1f} s of the front's time for one cell"
        assert d.good() < at_most(3)
        flood.result()
    stopped_by("a share of the front's time for each cell")


@quick
def test_an_endless_traceback(daemon, stopped_by):
    """One line of 99,000 lines of a traceback is one event, and both ends are printed; the error itself is whole."""
    lines = "b','.join(b'\"line %d\"' % i for i in range(99000))"
    code = CHANNEL + f"put(b'{{\"type\":\"error\",\"name\":\"a\",\"value\":\"b\",\"traceback\":[' + {lines} + b']}}\\n')"
    landed(Bare(code).bytes > 900000, "bytes on the channel")
    with Events(daemon, code) as e:
        events = list(e)
    text = [json.loads(t)["data"] for kind, t, _ in events if kind == "stderr"]
    assert len(text) == 1, f"{len(text)} events"
    printed = text[0].splitlines()
    assert printed[0] == "line 0" and printed[-1] == "line 98999" and len(printed) == 401, printed[:3]
    assert printed[200] == "[... 98600 more lines ...]", printed[199:202]
    stopped_by("one event per error")
