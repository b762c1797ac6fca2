# SPDX-License-Identifier: Apache-2.0
"""test_run_output.py - Output, streams, and forged protocol messages."""
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from lib import (CAISSON, EXACT, TRACED, Running, at_most, cell, check_limit, check_wall, control, host_env, landed, payload,
                 session, start, stat_of)
from cell_lib import INIT_FILES, until

MIB = 1 << 20
RSS_MAX = 24 * MIB  # caisson and its warden together, whatever the guest writes
quick = pytest.mark.quick
slow = pytest.mark.slow


def watch_rss(run, step=0.02):
    most = 0
    while not run.wait(step):
        most = max(most, run.rss())
    assert most < RSS_MAX, f"caisson grew to {most >> 20} MiB"
    return most


def no_guests_left(deadline=1.0):
    """Only caisson itself may still run; the processes of the cell are gone."""
    end = time.monotonic() + (at_most(deadline) if deadline else 0)
    while True:
        left = {p: s[0] for p in session().guard.members() - {os.getpid()}
                if (s := stat_of(p)) and s[0] not in ("caisson", "caisson-warden")}
        if not left:
            return
        assert time.monotonic() < end, f"still running: {left}"
        time.sleep(0.01)


# ---- how much -------------------------------------------------------------------------

def yes():
    """The output of `yes` on the host, which is much."""
    return control(["/usr/bin/yes"], timeout=0.5, begun=lambda p, _: p.out_bytes > 20 * MIB).out_bytes


@quick
def test_output_flood_into_the_result(stopped_by):
    """`yes` for a second: counted, cut and flagged; caisson stays small."""
    landed(yes() > 20 * MIB, "yes")
    seconds = 1 if EXACT else 3
    run = start(argv=["/usr/bin/yes"], timeout=f"{seconds}s")
    watch_rss(run)
    r = run.finish()
    check_wall(r, seconds)
    assert r.usage["stdout_bytes"] > 10 * MIB, r
    assert r["truncated"] is True and r.stdout == b"y\n" * 5000, r
    stopped_by("bounded capture; the pipe slows the writer")


@quick
def test_output_is_counted_to_the_byte(stopped_by):
    """Output that was not kept is still counted, to the byte."""
    n = 40 * MIB + 12345
    c = control(["/usr/bin/head", "-c", str(n), "/dev/zero"])
    landed(c.out_bytes == n, c)
    r = cell(argv=["/usr/bin/head", "-c", str(n), "/dev/zero"], timeout=20)
    assert r.status == "ok" and r.usage["stdout_bytes"] == n and r["truncated"] is True, r
    r = cell(lang="bash", code=f"head -c {MIB + 7} /dev/zero >&2; head -c 11 /dev/zero", timeout=20)
    assert (r.usage["stdout_bytes"], r.usage["stderr_bytes"]) == (11, MIB + 7) and r["truncated"], r
    stopped_by("bounded capture")


@quick
@pytest.mark.parametrize("n,cut", [(9999, False), (10000, False), (10001, True)])
def test_output_is_truncated_exactly(n, cut, stopped_by):
    landed(control(["/usr/bin/python3", "-c", f"print('é' * {n}, end='')"]).out_bytes == 2 * n, n)
    r = cell(code=f"print('é' * {n}, end='')")
    assert r["truncated"] is cut and r["stdout"] == "é" * min(n, 10000), r
    stopped_by("bounded capture, in characters")


@quick
def test_output_limit(stopped_by):
    """--max-output ends the cell soon after the limit, in both modes, and the result reports it."""
    landed(yes() > 20 * MIB, "yes")
    r = cell(argv=["/usr/bin/yes"], max_output="1M", timeout=10)
    hint = check_limit(r, "limit", "output", 137, limit=MIB, peak=(MIB, 2 * MIB))
    assert "--max-output" in hint and r.usage["wall_ns"] < 1e9 * at_most(5), r
    r = cell(argv=["/usr/bin/yes"], max_output="1M", timeout=10, json_result=False)
    assert r.exit == 137 and MIB <= r.out_bytes <= 2 * MIB, r
    assert r.stderr.startswith(b"caisson: more than 1 MiB of output") and r.stderr.count(b"\n") == 1, r
    r = cell(lang="bash", code="yes >&2", max_output="64K", timeout=10)
    check_limit(r, "limit", "output", 137, limit=65536)
    stopped_by("output limit of the client; SIGKILL")


