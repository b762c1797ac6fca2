# SPDX-License-Identifier: Apache-2.0
"""_docker_guest.py - The kernel in a container: it runs code, and variables stay. `python3 -c` runs this text; Python 3.8 and later.

A request is a line of JSON on stdin: token, code, language, packages. stdout and stderr are those of the code, of its subprocesses and of
native code. At the end of an execution the kernel writes NUL, the token of the request and NUL to both, and after that a line of JSON to
stdout. Code that finds the token can only forge the result of its own execution. A bash is a child of the kernel, and stays, too.

The client treats everything from here as data of the code.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib
import inspect
import json
import linecache
import os
import stat
import subprocess
import sys
import time
import traceback
import types
from typing import Any, Dict, List, Optional, Tuple

WORKSPACE = "/workspace"
ARTIFACTS_MAX = 100
LOOKED_AT = 1000000
TEXT_MAX = 1 << 20
REALTIME_COARSE = 5  # the clock of the times of files

# Code and answers have descriptors that are closed while code runs: a process in the background would keep them open.
BASH = """
exec 198<&"$1" 199>&"$2"
eval "exec $1<&- $2>&-"
set --
while IFS= read -r -d '' -u 198 _caisson_code; do
    eval "$_caisson_code" 198<&- 199>&-
    echo $? >&199
done
"""

Outcome = Tuple[int, Optional[str]]  # the exit code, and the value of the last expression as text


class Missing(Exception):
    """The image has no interpreter of this language."""


class Python:
    FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def __init__(self) -> None:
        self.main = types.ModuleType("__main__")
        sys.modules["__main__"] = self.main
        sys.path.insert(0, "")
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.count = 0

    def run(self, code: str) -> Outcome:
        self.count += 1
        try:
            value = self.evaluate(code, "<execution %d>" % self.count)
            return 0, None if value is None else repr(value)
        except SystemExit as e:
            if e.code is None or isinstance(e.code, int):
                return (e.code or 0) & 255, None
            print(e.code, file=sys.stderr)
            return 1, None
        except BaseException as e:
            with contextlib.suppress(Exception):  # code has replaced or closed stderr
                self.explain(e)
            return 1, None

    def evaluate(self, code: str, name: str) -> Any:
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree = compile(code, name, "exec", self.FLAGS | ast.PyCF_ONLY_AST, True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        self.part(compile(tree, name, "exec", self.FLAGS, True))
        return self.part(compile(ast.Expression(last.value), name, "eval", self.FLAGS, True)) if last else None

    def part(self, code: types.CodeType) -> Any:
        value = eval(code, self.main.__dict__)
        return self.loop.run_until_complete(value) if code.co_flags & inspect.CO_COROUTINE else value

    @staticmethod
    def explain(exc: BaseException) -> None:
        """Print the traceback, without the frames of this program."""
        tb, here = exc.__traceback__, Python.run.__code__.co_filename
        while tb and tb.tb_frame.f_code.co_filename == here:
            tb = tb.tb_next
        traceback.print_exception(type(exc), exc, tb)


class Bash:
    process: Optional[subprocess.Popen[bytes]] = None

    def start(self) -> None:
        theirs, self.requests = os.pipe()
        answers, back = os.pipe()
        self.answers = os.fdopen(answers)
        try:
            argv = ["bash", "--norc", "--noprofile", "-c", BASH, "bash", str(theirs), str(back)]
            self.process = subprocess.Popen(argv, pass_fds=(theirs, back))
        except FileNotFoundError:
            self.close()
            raise Missing from None
        finally:
            os.close(theirs)
            os.close(back)

    def close(self) -> None:
        os.close(self.requests)
        self.answers.close()

    def run(self, code: str) -> Outcome:
        """If the code ends its shell, the shell's own exit code; the next code then has a new shell."""
        if self.process is None:
            self.start()
        assert self.process is not None
        request = code.encode("utf-8", "surrogatepass") + b"\0"
        with contextlib.suppress(BrokenPipeError):  # the shell was killed in between
            while request:
                request = request[os.write(self.requests, request) :]
        answer = self.answers.readline()
        if answer:
            return int(answer), None
        status = self.process.wait()
        self.process = None
        self.close()
        return status if status >= 0 else 128 - status, None


class Languages:
    """The interpreters, and the directory of installed packages that they use: a new one after each installation."""

    def __init__(self) -> None:
        self.python, self.bash = Python(), Bash()
        self.packages: Optional[str] = None

    def run(self, language: str, code: str) -> Outcome:
        return self.bash.run(code) if language == "bash" else self.python.run(code)

    def use(self, packages: Optional[str]) -> None:
        if packages is None or packages == self.packages:
            return
        if self.packages in sys.path:
            sys.path.remove(self.packages)
        sys.path.insert(1, packages)
        importlib.invalidate_caches()
        self.packages = os.environ["PYTHONPATH"] = packages
        os.environ["PATH"] = packages + "/bin:" + os.environ.get("PATH", "")
        if self.bash.process:
            self.bash.run("export PYTHONPATH=%s PATH=%s/bin:$PATH" % (packages, packages))


def tick() -> int:
    """The time, when the clock of files has gone on: all files before it are older."""
    before = now = time.clock_gettime_ns(REALTIME_COARSE)
    while now == before:
        time.sleep(0.0005)
        now = time.clock_gettime_ns(REALTIME_COARSE)
    return now


def changed(since: int) -> List[Tuple[str, int]]:
    """The files below the workspace whose status has changed since then, and their sizes."""
    found, looked = [], 0
    for where, _, names in os.walk(WORKSPACE):
        for name in names:
            path = os.path.join(where, name)
            try:
                about = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(about.st_mode) and about.st_ctime_ns >= since:
                found.append((os.path.relpath(path, WORKSPACE), about.st_size))
        looked += len(names)
        if looked > LOOKED_AT:
            break
    return sorted(found)[:ARTIFACTS_MAX]


def kernel() -> None:
    requests = os.fdopen(os.dup(0), "rb")
    ends = [os.fdopen(os.dup(n), "wb") for n in (1, 2)]  # code may close its own
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write("500")  # rather this than pid 1
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    languages = Languages()
    for line in requests:
        request = json.loads(line)
        languages.use(request["packages"])
        began = tick()
        report: Dict[str, Any]
        try:
            code, text = languages.run(request["language"], request["code"])
            report = {"exit_code": code, "files": changed(began)}
            if text is not None:
                report.update(result=text[:TEXT_MAX], cut=len(text) > TEXT_MAX)
        except Missing:
            report = {"missing": request["language"]}
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # code has replaced or closed it
                stream.flush()
        for end, more in zip(ends, (json.dumps(report).encode() + b"\n", b"")):
            end.write(b"\0" + request["token"].encode() + b"\0" + more)
            end.flush()


if __name__ == "__main__":
    kernel()
