# SPDX-License-Identifier: Apache-2.0
"""python_lib.py - Shared by the tests of the Python kernel."""
import subprocess
import sys
import textwrap

import pytest

from kernel_lib import interpreter

PYTHON = interpreter("python3", "/usr/bin/python3", sys.executable)
VERSION = tuple(map(int, subprocess.run(
    [PYTHON, "-c", "import sys; print(*sys.version_info[:3])"], stdout=subprocess.PIPE, text=True).stdout.split()))

ARGV = [PYTHON, "-I", "-B"]  # no bytecode into the source tree, but that of matplotlib is used


def has(module):
    """Whether the kernels' interpreter can import it; it need not be the one that runs these tests."""
    find = "import importlib.util, sys; sys.exit(importlib.util.find_spec(%r) is None)" % module
    return subprocess.run([PYTHON, "-c", find]).returncode == 0


needs_matplotlib = pytest.mark.skipif(not has("matplotlib"), reason="%s has no matplotlib" % PYTHON)


def code(text):
    return textwrap.dedent(text).strip("\n")


def trace(result):
    return "\n".join(result.error["traceback"])


def ok(result):
    assert (result.status, result.exit_code, result.error) == ("ok", 0, None), result
    return result
