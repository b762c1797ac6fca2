# SPDX-License-Identifier: Apache-2.0
"""test_conformance.py - The Model Context Protocol as its own conformance suite sees it, of both eras.

Everything that a revision requires, and what the suite runs beside it without counting: the extensions for tasks and
skills, headers, schemas. A warning of the suite is a failure here, too.
"""
import pytest

# How many scenarios a revision has at least, so that a suite that ran nothing is not taken for one that found nothing.
REVISIONS = {"2025-11-25": 33, "2026-07-28": 50}
SKILLS = ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest")


def complaints(found):
    return ["%s: %s: %s: %s" % (scenario, c["id"], c["status"], c.get("errorMessage"))
            for scenario, checks in found.items() for c in checks if c["status"] in ("FAILURE", "WARNING")]


def url(daemon):
    return "http://localhost:%d/mcp" % daemon.port


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_revision_requires(suite, conforming, tmp_path, revision):
    code, found, text = suite.run(url(conforming), tmp_path, "--requirements", revision)
    assert not complaints(found)
    assert code == 0 and len(found) >= REVISIONS[revision], text[-3000:]


@pytest.mark.parametrize("scenario", SKILLS)
def test_skills(suite, conforming, tmp_path, scenario):
    code, found, text = suite.run(url(conforming), tmp_path, "--scenario", scenario, "--spec-version", "2026-07-28", "--force")
    assert not complaints(found)
    assert code == 0 and any(c["status"] == "SUCCESS" for c in found[scenario]), text[-3000:]
