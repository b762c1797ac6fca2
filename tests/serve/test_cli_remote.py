# SPDX-License-Identifier: Apache-2.0
"""test_cli_remote.py - The command as a client: sandboxes of a daemon, over TCP.

The real programs on both sides, judged by bytes, exit codes and lines of output.
"""
import hashlib
import json
import os
import re
import signal
import stat
import subprocess

import pytest

from cli_lib import ALL_BYTES, Cli, one_line
from integ_lib import clean_env, end_process
from process import BIN, HANG, SLOW, unique, wait_until


@pytest.fixture
def cli(daemon):
    return Cli(CAISSON_URL="http://127.0.0.1:%d" % daemon.port)


@pytest.fixture
def box(cli):
    name = unique("cli")
    cli.ok("create", name)
    yield name
    cli("rm", "-f", name)


# ---- life -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--env", "--label", "--egress", "--secret"])
def test_what_is_no_text_is_refused(cli, option):
    """JSON cannot represent the value. Before, it was left out, and the sandbox was made without it."""
    name = unique("bytes")
    r = cli("create", name, option, b"A=a\xffb")
    one_line(r, option, "UTF-8")
    assert r.code == 125
    assert not [s for s in cli.ok("ps", "-a", "--json").json["sandboxes"] if s["name"] == name]


def test_create_list_remove(cli):
    a, b = unique("a"), unique("b")
    try:
        r = cli.ok("create", a, "--memory", "256M", "--cpus", "0.5", "--pids", "50", "--disk", "64M", "--timeout", "1h",
                   "--idle", "5m", "--label", "team=x", "--label", "n=1", "--env", "GREETING=hello")
        assert r.out == a.encode() + b"\n" and r.err == b""
        spec = cli.ok("create", b, "--memory", "256M", "--oom", "sandbox", "--label", "team=y", "--json").json["spec"]
        assert spec["labels"] == {"team": "y"} and spec["oom"] == "sandbox"
        rows = cli.ok("ps").out.decode().splitlines()
        assert rows[0].split() == ["NAME", "STATE", "AGE", "IDLE", "RUNS", "MEMORY", "CPUS", "LABELS", "REASON"]
        mine = next(row for row in rows if row.startswith(a))
        assert "running" in mine and "256 MiB" in mine and "n=1,team=x" in mine or "team=x,n=1" in mine
        assert all(not row.endswith(" ") and "\033" not in row for row in rows)
        listed = cli.ok("ps", "--label", "team=x", "--json").json["sandboxes"]
        assert [s["name"] for s in listed] == [a]
        got = listed[0]["spec"]
        assert (got["memory_mib"], got["cpus"], got["pids"], got["disk_mib"], got["timeout_seconds"], got["idle_seconds"]) == \
            (256, 0.5, 50, 64, 3600, 300)
        assert cli.ok("exec", "--name", a, "--", "sh", "-c", "echo $GREETING").out == b"hello\n"
        for name, words in ((a, "files are kept"), (b, "its files, processes and variables are gone")):
            r = cli("exec", "--name", name, "--", "python3", "-c", "x = bytearray(400 << 20)")
            lines = [x for x in r.lines() if x.startswith("caisson: ")]
            assert r.code == 137 and len(lines) == 2 and "out of memory" in lines[0] and words in lines[1], r
        r = cli.ok("rm", a, b)
        assert r.out.decode().split() == [a, b]
        assert not {a, b} & {s["name"] for s in cli.ok("ps", "-a", "--json").json["sandboxes"]}
    finally:
        cli("rm", "-f", a, b)


def test_create_makes_a_name(cli):
    names = [cli.ok("create").out.decode().strip(), cli.ok("create", "--label", "a=b", "--json").json["name"]]
    try:
        assert all(re.fullmatch("box-[0-9a-f]{8}", n) for n in names) and names[0] != names[1], names
        assert cli.ok("run", "--name", names[0], "1 + 1").out == b"2\n"
    finally:
        cli("rm", *names)
    r = cli("new")
    assert r.code == 125
    one_line(r, "did you mean 'create'?")


