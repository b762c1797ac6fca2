# SPDX-License-Identifier: Apache-2.0
"""test_bad_input.py - Wrong use and poor machines: one clear line, exit code 125, and nothing created.

Each case has the words that the line must contain: the wrong field, and a part of the remedy.
"""
import os
import shutil
import signal
import socket
import struct
import sys

import pytest

from integ_lib import USER, as_user, copy_tree, leftovers, needs_program, needs_root, records, run, start
from process import BIN, HANG


def refused(r, *words, code=125, warnings=0):
    """One line with the required words, the documented exit code, and no output of a program."""
    lines = r.lines()
    assert r.code == code and r.out == b"", r
    assert len(lines) == 1 + warnings and lines[-1].startswith("caisson: "), r
    assert all(line.startswith("caisson: warning: ") for line in lines[:warnings]), r
    assert r.err.endswith(b"\n") and len(lines[-1]) < 600, r
    for w in words:
        assert w in lines[-1], r
    assert leftovers() == [], r
    return lines[-1]


def refused_without_trace(state, *args, words=(), **kw):
    """The same, and the state directory was not even made."""
    r = run(*args, env={"CAISSON_STATE": str(state), **kw.pop("env", {})}, **kw)
    line = refused(r, *words)
    assert not state.exists(), r
    return line


# ---- words that caisson does not know -----------------------------------------------------------------


@pytest.mark.parametrize("args,words", [
    (["run", "--frobnicate", "print(1)"], ["--frobnicate", "caisson run --help"]),
    (["run", "--memroy=1G", "print(1)"], ["--memroy", "caisson run --help"]),
    (["run", "-x", "print(1)"], ["-x", "--help"]),
    (["exec", "--lang", "python", "--", "true"], ["--lang", "caisson exec --help"]),
    (["doctor", "--timeout", "1"], ["--timeout", "caisson doctor --help"]),
    (["doctor", "extra"], ["extra"]),
    (["frobnicate"], ["frobnicate", "caisson --help"]),
    (["--frobnicate"], ["--frobnicate", "caisson --help"]),
    (["tpo"], ["'tpo': did you mean 'top'?"]),
    (["tool"], ["unknown verb 'tool'; 'caisson --help'"]),
    (["list"], ["did you mean 'ps'?"]),
    (["pull"], ["did you mean 'image pull'?"]),
    (["run", "--memory", "1", "print(1)"], ["--memory: must be between 16 MiB and 1 TiB", "a number without a unit (K, M, G) is one of bytes"]),
    (["run", "--memory", "1023G", "print(1)"], ["--memory: 1023 GiB is more than the", "that this machine has"]),
    (["help", "frobnicate"], ["frobnicate", "caisson --help"]),
    (["run"], ["nothing to run", "caisson run"]),
    (["run", "--memory", "64M"], ["nothing to run"]),
    (["exec"], ["nothing to run", "caisson exec"]),
    (["exec", "--"], ["nothing to run"]),
    (["run", "--json=yes", "print(1)"], ["--json", "no value"]),
    (["run", "--lang", "klingon", "print(1)"], ["--lang", "klingon", "python", "bash", "javascript", "r"]),
    (["run", "--lang", "", "print(1)"], ["--lang", "python"]),
    (["run", "--without", "everything", "print(1)"], ["--without", "everything", "seccomp", "landlock", "cgroup"]),
    (["run", "--env", "NOVALUE", "print(1)"], ["--env", "NAME=VALUE"]),
    (["run", "--env", "=x", "print(1)"], ["--env", "NAME=VALUE"]),
    (["run", "--user", "root", "print(1)"], ["--user", "UID"]),
    (["run", "--user", "0", "print(1)"], ["--user", "1"]),
    (["run", "--user", "1:99999", "print(1)"], ["--user", "65535"]),
])
def test_unknown_words(state, args, words):
    refused_without_trace(state, *args, words=words)


@pytest.mark.parametrize("option", [
    "--lang", "--memory", "--cpus", "--pids", "--timeout", "--cpu-time", "--disk", "--inodes", "--files", "--max-output",
    "--capture", "--env", "--mount", "--workdir", "--image", "--without", "--state", "--user", "--code", "-m", "-t", "-e"])
