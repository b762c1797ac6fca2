# SPDX-License-Identifier: Apache-2.0
"""run_notebook.py - Runs a notebook in a sandbox and writes it back with its outputs. Needs nothing of Jupyter.

    python run_notebook.py analysis.ipynb [executed.ipynb]

The code cells share one interpreter, as in a notebook. The first cell that fails ends it, with its traceback as its output.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List

from caisson.executor import Run, SandboxExecutor


def outputs(run: Run, number: int) -> List[Dict[str, Any]]:
    """A run as the outputs of a cell (nbformat 4)."""
    out: List[Dict[str, Any]] = []
    for name, text in (("stdout", run.stdout), ("stderr", run.stderr)):
        if text:
            out.append({"output_type": "stream", "name": name, "text": text})
    for shown in run.displays:
        out.append({"output_type": "display_data", "data": dict(shown.data), "metadata": dict(shown.metadata)})
    if run.text is not None:
        out.append({"output_type": "execute_result", "execution_count": number, "data": {"text/plain": run.text}, "metadata": {}})
    if run.timed_out or run.error:
        name, value = ("TimeoutError", "it took too long") if run.timed_out or not run.error else (run.error.name, run.error.value)
        lines = list(run.error.traceback) if run.error else []
        out.append({"output_type": "error", "ename": name, "evalue": value, "traceback": lines})
    return out


def execute(notebook: Dict[str, Any], executor: SandboxExecutor, timeout: float = 120) -> bool:
    """Fill in the outputs; whether all cells ran."""
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        run = executor.run(source, timeout=timeout) if source.strip() else Run()
        cell["execution_count"], cell["outputs"] = number, outputs(run, number)
        if not run.ok:
            return False
    return True


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as f:
        notebook = json.load(f)
    with SandboxExecutor() as executor:
        went_well = execute(notebook, executor)
    with open(sys.argv[-1], "w", encoding="utf-8") as f:
        json.dump(notebook, f, indent=1, ensure_ascii=False)
        f.write("\n")
    return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
