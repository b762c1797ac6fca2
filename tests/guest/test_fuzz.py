# SPDX-License-Identifier: Apache-2.0
"""test_fuzz.py - A system call fuzzer in a cell, on a Linux kernel of its own: a QEMU guest (run.sh).

The fuzzer may find a fault of the Linux kernel, so it never runs on the machine itself. `make soak` runs it for half an hour
(CAISSON_FUZZ_SECONDS=1800); without that variable the test is skipped. The log of the guest's Linux kernel decides, which the cell can
neither read nor write. Two controls come before and after: a planted warning is found in the log, and the fuzzer's calls succeed.
"""
import os
import pathlib
import random
import re
import subprocess

import pytest
from test_v2 import HERE, PROGRAMS, guest

SECONDS = int(os.environ.get("CAISSON_FUZZ_SECONDS", "0"))
TROUBLE = r"WARNING:|BUG:|Oops|general protection fault|Call Trace|rcu.*stall|soft lockup|hung task|KASAN|UBSAN"

SCRIPT = """
log() { dmesg | grep -E '%(trouble)s'; }
mkdir -p /image/bin && cp /bin/busybox /opt/fuzz_calls /image/bin/ && ln -s busybox /image/bin/echo
caisson() { /opt/caisson/caisson exec --image dir:/image --pids 40 --memory 128M "$@"; }
echo "== before"; log
echo 'WARNING: planted by the test' >/dev/kmsg
echo "== planted"; log
dmesg -c >/dev/null
echo "== fuzz"; caisson --timeout %(limit)ds -- /bin/fuzz_calls %(seconds)d %(seed)d
echo "== after"; log
echo "== good"; caisson -- /bin/echo fine
"""


@pytest.mark.skipif(not SECONDS, reason="CAISSON_FUZZ_SECONDS is not set: make soak sets it")
def test_system_call_fuzzer(tmp_path):
    """The Linux kernel logs no warning and no fault, and an honest program runs afterwards."""
    program, seed = tmp_path / "fuzz_calls", random.randrange(1 << 62)
    subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-static",
                    str(pathlib.Path(HERE).parent / "hostile/payloads/fuzz_calls.c"), "-o", str(program)], check=True, timeout=60)
    print("seed", seed)
    files = [f"{program}:/opt/fuzz_calls", *(f"{p}:/opt/caisson/{p.name}" for p in PROGRAMS)]
    script = SCRIPT % {"trouble": TROUBLE, "seconds": SECONDS, "limit": SECONDS + 60, "seed": seed}
    status, out = guest("v2", files, script, seconds=SECONDS + 300)
    _, *rest = re.split(r"^== (\S+)\n", out, flags=re.M)
    part = dict(zip(rest[::2], rest[1::2]))
    assert status == 0 and "planted by the test" in part["planted"], f"void: the log is not read: {out}"
    m = re.search(r"calls (\d+) succeeded (\d+) numbers (\d+)", part["fuzz"])
    assert m and int(m[1]) > 100 * SECONDS and int(m[2]) > 10 * SECONDS and int(m[3]) > 30, f"void: the fuzzer did not run: {out}"
    assert part["before"] == part["after"] == "", f"seed {seed}: {part['after']}"
    assert part["good"].strip() == "fine", out
    print(part["fuzz"].strip())