def test_missing_value(state, option):
    long_name = {"-m": "--memory", "-t": "--timeout", "-e": "--env"}.get(option, option)
    refused_without_trace(state, "run", option, words=[long_name, "needs a value"])


@pytest.mark.parametrize("args", [
    ["run", "--bo\ngus", "1"], ["run", "--lang", "x\ny", "1"], ["run", "--image", "a\nb", "1"],
    ["run", "--image", "dir:/no\nwhere", "1"], ["run", "--without", "a\nb", "1"], ["a\nb"],
    ["run", "--mount", "/no\nsuch:/d", "1"], ["run", "--mount", "/tmp:x\ny", "1"], ["run", "--memory", "1\n2", "1"],
    ["run", "--state", "/no\nwhere/state", "1"], ["run", "--workdir", "/a\nb", "1"], ["doctor", "a\nb"],
    ["run", "--bo\x1b[31mgus", "1"], ["run", "--lang", "\x1b]0;title\x07", "1"],
])
def test_what_is_quoted_can_not_forge_lines_or_drive_the_terminal(args):
    r = run(*args)
    refused(r)
    assert not any(c < 0x20 for c in r.err.rstrip(b"\n")), r


def test_program_name_in_a_message_is_one_line():
    r = run("exec", "--", "no\nsuch\x1b[31m")
    refused(r, code=127)
    assert not any(c < 0x20 for c in r.err.rstrip(b"\n")), r


# ---- numbers ------------------------------------------------------------------------------------------


SIZES = ["--memory", "--disk", "--max-output"]
COUNTS = ["--pids", "--inodes", "--files", "--capture"]
TIMES = ["--timeout", "--cpu-time"]
NOT_NUMBERS = ["-1", "+1", "", " 1", "1 ", "abc", "0x10", "1e3", "1,5", "nan", "inf", "1M M", "--", "١", ".5", "5.", "1..2"]
OVERFLOWING = ["18446744073709551616", "99999999999999999999999999"]


@pytest.mark.parametrize("value", NOT_NUMBERS + OVERFLOWING)
@pytest.mark.parametrize("option", SIZES + COUNTS + TIMES + ["--cpus"])
def test_no_number_at_all_or_one_that_overflows(state, option, value):
    refused_without_trace(state, "exec", option + "=" + value, "--", "true", words=[option])


@pytest.mark.parametrize("option,value,words", [
    ("--memory", "0", []), ("--memory", "1", ["16"]), ("--memory", "15M", ["16"]), ("--memory", "1025G", []),
    ("--memory", "16777215", ["16"]), ("--memory", "17179869184G", []), ("--memory", "5s", ["256M"]), ("--memory", "1P", ["256M"]),
    ("--disk", "0", []), ("--disk", "1000", ["1"]), ("--disk", "2000G", []), ("--disk", "1ms", ["256M"]),
    ("--cpus", "0", ["0.01", "1024"]), ("--cpus", "0.009", ["0.01"]), ("--cpus", "1025", ["1024"]), ("--cpus", "50%", ["0.5"]),
    ("--cpus", "4294967", ["1024"]), ("--cpus", "4294967.296", ["1024"]), ("--cpus", "1M", ["0.5"]),
    ("--pids", "0", ["1", "32768"]), ("--pids", "32769", ["32768"]), ("--pids", "1.5", []), ("--pids", "1k", []),
    ("--timeout", "0", ["1 ms", "24 h"]), ("--timeout", "0ms", ["24 h"]), ("--timeout", "25h", ["24 h"]), ("--timeout", "90000", ["24 h"]),
    ("--timeout", "1d", ["500ms"]), ("--timeout", "10M", ["500ms"]), ("--timeout", "0.0001", []),
    ("--cpu-time", "0", ["0"]), ("--cpu-time", "5ms", ["10"]), ("--cpu-time", "25h", []), ("--cpu-time", "1d", ["500ms"]),
    ("--inodes", "0", ["256"]), ("--inodes", "255", ["256"]), ("--inodes", "4294967297", ["4294967296"]),
    ("--files", "0", ["16"]), ("--files", "15", ["16"]), ("--files", "1048577", ["1048576"]),
    ("--max-output", "0", ["1 B"]), ("--max-output", "5s", ["256M"]),
    ("--capture", "67108865", ["67108864"]), ("--capture", "1k", ["67108864"]),
])
def test_numbers_out_of_range_or_with_the_wrong_unit(state, option, value, words):
    refused_without_trace(state, "exec", option, value, "--", "true", words=[option, *words])


