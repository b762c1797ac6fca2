# SPDX-License-Identifier: Apache-2.0
"""test_a_resources.py - Section A: using up the machine."""
import pytest
from lib import cell, control, landed, Canary

@pytest.mark.quick
def test_K0_smoke(stopped_by):
    c = control(["/bin/sh", "-c", "id -u; echo $$; ls /proc | grep -c '^[0-9]'"])
    landed(c.exit == 0, c)
    print(c)
    r = cell(code="print(1)")
    print(r)
    assert r.status == "ok"
    with Canary() as k:
        k.check(r.stdout)
    stopped_by("nothing")
