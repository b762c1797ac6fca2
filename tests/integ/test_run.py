# SPDX-License-Identifier: Apache-2.0
"""test_run.py - `caisson run` and `caisson exec` as a person types them: programs, streams, exit codes."""
import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import time

import pytest

from integ_lib import end_process, family, is_nonblocking, leftovers, run, start, wait_running
from process import BIN, HANG, ROOT, alive, children, wait_until

CLEAN_ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/agent", "USER": "agent",
    "LOGNAME": "agent", "SHELL": "/bin/bash", "LANG": "C.UTF-8",
}


def env_of(r):
    return dict(line.split("=", 1) for line in r.out.decode().splitlines())


# ---- the command lines that are promised ---------------------------------------------------------


def test_inline_python():
    r = run("run", "print(6*7)")
    assert (r.code, r.out, r.err) == (0, b"42\n", b"")


@pytest.mark.parametrize("how", [["chrt", "--idle", "0"], ["chrt", "--idle", "--reset-on-fork", "0"], ["chrt", "--batch", "0"], ["nice", "-n", "19"]],
                         ids=" ".join)
def test_started_for_idle_moments(how):
    """A caller with a lower scheduling class gets less of the machine."""
    r = run("exec", "--", "echo", "hi", prefix=how)
    assert (r.code, r.out, r.err) == (0, b"hi\n", b"")


SCRIPTS = {
    ".py": ("python3", "import sys; print('|'.join(sys.argv[1:]))"),
    ".sh": ("bash", 'IFS="|"; echo "$*"'),
    ".js": ("node", "console.log(process.argv.slice(2).join('|'))"),
    ".r": ("Rscript", "cat(paste(commandArgs(TRUE), collapse='|'), '\\n', sep='')"),
}


@pytest.mark.parametrize("suffix", SCRIPTS)
def test_file_with_arguments_and_language_by_suffix(tmp_path, suffix):
    program, code = SCRIPTS[suffix]
    if not shutil.which(program):
        pytest.skip("%s is not installed" % program)
    script = tmp_path / ("script" + suffix)
    script.write_text(code + "\n")
    r = run("run", script, "arg1", "two words")
    assert (r.code, r.out, r.err) == (0, b"arg1|two words\n", b"")


@pytest.mark.parametrize("lang,program,code,out", [
    ("python", "python3", "import sys; print(sys.argv[1:])", b"['a', 'b c']\n"),
    ("bash", "bash", 'printf "%s;" "$@"', b"a;b c;"),
    ("javascript", "node", "console.log(process.argv.slice(1).join(';'))", b"a;b c\n"),
    ("r", "Rscript", "cat(commandArgs(TRUE), sep=';')", b"a;b c"),
])
def test_inline_code_of_every_language_gets_its_arguments(lang, program, code, out):
    if not shutil.which(program):
        pytest.skip("%s is not installed" % program)
    r = run("run", "--lang", lang, code, "a", "b c")
    assert (r.code, r.out) == (0, out), r


def test_lang_overrides_the_suffix(tmp_path):
    script = tmp_path / "really-bash.py"
    script.write_text("echo from bash $BASH_VERSION\n")
    r = run("run", "--lang", "bash", script)
    assert r.code == 0 and r.out.startswith(b"from bash 5")


def test_bash_sees_the_cell_and_not_the_host():
    r = run("run", "--lang", "bash", "uname -n; id; pwd; cat /etc/hostname; ls /root /home")
    out = r.out.decode()
    assert out.startswith("caisson\nuid=1000(agent) gid=1000(agent) groups=1000(agent)\n/workspace\ncaisson\n")
    assert out.endswith("/home:\nagent\n")
    assert b"/root" in r.err  # not there at all


def test_exec_env_shows_a_clean_environment():
    r = run("exec", "--", "/usr/bin/env", env={"SECRET_TOKEN": "hunter2", "LD_PRELOAD": None})
    assert r.code == 0 and env_of(r) == CLEAN_ENV


def test_exec_does_no_shell_parsing():
    hostile = ["a  b", "$HOME", "`id`", "new\nline", "", "*", "'\"", "-n"]
    r = run("exec", "--", "/usr/bin/printf", "[%s]", *hostile)
    assert r.out.decode() == "".join("[%s]" % a for a in hostile)


