# SPDX-License-Identifier: Apache-2.0
"""test_languages.py - Every language keeps its state, reports its errors and ends on request."""
import os
import re
import shutil
import subprocess
import sysconfig

import pytest

from integ_lib import copy_programs
from process import ROOT, unique, wait_until
from serve_lib import GUEST


def missing(language, program, driver):
    """The reason why a language cannot be tested here, or None."""
    if not shutil.which(program):
        return "no %s here" % program
    source = ROOT / "src" / "guest" / language / driver
    if not source.exists() or not (GUEST / driver).exists() or (GUEST / driver).stat().st_size < 100:
        return "the %s kernel is not in this build" % language
    return None


def language(name, program, driver):
    why = missing(name, program, driver)
    return pytest.param(name, marks=[pytest.mark.skip(reason=why)] if why else [], id=name)


PYTHON = pytest.param("python", id="python")
BASH = language("bash", "bash", "driver.sh")
JAVASCRIPT = language("javascript", "node", "driver.js")
R = language("r", "Rscript", "driver.R")
every = pytest.mark.parametrize("lang", [PYTHON, BASH, JAVASCRIPT, R])

# The same in each language.
HELLO = {"python": "print('hello')", "bash": "echo hello", "javascript": "console.log('hello')", "r": "cat('hello\\n')"}
SET = {"python": "x = 41\ndef f(y): return x + y", "bash": "x=41; f() { echo $((x + $1)); }; cd /tmp",
       "javascript": "let x = 41; const f = y => x + y; class C {}", "r": "x <- 41; f <- function(y) x + y"}
USE = {"python": "print(f(1))", "bash": "f 1", "javascript": "console.log(f(1))", "r": "cat(f(1), '\\n')"}
FAIL = {"python": "raise ValueError('broken on purpose')", "bash": "echo broken on purpose >&2; (exit 3)",
        "javascript": "throw new RangeError('broken on purpose')", "r": "stop('broken on purpose')"}
SLEEP = {"python": "import time; time.sleep(60)", "bash": "sleep 60", "javascript": "await new Promise(r => setTimeout(r, 60000))",
         "r": "Sys.sleep(60)"}
SPIN = {"python": "while True: pass", "bash": "while :; do :; done", "javascript": "while (true) {}", "r": "while (TRUE) {}"}
EXIT = {"python": "import os; os._exit(9)", "bash": "kill -KILL $$", "javascript": "process.kill(process.pid, 'SIGKILL')",
        "r": "tools::pskill(Sys.getpid(), 9)"}
CHILD = {"python": "import os\nprint('a', flush=True)\nos.system('echo b')\nprint('c')", "bash": "echo a; sh -c 'echo b'; echo c",
         "javascript": "console.log('a'); require('child_process').execSync('echo b', {stdio: 'inherit'}); console.log('c')",
         "r": "cat('a\\n'); system('echo b'); cat('c\\n')"}


@every
def test_hello(daemon, lang):
    d = daemon.execute(HELLO[lang], language=lang, timeout=60)
    assert d["stdout"].strip() == "hello" and d["success"] and d["language"] == lang and d["stderr"] == "", d
    assert lang in daemon.health()["languages"]


@every
def test_state_is_kept(daemon, lang):
    name = unique()
    d = daemon.execute(SET[lang], language=lang, session_id=name, timeout=60)
    assert d["success"] and d["state"] == "kept", d
    d = daemon.execute(USE[lang], language=lang, session_id=name)
    assert d["stdout"].strip() == "42" and d["epoch"] == 0, d


@every
def test_fresh_without_a_session(daemon, lang):
    daemon.execute(SET[lang], language=lang, timeout=60)
    d = daemon.execute(USE[lang], language=lang, timeout=60)
    assert not d["success"] and "42" not in d["stdout"], d