@quick
def test_output_flood_to_a_slow_reader(stopped_by):
    """Nobody reads: the writer waits, caisson does not grow, and the deadline still holds."""
    landed(yes() > 20 * MIB, "yes")
    out, theirs = os.pipe()
    p = subprocess.Popen([CAISSON, "run", "--lang", "bash", "--timeout", "1s", "yes"], stdin=subprocess.DEVNULL,
                         stdout=theirs, stderr=subprocess.PIPE, env=host_env())
    os.close(theirs)
    try:
        most = 0
        end = time.monotonic() + 1.6
        while time.monotonic() < end:
            most = max(most, int(Path(f"/proc/{p.pid}/statm").read_text().split()[1]) * 4096)
            time.sleep(0.02)
        assert most < RSS_MAX, f"caisson grew to {most >> 20} MiB"
        no_guests_left()       # the cell ended in time, although its output could not
        got = 0
        while data := os.read(out, 65536):
            got += len(data)
        assert p.wait(at_most(5)) == 124, p.returncode
        assert p.stderr.read().startswith(b"caisson: still running after 1 s")
        assert got < 4 * MIB
    finally:
        p.kill()
        p.wait()
        p.stderr.close()
        os.close(out)
    stopped_by("back-pressure; wall clock")


@quick
def test_both_streams_into_one_full_pipe(stopped_by):
    """2>&1 into a pipe without a reader: room for one of the two writers must not hold up the clock."""
    code = ("import os, time\ntime.sleep(0.5)\n"
            "os.write(1, b'o' * 65536); os.write(2, b'e' * 65536)\ntime.sleep(60)")
    c = control(["/usr/bin/python3", "-c", code], timeout=0.5, begun=lambda p, _: p.out_bytes == 65536)
    landed(c.timed_out and c.out_bytes == 65536, c)
    out, theirs = os.pipe()
    os.write(theirs, b"x")     # an odd number of free pages, so the last one is wanted twice
    p = subprocess.Popen([CAISSON, "run", "--timeout", "1200ms", "--code", code], stdin=subprocess.DEVNULL,
                         stdout=theirs, stderr=theirs, env=host_env())
    os.close(theirs)
    try:
        time.sleep(0.3)
        p.send_signal(signal.SIGSTOP)      # both streams are full when it looks again
        time.sleep(0.4)
        p.send_signal(signal.SIGCONT)
        time.sleep(0.8)
        no_guests_left(1.0)
    finally:
        while os.read(out, 65536):
            pass
        os.close(out)
        code = p.wait(at_most(10))
    assert code == 124, code
    stopped_by("wall clock")


@quick
def test_reader_goes_away(stopped_by):
    """caisson | head: the program gets SIGPIPE as it would without us, nothing is left."""
    c = control(["/bin/bash", "-c", "yes | head -c 10 >/dev/null; echo ${PIPESTATUS[0]}"])
    landed(c.stdout == b"141\n", c)
    line = f"{CAISSON} exec --timeout 60s -- /usr/bin/yes | head -c 10 | wc -c; exit ${{PIPESTATUS[0]}}"
    t = time.monotonic()
    p = subprocess.run(["/bin/bash", "-c", line], stdin=subprocess.DEVNULL, capture_output=True,
                       env=host_env(), timeout=100, check=False)
    assert p.stdout == b"10\n" and p.returncode == 141, p
    assert time.monotonic() - t < at_most(3)
    stopped_by("SIGPIPE in the cell")


@quick
@pytest.mark.parametrize("json_result", [True, False])
def test_callers_disk_is_full(json_result, stopped_by):
    """The caller's disk is full: not a silent success."""
    landed(control(["/bin/sh", "-c", "echo x > /dev/full"]).exit != 0, "/dev/full")
    line = [CAISSON, "run", *(["--json"] if json_result else []), "--lang", "bash", "echo 1; sleep 0.2; echo 2"]
    with open("/dev/full", "wb") as full:
        p = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, env=host_env(),
                           timeout=20, check=False)
    assert p.returncode != 0, p
    if json_result:
        assert p.returncode == 125 and p.stderr.startswith(b"caisson: ") and p.stderr.count(b"\n") == 1, \
            f"exit code 125 requires one line with the reason: {p}"
    stopped_by("nothing to stop")


