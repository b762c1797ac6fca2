# SPDX-License-Identifier: Apache-2.0
"""test_leaks.py - Many runs leave the machine exactly as it was: descriptors, cgroups, mounts, namespaces, directories."""
import concurrent.futures
import os
import shlex
import subprocess
from pathlib import Path

from integ_lib import IN_USERNS, Place, clean_env, hierarchies, leftovers, mounts, needs_program, needs_root, run, settled
from process import BIN, SANITIZED, wait_until

RUNS = int(os.environ.get("CAISSON_LEAK_RUNS", "100" if SANITIZED else "400"))
NAMESPACES = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]


def open_files():
    """File structures that the whole kernel holds; others come and go, hence only the order counts."""
    return int(Path("/proc/sys/fs/file-nr").read_text().split()[0])


def cgroup_tree():
    """Every directory below our own cgroup in every hierarchy."""
    places = list(Place.dirs.values()) or list(hierarchies().values())
    return sorted(str(p) for d in places for p in d.rglob("*") if p.is_dir())


def test_consecutive_runs(tmp_path):
    state = tmp_path / "state"
    assert run("exec", "--state", state, "--", "true").code == 0  # the state directory itself stays
    before = (mounts(), cgroup_tree(), sorted(os.listdir("/proc/self/fd")), sorted(state.rglob("*")))
    files = open_files()
    for i in range(RUNS):
        r = run("exec", "--state", state, "--", "/bin/true")
        assert (r.code, r.out, r.err) == (0, b"", b""), "run %d: %r" % (i, r)
    assert settled(state) == []
    assert (mounts(), cgroup_tree(), sorted(os.listdir("/proc/self/fd")), sorted(state.rglob("*"))) == before
    # One leaked descriptor per run would be RUNS of them.
    assert wait_until(lambda: open_files() - files < max(RUNS // 2, 300)), (files, open_files())


@needs_root
@needs_program("unshare", "util-linux")
def test_directories():
    """With every place empty where programs leave things: afterwards there is the state directory, empty, and the file in which
    daemons agree on host ids."""
    places = ["/var/tmp", "/dev/shm", "/var/lib", "/home", "/root", "/tmp", "/run"]  # mount(8) writes to /run
    empty = "".join("mount -t tmpfs none %s && " % p for p in places)
    # The programs may lie in one of those places, hence the second way to them.
    script = 'mount --bind %s /mnt && %sfor i in 1 2 3; do /mnt/caisson "$@"; done >/dev/null 2>&1; find %s -mindepth 1'
    script %= (shlex.quote(str(BIN.parent)), empty, " ".join(places))
    for args in (["exec", "--", "true"], ["run", "--json", "print(1)"], ["exec", "--timeout", "50ms", "--", "sleep", "9"],
                 ["exec", "--tty", "--", "no-such-program"]):
        p = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *args], env=clean_env(CAISSON_STATE=None),
                           capture_output=True, text=True, timeout=60)
        left = ["/run/caisson", "/run/caisson-ids", "/run/caisson-ids/taken", "/run/caisson/cells"]
        assert (sorted(p.stdout.split()), p.stderr) == (left, ""), args


@needs_root
def test_namespaces_are_given_back():
    """The kernel itself counts: below a limit of a few of each kind many runs can only succeed if each run gives
    all of them back. (The kernel frees network namespaces a little later, hence the margin.)"""
    limit, runs = 50, 120
    limits = ["/proc/sys/user/max_%s_namespaces=%d" % (n, limit) for n in NAMESPACES]
    loop = 'i=0; while [ $i -lt %d ]; do "$0" "$@" || { echo "run $i" >&2; exit 1; }; i=$((i+1)); done' % runs
    r = run("exec", "--", "true", prefix=["/usr/bin/python3", "-c", IN_USERNS, *limits, "--", "sh", "-c", loop])
    assert (r.code, r.err) == (0, b""), r


def test_fifty_runs_eight_at_a_time():
    def one(i):
        return i, run("run", "import os, sys; print(sys.argv[1], os.getpid()); open('/tmp/x', 'w').write(sys.argv[1]);"
                      "print(open('/tmp/x').read()); sys.exit(int(sys.argv[1]) % 5)", i)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i, r in pool.map(one, range(50)):
            assert (r.code, r.err) == (i % 5, b""), r
            assert r.out.split() == [b"%d" % i, b"2", b"%d" % i], r  # its own pid namespace, its own /tmp
    assert leftovers() == []


@needs_root
def test_cells_at_the_same_time_have_ids_of_their_own(started):
    ps = [started("run", "import os, sys; print(open('/proc/self/uid_map').read().split()[1], flush=True); sys.stdin.read()")
          for _ in range(8)]
    bases = [int(p.stdout.readline()) for p in ps]
    assert len(set(bases)) == 8, bases
    assert all(b >= 0x70000000 and b % 65536 == 0 for b in bases)


def test_failures_leak_no_more_than_successes(tmp_path):
    state = tmp_path / "state"
    commands = [["exec", "--", "no-such-program"], ["exec", "--workdir", "/nowhere", "--", "true"], ["run", "raise SystemExit(3)"],
                ["run", "--timeout", "20ms", "import time; time.sleep(9)"], ["run", "--memory", "16M", "x = bytearray(99 << 20)"],
                ["exec", "--mount", "/tmp:/usr/nowhere", "--", "true"], ["exec", "--image", "dir:/usr/share", "--", "true"],
                ["exec", "--tty", "--", "true"], ["exec", "--receipt", "--json", "--", "true"]]
    for verb, *rest in commands * (1 if SANITIZED else 3):
        run(verb, "--state", state, *rest)
    assert settled(state) == []


def test_a_long_run_grows_nothing(started):
    """Ten megabytes in small pieces both ways through one cell: caisson stays as small as it was."""
    p = started("exec", "--", "cat", bufsize=0)

    def rss():
        status = Path("/proc/%d/status" % p.pid).read_text().splitlines()
        return int([line for line in status if line.startswith("VmRSS")][0].split()[1])

    def pump(n):
        for _ in range(n):
            p.stdin.write(b"x" * 8192)
            left = 8192
            while left:
                left -= len(os.read(p.stdout.fileno(), left))

    pump(100)
    before, fds = rss(), len(os.listdir("/proc/%d/fd" % p.pid))
    pump(1200)
    assert rss() - before < 2048 and len(os.listdir("/proc/%d/fd" % p.pid)) == fds
