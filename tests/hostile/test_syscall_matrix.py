# SPDX-License-Identifier: Apache-2.0
"""The syscall matrix: in a cell the Linux kernel answers as policy/cell.policy states.

Rows K39 and K43 to K55 of README.md, as far as one call can show them. The policy is read
here a second time, by a parser that shares nothing with the C one, and every number is called from
inside a cell by each entry of the kernel. The same payload then runs without the filter: that is
the positive control, and it also tells an allowed call from a refused one, because an allowed call
must get the very answer that the kernel gives without a filter.
"""
import ctypes
import errno
import os
import platform
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CAISSON = Path(os.environ.get("CAISSON_BUILD", ROOT / "build")) / "caisson"
POLICY = ROOT / "policy" / "cell.policy"
PAYLOAD = Path(__file__).parent / "payloads" / "syscall_matrix.c"

AUDIT_ARCH_X86_64 = 0xC000003E
HIGH = 1 << 32  # a bit above the int that the kernel looks at
MINUS_1 = (1 << 64) - 1

# Kernels since 6.14 and 6.18 let these past every filter (they come from trampolines which the
# kernel puts into traced programs) and refuse them when they come from anywhere else.
PAST_FILTERS = ("uretprobe", "uprobe")

# CLONE_NEWTIME, NS, CGROUP, UTS, IPC, USER, PID, NET
CLONE_NEW = (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the payload is x86-64 assembly"),
]


class Policy:
    """cell.policy, read anew; of cells that can write to a directory of the host if @writable."""

    def __init__(self, text, writable=False):
        self.default = self.foreign = None
        self.writable = writable
        self.rules = {}  # name -> ("allow",) | ("deny", errno) | ("check", [check, ...])
        self.own_numbers = {}
        for words in self._directives(text):
            self._add(words[0], words[1:])
        self.names = self._resolve()  # number -> name

    @staticmethod
    def _directives(text):
        current = []
        for line in text.splitlines():
            words = line.split("#", 1)[0].split()
            if words and not line[0].isspace():
                if current:
                    yield current
                current = words
            else:
                current += words
        yield current

    def _add(self, kind, words):
        if kind == "default":
            self.default = getattr(errno, words[0])
        elif kind == "foreign-abi":
            self.foreign = getattr(errno, words[0])
        elif kind == "number":
            self.own_numbers[words[0]] = int(words[1], 0)
        elif kind in ("check", "check-writable"):
            if kind == "check-writable" and not self.writable:
                return
            self.rules.setdefault(words[0], ("check", []))[1].append(self._check(words[1:]))
        else:
            rule = ("allow",) if kind == "allow" else ("deny", getattr(errno, words.pop(0)))
            assert kind in ("allow", "deny"), kind
            for name in words:
                assert name not in self.rules, f"{name} twice"
                self.rules[name] = rule

    @staticmethod
    def _check(words):
        arg, words = int(words[0][3:]), words[1:]
        mask = 0xFFFFFFFF
        if words[0] == "&":
            mask, words = int(words[1], 0), words[2:]
        negate = words[0] == "not"
        words = words[2:] if negate else words[1:]
        assert words[-2] == "else", words
        values = [int(w, 0) for w in words[:-2]]
        return arg, mask, negate, values, getattr(errno, words[-1])

    def _resolve(self):
        lib = ctypes.CDLL("libseccomp.so.2")
        by_name = lib.seccomp_syscall_resolve_name_arch
        names = {}
        for name in self.rules:
            number = by_name(AUDIT_ARCH_X86_64, name.encode())
            number = number if number >= 0 else self.own_numbers.get(name, -1)
            assert number >= 0, f"no number for {name}"
            assert number not in names, f"{name} and {names.get(number)}"
            names[number] = name
        return names

    def number(self, name):
        return next(n for n, other in self.names.items() if other == name)

    def decide(self, abi, number, args):
        """0 for allowed, otherwise the errno."""
        if abi != "x86_64" or number & 0xFFFFFFFF >= 0x40000000:
            return self.foreign
        rule = self.rules.get(self.names.get(number & 0xFFFFFFFF))
        if rule is None:
            return self.default
        if rule[0] == "deny":
            return rule[1]
        for arg, mask, negate, values, refusal in rule[1] if rule[0] == "check" else ():
            if ((args[arg] & mask) in values) == negate:
                return refusal
        return 0


