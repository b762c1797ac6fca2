# SPDX-License-Identifier: Apache-2.0
"""test_everyday.py - Agents' everyday work, and what a user has to see then: one test for each case of the tables."""
import pytest

from case import WANTED, Outcome, shorten, wrong
from doors import NotHere, Visit

# An expectation that a blank outcome does not meet, for each kind.
UNMET = {"out": "x", "shows": "x", "matches": "x", "err": "x", "lacks": "", "result": "x", "error": "x", "traceback": "x", "mime": "image/png",
         "no_mime": "text/html", "pictures": 1, "code": 1, "status": "limit", "cause": "memory", "hint": "x", "state": "kept", "truncated": True,
         "http": 404, "bytes": b"x", "json": {"a": 1}}


@pytest.mark.quick
def test_every_expectation_can_fail():
    assert set(UNMET) == set(WANTED) - {"files"}
    seen = Outcome(mime={"text/html"})
    assert wrong({}, seen) == []
    for key, value in UNMET.items():
        assert wrong({key: value}, seen), key
    assert wrong({}, Outcome(code=1)) and wrong({}, Outcome(status="timeout")) and wrong({}, Outcome(http=500))


def test_case(world, image, case):
    reason = world.why_not(image)
    if reason:
        pytest.skip(reason)
    lacking = [p for p in case.needs if p not in world.programs(image)]
    if lacking:
        pytest.skip("the image %s has no %s" % (image, ", ".join(lacking)))
    front = world.daemon.pid
    with Visit(world, image, case) as visit:
        try:
            visit.prepare()
            for number, step in enumerate(case.steps, 1):
                seen = visit.take(step)
                complaints = wrong(step.want, seen)
                if complaints:
                    what = step.what if isinstance(step.what, str) else shorten(step.what)
                    pytest.fail("step %d, %s:\n%s\n\n%s\n\nseen:\n%r" % (number, step.door, what, "\n".join(complaints), seen), pytrace=False)
        except NotHere as e:
            pytest.skip(str(e))
    assert world.daemon.running() and world.daemon.pid == front, "the daemon was replaced: %s" % world.daemon.log_text()[-2000:]
