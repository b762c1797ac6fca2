# SPDX-License-Identifier: Apache-2.0
"""test_options.py - The options of `docker run` against what doctor and the start say: what is missing stops the start with exactly these
options, and with them nothing of a cell is missing."""
import json
import re
import shlex

import pytest

from container_lib import ADDED, FILTER, KEPT, LEAST, UNCONFINED, Container

PRINTED = "--security-opt seccomp=dist/container/seccomp.json"
WANTED = re.compile(r"start it with (.*) \(docs/container.md\)")


def spaced(option):
    """As it is printed."""
    return option.replace("=", " ", 1).replace(FILTER, "seccomp=dist/container/seccomp.json")


def without(options, *gone):
    left = [o for o in options if o not in gone]
    assert len(left) == len(options) - len(gone)
    return left


def doctor(image, options, *more):
    """(healthy, the options that it wants)"""
    code, out, err = image.once("doctor", "--json", *more, options=options)
    d = json.loads(out)
    assert code == (0 if d["healthy"] else 1), err
    check = next(c for c in d["checks"] if c["name"] == "container")
    assert check["found"].startswith(("docker", "podman")), check
    if check["status"] == "ok":
        return d["healthy"], []
    return d["healthy"], split(WANTED.search(check["fix"]).group(1))


def split(text):
    """["--cap-add X", ...] from one line."""
    words = shlex.split(text)
    return sorted(" ".join(w) for w in zip(words[::2], words[1::2]))


def refused(image, options):
    """The options that `docker run` of the image, without a command, wants before it starts."""
    code, out, err = image.once(options=options)
    found = WANTED.search(err)
    assert code == 125 and not out and found, (code, out, err)
    return split(found.group(1))


DEFAULT = sorted(spaced(o) for o in ADDED)
USER = sorted(spaced(o) for o in ["--security-opt=" + FILTER, *UNCONFINED, "--security-opt=systempaths=unconfined"])