@quick
def test_output_without_newline(stopped_by):
    """Bytes arrive as they are written, without a newline, and the clock runs on."""
    code = "import os, time\nwhile True:\n    os.write(1, b'.')\n    time.sleep(0.1)"
    c = control(["/usr/bin/python3", "-c", code], timeout=0.8 if EXACT else 1.5)
    landed(c.timed_out and 0 < c.out_bytes < 20, c)
    times = []
    seconds = 1.2 if EXACT else 3
    run = start(code=code, timeout=f"{seconds}s", json_result=False, on_output=lambda d: times.append(time.monotonic()))
    r = run.finish()
    assert r.exit == 124 and set(r.stdout) == {ord(".")} and 5 <= len(r.stdout) <= seconds * 10 + 1, r
    assert times[0] - run.started < (1.0 if EXACT else seconds), "the first byte came late"
    assert len(times) >= 4, "bytes were held back and came together"
    stopped_by("wall clock")


@quick
def test_endless_line(stopped_by):
    """One line of 30 MiB: passed through whole, nothing grows."""
    line = "tr '\\0' z < /dev/zero | head -c 30M"
    c = control(["/bin/bash", "-c", line])
    landed(c.out_bytes == 30 * MIB, c)
    run = start(lang="bash", code=line, json_result=False, keep=1000, timeout=20)
    watch_rss(run)
    r = run.finish()
    assert r.exit == 0 and r.out_bytes == 30 * MIB, r
    stopped_by("nothing to stop: bytes, not lines")


# ---- which bytes ---------------------------------------------------------------------------

EVERY_BYTE = bytes(range(256)) * 3 + bytes(reversed(range(256)))
STRANGE = {
    "every byte": EVERY_BYTE,
    "lone surrogate": b"a\xed\xa0\x80b\xed\xbf\xbf",
    "overlong": b"\xc0\x80 \xe0\x80\xaf \xf0\x80\x80\xaf",
    "cut short": b"abc\xf0\x9f\x98",
    "beyond unicode": b"\xf4\x90\x80\x80 \xf8\x88\x80\x80\x80",
    "nul": b"a\0b\0\0",
    "bom": b"\xef\xbb\xbfhello",
    "escapes": b"\x1b[2J\x1b]0;title\x07\x1bP1$r\x1b\\\x9b31m\r\x08\x7f",
    "text": "ä€😀\u2028\u2029\ufffe\u0085".encode(),
    "json": b'"}],\\u0000\\","exit_code":0}\n',
}


@quick
@pytest.mark.parametrize("name", list(STRANGE))
def test_every_byte_passes(name, stopped_by):
    """Every byte comes out as it went in, in both modes; the result object is valid JSON and plain."""
    data = STRANGE[name]
    code = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d); sys.stderr.buffer.write(d[::-1])"
    c = control(["/usr/bin/python3", "-c", code], stdin=data)
    landed(c.stdout == data and c.stderr == data[::-1], c)
    r = cell(code=code, stdin=data, json_result=False)
    assert (r.exit, r.stdout, r.stderr) == (0, data, data[::-1]), r
    r = cell(code=code, stdin=data)
    assert r.status == "ok" and r.stdout == data and r.stderr == data[::-1], r
    assert not r["truncated"] and r.usage["stdout_bytes"] == len(data), r
    try:
        data.decode("utf-8")
        assert "stdout_base64" not in r.json and r["stdout"] == data.decode(), r
    except UnicodeDecodeError:
        assert "stdout_base64" in r.json, r
        r["stdout"].encode("utf-8")   # still text, with replacements
    raw = r.raw_out.rstrip(b"\n")
    assert not any(b < 0x20 for b in raw), "a control character is in the result object"
    stopped_by("nothing to stop: output is data")


