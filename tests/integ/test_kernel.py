# SPDX-License-Identifier: Apache-2.0
"""test_kernel.py - The probes of tests/kernel: does this kernel behave as the code expects?"""
import os
import shlex
import shutil
import subprocess

import pytest

from integ_lib import USER, as_user
from process import IS_ROOT, ROOT

PROBES = sorted((ROOT / "tests" / "kernel").glob("*.c"))
CC = shlex.split(os.environ.get("CC", "cc"))
HOLDS, CANNOT = 0, 77


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not shutil.which(CC[0]):
        pytest.skip("no C compiler (%s)" % CC[0])
    d = tmp_path_factory.mktemp("kernel")
    done = {}

    def build(source):
        if source not in done:
            out = d / source.stem
            subprocess.run([*CC, "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(out), str(source)],
                           check=True)
            done[source] = out
        return done[source]
    return build


def check(argv):
    p = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=60)
    if p.returncode == CANNOT:
        pytest.skip(p.stdout.strip())
    assert p.returncode == HOLDS, p.stdout + p.stderr


@pytest.mark.parametrize("source", PROBES, ids=lambda p: p.stem)
def test_probe(built, source):
    check([built(source)])


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")
@pytest.mark.parametrize("source", [p for p in PROBES if p.stem != "detached_mount"], ids=lambda p: p.stem)
def test_probe_as_an_ordinary_user(built, source, shared_dir):
    program = shutil.copy(built(source), shared_dir / source.stem)
    os.chown(shared_dir, USER, USER)
    check([*as_user(), program])