def test_arguments_are_bytes():
    odd = bytes(b for b in range(1, 256))
    r = run("exec", "--", "/usr/bin/printf", "%s", odd)
    assert r.out == odd


def test_options_after_the_program_belong_to_the_program():
    assert run("exec", "echo", "--memory", "5").out == b"--memory 5\n"
    assert run("exec", "--", "printf", "%s", "--help").out == b"--help"
    assert run("run", "import sys; print(sys.argv[1:])", "--json").out == b"['--json']\n"


def test_program_is_looked_up_in_the_cells_path():
    assert run("exec", "--", "true").code == 0
    r = run("exec", "--env", "PATH=/nowhere", "--", "true")
    assert r.code == 127


def test_code_from_stdin():
    r = run("run", "-", input=b"print(6*7)\n")
    assert (r.code, r.out, r.err) == (0, b"42\n", b"")
    r = run("run", "--lang", "bash", "-", "x", input=b'echo "$1"')
    assert (r.code, r.out) == (0, b"x\n")


def test_code_from_stdin_leaves_an_empty_stdin_as_python_itself_does():
    r = run("run", "-", input=b"print(input())\n")
    assert r.code == 1 and r.lines()[-1] == "EOFError: EOF when reading a line"


def test_all_flags_at_once(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in.txt").write_text("from the host")
    code = ("import os, resource\n"
            "print(os.environ['K'], os.getcwd(), open('in.txt').read())\n"
            "print(os.statvfs('/workspace').f_blocks * os.statvfs('/workspace').f_frsize)\n"
            "try: open('out.txt', 'w')\n"
            "except OSError as e: print(e.strerror)\n")
    r = run("run", "--memory", "256M", "--cpus", "0.5", "--pids", "64", "--timeout", "10", "--disk", "100M",
            "--env", "K=V", "--mount", "./data:/data:ro", "--workdir", "/data", "--image", "host", code,
            cwd=tmp_path)
    assert (r.code, r.err) == (0, b"")
    assert r.out.decode().splitlines() == ["V /data from the host", str(100 << 20), "Read-only file system"]


def test_values_after_an_equals_sign_and_short_names():
    r = run("run", "--memory=64M", "-e", "A=b=c", "-t", "5", "-w", "/tmp", "-l", "bash", 'echo "$A" $PWD')
    assert (r.code, r.out) == (0, b"b=c /tmp\n")


def test_code_option_runs_anything():
    r = run("run", "-c", "import sys; print(sys.argv[1:])", "script.py", "-")
    assert r.out == b"['script.py', '-']\n"


def test_user_option():
    assert run("exec", "--user", "1234:99", "--", "id", "-u").out == b"1234\n"
    assert run("exec", "--user", "1234:99", "--", "id", "-g").out == b"99\n"


def test_version_and_help():
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)
    r = run("--version")
    assert (r.code, r.out.decode()) == (0, "caisson %s\n" % version)
    for args in (["--help"], ["-h"], ["help"]):
        r = run(*args)
        assert r.code == 0 and r.err == b""
        for word in (b"run", b"exec", b"doctor", b"125"):
            assert word in r.out
    options = (b"--memory --cpus --pids --timeout --cpu-time --disk --inodes --files --max-output --capture --env "
               b"--mount --workdir --image --tty --json --receipt --without --state").split()
    for verb in ("run", "exec"):
        assert run("help", verb).out == run(verb, "--help").out
        text = run(verb, "--help").out
        assert [o for o in options if o not in text] == []
    assert b"--lang" in run("help", "run").out and b"--lang" not in run("help", "exec").out


@pytest.mark.parametrize("words, expected", [
    ("caisson serve --allow", {"--allow-host", "--allow-origin", "--allowed-packages"}), ("caisson serve --mcp-", {"--mcp-auth-server", "--mcp-url", "--mcp-config", "--mcp-discover", "--mcp-user"}),
    ("caisson mcp -- --mem", {"--memory"}), ("caisson policy check x -- --pol", {"--policy"}), ("caisson serve --he", {"--help"}),
    ("caisson run --mem", {"--memory"}), ("caisson st", {"stop"})])