def test_create_again(cli, box):
    assert cli.ok("create", box).out == box.encode() + b"\n"
    r = cli("create", box, "--memory", "64M")
    assert r.code == 6
    one_line(r, "another value of --memory")


def test_pages(cli):
    """The command requests every page of the list."""
    names = [unique("p") for _ in range(3)]
    try:
        for n in names:
            cli.ok("create", n, "--label", "page=" + names[0])
        listed = cli.ok("ps", "--json", "--label", "page=" + names[0]).json["sandboxes"]
        assert {s["name"] for s in listed} == set(names)
    finally:
        cli("rm", "-f", *names)


def test_stop_and_kill(cli):
    a, b = unique("a"), unique("b")
    try:
        cli.ok("create", a)
        cli.ok("create", b)
        assert cli.ok("stop", "--grace", "1", a, "--json").json["state"] == "stopped"
        assert cli.ok("kill", b).out == b.encode() + b"\n"
        names = {s["name"] for s in cli.ok("ps", "--json").json["sandboxes"]}
        assert not {a, b} & names, "ps lists a sandbox that does not run"
        states = {s["name"]: s for s in cli.ok("ps", "-a", "--json").json["sandboxes"]}
        assert states[a]["state"] == states[b]["state"] == "stopped" and states[a]["reason"]
        assert "stopped" in cli.ok("ps", "-a").out.decode()
        r = cli("exec", "--name", a, "--", "true")
        assert r.code == 125
        one_line(r, "stopped", "caisson rm")
        r = cli("cp", a + ":x", "-")
        assert r.code == 6
    finally:
        cli("rm", "-f", a, b)


def test_missing_ones(cli, box):
    gone = unique("gone")
    for verb in (["rm", gone], ["stop", gone], ["kill", gone], ["logs", gone], ["cp", gone + ":x", "-"], ["port", gone, "80"]):
        r = cli(*verb)
        if verb[0] == "port":
            assert r.code in (5, 7), r
            continue
        assert r.code == 5, r
        one_line(r, "no such sandbox: '%s'" % gone, "caisson create")
    assert cli("rm", "-f", gone).code == 0
    r = cli("rm", gone, box)
    assert r.code == 5 and r.out == box.encode() + b"\n", "the other sandboxes were not removed"
    for args in (["run", "--name", gone, "1"], ["exec", "--name", gone, "--", "true"], ["exec", "--name", gone, "-i", "--", "true"], ["shell", gone]):
        r = cli(*args)
        assert r.code == 125, r
        one_line(r, "no such sandbox")


def test_port(cli, box):
    r = cli("port", box, "8080")
    assert r.code in (0, 7), r
    if r.code == 7:
        one_line(r, "no port forwarding yet")


# ---- run --name -------------------------------------------------------------------------------------------


def test_variables_are_kept(cli, box):
    assert cli.ok("run", "--name", box, "x = 41; print('hi')").out == b"hi\n"
    assert cli.ok("run", "--name", box, "x + 1").out == b"42\n", "the value of a last expression is shown"
    r = cli.ok("run", "--name", box, "--json", "x").json
    assert r["ok"] and r["result"] == {"text/plain": "41"}


def test_run_sources(cli, box, tmp_path):
    (tmp_path / "a.py").write_text("print('from a file')")
    (tmp_path / "b.sh").write_text("echo from $BASH_VERSION | cut -c1-6")
    assert cli.ok("run", "--name", box, str(tmp_path / "a.py")).out == b"from a file\n"
    assert cli.ok("run", "--name", box, str(tmp_path / "b.sh")).out.startswith(b"from ")
    assert cli.ok("run", "--name", box, "-", input=b"print('piped')").out == b"piped\n"
    assert cli.ok("run", "--name", box, "-l", "bash", "-c", "echo code").out == b"code\n"
    assert cli.ok("run", "--name", box, "-i", "print(input() * 2)", input=b"ab\n").out == b"abab\n"
    r = cli("run", "--name", box, "print(1)", "argument")
    assert r.code == 125
    one_line(r, "no arguments")
    r = cli("run", "--name", box, "missing.py")
    assert r.code == 125
    one_line(r, "no such file")
    r = cli("run", "--name", box, "--memory", "1G", "1")
    assert r.code == 125
    one_line(r, "--memory", "caisson create")


