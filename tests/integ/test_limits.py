# SPDX-License-Identifier: Apache-2.0
"""test_limits.py - Every limit: it holds, and the result names the limit, the peak and the remedy."""
import json
import time

import pytest

from integ_lib import run, run_json
from process import HANG

MIB = 1 << 20


def check(d, status, kind, limit=None):
    """The parts of a result that a model acts on."""
    assert d["status"] == status, d
    cause = d["cause"]
    assert cause["kind"] == kind, d
    assert kind in d["limits_hit"], d
    assert cause["hint"] and "\n" not in cause["hint"]
    if limit is not None:
        assert cause["limit"] == limit, d
    return cause


def said(r, option):
    """Without --json the same hint is one line on stderr, and names the option that would help."""
    ours = [line for line in r.lines() if line.startswith("caisson: ")]
    assert len(ours) == 1 and option in ours[0], r
    return ours[0]


# ---- memory -----------------------------------------------------------------------------------------


def test_memory():
    d = run_json("run", "--memory", "64M", "x = bytearray(200 << 20)")
    cause = check(d, "limit", "memory", 64 * MIB)
    assert d["exit_code"] == 137 and "--memory" in cause["hint"]
    assert 48 * MIB <= cause["peak"] <= 64 * MIB and d["usage"]["memory_peak"] == cause["peak"]


def test_memory_limit_is_reported_on_stderr():
    r = run("run", "--memory", "64M", "x = bytearray(200 << 20)")
    assert r.code == 137 and "64 MiB" in said(r, "--memory")


ONE_OF_TWO = ("import os, time\n"
              "if os.fork() == 0: x = bytearray(200 << 20)\n"
              "status = os.wait()[1]; open('f', 'w').write('kept')\n")


def test_memory_ends_the_greedy_process():
    """Its parent goes on. The limit is listed, and it is the cause only if the parent fails for it."""
    d = run_json("run", "--memory", "64M", ONE_OF_TWO + "print(status, open('f').read())")
    assert (d["status"], d["stdout"], d["limits_hit"]) == ("ok", "9 kept\n", ["memory"]), d
    d = run_json("run", "--memory", "64M", ONE_OF_TWO + "raise SystemExit(5)")
    assert check(d, "limit", "memory", 64 * MIB)["peak"] >= 48 * MIB and d["exit_code"] == 5


def test_memory_ends_the_whole_cell():
    """With --oom sandbox, also the parent that would carry on without it."""
    r = run("run", "--memory", "64M", "--oom", "sandbox", ONE_OF_TWO + "time.sleep(60); print('survived')")
    assert r.seconds < HANG
    assert (r.code, r.out) == (137, b"")
    r = run("run", "--oom", "all", "1")
    assert r.code == 125 and b"process or sandbox" in r.err, r


def test_memory_of_many_processes_counts_together():
    d = run_json("run", "--memory", "64M", "import os, time\n"
                 "for i in range(4):\n"
                 "  if os.fork() == 0:\n"
                 "    x = bytearray(25 << 20); time.sleep(20)\n"
                 "raise SystemExit(os.wait()[1])")
    check(d, "limit", "memory", 64 * MIB)


def test_files_leave_room_in_memory():
    """Files are in memory, and nobody is killed for them: the last eighth of it is not theirs."""
    fill = "f = open('%s', 'wb', 0)\nwhile True: f.write(bytes(65536))"
    for place in ("f", "/dev/shm/f"):
        d = run_json("run", "--memory", "64M", "--disk", "1G", fill % place)
        cause = check(d, "limit", "disk", 56 * MIB)
        assert "No space left on device" in d["stderr"] and "--memory" in cause["hint"] and "--disk" not in cause["hint"], d


def test_files_and_processes_share_the_memory():
    d = run_json("run", "--memory", "64M", "open('f', 'wb').write(bytes(40 << 20))\nx = bytearray(40 << 20)")
    assert "files" in check(d, "limit", "memory", 64 * MIB)["hint"] and d["exit_code"] == 137


def test_below_the_memory_limit_nothing_happens():
    d = run_json("run", "--memory", "128M", "x = bytearray(64 << 20)")
    assert (d["status"], d["cause"], d["limits_hit"]) == ("ok", None, [])


# ---- processor ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cpus", ["0.1", "0.3"])
def test_cpu_quota(cpus):
    d = run_json("run", "--cpus", cpus, "--timeout", "1500ms", "while True: pass")
    u = d["usage"]
    share = u["cpu_ns"] / u["wall_ns"]
    assert share < float(cpus) * 1.35 + 0.05, u
    assert u["throttled_ns"] > 0 or share <= float(cpus), u  # a busy machine may not have that much to give