@pytest.mark.parametrize("option,value", [
    ("--memory", "16M"), ("--memory", "64m"), ("--memory", "0.125GiB"), ("--memory", "67108864"), ("--disk", "1M"), ("--disk", "1536KB"),
    ("--cpus", "0.01"), ("--cpus", "2"), ("--pids", "32768"), ("--timeout", "24h"), ("--timeout", "1.5m"), ("--cpu-time", "1"),
    ("--inodes", "256"), ("--files", "16"), ("--max-output", "1"), ("--capture", "0"),
])
def test_numbers_at_the_edge_are_taken(option, value):
    r = run("exec", option, value, "--", "true")
    assert (r.code, r.err) == (0, b""), r


@pytest.mark.parametrize("name", ["MEMORY", "CPUS", "PIDS", "TIMEOUT", "CPU_TIME", "DISK", "INODES", "FILES", "MAX_OUTPUT",
                                  "CAPTURE", "USER", "IMAGE", "WORKDIR", "WITHOUT"])
def test_bad_environment_twin_names_the_variable(state, name):
    refused_without_trace(state, "exec", "--", "true", env={"CAISSON_" + name: "-1"}, words=["CAISSON_" + name])


def test_bad_environment_twin_of_lang(state):
    refused_without_trace(state, "run", "print(1)", env={"CAISSON_LANG": "klingon"}, words=["klingon", "python"])


# ---- files --------------------------------------------------------------------------------------------


def test_missing_file(state):
    refused_without_trace(state, "run", "no-such-file.py", words=["no-such-file.py", "no such file", "-c"])
    refused_without_trace(state, "run", "./no/such/file.sh", words=["./no/such/file.sh"])


def test_file_that_is_a_directory(state, tmp_path):
    (tmp_path / "dir.py").mkdir()
    refused_without_trace(state, "run", tmp_path / "dir.py", words=["dir.py"])


@needs_root
def test_unreadable_file(shared_dir):
    script = shared_dir / "secret.py"
    script.write_text("print(1)")
    script.chmod(0o600)
    state = shared_dir / "state"
    refused_without_trace(state, "run", script, prefix=as_user(), binary=copy_tree(shared_dir / "bin"), words=["secret.py", "Permission denied"])


def test_file_that_is_too_large(state, tmp_path):
    with open(tmp_path / "huge.py", "wb") as f:
        f.truncate(65 << 20)
    refused_without_trace(state, "run", tmp_path / "huge.py", words=["huge.py", "64 MiB"])


def test_argument_the_kernel_would_refuse():
    """More than any execve takes. Ours is split so that the kernel lets us start at all."""
    r = run("exec", "--", "true", *["x" * 100000] * 18, preexec_fn=raise_stack)
    assert r.code in (0, 125)
    if r.code == 125:
        refused(r)


def raise_stack():
    import resource
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 20 if hard == resource.RLIM_INFINITY else hard, hard))


@pytest.mark.parametrize("mount,words", [
    ("/no/such/path:/data", ["--mount", "/no/such/path", "No such file"]),
    ("./no-such:/data:rw", ["--mount", "no-such"]),
    (":/data", ["--mount", "SRC:DST"]),
    ("/tmp", ["--mount", "SRC:DST"]),
    ("/tmp:", ["--mount", "SRC:DST"]),
    ("", ["--mount"]),
    ("/tmp:data", ["--mount", "data", "absolute"]),
    ("/tmp:./data", ["--mount", "absolute"]),
    ("/tmp:/", ["--mount"]),
    ("/tmp:/data/", ["--mount", "/data/", "slash"]),
    ("/tmp:/a/../b", ["--mount", "/a/../b", "'..'"]),
    ("/tmp:/..", ["--mount", "'..'"]),
    ("/tmp:/a/./b", ["--mount", "'.'"]),
    ("/tmp://data", ["--mount", "//data"]),
    ("/tmp:/data:xx", ["--mount"]),
    ("/tmp:/data:RW", ["--mount"]),
    ("/tmp:/proc", ["--mount", "/proc"]),
    ("/tmp:/proc/self", ["--mount", "/proc"]),
    ("/tmp:/dev/shm", ["--mount", "/dev"]),
    ("/tmp:/sys/fs/cgroup", ["--mount", "/sys"]),
    ("/tmp:/" + "x" * 255, ["--mount"]),
    ("/tmp:/" + "x/" * 200 + "x", ["--mount"]),
])
def test_bad_mounts(state, mount, words):
    refused_without_trace(state, "exec", "--mount", mount, "--", "true", words=words)


