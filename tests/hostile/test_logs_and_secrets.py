# SPDX-License-Identifier: Apache-2.0
"""test_logs_and_secrets.py - Texts of clients in logs, and secrets of sandboxes, which must never get into one."""
import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import daemon_lib
import pytest
from daemon_lib import Daemon, scan_memory
from process import children, unique
from lib import CAISSON, host_env, landed
from cell_lib import nonce, processes_with, read, scratch, until
from named import V1, Box
from snapshot import pids, stat_of

from layers_lib import copy_in, libraries

daemon, hostile_test, whole_module = daemon_lib.daemon, daemon_lib.hostile_test, daemon_lib.whole_module
quick = pytest.mark.quick


# ---- logs -----------------------------------------------------------------------------------------------------------

ALL_BYTES = bytes(range(256))
EVIL = "\x1b[2J\x1b]0;owned\x07\r\n{\"seq\":1,\"event\":\"forged\",\"level\":\"error\"}\n\x00\u2028\u2029\x85\x9b31m\u202eabc\x7f"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u2028\u2029]")


def inject(d, box):
    """EVIL wherever a client or a guest can put a text. Refusals are logged, too."""
    clean = EVIL.replace("\x00", "")
    box.execute(f"# {clean}\nprint({EVIL!r})\nraise type('E', (Exception,), {{}})({clean!r})")
    box.execute(f"import os, ctypes\nctypes.CDLL(None).prctl(15, {clean.encode()[:15]!r})\nopen(os.path.join('/workspace', {clean.replace('/', '')[:60]!r}), 'w')")
    box.request("POST", "/exec", {"cmd": clean, "args": [clean], "env": {"E": clean}, "cwd": clean})
    box.request("POST", "/exec", {"cmd": "echo", "args": [clean], "env": {clean.replace("=", ""): clean}, "stdin": EVIL})
    box.request("POST", "/processes", {"cmd": "sh", "args": ["-c", f"printf '{clean}' >&2; exit 3", clean]})
    box.request("POST", "/shell", {"script": f"printf '%s' '{clean}'; kill -9 $$"})
    for field in ("name", "image", "workspace", "session_id", "language", "code", "signal", clean):
        for path in (V1, "/execute", f"{box.url}/execute", f"{box.url}/exec"):
            d.request("POST", path, {"code": "1", field: EVIL})
    name = unique("label")
    d.request("POST", V1, {"name": name, "labels": {clean: clean, "b": EVIL}, "env": {"V": clean}})
    d.request("DELETE", f"{V1}/{name}")
    d.request("POST", V1, {"name": name, "labels": {"k": clean}})
    d.request("DELETE", f"{V1}/{name}")
    for path in (quote(clean), quote(EVIL), quote(ALL_BYTES)):
        for method, route in (("GET", "/files"), ("PUT", "/files"), ("DELETE", "/files"), ("GET", "/files/list")):
            d.request(method, f"{box.url}{route}?path={path}", b"x" if method == "PUT" else None)
        d.request("GET", f"{V1}/{path}")
        d.request("GET", f"/{path}?{path}={path}")
        d.request("DELETE", f"/sessions/{path}")
    header = clean.replace("\r", "").replace("\n", "").encode("utf-8")
    for key in (b"User-Agent", b"X-Request-Id", b"Idempotency-Key", b"Origin", b"Referer", b"X-Forwarded-For", b"Authorization", b"Host", b"Cookie", b"Accept"):
        for value in (header, b"\x1b[31mred", b"\xff\xfe\x9b", b"a\tb", header * 100):
            d.raw(b"GET /sessions HTTP/1.1\r\n" + (b"" if key == b"Host" else b"Host: localhost\r\n") + key + b": " + value +
                  b"\r\nConnection: close\r\n\r\n", 1)
    d.raw(b"\x1b[31m" + ALL_BYTES + b" / HTTP/1.1\r\n\r\n", 1)
    d.raw(b"GET /" + header.replace(b" ", b"") + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 0.3)


def audit(d, *args):
    return subprocess.run([str(CAISSON), "audit", *args, "--state", str(d.state)], capture_output=True, env=host_env(), timeout=60, check=False)