def test_cpu_quota_is_for_all_processes_together():
    d = run_json("run", "--cpus", "0.5", "--timeout", "1500ms", "import os\nos.fork(); os.fork()\nwhile True: pass")
    assert d["usage"]["cpu_ns"] / d["usage"]["wall_ns"] < 0.75


def test_cpu_time():
    d = run_json("run", "--cpu-time", "300ms", "while True: pass")
    cause = check(d, "limit", "cpu", 300)
    assert d["exit_code"] == 124 and 300 <= cause["peak"] < 10000 and "--cpu-time" in cause["hint"]


def test_cpu_time_of_all_processes_counts():
    d = run_json("run", "--cpus", "2", "--cpu-time", "400ms",
                 "import os\nfor i in range(3): os.fork()\nwhile True: pass")
    check(d, "limit", "cpu", 400)


def test_cpu_time_is_not_wall_time():
    d = run_json("exec", "--cpu-time", "300ms", "--", "sleep", "0.6")
    assert (d["status"], d["limits_hit"]) == ("ok", [])


def test_cpu_time_without_cgroup_is_not_ignored():
    """Either it holds all the same, or the combination is refused: accepted and ignored it may not be."""
    r = run("run", "--without", "cgroup", "--cpu-time", "500ms", "--timeout", "4", "while True: pass")
    hint = r.lines()[-1]
    assert (r.code == 124 and "cpu" in hint) or (r.code == 125 and "--cpu-time" in hint) or r.code == 152, r


# ---- wall time -----------------------------------------------------------------------------------------


def test_wall_time():
    d = run_json("exec", "--timeout", "1", "--", "sh", "-c", "echo early; sleep 600")
    cause = check(d, "timeout", "wall", 1000)
    assert d["exit_code"] == 124 and "--timeout" in cause["hint"] and d["stdout"] == "early\n"
    assert 1000 <= cause["peak"] < 1000 * HANG and 1e9 <= d["usage"]["wall_ns"] < 1e9 * HANG


def test_wall_time_on_stderr():
    r = run("exec", "--timeout", "0.3", "--", "sleep", "600")
    assert r.code == 124 and "300 ms" in said(r, "--timeout")
    assert r.seconds < HANG


def test_wall_time_can_not_be_ignored():
    r = run("run", "--timeout", "500ms", "--lang", "bash",
            "trap '' TERM INT HUP QUIT USR1 ALRM; (trap '' TERM; setsid sleep 600) & while :; do sleep 1; done")
    assert r.code == 124 and r.seconds < HANG


def test_wall_time_holds_for_a_stopped_program():
    assert run("run", "--timeout", "500ms", "import os; os.kill(os.getpid(), 19)").code == 124


@pytest.mark.parametrize("text,seconds", [("1", 1), ("1.2", 1.2), ("700ms", 0.7), ("0.01m", 0.6)])
def test_units_of_time(text, seconds):
    begin = time.monotonic()
    d = run_json("exec", "--timeout", text, "--", "sleep", "600")
    assert d["cause"]["limit"] == round(seconds * 1000)
    assert seconds <= time.monotonic() - begin < HANG


def test_a_program_that_is_over_in_time_is_left_alone():
    assert run("exec", "--timeout", "600", "--", "true").seconds < HANG


# ---- processes -----------------------------------------------------------------------------------------


def test_pids():
    d = run_json("run", "--pids", "10", "import os, time\n"
                 "n = 0\n"
                 "try:\n"
                 "  while n < 100:\n"
                 "    if os.fork() == 0: time.sleep(20); os._exit(0)\n"
                 "    n += 1\n"
                 "except BlockingIOError: print(n); raise SystemExit(5)")
    assert d["stdout"] == "9\n"  # and itself
    cause = check(d, "limit", "pids", 10)
    assert d["exit_code"] == 5 and "--pids" in cause["hint"] and cause["peak"] == 10


def test_threads_count():
    d = run_json("run", "--pids", "8", "import threading, time\n"
                 "for i in range(50): threading.Thread(target=time.sleep, args=(20,), daemon=True).start()")
    check(d, "limit", "pids", 8)


def test_fork_bomb():
    r = run("run", "--json", "--lang", "bash", "--pids", "30", "--timeout", "2", ":() { : | : & }; :; sleep 1; exit 1")
    assert r.seconds < HANG and "pids" in r.json["limits_hit"]


def test_pids_touched_without_harm_is_listed_and_is_no_cause():
    d = run_json("run", "--pids", "4", "import os, time\n"
                 "for i in range(10):\n"
                 "  try:\n"
                 "    if os.fork() == 0: time.sleep(5); os._exit(0)\n"
                 "  except BlockingIOError: pass\n")
    assert (d["status"], d["cause"], d["limits_hit"]) == ("ok", None, ["pids"])