def test_run_ends(cli, box):
    r = cli("run", "--name", box, "import sys; print('o'); print('e', file=sys.stderr); 1/0")
    assert r.code == 1 and r.out == b"o\n"
    assert r.lines()[0] == "e" and r.lines()[-1] == "ZeroDivisionError: division by zero"
    r = cli("run", "--name", box, "-t", "1", "import time\nwhile True: time.sleep(0.01)")
    assert r.code == 124 and "after 1 s" in r.lines()[-1], r
    assert cli.ok("run", "--name", box, "'still here'").out == b"'still here'\n"


def test_output_is_live(cli, box):
    """The output arrives while the program runs."""
    with cli.start("run", "--name", box, "-i", "print('first'); import time\nwhile True: time.sleep(0.05)", stdin=subprocess.DEVNULL) as p:
        try:
            assert p.stdout.readline() == b"first\n"
            assert p.poll() is None
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=HANG)
        finally:
            end_process(p)
    assert p.returncode == 130 and b"KeyboardInterrupt" in err, err


def test_second_signal_leaves(cli, box):
    code = "import time\nsaid = False\nend = time.time() + 60\nwhile time.time() < end:\n  try:\n    if not said:\n      said = True\n" \
        "      print('deaf', flush=True)\n    time.sleep(60)\n  except KeyboardInterrupt: print('no', flush=True)"
    with cli.start("run", "--name", box, code) as p:
        try:
            assert p.stdout.readline() == b"deaf\n"
            p.send_signal(signal.SIGINT)
            assert p.stdout.readline() == b"no\n"
            p.send_signal(signal.SIGTERM)
            assert p.wait(HANG) == 143
        finally:
            end_process(p)


# ---- exec --name ------------------------------------------------------------------------------------------


PRINT_ALL = "import os; os.write(1, bytes(range(256)) * 4); os.write(1, 'déjà vu ☃\\n'.encode()); os.write(2, b'\\xff\\x00err')"


@pytest.mark.parametrize("with_stdin", [False, True])
def test_bytes_are_exact(cli, box, with_stdin):
    r = cli.ok("exec", "--name", box, *(["-i"] if with_stdin else []), "--", "python3", "-c", PRINT_ALL)
    assert r.out == ALL_BYTES and r.err == b"\xff\x00err"


def test_bytes_of_a_kernel_are_exact(cli, box):
    code = "import os, sys, time\nsys.stdout.buffer.write(bytes(range(256)) * 4); sys.stdout.flush()\n" \
        "sys.stdout.buffer.write('déjà vu ☃\\n'.encode()); sys.stdout.flush()"
    assert cli.ok("run", "--name", box, code).out.startswith(ALL_BYTES)


