# SPDX-License-Identifier: Apache-2.0
"""smolagents_agent.py - A CodeAgent of smolagents with a tool, in a sandbox. Its model is a script, so that it runs without one.

The code that the model writes, and the tool, run in the sandbox; the answer comes back as an object of this process.
"""

from __future__ import annotations

import os
from typing import Any, List

from smolagents import CodeAgent, tool
from smolagents.models import ChatMessage, MessageRole, Model
from smolagents_executor import CaissonExecutor

STEPS = [
    "import os\nprint('in', os.getcwd())\nx = double(n=start)",
    "1 / 0",
    "final_answer({'x': x, 'primes': {2, 3, 5}, 'machine': os.uname().nodename})",
]


class Scripted(Model):
    """Says what it is told to, in order, and remembers what it was asked."""

    def __init__(self, steps: List[str]) -> None:
        super().__init__(model_id="scripted")
        self.steps, self.asked = list(steps), []

    def generate(self, messages: List[Any], stop_sequences: Any = None, **kwargs: Any) -> ChatMessage:
        self.asked.append(str(messages))
        return ChatMessage(role=MessageRole.ASSISTANT, content="Thought: let us see.\n<code>\n%s\n</code>" % self.steps.pop(0))


@tool
def double(n: int) -> int:
    """Twice a number.

    Args:
        n: The number.
    """
    return 2 * n


def main() -> None:
    model = Scripted(STEPS)
    with CodeAgent(tools=[double], model=model, executor=CaissonExecutor(), verbosity_level=0) as agent:
        answer = agent.run("Double it.", additional_args={"start": 21})
    print(answer["x"], answer["primes"])
    print("another machine:", answer["machine"] != os.uname().nodename)
    print("the model saw what its code printed:", "in /workspace" in model.asked[1])
    print("and its mistake:", "ZeroDivisionError" in model.asked[2])


if __name__ == "__main__":
    main()