def test_one_pid_is_enough_for_one_program():
    assert run("exec", "--pids", "1", "--", "echo", "x").out == b"x\n"


# ---- disk, inodes, files -----------------------------------------------------------------------------------


def test_disk():
    d = run_json("run", "--disk", "2M", "open('f', 'wb').write(bytes(1 << 20)); open('g', 'wb').write(bytes(4 << 20))")
    cause = check(d, "limit", "disk", 2 * MIB)
    assert "--disk" in cause["hint"] and "No space left on device" in d["stderr"]
    assert 1.9 * MIB <= cause["peak"] <= 2 * MIB


@pytest.mark.parametrize("where", ["/workspace", "/tmp", "/home/agent", "/dev/shm", "/var/tmp"])
def test_disk_limit_is_for_every_place_one_can_write(where):
    r = run("run", "--disk", "2M", "--workdir", where,
            "for i in range(5): open('f%d' % i, 'wb').write(bytes(1 << 20))")
    assert r.code == 1 and b"No space left on device" in r.err


def test_disk_freed_in_time_is_no_cause():
    d = run_json("run", "--disk", "2M", "import os\n"
                 "for i in range(9): open('f', 'wb').write(bytes(1 << 20)); os.remove('f')")
    assert (d["status"], d["limits_hit"]) == ("ok", [])


def test_one_file_larger_than_the_disk():
    d = run_json("run", "--disk", "2M", "open('f', 'wb').truncate(3 << 20)")
    assert d["status"] != "ok" and d["exit_code"] != 0


def test_inodes():
    d = run_json("run", "--inodes", "300", "for i in range(500): open('f%d' % i, 'w')")
    cause = check(d, "limit", "inodes", 300)
    assert "--inodes" in cause["hint"] and cause["peak"] >= 297


def test_open_files():
    d = run_json("run", "--files", "20", "files = []\n"
                 "try:\n"
                 "  while True: files.append(open('/dev/null'))\n"
                 "except OSError as e: print(e.errno, files[-1].fileno()); raise")
    assert (d["status"], d["exit_code"], d["stdout"]) == ("error", 1, "24 19\n")


def test_open_files_can_not_be_raised():
    r = run("run", "--files", "20", "import resource\n"
            "try: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
            "except ValueError as e: print('refused')")
    assert r.out == b"refused\n"


# ---- output -----------------------------------------------------------------------------------------------


def test_output():
    d = run_json("run", "--max-output", "10K", "--capture", "20", "while True: print('x' * 99)")
    cause = check(d, "limit", "output", 10240)
    assert d["exit_code"] == 137 and "--max-output" in cause["hint"]
    assert d["stdout"] == "x" * 20 and d["truncated"] is True
    assert 10240 < cause["peak"] <= 10240 + 4 * 65536  # bytes that were in pipes and buffers


def test_output_of_both_streams_counts_together():
    d = run_json("run", "--max-output", "10K",
                 "import sys, time\nprint('x' * 6000, flush=True)\nprint('y' * 6000, file=sys.stderr, flush=True)\ntime.sleep(20)")
    check(d, "limit", "output", 10240)


def test_output_when_streaming():
    r = run("exec", "--max-output", "10K", "--", "yes")
    assert r.code == 137 and "10 KiB" in said(r, "--max-output")
    assert 10240 <= len(r.out) <= 10240 + 4 * 65536


def test_output_up_to_the_limit_is_fine():
    d = run_json("run", "--max-output", "1000", "print('x' * 999)")
    assert (d["status"], d["limits_hit"]) == ("ok", [])


# ---- several at once -------------------------------------------------------------------------------------


def test_what_ended_it_is_the_cause_and_the_others_are_listed():
    d = run_json("run", "--pids", "4", "--timeout", "2", "import os, time\n"
                 "for i in range(9):\n"
                 "  try:\n"
                 "    if os.fork() == 0: time.sleep(60)\n"
                 "  except BlockingIOError: pass\n"
                 "time.sleep(60)")
    check(d, "timeout", "wall", 2000)
    assert sorted(d["limits_hit"]) == ["pids", "wall"]


def test_the_cell_after_a_limit_is_like_any_other():
    """A limit leaves nothing that the next run could feel."""
    run("run", "--memory", "32M", "x = bytearray(100 << 20)")
    r = run("run", "--json", "--memory", "64M", "x = bytearray(30 << 20); print('fine')")
    assert json.loads(r.out)["stdout"] == "fine\n"
