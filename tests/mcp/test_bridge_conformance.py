# SPDX-License-Identifier: Apache-2.0
"""test_bridge_conformance.py - caisson-bridge under the protocol's conformance suite: scenarios for clients that call tools.

Left out: auth/* (the bridge sends the headers that the operator configured and runs no OAuth flow: there is no browser and no
person at it), elicitation-sep1034-client-defaults and sep-2322-client-request-state (their servers ask for elicitation,
which the bridge does not declare: a tool that asks is an error for its caller), sep-2640-* (skills: it calls tools only).
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from process import BIN

SCENARIOS = [("initialize", "2025-11-25"), ("tools_call", "2025-06-18"), ("tools_call", "2025-11-25"),
             ("tools_call", "2026-07-28"), ("sse-retry", "2025-11-25"), ("request-metadata", "2026-07-28"),
             ("http-standard-headers", "2026-07-28"), ("http-custom-headers", "2026-07-28"),
             ("http-invalid-tool-headers", "2026-07-28"), ("json-schema-ref-no-deref", "2026-07-28"),
             ("json-schema-2020-12-preservation", "2025-11-25"), ("json-schema-2020-12-preservation", "2026-07-28")]
FULL = pytest.mark.skipif(not os.environ.get("CAISSON_BRIDGE_FULL"), reason="takes its time: make bridge-full")
QUICK = {("http-custom-headers", "2026-07-28")}
DRIVER = Path(__file__).with_name("bridge_driver.py")


@pytest.mark.parametrize("scenario,version", [pytest.param(*s, marks=[] if s in QUICK else [FULL]) for s in SCENARIOS])
def test_scenario(suite, tmp_path, scenario, version):
    argv = [suite.node, str(suite.index), "client", "--command", "%s %s" % (sys.executable, DRIVER), "--scenario", scenario,
            "--spec-version", version, "-o", str(tmp_path)]
    r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                       env=dict(os.environ, CAISSON_BUILD=str(BIN.parent)))
    checks = [c for path in tmp_path.glob("**/checks.json") for c in json.loads(path.read_text())]
    bad = [c for c in checks if c["status"] in ("FAILURE", "WARNING")]
    assert r.returncode == 0 and not bad, (bad, r.stdout[-3000:])
    assert any(c["status"] == "SUCCESS" for c in checks), r.stdout[-3000:]
