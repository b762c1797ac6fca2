# SPDX-License-Identifier: Apache-2.0
"""python_lib.py - Shared by the tests of the Python kernel."""
import subprocess
import sys
import textwrap

from kernel_lib import interpreter

PYTHON = interpreter("python3", "/usr/bin/python3", sys.executable)
VERSION = tuple(map(int, subprocess.run(
    [PYTHON, "-c", "import sys; print(*sys.version_info[:3])"], stdout=subprocess.PIPE, text=True).stdout.split()))


def code(text):
    return textwrap.dedent(text).strip("\n")


def trace(result):
    return "\n".join(result.error["traceback"])


def ok(result):
    assert (result.status, result.exit_code, result.error) == ("ok", 0, None), result
    return result
