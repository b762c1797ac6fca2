# SPDX-License-Identifier: Apache-2.0
"""extras_lib.py - Other people's libraries, for tests of what works together with them.

They are in the Python that runs the tests, or in the environment that `make sdk-full` makes (tools/extras.sh).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import caisson

LIBRARY = Path(caisson.__file__).resolve().parents[1]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
EXTRAS = Path(os.environ.get("CAISSON_BUILD", "build")).resolve() / "sdk" / "extras" / "bin" / "python"


def python_with(module):
    """A Python that has a module."""
    for python in (sys.executable, str(EXTRAS)):
        if os.path.exists(python) and subprocess.run([python, "-c", "import " + module], capture_output=True).returncode == 0:
            return python
    pytest.skip("%s is not installed here; make sdk-full brings it where PyPI answers" % module)


def run_with(module, *argv, **env):
    """Run a Python that has a module, this library and the examples."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (EXAMPLES, LIBRARY))), **env}
    python = python_with(module) if module else sys.executable
    return subprocess.run([python, *map(str, argv)], env=env, cwd=EXAMPLES, capture_output=True, text=True, timeout=120)
