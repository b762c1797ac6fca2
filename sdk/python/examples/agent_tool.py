# SPDX-License-Identifier: Apache-2.0
"""agent_tool.py - Python as a tool for whatever calls functions: a schema for the model, and a function that is given its arguments.

Chat APIs want a JSON schema (TOOL) and hand back a name and JSON arguments (handle). Frameworks that make tools of functions
take run_python itself: its name, its docstring and its annotations are the tool.

    python agent_tool.py 'sum(n * n for n in range(10))'
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict

from caisson.executor import SandboxExecutor

ABOUT = "Run Python code in a sandbox. Variables are kept between calls. Returns what was printed and the value of the last expression."

TOOL: Dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "run_python",
        "description": ABOUT,
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string", "description": "Python code"}},
            "required": ["code"],
            "additionalProperties": False,
        },
    },
}


class PythonTool:
    """One sandbox for one conversation."""

    def __init__(self, executor: SandboxExecutor, most: int = 4000) -> None:
        self._executor, self._most = executor, most

    def run_python(self, code: str) -> str:
        """Run Python code in a sandbox. Variables are kept between calls. Returns what was printed and the value of the last expression."""
        run = self._executor.run(code)
        parts = [run.output.rstrip()]
        if run.timed_out:
            parts.append("[it took too long and was interrupted]")
        elif run.error:
            parts.append("\n".join(run.error.traceback) or "%s: %s" % (run.error.name, run.error.value))
        elif run.text is not None:
            parts.append("=> " + run.text)
        if run.displays:
            parts.append("[%d figure(s)]" % len(run.displays))
        text = "\n".join(part for part in parts if part) or "[no output]"
        return text if len(text) <= self._most else text[: self._most] + "\n[... %d more characters]" % (len(text) - self._most)

    def handle(self, name: str, arguments: str) -> str:
        """Handle a call as a model's API sends it. Errors of the call are returned to the model, which can correct them."""
        try:
            code = json.loads(arguments)["code"]
        except (ValueError, KeyError, TypeError):
            return "error: the arguments must be a JSON object with the field code"
        if name != "run_python" or not isinstance(code, str):
            return "error: there is one tool, run_python, and code is text"
        return self.run_python(code)


def main() -> None:
    with SandboxExecutor() as executor:
        print(PythonTool(executor).run_python(sys.argv[1] if len(sys.argv) > 1 else "6 * 7"))


if __name__ == "__main__":
    main()
