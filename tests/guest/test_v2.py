# SPDX-License-Identifier: Apache-2.0
"""Cgroup layouts that this machine does not have, on a real kernel in a QEMU guest.

One guest per layout (see run.sh): v2 runs the unit tests and the command line, v1 and hybrid run the
unit tests. A guest that cannot be had (no QEMU, no network for the kernel package) is a skip with
the reason; a guest that does not finish is a failure.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD", HERE.parent.parent / "build"))
UNITS = [BUILD / "tests/unit" / name for name in ("unit-cell-test_cgroup_kernel", "unit-cell-test_cgroup_enter", "unit-warden-test_remains")]
PROGRAMS = [BUILD / name for name in ("caisson", "caisson-warden", "caisson-init")]
MIB = 1 << 20


def guest(layout, files, command, seconds=420):
    """Run a shell line in a guest and return (status, output)."""
    for host in files:
        if not pathlib.Path(host.split(":")[0]).exists():
            pytest.skip(f"{host} is not built")
    argv = [str(HERE / "run.sh"), "-c", layout, "-t", str(seconds)]
    for f in files:
        argv += ["-f", f]
    done = subprocess.run(
        [*argv, "--", "sh", "-c", command],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds + 300, check=False,
    )
    err = done.stderr.decode(errors="replace")
    if done.returncode == 77:
        print(err)
        pytest.skip(err.strip())
    assert done.returncode not in (124, 125), err
    return done.returncode, done.stdout.decode(errors="replace")


def unit(layout):
    return " && ".join(f"CAISSON_TEST_CGROUP={layout} /opt/unit/{u.name}" for u in UNITS)


def unit_files():
    return [f"{u}:/opt/unit/{u.name}" for u in UNITS]


@pytest.fixture(scope="module")
def v2():
    """The unit tests' output, and the sections that cli.sh printed."""
    files = [*unit_files(), f"{HERE / 'cli.sh'}:/cli.sh"]
    files += [f"{p}:/opt/caisson/{p.name}" for p in PROGRAMS]
    status, out = guest("v2", files, unit("v2") + "; echo \"unit status $?\"; sh /cli.sh")
    assert status == 0, out
    head, *rest = re.split(r"^== (\S+)\n", out, flags=re.M)
    cases = {}
    for name, body in zip(rest[::2], rest[1::2]):
        text, _, tail = body.rpartition("-- ")
        cases[name] = (int(tail.split()[0]), text)
    return head, cases


def result(v2, name, status=None):
    """The JSON result of a case, and the exit status that goes with it."""
    code, text = v2[1][name]
    line = [line for line in text.splitlines() if line.startswith("{")]
    assert line, f"{name}: no result in {text!r}"
    r = json.loads(line[-1])
    if status is not None:
        assert r["status"] == status, r
    if r["status"] != "failed":
        assert code == r["exit_code"], (code, r)
    return r


@pytest.mark.parametrize("layout", ["v1", "hybrid"])
def test_unit_v1(layout):
    status, out = guest(layout, unit_files(), unit(layout))
    assert status == 0, out
    assert out.count(f"# site: {layout},") == len(UNITS), out


def test_unit_v2(v2):
    assert "unit status 0" in v2[0], v2[0]
    assert v2[0].count("# site: v2,") == len(UNITS), v2[0]
    assert "[  FAILED  ]" not in v2[0]


def test_hello(v2):
    r = result(v2, "hello", "ok")
    # The cell sees only itself: its cgroup namespace is rooted in its own cgroup.
    assert r["stdout"] == "1000\nhello\n0::/\n"
    assert 0 < r["usage"]["memory_peak"] < 512 * MIB
    assert r["usage"]["cpu_ns"] > 0
    assert result(v2, "status", "error")["exit_code"] == 42


@pytest.mark.parametrize("name", ["memory", "memory-all"])
def test_memory(v2, name):
    r = result(v2, name, "limit")
    assert r["exit_code"] == 137
    assert r["cause"]["kind"] == "memory"
    assert r["cause"]["limit"] == 32 * MIB
    assert 28 * MIB < r["cause"]["peak"] <= 32 * MIB


def test_memory_of_one_process(v2):
    r = result(v2, "memory-one", "ok")
    assert r["stdout"] == "137\n" and r["limits_hit"] == ["memory"]
    r = result(v2, "memory-files", "limit")
    assert r["cause"]["kind"] == "disk" and r["cause"]["limit"] == 24 * MIB


def test_memory_within(v2):
    result(v2, "memory-fits", "ok")


def test_pids(v2):
    r = result(v2, "pids")
    assert "can't fork" in r["stderr"]
    assert r["usage"]["pids_peak"] <= 7  # six and init
    assert "pids" in r["limits_hit"]


def test_cpu_quota(v2):
    r = result(v2, "cpu-quota", "timeout")
    assert r["cause"]["kind"] == "wall"
    assert r["usage"]["throttled_ns"] > 500_000_000
    # 0.2 of 2 s, and what the emulated machine adds to it; without a quota it would be all of them
    assert r["usage"]["cpu_ns"] < 1_400_000_000


def test_cpu_time(v2):
    r = result(v2, "cpu-time", "limit")
    assert r["exit_code"] == 124
    assert r["cause"]["kind"] == "cpu"
    assert r["usage"]["cpu_ns"] >= 1_000_000_000


def test_timeout(v2):
    r = result(v2, "timeout", "timeout")
    assert r["exit_code"] == 124
    assert r["cause"]["kind"] == "wall"


def test_bomb(v2):
    result(v2, "bomb")
    assert result(v2, "after", "ok")["stdout"] == "fine\n"


def test_doctor(v2):
    code, text = v2[1]["doctor"]
    assert code == 0, text
    assert re.search(r"cgroup\b.*\bv2\b", text), text


def test_nothing_left(v2):
    assert v2[1]["left-root"] == (0, "")
    assert v2[1]["left-user"] == (0, "")


def test_user_without_delegation(v2):
    r = result(v2, "user-refused", "failed")
    assert v2[1]["user-refused"][0] == 125
    for word in ("memory, pids, cpu", "uid 1000", "systemd-run --user --scope -p Delegate=yes",
                 "run as root", "--without cgroup"):
        assert word in r["error"]["message"] + r["error"].get("hint", ""), r
    assert result(v2, "user-without", "ok")["stdout"] == "without\n"


def test_user_with_delegation(v2):
    assert result(v2, "user-hello", "ok")["stdout"] == "delegated\n"
    r = result(v2, "user-memory", "limit")
    assert r["cause"]["kind"] == "memory"
    assert result(v2, "user-twice", "ok")["stdout"] == "second\n"
    assert "rmdir" not in "".join(text for _, text in v2[1].values())