def test_much_output(cli, box):
    n = 20_000_000
    p = subprocess.run([str(BIN), "exec", "--name", box, "--", "sh", "-c", "yes 0123456789abcde | head -c %d" % n],
                       env=clean_env(**cli.env), capture_output=True, timeout=100 * SLOW)
    assert p.returncode == 0 and p.stdout == b"0123456789abcde\n" * (n // 16), (p.returncode, len(p.stdout), p.stderr[-300:])


@pytest.mark.parametrize("with_stdin", [False, True])
def test_exit_codes(cli, box, with_stdin):
    i = ["-i"] if with_stdin else []
    assert cli("exec", "--name", box, *i, "--", "sh", "-c", "exit 3").code == 3
    assert cli("exec", "--name", box, *i, "--", "sh", "-c", "kill -KILL $$").code == 137
    r = cli("exec", "--name", box, *i, "--", "nosuchprogram")
    assert r.code == 127
    one_line(r, "not found")
    r = cli("exec", "--name", box, *i, "--", "/etc/passwd")
    assert r.code == 126
    one_line(r)
    r = cli("exec", "--name", box, *i, "-t", "1", "--", "sleep", "60")
    assert r.code == 124
    one_line(r, "after 1 s")
    r = cli("exec", "--name", box, *i, "--", "python3", "-c", "x = bytearray(2 << 30)")
    assert r.code in (1, 137), r


def test_stdin_flows(cli, box):
    """A conversation: each answer arrives before the next line is written."""
    with cli.start("exec", "--name", box, "-i", "--", "cat", stdin=subprocess.PIPE) as p:
        try:
            for i in range(5):
                p.stdin.write(b"line %d \xff\n" % i)
                p.stdin.flush()
                assert p.stdout.readline() == b"line %d \xff\n" % i
            p.stdin.close()
            assert p.stdout.read() == b"" and p.wait(HANG) == 0
        finally:
            end_process(p)


def test_much_stdin(cli, box):
    """More input than any buffer holds, into a slow program, and back."""
    data = os.urandom(6 << 20)
    r = cli.ok("exec", "--name", box, "-i", "--", "sh", "-c", "sleep 1; cat", input=data, timeout=90)
    assert r.out == data
    assert cli.ok("exec", "--name", box, "-i", "--", "head", "-c", "3", input=data).out == data[:3], "a program need not read it all"


def test_exec_environment(cli, box):
    r = cli.ok("exec", "--name", box, "-e", "A=1 2", "--cwd", "/tmp", "--", "sh", "-c", 'echo "$A"; pwd; echo "$@"', "sh", "--json", "-x")
    assert r.out == b"1 2\n/tmp\n--json -x\n"
    r = cli.ok("exec", "--name", box, "--json", "-i", "--", "tr", "a-z", "A-Z", input=b"up").json
    assert r["stdout"] == "UP" and r["exit_code"] == 0
    assert cli("exec", "--name", box, "--json", "--", "false").code == 1


@pytest.mark.parametrize("with_stdin", [False, True])
def test_reader_that_leaves(cli, box, daemon, with_stdin):
    """As in `yes | head`: the program ends here, and in the sandbox."""
    with cli.start("exec", "--name", box, *(["-i"] if with_stdin else []), "--", "yes") as p:
        try:
            assert p.stdout.read(2) == b"y\n"
            p.stdout.close()
            assert p.wait(HANG) == 141
        finally:
            end_process(p)
    assert wait_until(lambda: not daemon.named("yes")), "yes still runs"


@pytest.mark.parametrize("with_stdin", [False, True])
def test_interrupted(cli, box, daemon, with_stdin):
    with cli.start("exec", "--name", box, *(["-i"] if with_stdin else []), "--", "sh", "-c", "echo go; exec sleep 61",
                   stdin=subprocess.PIPE) as p:
        try:
            assert p.stdout.readline() == b"go\n"
            p.send_signal(signal.SIGINT)
            assert p.wait(HANG) == 130
        finally:
            end_process(p)
    assert wait_until(lambda: not daemon.named("sleep"))


def test_interrupt_is_for_one(cli, box, daemon):
    """POST .../executions/{id}/interrupt interrupts that execution, and nothing else in the sandbox."""
    url = "/v1/sandboxes/%s/executions" % box
    with cli.start("exec", "--name", box, "--", "sh", "-c", "echo go; exec sleep 62") as a, \
            cli.start("exec", "--name", box, "--", "sh", "-c", "echo go; exec sleep 63") as b:
        try:
            assert a.stdout.readline() == b.stdout.readline() == b"go\n"
            running = [e for e in daemon.get(url).json["executions"] if e.get("status") in (None, "running")]
            assert len(running) == 2, running
            assert daemon.post("%s/%s/interrupt" % (url, running[0]["execution_id"]), {}).status == 202
            assert wait_until(lambda: (a.poll() is None) != (b.poll() is None))
            left = a if a.poll() is None else b
            left.send_signal(signal.SIGINT)
            assert left.wait(HANG) == 130
            r = daemon.post("%s/%s/interrupt" % (url, running[0]["execution_id"]), {})
            assert r.status == 404 and r.error["code"] == "nothing_runs"
            r = daemon.post("%s/%s/interrupt" % (url, "0" * 32), {})
            assert r.status == 404 and r.error["code"] == "no_such_execution"
        finally:
            end_process(a)
            end_process(b)


def test_exec_without_name_is_a_cell_here(cli):
    assert cli.ok("exec", "--", "echo", "--name", "x").out == b"--name x\n"
    assert cli.ok("run", "import sys; print(sys.argv[1:])", "--name", "x").out == b"['--name', 'x']\n"
    assert b"--name" in cli.ok("exec", "--help").out
    assert b"--token-file" in cli.ok("exec", "--name", "x", "--help").out


# ---- files ------------------------------------------------------------------------------------------------


def test_copy_files(cli, box, tmp_path):
    data = os.urandom(3 << 20)
    (tmp_path / "data.bin").write_bytes(data)
    (tmp_path / "tool").write_text("#!/bin/sh\necho tool\n")
    (tmp_path / "tool").chmod(0o755)
    cli.ok("cp", str(tmp_path / "data.bin"), box + ":")
    assert cli.ok("exec", "--name", box, "--", "sha256sum", "/workspace/data.bin").out.split()[0].decode() == sha256(data)
    cli.ok("cp", str(tmp_path / "tool"), box + ":/tmp/renamed")
    assert cli.ok("exec", "--name", box, "--", "/tmp/renamed").out == b"tool\n", "the file is not executable"
    cli.ok("cp", box + ":data.bin", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data
    (tmp_path / "d").mkdir()
    cli.ok("cp", box + ":/tmp/renamed", str(tmp_path / "d"))
    assert (tmp_path / "d" / "renamed").stat().st_mode & 0o777 == 0o755
    assert cli.ok("cp", "-", box + ":piped", input=b"\xff\x00").out == b""
    assert cli.ok("cp", box + ":piped", "-").out == b"\xff\x00"
    assert cli.ok("cp", "--json", box + ":piped", str(tmp_path / "p")).json == {"bytes": 2, "skipped": 0}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back", "d", "data.bin", "p", "tool"], "an incomplete copy is left"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def test_copy_names_with_everything(cli, box, tmp_path):
    name = "a b&c=%41?ü#:x"
    (tmp_path / name).write_text("odd")
    cli.ok("cp", str(tmp_path / name), box + ":/workspace/" + name)
    assert cli.ok("exec", "--name", box, "--", "cat", "/workspace/" + name).out == b"odd"
    cli.ok("cp", box + ":" + name, str(tmp_path / "got"))
    assert (tmp_path / "got").read_text() == "odd"


def test_copy_directories(cli, box, tmp_path):
    src = tmp_path / "src"
    (src / "sub" / "deep").mkdir(parents=True)
    (src / "a").write_text("A")
    (src / "sub" / "deep" / ("n" * 180)).write_text("long")
    (src / "empty").mkdir()
    (src / "link").symlink_to("sub/deep")
    (src / "run").write_text("x")
    (src / "run").chmod(0o755)
    cli.ok("cp", "-r", str(src), box + ":/workspace")
    cli.ok("cp", "-r", box + ":src", str(tmp_path / "back"))
    back = tmp_path / "back"
    assert (back / "a").read_text() == "A"
    assert (back / "link" / ("n" * 180)).read_text() == "long" and os.readlink(back / "link") == "sub/deep"
    assert (back / "empty").is_dir() and (back / "run").stat().st_mode & 0o777 == 0o755
    (tmp_path / "there").mkdir()
    cli.ok("cp", "-r", box + ":src", str(tmp_path / "there"))
    assert (tmp_path / "there" / "src" / "a").read_text() == "A"
    r = cli("cp", str(src), box + ":x")
    assert r.code == 125
    one_line(r, "cp -r")
    r = cli("cp", box + ":src", str(tmp_path / "x"))
    assert r.code == 125
    one_line(r, "cp -r")


def test_copy_out_can_do_no_harm(cli, box, tmp_path):
    """A directory made by hostile code: links that lead out are not copied, and nothing is written through links on this side."""
    cli.ok("exec", "--name", box, "--", "sh", "-c", "mkdir -p evil/d && cd evil && ln -s /etc/passwd abs && ln -s ../../up up && "
           "ln -s . dot && ln -s dot/../../x sly && ln -s d good && mkfifo pipe && echo hi > d/f")
    r = cli.ok("cp", "-r", box + ":evil", str(tmp_path / "out"))
    one_line(r, "left out")
    out = tmp_path / "out"
    assert sorted(p.name for p in out.iterdir()) == ["d", "dot", "good"]
    assert (out / "d" / "f").read_text() == "hi\n" and stat.S_ISREG((out / "d" / "f").lstat().st_mode)
    victim = tmp_path / "victim"
    victim.mkdir()
    again = tmp_path / "again"
    again.mkdir()
    (again / "evil").mkdir()
    (again / "evil" / "d").symlink_to(victim)
    r = cli("cp", "-r", box + ":evil", str(again))
    assert r.code == 125 and list(victim.iterdir()) == [], r


def test_copy_problems(cli, box, tmp_path):
    cases = [(["cp", "a", "b"], 125, "NAME:PATH"), (["cp", box + ":a", box + ":b"], 125, "one side must be on this machine"),
             (["cp", box + ":nofile", "-"], 5, "no such file"), (["cp", str(tmp_path / "no"), box + ":"], 125, "No such file"),
             (["cp", box + ":/etc/hostname", "/nonexistent/x"], 125, "/nonexistent/x"), (["cp", "a b:c", "d"], 125, "./a b:c"),
             (["cp", "-", box + ":"], 125, "no name of its own")]
    for args, code, part in cases:
        r = cli(*args)
        assert r.code == code, (args, r)
        one_line(r, part)
    r = cli("cp", box + ":/workspace", "-")
    assert r.code == 125


def test_copy_of_more_than_there_is_room_for(cli, tmp_path):
    """The remedy of the daemon, in the words of the command; not only its log has one."""
    name = unique("small")
    large = tmp_path / "large"
    with open(large, "wb") as f:
        f.truncate(100 << 20)
    cli.ok("create", name, "--memory", "64M")
    try:
        r = cli("cp", str(large), name + ":")
        assert r.code == 1
        one_line(r, "100 MiB", "56 MiB", "more --memory")
    finally:
        cli.ok("rm", name)


# ---- logs, top --------------------------------------------------------------------------------------------


def test_logs(cli, box):
    cli.ok("run", "--name", box, "for i in range(5): print('line', i)")
    cli.ok("exec", "--name", box, "--", "printf", "\\377raw\\n")
    assert cli.ok("logs", box).out == b"".join(b"line %d\n" % i for i in range(5)) + b"\xffraw\n"
    assert cli.ok("logs", "--tail", "2", box).out == b"line 4\n\xffraw\n"
    assert cli.ok("logs", box, "--json").json["name"] == box


def test_logs_follow(cli, box):
    cli.ok("run", "--name", box, "print('before')")
    with cli.start("logs", "-f", box) as p:
        try:
            assert p.stdout.readline() == b"before\n"
            for i in range(3):
                cli.ok("run", "--name", box, "print('same line')")
                assert p.stdout.readline() == b"same line\n"
            cli.ok("rm", box)
            assert p.wait(HANG) == 0 and p.stdout.read() == b""
        finally:
            end_process(p)


def test_top_once(cli, box):
    """Memory and processes are those of now; the peak stays."""
    def row():
        titles, *rows = [re.split(r"  +", line) for line in cli.ok("top").out.decode().splitlines()]
        assert titles == ["NAME", "STATE", "CPU", "CPU TIME", "MEMORY", "PEAK", "LIMIT", "PIDS", "RUNS", "WAITING", "IDLE"]
        return dict(zip(titles, next(r for r in rows if r[0] == box)))

    def mib(text):
        number, unit = text.split()
        return float(number) * {"KiB": 1 / 1024, "MiB": 1}[unit]

    cli.ok("run", "--name", box, "import subprocess; p = [subprocess.Popen(['sleep', '600']) for i in range(3)]; x = bytearray(100 << 20)")
    big = row()
    assert mib(big["MEMORY"]) > 100 and int(big["PIDS"]) >= 4, big
    cli.ok("run", "--name", box, "del x; [(one.kill(), one.wait()) for one in p]; None")
    small = row()
    assert mib(small["MEMORY"]) < 90 and mib(small["PEAK"]) > 100 and int(small["PIDS"]) == int(big["PIDS"]) - 3, (big, small)
    mine = next(s for s in cli.ok("top", "--json").json["sandboxes"] if s["name"] == box)
    assert 0 < mine["usage"]["memory"] < mine["usage"]["memory_peak"] and "receipt" in mine


# ---- used wrongly -----------------------------------------------------------------------------------------


def test_wrong_use(cli):
    cases = [(["create", "a", "b"], "too many"), (["create", "a/b"], "invalid sandbox name"),
             (["create", "x", "--memory", "1.5"], "--memory"), (["create", "x", "--memory", "100K"], "whole number of MiB"),
             (["ps", "x"], "too many"), (["ps", "--nonsense"], "unknown option"), (["rm"], "an argument is missing"),
             (["workspace", "dif", "x"], "did you mean 'diff'?"), (["workspace", "nonsense"], "'caisson workspace --help'"),
             (["exec", "--name", "x"], "an argument is missing"), (["run", "--name", "x"], "nothing to run"),
             (["run", "--name", "a b", "1"], "invalid sandbox name"),
             (["shell", "x", "ls"], "-- ls"), (["port", "x", "0"], "PORT"), (["ps", "--url", "ftp://x"], "--url"),
             (["ps", "--url", "http://u:p@x"], "--token-file"), (["stop", "--grace", "soon", "x"], "--grace")]
    for args, part in cases:
        r = cli(*args)
        assert r.code == 125, (args, r)
        assert any(part in line for line in r.lines()) and r.lines()[0].startswith("caisson: "), (args, r)
        assert r.out == b"", r
    r = cli("logs", "-f", "--json", "x")
    assert r.code == 125 and "do not go together" in r.json["error"]["message"] and r.err == b"", "the error is not JSON"


def test_errors_speak_of_commands_and_name_the_thing(cli, box, tmp_path):
    """The daemon's errors name requests and their fields; the command says the same in its own words."""
    gone, here = unique("gone"), str(tmp_path / "here")
    for args, code, words in (
            (["cp", box + ":no.txt", here], 5, [box + ":no.txt: there is no such file"]), (["cp", here, box + ":x"], 125, [here + ": No such file"]),
            (["cp", box + ":no.txt", "/nonexistent/x"], 5, [box + ":no.txt"]), (["cp", "/etc/hostname", box + ":/etc/x"], 4, [box + ":/etc/x: "]),
            (["cp", "/etc/hostname", box + ":/no/x"], 5, [box + ":/no/x", "mkdir -p"]),
            (["create", box, "--memory", "256M", "--label", "a=b"], 6, ["value of --memory, labels"]),
            (["create", "--name", gone], 125, ["caisson create NAME"]),
            (["create", gone, "--memory", "1"], 125, ["a number without a unit", "bytes"]), (["create", gone, "--memory", "1M"], 7, ["--memory in MiB must be between 16 and"]),
            (["create", gone, "--memory", "900T"], 7, ["--memory in MiB"]), (["create", gone, "--memory", "1023G"], 7, ["this machine has less memory: ", " MiB"]),
            (["create", gone, "--workspace", "none-such"], 5, ["'none-such'", "caisson workspace create NAME"]), (["create", gone, "--image", "no:1"], 7, ["caisson image pull"]),
            (["workspace", "rm", "none-such"], 5, ["'none-such'", "caisson workspace ls"]),
            (["workspace", "diff", box], 6, ["has no workspace", "caisson create NAME --workspace"]), (["logs", gone], 5, ["idle for too long"]), (["port", box, "9", "--close"], 5, ["port 9", "'caisson port NAME PORT'"]),
            (["run", "--name", box, "bytearray(1 << 31)"], 137, ["more --memory ('caisson create')"]),
            (["run", "--name", box, "import socket; socket.create_connection(('example.org', 80))"], 1, ["'caisson net NAME --egress HOST'"])):
        r = cli(*args)
        text = r.err.decode()
        assert r.code == code and all(w in text for w in words), (args, r)
        assert not re.search(r"(GET|POST|PUT|DELETE) /|/v1/|_mib|_seconds|create_sandbox", text), (args, r)


def test_a_file_of_another_language(cli, box, tmp_path):
    (tmp_path / "a.rb").write_text("puts 1")
    for verb in (["run"], ["run", "--name", box]):
        r = cli(*verb, str(tmp_path / "a.rb"))
        assert r.code == 125
        one_line(r, "a.rb: by its suffix it is Ruby", "python, bash, javascript and r", "--lang", "caisson exec")
    (tmp_path / "b.rb").write_text("print(2)")
    assert cli.ok("run", "--name", box, "--lang", "python", str(tmp_path / "b.rb")).out == b"2\n"


def test_refused_by_the_daemon(cli):
    """An error that only the daemon can find is shown with the daemon's message."""
    r = cli("create", unique("x"), "--image", "python:3.11")
    assert r.code == 7
    one_line(r, "image")
    r = cli("create", unique("x"), "--memory", "1M", "--json")
    assert r.code == 7 and json.loads(r.out)["error"]["http_status"] == 422


def test_every_verb_has_help(cli):
    for verb in ("ps", "create", "shell", "logs", "cp", "rm", "stop", "kill", "top", "port"):
        r = cli.ok(verb, "--help")
        assert r.out.startswith(b"Usage: caisson %s" % verb.encode()) and b"--socket" in r.out and r.err == b""
        assert cli.ok("help", verb).out == r.out
    groups = cli.ok("--help").out.decode()
    assert [groups.index(t) for t in ("Run here", "The daemon", "Sandboxes of a daemon")] == \
        sorted(groups.index(t) for t in ("Run here", "The daemon", "Sandboxes of a daemon"))


def test_output_that_can_not_be_written(cli, box):
    with open("/dev/full", "wb") as full:
        p = subprocess.run([str(BIN), "ps"], env=clean_env(**cli.env), stdout=full, stderr=subprocess.PIPE, timeout=HANG)
        assert p.returncode == 125 and b"standard output" in p.stderr
        p = subprocess.run([str(BIN), "exec", "--name", box, "--", "echo", "x"], env=clean_env(**cli.env), stdout=full,
                           stderr=subprocess.PIPE, timeout=HANG)
        assert p.returncode == 125 and b"No space left" in p.stderr


def test_names_from_the_daemon_can_not_command_a_terminal(cli):
    """Labels may contain any text."""
    name = unique("esc")
    try:
        cli.ok("create", name, "--label", "k=\033[2Jx\u202e")
        out = cli.ok("ps").out
        assert b"\033" not in out and b"\\x1b[2Jx\\u{202e}" in out
    finally:
        cli("rm", "-f", name)


