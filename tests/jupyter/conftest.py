# SPDX-License-Identifier: Apache-2.0
"""conftest.py - Daemons as the tests of the daemon have them (tests/serve/conftest.py)."""
import importlib.util
import sys
from pathlib import Path

SERVE = Path(__file__).resolve().parents[1] / "serve"
sys.path[:0] = [str(Path(__file__).resolve().parent), str(SERVE)]

_spec = importlib.util.spec_from_file_location("serve_conftest", SERVE / "conftest.py")
_serve = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_serve)
globals().update({name: what for name, what in vars(_serve).items() if name.startswith("pytest_")})
deadline, daemon, shared_daemon, serve = _serve.deadline, _serve.daemon, _serve.shared_daemon, _serve.serve