@every
def test_failure_is_reported_and_survived(daemon, lang):
    name = unique()
    daemon.execute(SET[lang], language=lang, session_id=name, timeout=60)
    d = daemon.execute(FAIL[lang], language=lang, session_id=name)
    assert not d["success"] and d["status"] == "error" and d["exit_code"] == (3 if lang == "bash" else 1), d
    assert "broken on purpose" in d["stderr"] and d["state"] == "kept", d
    if lang != "bash":
        assert "broken on purpose" in d["error"]["value"] and d["error"]["name"] and d["error"]["traceback"], d
    assert daemon.execute(USE[lang], language=lang, session_id=name)["stdout"].strip() == "42"


@every
@pytest.mark.parametrize("what", ["sleep", "spin"])
def test_timeout_and_state(daemon, lang, what):
    name = unique()
    daemon.execute(SET[lang], language=lang, session_id=name, timeout=60)
    d = daemon.execute({"sleep": SLEEP, "spin": SPIN}[what][lang], language=lang, session_id=name, timeout=1)
    assert d["status"] == "timeout" and d["exit_code"] == 124 and d["cause"]["kind"] == "wall", d
    assert (d["state"], d["epoch"]) in (("kept", 0), ("reset", 1)), d
    kept = d["state"] == "kept"
    d = daemon.execute(USE[lang], language=lang, session_id=name, timeout=60)
    assert (d["stdout"].strip() == "42") == kept, d
    if lang in ("python", "bash"):
        assert kept, "an interrupt is enough for %s" % lang


@every
def test_death_is_a_reset(daemon, lang):
    name = unique()
    daemon.execute(SET[lang], language=lang, session_id=name, timeout=60)
    d = daemon.execute(EXIT[lang], language=lang, session_id=name)
    assert (d["state"], d["epoch"], d["exit_code"]) == ("reset", 1, 9 if lang == "python" else 137), d
    d = daemon.execute(HELLO[lang], language=lang, session_id=name, timeout=60)
    assert d["stdout"].strip() == "hello" and d["epoch"] == 1, d


@every
def test_order_of_childrens_output(daemon, lang):
    d = daemon.execute(CHILD[lang], language=lang, timeout=60)
    assert d["stdout"].split() == ["a", "b", "c"], d


@every
def test_no_child_has_the_control_channel(daemon, lang):
    """A program that the code starts has 0 to 2, and no descriptor of the kernel."""
    if lang == "r":
        pytest.skip("base R has no way to mark descriptors close-on-exec: its children see the channel of their own sandbox")
    run = {"python": "import os; os.system('%s')", "bash": "%s", "javascript": "require('child_process').execSync('%s', {stdio: 'inherit'})",
           "r": "system('%s')"}[lang]
    d = daemon.execute(run % "ls -1 /proc/self/fd", language=lang, timeout=60)
    assert d["success"] and set(d["stdout"].split()) == {"0", "1", "2", "3"}, "3 is the directory that ls reads: %r" % d


@every
def test_streams(daemon, lang):
    with daemon.stream(HELLO[lang], language=lang, timeout=60) as s:
        events = s.all()
    assert "".join(d["data"] for e, d in events if e == "stdout").strip() == "hello"
    assert events[-1][0] == "done" and events[-1][1]["success"]


def test_languages_of_one_session_share_its_files(daemon):
    name = unique()
    daemon.execute("open('/workspace/shared', 'w').write('from python')", session_id=name)
    d = daemon.execute("cat shared; echo; x=1", session_id=name, language="bash")
    assert d["stdout"] == "from python\n" and d["language"] == "bash", d
    daemon.execute("kept = 1", session_id=name)
    d = daemon.execute("echo $x", session_id=name, language="bash")
    assert d["stdout"] == "1\n"
    assert daemon.execute("kept", session_id=name)["result"]["text/plain"] == "1"


def test_death_of_one_language_is_seen_in_the_epoch_of_all(daemon):
    name = unique()
    daemon.execute("x = 1", session_id=name)
    d = daemon.execute("kill -KILL $$", session_id=name, language="bash")
    assert d["state"] == "reset" and d["epoch"] == 1, d
    d = daemon.execute("x", session_id=name)
    assert d["success"] and d["epoch"] == 1, "python's variables were not touched"