@quick
def test_character_split_across_writes(stopped_by):
    """A character that arrives in pieces is one character; a cut never leaves half of one."""
    code = ("import os, time\n"
            "for b in '😀é€'.encode():\n"
            "    os.write(1, bytes([b])); time.sleep(0.03)\n")
    landed(control(["/usr/bin/python3", "-c", code]).stdout == "😀é€".encode(), code)
    r = cell(code=code)
    assert r["stdout"] == "😀é€" and "stdout_base64" not in r.json, r
    r = cell(code="print('😀' * 50, end='')", capture=7)
    assert r["stdout"] == "😀" * 7 and r["truncated"] is True, r
    stopped_by("nothing to stop: output is data")


@quick
def test_random_megabytes_both_ways(stopped_by):
    """cat: stdin to stdout, binary, 4 MiB of noise."""
    data = os.urandom(4 * MIB)
    landed(control(["/bin/cat"], stdin=data, keep=8 * MIB).stdout == data, "cat")
    r = cell(argv=["/bin/cat"], stdin=data, json_result=False, timeout=20)
    assert r.exit == 0 and hashlib.sha256(r.stdout).digest() == hashlib.sha256(data).digest()
    r = cell(argv=["/bin/cat"], stdin=data, capture=8 * MIB, timeout=20)
    assert r.stdout == data and r["truncated"] is False
    stopped_by("nothing to stop: output is data")


@quick
def test_error_lines_are_plain(stopped_by):
    """A message of caisson itself is one line without control characters, whatever the names hold."""
    odd = "\x1b[31mno\nsuch\x07program"
    c = control(["/bin/sh", "-c", "printf '%s' \"$1\"", "x", odd])
    landed(c.stdout == odd.encode(), c)
    r = cell(argv=[odd], json_result=False)
    assert r.exit == 127 and r.stderr.startswith(b"caisson: "), r
    assert r.stderr.count(b"\n") == 1 and not any(b < 0x20 for b in r.stderr.rstrip(b"\n")), \
        f"control characters in an error message: {r.stderr!r}"
    r = cell(argv=[odd])
    assert r.exit == 127 and r.status == "failed" and r["error"]["message"], r
    stopped_by("nothing to stop")


# ---- streams that end early or late ---------------------------------------------------

@quick
@pytest.mark.parametrize("json_result", [True, False])
def test_closes_its_streams(json_result, stopped_by):
    code = "echo before; exec 0<&- 1>&- 2>&-; sleep 0.4; exit 5"
    c = control(["/bin/bash", "-c", code])
    landed(c.exit == 5 and c.stdout == b"before\n" and c.seconds >= 0.4, c)
    r = cell(lang="bash", code=code, json_result=json_result, stdin=b"x" * 100000)
    assert r.exit == 5 and r.stdout == b"before\n" and r.seconds >= 0.4, r
    stopped_by("nothing to stop: the end comes from wait()")


@quick
def test_later_writers_on_a_closed_stream(stopped_by):
    """One process closes stdout; another process of the cell still has it, and its output arrives."""
    code = "(sleep 0.3; echo later) & exec 1>&-; wait; exit 6"
    landed(control(["/bin/bash", "-c", code]).stdout == b"later\n", code)
    r = cell(lang="bash", code=code)
    assert r.exit == 6 and r.stdout == b"later\n", r
    stopped_by("nothing to stop")


@quick
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_caller_without_streams(closed, stopped_by):
    """caisson started with closed streams: no guest byte lands on a descriptor of caisson's own."""
    code = "import os, sys\nfor i in range(200):\n    os.write(1, b'o' * 500); os.write(2, b'e' * 500)\nsys.exit(9)"
    landed(control(["/usr/bin/python3", "-c", code]).exit == 9, code)
    p = subprocess.run(["/bin/bash", "-c", f'exec "$@" {closed}', "x", CAISSON, "run", "--code", code],
                       stdin=subprocess.DEVNULL, capture_output=True, env=host_env(), timeout=20, check=False)
    assert p.returncode == 9, p
    assert p.stdout == (b"" if "1>" in closed else b"o" * 100000), p.stdout[:100]
    assert p.stderr == (b"" if "2>" in closed else b"e" * 100000), p.stderr[:100]
    stopped_by("closed streams become /dev/null")