def test_bash_completes(words, expected):
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _caisson; printf "%s\\n" "${COMPREPLY[@]}"'
    completion = ROOT / "dist/completions/caisson.bash"
    r = subprocess.run(["bash", "-c", script, "bash", completion, *words.split()], env={"PATH": "%s:/usr/bin:/bin" % BIN.parent}, stdout=subprocess.PIPE, text=True, timeout=60)
    assert set(r.stdout.split()) == expected, r


def test_doctor_agrees_with_a_run():
    r = run("doctor")
    assert r.code == 0 and b"cell" in r.out, r
    d = run("doctor", "--json").json
    assert d["healthy"] is True and d["receipt"]["enforced"] is True
    checks = {c["name"]: c for c in d["checks"]}
    assert checks["cell"]["status"] == "ok" and checks["user namespaces"]["status"] == "ok"
    for c in d["checks"]:
        assert c["status"] == "ok" or c["fix"], c


# ---- size of code --------------------------------------------------------------------------------


def test_code_too_long_for_an_argument_still_runs():
    """120 kB is near the limit of the Linux kernel for one argument; it must fit together with the interpreter's own."""
    code = "x = '%s'\nprint(len(x))" % ("a" * 120000)
    assert run("run", code).out == b"120000\n"


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_200_kb_of_code(tmp_path, how):
    code = ("x = '%s'\nprint(len(x))\n" % ("ä" * 100000)).encode()
    assert len(code) > 200000
    if how == "file":
        (tmp_path / "big.py").write_bytes(code)
        r = run("run", tmp_path / "big.py")
    else:
        r = run("run", "-", input=code)
    assert (r.code, r.out) == (0, b"100000\n")


def test_many_and_large_arguments():
    args = ["x" * 100000] * 10 + ["y"] * 2000
    r = run("run", "import sys; print(len(sys.argv), sum(map(len, sys.argv[1:])))", *args)
    assert (r.code, r.out) == (0, b"2011 1002000\n")


def test_code_with_quotes_newlines_and_unicode():
    code = "s = '''a\n'\"\t\\\\ é € 𝄞'''\nprint(ascii(s))"
    assert run("run", code).out == (ascii("a\n'\"\t\\ é € 𝄞") + "\n").encode()


# ---- streams --------------------------------------------------------------------------------------


def read_line(f):
    """The next line, while the writer lives; fails when none arrives."""
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([f], [], [], HANG)
        assert ready, "no line within %d s, only %r" % (HANG, line)
        byte = os.read(f.fileno(), 1)
        assert byte, "end of file after %r" % line
        line += byte
    return line


def test_output_arrives_while_the_program_runs(started):
    p = started("run", "import sys, time\nprint('out')\nprint('err', file=sys.stderr)\ntime.sleep(60)")
    assert read_line(p.stdout) == b"out\n"
    assert read_line(p.stderr) == b"err\n"
    assert p.poll() is None


def test_stdin_arrives_while_it_is_written(started):
    p = started("run", "import sys\nfor line in sys.stdin: print(line.strip()[::-1])", bufsize=0)
    for word in (b"abc", b"def", b"ghi"):
        p.stdin.write(word + b"\n")
        assert read_line(p.stdout) == word[::-1] + b"\n"
    p.stdin.close()
    assert p.wait(HANG) == 0  # end of file arrived, too


def test_binary_both_ways():
    data = random.Random(1).randbytes(1 << 20)
    r = run("exec", "--", "cat", input=data)
    assert r.code == 0 and r.out == data
    r = run("run", "--lang", "bash", "cat >&2", input=data)
    assert r.code == 0 and r.err == data and r.out == b""


def test_a_pipeline_of_two_cells(tmp_path):
    data = random.Random(2).randbytes(3 << 20)
    (tmp_path / "in").write_bytes(data)
    with open(tmp_path / "in", "rb") as f, open(tmp_path / "out", "wb") as out:
        first = subprocess.Popen([str(BIN), "exec", "cat"], stdin=f, stdout=subprocess.PIPE)
        second = subprocess.Popen([str(BIN), "exec", "cat"], stdin=first.stdout, stdout=out)
        first.stdout.close()
        assert (second.wait(60), first.wait(60)) == (0, 0)
    assert (tmp_path / "out").read_bytes() == data


