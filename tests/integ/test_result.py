# SPDX-License-Identifier: Apache-2.0
"""test_result.py - The result object of --json, and the receipt."""
import base64
import concurrent.futures
import json
import os
import signal

import pytest

from integ_lib import needs_root, run, run_json, wait_running
from process import HANG, children, name_of, wait_until

FIELDS = {"status", "exit_code", "signal", "stdout", "stderr", "truncated", "cause", "limits_hit", "usage"}
USAGE = {"cpu_ns", "memory_peak", "wall_ns", "stdout_bytes", "stderr_bytes", "pids_peak"}
CAPS = {"inheritable", "permitted", "effective", "bounding", "ambient"}
NAMESPACES = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"}


# ---- the object ------------------------------------------------------------------------------------


def test_one_line_one_object_with_every_field():
    r = run("run", "--json", "import sys; print('out'); print('err', file=sys.stderr)")
    assert r.code == 0 and r.err == b"" and r.out.count(b"\n") == 1
    d = r.json
    assert set(d) == FIELDS and USAGE <= set(d["usage"])
    assert (d["status"], d["exit_code"], d["signal"], d["cause"], d["limits_hit"]) == ("ok", 0, None, None, [])
    assert (d["stdout"], d["stderr"], d["truncated"]) == ("out\n", "err\n", False)


def test_usage_is_true():
    d = run_json("run", "import os, time\n"
                 "x = bytearray(60 << 20)\n"
                 "t = time.process_time()\n"
                 "while time.process_time() - t < 0.3: pass\n"
                 "time.sleep(0.3)\n"
                 "main, (said, say), (end, _) = os.getpid(), os.pipe(), os.pipe()\n"
                 "pids = [os.fork() for i in range(2)]\n"
                 "os.write(1, b'o'*123); os.write(2, b'e'*45); os.write(say, b'x')\n"
                 "if os.getpid() != main: os.read(end, 1)  # all four are there until the last one has written\n"
                 "for i in range(4): os.read(said, 1)")
    u = d["usage"]
    assert d["status"] == "ok"
    assert 0.3e9 <= u["cpu_ns"] < 1e9 * HANG
    assert 0.6e9 <= u["wall_ns"] < 1e9 * HANG
    assert 60 << 20 <= u["memory_peak"] < 100 << 20
    assert u["pids_peak"] == 0 or 4 <= u["pids_peak"] <= 6
    assert (u["stdout_bytes"], u["stderr_bytes"]) == (4 * 123, 4 * 45)


def test_error_status_is_the_programs_own():
    d = run_json("run", "raise SystemExit(3)")
    assert (d["status"], d["exit_code"], d["signal"], d["cause"]) == ("error", 3, None, None)
    d = run_json("run", "1/0")
    assert (d["status"], d["exit_code"]) == ("error", 1) and "ZeroDivisionError" in d["stderr"]


def test_a_program_that_missed_the_network_gets_a_hint():
    """A fresh cell has none: the message says so, and how a sandbox gets some."""
    code = "import socket; socket.create_connection(('example.org', 80))"
    r = run("run", code)
    assert r.code == 1 and "gaierror" in r.err.decode(), r
    hint = r.lines()[-1].removeprefix("caisson: ")
    assert "reaches no host" in hint and "caisson create NAME --egress HOST" in hint, r
    d = run_json("run", code)
    assert (d["status"], d["cause"], d["hint"]) == ("error", None, hint) and len(hint) < 255
    d = run_json("run", "import subprocess, sys; subprocess.run([sys.executable, '-c', %r])" % code)
    assert (d["status"], d["hint"]) == ("ok", hint)
    assert "hint" not in run_json("run", "print('Temporary failure in name resolution')") and "hint" not in run_json("run", "1/0")


@pytest.mark.parametrize("name", ["SEGV", "KILL", "TERM"])
def test_signal_status(name):
    r = run("run", "--json", "import os, signal; os.kill(os.getpid(), signal.SIG%s)" % name)
    d = r.json
    assert r.code == 128 + signal.Signals["SIG" + name]
    assert (d["status"], d["signal"]) == ("signal", name)
    assert d["cause"]["kind"] == "signal" and d["cause"]["hint"]


def test_interrupted_from_outside(started):
    p = started("exec", "--json", "--", "sh", "-c", "echo early; exec sleep 60")
    _, init = wait_running(p)
    # A command that runs has not yet spoken: the shell has, once it has become sleep.
    assert wait_until(lambda: [name_of(c) for c in children(init)] == ["sleep"])
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=HANG)
    d = json.loads(out)
    assert p.returncode == 130 and d["status"] == "signal" and d["cause"]["kind"] == "interrupt"
    assert d["stdout"] == "early\n"  # earlier output is not lost


