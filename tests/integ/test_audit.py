# SPDX-License-Identifier: Apache-2.0
"""test_audit.py - `caisson audit` against ledgers that were written, changed by hand, cut, and left by crashes.

The definition of a line is written a second time here, from docs/protocol/ledger.md: this code checks the lines of the C
code, and `caisson audit verify` checks the lines of this code.
"""
import hashlib
import json
import os
import random
import subprocess

import pytest

from integ_lib import as_user, copy_tree, needs_root, run
from process import BIN, wait_until

WRITER = BIN.parent / "tests" / "unit" / "ledger-writer"
CURRENT = "ledger.jsonl"
ZEROS = "0" * 64


# ---- the definition, again ------------------------------------------------------------------------


def line_hash(line):
    """SHA-256 of the line without `,"hash":"..."`."""
    at = line.rindex(b',"hash":"')
    return hashlib.sha256(line[:at] + line[at + 9 + 64 + 1:]).hexdigest()


def make_line(seq, prev, event="test", owner="ann", sandbox="job", time="2026-11-16T03:25:16.123Z", **members):
    body = json.dumps({"seq": seq, "time": time, "event": event, "owner": owner, "sandbox": sandbox, **members,
                       "prev": prev}, separators=(",", ":"))
    digest = hashlib.sha256(body.encode()).hexdigest()
    return ('%s,"hash":"%s"}' % (body[:-1], digest)).encode()


def make_lines(n, start=1, prev=ZEROS, **members):
    lines = []
    for seq in range(start, start + n):
        lines.append(make_line(seq, prev, **members))
        prev = line_hash(lines[-1])
    return lines


def put(state, lines, name=CURRENT, end=b"\n"):
    d = state / "ledger"
    d.mkdir(parents=True, exist_ok=True)
    (d / name).write_bytes(b"\n".join(lines) + (end if lines else b""))
    return d / name


def read_all(state):
    """Every line of the ledger, in order, with the chain checked by our own definition."""
    d, prev, seq, lines = state / "ledger", None, None, []
    for path in [*sorted(d.glob("ledger-*.jsonl")), d / CURRENT]:
        data = path.read_bytes()
        assert data == b"" or data.endswith(b"\n")
        for raw in data.split(b"\n")[:-1]:
            obj = json.loads(raw)
            assert list(obj)[:5] == ["seq", "time", "event", "owner", "sandbox"] and list(obj)[-2:] == ["prev", "hash"]
            assert obj["hash"] == line_hash(raw)
            assert prev is None or (obj["prev"], obj["seq"]) == (prev, seq + 1)
            prev, seq = obj["hash"], obj["seq"]
            lines.append(obj)
    assert not lines or (lines[0]["seq"], lines[0]["prev"]) == (1, ZEROS)
    return lines