def test_reset_of_one_language_is_reported_by_all(daemon):
    """Everything in the cell is killed when one kernel does not end: each execution that lost its state reports it."""
    name = unique()
    daemon.execute("x = 1", session_id=name)
    d = daemon.execute("trap '' INT; while :; do :; done", session_id=name, language="bash", timeout=1)
    assert d["status"] == "timeout", d
    kept = d["state"] == "kept"
    r = daemon.execute("'x' in globals()", session_id=name)
    assert r["state"] == "reset" or r["result"]["text/plain"] == "True" or (not kept and r["epoch"] > 0), (d, r)


@pytest.mark.parametrize("alias,name", [("py", "python"), ("Python3", "python"), ("sh", "bash"), ("SHELL", "bash")])
def test_aliases(daemon, alias, name):
    assert daemon.execute({"python": "1", "bash": "true"}[name], language=alias)["language"] == name


def test_unknown_language_lists_the_known_ones(daemon):
    r = daemon.try_execute("1", language="cobol")
    assert (r.status, r.error["code"], r.error["field"]) == (422, "unknown_language", "language"), r
    for name in daemon.health()["languages"]:
        assert name in r.error["message"]


def test_unknown_language_makes_no_session(daemon):
    name = unique()
    daemon.try_execute("1", language="cobol", session_id=name)
    assert name not in daemon.sessions()


# ---- bash ----------------------------------------------------------------------------------------------------------


def test_bash_exit_code_and_stderr(daemon):
    d = daemon.execute("echo out; echo err >&2; false", language="bash")
    assert (d["stdout"], d["stderr"], d["exit_code"], d["status"]) == ("out\n", "err\n", 1, "error"), d
    assert daemon.execute("exit 5", language="bash")["exit_code"] == 5


def test_bash_keeps_directory_functions_and_options(daemon):
    name = unique()
    for code, out in [("cd /tmp; f() { echo in f; }; export E=e; set -u", ""), ("pwd; f; echo $E", "/tmp\n" "in f\n" "e\n")]:
        assert daemon.execute(code, language="bash", session_id=name)["stdout"] == out


def test_bash_syntax_error_is_survived(daemon):
    name = unique()
    daemon.execute("x=kept", language="bash", session_id=name)
    d = daemon.execute("if then fi (", language="bash", session_id=name)
    assert not d["success"] and "syntax error" in d["stderr"], d
    assert daemon.execute("echo $x", language="bash", session_id=name)["stdout"] == "kept\n"


# ---- input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang,code", [
    pytest.param("python", "print('<' + input() + '>')", id="python"),
    pytest.param("bash", "read -r a; echo \"<$a>\"", marks=BASH.marks, id="bash"),
    pytest.param("javascript", "console.log('<' + require('fs').readFileSync(0, 'utf8').split('\\n')[0] + '>')", marks=JAVASCRIPT.marks, id="javascript"),
    pytest.param("r", "cat('<', readLines('stdin', 1), '>\\n', sep = '')", marks=R.marks, id="r")])
def test_stdin_field(daemon, lang, code):
    """The code reads the `stdin` of the request from standard input, or the request is refused: it is never ignored."""
    r = daemon.try_execute(code, language=lang, stdin="one line\n", timeout=60)
    if r.status == 422:
        assert r.error["field"] == "stdin", r
    else:
        assert r.json["stdout"] == "<one line>\n", r


# ---- images that lack something --------------------------------------------------------------------------------------


def small_root(where, *programs):
    for p in programs:
        if not shutil.which(p):
            pytest.skip("no %s here to make a small image of" % p)
    root = copy_programs(where / "root", *programs)
    for sub in ("dev", "proc", "sys", "usr", "var", "home", "workspace", "run"):
        (root / sub).mkdir(exist_ok=True)
    for d, _, files in os.walk(root):
        os.chmod(d, 0o1777 if d.endswith("/tmp") else 0o755)
        for f in files:
            os.chmod(os.path.join(d, f), 0o755)
    return root


