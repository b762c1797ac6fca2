# SPDX-License-Identifier: Apache-2.0
"""kernel_lib.py - The host's side of a kernel, for tests: starts a driver, exchanges JSON lines with it, keeps its output.

One thread and one select: before a control message is looked at, 1 and 2 are read until they are empty. All that a kernel wrote
before a message is therefore in `stdout` and `stderr` when the message is seen, as in the real host.
"""
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

GUEST = Path(__file__).resolve().parents[2] / "src" / "guest"
TIMEOUT_S = 60  # a bound for what never happens; nothing is expected to come near it


def interpreter(name, *places):
    """The program to test with: $CAISSON_TEST_<NAME>, the first of places that exists, or the first in PATH, or None."""
    asked = os.environ.get("CAISSON_TEST_" + name.upper())
    for path in ([asked] if asked else list(places)):
        if os.access(path, os.X_OK):
            return path
    return None if asked else shutil.which(name)


class KernelError(Exception):
    pass


class Result:
    """The outcome of one execution. `messages` has all of them in order; stdout and stderr as text."""

    def __init__(self, messages, out, err, seconds):
        self.messages, self.stdout, self.stderr, self.seconds = messages, out, err, seconds
        done = messages[-1]
        assert done["type"] == "execution_done"
        self.status, self.exit_code, self.id = done["status"], done["exit_code"], done["id"]
        self.displays = [m for m in messages if m["type"] == "display"]
        self.result = self._one("result")
        self.error = self._one("error")

    def _one(self, kind):
        found = [m for m in self.messages if m["type"] == kind]
        assert len(found) <= 1, "more than one %s: %r" % (kind, found)
        return found[0] if found else None

    @property
    def text(self):
        return self.result["data"]["text/plain"] if self.result else None

    def __repr__(self):
        return "<%s %r stdout=%r stderr=%r result=%r error=%r>" % (
            self.status, self.exit_code, self.stdout, self.stderr, self.result, self.error)


class Kernel:
    def __init__(self, argv, cwd=None, env=None):
        in_r, self.to = os.pipe()
        self.control, out_w = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 50) for fd in (in_r, out_w)]
        os.close(in_r)
        os.close(out_w)

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [str(a) for a in argv], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            pass_fds=(3, 4), preexec_fn=place, start_new_session=True)
        for fd in high:
            os.close(fd)
        self.fds = {self.process.stdout.fileno(): bytearray(), self.process.stderr.fileno(): bytearray(), self.control: bytearray()}
        self.out, self.err = list(self.fds)[:2]
        for fd in list(self.fds) + [self.to]:
            os.set_blocking(fd, False)
        self.open = set(self.fds)
        self.queue = []
        self.count = 0
        self.ready = self.message()
        assert self.ready["type"] == "ready", self.ready

    # --- bytes

    def _drain(self, fd):
        while fd in self.open:
            try:
                data = os.read(fd, 1 << 20)
            except BlockingIOError:
                return
            if not data:
                self.open.discard(fd)
            self.fds[fd] += data

    def _pump(self, timeout_s):
        readable = select.select(list(self.open), [], [], timeout_s)[0]
        if self.control in readable:
            self._drain(self.control)
            *lines, rest = bytes(self.fds[self.control]).split(b"\n")
            self.fds[self.control] = bytearray(rest)
            self.queue += [json.loads(line.decode("utf-8", "strict")) for line in lines]
        self._drain(self.out)
        self._drain(self.err)

    def send(self, message):
        data = (message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n"
        while data:
            select.select([], [self.to], [], TIMEOUT_S)
            try:
                data = data[os.write(self.to, data[:65536]):]
            except BlockingIOError:
                pass

    def message(self, timeout_s=TIMEOUT_S):
        """The next control message."""
        deadline = time.monotonic() + timeout_s
        while not self.queue:
            left = deadline - time.monotonic()
            if left <= 0 or self.control not in self.open:
                raise KernelError("%s; stdout %r, stderr %r" % (
                    "no message in time" if left <= 0 else "the kernel has closed its control channel",
                    bytes(self.fds[self.out][-2000:]), bytes(self.fds[self.err][-2000:])))
            self._pump(left)
        return self.queue.pop(0)

    def wait_stdout(self, text, timeout_s=TIMEOUT_S):
        """Wait until `text` has been printed by the execution that is running."""
        deadline = time.monotonic() + timeout_s
        while text.encode() not in self.fds[self.out]:
            if time.monotonic() > deadline or any(m["type"] == "execution_done" for m in self.queue):
                raise KernelError("%r was not printed: %r %r %r" % (
                    text, self.fds[self.out], self.fds[self.err], self.queue))
            self._pump(0.05)

    # --- executions

    def start(self, code, raw=None):
        self.count += 1
        self.id = "%032x" % self.count
        self.started = time.monotonic()
        self.send(raw(self.id) if raw else
                  {"type": "execute", "id": self.id, "code": code, "name": "<execution-%d>" % self.count})

    def finish(self, inputs=(), timeout_s=TIMEOUT_S):
        messages, inputs = [], list(inputs)
        while True:
            m = self.message(timeout_s)
            messages.append(m)
            if m["type"] == "display":
                m["stdout_before"] = self.fds[self.out].decode("utf-8", "replace")
                self.send({"type": "ack"})
            elif m["type"] == "input_request":
                answer = inputs.pop(0) if inputs else {"error": "no input here"}
                answer = {"value": answer} if isinstance(answer, str) else answer
                self.send(dict(answer, type="input_response", id=m["id"]))
            elif m["type"] == "execution_done":
                break
        assert messages[-1]["id"] == self.id
        assert not self.queue, "messages after the end: %r" % self.queue
        text = []
        for fd in (self.out, self.err):
            text.append(self.fds[fd].decode("utf-8", "replace"))
            self.fds[fd].clear()
        return Result(messages, text[0], text[1], time.monotonic() - self.started)

    def run(self, code, inputs=(), timeout_s=TIMEOUT_S):
        self.start(code)
        return self.finish(inputs, timeout_s)

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def interrupt_at_go(self, code, delay_s=0.1):
        """Run code that prints `go` before it is to be interrupted, and goes no further."""
        self.start(code)
        self.wait_stdout("go")
        time.sleep(delay_s)
        self.interrupt()
        r = self.finish()
        assert (r.status, r.exit_code, r.error["name"]) == ("interrupted", 130, "KeyboardInterrupt"), r
        assert "never" not in r.stdout
        return r

    def wait_for(self, condition, timeout_s=TIMEOUT_S):
        """Wait for something that is seen from outside, while the kernel is left alone."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise KernelError("it did not happen in time")
            time.sleep(0.01)

    def is_at_rest(self):
        """Every thread of the process sleeps and no signal is pending: each interrupt that was sent has been handled."""
        for task in Path("/proc/%d/task" % self.process.pid).iterdir():
            status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
            if not status["State"].startswith("S") or int(status["SigPnd"], 16) or int(status["ShdPnd"], 16):
                return False
        return True

    def alive(self):
        return self.process.poll() is None

    def close(self, timeout_s=TIMEOUT_S):
        """End of file on control in: the kernel has to leave. Return: its exit status, None if it had to be killed."""
        if self.to is not None:
            os.close(self.to)
            self.to = None
        try:
            status = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        if self.control is not None:
            for pipe in (self.process.stdout, self.process.stderr):
                pipe.close()
            os.close(self.control)
            self.control = None
        return status