class Writer:
    """The C code, as a process that takes commands and can be killed."""

    def __init__(self, directory, file_bytes=0, prefix=()):
        self.p = subprocess.Popen([*prefix, str(WRITER), str(directory), str(file_bytes)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.first = self.answer()

    def answer(self):
        return self.p.stdout.readline().decode().split(" ", 2)

    def append(self, event="test", owner="ann", sandbox="job", text="-"):
        self.p.stdin.write(("%s\t%s\t%s\t%s\n" % (event, owner, sandbox, text)).encode())
        self.p.stdin.flush()
        return self.answer()

    def close(self):
        self.p.stdin.close()
        self.p.wait()
        self.p.stdout.close()


@pytest.fixture
def writer():
    made = []

    def begin(*args, **kw):
        made.append(Writer(*args, **kw))
        return made[-1]

    yield begin
    for w in made:
        w.p.kill()
        w.close()


def verify(state, *args):
    return run("audit", "verify", "--state", state, *args)


def damage(state, *args):
    """Exit code 1, and where and why."""
    r = verify(state, "--json", *args)
    assert r.code == 1 and r.json["status"] == "damaged" and r.err == b"", r
    text = verify(state, *args)
    assert text.code == 1 and text.out.decode().startswith("damaged: "), text
    assert r.json["damage"]["reason"] in text.out.decode()
    return r.json["damage"]


# ---- the two definitions agree --------------------------------------------------------------------------


def test_what_the_program_writes_is_as_documented(state, writer):
    (state / "ledger").mkdir(parents=True)
    w = writer(state / "ledger")
    for text in ("print(1)", "ünï \x1b[31m \"quoted\" \\ \x7f", "x" * 4000, "-"):
        assert w.append("execution.end", "ann", "job", text)[0] == "ok"
    assert w.append("sandbox.created", "-", "-")[0] == "ok"
    lines = read_all(state)
    assert [o["seq"] for o in lines] == [1, 2, 3, 4, 5]
    assert lines[0]["code_sha256"] == hashlib.sha256(b"print(1)").hexdigest()
    assert lines[0]["usage"] == {"cpu_ms": 12, "oom": False}
    assert lines[1]["text"] == "ünï \x1b[31m \"quoted\" \\ \x7f"
    assert lines[2]["text"] == "x" * 256 + "…"
    assert (lines[4]["owner"], lines[4]["sandbox"], lines[4]["text"]) == (None, None, None)
    r = verify(state, "--json")
    assert r.code == 0 and r.json["lines"] == 5 and r.json["head"] == {"seq": 5, "hash": lines[4]["hash"]}
    assert (state / "ledger" / CURRENT).stat().st_mode & 0o777 == 0o600


def test_what_is_documented_is_accepted(state):
    put(state, make_lines(20, status="ok", usage={"cpu_ms": 3}))
    r = verify(state)
    assert (r.code, r.err) == (0, b"") and r.out.startswith(b"whole: 20 lines in 1 file")


# ---- tampering ----------------------------------------------------------------------------------------------


FIELDS = {"seq": 99, "time": "2026-11-16T03:25:17.123Z", "event": "other", "owner": "eve", "sandbox": "bob", "status": "ok",
          "exit_code": 0, "usage": {"cpu_ms": 4}, "prev": "a" * 64, "hash": "b" * 64}


@pytest.mark.parametrize("field", FIELDS)
def test_a_changed_field_is_found(state, field):
    lines = make_lines(5, status="error", exit_code=1, usage={"cpu_ms": 3})
    obj = json.loads(lines[2])
    assert obj[field] != FIELDS[field]
    obj[field] = FIELDS[field]
    lines[2] = json.dumps(obj, separators=(",", ":")).encode()
    put(state, lines)
    found = damage(state)
    assert (found["file"], found["line"]) == (CURRENT, 3)
    assert "was changed" in found["reason"]


def test_a_changed_line_with_its_hash_made_to_fit_is_found_in_the_next(state):
    lines = make_lines(5, exit_code=1)
    obj = json.loads(lines[2])
    lines[2] = make_line(3, obj["prev"], exit_code=0)
    put(state, lines)
    found = damage(state)
    assert found["line"] == 4 and "does not follow" in found["reason"]


@pytest.mark.parametrize("edit,line,why", [
    (lambda l: l[:1] + l[2:], 2, "number 2 is missing"),
    (lambda l: l[:1] + l[4:], 2, "numbers 2 to 4 are missing"),
    (lambda l: [l[0], l[2], l[1], *l[3:]], 2, "number 2 is missing"),
    (lambda l: [*l[:2], l[1], *l[2:]], 3, "repeated"),
    (lambda l: [*l[:2], b"", *l[2:]], 3, "too short"),
    (lambda l: [*l[:2], b"x" * 17000, *l[2:]], 3, "longer"),
    (lambda l: [*l[:2], l[2] + b" ", *l[3:]], 3, "does not end"),
    (lambda l: [*l[:2], b" " + l[2], *l[3:]], 3, "does not begin"),
    (lambda l: [*l[:2], l[2].replace(b"ann", b"\xff"), *l[3:]], 3, "not text"),
    (lambda l: l[1:], 0, "begins with line number 2"),
])
def test_lines_removed_moved_repeated_or_put_in_are_found(state, edit, line, why):
    put(state, edit(make_lines(6)))
    found = damage(state)
    assert found["line"] == line and why in found["reason"]


def test_lines_taken_from_the_end_show_against_a_noted_head(state):
    lines = make_lines(6)
    put(state, lines)
    head = verify(state).out.decode().split("\nhead ")[1].strip()
    assert head == "6:" + line_hash(lines[5])
    put(state, lines + make_lines(2, 7, line_hash(lines[5])))
    assert verify(state, "--head", head).code == 0
    put(state, lines[:4])
    assert verify(state).code == 0  # the chain alone cannot know
    assert "taken from its end" in damage(state, "--head", head)["reason"]
    put(state, make_lines(6, exit_code=0))
    assert "made anew" in damage(state, "--head", head)["reason"]


def test_an_archived_beginning_has_to_be_declared(state):
    lines = make_lines(6)
    put(state, lines[3:])
    assert "--from 4" in damage(state)["reason"]
    assert verify(state, "--from", 4).code == 0
    assert verify(state, "--from", 3).code == 1


def test_files_are_read_in_order_and_missed(state):
    lines = make_lines(9)
    first = put(state, lines[:3], "ledger-%020d.jsonl" % 1)
    second = put(state, lines[3:6], "ledger-%020d.jsonl" % 4)
    put(state, lines[6:])
    r = verify(state, "--json")
    assert (r.code, r.json["files"], r.json["lines"]) == (0, 3, 9)
    data = second.read_bytes()
    second.unlink()
    assert "numbers 4 to 6 are missing" in damage(state)["reason"]
    second.write_bytes(data[:-1])
    found = damage(state)
    assert (found["file"], found["line"]) == (second.name, 3) and "cut off" in found["reason"]
    second.write_bytes(data)
    first.unlink()
    assert "begins with line number 4" in damage(state)["reason"]


# ---- rotation, crashes, disks -----------------------------------------------------------------------------------


def test_rotation_keeps_the_chain(state, writer):
    (state / "ledger").mkdir(parents=True)
    w = writer(state / "ledger", 2000)
    for _ in range(40):
        assert w.append()[0] == "ok"
    files = sorted(p.name for p in (state / "ledger").iterdir())
    assert len(files) > 5 and files[0] == "ledger-%020d.jsonl" % 1
    assert all(p.stat().st_size <= 2000 for p in (state / "ledger").iterdir())
    assert len(read_all(state)) == 40
    assert verify(state).code == 0


def test_a_cut_off_last_line_is_reported_then_set_aside(state, writer):
    lines = make_lines(4)
    path = put(state, lines)
    path.write_bytes(path.read_bytes()[:-30])
    found = damage(state)
    assert (found["line"], found["torn_bytes"]) == (4, len(lines[3]) - 29)
    w = writer(state / "ledger")
    assert w.first[:2] == ["ok", "4"]
    last = read_all(state)[-1]
    assert last["event"] == "recovered" and last["bytes"] == len(lines[3]) - 29
    assert (state / "ledger" / last["file"]).read_bytes() == lines[3][:-29]
    assert verify(state).code == 0


def test_a_damaged_line_stops_the_start(state, writer):
    lines = make_lines(4)
    path = put(state, [*lines[:2], lines[2].replace(b"ann", b"eve"), lines[3]])
    before = path.read_bytes()
    w = writer(state / "ledger")
    assert w.first[:2] == ["error", "EBADMSG"]
    assert "ledger.jsonl, line 3: the line was changed" in w.first[2] and "caisson audit verify" in w.first[2]
    assert path.read_bytes() == before


def test_kill_minus_nine_at_any_moment(state, writer):
    """Every line that was confirmed is there afterwards, and the chain is whole."""
    (state / "ledger").mkdir(parents=True)
    rng, acknowledged = random.Random(1), 0
    for _ in range(30):
        w = writer(state / "ledger", 3000)
        assert w.first[0] == "ok" and int(w.first[1]) >= acknowledged
        w.p.stdin.write(b"test\tann\tjob\ttext\n" * 200)
        w.p.stdin.flush()
        for _ in range(rng.randrange(150)):
            acknowledged = int(w.answer()[1])
        w.p.kill()
        w.p.wait()
    w = writer(state / "ledger", 3000)
    assert w.append()[0] == "ok"
    assert len(read_all(state)) >= acknowledged
    assert verify(state).code == 0


@pytest.fixture
def small_disk(state):
    """A disk of 64 KiB below the state directory."""
    state.mkdir()
    d = state / "ledger"
    d.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "caisson-test", str(d)], check=True)
    yield d
    subprocess.run(["umount", "-l", str(d)], check=True)