@pytest.mark.parametrize("args,exit_code,word", [
    (["exec", "--json", "--", "no-such-program"], 127, "no-such-program"),
    (["exec", "--json", "--", "/etc/passwd"], 126, "/etc/passwd"),
    (["run", "--json", "--workdir", "/nowhere", "print(1)"], 125, "--workdir"),
    (["run", "--json", "--memory", "lots", "print(1)"], 125, "--memory"),
    (["run", "--memory", "lots", "--json", "print(1)"], 125, "--memory"),
    (["run", "--json", "--nonsense", "print(1)"], 125, "--nonsense"),
    (["run", "--nonsense", "--json", "print(1)"], 125, "--nonsense"),
    (["run", "--json", "missing.py"], 125, "missing.py"),
    (["run", "--json"], 125, "nothing to run"),
    (["run", "--json", "--mount", "/no/such/path:/data", "print(1)"], 125, "/no/such/path"),
    (["run", "--tty", "--json", "print(1)"], 125, "--tty"),
    (["doctor", "--json", "--nonsense"], 125, "--nonsense"),
])
def test_failed_object(args, exit_code, word):
    """With --json the result is JSON, also when nothing ran, wherever --json stands."""
    r = run(*args)
    assert r.code == exit_code and r.out.count(b"\n") == 1, r
    d = r.json
    assert d["status"] == "failed" and word in d["error"]["message"], r
    assert d["error"]["code"].startswith("E") and r.err == b""


def test_failed_object_has_a_hint():
    d = run("run", "--json", "--memory", "lots", "print(1)").json
    assert isinstance(d["error"].get("hint"), str) and d["error"]["hint"], d


# ---- what of the streams it holds ----------------------------------------------------------------------


def test_capture_counts_characters_not_bytes():
    text = "äöü€𝄞äöü"
    d = run_json("run", "--capture", "5", "print('%s', end='')" % text)
    assert (d["stdout"], d["truncated"]) == (text[:5], True)
    assert d["usage"]["stdout_bytes"] == len(text.encode())
    d = run_json("run", "--capture", "8", "print('%s', end='')" % text)
    assert (d["stdout"], d["truncated"]) == (text, False)


def test_default_capture_is_ten_thousand_characters_of_each_stream():
    d = run_json("run", "import sys; print('€' * 10001, end=''); print('x' * 10000, end='', file=sys.stderr)")
    assert (d["stdout"], d["stderr"], d["truncated"]) == ("€" * 10000, "x" * 10000, True)


def test_truncated_is_for_either_stream():
    assert run_json("run", "--capture", "3", "print('abcd')")["truncated"] is True
    assert run_json("run", "--capture", "3", "import sys; print('abcd', file=sys.stderr)")["truncated"] is True
    assert run_json("run", "--capture", "5", "print('abcd')")["truncated"] is False
    d = run_json("run", "--capture", "0", "print('abcd')")
    assert (d["stdout"], d["truncated"]) == ("", True)


def test_bytes_that_are_not_text_come_as_base64():
    d = run_json("run", "import sys; sys.stdout.buffer.write(b'a\\xff\\x00b'); print('fine', file=sys.stderr)")
    assert base64.b64decode(d["stdout_base64"]) == b"a\xff\x00b" and "stderr_base64" not in d
    assert d["stdout"] == "a�\x00b" and d["truncated"] is False
    d = run_json("run", "import sys; sys.stderr.buffer.write(bytes(range(256)))")
    assert base64.b64decode(d["stderr_base64"]) == bytes(range(256)) and "stdout_base64" not in d


def test_a_character_cut_by_the_program_is_not_text():
    d = run_json("run", "import sys; sys.stdout.buffer.write('é'.encode()[:1])")
    assert base64.b64decode(d["stdout_base64"]) == b"\xc3"


def test_hostile_text_can_not_break_the_object():
    text = '"}],\\ \n\r\t\x00\x1b[31m\u2028 </script> {"status":"ok"}'
    d = run_json("run", "import sys; sys.stdout.write(%r); sys.exit(9)" % text)
    assert (d["status"], d["stdout"]) == ("error", text)


def test_a_lot_of_output_is_counted_and_not_kept():
    d = run_json("run", "import sys\nfor i in range(200): sys.stdout.write('x' * 100000)")
    assert (d["status"], len(d["stdout"]), d["truncated"]) == ("ok", 10000, True)
    assert d["usage"]["stdout_bytes"] == 20000000


