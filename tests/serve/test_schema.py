# SPDX-License-Identifier: Apache-2.0
"""test_schema.py - The OpenAPI document, by third-party tools: it lints clean, and the daemon conforms to it.

The tools come from PyPI and npm, once, into the build directory; if a registry does not answer, these tests are skipped, with
the reason. schemathesis makes requests from the document, valid and invalid ones, and judges the answers: no 5xx, no
undeclared status, content type, header or body, nothing invalid accepted, and no code that `x-errors` does not have.
`make fuzz-api` runs it for longer, with another seed each time.
"""
import os
import re
import subprocess
from pathlib import Path

import pytest

from process import BIN

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent / "schema"
TOOLS = BIN.parent / "api-tools"
SECONDS = int(os.environ.get("CAISSON_FUZZ_SECONDS", "0"))


def need(which):
    TOOLS.mkdir(exist_ok=True)
    p = subprocess.run([ROOT / "tools" / "api-tools.sh", TOOLS, which], stderr=subprocess.PIPE, text=True)
    if p.returncode:
        pytest.skip(p.stderr.strip())


@pytest.fixture
def document(daemon, tmp_path):
    path = tmp_path / "openapi.json"
    path.write_bytes(daemon.get("/openapi.json").body)
    return path


def run(tmp_path, *argv, **env):
    p = subprocess.run(argv, cwd=tmp_path, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", **env}, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
    return p.returncode, p.stdout


def test_validator(document, tmp_path):
    need("python")
    code, out = run(tmp_path, TOOLS / "venv/bin/openapi-spec-validator", document)
    assert code == 0, out


def test_linter(document, tmp_path):
    need("npm")
    code, out = run(tmp_path, TOOLS / "node_modules/.bin/redocly", "lint", "--config", HERE / "redocly.yaml", document)
    assert code == 0 and "warning" not in out, out


def test_schemathesis(serve, tmp_path):
    need("python")
    d = serve("--pool", "1")
    url = "http://127.0.0.1:%d" % d.port
    how = ["--phases", "coverage,fuzzing,stateful", "--max-time", str(SECONDS)] if SECONDS else \
        ["--phases", "coverage", "--seed", "20261116"]
    code, out = run(tmp_path, TOOLS / "venv/bin/st", "--config-file", HERE / "schemathesis.toml", "run", url + "/openapi.json", "--no-color",
                    "--generation-database", "none", "--warnings", "off", *how, CAISSON_FUZZ_URL=url, SCHEMATHESIS_HOOKS=str(HERE / "hooks.py"))
    print(out[-20000:])
    assert code == 0, re.findall(r"(?ms)^=+ FAILURES.*", out) or out
    selected, of = map(int, re.search(r"Selected: (\d+)/(\d+)", out).groups())
    assert selected >= of - 1, "schemathesis left operations out"