@quick
@pytest.mark.parametrize("form", ["json", "text"])
def test_log_injection(form, stopped_by):
    """In code, names, labels, paths, arguments, headers, queries: one record per event in log and ledger, escaped and cut."""
    naive = f'{{"event":"request","path":"{EVIL}"}}'
    landed(len(naive.splitlines()) > 1 and CONTROL.search(naive), "a log that only pastes has lines of the client's")
    with Daemon("--log-level", "debug", "--pool", 1, log_format=form) as d:
        with Box(d) as box:
            inject(d, box)
            box.execute("1")
        d.quiet()
        log = d.log_path.read_bytes()
        ledger = [x for f in sorted((d.state / "ledger").glob("*.jsonl")) for x in f.read_bytes().splitlines()]
        shown = audit(d, "ls").stdout + audit(d, "ls", "--json").stdout
        v = audit(d, "verify")
        assert v.returncode == 0, v
    text = log.decode("utf-8")      # and it is UTF-8
    bad = [x for x in text.split("\n") if CONTROL.search(x)]
    assert not bad, f"in {len(bad)} lines of the log: {bad[:3]!a}"
    for line in text.rstrip("\n").split("\n"):
        assert len(line) < 4097, line
        if form == "json":
            assert json.loads(line)["event"] != "forged", line
        else:
            assert re.match(r"\d\d:\d\d:\d\d\.\d{3} (debug|info|warning|error) [a-z_]+ ", line), line
    landed("owned" in text and len(text.splitlines()) > 100, "what was said is in it, escaped")
    for i, line in enumerate(ledger):
        e = json.loads(line.decode("utf-8"))
        assert e["seq"] == i + 1 and e["event"] != "forged" and len(line) < 16385, line
        assert not CONTROL.search(line.decode("utf-8")), line
    assert not CONTROL.search(shown.decode("utf-8").replace("\n", "")), "in the output of `caisson audit ls`"
    stopped_by("escaping and cutting in log and ledger")


@quick
def test_names_do_not_control_terminals(daemon, stopped_by):
    """Labels and names in the output of `caisson ps` and `top` do not control the terminal."""
    label = "\x1b]0;owned\x07\x1b[31m\x9b2J"
    with Box(daemon, labels={"k": label, "x": "plain"}) as box:
        env = host_env(CAISSON_URL=f"http://127.0.0.1:{daemon.port}", TERM="xterm")
        r = subprocess.run(["script", "-qec", f"{CAISSON} ps", "/dev/null"], capture_output=True, env=env, timeout=20, stdin=subprocess.DEVNULL, check=False)
        landed(box.name.encode() in r.stdout and label in json.loads(box.request("GET", "").body)["spec"]["labels"]["k"], r)
        assert b"\x1b]0" not in r.stdout and b"\x07" not in r.stdout and b"\x1b[31m" not in r.stdout and b"\xc2\x9b" not in r.stdout, r.stdout
    stopped_by("escaping in the client")


