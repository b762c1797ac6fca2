# SPDX-License-Identifier: Apache-2.0
"""conftest.py - For all suites: what they share can be imported (tests/lib, and the libraries of tests/integ and tests/serve).

$CAISSON_ONLY is a file with names of tests, one per line, and only those are run (tools/steps.sh).
"""
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent / d) for d in ("lib", "serve", "integ")]


def pytest_collection_modifyitems(config, items):
    only = os.environ.get("CAISSON_ONLY")
    if not only:
        return
    names = set(Path(only).read_text().splitlines())
    left_out = [i for i in items if i.nodeid not in names]
    items[:] = [i for i in items if i.nodeid in names]
    config.hook.pytest_deselected(items=left_out)
