# SPDX-License-Identifier: Apache-2.0
"""conftest.py - Around every hostile test: guard, snapshot, attack, known-good program, compare."""
import re
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lib  # noqa: E402
from guard import GuardError  # noqa: E402
from process import deadline  # noqa: E402

TEST_SECONDS = 180


def catalogue_gaps(rows, here):
    """Tests of the directory @here that have no row in the text @rows of README.md, and rows that name a test that does not exist."""
    listed = set()
    for part in re.split(r"[|;]", rows):
        file, *names = re.findall(r"`(tests/\w+/test_\w+\.py|test_\w+)(?:\.py)?`", part) or [""]
        listed |= {(file, n) for n in names}
    there = {(f.stem, n) for f in here.glob("test_*.py") for n in re.findall(r"(?m)^def (test_\w+)", f.read_text())}
    listed = {(f, n) for f, n in listed if "/" not in f}
    return [f"{f}.py: {n} has no row" for f, n in sorted(there - listed)] + [f"{f}.py: {n} does not exist" for f, n in sorted(listed - there)]


def pytest_configure(config):
    gaps = catalogue_gaps((lib.HERE / "README.md").read_text(), lib.HERE)
    if gaps:
        raise pytest.UsageError("tests/hostile/README.md and the tests differ:\n  " + "\n  ".join(gaps))
    config.addinivalue_line("markers", "quick: part of `make test`")
    config.addinivalue_line("markers", "slow: only in `make hostile`")
    if "s" not in config.option.reportchars:
        config.option.reportchars += "s"  # no skip without a printed reason


# Tests that a sanitized program cannot pass: it has no filter, stays dumpable, handles signals that pid 1 otherwise ignores, and
# ends when its own runtime has no memory.
NOT_SANITIZED = {"test_front_and_warden_posture", "test_kill_everything", "test_no_memory_for_the_front", "test_64_mib_for_the_whole_daemon"}


def pytest_collection_modifyitems(items):
    for item in items:
        if lib.SANITIZED and item.originalname in NOT_SANITIZED:
            item.add_marker(pytest.mark.skip(reason="not for sanitized programs: no filter, other signals, other memory"))


def pytest_report_header():
    return f"caisson: {lib.CAISSON}{' (sanitized: its memory is not judged)' if lib.SANITIZED else ''}"


def pytest_sessionstart(session):
    if session.config.option.collectonly:
        return
    if not lib.CAISSON.exists():
        pytest.exit(f"hostile: {lib.CAISSON} is not built: run make", returncode=2)
    try:
        lib.session()
    except GuardError as e:
        pytest.exit(f"hostile: no outer guard, so nothing hostile is run: {e}", returncode=2)
    try:
        prove_guard()
    except AssertionError as e:
        lib.SESSION.stop()
        pytest.exit(f"hostile: the outer guard does not hold: {e}", returncode=2)


def prove_guard():
    """A cell must be inside the guard in every hierarchy; so must a process that the suite starts."""
    c = lib.start(code="import time; time.sleep(20)")
    try:
        guests = c.until_running()
        for pid in (c.pid, c.warden_pid, c.init_pid, *guests):
            assert lib.session().guard.holds(pid), \
                f"process {pid} is in {lib.own_paths(pid)}, not below {lib.session().guard.name}"
    finally:
        c.signal(signal.SIGTERM)
        c.wait(10)
    inside = lib.control(["/bin/cat", "/proc/self/cgroup"])
    assert f"/{lib.session().guard.name}/control-" in inside.stdout.decode(), inside


def pytest_sessionfinish():
    if lib.SESSION:
        lib.SESSION.stop()


def pytest_terminal_summary(terminalreporter):
    if not lib.SESSION or not lib.SESSION.layers:
        return
    terminalreporter.section("which layer stopped it")
    for test, first, second in lib.SESSION.layers:
        terminalreporter.write_line(f"{test:44} {first}" + (f"; then {second}" if second else ""))


@pytest.fixture
def stopped_by(request):
    """Record the layer that stopped the attack, and the one that would have stopped it otherwise."""
    def say(first, second=""):
        lib.session().layers.append((request.node.name.removeprefix("test_"), first, second))
    return say


@pytest.fixture(autouse=True)
def hostile_test(request):
    """Snapshot, test, known-good program, comparison. A test that hangs is interrupted."""
    with deadline(request.node.name, TEST_SECONDS):
        before = lib.snapshot()
        yield
        lib.good_after()
        lib.assert_same(before)
