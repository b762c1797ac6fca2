# SPDX-License-Identifier: Apache-2.0
"""tracer.py - Count the system calls and page faults of running processes, and of all that they start, with ptrace(2).

Theory of operation. One thread seizes the processes and then handles their stops: at each entry of a system call it adds one
to the process's count. Page faults are those that /proc/PID/stat has, read when somebody asks and when the process ends; the
tracer leaves a process that ends, so that its own parent waits for it as ever. Each process has a kind. The caller names the
kinds of those that it has seized; a process that they start gets its kind from `children`, by its parent's kind, and from
`programs` when it executes another program. Counts are added up by kind.

Counts do not depend on how busy the machine is, except where a program waits in steps.
"""
import ctypes
import os
import signal
import threading
import time

SYSCALL, DETACH, SEIZE, INTERRUPT, LISTEN, GETEVENTMSG, GET_SYSCALL_INFO = 24, 17, 0x4206, 0x4207, 0x4208, 0x4201, 0x420e
FORK, VFORK, CLONE, EXEC, EXIT, STOP = 1, 2, 3, 4, 6, 128  # events
OPTIONS = 1 | sum(1 << event for event in (FORK, VFORK, CLONE, EXEC, EXIT))  # 1: system calls stop with SIGTRAP | 0x80
ENTRY = 1  # the op of struct ptrace_syscall_info
WALL, WNOTHREAD = 0x40000000, 0x20000000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, pid, address=0, data=0):
    """Raises ProcessLookupError for a process that has ended, or is not stopped."""
    result = _libc.ptrace(request, pid, address, data)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "process %d" % pid)
    return result


def faults_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
        return int(f.read().rpartition(")")[2].split()[7])


class _Process:
    def __init__(self, kind, faults=0):
        self.kind, self.calls, self.faults = kind, 0, faults  # faults: those counted under another kind already


class Tracer(threading.Thread):
    def __init__(self, kinds, children, programs):
        """kinds: {pid: kind} of the processes to seize; children: {kind of the parent: kind}; programs: the same, by an execve."""
        super().__init__(daemon=True)
        self.kinds, self.children, self.programs = kinds, children, programs
        self.processes = {}
        self.ended = {}  # kind -> [system calls, page faults]
        self.last = time.monotonic()
        self.problem = None
        self.seized = threading.Event()

    # Asked from outside.

    def begin(self):
        """Return when all are seized. Raises OSError if that is not permitted."""
        self.start()
        self.seized.wait()
        if self.problem:
            raise self.problem

    def totals(self):
        """{kind: (system calls, page faults)} so far."""
        sums = {kind: list(counts) for kind, counts in self.ended.items()}
        for pid, process in list(self.processes.items()):
            try:
                faults = faults_of(pid)
            except OSError:  # it is ending
                continue
            counts = sums.setdefault(process.kind, [0, 0])
            counts[0] += process.calls
            counts[1] += faults - process.faults
        return {kind: tuple(counts) for kind, counts in sums.items()}

    def alive(self, kind):
        return sum(process.kind == kind for process in list(self.processes.values()))

    def rests(self, seconds):
        """Whether no process has done anything for so long."""
        return time.monotonic() - self.last > seconds

    # The thread.

    def run(self):
        try:
            for pid, kind in self.kinds.items():
                _ptrace(SEIZE, pid, 0, OPTIONS)
                self.processes[pid] = _Process(kind, faults_of(pid))
                _ptrace(INTERRUPT, pid)
        except OSError as problem:
            self.problem = problem
        self.seized.set()
        while True:
            try:
                pid, status = os.waitpid(-1, WALL | WNOTHREAD)
            except ChildProcessError:
                return
            self.last = time.monotonic()
            if os.WIFSTOPPED(status):
                try:
                    self._stopped(pid, status >> 16, os.WSTOPSIG(status))
                except ProcessLookupError:  # killed meanwhile
                    pass
            else:
                self._count(pid)
                self.processes.pop(pid, None)

    def _process(self, pid):
        return self.processes.setdefault(pid, _Process(None))

    def _stopped(self, pid, event, number):
        process = self._process(pid)
        deliver = 0
        if number == signal.SIGTRAP | 0x80:
            info = ctypes.create_string_buffer(88)
            _ptrace(GET_SYSCALL_INFO, pid, len(info), ctypes.addressof(info))
            process.calls += info.raw[0] == ENTRY
        elif event in (FORK, VFORK, CLONE):
            child = ctypes.c_ulong()
            _ptrace(GETEVENTMSG, pid, 0, ctypes.addressof(child))
            self._process(child.value).kind = self.children.get(process.kind, process.kind)
        elif event == EXEC:
            self._count(pid)
            process.kind = self.programs.get(process.kind, process.kind)
        elif event == EXIT:
            self._count(pid)
            del self.processes[pid]
            _ptrace(DETACH, pid)
            return
        elif event == STOP and number != signal.SIGTRAP:
            _ptrace(LISTEN, pid)
            return
        elif not event:
            deliver = number
        _ptrace(SYSCALL, pid, 0, deliver)

    def _count(self, pid):
        """Add a process's counts to those of its kind; they begin anew."""
        process = self.processes.get(pid)
        if process is None:
            return
        try:
            faults = faults_of(pid)
        except OSError:
            faults = process.faults
        counts = self.ended.setdefault(process.kind, [0, 0])
        counts[0] += process.calls
        counts[1] += faults - process.faults
        process.calls, process.faults = 0, faults