@pytest.mark.parametrize("source,place,words", [
    ("file", "/etc", ["/etc", "file"]),
    ("dir", "/etc/passwd", ["/etc/passwd", "directory"]),
    ("dir", "/usr/no-such-place", ["/usr/no-such-place", "read-only"]),
    ("dir", "/bin/x", ["/bin/x", "symbolic link"]),
    ("dir", "/etc/mtab/x", ["/etc/mtab/x"]),
])
def test_mounts_that_do_not_fit(tmp_path, source, place, words):
    (tmp_path / "file").write_text("")
    (tmp_path / "dir").mkdir()
    refused(run("exec", "--mount", "%s:%s" % (tmp_path / source, place), "--", "true"), *words)


def test_mount_of_a_device_or_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for source in ("/dev/null", tmp_path / "pipe"):
        refused(run("exec", "--mount", "%s:/data" % source, "--", "true"), "--mount", "/data", "regular files")


def test_too_many_mounts(state):
    args = []
    for i in range(17):
        args += ["--mount", "/tmp:/m%d" % i]
    refused_without_trace(state, "exec", *args, "--", "true", words=["--mount", "16"])


@pytest.mark.parametrize("image,words", [
    ("python:3.11-never-pulled", ["--image", "python:3.11-never-pulled", "caisson image pull"]),
    ("Python:3.11", ["--image", "Python"]),
    ("dir:", ["--image", "dir:PATH"]),
    ("", ["--image"]),
    ("dir:/no/such/image", ["--image", "/no/such/image", "No such file"]),
    ("dir:/etc/passwd", ["--image", "/etc/passwd", "Not a directory"]),
])
def test_bad_images(state, image, words):
    refused_without_trace(state, "exec", "--image-pull", "never", "--image", image, "--", "true", words=words)


def test_empty_image_has_no_program(tmp_path):
    (tmp_path / "empty").mkdir()
    r = run("exec", "--image", "dir:%s" % (tmp_path / "empty"), "--", "/bin/sh")
    # A sanitized init needs libraries that an empty image does not have.
    refused(r, code=r.code if r.code == 125 and b"caisson-init" in r.err else 127)


@pytest.mark.parametrize("workdir,words", [
    ("relative", ["--workdir", "absolute"]), ("/a/../b", ["--workdir", "'..'"]), ("/tmp/", ["--workdir", "slash"]), ("", ["--workdir"]),
])
def test_bad_workdir(state, workdir, words):
    refused_without_trace(state, "exec", "--workdir", workdir, "--", "true", words=words)


def test_workdir_that_is_not_in_the_cell():
    refused(run("exec", "--workdir", "/no/such/dir", "--", "true"), "--workdir", "/no/such/dir", "No such file")
    refused(run("exec", "--workdir", "/etc/passwd", "--", "true"), "--workdir", "/etc/passwd", "Not a directory")


# ---- the state directory ----------------------------------------------------------------------------------


def test_state_must_be_absolute(state):
    refused_without_trace(state, "exec", "--state", "relative", "--", "true", words=["--state", "absolute"])


def test_state_in_a_missing_directory(tmp_path):
    refused(run("exec", "--state", tmp_path / "a" / "b", "--", "true"), "state", str(tmp_path / "a" / "b"), "No such file")
    assert not (tmp_path / "a").exists()


@needs_root
def test_state_that_belongs_to_someone_else(shared_dir):
    theirs = shared_dir / "theirs"
    theirs.mkdir()
    os.chown(theirs, USER, USER)
    refused(run("exec", "--state", theirs, "--", "true"), str(theirs), "uid 0")
    ours = shared_dir / "ours"
    ours.mkdir()
    r = run("exec", "--state", ours, "--without", "cgroup", "--", "true", prefix=as_user(), binary=copy_tree(shared_dir / "bin"))
    refused(r, str(ours), "uid %d" % USER, warnings=1)
    assert list(theirs.iterdir()) == [] and list(ours.iterdir()) == []