HOLDER = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
print('done', flush=True)
sys.exit(3)
"""


@quick
@pytest.mark.parametrize("json_result", [True, False])
def test_orphan_holds_the_pipe(json_result, stopped_by):
    """The result is there when the main program ends; the orphan is not."""
    line = '{ /usr/bin/python3 -c "$1"; echo $? >&2; } | cat'
    c = control(["/bin/bash", "-c", line, "x", HOLDER], timeout=0.8, begun=lambda p, _: p.out == b"done\n" and b"3" in p.err)
    landed(c.timed_out and c.stdout == b"done\n" and b"3" in c.stderr, c)   # cat is held by the orphan
    r = cell(code=HOLDER, json_result=json_result, timeout=20)
    assert r.exit == 3 and r.stdout == b"done\n", r
    assert r.seconds < at_most(2), f"held by the orphan: {r}"
    no_guests_left(0)
    stopped_by("the cell is destroyed before the pipes are drained")


@quick
def test_last_output_of_orphans(stopped_by):
    """Output of orphans from before the end of the main program is not lost."""
    code = "import os, time\nr, w = os.pipe()\nif os.fork() == 0:\n    os.write(1, b'c' * 60000); os.write(w, b'x'); time.sleep(60)\nos.read(r, 1)\nos._exit(0)"
    c = control(["/usr/bin/python3", "-c", code], timeout=1, begun=lambda p, _: p.out_bytes == 60000)
    landed(c.stdout == b"c" * 60000, c)
    r = cell(code=code, json_result=False)
    assert r.exit == 0 and r.stdout == b"c" * 60000, r.out_bytes
    stopped_by("pipes are drained to their end")


# ---- forgeries and the process of ours in the cell -------------------------------

@quick
@pytest.mark.parametrize("json_result", [True, False])
def test_forged_protocol(json_result, stopped_by):
    """Whatever is written on whichever descriptor, exit code 7 is exit code 7."""
    c = control(["/bin/bash", "-c", 'exec 9>f; "$1"; code=$?; exec 9>&-; cat f; exit $code', "x",
                 str(payload("forge"))])
    landed(c.exit == 7 and c.stdout.count(b"execution_done") >= 2 and b"took 0 " not in c.stdout, c)
    r = cell(payload="forge", json_result=json_result)
    assert r.exit == 7, f"a forgery was believed: {r}"
    assert b"execution_done" in r.stdout and b'"forged"' in r.stdout, r
    assert r.stdout.endswith(b"\ntook 0 through 0\n"), f"a descriptor took the forgery: {r}"
    if json_result:
        assert r.status == "error" and r["exit_code"] == 7 and r.kind is None, r
        assert r.usage["cpu_ns"] > 0
        names = [k for k, _ in json.loads(r.raw_out, object_pairs_hook=list)]
        assert len(names) == len(set(names)), f"duplicate members: {names}"
    stopped_by("close-on-exec for everything above 2; /proc/1 of a non-dumpable other user")


@quick
def test_only_three_descriptors(stopped_by):
    """As the host sees it: the guest's descriptor table has 0, 1, 2 and nothing else."""
    c = control(["/bin/bash", "-c", "exec 7</dev/null; ls /proc/self/fd"])
    landed(b"7\n" in c.stdout, c)
    inherited = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        run = start(code="import time; time.sleep(20)", popen={"pass_fds": [inherited]})
        landed(os.path.exists(f"/proc/{run.pid}/fd/{inherited}"), "caisson did not inherit it")
        guests = run.until_running()
        # An interpreter that starts has files of its own open for a while; inherited ones stay.
        for pid in guests:
            until(lambda pid=pid: sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"], 1, f"three: {os.listdir(f'/proc/{pid}/fd')}")
        # Init: /dev/null, the channel, its signals, and the files of the cell's machine; nothing of the host's.
        links = {}
        for fd in os.listdir(f"/proc/{run.init_pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # init closed it meanwhile
                links[fd] = os.readlink(f"/proc/{run.init_pid}/fd/{fd}")
        assert len(links) >= 4, links
        assert not [x for x in links.values() if x.startswith("/") and not INIT_FILES.fullmatch(x)], links
        run.signal(signal.SIGTERM)
        run.finish()
    finally:
        os.close(inherited)
    stopped_by("close_range before execve")


# The permitted results of an attempt on pid 1. Anything else, OK above all, is a failure.
REFUSED = {"EPERM", "EACCES", "ENOSYS", "ESRCH", "ENOENT", "EBADF"}
HARMLESS = {"maps", "ns", "stack", "syscall"}  # opening some files succeeds and reading then fails


@pytest.mark.parametrize("without", [
    pytest.param(None, marks=quick), pytest.param("seccomp", marks=slow),
    pytest.param("landlock", marks=slow), pytest.param("seccomp,landlock", marks=quick)])
def test_init_is_out_of_reach(without, stopped_by):
    """Init cannot be killed, read, written, traced, starved or replaced; also with a layer less."""
    line = 'sleep 60 & p=$!; "$1" $p; code=$?; sleep 0.1; kill -0 $p 2>/dev/null && echo alive; exit $code'
    c = control(["/bin/bash", "-c", line, "x", str(payload("attack_init"))])
    lines = dict(x.split() for x in c.stdout.decode().splitlines() if " " in x)
    landed(c.exit == 7 and b"alive" not in c.stdout and
           all(lines[k] == "OK" for k in ("kill", "mem-write", "vm-read", "seize", "getfd", "prlimit")), c)

    image = (CAISSON.parent / "caisson-init").read_bytes()
    r = cell(["1"], payload="attack_init", without=without, timeout=10)
    got = dict(x.split() for x in r.text.splitlines())
    open_doors = {k: v for k, v in got.items() if v not in REFUSED and k not in HARMLESS}
    assert not open_doors, f"pid 1 can be reached: {open_doors}"
    assert r.exit == 7 and r.status == "error", f"the run was disturbed: {r}"
    assert (CAISSON.parent / "caisson-init").read_bytes() == image, "WRITE: caisson-init was changed"
    stopped_by("init: other user, non-dumpable, pid 1", second="seccomp")


@quick
def test_kill_everything_but_init(stopped_by):
    """kill(-1): all processes of the guest die; init and processes outside live."""
    code = "import os, signal, subprocess\nsubprocess.Popen(['sleep', '60'])\nos.kill(-1, signal.SIGKILL)\nos._exit(7)"
    c = control(["/usr/bin/python3", "-c", code], timeout=30)
    landed(not c.timed_out, c)
    r = cell(code=code)
    # kill(-1) spares the caller itself
    assert r.exit == 7, r
    stopped_by("pid namespace")


# The acts of a taken-over pid 1, and after how many seconds of a run with a limit of one it must be over.
# If it never reports that the command began, the warden's own clock ends it, 30 s later.
FAKE = [
    pytest.param("a", 35, id="silent", marks=slow),
    pytest.param("b", 3, id="close", marks=quick),
    pytest.param("c", 3, id="short", marks=quick),
    pytest.param("d", 3, id="long", marks=quick),
    pytest.param("e", 35, id="types", marks=slow),
    pytest.param("f", 35, id="descriptors", marks=slow),
    pytest.param("g", 3, id="restart", marks=slow),
    pytest.param("h", 3, id="absurd", marks=quick),
    pytest.param("i", 3, id="failed", marks=quick),
    pytest.param("j", 35, id="welcome", marks=slow),
    pytest.param("k", 3, id="gifts", marks=quick),
]


def with_other_init(letter):
    """A directory with caisson, its warden, and the payload as init."""
    home = session().dir / f"fake-{letter}"
    home.mkdir()
    for name in ("caisson", "caisson-warden"):
        shutil.copy2(CAISSON.parent / name, home / name)
    (home / "caisson-init").write_bytes(payload("fake_init").read_bytes() + letter.encode())
    (home / "caisson-init").chmod(0o755)
    return home


@pytest.mark.parametrize("act,seconds", FAKE)
def test_init_taken_over(act, seconds, stopped_by):
    """A pid 1 that talks nonsense gets its own run failed: in time, in bounded memory, nothing left."""
    home = with_other_init(act)
    run = Running([home / "caisson", "run", "--json", "--timeout", "1s", "print(1)"], True)
    most, descriptors = 0, 0
    try:
        while not run.wait(0.02):
            most = max(most, run.rss())
            try:
                descriptors = max(descriptors, len(os.listdir(f"/proc/{run.pid}/fd")))
            except OSError:
                pass
            assert run.seconds < seconds, f"caisson still waits for its pid 1 after {seconds} s"
        r = run.finish()
        print(r)
        assert most < RSS_MAX and descriptors < 40, f"{most >> 20} MiB, {descriptors} descriptors"
        assert r.usage["stdout_bytes"] == 0 if "usage" in r.json else True, r
        if act == "h":
            # It may lie about how its own command ended; it cannot change the counters of the Linux kernel.
            assert r.usage["cpu_ns"] < 60e9 and r.usage["memory_peak"] < 1 << 30, r
        else:
            assert r.exit != 0 and r.status in ("failed", "timeout"), f"believed: {r}"
    finally:
        if not run.wait(0):
            run.signal(signal.SIGKILL)
            run.wait(5)
            cell(code="")  # the next start sweeps
        shutil.rmtree(home)
    stopped_by("fixed-size messages, checked; deadlines; truth from the kernel")


# ----  ------------------------------------------------------------------------------

def cpu_of(pid):
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@quick
@pytest.mark.parametrize("mode,size", [("nonblock", MIB), ("splice", MIB), ("tiny", 262144)])
def test_pipe_games(mode, size, stopped_by):
    c = control([payload("write_output"), mode])
    landed(c.exit == 0 and c.out_bytes == size, c)
    run = start([mode], payload="write_output", json_result=False, timeout=10, stdin_open=True)
    spent = 0.0
    while not run.wait(0.02):
        try:
            spent = cpu_of(run.pid)
        except OSError:
            pass
    r = run.finish()
    assert r.exit == 0 and r.out_bytes == size and set(r.stdout) == {ord("y")}, r
    assert spent < 0.5, f"caisson spun: {spent:.2f} s of processor time"
    stopped_by("nothing to stop: caisson's ends are its own")


@slow
def test_idle_cell_costs_nothing(stopped_by):
    """Half-closed streams cause no busy loop."""
    code = "exec 1>&-; exec 0<&-; sleep 1.2"
    landed(control(["/bin/bash", "-c", code]).exit == 0, code)
    run = start(lang="bash", code=code, timeout=10, stdin_open=True, json_result=False)
    warden, spent, wspent = 0, 0.0, 0.0
    while not run.wait(0.02):
        warden = warden or run.warden_pid
        try:
            spent, wspent = cpu_of(run.pid), cpu_of(warden)
        except OSError:
            pass
    assert run.finish().exit == 0
    assert spent < 0.2 and wspent < 0.2, f"caisson {spent:.2f} s, warden {wspent:.2f} s"
    stopped_by("nothing to stop")


@quick
def test_pages_lent_to_the_pipe(stopped_by):
    """vmsplice with later changes: refused; and where it is allowed, bytes that were read do not change."""
    c = cell(["vmsplice"], payload="write_output", without="seccomp")
    landed(c.exit == 0 and c.usage["stdout_bytes"] == 4096, c)
    r = cell(["vmsplice"], payload="write_output")
    assert r.exit == 38 and r.usage["stdout_bytes"] == 0, r   # ENOSYS
    stopped_by("seccomp")


@quick
@pytest.mark.parametrize("code", ["sleep 0.4", "exec 0<&-; sleep 0.4", "head -c 10 >/dev/null; sleep 0.2"])
def test_unread_stdin(code, stopped_by):
    """50 MiB for a program that does not want them: no deadlock, no growth, the right end."""
    data = b"i" * (50 * MIB)
    c = control(["/bin/bash", "-c", code], stdin=data)
    landed(c.exit == 0, c)
    run = start(lang="bash", code=code + "; exit 4", stdin=data, timeout=10)
    watch_rss(run)
    r = run.finish()
    assert r.exit == 4 and r.seconds < at_most(5), r
    stopped_by("back-pressure")


@slow
def test_stdin_shared_with_another_reader(stopped_by):
    """Somebody else takes the byte between poll() and read(): caisson must not wait for the next one."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed; it is what makes the race certain")
    code = "import time; time.sleep(60)"
    landed(control(["/usr/bin/python3", "-c", code], timeout=0.5).timed_out, code)
    theirs, ours = os.pipe()
    line = ["strace", "-o", "/dev/null", "-e", "trace=poll", "-e", "inject=poll:delay_exit=300000",
            CAISSON, "run", "--timeout", "2s", "--code", code]
    p = subprocess.Popen(line, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         env=host_env(ASAN_OPTIONS=TRACED))
    try:
        time.sleep(1.2)
        os.write(ours, b"x")
        time.sleep(0.1)
        os.set_blocking(theirs, False)
        assert os.read(theirs, 1) == b"x", "caisson was faster"
        os.set_blocking(theirs, True)
        try:
            code = p.wait(6)
        except subprocess.TimeoutExpired:
            code = None
    finally:
        os.close(ours)      # end of file frees the process that still reads
        os.close(theirs)
        p.wait(10)
    assert code == 124, "the wall clock does not hold while caisson waits in read()"
    stopped_by("wall clock")


@quick
def test_both_directions_full(stopped_by):
    """Writes a lot before it reads a lot, and the other way round: no deadlock."""
    code = ("import sys\nsys.stdout.buffer.write(b'o' * (8 << 20)); sys.stdout.flush()\n"
            "n = len(sys.stdin.buffer.read())\nsys.stderr.write(str(n))")
    data = b"i" * (8 * MIB)
    c = control(["/usr/bin/python3", "-c", code], stdin=data)
    landed(c.exit == 0 and c.out_bytes == 8 * MIB, c)
    run = start(code=code, stdin=data, json_result=False, timeout=20)
    watch_rss(run)
    r = run.finish()
    assert r.exit == 0 and r.out_bytes == 8 * MIB and r.stderr == str(8 * MIB).encode(), r
    stopped_by("nothing to stop")


def rapid(count):
    """@count runs of a program that is over at once; every byte of each must be there."""
    env = host_env()
    payload("write_output")
    line = [str(CAISSON), "exec", "--mount", f"{session().payloads}:/payload", "--",
            "/payload/write_output", "burst", "60000"]
    want = b"y" * 60000
    bad = []
    for i in range(count):
        p = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=20,
                           check=False)
        if (p.returncode, p.stdout, p.stderr) != (0, want, b""):
            bad.append((i, p.returncode, len(p.stdout), p.stderr[:200]))
    return bad


def num_cgroups():
    return {w[0]: int(w[2]) for w in (x.split() for x in Path("/proc/cgroups").read_text().splitlines()[1:])}


@pytest.mark.parametrize("count", [pytest.param(60, marks=quick), pytest.param(1000, marks=slow)])
def test_rapid_runs(count, stopped_by):
    """No lost output, no stuck run, nothing that adds up."""
    c = control([payload("write_output"), "burst", "60000"])
    landed(c.out_bytes == 60000, c)
    rapid(5)
    before, slab = num_cgroups(), session().guard.memory_now() - session().guard.memory_cache()
    t = time.monotonic()
    bad = rapid(count)
    took = time.monotonic() - t
    assert not bad, f"{len(bad)} of {count}: {bad[:3]}"
    print(f"{count} runs, {took / count * 1000:.1f} ms each")
    end = time.monotonic() + at_most(10)
    while True:
        now = num_cgroups()
        grown = {c: now[c] - n for c, n in before.items() if now[c] - n > max(20, count // 10)}
        if not grown or time.monotonic() > end:
            break
        time.sleep(0.2)
    assert not grown, f"cgroups are left in the kernel after {count} runs: {grown}"
    held = session().guard.memory_now() - session().guard.memory_cache() - slab
    assert held < 32 * MIB + count * 4096, f"{held >> 20} MiB are still charged after {count} runs"
    stopped_by("nothing to stop: no leak")


@quick
def test_many_short_writers(stopped_by):
    """300 processes that each write a line and are gone."""
    landed(control([payload("write_output"), "lines", "300"]).stdout == b"x\n" * 300, "lines")
    r = cell(["lines", "300"], payload="write_output")
    assert r.status == "ok" and r.stdout == b"x\n" * 300, r
    stopped_by("nothing to stop")