def test_unread_stdin():
    r = run("exec", "--", "true", input=b"x" * (8 << 20))
    assert r.code == 0 and r.seconds < HANG
    r = run("run", "import time; time.sleep(0.3); print('done')", input=b"x" * (8 << 20))
    assert (r.code, r.out) == (0, b"done\n")


def test_an_open_stdin_does_not_keep_a_finished_program(started):
    p = started("exec", "--", "echo", "hi")
    assert p.stdout.read() == b"hi\n"
    assert p.wait(HANG) == 0  # our end of its stdin is still open


def test_a_background_process_does_not_keep_a_finished_program():
    r = run("run", "--lang", "bash", "sleep 600 & echo hi")
    assert (r.code, r.out) == (0, b"hi\n") and r.seconds < HANG


def test_all_output_arrives_although_the_reader_is_slow(started):
    p = started("run", "import sys; sys.stdout.write('0123456789' * 100000)")
    got = b""
    for _ in range(20):
        time.sleep(0.01)
        got += os.read(p.stdout.fileno(), 7001)
    got += p.stdout.read()
    assert got == b"0123456789" * 100000 and p.wait(HANG) == 0


@pytest.mark.parametrize("which", ["stdin", "stdout", "both"])
def test_closed_descriptors(which):
    redirect = {"stdin": "<&-", "stdout": ">&-", "both": "<&- >&-"}[which]
    r = run("exec", "sh", "-c", "echo x; ls /proc/self/fd | wc -w >&2", prefix=["sh", "-c", 'exec "$0" "$@" ' + redirect])
    assert r.code == 0 and r.err.strip() == b"4", r  # 0, 1, 2 and ls's own


def test_reader_that_goes_away_ends_the_program_with_sigpipe():
    r = run("exec", "yes", prefix=["bash", "-c", '"$0" "$@" | head -n 1; exit ${PIPESTATUS[0]}'])
    assert (r.code, r.out) == (128 + signal.SIGPIPE, b"y\n") and r.seconds < HANG


def test_output_that_can_not_be_written_is_not_lost_in_silence():
    """A full disk behind '>': as with cat(1), the exit code must report a failure."""
    for _ in range(5):
        with open("/dev/full", "wb") as full:
            r = run("exec", "echo", "x" * 100, stdout=full)
        assert r.code != 0, r


def test_callers_stdio_stays_blocking(started):
    r_end, w_end = os.pipe()
    in_r, in_w = os.pipe()
    try:
        p = started("exec", "sleep", "60", stdin=in_r, stdout=w_end, stderr=w_end)
        wait_running(p)
        assert not is_nonblocking(in_r) and not is_nonblocking(w_end)
    finally:
        for fd in (r_end, w_end, in_r, in_w):
            os.close(fd)


def test_only_three_descriptors_reach_the_program_whatever_the_caller_has_open():
    secret, other = os.pipe()
    os.write(other, b"secret")
    os.dup2(secret, 77, inheritable=True)
    try:
        r = run("run", "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd')))", pass_fds=[secret, other, 77])
        # The fourth is listdir's own.
        assert r.out == b"[0, 1, 2, 3]\n"
    finally:
        for fd in (secret, other, 77):
            os.close(fd)


# ---- how it ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 42, 99, 255])
def test_exit_code_is_the_programs(code):
    r = run("exec", "--", "sh", "-c", "exit %d" % code)
    assert (r.code, r.err) == (code, b"")


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "USR1", "ABRT", "PIPE"])
def test_signal_gives_128_plus_n(name):
    r = run("exec", "--", "sh", "-c", "kill -%s $$" % name)
    assert (r.code, r.err) == (128 + signal.Signals["SIG" + name], b"")


def test_not_found_and_not_executable():
    r = run("exec", "--", "no-such-program")
    assert r.code == 127 and r.lines() == ["caisson: no-such-program: not found in the cell"]
    r = run("exec", "--", "/no/such/program")
    assert r.code == 127 and len(r.lines()) == 1
    for path in ("/etc/passwd", "/workspace"):
        r = run("exec", "--", path)
        assert r.code == 126 and len(r.lines()) == 1 and path in r.lines()[0], r


