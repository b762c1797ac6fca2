# SPDX-License-Identifier: Apache-2.0
"""smolagents_executor.py - smolagents' CodeAgent with its code in a sandbox.

    agent = CodeAgent(tools=[...], model=model, executor=CaissonExecutor())

smolagents requires three things of an executor: it takes tools, takes variables, and runs code. Tools are sent as their source, and run
in the sandbox. The argument of final_answer() stays there as a variable, and is read like every other value: nothing is unpickled.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from smolagents.local_python_executor import CodeOutput, PythonExecutor
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.tools import Tool, get_tools_definition_code
from smolagents.utils import AgentError

from caisson.executor import SandboxExecutor, ValueUnavailable

ENDED = "FinalAnswerException"
FINAL_ANSWER = f"""
class {ENDED}(BaseException):
    pass

def final_answer(*args, _tool=final_answer, **kwargs):
    globals()["_final_answer"] = _tool(*args, **kwargs)
    raise {ENDED}()
"""


class CaissonExecutor(PythonExecutor):
    """Any keyword of SandboxExecutor is one here."""

    def __init__(self, additional_imports: Optional[List[str]] = None, logger: Optional[AgentLogger] = None, **options: Any) -> None:
        self.logger = logger or AgentLogger(level=LogLevel.ERROR)
        self.sandbox = SandboxExecutor(additional_imports or [], **options)

    def send_tools(self, tools: Dict[str, Tool]) -> None:
        have = {name.partition("==")[0] for name in self.sandbox.installed_packages} | {"smolagents"}
        missing = {p for tool in tools.values() for p in tool.to_dict()["requirements"]} - have
        self.sandbox.install_packages(sorted(missing & self._unknown(missing)))
        code = get_tools_definition_code(tools) + (FINAL_ANSWER if "final_answer" in tools else "")
        self.sandbox.run(code).check()

    def _unknown(self, modules: set[str]) -> set[str]:
        """Requirements are names of modules: what the sandbox can import already is not installed again."""
        found = "import importlib.util as u\n[m for m in %r if not u.find_spec(m)]" % sorted(modules)
        return set(self.sandbox(found))

    def send_variables(self, variables: Dict[str, Any]) -> None:
        if variables:
            self.sandbox.send_variables(variables)

    def __call__(self, code_action: str) -> CodeOutput:
        run = self.sandbox.run(code_action)
        if run.error and run.error.name == ENDED:
            return CodeOutput(output=self.sandbox.get("_final_answer"), logs=run.output, is_final_answer=True)
        if not run.ok:
            why = "it took too long" if run.timed_out or not run.error else "\n".join(run.error.traceback) or run.error.name
            raise AgentError("%s\nExecuting code yielded an error:\n%s" % (run.output, why), self.logger)
        try:
            value = run.value
        except ValueUnavailable:
            value = run.text  # the model reads text anyway
        return CodeOutput(output=value, logs=run.output, is_final_answer=False)

    def cleanup(self) -> None:
        self.sandbox.cleanup()
