# SPDX-License-Identifier: Apache-2.0
"""test_operator.py - Features that an operator must allow first: packages, tools that wait for a person, secrets, a policy."""
import asyncio
import json
import os
import sys

import pytest
from package_lib import wheel
from process import BIN
from test_tool_rules import CALL, UPSTREAM

import caisson


@pytest.fixture
def daemon_of(serve):
    """A daemon with these options, and its address."""
    def begin(*flags):
        return "http://127.0.0.1:%d" % serve("--pool", 1, *flags).port
    return begin


@pytest.mark.slow
def test_packages(daemon_of, short_dir):
    wheel(short_dir, "ours", "1.2", requires=["needed"])
    wheel(short_dir, "needed", "3.0")
    with caisson.Caisson(daemon_of("--package-dir", short_dir, "--blocked-packages", "evil")) as c:
        with c.create() as box:
            with box.packages.stream("ours") as way:
                kinds = [e.type for e in way]
            assert kinds[-1] == "done" and "progress" in kinds[:-1] and {p["name"] for p in way.last["packages"]} == {"ours", "needed"}
            assert box.execute("import ours, needed; ours.VERSION, needed.VERSION").text == "('1.2', '3.0')"
            assert {(p.name, p.version) for p in box.packages.list()} == {("ours", "1.2"), ("needed", "3.0")}
            assert box.packages.install("ours==1.2").packages
            with pytest.raises(caisson.PackageNotFound) as e:
                box.packages.install("nobody-has-this")
            assert e.value.code in ("package_not_found", "version_not_found") and isinstance(e.value, caisson.NotFound)
            with pytest.raises(caisson.PackageRefused, match="evil"):
                box.packages.install("evil")
        assert c.install("needed") == "3.0"


@pytest.mark.skipif(not (BIN.parent / "caisson-bridge").exists(), reason="no caisson-bridge beside the daemon")
def test_tools_and_approvals(daemon_of, tmp_path):
    """Code calls a tool, and waits; the same event loop approves one call and denies the next."""
    config = tmp_path / "mcp.json"
    rules = {"allow": ["write"], "approve": ["write"], "approve_seconds": 30}
    config.write_text(json.dumps({"mcpServers": {"asks": {"command": sys.executable, "args": [str(UPSTREAM), str(tmp_path / "log")], "caisson": rules}}}))
    url = daemon_of("--mcp-config", config, *(("--mcp-user", "root") if os.geteuid() == 0 else ()))

    async def main():
        async with caisson.AsyncCaisson(url) as c, await c.create(servers=("asks",), tools={"budget": 5}) as box:
            said = []
            for decide in (c.approve, lambda a: c.deny(a, "not today")):
                run = asyncio.ensure_future(box.execute(CALL % "await mcp_asks.write(text='x')", timeout=30))
                while not (waiting := await c.approvals()):
                    await asyncio.sleep(0.02)
                a, = waiting
                assert (a.sandbox, a.server, a.tool, json.loads(a.arguments)) == (box.name, "asks", "write", {"text": "x"})
                assert (await decide(a)).id == a.id
                said.append((await run).stdout)
            return said, (await box.info()).spec

    (yes, no), spec = asyncio.run(main())
    assert "'tool': 'write'" in yes and "not approved: not today" in no and spec["servers"] == ["asks"] and spec["tools"] == {"budget": 5}


@pytest.mark.slow
def test_secrets_and_policy(daemon_of, tmp_path):
    secrets, policy = tmp_path / "secrets", tmp_path / "policy.toml"
    secrets.write_text("KEY=value\n")
    policy.write_text("[default]\nmemory_mib = 600\n")
    for f in (secrets, policy):
        f.chmod(0o600)
    with caisson.Caisson(daemon_of("--secrets-file", secrets, "--policy", policy)) as c:
        with c.create(secrets=("KEY",), env={"OTHER": "x"}) as box:
            assert box.shell("echo $KEY $OTHER").stdout == "value x\n" and box.info().spec["secrets"] == ["KEY"]
            assert "value" not in json.dumps(box.info().raw)
        with pytest.raises(caisson.PolicyRefused, match="memory_mib") as e:
            c.create(memory_mib=700)
        assert e.value.field == "memory_mib" and e.value.hint and c.policy()["ceilings"]["memory_mib"]["value"] == 600