def fill(path):
    """Take all the space there is."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except OSError:
        os.close(fd)


@needs_root
def test_full_disk_loses_and_tears_nothing(state, small_disk, writer):
    w = writer(small_disk)
    good = 0
    while w.append(text="y" * 200)[0] == "ok":
        good += 1
        assert good < 1000
    for _ in range(3):
        assert w.append(text="y" * 200)[:2] == ["error", "ENOSPC"]
    assert len(read_all(state)) == good and verify(state).code == 0
    # A start on the full disk succeeds; only operations that it cannot record fail.
    w.close()
    w = writer(small_disk)
    assert w.first[:2] == ["ok", str(good)]
    assert w.append(text="y" * 200)[0] == "error"
    # Space again: the same process goes on.
    subprocess.run(["mount", "-o", "remount,size=128k", str(small_disk)], check=True)
    assert w.append()[:2] == ["ok", str(good + 1)]
    assert verify(state).code == 0


@needs_root
def test_crash_on_a_full_disk_recovers_when_there_is_space(state, small_disk, writer):
    lines = make_lines(2)
    path = put(state, lines)
    path.write_bytes(path.read_bytes()[:-10])
    fill(small_disk / "filler")
    w = writer(small_disk)
    assert w.first[:2] == ["waiting", "1"]
    assert w.append()[:2] == ["error", "ENOSPC"]
    (small_disk / "filler").unlink()
    assert w.append()[:2] == ["ok", "3"]
    assert [o["event"] for o in read_all(state)] == ["test", "recovered", "test"]
    assert len(list(small_disk.glob("ledger.torn-*"))) == 1


@needs_root
def test_read_only_disk(state, small_disk, writer):
    w = writer(small_disk)
    assert w.append()[0] == "ok"
    w.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    w = writer(small_disk)
    assert w.first[:2] == ["error", "EROFS"] and "ledger.jsonl" in w.first[2]
    assert verify(state).code == 0  # reading needs no writing
    assert run("audit", "ls", "--state", state).code == 0


@needs_root
def test_somebody_else_can_not_read_it(shared_dir, writer):
    put(shared_dir, make_lines(2)).chmod(0o600)
    r = run("audit", "verify", "--state", shared_dir, prefix=as_user(), binary=copy_tree(shared_dir / "bin", also=["caisson-remote"]))
    assert r.code == 125 and b"Permission denied" in r.err


# ---- ls ------------------------------------------------------------------------------------------------------


@pytest.fixture
def busy(state):
    lines, prev = [], ZEROS
    for seq in range(1, 13):
        lines.append(make_line(seq, prev, "execution.end" if seq % 2 else "sandbox.created", ("ann", "bob", None)[seq % 3],
                               "box-%d" % (seq % 4), "2026-11-16T%02d:00:00.000Z" % seq, exit_code=seq))
        prev = line_hash(lines[-1])
    put(state, lines)
    return state


def seqs(state, *args):
    r = run("audit", "ls", "--json", "--state", state, *args)
    assert (r.code, r.err) == (0, b""), r
    return [json.loads(line)["seq"] for line in r.out.splitlines()]


def test_ls_filters(busy):
    assert seqs(busy) == list(range(1, 13))
    assert seqs(busy, "--tail", 3) == [10, 11, 12]
    assert seqs(busy, "--tail", 100) == list(range(1, 13))
    assert seqs(busy, "--sandbox", "box-1") == [1, 5, 9]
    assert seqs(busy, "--owner", "bob") == [1, 4, 7, 10]
    assert seqs(busy, "--event", "sandbox.created", "--tail", 2) == [10, 12]
    assert seqs(busy, "--owner", "bob", "--event", "execution.end") == [1, 7]
    assert seqs(busy, "--sandbox", "nothing") == []
    assert seqs(busy, "--since", "2026-11-16T10:00:00Z") == [10, 11, 12]
    assert seqs(busy, "--since", "2026-11-16T10:00:00.001Z") == [11, 12]
    assert seqs(busy, "--since", "2026-11-16T12:00:00+02:00") == [10, 11, 12]
    assert seqs(busy, "--since", "2026-11-16T06:30:00-03:30") == [10, 11, 12]
    assert seqs(busy, "--since=2026-11-17") == []
    r = run("audit", "ls", "--json", "--state", busy)
    assert r.out == (busy / "ledger" / CURRENT).read_bytes()  # the very lines, to be checked again elsewhere


def test_ls_for_people(busy):
    r = run("audit", "ls", "--state", busy, "--tail", 1)
    head, row = r.out.decode().splitlines()
    assert head.split() == ["TIME", "SEQ", "EVENT", "OWNER", "SANDBOX", "DETAILS"]
    assert row.split() == ["2026-11-16T12:00:00.000Z", "12", "sandbox.created", "ann", "box-0", "exit_code=12"]
    assert b"\x1b" not in r.out


def test_since_a_while_ago(state, writer):
    put(state, make_lines(2, time="2020-01-01T00:00:00.000Z"))
    w = writer(state / "ledger")
    assert w.append()[0] == "ok"
    assert seqs(state, "--since", "2h") == [3]


def test_names_can_not_command_a_terminal(state):
    put(state, make_lines(1, owner="\x1b]0;evil\x07", sandbox="a\u202eb", text="\x9b31m\r"))
    r = run("audit", "ls", "--state", state)
    assert r.code == 0
    assert not set(r.out.decode()) & set("\x1b\x07\u202e\x9b\r")
    assert "\\x1b]0;evil\\x07" in r.out.decode() and "a\\u{202e}b" in r.out.decode()


def test_ls_reports_damage_and_goes_on_after_it(state):
    lines = make_lines(4)
    put(state, [lines[0], lines[1].replace(b"ann", b"eve"), b"not json", *lines[2:]])
    r = run("audit", "ls", "--state", state)
    assert r.code == 1
    marks = ["!" in row for row in r.out.decode().splitlines()[1:]]
    assert marks == [False, True, True, True, True]
    assert b"ledger.jsonl, line 2" in r.err and b"was changed" in r.err
    assert len(run("audit", "ls", "--json", "--state", state).out.splitlines()) == 4


# ---- wrong use --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args,why", [
    ((), b"caisson audit verify"),
    (("nonsense",), b"nonsense"),
    (("ls", "--nonsense"), b"--nonsense"),
    (("ls", "extra"), b"extra"),
    (("ls", "--tail"), b"--tail needs a value"),
    (("ls", "--tail", "0"), b"--tail"),
    (("ls", "--tail", "200000"), b"--tail"),
    (("ls", "--since", "yesterday"), b"--since"),
    (("ls", "--since", "2026-13-45"), b"--since"),
    (("ls", "--since", "2026-11-16T10:00:00+2"), b"--since"),
    (("ls", "--since", "2026-11-16T10:00:00+24:00"), b"--since"),
    (("ls", "--since", "2026-11-16T10:00:00Zulu"), b"--since"),
    (("ls", "--head", "1:" + ZEROS), b"--head"),
    (("verify", "--json=yes"), b"--json takes no value"),
    (("verify", "--head", "12"), b"--head"),
    (("verify", "--head", "x:" + ZEROS), b"--head"),
    (("verify", "--tail", "3"), b"--tail"),
    (("verify", "--state", ""), b"--state"),
])
def test_wrong_use(state, args, why):
    put(state, make_lines(1))
    r = run("audit", *args, env={"CAISSON_STATE": str(state)})
    assert r.code == 125 and why in r.err and r.out == b"", r


def test_state_comes_from_the_environment_too(state):
    put(state, make_lines(1))
    assert run("audit", "verify", env={"CAISSON_STATE": str(state)}).code == 0
    r = run("audit", "verify", "--state", state / "elsewhere")
    assert r.code == 125 and b"there is no ledger" in r.err
    (state / "ledger" / CURRENT).unlink()
    r = run("audit", "verify", "--json", "--state", state)
    assert r.code == 125 and r.json["error"]["code"] == "ENOENT"


def test_help():
    for args in (("audit", "--help"), ("help", "audit"), ("audit", "verify", "--help")):
        r = run(*args)
        assert r.code == 0 and b"--since TIME" in r.out and r.err == b""
    assert b"caisson audit ls|verify" in run("--help").out


def test_output_to_a_closed_reader(busy):
    with open("/dev/full", "wb") as full:
        r = run("audit", "ls", "--state", busy, stdout=full)
    assert r.code == 125 and b"standard output" in r.err


def test_progress_and_colours_are_for_terminals(busy):
    leader, follower = os.openpty()
    try:
        p = subprocess.Popen([str(BIN), "audit", "verify", "--state", str(busy)], stdout=follower, stderr=follower,
                             stdin=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"})
        assert p.wait(20) == 0
        assert wait_until(lambda: b"\x1b[32mwhole\x1b[0m" in os.read(leader, 4096))
    finally:
        os.close(leader)
        os.close(follower)