def test_large_capture():
    data = os.urandom(1 << 20)
    r = run("exec", "--json", "--capture", "1048576", "--", "cat", input=data)
    assert base64.b64decode(r.json["stdout_base64"]) == data and r.json["truncated"] is False


# ---- the receipt -----------------------------------------------------------------------------------


def check_receipt(d, weakened=()):
    assert d["enforced"] is True and d["missing"] == [] and d["weakened"] == list(weakened)
    assert d["unreadable"] == []
    assert set(d["namespaces"]) == NAMESPACES
    for name, ns in d["namespaces"].items():
        assert ns["cell"] != ns["host"], name
        assert ns["host"] == os.stat("/proc/self/ns/" + name).st_ino
    commands = d["commands"]
    assert commands["threads"] >= 1 and set(commands["capabilities"]) == CAPS
    assert set(commands["capabilities"].values()) == {"0" * 16}
    assert commands["no_new_privs"] is True and d["init"]["no_new_privs"] is True


def test_receipt_in_the_object():
    d = run_json("run", "--receipt", "--memory", "100M", "--pids", "33", "--cpus", "0.25", "--files", "99", "print(1)")
    assert d["stdout"] == "1\n"  # it was stopped for the receipt, and went on
    r = d["receipt"]
    check_receipt(r)
    assert r["commands"]["seccomp"] == "filter" and r["init"]["seccomp"] == "filter" and r["seccomp_policy"]
    assert r["cgroup"] == {"memory": 100 << 20, "pids": 34, "cpu_milli": 250}
    assert any(line.split()[:4] == ["Max", "open", "files", "99"] for line in r["rlimits"])
    assert any(line.split()[:5] == ["Max", "core", "file", "size", "0"] for line in r["rlimits"])
    # Three pipes. It may have opened a file of its own by the time it was stopped.
    fds = dict(f.split(" ", 1) for f in r["descriptors"])
    assert {"0", "1", "2"} <= set(fds)
    for number, target in fds.items():
        assert target.startswith("pipe:[" if number in "012" else "/usr/"), r["descriptors"]
    where = {m.split()[4]: m for m in r["mounts"]}
    assert "/" in where and "/proc" in where and ("ro," in where["/usr"] + ",") and len(where) > 5


@needs_root
def test_receipt_shows_mounts_as_they_are(tmp_path):
    d = run_json("run", "--receipt", "--mount", "%s:/a:ro" % tmp_path, "--mount", "%s:/b:rw" % tmp_path, "print(1)")
    where = {m.split()[4]: m.split()[5].split(",") for m in d["receipt"]["mounts"]}
    assert where["/a"][0] == "ro" and where["/b"][0] == "rw"
    assert {"nosuid", "nodev"} <= set(where["/a"]) and {"nosuid", "nodev"} <= set(where["/b"])


def test_receipt_on_stderr():
    r = run("run", "--receipt", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(4)")
    assert (r.code, r.out) == (4, b"out\n")
    assert r.lines()[0] == "err"
    check_receipt(json.loads(r.lines()[-1]))


@pytest.mark.parametrize("layer", ["seccomp", "landlock", "cgroup"])
def test_a_layer_given_up_is_visible_everywhere(layer):
    r = run("exec", "--without", layer, "--", "true")
    assert r.code == 0
    assert len(r.lines()) == 1 and r.lines()[0].startswith("caisson: warning: ") and layer in r.lines()[0], r
    d = run_json("exec", "--without", layer, "--receipt", "--", "sleep", "0.1")["receipt"]
    check_receipt(d, weakened=[layer])
    if layer == "seccomp":
        assert d["commands"]["seccomp"] == "none" and d["seccomp_policy"] == ""
    if layer == "landlock":
        assert d["landlock"]["scoped"] is False
    if layer == "cgroup":
        assert d["cgroup"] is None
    doctor = run("doctor", "--json", "--without", layer).json
    cell = [c for c in doctor["checks"] if c["name"] == "cell"][0]
    assert cell["status"] == "weak" and doctor["receipt"]["weakened"] == [layer]


def test_layers_given_up_together():
    d = run_json("exec", "--without", "seccomp,landlock", "--receipt", "--", "sleep", "0.1")["receipt"]
    check_receipt(d, weakened=["seccomp", "landlock"])


def test_receipt_of_a_program_that_is_over_at_once():
    """The program may be gone before the look; the cell is not, and the answer is the same."""
    def one(_):
        return run("exec", "--json", "--receipt", "--", "true")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for r in pool.map(one, range(40)):
            assert r.code == 0 and r.json["status"] == "ok" and r.json["receipt"]["enforced"] is True, r