def test_missing_interpreter_is_not_found(tmp_path):
    r = run("run", "--lang", "python", "--env", "PATH=/nowhere", "print(1)")
    assert r.code == 127 and "python3" in r.lines()[0]


@pytest.mark.parametrize("name,code", [("INT", 130), ("TERM", 143), ("HUP", 129), ("QUIT", 131)])
def test_signal_to_caisson_ends_the_cell(started, name, code):
    p = started("run", "--lang", "bash", "trap '' INT TERM HUP QUIT; sleep 60 & sleep 61 & wait; wait")
    warden, init = wait_running(p)
    assert wait_until(lambda: any(len(children(c)) == 2 for c in children(init)))
    p.send_signal(signal.Signals["SIG" + name])
    assert p.wait(HANG) == code
    # Everything is gone the moment caisson is: not soon, now.
    assert leftovers() == []
    assert not alive(warden) and not alive(init)


def test_signal_before_the_cell_is_ready(started):
    """Whenever it comes, the end is orderly."""
    for delay in (0, 0.002, 0.005, 0.01, 0.02, 0.03):
        p = started("exec", "sleep", "60")
        time.sleep(delay)
        p.send_signal(signal.SIGINT)
        # Before the handler is there, the signal ends caisson itself.
        assert p.wait(HANG) in (130, -signal.SIGINT)


def test_program_survives_sigint_to_the_group_only_as_long_as_caisson_wants(started):
    """As a terminal does on Ctrl-C: the signal goes to the whole foreground group."""
    p = started("exec", "sleep", "60", start_new_session=True)
    warden, _ = wait_running(p)
    os.killpg(p.pid, signal.SIGINT)
    assert p.wait(HANG) == 130 and leftovers() == []


def test_killed_init_is_reported_as_caissons_failure(started):
    p = started("exec", "sleep", "60")
    _, init = wait_running(p)
    os.kill(init, signal.SIGKILL)
    out, err = p.communicate(timeout=HANG)
    assert p.returncode == 125 and err.startswith(b"caisson: ") and err.count(b"\n") == 1


def test_killed_warden_is_reported_as_caissons_failure(started):
    p = started("exec", "sleep", "60")
    warden, init = wait_running(p)
    os.kill(warden, signal.SIGKILL)
    out, err = p.communicate(timeout=HANG)
    assert p.returncode == 125 and err.startswith(b"caisson: ") and err.count(b"\n") == 1
    assert wait_until(lambda: not alive(init)), "the cell outlived its warden"
    assert run("exec", "true").code == 0  # the next start sweeps


def test_warden_and_init_have_nothing_of_the_callers_environment(started):
    p = started("exec", "sleep", "60", env={"SECRET_TOKEN": "hunter2"})
    warden, init = wait_running(p)
    for pid in (warden, init):
        with open("/proc/%d/environ" % pid, "rb") as f:
            assert f.read() == b""
    assert family(p.pid) == (warden, init)


# ---- the environment ----------------------------------------------------------------------------------


def test_env_option():
    r = run("exec", "-e", "A=1", "--env", "EMPTY=", "--env", "A=2", "--env", "HOME=/tmp", "--env", "Ü=é\nx", "--",
            "/usr/bin/env", "-0")
    got = dict(kv.split("=", 1) for kv in r.out.decode().rstrip("\0").split("\0"))
    assert got == {**CLEAN_ENV, "A": "2", "EMPTY": "", "HOME": "/tmp", "Ü": "é\nx"}


@pytest.mark.parametrize("name,value,code,out", [
    ("CAISSON_MEMORY", "77M", "cat /proc/self/cgroup >/dev/null; echo ok", b"ok\n"),
    ("CAISSON_LANG", "bash", "echo ${BASH##*/}", b"bash\n"),
    ("CAISSON_WORKDIR", "/tmp", "import os; print(os.getcwd())", b"/tmp\n"),
    ("CAISSON_FILES", "33", "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))", b"(33, 33)\n"),
    ("CAISSON_DISK", "5M", "import os; s = os.statvfs('/'); print(s.f_blocks * s.f_frsize >> 20)", b"5\n"),
    ("CAISSON_INODES", "777", "import os; print(os.statvfs('/').f_files)", b"777\n"),
])
def test_environment_twins(name, value, code, out):
    lang = ["--lang", "bash"] if name == "CAISSON_MEMORY" else []
    r = run("run", *lang, code, env={name: value})
    assert r.out == out, r


