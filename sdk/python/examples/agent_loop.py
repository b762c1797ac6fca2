# SPDX-License-Identifier: Apache-2.0
"""agent_loop.py - An agent without a framework: a model writes code, the sandbox runs it, the model sees the result, until it answers.

The model here is a script, so that this runs without one: any function that takes the messages so far and returns the next one can be
put in its place. A reply with a ```python block is an action; one without is the answer.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, List

from caisson.executor import SandboxExecutor

Message = Dict[str, str]
Model = Callable[[List[Message]], str]
BLOCK = re.compile(r"```(?:python|py)?\n(.*?)```", re.S)
SYSTEM = (
    "Solve the task with Python: write one ```python block, and you will be told what it printed. Answer without a block when you know."
)


def observe(executor: SandboxExecutor, code: str) -> str:
    run = executor.run(code, timeout=30)
    said = run.output
    if run.text is not None:
        said += "result: %s\n" % run.text
    if run.timed_out:
        said += "it took too long\n"
    elif run.error:
        said += "%s: %s\n" % (run.error.name, run.error.value)
    return said or "no output\n"


def agent(task: str, model: Model, executor: SandboxExecutor, steps: int = 8) -> str:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    for _ in range(steps):
        reply = model(messages)
        messages.append({"role": "assistant", "content": reply})
        block = BLOCK.search(reply)
        if not block:
            return reply
        messages.append({"role": "user", "content": observe(executor, block.group(1))})
    raise RuntimeError("no answer after %d steps" % steps)


def scripted(messages: List[Message]) -> str:
    """Makes a mistake, reads the error, corrects it, answers."""
    last = messages[-1]["content"]
    if "NameError" in last:
        return "I forgot the import.\n```python\nimport statistics\nstatistics.median(prices)\n```"
    if "result:" in last:
        return "The median price is %s." % last.partition("result: ")[2].strip()
    return "```python\nprices = [12.5, 11.0, 19.9, 14.2]\nstatistics.median(prices)\n```"


def main() -> None:
    with SandboxExecutor() as executor:
        print(agent("What is the median of the prices 12.5, 11.0, 19.9 and 14.2?", scripted, executor))


if __name__ == "__main__":
    main()