CASES = {
    "nothing": ([], DEFAULT),
    "no new privileges": (["--security-opt=no-new-privileges"], DEFAULT),
    "one capability": (["--cap-add=SYS_ADMIN"], without(DEFAULT, "--cap-add SYS_ADMIN")),
    "all three": (["--cap-add=SYS_ADMIN", "--cap-add=SYS_PTRACE", "--cap-add=DAC_READ_SEARCH", *UNCONFINED], [PRINTED]),
    **{"all but %s" % o.partition("=")[2].rpartition("/")[2]: (without(ADDED, o), [spaced(o)]) for o in ADDED},
    **{"without %s" % o.partition("=")[2]: (without(LEAST, o), [spaced(o)]) for o in KEPT},
    "as a user": (["--user=1000:1000"], USER),
    "as a user with the filter": (["--user=1000:1000", "--security-opt=" + FILTER, *UNCONFINED], ["--security-opt systempaths=unconfined"]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_missing_is_named(image, name):
    options, wanted = CASES[name]
    healthy, named = doctor(image, options)
    assert named == wanted
    assert refused(image, options) == wanted
    # `caisson run` needs less than the daemon: it works, or says the same.
    code, out, err = image.once("run", "print(6 * 7)", options=[*options, "-e", "CAISSON_STATE=/tmp/caisson"])
    assert healthy == (code == 0 and out == "42\n"), (code, out, err)
    assert healthy or "--user=1000:1000" in options or split(WANTED.search(err).group(1)) == wanted, err


ENOUGH = {
    "added": ADDED,
    "least": LEAST,
    "least and mknod": [*LEAST, "--cap-add=MKNOD"],
    "no filter": [*without(ADDED, "--security-opt=" + FILTER), "--security-opt=seccomp=unconfined"],
    "no new privileges": [*LEAST, "--security-opt=no-new-privileges"],
    "private cgroups": [*LEAST, "--cgroupns=private"],
    "unmasked": [*LEAST, "--security-opt=systempaths=unconfined"],
    "an init of Docker's": [*LEAST, "--init"],
    "limits": [*LEAST, "--memory=2g", "--pids-limit=500", "--cpus=1"],
    "read-only": [*LEAST, "--read-only", "--tmpfs=/run", "--tmpfs=/tmp"],
}


@pytest.mark.parametrize("name", ENOUGH)
def test_enough(image, name):
    """Every required layer is in force, and none was given up."""
    options = ENOUGH[name]
    assert doctor(image, options) == (True, [])
    code, out, err = image.once("run", "--json", "--receipt", "print(6 * 7)", options=options)
    r = json.loads(out)
    assert code == 0 and r["stdout"] == "42\n", (out, err)
    receipt = r["receipt"]
    assert receipt["enforced"] and not receipt["missing"] and not receipt["weakened"]
    assert receipt["cgroup"] == {"memory": 512 << 20, "pids": 129, "cpu_milli": 1000}
    assert receipt["nested_user_namespaces_max"] == 0 and receipt["commands"]["seccomp"] == "filter"
    assert receipt["commands"]["capabilities"]["bounding"] == "0" * 16
    # Nothing of the container's own files or of its other processes is in sight.
    assert not any("/var/lib/caisson" in m for m in receipt["mounts"])


def test_privileged(image):
    """The blunt way, where the engine may give all capabilities."""
    r = image("run", "--rm", "--network=host", "--privileged", "sandbox:latest", "doctor", "--json", check=False)
    if "unable to apply caps" in r.stderr:
        pytest.skip("--privileged: this machine's root lacks capabilities itself")
    assert json.loads(r.stdout)["healthy"], r


def test_the_printed_options_help(image):
    """From Docker's defaults to a daemon that serves, by nothing but what the start prints."""
    _, _, err = image.once()
    options = shlex.split(WANTED.search(err).group(1).replace("dist/container/seccomp.json", FILTER.partition("=")[2]))
    with Container(image, *options) as c:
        assert c.execute("6 * 7")["result"] == {"text/plain": "42"}
        assert c.health()["isolation"]["level"] == "full"


def test_the_cells_are_below_the_containers_limits(image):
    """A limit on the container binds all cells together."""
    with Container(image, *LEAST, "--memory=700m", "--memory-swap=700m") as c:
        for n in range(3):
            c.request("POST", "/execute", {"code": "x = bytearray(450 << 20)", "session_id": "s%d" % n}, timeout=120)
        left = [n for n in range(3) if c.execute("print(len(x))", session_id="s%d" % n)["status"] == "ok"]
        assert 1 <= len(left) < 3, "three cells with 450 MiB each do not fit into 700 MiB"


# Without root and without a capability, a cell has all layers but its cgroup.
AS_USER = ["--user=1000:1000", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--security-opt=" + FILTER, *UNCONFINED,
           "--security-opt=systempaths=unconfined", "-e", "CAISSON_STATE=/tmp/caisson"]


def test_a_user_gives_the_limits_up_by_choice(image):
    """A cell whose cgroup is missing is refused; the choice to do without it is reported."""
    healthy, named = doctor(image, AS_USER)
    assert not healthy and not named
    code, out, err = image.once("run", "print(6 * 7)", options=AS_USER)
    assert code == 125 and "--without cgroup" in err, (code, out, err)
    code, out, err = image.once("run", "--json", "--receipt", "--without", "cgroup", "import os; print(os.getuid())", options=AS_USER)
    r = json.loads(out)
    assert code == 0 and r["stdout"] == "1000\n" and r["receipt"]["enforced"] and r["receipt"]["weakened"] == ["cgroup"], (out, err)


def test_the_daemon_of_a_user(image):
    """The same for the daemon: without the choice it does not start, and with it /health and the log report it."""
    code, out, err = image.once(options=AS_USER)
    assert code == 125 and "--without cgroup" in err, (code, out, err)
    with Container(image, *AS_USER, "--memory=2g", "--pids-limit=500", command=["serve", "--no-token", "--without", "cgroup"]) as c:
        isolation = c.health()["isolation"]
        assert isolation["level"] == "reduced" and isolation["cgroup"] is False and isolation["seccomp"] and isolation["landlock"]
        assert c.log("weaker")
        assert c.execute("import os; print(os.getuid())")["stdout"] == "1000\n"
        c.execute("x = 42", session_id="kept")
        assert c.execute("print(x)", session_id="kept")["stdout"] == "42\n"
        assert set(c.exec("ps", "-eo", "uid=").stdout.split()) == {"1000"}
        c.engine("stop", c.name)
        assert c.inspect("State.ExitCode") == 0
