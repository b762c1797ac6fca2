# SPDX-License-Identifier: Apache-2.0
"""test_install.py - The package in machines that boot: installed, used, upgraded, removed, purged (life.sh).

One machine is a container on this machine's Linux kernel and cgroups; the other is a guest of QEMU, with the kernel of the
distribution and cgroup v2. The guest's processor is emulated, so that times there mean nothing by themselves: they are compared with the
time of a bare python in the same guest.
"""
import json
import re
import shutil

import pytest

from dist_lib import PLACE, VERSION, NotHere, boot, next_version, write_index

SECONDS = {"container": 900, "qemu": 3000}
MACHINES = [pytest.param("container", id="container"), pytest.param("qemu", id="guest")]


@pytest.fixture(scope="module", params=MACHINES)
def life(request, package, server, tmp_path_factory):
    """{case: (status, output)} of one machine."""
    kind, added = request.param, tmp_path_factory.mktemp("added")
    for number in ("1", "2"):
        (added / "repo" / number).mkdir(parents=True)
    shutil.copy(package, added / "repo/1")
    _, newer = next_version(package, tmp_path_factory.mktemp("next"))
    shutil.copy(newer, added / "repo/2")
    write_index(added / "repo/1", server / "repo/1")
    write_index(added / "repo/2", None)
    try:
        cases = boot(kind, server, added, "life.sh", PLACE / ("out-" + kind), SECONDS[kind])
    except NotHere as why:
        pytest.skip(str(why))
    cases["kind"] = kind
    return cases


def good(life, *names):
    """The outputs of cases that must have succeeded."""
    for name in names:
        assert life[name][0] == 0, "%s: %s" % (name, life[name])
    return [life[name][1] for name in names]


def first_json(text):
    return json.loads(next(line for line in text.splitlines() if line.startswith("{")))


def test_the_machine_booted(life):
    """Every case ran, down to the last."""
    print(good(life, "machine")[0])
    assert "journal" in life


def test_apt_installs_it(life):
    version, verify, conffiles, enabled = good(life, "satisfy", "install", "version", "verify", "conffiles")[2:] + [life["enabled"][1]]
    assert version.split()[1] == VERSION and verify.strip() == ""
    assert [line.split()[0] for line in conffiles.splitlines() if line.strip()] == ["/etc/default/caisson"]
    assert enabled.split() == ["enabled", "disabled"], "the socket, which starts the service with the first connection"
    assert life["active"][1].split() == ["active", "inactive"]
    assert good(life, "socket") == ["root caisson 660\n"]


def test_pages_and_completions(life):
    man, bash, zsh, _ = good(life, "man", "bash", "zsh", "fish")
    assert "/usr/share/man/man5/caisson-policy.5.gz" in man and "CAISSON-SERVE(1)" in man.upper()
    assert "caisson" in bash and zsh.strip() == "_caisson"


def test_first_answer(life):
    """After the start of the service, within a second. In the guest, a second is 40 times the start of a bare python there, as it is on the
    machine of docs/benchmarks.md."""
    text, = good(life, "first")
    assert [json.loads(line)["stdout"] for line in text.splitlines() if line.startswith("{")] == ["42\n"] * 6
    times = [float(t) for t in re.findall(r"^seconds ([0-9.]+)$", text, re.M)]
    starts = list(zip(times[::4], times[1::4], times[2::4], times[3::4]))
    for start in starts:
        print("%s: start %.3f s, first answer %.3f s, second %.3f s, bare python %.3f s" % (life["kind"], *start))
    assert len(starts) == 3
    limit = 1.0 if life["kind"] == "container" else 40 * max(python for *_, python in starts)
    assert min(first for _, first, *_ in starts) < limit


def test_first_connection_starts_the_service(life):
    text, = good(life, "by-connection")
    assert first_json(text)["stdout"] == "42\n"


def test_every_layer_is_in_force(life):
    checks = first_json(good(life, "doctor")[0])["checks"]
    missing = [c for c in checks if c["status"] == "missing"]
    assert not missing, missing
    isolation = first_json(good(life, "health")[0])["isolation"]
    assert isolation["level"] == "full" and all(isolation["front"].values()), isolation


def test_members_of_the_group_may_run_code_and_no_more(life):
    run, verb = good(life, "member", "member-verb")
    assert first_json(run)["stdout"] == "1000\n"
    for name in ("member-state", "member-ids", "member-kill"):
        assert life[name][0] != 0 and re.search("Permission denied|Operation not permitted", life[name][1]), life[name]
    assert life["stranger"][0] == 7, life["stranger"]


def test_settings_of_the_default_file(life):
    tcp, refused, local = good(life, "restart", "tcp", "tcp-refused", "tcp-local")[1:]
    assert first_json(tcp)["stdout"] == "42\n" and "error" in first_json(refused)


def test_upgrade_restarts_the_service_with_its_settings(life):
    good(life, "linger", "upgrade")
    before, after = good(life, "pid-before", "pid-after")
    assert before.strip() != after.strip() and int(after) > 1
    upgraded, tcp, settings = good(life, "upgraded", "upgraded-tcp", "upgraded-settings")
    assert upgraded.split()[0] == VERSION + "+next" and first_json(tcp)["stdout"] == "42\n"
    assert settings.splitlines()[:2] == ["CAISSON_LISTEN=127.0.0.1:8001", "CAISSON_TOKEN_FILE=/etc/caisson/tokens"]
    assert life["upgraded-lost"][0] == 1, "processes of the old sandboxes: %s" % life["upgraded-lost"][1]


def test_upgrade_refuses_no_connection(life):
    """They wait in the socket while the service restarts."""
    text, = good(life, "clients")
    good_, bad = re.search(r"good (\d+) bad (\d+)", text).groups()
    assert int(good_) > 0 and int(bad) == 0, text


def test_remove_ends_everything_and_keeps_the_settings(life):
    good(life, "linger-again", "remove", "remove-kept")
    left = [line for line in life["remove-traces"][1].splitlines() if line and not line.startswith(("/etc/systemd", "/var/lib/systemd"))]
    assert not left, left


def test_settings_are_there_when_it_is_installed_again(life):
    tcp, = good(life, "again", "again-tcp", "again-settings")[2:]
    assert first_json(tcp)["stdout"] == "42\n"


def test_purge_leaves_nothing(life):
    good(life, "purge")
    assert life["purge-traces"][1].strip() == "" and life["purge-group"][0] == 2
    assert life["difference"] == (0, ""), life["difference"][1]


def test_the_journal_has_no_failure(life):
    lines = [line for line in life["journal"][1].splitlines() if line.strip() and line != "-- No entries --"]
    assert not [line for line in lines if "Failed" in line or '"level":"error"' in line], lines
