# SPDX-License-Identifier: Apache-2.0
"""conftest.py - Kernels for tests: real processes with pipes on 3 and 4, ended after each test.

The interpreters are the machine's; $CAISSON_TEST_PYTHON3=/path runs the tests of the Python kernel with another one.
"""
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from kernel_lib import GUEST, Kernel  # noqa: E402
from python_lib import PYTHON  # noqa: E402

# A process that was started in the background (`&`, nohup) ignores them, and so would every kernel: bash cannot undo that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for sig in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(sig) == signal.SIG_IGN:
        signal.signal(sig, lambda *_: None)


@pytest.fixture(scope="session")
def python_argv(tmp_path_factory):
    """Isolated as in a cell, and its bytecode is compiled once but not into the source tree."""
    return [PYTHON, "-I", "-X", "pycache_prefix=%s" % tmp_path_factory.mktemp("pycache")]


@pytest.fixture
def start_python(tmp_path, python_argv):
    """Starts kernels in a directory of their own; start_python(argv=[...]) runs something else in the same way."""
    kernels = []

    def start(argv=None, **options):
        options.setdefault("cwd", tmp_path)
        kernels.append(Kernel([*python_argv, *(argv or [GUEST / "python"])], **options))
        return kernels[-1]

    yield start
    for kernel in kernels:
        kernel.close()


@pytest.fixture
def kernel(start_python):
    return start_python()


@pytest.fixture(scope="module")
def shared_kernel(tmp_path_factory, python_argv):
    """One kernel for many small cases, none of which may harm the next: this is part of the test."""
    kernel = Kernel([*python_argv, GUEST / "python"], cwd=tmp_path_factory.mktemp("shared"))
    yield kernel
    kernel.close()
