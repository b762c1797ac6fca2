# SPDX-License-Identifier: Apache-2.0
"""test_executor.py - SandboxExecutor against a real daemon: values, errors, time, connections that break, sandboxes that stay or go."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import gc
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings

import pytest
from package_lib import wheel
from process import wait_until

from caisson.errors import CaissonError, ConnectionLost, PackagesUnavailable, SandboxNotFound, SandboxUnavailable
from caisson.executor import CodeFailed, SandboxExecutor, ValueUnavailable
from caisson.values import Limits, Record

# From the description of the executor that this one replaces: it imports neither base64 nor pickle.
SEED = """
from math import sqrt
x = 9
_result = sqrt(x)
print("RESULT_PICKLE:" + base64.b64encode(pickle.dumps(_result)).decode())
"""


@dataclasses.dataclass
class Order:
    id: int
    lines: list


class Colour(enum.Enum):
    RED = 1


@pytest.fixture
def executor(url):
    with SandboxExecutor(url=url) as e:
        yield e


def names(daemon):
    return [s["name"] for s in daemon.get("/v1/sandboxes").json["sandboxes"]]


def test_values(executor):
    assert executor("6 * 7") == 42
    assert executor("x = [1, {2: (3,)}]\nx") == [1, {2: (3,)}]
    assert executor("x.append(b'\\xff'); x") == [1, {2: (3,)}, b"\xff"]
    assert executor("print('only said')") is None
    assert executor("for _ in range(3): pass\n7") == 7, "a variable _ of the code does not disturb"
    assert executor("6 * 7") == 42 and executor("6 * 7") == 42
    assert executor("y = 5") is None, "the value of earlier code is not returned"
    assert executor("_result = {'a': 1}\n'something else'") == {"a": 1}
    assert executor("'something else'") == "something else"
    got = executor(
        "import datetime, decimal, uuid, pathlib\n"
        "[1j, 2**100, float('nan'), {1}, decimal.Decimal('1.10'), datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), pathlib.Path('/x')]"
    )
    assert got[0] == 1j and got[1] == 2**100 and math.isnan(got[2]) and got[3] == {1} and str(got[4]) == "1.10"
    assert got[4] == decimal.Decimal("1.1") and got[5] == datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    assert executor("import asyncio\nawait asyncio.sleep(0, 'awaited')") == "awaited"


def test_what_was_said_and_shown(executor):
    said = []
    run = executor.run(
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\nfrom IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))\n[1]",
        on_output=lambda name, text: said.append((name, text)),
    )
    assert (run.stdout, run.stderr, run.text, run.value, run.ok, run.state) == ("out\n", "err\n", "[1]", [1], True, "kept")
    assert run.displays[0].data["text/html"] == "<b>x</b>"
    assert ["".join(text for name, text in said if name == n) for n in ("stdout", "stderr")] == ["out\n", "err\n"]
    assert "out" in executor.tail_server_logs() and executor.tail_server_logs(0) == ""


def test_classes(executor):
    code = (
        "import dataclasses, enum\n@dataclasses.dataclass\nclass Order:\n    id: int\n    lines: list\nclass Colour(enum.Enum):\n    RED = 1\n"
        "Order(7, [Colour.RED])"
    )
    run = executor.run(code)
    assert isinstance(run.value, Record) and run.value.id == 7
    assert executor.run("Order(7, [Colour.RED])", classes=[Order, Colour]).value == Order(7, [Colour.RED])


def test_errors(executor):
    run = executor.run("print('before')\n1 / 0")
    with pytest.raises(CodeFailed):
        _ = run.value
    assert not run.ok and run.error.name == "ZeroDivisionError" and run.stdout == "before\n" and "1 / 0" in "\n".join(run.error.traceback)
    with pytest.raises(CodeFailed, match="ZeroDivisionError: division by zero") as e:
        executor("1 / 0")
    assert e.value.run.error.name == "ZeroDivisionError"
    assert executor("'goes on'") == "goes on"
    with pytest.raises(CodeFailed, match="SyntaxError"):
        executor("(")


def test_what_has_no_json(executor):
    run = executor.run("import threading\nresult = {'a': [threading.Lock()]}\nresult")
    assert run.ok and "lock" in run.text
    with pytest.raises(ValueUnavailable, match=r"value\['a'\]\[0\] .*lock.*cannot be returned") as e:
        _ = run.value
    assert e.value.code == "not_returnable" and e.value.hint
    with pytest.raises(ValueUnavailable, match="wrap it in list"):
        executor("(n for n in range(3))")
    with pytest.raises(ValueUnavailable, match="contains itself"):
        executor("a = []; a.append(a); a")


@pytest.mark.slow
def test_large_values(executor, url):
    assert executor("'x' * 3_000_000") == "x" * 3_000_000
    assert executor("list(range(300_000))")[-1] == 299_999
    assert executor("import os; [n for n in os.listdir('/tmp') if n.startswith('.value-')]") == [], "no file of the value stays"
    with SandboxExecutor(url=url, limits=Limits(bytes=1000)) as small, pytest.raises(ValueUnavailable, match="larger than 1000 bytes"):
        small("'x' * 2000")


def test_variables(executor):
    import collections

    values = {"a": [1, (2, 3)], "when": datetime.date(2026, 1, 2), "words": {"x": b"y"}, "deep": {1: {2: {3: "x"}}}}
    executor.send_variables(values)
    assert executor("[a, when, words, deep]") == list(values.values())
    assert executor.get("a[1]") == (2, 3)
    executor.send_variables({"large": "y" * 3_000_000})
    assert executor("len(large)") == 3_000_000
    with pytest.raises(ValueUnavailable, match=r"variables\['f'\]"):
        executor.send_variables({"f": lambda: 1})
    with pytest.raises(ValueError, match="not a valid variable name"):
        executor.send_variables({"a b": 1})
    with pytest.raises(CodeFailed, match="NameError"):
        executor("nothing_of_that_name")
    assert executor("sorted(n for n in dir() if 'caisson' in n)") == [], "the user's namespace has no names of ours"
    assert collections


@pytest.mark.slow
def test_numpy_and_pandas(executor):
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    if not executor("import importlib.util; importlib.util.find_spec('pandas') is not None"):
        pytest.skip("the image has no pandas")
    a = executor("import numpy as np\nnp.arange(6.0).reshape(2, 3)")
    assert np.array_equal(a, np.arange(6.0).reshape(2, 3))
    f = pd.DataFrame({"n": [1, 2], "s": ["a", None], "when": pd.to_datetime(["2026-01-01", "2026-01-02"])})
    executor.send_variables({"f": f})
    pd.testing.assert_frame_equal(executor("f"), f)
    assert executor("f['n'].sum()") == 3
    big = executor("np.zeros((1000, 1000))")
    assert big.shape == (1000, 1000) and big.nbytes == 8_000_000


# ---- pickles ---------------------------------------------------------------------------------------------------------


def test_the_seed_as_it_stands(executor):
    run = executor.run(SEED)
    assert run.value == 3.0 and type(run.value) is float
    assert run.stdout == "" and pickle.loads(run.pickle) == 3.0, "ours, in this test"


def test_a_pickle_is_never_loaded_by_itself(executor, tmp_path):
    """The positive control is at the end: if the caller permits it, the pickle is loaded and its code runs."""
    mark = tmp_path / "mark"
    bomb = (
        "import base64, pickle, os\nclass Bomb:\n    def __reduce__(self):\n        return (os.system, ('echo boom > %s',))\n"
        "print('RESULT_PICKLE:' + base64.b64encode(pickle.dumps(Bomb())).decode())\n" % mark
    )
    run = executor.run(bomb)
    assert run.ok and run.value is None and run.pickle.startswith(b"\x80") and not mark.exists()
    assert executor(bomb) is None and not mark.exists()
    with pytest.raises(ValueUnavailable):
        executor(bomb + "Bomb()")
    assert not mark.exists()
    executor.run(bomb, run_code_from_the_sandbox_on_this_host=True)
    assert mark.read_text() == "boom\n"
    run = executor.run("print('x RESULT_PICKLE:AAAA')\nprint('RESULT_PICKLE:no base64!')")
    assert run.pickle is None and "no base64" in run.stdout


def test_code_that_forges_its_value(executor, tmp_path):
    """The code can make the interpreter send anything. The executor returns data or an error, and continues."""
    hijack = "import sys\nm = sys.modules['_caisson_values']\nclass Lie:\n    def __init__(self, **k): self.k = k\n    def _repr_mimebundle_(self, **_): return {m.MIME: self.k}\n"
    for lie in (
        'text=\'{"$":"record","class":"C","v":[["__array_interface__",1]]}\'',
        "text='[' * 100000",
        "text='1' * 100000",
        "text=7",
        "file='/etc/hostname'",
        "file='/nowhere'",
        "file='/dev/zero'",
        "file='../../etc/shadow'",
        "refused='no'",
        "refused=[1, 2]",
        "nothing=1",
        'text=\'{"$":"eval","v":"1"}\'',
    ):
        run = executor.run(hijack + "m.say = lambda *_: Lie(%s)\n1" % lie, timeout=20)
        with pytest.raises(CaissonError):
            _ = run.value
    assert executor("del sys.modules['_caisson_values']\n1") == 1, "the functions are loaded again"
    assert executor("1 + 1") == 2


# ---- time ------------------------------------------------------------------------------------------------------------


def test_time_runs_out(executor):
    executor("kept = 1")
    run = executor.run("import time\nprint('a', flush=True)\ntime.sleep(60)", timeout=3)
    assert run.timed_out and not run.ok and run.stdout == "a\n" and run.state == "kept"
    with pytest.raises(CodeFailed, match="too long") as e:
        run.check()
    assert e.value.code == "timeout"
    assert executor("kept") == 1


@pytest.mark.slow
def test_code_that_can_not_be_interrupted(executor, monkeypatch):
    monkeypatch.setattr("caisson._jupyter.GRACE_SECONDS", 0.5)
    run = executor.run(
        "kept = 1\nimport time\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException:\n        pass", timeout=0.5
    )
    assert run.timed_out and run.state == "reset"
    with pytest.raises(CodeFailed, match="NameError"):
        executor("kept")
    assert executor("1 + 1") == 2


OUT_OF_MEMORY = "held = [bytearray(64 << 20) for _ in range(40)]"


def test_a_lost_interpreter_is_reported(client):
    """The reply itself reports the loss, each time. The next run does not report it again."""
    with SandboxExecutor(client=client, memory_mib=128) as executor:
        for code, said in ((OUT_OF_MEMORY, "memory"), ("import os; os._exit(3)", "exit code 3"), (OUT_OF_MEMORY, "memory")):
            assert executor.run("x = 1").state == "kept"
            run = executor.run(code)
            assert run.state == "reset", code
            with pytest.raises(CodeFailed, match=said) as e:
                run.check()
            assert "none" not in str(e.value)
            after = executor.run("x")
            assert after.state == "kept" and after.error.name == "NameError"
            assert executor("1 + 1") == 2


def test_a_value_that_takes_the_interpreter_with_it(executor):
    run = executor.run("import os\nclass Bad(dict):\n    def __iter__(self): os._exit(4)\n    items = keys = __len__ = __reduce__ = __iter__\nBad(a=1)")
    assert run.state == "reset"
    assert executor("1 + 1") == 2


def test_interrupt_from_another_thread(executor):
    timer = threading.Timer(0.5, executor.interrupt)
    timer.start()
    try:
        with pytest.raises(CodeFailed, match="KeyboardInterrupt"):
            executor("import time; time.sleep(60)")
    finally:
        timer.join()


def test_on_output_that_raises_interrupts_the_code(executor):
    """The code is interrupted: the caller does not wait for it."""

    def enough(name, text):
        raise LookupError(text)

    with pytest.raises(LookupError, match="x"):
        executor.run("import time\nprint('x', flush=True)\ntime.sleep(60)", on_output=enough)
    assert executor.run("1 + 1", timeout=60).value == 2


def test_failing_code_of_others_does_not_abort_ours(executor, url):
    """Notebook clients request this for all waiting code. Our code was not run in this case, and is sent again."""
    with SandboxExecutor(url=url, name=executor.name) as other:
        other._prepared()
        content = {"code": "import time; time.sleep(0.5); 1 / 0", "stop_on_error": True}
        other._link._send(other._link._ws, "execute_request", content)
        assert executor("6 * 7") == 42


def test_an_interpreter_that_dies(executor):
    executor("x = 1")
    run = executor.run("import os; os._exit(3)")
    assert not run.ok
    with pytest.raises(CodeFailed, match="NameError"):
        executor("x")
    assert executor("1 + 1") == 2


@pytest.mark.slow
def test_out_of_memory(url):
    with SandboxExecutor(url=url, memory_mib=64) as e:
        run = e.run("x = b'x' * (200 << 20)")
        assert not run.ok and ("memory" in run.error.name.lower())
        assert e("1 + 1") == 2


@pytest.mark.slow
def test_a_flood_is_cut(executor, monkeypatch):
    executor._link._most = 100_000
    run = executor.run("for _ in range(20000): print('x' * 100)")
    assert run.ok and run.truncated and len(run.stdout) <= 100_000
    assert executor("1 + 1") == 2


def test_displays_as_a_notebook_shows_them(executor):
    run = executor.run("h = display(0, display_id=True)\nfor i in range(99): h.update(i)\n'x' * (2 << 20)")
    assert [d.data["text/plain"] for d in run.displays] == ["98"] and run.truncated
    run = executor.run("from IPython.display import clear_output\ndisplay(1)\nclear_output(wait=True)\ndisplay(2)")
    assert [d.data["text/plain"] for d in run.displays] == ["2"] and not run.truncated


# ---- connections -----------------------------------------------------------------------------------------------------


def test_a_connection_that_breaks_while_idle(executor):
    executor("x = 1")
    executor._link._ws._sock.shutdown(2)
    assert executor("x") == 1
    executor.reconnect()
    assert executor("x") == 1


@pytest.mark.slow
def test_a_connection_that_breaks_while_code_runs(executor):
    """Messages that were sent while the connection was broken arrive over the next one."""
    threading.Timer(0.7, lambda: executor._link._ws._sock.shutdown(2)).start()
    run = executor.run("import time\nfor i in range(6):\n    print(i, flush=True)\n    time.sleep(0.25)\n'end'")
    assert run.value == "end" and run.stdout.split() == [str(i) for i in range(6)]


@pytest.mark.slow
def test_a_front_that_is_killed_while_code_runs(serve):
    """The error reports that the code may or may not have run; the sandbox and its variables stay."""
    d = serve()
    with SandboxExecutor(url="http://127.0.0.1:%d" % d.port) as e:
        e("x = 41")
        pid = d.pid
        timer = threading.Timer(0.5, lambda: os.kill(pid, signal.SIGKILL))
        timer.start()
        with pytest.raises((ConnectionLost, CodeFailed)):
            e("import time; time.sleep(3); x")
        timer.join()
        assert e("x + 1") == 42


def test_the_sandbox_is_removed_meanwhile(executor, daemon):
    assert daemon.request("DELETE", "/v1/sandboxes/" + executor.name).status in (200, 204)
    with pytest.raises(SandboxNotFound):
        executor("1")


def test_nobody_there():
    with pytest.raises(SandboxUnavailable):
        SandboxExecutor(url="http://127.0.0.1:9")


def test_wrong_fields_are_named(url):
    with pytest.raises(CaissonError, match="memory_mib"):
        SandboxExecutor(url=url, memory_mib="much")
    with pytest.raises(CaissonError, match="no_such_field"):
        SandboxExecutor(url=url, no_such_field=1)


def test_packages_are_the_daemons_business(executor):
    with pytest.raises(PackagesUnavailable) as e:
        executor.install_packages(["six"])
    assert e.value.code == "not_configured" and e.value.hint
    with pytest.raises(TypeError):
        executor.install_packages("six")


@pytest.mark.slow
def test_packages(serve, short_dir):
    wheel(short_dir, "tinypkg", files={"tinypkg.py": "answer = 42\n"})
    d = serve("--package-dir", short_dir)
    with SandboxExecutor(["tinypkg"], url="http://127.0.0.1:%d" % d.port) as e:
        assert e.installed_packages == ["tinypkg==1.0"] and e("import tinypkg; tinypkg.answer") == 42


def test_files(executor):
    executor.upload("in/a.bin", b"\0\xff")
    assert executor("open('in/a.bin', 'rb').read()") == b"\0\xff"
    executor("open('out.txt', 'w').write('x')")
    assert executor.download("out.txt") == b"x"


# ---- the end ---------------------------------------------------------------------------------------------------------


def test_cleanup(url, daemon):
    e = SandboxExecutor(url=url)
    assert names(daemon) == [e.name]
    e.cleanup()
    e.cleanup()
    assert names(daemon) == []
    with pytest.raises(CaissonError, match="cleaned up"):
        e("1")


def test_preserved_and_found_again(url, daemon):
    with SandboxExecutor(url=url, name="kept", preserve_on_exit=True, memory_mib=128) as e:
        e("x = 41")
    assert names(daemon) == ["kept"]
    with SandboxExecutor(url=url, name="kept") as e:
        assert e("x + 1") == 42
    assert names(daemon) == ["kept"], "a sandbox that existed before stays"
    with SandboxExecutor(url=url, name="kept", preserve_on_exit=False) as e:
        assert e("x") == 41
    assert names(daemon) == []


def test_one_that_is_lost_is_cleaned_up(url, daemon):
    e = SandboxExecutor(url=url)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        del e
        gc.collect()
    assert any(w.category is ResourceWarning and "not cleaned up" in str(w.message) for w in seen)
    assert names(daemon) == []


@pytest.mark.slow
def test_one_whose_process_ends_is_cleaned_up(url, daemon):
    code = "import sys\nfrom caisson.executor import SandboxExecutor\ne = SandboxExecutor(url=sys.argv[1])\nprint(e('6 * 7'))\nsys.exit(3)"
    p = subprocess.run([sys.executable, "-W", "error", "-c", code, url], capture_output=True, text=True, timeout=60)
    assert (p.returncode, p.stdout) == (3, "42\n"), p.stderr
    assert wait_until(lambda: names(daemon) == [])
