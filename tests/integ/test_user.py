# SPDX-License-Identifier: Apache-2.0
"""test_user.py - caisson as an ordinary user: with a delegated cgroup, and without any.

The user is a number without an entry anywhere. Delegation is what a service manager does: one
directory per hierarchy that belongs to the user, and a process moved into it.
"""
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from integ_lib import CELL_CGROUP, USER, Place, as_user, copy_programs, copy_tree, hierarchies, records, run, start, wait_running
from process import IS_ROOT, wait_until
from test_machine import BLOCK, LOOK, check_age, check_limits, linux_at_least, look

pytestmark = pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")

# v1: written by the manager of a cgroup; everything else stays root's.
DELEGATED_FILES = ["cgroup.procs", "tasks", "cgroup.subtree_control", "cgroup.threads"]


@pytest.fixture
def home():
    """The user's directory, with a copy of the programs that the user can reach."""
    d = Path(tempfile.mkdtemp(prefix="caisson-user-"))
    d.chmod(0o755)
    (d / "run").mkdir(0o700)
    os.chown(d, USER, USER)
    os.chown(d / "run", USER, USER)
    copy_tree(d / "bin")
    yield d
    shutil.rmtree(d)


@pytest.fixture
def user(home):
    """run() as the user."""
    def go(*args, cgroup=True, **kw):
        extra = [] if cgroup else ["--without", "cgroup"]
        return run(args[0], *extra, *args[1:], **settings(home, kw))
    return go


def settings(home, kw):
    env = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "CAISSON_STATE": None, **kw.pop("env", {})}
    return {"env": env, "binary": home / "bin" / "caisson", "prefix": [*kw.pop("enter", []), *as_user()], "cwd": home, **kw}


def without_warning(r):
    lines = r.lines()
    assert lines and lines[0].startswith("caisson: warning: "), r
    return lines[1:]


# ---- nothing delegated -------------------------------------------------------------------------------


def test_without_delegation_the_message_names_controllers_and_fixes(user, home):
    r = user("exec", "--", "true")
    assert r.code == 125 and r.out == b"" and len(r.lines()) == 1, r
    line = r.lines()[0]
    for word in ("memory", "pids", "cpu", str(USER), "root", "--without cgroup"):
        assert word in line, line
    assert records(home / "run" / "caisson") == []


def test_doctor_reports_the_same(user):
    r = user("doctor", "--json")
    d = r.json
    checks = {c["name"]: c for c in d["checks"]}
    assert r.code == 1 and d["healthy"] is False
    assert checks["cgroup"]["status"] == "missing" and "--without cgroup" in checks["cgroup"]["fix"]
    assert checks["cell"]["status"] == "missing" and checks["user"]["status"] == "weak"


def test_machine_of_a_cell(user):
    """The limits that code sees are exact; the use is a few seconds old at most."""
    began = time.time()
    seen = look(user("run", "--memory", "384M", LOOK % (BLOCK, True, BLOCK), cgroup=False))
    check_limits(seen, 1, 384 << 20)
    if linux_at_least(6, 3):
        check_age(seen, began)


def test_without_cgroup_it_works_with_a_warning(user):
    r = user("run", "print(6*7)", cgroup=False)
    assert (r.code, r.out) == (0, b"42\n") and without_warning(r) == []


def test_who_one_is_in_the_cell(user):
    r = user("run", "--lang", "bash", "id -u; id -g; echo $HOME; pwd; cat /proc/self/uid_map; echo > /workspace/f; ls -l /workspace",
             cgroup=False)
    out = r.out.decode().splitlines()
    assert out[:4] == ["1000", "1000", "/home/agent", "/workspace"] and out[4].split() == ["1000", str(USER), "1"]
    assert "agent agent" in out[-1]


def test_receipt_lists_weakened_layers(user):
    r = user("exec", "--json", "--receipt", "--", "sleep", "0.1", cgroup=False)
    d = r.json["receipt"]
    assert r.code == 0 and d["enforced"] is True and d["weakened"] == ["cgroup"] and d["cgroup"] is None
    assert set(d["commands"]["capabilities"].values()) == {"0" * 16}
    assert d["commands"]["seccomp"] == "filter" and d["commands"]["no_new_privs"] is True
    # Init hides its descriptors from other users, and we are not root: the receipt reports that it could not look.
    assert set(d["unreadable"]) <= {"fd: Permission denied"}
    for name, ns in d["namespaces"].items():
        assert ns["cell"] != ns["host"], name