@quick
def test_log_field_sizes(daemon, stopped_by):
    """A field of many megabytes, a thousand labels, a name of 64 KiB: refused, and a line each in the log."""
    size = daemon.log_path.stat().st_size
    bodies = [{"code": "x" * (7 << 20)}, {"code": "1", "session_id": "x" * (1 << 16)}, {"code": "1", "x" * (1 << 20): 1},
              {"name": "x", "labels": {f"k{i}": "v" for i in range(1000)}}, {"name": "x", "labels": {"k": "v" * (1 << 20)}}]
    for body in bodies:
        r = daemon.request("POST", V1 if "name" in body else "/execute", body)
        assert r.status in (413, 422) and r.code, r
    r = daemon.raw(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 104857600\r\n\r\n" + b"x" * 100000, 2)[0]
    assert b" 413 " in r[:20], r[:100]
    grown = daemon.log_path.stat().st_size - size
    landed(grown > 500, grown)
    assert grown < 8 * 2000, f"{grown} bytes of log"
    stopped_by("values are cut")


# ---- a client's secrets ----------------------------------------------------------------------------------------------------

SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/log", "/var/crash", "/var/lib/systemd/coredump")


def holders(needle, skip):
    """Host processes with @needle in their arguments or their environment, but for those of @skip."""
    found = []
    for pid in pids():
        with contextlib.suppress(OSError):
            for f in ("cmdline", "environ"):
                if needle in Path(f"/proc/{pid}/{f}").read_bytes() and pid not in skip:
                    found.append((pid, stat_of(pid)[0], f))
    return found


def files_with(needles, *tops, since=0):
    """Files that were written since then and contain one of @needles; not deep in directories of others in /tmp."""
    found = []
    for top in tops:
        for where, dirs, names in os.walk(top):
            if str(top) in SHARED and where.count("/") - str(top).count("/") >= 2:
                dirs.clear()
            for name in names:
                path = os.path.join(where, name)
                with contextlib.suppress(OSError):
                    st = os.lstat(path)
                    if st.st_mtime >= since and st.st_size < 64 << 20 and os.path.isfile(path) and not os.path.islink(path) and \
                            any(n in Path(path).read_bytes() for n in needles):
                        found.append(path)
    return found


@quick
def test_secret_stays_in_its_own_sandbox(stopped_by):
    """A secret in env, code, stdin, a file, an argument and an error: in no log, ledger, store, other process, other sandbox or answer."""
    begin = time.time() - 1
    words = {k: secrets.token_hex(16) for k in ("env", "code", "stdin", "file", "arg", "error", "command env", "upload")}
    with Daemon("--log-level", "debug", "--pool", 1) as d, Box(d, env={"SECRET": words["env"]}) as box, Box(d) as other:
        r = box.execute(f"secret = '{words['code']}'\nimport os\nopen('/workspace/s', 'w').write('{words['file']}')\nassert os.environ['SECRET']\n"
                        f"input(); raise ValueError('{words['error']}')", stdin=words["stdin"] + "\n")
        assert words["error"] in json.dumps(r), "its owner has it"
        box.exec("true", words["arg"], env={"S": words["command env"]}, stdin=words["stdin"])
        box.put("up", words["upload"].encode())
        n = nonce()
        box.start("bash", "-c", f"exec -a {n} sleep 1000", words["arg"], env={"S": words["command env"]})
        pid = until(lambda: [p for p in processes_with(n) if (stat_of(p) or ("",))[0] == "sleep"], 10, "it")[0]
        other.execute("1")
        mine = box.guests(os.readlink(f"/proc/{pid}/ns/pid"))
        landed(words["env"].encode() in Path(f"/proc/{pid}/environ").read_bytes(), "it has it")
        every = [w.encode() for w in words.values()]
        for p in {d.warden, d.zygote, *d.guests()} - mine:
            with contextlib.suppress(OSError):
                assert not scan_memory(p, *every), f"READ: in the memory of {stat_of(p)}"
        for what, w in words.items():
            word = w.encode()
            assert not holders(word, mine | {os.getpid()}), f"{what}: {holders(word, mine)}"
            answers = [b.request("GET", path) for path in ("", "/logs", "/executions", "/processes", "/files/list") for b in (box, other)]
            answers += [d.request("GET", path) for path in (V1, "/sessions", "/metrics", "/health")]
            # Errors are output, and a process is shown with its words: to their owner, in their sandbox.
            shown = [r for r in answers if word in r.body]
            assert not shown or what in ("error", "arg"), (what, shown)
            assert w not in d.log_text(), f"{what} is in the log"
        assert box.remove() == 204
        other.remove()
        d.quiet()
        kept = files_with(every, d.state, d.where, *SHARED, since=begin)
        assert not kept, kept
        assert not scan_memory(d.warden, *every), "the warden has it"
        landed(scan_memory(os.getpid(), words["env"].encode()), "the scan finds what is there")
        with scratch() as s:
            (s / "x").write_text(words["env"])
            landed(files_with(every, s, since=begin), "the search finds what is there")
    assert not files_with(every, d.state, d.where, since=begin), "it outlives the daemon"
    stopped_by("the ledger has hashes, the store has names, the log has neither")


@quick
def test_secret_is_in_no_core_dump(daemon, stopped_by):
    """A kernel and a command that dump core with a secret in memory leave none: not in the sandbox, not on the host."""
    w, begin = secrets.token_hex(16), time.time() - 1
    with Box(daemon) as box:
        box.execute(f"import os, resource\ns = '{w}'\ntry: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))\nexcept (OSError, ValueError): pass\nos.abort()")
        box.shell(f"S={w}; ulimit -c unlimited; kill -ABRT $$")
        names = box.shell("find / -xdev -name 'core*' -newer /etc/hostname -type f 2>/dev/null")["stdout"]
        assert not [x for x in names.split() if re.search(r"/core(\.\d+)?$", x)], names
        assert w.encode() not in box.request("GET", "/files/tar?path=.").body
    kept = files_with([w.encode()], daemon.state, daemon.where, *SHARED, since=begin)
    assert not kept, kept
    landed(daemon.good() < 20, "it goes on")
    stopped_by("RLIMIT_CORE 0, hard")


# ---- the daemon's own environment --------------------------------------------------------------------------------------------

SURROUNDINGS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "HTTPS_PROXY",
                "http_proxy", "CAISSON_TOKEN", "KUBECONFIG", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR_X", "GOOGLE_APPLICATION_CREDENTIALS", "PGPASSWORD",
                "LD_LIBRARY_PATH_X", "PYTHONPATH", "NODE_OPTIONS_X", "BASH_FUNC_x%%", "SUDO_USER", "MAIL")