@pytest.fixture(scope="module")
def policy():
    return Policy(POLICY.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def payload_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("payload")
    subprocess.run(
        ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-static", "-o", directory / "syscall_matrix",
         PAYLOAD], check=True)
    directory.chmod(0o755)
    return directory


def in_cell(payload_dir, *args, options=()):
    """The payload's lines from inside a cell, as lists of words."""
    command = [CAISSON, "exec", "--pids", "64", "--timeout", "60", *options,
               "--mount", f"{payload_dir}:/payload:ro", "--", "/payload/syscall_matrix", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def sweep(payload_dir, options=()):
    """{(abi, number): result} for every number."""
    result = {(abi, int(nr)): what for abi, nr, what in in_cell(payload_dir, options=options)}
    assert len(result) == 3 * 640, "the payload stopped half way"
    return result


@pytest.fixture(scope="module")
def filtered(payload_dir):
    return sweep(payload_dir)


@pytest.fixture(scope="module")
def control(payload_dir):
    return sweep(payload_dir, options=("--without", "seccomp"))


def name_of(policy, number):
    return f"{number} ({policy.names.get(number, 'not listed')})"


def test_foreign_entries(policy, filtered):
    """Every number by int 0x80, and every number with the x32 bit."""
    wrong = [f"{abi} {nr}: {what}" for (abi, nr), what in filtered.items()
             if abi != "x86_64" and what != str(policy.foreign)]
    assert not wrong, wrong


def test_unlisted_numbers(policy, filtered):
    """Numbers that the policy does not list, to well above the newest, get the default."""
    highest = max(policy.names)
    unlisted = {nr: what for (abi, nr), what in filtered.items()
                if abi == "x86_64" and nr not in policy.names}
    assert all(nr in unlisted for nr in range(highest + 1, highest + 65))
    wrong = [f"{nr}: {what}" for nr, what in unlisted.items() if what != str(policy.default)]
    assert not wrong, wrong


def test_denied_numbers(policy, filtered):
    """Exactly the errno of the policy, nothing else."""
    wrong = []
    for number, name in policy.names.items():
        rule, what = policy.rules[name], filtered["x86_64", number]
        if rule[0] == "deny" and what != str(rule[1]):
            if name in PAST_FILTERS:
                print(f"{name}: {what}; this kernel answers it before any filter")
            else:
                wrong.append(f"{name_of(policy, number)}: {what}, the policy says {rule[1]}")
    assert not wrong, wrong


def test_allowed_numbers(policy, filtered, control):
    """Allowed calls reach the Linux kernel: they get the same answers as without a filter."""
    wrong, absent = [], []
    for number, name in policy.names.items():
        if policy.rules[name][0] == "deny":
            continue
        what, without = filtered["x86_64", number], control["x86_64", number]
        if policy.rules[name][0] == "check":  # of the sweep's arguments, which are all -1
            refusal = policy.decide("x86_64", number, (MINUS_1,) * 6)
            if refusal and what == str(refusal):
                continue
        if what != without:
            wrong.append(f"{name_of(policy, number)}: {what}, without the filter {without}")
        elif what == str(errno.ENOSYS):
            absent.append(name)
    print("allowed, and not in this kernel:", " ".join(absent) or "none")
    assert not wrong, wrong


def test_positive_control(policy, control):
    """Without the filter the payload reaches the calls that the filter refuses."""
    for name in ("io_uring_setup", "keyctl", "ptrace", "bpf", "userfaultfd", "perf_event_open",
                 "open_by_handle_at", "setns", "clone3"):
        what = control["x86_64", policy.number(name)]
        refusal = policy.decide("x86_64", policy.number(name), (MINUS_1,) * 6)
        assert what not in (str(errno.ENOSYS), str(refusal)), f"{name}: {what} without a filter"
    assert control["i386", 20] == "0", "getpid by int 0x80: is 32-bit emulation off?"
    if control["x32", policy.number("getpid")] != "0":
        print("x32: this kernel is built without it (getpid gives "
              f"{control['x32', policy.number('getpid')]}), so its rows have no positive control")


# Arguments which a checked call can be made with, whatever the checked one is: if it gets through,
# the kernel finds a bad descriptor or address.
SAFE_ARGS = {
    "mmap": (0, 4096, 0, 0x22, MINUS_1, 0),
    "memfd_create": (MINUS_1, 0, 0, 0, 0, 0),
    "shmget": (0, 0, 0, 0, 0, 0),
    "madvise": (0, 0, 0, 0, 0, 0),
    "chmod": (MINUS_1, 0, 0, 0, 0, 0),
    "fchmod": (MINUS_1, 0, 0, 0, 0, 0),
    "fchmodat": (MINUS_1, MINUS_1, 0, 0, 0, 0),
    "fchmodat2": (MINUS_1, MINUS_1, 0, 0, 0, 0),
    "creat": (MINUS_1, 0, 0, 0, 0, 0),
    "open": (MINUS_1, 0, 0, 0, 0, 0),
    "openat": (MINUS_1, MINUS_1, 0, 0, 0, 0),
    "prlimit64": (0, MINUS_1, 0, 0, 0, 0),
    "mknod": (MINUS_1, 0, 0, 0, 0, 0),
    "mknodat": (MINUS_1, MINUS_1, 0, 0, 0, 0),
    "clone": (17, 0, 0, 0, 0, 0),
    "personality": (0, 0, 0, 0, 0, 0),
    "prctl": (0, 0, 0, 0, 0, 0),
    "seccomp": (1, 0, MINUS_1, 0, 0, 0),
    "socket": (1, 1, 0, 0, 0, 0),
    "socketpair": (1, 1, 0, MINUS_1, 0, 0),
    "setsockopt": (MINUS_1, 6, 0, 0, 0, 0),
    "ioctl": (MINUS_1, 0, 0, 0, 0, 0),
    "fcntl": (MINUS_1, 1, 0, 0, 0, 0),
    "ptrace": (1, MINUS_1, 0, 0, 0, 0),
    "process_vm_readv": (MINUS_1, 0, 0, 0, 0, 0),
    "process_vm_writev": (MINUS_1, 0, 0, 0, 0, 0),
}


def around(policy, name):
    """Calls of @name with one checked argument on, beside and above each value of its checks."""
    for arg, mask, _, values, _ in policy.rules[name][1]:
        base = SAFE_ARGS[name][arg]
        tries = {base, base | HIGH}
        if mask != 0xFFFFFFFF:
            bits = [1 << bit for bit in range(32) if mask >> bit & 1]
            tries |= {base & ~mask | bit for bit in bits} | {base & ~mask | mask}
            tries |= {base & ~mask | value for value in values}
        else:
            tries |= {(value + step) & 0xFFFFFFFF for value in values for step in (-1, 0, 1)}
        for value in sorted(tries | {t | HIGH for t in tries}):
            yield policy.number(name), SAFE_ARGS[name][:arg] + (value,) + SAFE_ARGS[name][arg + 1:]


def checked_calls(policy):
    """Every call that the conditional rules are judged by."""
    calls = []
    for name, rule in policy.rules.items():
        if rule[0] == "check":
            assert name in SAFE_ARGS, f"add to SAFE_ARGS how to call {name} without harm"
            calls += around(policy, name)
    socket, socketpair = policy.number("socket"), policy.number("socketpair")
    for family in (*range(51), 0xFFFF, HIGH + 16, HIGH + 2):
        for kind in (0, 1, 2, 3, 4, 5, 6, 10, 0x80001, 0x80803, HIGH + 3):
            for protocol in (0, 1, 6, 17, 33, 58, 132, 136, 255, 262):
                calls.append((socket, (family, kind, protocol, 0, 0, 0)))
            calls.append((socketpair, (family, kind, 0, MINUS_1, 0, 0)))
    for netlink in range(24):  # NETLINK_ROUTE, XFRM, NETFILTER, AUDIT, KOBJECT_UEVENT and the rest
        calls.append((socket, (16, 3, netlink, 0, 0, 0)))
    calls += [(policy.number("prctl"), (option, 0, 0, 0, 0, 0)) for option in range(100)]
    calls.append((policy.number("ptrace"), (0, 0, 0, 0, 0, 0)))  # PTRACE_TRACEME
    calls.append((policy.number("ptrace") | HIGH, (0, 0, 0, 0, 0, 0)))  # the kernel takes an int
    calls += [(nr, (0,) * 6) for nr in (0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, MINUS_1)]
    return list(dict.fromkeys(calls))


def make_calls(payload_dir, calls, options=()):
    text = "".join("x86_64 " + " ".join(hex(n) for n in (nr, *args)) + "\n" for nr, args in calls)
    (payload_dir / "calls").write_text(text, encoding="ascii")
    lines = in_cell(payload_dir, "/payload/calls", options=options)
    assert len(lines) == len(calls), "the payload stopped half way"
    return [line[-1] for line in lines]


@pytest.fixture(scope="module")
def checked(policy, payload_dir):
    """{(number, args): (result, result without the filter)} for all of checked_calls()."""
    calls = checked_calls(policy)
    inside = make_calls(payload_dir, calls)
    without = make_calls(payload_dir, calls, options=("--without", "seccomp"))
    return dict(zip(calls, zip(inside, without)))


def test_checked_arguments(policy, checked):
    """Sockets, clone flags, terminal ioctls, personality, prctl: each value as in the policy."""
    wrong, told_apart = [], set()
    for (number, args), (what, without) in checked.items():
        want = policy.decide("x86_64", number, args)
        name = policy.names.get(number & 0xFFFFFFFF, "not listed")
        if what != (str(want) if want else without):
            wrong.append(f"{name}{tuple(map(hex, args))}: {what}, the policy says "
                         f"{want or 'allowed'}, without the filter {without}")
        if want and what != without:
            told_apart.add(name)
    print(f"{len(checked)} calls; refusals that only the filter explains: {sorted(told_apart)}")
    assert not wrong, "\n".join(wrong[:40])
    for name in ("socket", "ioctl", "ptrace", "prctl", "madvise", "setsockopt", "personality"):
        assert name in told_apart, f"{name}: refused without a filter just the same"


def test_cells_that_can_write_to_the_host(payload_dir, tmp_path):
    """They have a filter of their own: the set-group-id bit is refused, in a plain cell it is not."""
    strict = Policy(POLICY.read_text(encoding="utf-8"), writable=True)
    calls = [call for name in ("chmod", "fchmod", "fchmodat", "fchmodat2", "creat", "open", "openat", "mknod", "mknodat")
             for call in around(strict, name)]
    inside = make_calls(payload_dir, calls, options=("--mount", f"{tmp_path}:/w:rw"))
    plain = make_calls(payload_dir, calls)
    without = make_calls(payload_dir, calls, options=("--without", "seccomp"))
    loose = Policy(POLICY.read_text(encoding="utf-8"))
    wrong = [f"{strict.names[nr]}{tuple(map(hex, args))}: {what}" for rules, got in ((strict, inside), (loose, plain))
             for (nr, args), what, free in zip(calls, got, without) if what != (str(rules.decide("x86_64", nr, args) or free))]
    assert not wrong, wrong
    assert inside != plain, "the two filters differ"


@pytest.mark.parametrize("flag", CLONE_NEW)
def test_no_namespace_by_clone(policy, checked, flag):
    for high in (0, HIGH):
        what, _ = checked[policy.number("clone"), (flag | high | 17, 0, 0, 0, 0, 0)]
        assert what == str(errno.EPERM)


def test_socket_families(policy, checked):
    """Only unix, inet and inet6; netlink, which the kernel would give, is the positive control."""
    results = {args[0]: what for (number, args), what in checked.items()
               if number == policy.number("socket") and args[1:3] == (1, 0)}
    for family in range(51):
        what, without = results[family]
        want = without if family in (1, 2, 10) else str(errno.EAFNOSUPPORT)
        assert what == want, f"family {family}"
    assert [results[family][0] for family in (1, 2)] == ["0", "0"]
    netlink = checked[policy.number("socket"), (16, 3, 0, 0, 0, 0)]
    assert netlink == (str(errno.EAFNOSUPPORT), "0")


@pytest.mark.parametrize("request_number", [0x5412, 0x541C, 0x5423])
def test_terminal_ioctls(policy, checked, request_number):
    """Refused by the filter, not for the bad descriptor; also with a bit the kernel cuts off."""
    for high in (0, HIGH):
        answer = checked[policy.number("ioctl"), (MINUS_1, request_number | high, 0, 0, 0, 0)]
        assert answer == (str(errno.EPERM), str(errno.EBADF))


def test_good_program_afterwards(filtered, control):
    """After all that, a cell still runs an honest program."""
    assert filtered and control
    done = subprocess.run([CAISSON, "exec", "--", "/bin/echo", "fine"], capture_output=True,
                          text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