def test_image_with_bash_alone(serve, short_dir):
    """Without python, bash works, python is a clear error that lists the languages, and the daemon is healthy."""
    root = small_root(short_dir, "bash", "sh", "cat", "mktemp", "mkfifo", "rm", "head", "od", "tr")
    d = serve("--image", "dir:%s" % root, wait=False)
    assert wait_until(lambda: d.port and try_health(d) in ("healthy",)), (try_health(d), d.log_text()[-3000:])
    r = d.try_execute("print(1)")
    assert (r.status, r.error["code"], r.error["field"]) == (422, "language_unavailable", "language"), r
    assert "python" in r.error["message"] and "bash" in r.error["message"].partition("there are")[2], r
    assert d.health()["languages"] == ["bash"]
    out = d.execute("echo from the small image; cat /etc/hostname", language="bash")
    assert out["stdout"].startswith("from the small image\n"), out


def test_image_without_any_interpreter(serve, short_dir):
    if not shutil.which("busybox"):
        pytest.skip("no busybox here (apt-get install busybox-static)")
    root = small_root(short_dir, "busybox")
    d = serve("--image", "dir:%s" % root, wait=False)
    assert wait_until(lambda: try_health(d) is not None), d.log_text()[-3000:]
    r = d.try_execute("print(1)")
    assert (r.status, r.error["code"]) == (422, "language_unavailable"), r
    assert d.health()["languages"] == []


def try_health(d):
    assert d.running(), d.log_text()[-2000:]
    try:
        return d.health()["status"]
    except OSError:
        return None


def test_image_that_names_an_interpreter_it_does_not_have(serve, short_dir):
    """A dangling link is found at the first use, and reported; sessions continue."""
    root = small_root(short_dir, "bash", "sh", "cat", "mktemp", "mkfifo", "rm", "head", "od", "tr")
    (root / "bin" / "node").symlink_to("/nowhere/node")
    d = serve("--image", "dir:%s" % root, wait=False)
    assert wait_until(lambda: try_health(d) == "healthy"), d.log_text()[-3000:]
    name = unique()
    assert d.execute("x=1", language="bash", session_id=name)["success"]
    r = d.try_execute("1", language="javascript", session_id=name)
    assert (r.status, r.error["code"]) == (422, "language_unavailable"), r
    assert d.execute("echo $x", language="bash", session_id=name)["stdout"] == "1\n"


def test_image_that_is_not_there(serve):
    d = serve("--image", "dir:/nonexistent/root", wait=False)
    assert d.end() == 125 and "/nonexistent/root" in d.log_text(), d.log_text()


@pytest.fixture
def python_image(short_dir):
    """A root directory with python3 and its library, by links to this machine's files."""
    library = sysconfig.get_paths(vars={"base": "/usr", "installed_base": "/usr"})["stdlib"]
    if not os.path.isfile(library + "/os.py"):
        pytest.skip("no python3 of the distribution here to make an image of")
    root = small_root(short_dir, "bash", "sh")
    shutil.copy("/usr/bin/python3", root / "bin" / "python3")
    (root / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["cp", "-al", library, str(root) + library], capture_output=True).returncode:
        pytest.skip("no links from /usr to the directory for temporary files")
    needed = subprocess.run("ldd /usr/bin/python3 %s/lib-dynload/_ctypes*.so" % library, shell=True, capture_output=True, text=True).stdout
    for lib in set(re.findall(r"=> (/\S+) \(0x", needed)):
        target = root / lib.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(lib), target)
    return root


def test_python_of_an_image_directory(serve, python_image):
    with serve("--image", "dir:%s" % python_image) as d:
        r = d.execute("import os\nprint(os.path.exists('/usr/bin/python3'), os.path.exists('/bin/python3'))\n6 * 7")
        assert (r["stdout"], r["result"]["text/plain"]) == ("False True\n", "42"), r


def test_image_directory_has_no_zygote(serve, python_image):
    """Its python is an untrusted program: it runs only in its cells, where pid 1 starts it; and some are ready."""
    with serve("--image", "dir:%s" % python_image) as d:
        pool = d.health()["pool"]
        assert pool["zygote"] is False and "only the image host" in pool["zygote_problem"], pool
        assert wait_until(lambda: d.health()["pool"]["kernels_ready"] > 0), d.health()
        assert d.execute("import os\nos.getppid()")["result"]["text/plain"] == "1"
