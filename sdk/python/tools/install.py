#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""install.py - Build the wheel and install it in an environment that has nothing else.

Nothing is fetched: flit_core, which builds the wheel, is the distribution's, and the library needs nothing. The tests run in that
environment; pytest is the distribution's as well, so its directory comes last in the path there.

usage: install.py DIR     DIR/caisson_sandbox-*.whl, DIR/venv
"""
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
PIP = ["/usr/bin/python3", "-m", "pip", "--quiet", "--disable-pip-version-check"]


def run(*argv: object) -> None:
    subprocess.run([str(a) for a in argv], check=True, stdin=subprocess.DEVNULL)


def main() -> int:
    where = Path(sys.argv[1]).resolve()
    where.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(where / "venv", ignore_errors=True)
    for wheel in where.glob("*.whl"):
        wheel.unlink()
    run(*PIP, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", where, SOURCE)
    wheel, = where.glob("caisson_sandbox-*.whl")
    run("/usr/bin/python3", "-m", "venv", "--without-pip", where / "venv")
    run(*PIP, "--python", where / "venv" / "bin" / "python", "install", "--no-deps", "--no-index", wheel)
    packages, = (where / "venv" / "lib").glob("python3.*/site-packages")
    (packages / "pytest.pth").write_text("/usr/lib/python3/dist-packages\n", encoding="utf-8")
    print(f"sdk: {wheel.name} in {where / 'venv'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
