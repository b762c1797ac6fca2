# SPDX-License-Identifier: Apache-2.0
"""conftest.py - Daemons for the tests: one that most of them share, and others as they need them.

The binary is $CAISSON_BIN, or $CAISSON_BUILD/caisson, or build/caisson; everything else that a daemon
needs lies beside it. After each test the shared daemon must be the same process, healthy and at rest, and a
daemon of the test's own must end on request and leave nothing.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from process import BIN, IS_ROOT, SANITIZED, SLOW, unique, wait_until  # noqa: E402
from serve_lib import Daemon, Place, UsersDaemon  # noqa: E402

import integ_lib  # noqa: E402
import process  # noqa: E402

TEST_SECONDS = 300


# Tests that a sanitized program cannot pass: it has no filter, stays dumpable, and keeps freed memory.
NOT_SANITIZED = {"test_token_file_may_not_be_needed_again", "test_front_has_no_power", "test_front_can_not_be_dumped_or_traced_by_its_own_user",
                 "test_process_that_talks_to_the_registry_has_no_power",
                 "test_memory_and_descriptors_are_steady", "test_slow_reader_gets_everything", "test_websocket_reader_that_stops"}


def pytest_sessionstart(session):
    if session.config.option.collectonly:
        return
    for name in ("caisson", "caisson-keeper", "caisson-front", "caisson-warden", "caisson-init", "guest/kernel.pyz", "guest/enter.so"):
        if not (BIN.parent / name).exists():
            pytest.exit("no %s: build first (make), or set CAISSON_BUILD" % (BIN.parent / name), 2)
    session.config.serve_dir = Path(tempfile.mkdtemp(prefix="caisson-serve-"))
    session.config.serve_dir.chmod(0o755)
    Place.enter(session.config.serve_dir / "none")


def pytest_sessionfinish(session):
    Place.leave()
    if hasattr(session.config, "serve_dir"):
        shutil.rmtree(session.config.serve_dir, ignore_errors=True)


def pytest_collection_modifyitems(items):
    """An ordinary user without delegated cgroups cannot make a whole cell: report this once, instead of failing everywhere."""
    for item in items:
        if SANITIZED and item.originalname in NOT_SANITIZED:
            item.add_marker(pytest.mark.skip(reason="not for sanitized programs: they have no filter and their memory is another"))
    if IS_ROOT or not items:
        return
    r = integ_lib.run("exec", "--", "true")
    if r.code:
        reason = "no whole cell for uid %d here (run the tests as root): %s" % (os.geteuid(), r.lines()[-1])
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_report_header(config):
    return "caisson: %s%s%s" % (BIN, " (sanitized)" if SLOW > 1 else "", "" if Place.dirs else ", no cgroups of our own")


def pytest_terminal_summary(terminalreporter):
    """Report each skipped test and the reason."""
    by_reason = {}
    for report in terminalreporter.stats.get("skipped", []):
        by_reason.setdefault(report.longrepr[2], []).append(report.nodeid)
    for reason, nodes in by_reason.items():
        more = " and %d more" % (len(nodes) - 1) if len(nodes) > 1 else ""
        terminalreporter.write_line("not run: %s%s: %s" % (nodes[0], more, reason))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.went_well = outcome.get_result().passed


@pytest.fixture(autouse=True)
def deadline(request):
    with process.deadline(request.node.name, TEST_SECONDS * SLOW):
        yield


class Shared:
    """The daemon of the whole session; it is replaced when a test has broken it."""
    daemon = None

    @classmethod
    def get(cls, where):
        if cls.daemon is None or not cls.daemon.running():
            cls.daemon = Daemon(where, "--log-level", "debug")
        return cls.daemon


@pytest.fixture(scope="session")
def shared_daemon(pytestconfig):
    yield Shared
    d, Shared.daemon = Shared.daemon, None
    if d:
        d.stop()


@pytest.fixture
def daemon(shared_daemon, pytestconfig):
    d = shared_daemon.get(pytestconfig.serve_dir)
    pid = d.pid
    yield d
    try:
        assert d.running() and d.pid == pid, "the daemon ended: %s" % d.log_text()[-2000:]
        for name in d.sessions():
            d.end_session(name)
        rest = wait_until(lambda: at_rest(d))
        assert rest, "the daemon is not at rest: %r" % d.health()
    except BaseException:
        d.kill()
        raise


def at_rest(d):
    h = d.health()
    return h["status"] == "healthy" and h["sandboxes"]["live"] == h["sandboxes"]["busy"] == h["sandboxes"]["queued"] == 0


@pytest.fixture
def serve(request, pytestconfig):
    """A function that starts a daemon of the test's own, with one kernel in its pool by default: making the usual four takes longer
    than most tests. The daemon is stopped and checked after the test."""
    all_of_them = []

    def begin(*flags, env=None, **kw):
        d = Daemon(pytestconfig.serve_dir, *flags, env={"CAISSON_POOL": "1", **(env or {})}, **kw)
        all_of_them.append(d)
        return d

    yield begin
    well = getattr(request.node, "went_well", False)
    for d in all_of_them:
        if well and d.running():
            try:
                d.stop()
            finally:
                d.kill()
        else:
            d.kill()


@pytest.fixture
def short_dir():
    """A directory with a short path, for sockets, which every user can reach."""
    d = Path(tempfile.mkdtemp(prefix="cs-"))
    d.chmod(0o755)
    yield d
    shutil.rmtree(d, ignore_errors=True)


@pytest.fixture
def users(short_dir, pytestconfig):
    """A function that starts a daemon as an ordinary user, or skips."""
    started = []

    def begin(*flags):
        if not Place.dirs:
            pytest.skip("no cgroups here that could be delegated")
        if subprocess.run([*integ_lib.as_user(), "test", "-x", BIN]).returncode:
            pytest.skip("an ordinary user cannot reach %s" % BIN)
        state = short_dir / unique("state")
        state.mkdir(mode=0o700)
        os.chown(state, integ_lib.USER, integ_lib.USER)
        started.append(UsersDaemon(pytestconfig.serve_dir, "--pool", "0", *flags, state=state))
        return started[-1]

    yield begin
    for d in started:
        d.kill()
