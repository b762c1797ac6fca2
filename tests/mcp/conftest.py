# SPDX-License-Identifier: Apache-2.0
"""conftest.py - Daemons as the tests of the daemon have them (tests/serve/conftest.py), and the suite."""
import importlib.util
import sys
from pathlib import Path

import pytest

SERVE = Path(__file__).resolve().parents[1] / "serve"
sys.path[:0] = [str(Path(__file__).resolve().parent), str(SERVE)]

_spec = importlib.util.spec_from_file_location("serve_conftest", SERVE / "conftest.py")
_serve = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_serve)
globals().update({name: what for name, what in vars(_serve).items() if name.startswith("pytest_")})
deadline = _serve.deadline

from process import BIN  # noqa: E402
from serve_lib import Daemon, with_fixtures  # noqa: E402
from suite_lib import NotHere, Suite  # noqa: E402


@pytest.fixture(scope="session")
def suite():
    try:
        return Suite(BIN.parent / "mcp-suite")
    except NotHere as e:
        pytest.skip("the conformance suite is not here: %s" % e)


@pytest.fixture(scope="module")
def conforming(pytestconfig):
    """A daemon with the fixtures of the suite."""
    d = Daemon(pytestconfig.serve_dir, binary=with_fixtures(pytestconfig.serve_dir))
    try:
        yield d
        d.stop()
    finally:
        d.kill()
