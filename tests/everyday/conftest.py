# SPDX-License-Identifier: Apache-2.0
"""conftest.py - One daemon for the whole battery (world.py), and the counts by group at the end.

$CAISSON_EVERYDAY_IMAGES names the images, separated by spaces: `host` and names in the store $CAISSON_EVERYDAY_STORE.
"""
import importlib.util
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SERVE = HERE.parent / "serve"
sys.path[:0] = [str(HERE), str(SERVE)]

_spec = importlib.util.spec_from_file_location("serve_conftest", SERVE / "conftest.py")
_serve = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_serve)
globals().update({name: what for name, what in vars(_serve).items() if name.startswith("pytest_") and name != "pytest_terminal_summary"})
deadline = _serve.deadline

from world import World, load  # noqa: E402

ORDER = ("passed", "failed", "error", "skipped")
GROUPS = {}  # the name of a test -> its image and group


def pytest_generate_tests(metafunc):
    if "case" not in metafunc.fixturenames:
        return
    table = load()
    images = os.environ.get("CAISSON_EVERYDAY_IMAGES", "host").split()
    params = []
    for image, case in ((image, case) for image in images for case in table if case.image in ("", image)):
        name = "%s-%s-%s" % (image.replace("/", "."), case.group, case.name)
        GROUPS[name] = image, case.group
        params.append(pytest.param(image, case, id=name, marks=[pytest.mark.quick] if case.quick else []))
    metafunc.parametrize("image, case", params)


@pytest.fixture(scope="session")
def world(pytestconfig):
    w = World(pytestconfig.serve_dir, packages="quick" not in (pytestconfig.option.markexpr or ""))
    yield w
    w.close()


def pytest_terminal_summary(terminalreporter):
    """The reason of each skip, then the counts by image and group."""
    _serve.pytest_terminal_summary(terminalreporter)
    counts = {}
    for kind in ORDER:
        for report in terminalreporter.stats.get(kind, []):
            group = GROUPS.get(report.nodeid.partition("[")[2][:-1])
            if group and (report.when == "call" or kind != "passed"):
                counts.setdefault(group, dict.fromkeys(ORDER, 0))[kind] += 1
    counts["all", ""] = {kind: sum(c[kind] for c in counts.values()) for kind in ORDER}
    for (image, group), c in counts.items():
        failed = c["failed"] + c["error"]
        terminalreporter.write_line("%-28s %4d passed %4d failed %4d skipped" % (" ".join((image, group)), c["passed"], failed, c["skipped"]))
