# SPDX-License-Identifier: Apache-2.0
"""test_cgroup_v2.py - The container on cgroup v2, which this machine may not have: in a small QEMU guest (tests/guest/run.sh), by runc, with
the configuration that the Docker daemon here writes for the options of docs/container.md."""
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from container_lib import LEAST, ROOT, Container

sys.path.insert(0, str(ROOT / "tests/guest"))

from test_v2 import PROGRAMS, guest  # noqa: E402

MIB = 1 << 20


def docker_config(image):
    """config.json of a container of the image, as runc got it."""
    with Container(image, *LEAST, "--cgroupns=private", "--network=none", "--memory=200m", network=False, wait=False, command=["doctor"]) as c:
        id = c.inspect("Id")
        places = [image.run / "exec/containerd/daemon/io.containerd.runtime.v2.task"] if image.own else [Path("/run/containerd/io.containerd.runtime.v2.task")]
        found = [p for place in places for p in place.glob("*/%s/config.json" % id)]
        if not found:
            pytest.skip("the engine does not show the configuration that it gives to runc")
        return json.loads(found[0].read_text())


def for_guest(config, cgroupns):
    """Without what only this machine has: its files, its network, its hooks."""
    config = json.loads(json.dumps(config))
    config.pop("hooks", None)
    config["root"] = {"path": "rootfs"}
    config["mounts"] = [m for m in config["mounts"] if not m["source"].startswith("/")]
    config["linux"]["namespaces"] = [{"type": n["type"]} for n in config["linux"]["namespaces"] if cgroupns or n["type"] != "cgroup"]
    process = config["process"]
    process.update(args=["/bin/sleep", "1000"], terminal=False, cwd="/")
    for mine in ("apparmorProfile", "rlimits"):
        process.pop(mine, None)
    return json.dumps(config)


@pytest.fixture(scope="module")
def cases(image, tmp_path_factory):
    where, runc = tmp_path_factory.mktemp("bundle"), shutil.which("runc")
    if not runc:
        pytest.skip("there is no runc (tools/deps.sh container-test)")
    config = docker_config(image)
    (where / "config.json").write_text(for_guest(config, True))
    (where / "host.json").write_text(for_guest(config, False))
    files = ["%s:/bundle/config.json" % (where / "config.json"), "%s:/bundle/host.json" % (where / "host.json"), "%s:/bin/runc" % runc]
    files += ["%s:/v2.sh" % Path(__file__).with_name("v2.sh"), *("%s:/opt/caisson/%s" % (p, p.name) for p in PROGRAMS)]
    status, out = guest("v2", files, "sh /v2.sh", seconds=600)
    assert status == 0, out
    _, *rest = re.split(r"^== (\S+)\n", out, flags=re.M)
    found = {}
    for name, body in zip(rest[::2], rest[1::2]):
        text, _, tail = body.rpartition("-- ")
        found[name] = (int(tail.split()[0]), text)
    return found


def result(case):
    """The JSON object among the lines of a case."""
    return json.loads(next(line for line in case[1].splitlines() if line.startswith("{")))


def check_of(case, name):
    return next(c for c in result(case)["checks"] if c["name"] == name)


def test_the_guest_is_as_docker_makes_it(cases):
    """Or else the others would prove nothing."""
    mounts = cases["masked"][1].splitlines()
    assert any(" /sys/fs/cgroup ro," in m and " - cgroup2 " in m for m in mounts), mounts
    assert any(" /proc/sys ro," in m for m in mounts) and any(" /proc/kcore " in m for m in mounts), mounts
    assert cases["outside"] == (0, "%d\n" % (200 * MIB))


def test_every_layer(cases):
    assert cases["doctor"][0] == 0 and check_of(cases["doctor"], "container")["status"] == "ok"
    assert check_of(cases["doctor"], "cgroup")["found"] == "v2"
    r = result(cases["first"])
    assert r["stdout"] == "1000\n0::/\n" and r["receipt"]["enforced"] and not r["receipt"]["weakened"]
    assert r["receipt"]["cgroup"] == {"memory": 512 * MIB, "pids": 129, "cpu_milli": 1000} and r["receipt"]["nested_user_namespaces_max"] == 0


def test_limits_beside_a_process_that_came_later(cases):
    """`docker exec` after the container's cgroup was vacated for cells."""
    r = result(cases["second"])
    assert r["status"] == "limit" and r["cause"]["kind"] == "memory" and r["cause"]["limit"] == 32 * MIB


def test_cells_are_in_the_containers_cgroup(cases):
    places = cases["places"][1].split()
    assert len([p for p in places if p.count("/") == 5]) == 1 and [p for p in places if p.endswith("/caisson.self")], places
    assert cases["gone"] == (0, ""), "nothing of it outlives the container"


def test_the_machines_cgroups_are_left_alone(cases):
    c = check_of(cases["machine"], "container")
    assert c["fix"] == "start it with --cgroupns=private (docs/container.md)", c
    assert cases["untouched"] == (0, "")
