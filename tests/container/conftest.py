# SPDX-License-Identifier: Apache-2.0
"""conftest.py - One engine and one image for all tests. Without them every test is skipped, and the reason is printed."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from container_lib import BUILT, IMAGE, LEAST, ROOT, Container, Engine, NotHere  # noqa: E402


@pytest.fixture(scope="session")
def engine():
    try:
        e = Engine()
    except NotHere as why:
        pytest.skip("no containers here: %s" % why)
    yield e
    e.close()


@pytest.fixture(scope="session")
def image(engine):
    """Built as the documents have it, from the archives of `make container`."""
    if not (BUILT / "caisson.tar").exists():
        pytest.skip("there is no root file system to build the image of: make container")
    engine("build", "-t", IMAGE, ".", cwd=ROOT, timeout=1200)
    return engine


@pytest.fixture(scope="module")
def sandbox(image):
    """The daemon, with the least rights that it works with."""
    with Container(image, *LEAST) as c:
        yield c