def test_state_that_others_can_write(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o777)
    refused(run("exec", "--state", tmp_path / "state", "--", "true"), "state", "no other user")
    (tmp_path / "link").symlink_to("/tmp")
    refused(run("exec", "--state", tmp_path / "link", "--", "true"), "state", str(tmp_path / "link"))
    (tmp_path / "file").write_text("")
    refused(run("exec", "--state", tmp_path / "file", "--", "true"), "state", "Not a directory")


# ---- machines that cannot ------------------------------------------------------------------------------------


NO_USERNS = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"'


@needs_program("unshare", "util-linux")
def test_kernel_without_user_namespaces():
    """max_user_namespaces counts per user namespace: a child of ours that forbids them is such a kernel."""
    r = run("exec", "--", "true", prefix=["unshare", "-U", "--map-root-user", "sh", "-c", NO_USERNS])
    refused(r, "user namespaces", "sysctl user.max_user_namespaces")
    d = run("exec", "--json", "--", "true", prefix=["unshare", "-U", "--map-root-user", "sh", "-c", NO_USERNS]).json
    assert d["status"] == "failed" and "sysctl user.max_user_namespaces" in d["error"]["message"]


@needs_root
@needs_program("unshare", "util-linux")
def test_kernel_without_user_namespaces_for_an_ordinary_user(shared_dir):
    home = shared_dir / "home"
    home.mkdir()
    os.chown(home, USER, USER)
    r = run("exec", "--without", "cgroup", "--", "true", env={"CAISSON_STATE": str(home / "state")}, binary=copy_tree(shared_dir / "bin"),
            prefix=[*as_user(), "unshare", "-U", "--map-root-user", "sh", "-c", NO_USERNS])
    refused(r, "user namespaces", "sysctl user.max_user_namespaces", warnings=1)
    assert records(home / "state") == []


@needs_program("unshare", "util-linux")
def test_root_of_a_container_with_few_ids(tmp_path):
    """Root by name, with one id, as in rootless containers. It works as for a user, or names the missing part."""
    r = run("exec", "--without", "cgroup", "--state", tmp_path / "s", "--", "id", "-u",
            prefix=["unshare", "-U", "--map-root-user", "--"])
    if r.code == 0:
        assert r.out == b"1000\n"
    else:
        refused(r, "uid_map", "run", warnings=1)


@pytest.mark.parametrize("missing,words", [
    ("caisson-warden", ["caisson-warden", "install"]),
    ("caisson-init", ["caisson-init"]),
])
def test_missing_binaries(state, tmp_path, missing, words):
    caisson = copy_tree(tmp_path / "tree", without=[missing])
    refused_without_trace(state, "exec", "--", "true", binary=caisson, words=words)


def test_init_that_is_no_program(tmp_path):
    caisson = copy_tree(tmp_path / "tree", without=["caisson-init"])
    (tmp_path / "tree" / "caisson-init").write_text("no program")
    (tmp_path / "tree" / "caisson-init").chmod(0o755)
    refused(run("exec", "--", "true", binary=caisson), "caisson-init", "Exec format error")


def test_init_that_ends_at_once(tmp_path):
    caisson = copy_tree(tmp_path / "tree", without=["caisson-init"])
    shutil.copy(shutil.which("true"), tmp_path / "tree" / "caisson-init")
    refused(run("exec", "--", "true", binary=caisson), "cell")


def test_warden_that_ends_at_once(tmp_path):
    caisson = copy_tree(tmp_path / "tree", without=["caisson-warden"])
    shutil.copy(shutil.which("true"), tmp_path / "tree" / "caisson-warden")
    for _ in range(3):
        refused(run("exec", "--", "true", binary=caisson), "warden")


FAKE_WARDEN = """#!%s
import socket, struct
s = socket.socket(fileno=3)
m = s.recv(65536)
version, op, seq = struct.unpack("IIQ", m[:16])
s.send(struct.pack("IIQ", version + %d, op, seq).ljust(%d, b"\\0"))
s.recv(65536)
"""


