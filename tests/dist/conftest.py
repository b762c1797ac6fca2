# SPDX-License-Identifier: Apache-2.0
"""conftest.py - The files of `make dist`. Tests that need them fail without them; those that need a machine are skipped where it cannot be
had, with the reason."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from dist_lib import NotHere, deb, server_root  # noqa: E402


@pytest.fixture(scope="session")
def package():
    return deb()


@pytest.fixture(scope="session")
def server(package):
    try:
        return server_root(package)
    except NotHere as why:
        pytest.skip("no clean root here: %s" % why)
