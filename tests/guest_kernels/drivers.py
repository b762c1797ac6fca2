# SPDX-License-Identifier: Apache-2.0
"""drivers.py - The kernels that are one file for another interpreter: how each starts, and its code for the cases that all share."""
from dataclasses import dataclass

import pytest

from kernel_lib import GUEST, Kernel, interpreter


@dataclass
class Driver:
    name: str
    program: str  # or None, where the machine has no such interpreter
    arguments: list
    keep: str     # sets a variable to "yes"
    show: str     # prints it, or has it as its value
    own_pid: str  # prints the kernel's pid
    loop: str     # prints "go", and never ends
    nothing: str  # an execution without an effect
    tidy: str = ""       # undoes the effects of interrupted code
    lingering: str = ""  # leaves something that would go on
    slow: bool = False   # to start: one kernel serves many tests
    storms: bool = True  # many interrupts of one execution
    rounds: int = 60     # of an interrupt at any moment
    pause: float = 0.0001  # a moment, in seconds: up to 30 times this
    threaded: bool = False  # a thread of its own handles signals, some time after kill() has returned

    @property
    def mark(self):
        return pytest.mark.skipif(not self.program, reason="no %s on this machine" % self.name)

    def start(self, cwd, **kwargs):
        return Kernel([self.program, *self.arguments], cwd=cwd, **kwargs)

    def check_kept(self, k):
        if self.threaded:
            k.wait_for(k.is_at_rest)
        r = k.run(self.show)
        assert (r.stdout or (r.text or "").strip("'"), r.status, r.exit_code) == ("yes", "ok", 0), "the state, or the next execution, was hit: %r" % r


DRIVERS = {d.name: d for d in (
    Driver("bash", interpreter("bash", "/bin/bash", "/usr/bin/bash"), [GUEST / "bash" / "driver.sh"],
           keep="keep() { printf yes; }", show="keep", own_pid="echo $$", loop="echo go; while :; do :; done", nothing=":",
           tidy="set +e; kill $! 2>/dev/null; true", lingering="trap 'echo bye' EXIT; sleep 100 &"),
    Driver("javascript", interpreter("node", "/usr/bin/node"), [GUEST / "javascript" / "driver.js"],
           keep="const keep = 'yes'", show="keep", own_pid="console.log(process.pid)",
           loop="console.log('go'); while (true);", nothing="1", lingering="setInterval(() => {}, 1000); process.on('exit', () => {})",
           rounds=40, threaded=True),
    Driver("r", interpreter("Rscript", "/usr/bin/Rscript"), ["--vanilla", GUEST / "r" / "driver.R"],
           keep="keep <- 'yes'", show="cat(keep)", own_pid="cat(Sys.getpid())", loop="cat('go'); while (TRUE) {}", nothing="1",
           slow=True, storms=False, rounds=200),
)}
