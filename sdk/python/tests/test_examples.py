# SPDX-License-Identifier: Apache-2.0
"""test_examples.py - Everything in examples/, run as a reader would run it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from extras_lib import EXAMPLES, run_with

from caisson.executor import SandboxExecutor
from caisson.session_config import VARIABLES

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "sdk-executor.md"


def names(daemon):
    return [s["name"] for s in daemon.get("/v1/sandboxes").json["sandboxes"]]


@pytest.fixture
def example(url, daemon):
    """Run one of them, or a few lines beside it; returns its output."""

    def run(*argv, module=None, code=0):
        p = run_with(module, "-W", "error::ResourceWarning", *argv, CAISSON_URL=url)
        assert p.returncode == code and "ResourceWarning" not in p.stderr, p.stderr
        assert names(daemon) == [], "nothing is left"
        return p.stdout

    return run


def test_agent_tool(example):
    assert example("agent_tool.py", "print('hi'); sum(n * n for n in range(10))") == "hi\n=> 285\n"
    said = example("-c", (
        "from agent_tool import *\n"
        "with SandboxExecutor() as e:\n"
        "    tool = PythonTool(e, most=200)\n"
        "    print(tool.handle('run_python', json.dumps({'code': 'x = 20'})))\n"
        "    print(tool.handle('run_python', json.dumps({'code': 'x + 1'})))\n"
        "    print(tool.handle('run_python', json.dumps({'code': 'x / 0'})).splitlines()[-1])\n"
        "    print(tool.handle('run_python', '{'))\n"
        "    print(tool.handle('other', '{\"code\": \"1\"}'))\n"
        "    print(len(tool.run_python('print(\"x\" * 10000)')) < 300)\n"
    ))  # fmt: skip
    assert said.splitlines() == [
        "[no output]",
        "=> 21",
        "ZeroDivisionError: division by zero",
        "error: the arguments must be a JSON object with the field code",
        "error: there is one tool, run_python, and code is text",
        "True",
    ]


def test_agent_loop(example):
    assert example("agent_loop.py") == "The median price is 13.35.\n"


def test_notebook(example, tmp_path):
    out = tmp_path / "out.ipynb"
    example("run_notebook.py", "analysis.ipynb", out)
    notebook = json.loads(out.read_text())
    code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert code[0]["outputs"] == [{"output_type": "stream", "name": "stdout", "text": "5 orders\n"}]
    assert code[1]["outputs"][0]["data"]["text/plain"] == "{'mean': 130.52, 'max': 201.75}" and code[1]["execution_count"] == 2
    assert code[2]["outputs"][0]["data"]["text/markdown"] == "**best day:** fri"
    nbformat = pytest.importorskip("nbformat", reason="Jupyter's nbformat is not installed here")
    nbformat.validate(nbformat.reads(out.read_text(), as_version=4))


@pytest.mark.slow
def test_notebook_that_fails(example, tmp_path):
    notebook = json.loads((EXAMPLES / "analysis.ipynb").read_text())
    notebook["cells"][2]["source"] = ["1 / 0"]
    (tmp_path / "bad.ipynb").write_text(json.dumps(notebook))
    example("run_notebook.py", tmp_path / "bad.ipynb", code=1)
    cells = json.loads((tmp_path / "bad.ipynb").read_text())["cells"]
    assert cells[2]["outputs"][0]["ename"] == "ZeroDivisionError" and cells[3]["outputs"] == []


@pytest.mark.slow
def test_the_same_notebook_with_nbclient(url, daemon, tmp_path):
    """Jupyter's own client, with the daemon as the gateway."""
    for module in ("nbclient", "jupyter_server.gateway.managers", "nbformat"):
        pytest.importorskip(module, reason="%s is not installed here" % module)
    lines = (
        "import sys, json, nbformat\n"
        "from jupyter_server.gateway.managers import GatewayClient, GatewayKernelManager\n"
        "from nbclient import NotebookClient\n"
        "GatewayClient.instance().url = sys.argv[1]\n"
        "nb = nbformat.read(sys.argv[2], as_version=4)\n"
        "NotebookClient(nb, kernel_manager_class=GatewayKernelManager, kernel_name='python3', timeout=60).execute()\n"
        "print(json.dumps([c.get('outputs') for c in nb.cells if c.cell_type == 'code']))\n"
    )
    p = subprocess.run([sys.executable, "-c", lines, url, str(EXAMPLES / "analysis.ipynb")], capture_output=True, text=True, timeout=120)
    assert p.returncode == 0, p.stderr
    outputs = json.loads(p.stdout.splitlines()[-1])
    # A line may come in two messages, and this client keeps them apart.
    assert "".join(o["text"] for o in outputs[0]) == "5 orders\n" and outputs[2][0]["data"]["text/markdown"] == "**best day:** fri"


@pytest.mark.slow
def test_smolagents(example):
    said = example("smolagents_agent.py", module="smolagents").splitlines()[-4:]  # smolagents prints errors of the code before
    assert said[0] == "42 {2, 3, 5}" and [line.rpartition(": ")[2] for line in said[1:]] == ["True"] * 3


def test_the_documentation(url, daemon, monkeypatch):
    monkeypatch.setenv("CAISSON_URL", url)
    monkeypatch.delenv("CAISSON_TOKEN", raising=False)
    text, space = DOCUMENT.read_text(encoding="utf-8"), {}
    for code in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        exec(compile(code, DOCUMENT.name, "exec", dont_inherit=True), space)
    assert names(daemon) == []
    for name in VARIABLES:
        assert "COREASON_SANDBOX_%s`" % name in text or "`_%s`" % name in text, name
    for name in (n for n in dir(SandboxExecutor) if not n.startswith("_") and n not in ("close", "kernel_id")):
        assert re.search(r"`(\w+\.)?%s\b" % name, text), name
    for path in DOCUMENT.parents[1].glob("sdk/python/examples/*"):
        assert path.name.startswith("__") or "`%s`" % path.name in text, path
