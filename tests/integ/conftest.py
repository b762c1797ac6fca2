# SPDX-License-Identifier: Apache-2.0
"""conftest.py - The session: enter the place, leave it; and after every test nothing may be left.

The binary is $CAISSON_BIN, or $CAISSON_BUILD/caisson, or build/caisson. More of the slow loops:
CAISSON_CRASH_LOOPS=1000 (random kills), CAISSON_LEAK_RUNS=10000 (consecutive runs).
"""
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, os.path.dirname(__file__))

import integ_lib  # noqa: E402
import process  # noqa: E402
from integ_lib import Place  # noqa: E402


def pytest_sessionstart(session):
    if not process.BIN.exists():
        pytest.exit("no %s: build first (make), or set CAISSON_BIN" % process.BIN, 2)
    session.config.integ_dir = Path(tempfile.mkdtemp(prefix="caisson-integ-"))
    session.config.integ_dir.chmod(0o755)
    Place.enter(session.config.integ_dir / "state")


def pytest_sessionfinish(session):
    Place.leave()
    if hasattr(session.config, "integ_dir"):
        shutil.rmtree(session.config.integ_dir, ignore_errors=True)


def pytest_collection_modifyitems(items):
    """An ordinary user without delegated cgroups cannot make a whole cell: report this once, instead of failing everywhere."""
    if process.IS_ROOT:
        return
    r = integ_lib.run("exec", "--", "true")
    if r.code == 0:
        return
    reason = "no whole cell for uid %d here (run the tests as root): %s" % (os.geteuid(), r.lines()[-1])
    for item in items:
        if item.path.name != "test_kernel.py":
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_report_header(config):
    return "caisson: %s%s%s" % (process.BIN, " (sanitized)" if process.SANITIZED else "",
                                "" if Place.dirs else ", no cgroups of our own")


def pytest_terminal_summary(terminalreporter):
    """Report each skipped test and the reason."""
    by_reason = {}
    for report in terminalreporter.stats.get("skipped", []):
        by_reason.setdefault(report.longrepr[2], []).append(report.nodeid)
    for reason, nodes in by_reason.items():
        more = " and %d more" % (len(nodes) - 1) if len(nodes) > 1 else ""
        terminalreporter.write_line("not run: %s%s: %s" % (nodes[0], more, reason))


@pytest.fixture(autouse=True)
def nothing_left(request):
    """Every test is a leak test: processes, cgroups, mounts and records must be gone after it."""
    yield
    left = integ_lib.settled()
    if left:
        Place.purge()
    assert not left, "left behind by %s: %s" % (request.node.name, left)


@pytest.fixture
def state(tmp_path):
    """A state directory of the test's own, not made yet."""
    return tmp_path / "state"


@pytest.fixture
def started():
    """A function like integ_lib.start(), whose processes are ended after the test."""
    all_of_them = []

    def begin(*args, **kw):
        p = integ_lib.start(*args, **kw)
        all_of_them.append(p)
        return p

    yield begin
    for p in all_of_them:
        integ_lib.end_process(p)


@pytest.fixture
def shared_dir():
    """A directory that an ordinary user can reach (pytest's own are closed to others)."""
    d = Path(tempfile.mkdtemp(prefix="caisson-integ-"))
    d.chmod(0o755)
    yield d
    shutil.rmtree(d, ignore_errors=True)