def test_limits_that_need_no_cgroup_hold(user):
    r = user("run", "--memory", "64M", "x = bytearray(200 << 20)", cgroup=False)
    assert r.code == 1 and without_warning(r)[-1] == "MemoryError"
    r = user("run", "--timeout", "400ms", "while True: pass", cgroup=False)
    assert r.code == 124
    r = user("run", "--pids", "5", "import os, time\n"
             "for i in range(60):\n  if os.fork() == 0: time.sleep(9); os._exit(0)\n", cgroup=False)
    assert r.code == 1 and "BlockingIOError" in without_warning(r)[-1]
    r = user("run", "--disk", "2M", "for i in range(4): open('f%d' % i, 'wb').write(bytes(1 << 20))", cgroup=False)
    assert r.code == 1 and "No space left" in r.err.decode() and "--disk" in without_warning(r)[-1]
    assert user("run", "--files", "20", "f = [open('/dev/null') for i in range(30)]", cgroup=False).code == 1


def test_root_only_options_are_refused_with_the_reason(user):
    r = user("exec", "--user", "77", "--", "true", cgroup=False)
    assert r.code == 125 and "--user" in without_warning(r)[0] and "1000" in without_warning(r)[0]


def test_state_is_in_the_runtime_directory_and_private(user, home):
    assert user("exec", "--", "true", cgroup=False).code == 0
    state = home / "run" / "caisson"
    for d in (state, state / "cells"):
        st = d.stat()
        assert (st.st_uid, st.st_mode & 0o7777) == (USER, 0o700)
    assert records(state) == []


def test_state_without_a_runtime_directory(user, home):
    """/tmp/caisson-UID; not left behind by the test."""
    place = Path("/tmp/caisson-%d" % USER)
    existed = place.exists()
    r = user("exec", "--", "true", cgroup=False, env={"XDG_RUNTIME_DIR": None})
    assert r.code == 0 and place.stat().st_uid == USER and place.stat().st_mode & 0o7777 == 0o700
    if not existed:
        shutil.rmtree(place)


# ---- files ----------------------------------------------------------------------------------------------


def test_mounts(user, home):
    d = home / "data"
    d.mkdir()
    (d / "f").write_text("content")
    os.chown(d, USER, USER)
    os.chown(d / "f", USER, USER)
    r = user("exec", "--mount", "data:/data", "--", "sh", "-c", "cat /data/f; touch /data/new", cgroup=False)
    assert r.code == 1 and r.out == b"content" and "Read-only" in without_warning(r)[0]
    r = user("exec", "--mount", "data:/data:rw", "--", "sh", "-c", "echo new > /data/new; echo more >> /data/f; stat -c %u /data/f",
             cgroup=False)
    assert (r.code, r.out) == (0, b"1000\n")
    assert (d / "new").stat().st_uid == USER and (d / "new").read_text() == "new\n" and (d / "f").read_text() == "contentmore\n"


def test_what_the_user_may_not_reach_a_cell_does_not_get(user, home):
    secret = home / "secret"
    secret.mkdir(0o700)
    (secret / "f").write_text("secret")
    for source, mode in ((secret, "ro"), (secret / "f", "ro"), ("/root", "ro"), ("/etc", "rw")):
        r = user("exec", "--mount", "%s:/data:%s" % (source, mode), "--", "ls", "/data")
        assert r.code == 125 and r.out == b"" and "Permission denied" in r.lines()[-1], r


def test_readable_directory_of_someone_else(user):
    r = user("exec", "--mount", "/usr/share:/data", "--", "ls", "-d", "/data/doc", cgroup=False)
    assert (r.code, r.out) == (0, b"/data/doc\n")


def test_image_directory(user, home):
    root = copy_programs(home / "image", "sh", "cat", "id")
    (root / "etc" / "motd").write_text("original\n")
    for where, dirs, files in os.walk(root):
        for name in [".", *dirs, *files]:
            os.chown(os.path.join(where, name), USER, USER, follow_symlinks=False)
    r = user("exec", "--image", "dir:image", "--", "/bin/sh", "-c", "id -u; echo new > /etc/motd; cat /etc/motd; echo x > /new", cgroup=False)
    assert (r.code, r.out) == (0, b"1000\nnew\n"), r
    assert (root / "etc" / "motd").read_text() == "original\n" and not (root / "new").exists()


def test_tty(user):
    r = user("run", "--tty", "import os; print(os.isatty(0), os.ttyname(0))", cgroup=False)
    assert r.code == 0 and b"True /dev/pts/0" in r.out


