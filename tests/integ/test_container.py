# SPDX-License-Identifier: Apache-2.0
"""test_container.py - caisson in a container: what its engine withholds, part by part, without an engine.

Each test takes one thing away as an engine does, and says that this is a container ($container). tests/container has real ones.
"""
import shlex

import pytest

from filter_lib import install, needs_filters
from integ_lib import Place, as_user, copy_tree, needs_program, needs_root, run

PROFILE = "--security-opt seccomp=dist/container/seccomp.json"
HERE = {"container": "test"}
PIVOT_ROOT = 155


def check_of(r, name):
    return next(c for c in r.json["checks"] if c["name"] == name)


@needs_root
@needs_program("setpriv", "util-linux")
@pytest.mark.parametrize("gone, options, runs", [
    ("-sys_admin,-sys_ptrace", "--cap-add SYS_PTRACE --cap-add SYS_ADMIN", False),
    ("-sys_chroot", "--cap-add SYS_CHROOT", True),  # only services of the daemon need it
    ("-net_raw,-net_admin,-mknod", "", True),
])
def test_capabilities(gone, options, runs):
    prefix, wanted = ["setpriv", "--bounding-set", gone], "start it with %s (docs/container.md)" % options
    c = check_of(run("doctor", "--json", env=HERE, prefix=prefix), "container")
    assert (c["status"], c.get("fix")) == (("missing", wanted) if options else ("ok", None)), c
    r = run("run", "print(6 * 7)", env=HERE, prefix=prefix)
    assert r.out == b"42\n" if runs else r.code == 125 and wanted in r.lines()[0], r
    if options:
        r = run("serve", "--listen", "none", env=HERE, prefix=prefix)
        assert r.code == 125 and wanted in r.lines()[0], r


@needs_root
@needs_filters
def test_filter():
    """Docker's own filter refuses one call that cells need."""
    deny = [(0x20, 0, 0, 0), (0x15, 0, 1, PIVOT_ROOT), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
    r = run("run", "print(6 * 7)", env=HERE, preexec_fn=lambda: install(deny))
    assert r.code == 125 and "start it with %s (docs/container.md)" % PROFILE in r.lines()[0], r


def covered(*more):
    """A prefix: /proc in part covered, in part read-only, and our own cgroups mounted read-only, as an engine does it."""
    steps = ["mount --make-rprivate /", "mount --bind /dev/null /proc/timer_list", "mount --bind /proc/sys /proc/sys", "mount -o remount,bind,ro /proc/sys"]
    for d in Place.dirs.values():
        top = shlex.quote(str(next(p for p in [d, *d.parents] if p.parent.name in ("cgroup", "unified") or p.is_mount())))
        steps += ["mount --bind %s %s" % (shlex.quote(str(d)), top), "mount -o remount,bind,ro %s" % top]
    return ["unshare", "--mount", "sh", "-c", " && ".join(steps) + ' && exec "$@"', "sh", *more]


@needs_root
def test_root_takes_back_what_was_covered():
    if not Place.dirs:
        pytest.skip("cgroup v2 has the limits here: tests/container has this layout in a guest")
    r = run("run", "--json", "--receipt", "print(6 * 7)", env=HERE, prefix=covered())
    assert r.code == 0 and r.json["stdout"] == "42\n", r
    receipt = r.json["receipt"]
    assert receipt["enforced"] and not receipt["missing"] and not receipt["weakened"]
    assert receipt["cgroup"]["memory"] == 512 << 20 and receipt["nested_user_namespaces_max"] == 0
    # Nothing changed for other processes of the container.
    r = run("run", "--json", "print(6 * 7)", env=HERE, prefix=covered("sh", "-c", '"$@" >&2; grep -c " /proc/timer_list .* - devtmpfs" /proc/self/mountinfo', "sh"))
    assert r.out == b"1\n" and b'"stdout":"42' in r.err, r


@needs_root
@needs_program("setpriv", "util-linux")
def test_user_cannot(tmp_path):
    tmp_path.chmod(0o755)
    copy_tree(tmp_path / "bin")
    env = {**HERE, "CAISSON_STATE": None, "XDG_RUNTIME_DIR": None}
    r = run("doctor", "--json", env=env, prefix=covered(*as_user()), binary=tmp_path / "bin/caisson", cwd="/")
    assert check_of(r, "container")["fix"] == "start it with --security-opt systempaths=unconfined (docs/container.md)", r