def test_environment_twins_of_the_limits_are_enforced():
    assert run("run", "import time; time.sleep(60)", env={"CAISSON_TIMEOUT": "300ms"}).code == 124
    assert run("run", "while True: pass", env={"CAISSON_CPU_TIME": "200ms"}).code == 124
    assert run("run", "x = bytearray(100 << 20)", env={"CAISSON_MEMORY": "32M"}).code == 137
    assert run("run", "print('x' * 9999)", env={"CAISSON_MAX_OUTPUT": "1K"}).code == 137
    r = run("run", "print('x' * 9)", env={"CAISSON_JSON": "1", "CAISSON_CAPTURE": "3", "CAISSON_RECEIPT": "1",
                                          "CAISSON_PIDS": "7", "CAISSON_CPUS": "0.25"})
    d = r.json
    assert (d["stdout"], d["truncated"]) == ("xxx", True)
    assert d["receipt"]["cgroup"]["pids"] == 8  # init is the eighth
    assert d["receipt"]["cgroup"]["cpu_milli"] == 250
    assert run("run", "print(1)", env={"CAISSON_JSON": "0"}).out == b"1\n"


def test_output_limit_of_a_program_that_is_over():
    """The program had ended when its output was read: the excess is dropped anyway, and reported."""
    p = start("run", "--max-output", "1K", "import time; time.sleep(1); print('x' * 9999)")
    try:
        _, init = wait_running(p)
        p.send_signal(signal.SIGSTOP)
        assert wait_until(lambda: not children(init), HANG)
        p.send_signal(signal.SIGCONT)
        out, err = p.communicate(timeout=HANG)
        assert (p.returncode, len(out)) == (137, 1024) and b"more than 1 KiB of output" in err, (p.returncode, len(out), err)
    finally:
        end_process(p)


def test_option_wins_over_its_environment_twin():
    r = run("run", "--workdir", "/", "import os; print(os.getcwd())", env={"CAISSON_WORKDIR": "/tmp"})
    assert r.out == b"/\n"


def test_fresh_cell_every_time():
    assert run("run", "open('/workspace/f', 'w'); open('/tmp/f', 'w'); open('/home/agent/f', 'w')").code == 0
    r = run("run", "--lang", "bash", "ls -A /workspace /tmp /home/agent")
    assert r.out == b"/home/agent:\n\n/tmp:\n\n/workspace:\n"


def program_headers(path):
    """(type, offset, address, size in memory) of each."""
    data = path.read_bytes()
    at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    fields = [struct.unpack_from("<IIQQQQQ", data, at + i * size) for i in range(count)]
    return [(f[0], f[2], f[3], f[6]) for f in fields]


def test_pid_1_cannot_write_what_its_start_relocated():
    """Whatever C library it is linked with; its other data can be written (the control)."""
    relro, = [h for h in program_headers(BIN.parent / "caisson-init") if h[0] == 0x6474e552]
    inode = os.stat(BIN.parent / "caisson-init").st_ino
    p = start("exec", "--", "sleep", "60")
    try:
        _, init = wait_running(p)
        lines = [line.split() for line in open("/proc/%d/maps" % init)]
    finally:
        end_process(p)
    own = [([int(n, 16) for n in f[0].split("-")], f[1], int(f[2], 16)) for f in lines if int(f[4]) == inode]
    base = next(begin for (begin, _), _, offset in own if offset == 0)
    page = os.sysconf("SC_PAGESIZE")
    end = (base + relro[2] + relro[3]) // page * page
    assert [flags for (begin, over), flags, _ in own if begin < end <= over] == ["r--p"], lines
    assert "rw-p" in [flags for (begin, _), flags, _ in own if begin >= end], lines