@pytest.mark.parametrize("version,size", [(1, 600), (0, 32)])
def test_warden_of_another_version(tmp_path, version, size):
    caisson = copy_tree(tmp_path / "tree", without=["caisson-warden"])
    (tmp_path / "tree" / "caisson-warden").write_text(FAKE_WARDEN % (sys.executable, version, size))
    (tmp_path / "tree" / "caisson-warden").chmod(0o755)
    refused(run("exec", "--", "true", binary=caisson), "caisson-warden", "different versions", "reinstall")


def ask_warden(tmp_path, message):
    """The answer of the real warden to these bytes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        p = start(str(tmp_path / "state"), binary=BIN.parent / "caisson-warden", preexec_fn=lambda: os.dup2(theirs.fileno(), 3),
                  pass_fds=[3, theirs.fileno()])
        theirs.close()
        ours.settimeout(HANG)
        try:
            ours.send(message)
            answer = ours.recv(65536)
        except ConnectionResetError:
            answer = b""
        ours.close()
        out, err = p.communicate(timeout=HANG)
    assert (out, err) == (b"", b"")
    assert p.returncode == 0
    return answer


def request_size(tmp_path):
    """The warden takes one size only; find it as a stranger would have to."""
    fake = copy_tree(tmp_path / "size", without=["caisson-warden"])
    log = tmp_path / "size" / "request"
    (tmp_path / "size" / "caisson-warden").write_text(
        "#!%s\nimport socket\nopen(%r, 'wb').write(socket.socket(fileno=3).recv(65536))\n" % (sys.executable, str(log)))
    (tmp_path / "size" / "caisson-warden").chmod(0o755)
    run("exec", "--", "true", binary=fake)
    return log.read_bytes()


def test_client_of_another_version(tmp_path):
    request = bytearray(request_size(tmp_path))
    request[0:4] = struct.pack("I", struct.unpack("I", request[0:4])[0] + 1)
    answer = ask_warden(tmp_path, bytes(request))
    assert b"different versions" in answer and b"reinstall" in answer
    assert struct.unpack("i", answer[16:20])[0] < 0


@pytest.mark.parametrize("size", [0, 1, 16, 100, 5000, 60000])
def test_nonsense_ends_the_warden_quietly(tmp_path, size):
    assert ask_warden(tmp_path, b"x" * size) == b""


# Numbers of src/wire/warden.h.
CREATE, USAGE, KILL, EVIDENCE, DESTROY, ZYGOTE, KERNEL, RETIRE, CLAIM, REST = range(1, 11)


def test_a_request_for_a_cell_that_is_not_ours(tmp_path):
    request = bytearray(request_size(tmp_path))
    for op in (USAGE, KILL, EVIDENCE, DESTROY, KERNEL, CLAIM):
        request[4:8] = struct.pack("I", op)
        request[16:20] = struct.pack("I", 4096)
        assert b"no such cell" in ask_warden(tmp_path, bytes(request))
    for op in (0, REST + 1, 77, 0xffffffff):
        request[4:8] = struct.pack("I", op)
        assert b"unknown request" in ask_warden(tmp_path, bytes(request))


def test_a_request_for_a_zygote_that_is_not_ours(tmp_path):
    """Nobody can name one that was not made: neither to end it, nor to let its kernels into a cell."""
    request = bytearray(request_size(tmp_path))
    for op in (RETIRE, CREATE):
        request[4:8] = struct.pack("I", op)
        for zygote in (1, 4096, 0xffffffff):
            request[16:24] = struct.pack("II", 0, zygote)
            assert b"no such zygote" in ask_warden(tmp_path, bytes(request))


def test_a_request_without_a_number(tmp_path):
    """Answers come in any order: a request that cannot be told from others is refused."""
    request = bytearray(request_size(tmp_path))
    request[8:16] = struct.pack("Q", 0)
    answer = ask_warden(tmp_path, bytes(request))
    assert b"must have a number" in answer and struct.unpack("i", answer[16:20])[0] < 0


def test_warden_started_by_hand_reports_it():
    r = run(binary=BIN.parent / "caisson-warden")
    assert r.code == 125 and b"started by caisson" in r.err


def test_sigpipe_of_our_own_output():
    """caisson --help | true: not a traceback, not a hang."""
    r = run("--help", prefix=["bash", "-c", '"$0" "$@" | true; exit ${PIPESTATUS[0]}'])
    assert r.code in (0, 125, 128 + signal.SIGPIPE) and r.err == b""