def test_init_is_out_of_reach_although_it_is_the_same_user(user):
    r = user("run", "import os, signal\n"
             "os.kill(1, signal.SIGKILL); os.kill(1, signal.SIGSTOP)\n"
             "for name in ('mem', 'environ', 'fd', 'root', 'maps'):\n"
             "  try: os.listdir('/proc/1/' + name) if name in ('fd', 'root') else open('/proc/1/' + name).read(1); print(name)\n"
             "  except PermissionError: pass\n"
             "print('alive')", cgroup=False)
    assert (r.code, r.out) == (0, b"alive\n"), r


# ---- delegated ------------------------------------------------------------------------------------------------


@pytest.fixture
def delegation():
    """Cgroups that belong to the user, and the beginning of a command line that enters them."""
    made = []
    if Place.dirs:
        for d in Place.dirs.values():
            made.append(d / "delegated")
    else:
        v2 = hierarchies()[""]
        top = Path(str(v2)[:-len(own_v2())] if own_v2() != "/" else str(v2))
        made.append(top / ("caisson-user-%d" % os.getpid()))
    for d in made:
        d.mkdir()
        os.chown(d, USER, USER)
        for name in DELEGATED_FILES:
            if (d / name).exists():
                os.chown(d / name, USER, USER)
    enter = "".join("echo $$ > '%s/cgroup.procs' && " % d for d in made)
    yield ["sh", "-c", enter + 'exec "$0" "$@"']
    for d in made:
        for sub in sorted((p for p in d.rglob("*") if p.is_dir()), reverse=True):
            sub.rmdir()  # caisson.self on v2: the leaf that the user's processes were moved to
        d.rmdir()


def own_v2():
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return line[3:]
    return "/"


def test_delegated_cgroup_gives_a_whole_cell(user, home, delegation):
    r = user("exec", "--json", "--receipt", "--memory", "100M", "--pids", "20", "--cpus", "0.5", "--", "sleep", "0.1", enter=delegation)
    d = r.json
    assert r.code == 0 and r.err == b"" and d["status"] == "ok", r
    assert d["receipt"]["enforced"] is True and d["receipt"]["weakened"] == []
    assert d["receipt"]["cgroup"] == {"memory": 100 << 20, "pids": 21, "cpu_milli": 500}
    assert records(home / "run" / "caisson") == []


def test_delegated_limits_hold(user, delegation):
    d = user("run", "--json", "--memory", "64M", "x = bytearray(200 << 20)", enter=delegation).json
    assert (d["status"], d["exit_code"], d["cause"]["kind"], d["cause"]["limit"]) == ("limit", 137, "memory", 64 << 20)
    d = user("run", "--json", "--pids", "5", "import os, time\n"
             "for i in range(60):\n  if os.fork() == 0: time.sleep(9); os._exit(0)\n", enter=delegation).json
    assert (d["status"], d["cause"]["kind"]) == ("limit", "pids"), d
    d = user("run", "--json", "--cpu-time", "300ms", "while True: pass", enter=delegation).json
    assert (d["status"], d["cause"]["kind"]) == ("limit", "cpu")
    d = user("run", "--json", "--cpus", "0.3", "--timeout", "1", "while True: pass", enter=delegation).json
    assert d["usage"]["cpu_ns"] / d["usage"]["wall_ns"] < 0.5


def test_delegated_doctor_is_content(user, delegation):
    r = user("doctor", enter=delegation)
    assert r.code == 0, r


def test_delegated_crash_is_swept_by_the_next_start(home, delegation, user):
    p = start("exec", "--", "sleep", "60", **settings(home, {"enter": delegation}))
    try:
        warden, init = wait_running(p)
        os.kill(warden, 9)
        p.communicate(timeout=20)
        assert p.returncode == 125
        assert len(records(home / "run" / "caisson")) == 1
        assert user("exec", "--", "true", enter=delegation).code == 0
        assert records(home / "run" / "caisson") == []
        assert wait_until(lambda: not any(CELL_CGROUP.match(c.name) for d in Place.dirs.values() for c in d.rglob("caisson-*")))
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()


def test_one_users_cells_are_nothing_to_another(user, home):
    """A second user with a state of the first's: refused, and nothing is touched."""
    assert user("exec", "--", "true", cgroup=False).code == 0
    state = home / "run" / "caisson"
    (home / "run").chmod(0o755)
    state.chmod(0o755)
    r = run("exec", "--without", "cgroup", "--state", state, "--", "true", prefix=as_user(USER + 1), binary=home / "bin" / "caisson")
    assert r.code == 125 and str(state) in r.lines()[-1]
    assert run("exec", "--state", state, "--", "true").code == 125  # not even root: it belongs to someone else