@quick
def test_environment_of_the_daemon_stays_outside(stopped_by):
    """Keys, sockets and proxies in the daemon's environment: in no process that a client can have, by any road, nor in pid 1 or the zygote."""
    w = secrets.token_hex(16)
    env = {k: f"http://{w}:x@127.0.0.1:3128" if "PROXY" in k.upper() else f"/{w}/{k}" if k != "BASH_FUNC_x%%" else f"() {{ echo {w}; }}" for k in SURROUNDINGS}
    with Daemon("--pool", 1, env=env) as d, Box(d) as box:
        landed(w in read(f"/proc/{d.pid}/environ"), "the front has it")
        for language, code in (("python", "import os; print(dict(os.environ))"), ("bash", "env; declare -F; set"), ("javascript", "console.log(process.env)")):
            r = box.request("POST", "/execute", {"code": code, "language": language})
            if r.status == 200:
                assert w.encode() not in r.body and len(r.json["stdout"]) > 50, r
        for r in (box.exec("env"), box.shell("env; declare -F; x")):
            assert w not in json.dumps(r) and "PATH=" in r["stdout"], r
        box.start("sleep", "1000", pty=True)
        box.start("sleep", "1000", stdin=True)
        box.request("PUT", "/files?path=f", b"x")
        until(lambda: sum((stat_of(g) or ("",))[0] == "sleep" for g in d.guests()) == 2, 10, "both")
        seen = 0
        for pid in {d.zygote, *d.cells(), *d.guests()}:
            with contextlib.suppress(OSError):
                assert w not in read(f"/proc/{pid}/environ") and w not in read(f"/proc/{pid}/cmdline"), (pid, stat_of(pid))
                assert not scan_memory(pid, w.encode()), f"READ: in the memory of {stat_of(pid)}"
                seen += 1
        landed(seen >= 5, seen)
    stopped_by("a clean environment")


# ---- the image -----------------------------------------------------------------------------------------------------------------

def tree_hash(top):
    h = hashlib.sha256()
    for where, dirs, names in os.walk(top):
        dirs.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            st = os.lstat(path)
            h.update(f"{path} {st.st_mode} {st.st_uid} {st.st_mtime_ns}".encode())
            h.update(os.readlink(path).encode() if os.path.islink(path) else Path(path).read_bytes())
        st = os.lstat(where)
        h.update(f"{where} {st.st_mode} {st.st_uid} {st.st_mtime_ns}".encode())
    return h.hexdigest()


@quick
def test_image_is_not_changed_by_a_sandbox(stopped_by):
    """A directory image, writable for all: a sandbox that rewrites everything in its root changes its own layer, and the next one starts afresh."""
    with scratch(0o755) as top:
        image = top / "image"
        for d in ("bin", "etc", "lib", "tmp", "data"):
            (image / d).mkdir(parents=True, mode=0o777)
            (image / d).chmod(0o777)
        busybox = shutil.which("busybox")
        if not busybox or b"statically linked" not in subprocess.run(["file", "-L", busybox], capture_output=True, check=False).stdout:
            pytest.skip("there is no static busybox here to make an image of")
        shutil.copy(busybox, image / "bin/busybox")
        for name in ("sh", "rm", "touch", "cat", "chmod", "find", "echo", "mv"):
            (image / "bin" / name).symlink_to("busybox")
        for name in ("data/a", "etc/conf", "data/b"):
            (image / name).write_text("original")
            (image / name).chmod(0o666)
        for library in libraries(CAISSON.parent / "caisson-init"):  # which has some when it is sanitized
            copy_in(image, library)
        before = tree_hash(image)
        evil = "for f in $(find /data /etc /bin -type f); do echo evil >> $f; chmod 777 $f; done; rm -rf /data/a /bin/mv; touch /data/new; cat /data/b"
        with Daemon("--image", f"dir:{image}", "--pool", 0, wait=False) as d:
            until(lambda: b'"listening"' in d.log_path.read_bytes(), 20, "a daemon")     # no python in it: no zygote to wait for
            d.warden = children(d.pid)[0]
            with Box(d) as box:
                r = box.exec("/bin/sh", "-c", evil)
                landed("evil" in r["stdout"], f"it lands in its own layer: {r}")
            with Box(d) as box:
                r = box.exec("/bin/sh", "-c", "cat /data/a /data/b /etc/conf; ls /data 2>/dev/null; echo /data/*")
                assert r["stdout"].startswith("originaloriginaloriginal") and "/data/new" not in r["stdout"], r
        assert tree_hash(image) == before, "WRITE: the image was changed"
    stopped_by("the image is a read-only lower layer")
