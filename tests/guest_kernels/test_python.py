# SPDX-License-Identifier: Apache-2.0
"""test_python.py - The Python kernel, as the host sees it: the channel, code and values, asyncio, errors, text, input."""
import json

import pytest
from kernel_lib import KernelError
from python_lib import VERSION, code, ok, trace


# --- the channel

def test_ready_comes_first_and_tells_version_and_pid(kernel):
    assert kernel.ready == {"type": "ready", "language": "python", "version": "%d.%d.%d" % VERSION,
                            "pid": kernel.process.pid}


def test_end_of_control_ends_the_kernel(kernel):
    assert kernel.close() == 0


def test_end_of_control_ends_the_kernel_that_waits_for_input(kernel):
    kernel.start("input()")
    assert kernel.message()["type"] == "input_request"
    assert kernel.close() == 0


def test_channel_is_not_inherited_by_subprocesses(kernel):
    r = ok(kernel.run("import os; os.system('ls -l /proc/self/fd | grep -c pipe')"))
    assert r.stdout == "2\n"  # 1 and 2; grep's own ends are grep's


def test_channel_is_not_on_low_numbers(kernel):
    r = ok(kernel.run(code("""
        import os
        for fd in range(3, 100):
            try:
                if os.readlink("/proc/self/fd/%d" % fd).startswith("pipe:"): print(fd)
            except OSError: pass
    """)))
    assert r.stdout == ""


def test_junk_on_the_channel_is_ignored(shared_kernel):
    for line in (b"", b"not json", b"[1]", b"\xff\xfe", b'{"type":"never heard of"}', b'{"type":"ack"}', b'{"no":"type"}',
                 b'{"type":"input_response","id":[1]}', b"[" * 5000):
        shared_kernel.send(line)
    assert ok(shared_kernel.run("1+1")).text == "2"
    r = ok(shared_kernel.run("print('before'); display(1); print('after')"))  # the early ack was not credited
    assert r.displays[0]["stdout_before"] == "before\n"


def test_messages_of_many_reads(kernel):
    big = "x" * 3_000_000
    assert ok(kernel.run("s = '%s'; len(s)" % big)).text == "3000000"


def test_the_value_itself_can_be_had(kernel):
    """As in IPython: whatever value `_` has, until the next code."""
    last = "get_ipython().last_execution_result"
    ok(kernel.run("_ = 'my own'\n[1, 2]"))
    assert ok(kernel.run("v = %s\nv.result, v.success, _" % last)).text == "([1, 2], True, 'my own')"
    ok(kernel.run("x = 1"))
    assert ok(kernel.run("%s.result is None" % last)).text == "True"
    kernel.run("7; 1/0")
    assert ok(kernel.run("(%s.result, %s.success)" % (last, last))).text == "(None, False)"
    ok(kernel.run("'before'"))
    kernel.run(" ")
    assert ok(kernel.run("%s.result" % last)).text == "'before'"


def test_mocks_that_were_never_undone(kernel):
    ok(kernel.run("import os, json, sys\nos.getpid = lambda: 1\nos.write = os.read = os._exit = json.loads = None"))
    assert ok(kernel.run("1+1")).text == "2"
    kernel.run("sys.setrecursionlimit(60)\nsys.settrace(lambda *a: None)")
    kernel.run("sys.setrecursionlimit(60)")
    assert kernel.run("def f(): f()\nf()").error["name"] == "RecursionError"
    assert ok(kernel.run("1+1")).text == "2"


def test_two_executes_at_once_run_in_order(kernel):
    kernel.send(b"\n".join(b'{"type":"execute","id":"%d","code":"print(%d)"}' % (i, i) for i in (1, 2)))
    assert [kernel.message()["id"], kernel.message()["id"]] == ["1", "2"]
    kernel.wait_stdout("1\n2\n")


def test_missing_code_is_empty_code(shared_kernel):
    shared_kernel.start("", raw=lambda key: {"type": "execute", "id": key})
    ok(shared_kernel.finish())


def test_default_name_is_sandbox(shared_kernel):
    shared_kernel.start("", raw=lambda key: {"type": "execute", "id": key, "code": "1/0"})
    assert 'File "<sandbox>", line 1' in trace(shared_kernel.finish())


# --- code and values

@pytest.mark.parametrize("text, value", [
    ("1 + 1", "2"), ("x = 1", None), ("None", None), ("1; 2", "2"), ("5;", None), ("5 ; # why", None), ("(\n5\n)", "5"),
    ("'a;b'", "'a;b'"), ("5 # ;", "5"), ("'é';", None), ("if True:\n    3", None), ("", None), ("# nothing", None),
    ("'\\udc80'", "'\\udc80'"),
    ("\n\n\n7\n\n", "7"), ("[i for i in range(3)]", "[0, 1, 2]"), ("x = 3\r\nx\r\n", "3"),
])
def test_value_of_the_last_expression(shared_kernel, text, value):
    r = ok(shared_kernel.run(text))
    assert (r.text, r.stdout) == (value, "")


def test_state_is_kept(shared_kernel):
    ok(shared_kernel.run("import math\nx = 40\ndef f(a): return a + x"))
    ok(shared_kernel.run("x += 1"))
    assert ok(shared_kernel.run("f(1), math.pi > 3")).text == "(42, True)"


def test_underscore_is_the_last_value_unless_it_is_the_users(kernel):
    ok(kernel.run("6 * 7"))
    assert ok(kernel.run("_ + 1")).text == "43"
    ok(kernel.run("for _ in range(3): pass"))
    ok(kernel.run("99"))
    assert ok(kernel.run("_")).text == "2"


def counted(kernel, count, text):
    kernel.start(text, lambda id: {"type": "execute", "id": id, "code": text, "name": "<execution-%d>" % kernel.count, "count": count})
    return kernel.finish()


def test_the_past_has_names(kernel):
    for text in ("'a'", "'b'", "'c'", "None"):
        ok(kernel.run(text))
    assert ok(kernel.run("_ + __ + ___, 'In' in globals()")).text == "('cba', False)", "there are numbers without a notebook"
    for n, text in enumerate(("x = 5", "x * 2", "'last'"), 1):
        ok(counted(kernel, n, text))
    assert ok(counted(kernel, 4, "_2, Out[3], In[1], _i, _ii, _i1, _, sorted(Out)")).text == \
        repr((10, "last", "x = 5", "'last'", "x * 2", "x = 5", "last", [2, 3]))
    assert ok(counted(kernel, 5, "_5 = 'mine'; Out = 1; 7")).text == "7"
    assert ok(counted(kernel, 6, "_5, Out, In[5][:4]")).text == "('mine', 1, '_5 =')", "a name that was taken stays"
    assert ok(counted(kernel, 1, "In")).text == "['', 'In']", "the numbers did not begin anew"


def test_a_first_line_that_is_indented(shared_kernel):
    assert ok(shared_kernel.run("    a = 1\n    if a:\n        a += 1\n    a")).text == "2"
    assert ok(shared_kernel.run("\n  # why\n\tb = 3\n\tb")).text == "3"
    assert ok(shared_kernel.run("  !echo hi\n  5")).text == "5"
    r = shared_kernel.run("  x = 1\n  1/0")
    assert r.error["name"] == "ZeroDivisionError" and "    1/0" in trace(r)
    assert shared_kernel.run("  x = 1\n y = 2").error["name"] == "IndentationError"


def test_main_is_a_module(shared_kernel):
    r = ok(shared_kernel.run(code("""
        import sys, pickle
        class P:
            def __init__(self, v): self.v = v
        if __name__ == "__main__": print("main")
        sys.modules["__main__"].P is P, pickle.loads(pickle.dumps(P(5))).v, P.__module__
    """)))
    assert r.stdout == "main\n" and r.text == "(True, 5, '__main__')"


def test_multiprocessing_with_user_functions(kernel):
    r = ok(kernel.run(code("""
        import multiprocessing
        def square(x): return x * x
        with multiprocessing.get_context("fork").Pool(2) as pool:
            out = pool.map(square, range(5))
        out
    """)))
    assert r.text == "[0, 1, 4, 9, 16]"


def test_modules_of_the_working_directory_are_found(kernel, tmp_path):
    (tmp_path / "helper_of_mine.py").write_text("answer = 42\n")
    assert ok(kernel.run("import helper_of_mine; helper_of_mine.answer")).text == "42"


def test_dataclasses_annotations_and_future_imports(kernel):
    r = ok(kernel.run(code("""
        from __future__ import annotations
        from dataclasses import dataclass
        @dataclass
        class A:
            x: Undefined = 1
        y: int = 3
        A()
    """)))
    assert r.text == "A(x=1)"
    ok(kernel.run("def later(x: AlsoUndefined): pass"))


def test_inspect_finds_the_source(shared_kernel):
    ok(shared_kernel.run("def f(x):\n    return x + 1  # plus one"))
    assert "plus one" in ok(shared_kernel.run("import inspect; print(inspect.getsource(f))")).stdout


def test_argv_is_empty(shared_kernel):
    assert ok(shared_kernel.run("import sys; sys.argv")).text == "['']"


def test_huge_results_are_cut_or_replaced(shared_kernel):
    r = ok(shared_kernel.run("'a' * 5_000_000"))
    assert (1 << 20) <= len(r.text) < (1 << 20) + 200
    r = ok(shared_kernel.run(code("""
        class Big:
            def _repr_html_(self): return "a" * 9_000_000
        Big()
    """)))
    assert "too large" in r.text and len(json.dumps(r.result)) < 1000


def test_result_whose_repr_fails_does_no_harm(shared_kernel):
    r = shared_kernel.run("class Bad:\n    def __repr__(self): raise ValueError('no repr')\nBad()")
    assert "no repr" in json.dumps(r.messages)
    assert ok(shared_kernel.run("1")).text == "1"


# --- asyncio

def test_top_level_await(shared_kernel):
    r = ok(shared_kernel.run("import asyncio\nawait asyncio.sleep(0.01, 'slept')"))
    assert r.text == "'slept'"
    r = ok(shared_kernel.run(code("""
        async def numbers():
            for i in range(3): yield i
        async for i in numbers(): print(i)
        [i async for i in numbers()]
    """)))
    assert r.stdout == "0\n1\n2\n" and r.text == "[0, 1, 2]"


@pytest.mark.parametrize("before", ["", "await asyncio.sleep(0)\n"])
def test_asyncio_run_works(kernel, before):
    r = ok(kernel.run("import asyncio\n" + before + code("""
        async def main():
            await asyncio.sleep(0.001)
            return await asyncio.gather(*(asyncio.sleep(0, i) for i in range(3)))
        asyncio.run(main())
    """)))
    assert r.text == "[0, 1, 2]"
    assert ok(kernel.run(before + "asyncio.run(main())")).text == "[0, 1, 2]"
    if before:  # and the outer loop is as it was
        assert ok(kernel.run("asyncio.run(main()); t = asyncio.create_task(main()); await t")).text == "[0, 1, 2]"


def test_asyncio_run_in_a_running_loop_of_the_users_own_is_an_error_as_ever(shared_kernel):
    r = shared_kernel.run(code("""
        import asyncio
        async def inner(): pass
        async def outer():
            c = inner()
            try: asyncio.run(c)
            finally: c.close()
        asyncio.run(outer())
    """))
    assert r.error["name"] == "RuntimeError" and "running event loop" in r.error["value"]


def test_loops_as_scripts_use_them(kernel):
    for _ in range(2):
        r = ok(kernel.run(code("""
            import asyncio
            loop = asyncio.get_event_loop()
            print(loop.run_until_complete(asyncio.sleep(0, 1)))
            loop.close()
            loop = asyncio.new_event_loop()
            print(loop.run_until_complete(asyncio.sleep(0, 2)))
            loop.close()
        """)))
        assert r.stdout == "1\n2\n"
    assert ok(kernel.run("await asyncio.sleep(0, 3)")).text == "3"


def test_background_tasks_go_on(kernel, tmp_path):
    ok(kernel.run(code("""
        import asyncio
        async def ticker():
            while True:
                ticks.append(1)
                if len(ticks) == 4: open("ticked", "w").close()
                await asyncio.sleep(0.005)
        ticks = []
        task = asyncio.create_task(ticker())  # no await here: still a task of the kernel's loop
    """)))
    kernel.wait_for((tmp_path / "ticked").exists)
    ok(kernel.run("n = len(ticks)\nwhile len(ticks) < n + 4: await asyncio.sleep(0.001)"))
    ok(kernel.run("task.cancel()"))


def test_background_task_that_fails_or_exits_does_not_end_the_kernel(kernel):
    ok(kernel.run(code("""
        import asyncio, sys
        async def fails(): raise ValueError("background")
        async def leaves(): sys.exit(3)
        async def stops(): asyncio.get_running_loop().stop()
        tasks = [asyncio.create_task(c()) for c in (fails, leaves, stops)]
    """)))
    kernel.wait_for(lambda: ok(kernel.run("[t.done() for t in tasks]")).text == "[True, True, True]")


def test_background_task_that_displays_while_idle(kernel):
    ok(kernel.run(code("""
        import asyncio
        async def late():
            await asyncio.sleep(0.03)
            display("late")
            return "shown"
        t = asyncio.create_task(late())
    """)))
    assert kernel.message()["type"] == "display"
    kernel.start("await t")  # read by the task that waits for its ack
    kernel.send({"type": "ack"})
    assert ok(kernel.finish()).text == "'shown'"


def test_loop_policy_of_the_users_own(kernel):
    ok(kernel.run("import asyncio, threading\nasyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())"))
    for _ in range(2):
        assert ok(kernel.run("asyncio.get_event_loop().run_until_complete(asyncio.sleep(0, 5))")).text == "5"
        assert ok(kernel.run("await asyncio.sleep(0, 6)")).text == "6"
        assert ok(kernel.run("asyncio.run(asyncio.sleep(0, 7))")).text == "7"


def test_context_variables_and_decimal_are_kept(kernel):
    ok(kernel.run("import decimal; decimal.getcontext().prec = 5"))
    assert ok(kernel.run("decimal.Decimal(1) / 3")).text == "Decimal('0.33333')"
    ok(kernel.run("import asyncio\nawait asyncio.sleep(0)\ndecimal.getcontext().prec = 7"))
    digits = "0.3333333" if VERSION >= (3, 11) else "0.33333"
    assert ok(kernel.run("decimal.Decimal(1) / 3")).text == "Decimal('%s')" % digits


def test_async_subprocess(shared_kernel):
    r = ok(shared_kernel.run(code("""
        import asyncio
        p = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
        (await p.communicate())[0]
    """)))
    assert r.text == "b'hi\\n'"


def test_exception_in_await(shared_kernel):
    r = shared_kernel.run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    1/0\nawait f()")
    assert r.error["name"] == "ZeroDivisionError" and "in f\n    1/0" in trace(r)
    assert "caisson" not in trace(r) and "asyncio" not in trace(r)


# --- ends of executions

@pytest.mark.parametrize("text, status, exit_code, stderr", [
    ("import sys; sys.exit()", "ok", 0, ""), ("import sys; sys.exit(0)", "ok", 0, ""),
    ("import sys; sys.exit(3)", "error", 3, ""), ("import sys; sys.exit('bye')", "error", 1, "bye\n"),
    ("exit(4)", "error", 4, ""), ("quit()", "ok", 0, ""),
    ("raise SystemExit(256 + 7)", "error", 7, ""), ("import sys; sys.exit(130)", "error", 130, ""),
    ("import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(5)", "error", 5, ""),
])
def test_exit_keeps_kernel_and_variables(shared_kernel, text, status, exit_code, stderr):
    ok(shared_kernel.run("x = 1"))
    r = shared_kernel.run(text)
    assert (r.status, r.exit_code, r.stderr) == (status, exit_code, stderr)
    assert (r.error is None) == (status == "ok")
    assert ok(shared_kernel.run("x")).text == "1"


def test_any_base_exception(shared_kernel):
    r = shared_kernel.run("class Own(BaseException): pass\nraise Own('mine')")
    assert (r.status, r.exit_code, r.error["name"], r.error["value"]) == ("error", 1, "Own", "mine")
    r = shared_kernel.run("import asyncio\nraise asyncio.CancelledError()")
    assert r.error["name"] == "CancelledError"
    r = shared_kernel.run("raise GeneratorExit")
    assert r.error["name"] == "GeneratorExit"
    assert shared_kernel.run("raise KeyboardInterrupt").status == "interrupted"


def test_process_that_ends_itself_closes_the_channel(kernel):
    kernel.start("import os; print('last words'); os._exit(3)")
    with pytest.raises(KernelError, match="last words"):
        kernel.message()
    assert kernel.process.wait(5) == 3


# --- tracebacks

def test_traceback_shows_the_users_lines_and_no_kernel(kernel):
    ok(kernel.run("def f(x):\n    return 1 / x"))
    r = kernel.run("def g():\n    f(0)  # here\n\ng()")
    lines = r.error["traceback"]
    assert lines[0] == "Traceback (most recent call last):" and lines[-1] == "ZeroDivisionError: division by zero"
    files = [line.strip() for line in lines if "File" in line]
    assert files == ['File "<execution-2>", line 4, in <module>', 'File "<execution-2>", line 2, in g',
                     'File "<execution-1>", line 2, in f']
    assert "    f(0)  # here" in lines and "    return 1 / x" in lines
    assert r.stderr == "" and r.stdout == ""


def test_traceback_of_chained_exceptions(shared_kernel):
    r = shared_kernel.run(code("""
        try:
            {}["key"]
        except KeyError as e:
            raise ValueError("outer") from e
    """))
    assert "KeyError: 'key'" in trace(r) and "direct cause" in trace(r)
    assert '{}["key"]' in trace(r) and r.error["value"] == "outer"
    assert "caisson" not in trace(r)
    r = shared_kernel.run("try:\n    1/0\nexcept Exception:\n    undefined_name")
    assert "During handling" in trace(r)


def test_syntax_error_has_a_caret(kernel):
    r = kernel.run("x = 1\ny = = 2\n")
    assert r.error["name"] == "SyntaxError" and r.exit_code == 1
    lines = r.error["traceback"]
    assert lines[0] == '  File "<execution-1>", line 2'
    assert lines[1] == "    y = = 2" and lines[2].rstrip() == "        ^"
    lines = kernel.run("x = 1\nlambda: (await x)").error["traceback"]  # found by the compiler, not by the parser
    assert lines[:2] == ['  File "<execution-2>", line 2', "    lambda: (await x)"]
    assert kernel.run("def f():\nreturn").error["name"] == "IndentationError"
    assert kernel.run("print('a").error["name"] == "SyntaxError"


@pytest.mark.parametrize("text", ["x = '\0'", "'\ud800'", "(" * 5000, "return 1", "x = 0777", "-" * 200_000 + "1"],
                         ids=["nul", "surrogate", "parentheses", "return", "octal", "minus"])
def test_code_that_cannot_be_compiled(shared_kernel, text):
    r = shared_kernel.run(text)
    assert r.status == "error" and r.error["traceback"]
    assert ok(shared_kernel.run("1")).text == "1"


def test_exceptions_without_a_text(shared_kernel):
    r = shared_kernel.run("class E(Exception):\n    def __str__(self): raise ValueError\n    __repr__ = __str__\nraise E()")
    assert r.error["name"] == "E" and "failed" in r.error["value"] and "raise E()" in trace(r)
    r = shared_kernel.run("class E(Exception):\n    def __str__(self): return 5\nraise E()")
    assert r.error["name"] == "E"
    r = shared_kernel.run("class E(Exception):\n    def __str__(self):\n        import sys; sys.exit(3)\nraise E()")
    assert r.error["name"] == "E" and r.status == "error"
    r = shared_kernel.run("raise Exception('\\ud800 \\x00 \\n line')")
    assert r.error["value"].endswith("line")
    r = shared_kernel.run("e = Exception('circle'); f = Exception(); e.__cause__ = f; f.__cause__ = e\nraise e")
    assert r.error["value"] == "circle"
    r = shared_kernel.run("raise Exception('x' * 10_000_000)")
    assert len(r.error["value"]) < 1_100_000 and len(trace(r)) < 100_000


def test_recursion(shared_kernel):
    r = shared_kernel.run("def f(): f()\nf()")
    assert r.error["name"] == "RecursionError" and "Previous line repeated" in trace(r)
    r = shared_kernel.run("def f(): g()\ndef g(): f()\nf()")
    assert "lines left out" in trace(r) and len(r.error["traceback"]) < 500
    r = shared_kernel.run(code("""
        import sys
        e = None
        for i in range(5000):
            try: raise ValueError(i) from e
            except ValueError as x: e = x
        raise e
    """))
    assert r.error["name"] == "ValueError" and r.error["value"] == "4999"
    assert ok(shared_kernel.run("1")).text == "1"


@pytest.mark.skipif(VERSION < (3, 11), reason="exception groups came with Python 3.11")
def test_exception_group(shared_kernel):
    r = shared_kernel.run(code("""
        import asyncio
        async def bad(n): raise ValueError(n)
        async with asyncio.TaskGroup() as group:
            group.create_task(bad(1)); group.create_task(bad(2))
    """))
    assert r.error["name"] == "ExceptionGroup" and "ValueError: 1" in trace(r) and "ValueError: 2" in trace(r)
    assert "raise ValueError(n)" in trace(r) and "caisson" not in trace(r)


def test_lines_survive_a_cleared_cache(shared_kernel):
    ok(shared_kernel.run("def f():\n    raise ValueError('kept')  # my line"))
    ok(shared_kernel.run("import linecache; linecache.clearcache(); linecache.checkcache()"))
    assert "# my line" in trace(shared_kernel.run("f()"))


def test_lines_are_counted_as_the_compiler_does(shared_kernel):
    r = shared_kernel.run("x = '''\u2028\x0b\x1c'''\n\n1/0 # the line")
    assert "1/0 # the line" in trace(r) and "line 3" in trace(r)


# --- text

def test_order_of_text_is_kept(shared_kernel):
    r = ok(shared_kernel.run(code("""
        import os, subprocess, sys
        print("a", end=""); os.system("printf b"); print("c", end="", flush=False)
        subprocess.run(["printf", "d"]); os.write(1, b"e"); sys.stdout.buffer.write(b"f"); print("g")
    """)))
    assert r.stdout == "abcdefg\n"


PACKETS = """
    import os, sys
    def packets(run):  # what each write to descriptor 1 had
        r, w = os.pipe2(os.O_DIRECT | os.O_NONBLOCK)
        saved = os.dup(1)
        os.dup2(w, 1)
        try:
            run()
        except ZeroDivisionError:
            pass
        finally:
            os.dup2(saved, 1)
            os.close(w)
        seen = []
        while data := os.read(r, 65536):
            seen.append(data.decode())
        return seen
"""


@pytest.mark.parametrize("text, written", [
    ("print('a', 2, [3])", ["a 2 [3]\n"]),
    ("print('a', 'b', sep='-', end=''); print(); print('a\\nb')", ["a-b", "\n", "a\nb\n"]),
    ("print('a', 'b', file=sys.stdout, flush=True)", ["a b\n"]),
    ("print('a', Bad(), 'b')", ["a "]),
    ("sys.stdout.write('a'); sys.stdout.write('b')", ["a", "b"]),
])
def test_print_is_one_write(shared_kernel, text, written):
    ok(shared_kernel.run(code(PACKETS)))
    ok(shared_kernel.run("class Bad:\n    def __str__(self): return 1 / 0"))
    assert ok(shared_kernel.run("packets(lambda: exec(%r))" % text)).text == repr(written)


def test_print_elsewhere_is_that_of_python(shared_kernel):
    ok(shared_kernel.run("import io, contextlib, inspect, pickle, sys"))
    assert ok(shared_kernel.run("with contextlib.redirect_stdout(io.StringIO()) as f: print(1, 2)\nf.getvalue()")).text == "'1 2\\n'"
    assert ok(shared_kernel.run("f = io.StringIO(); print(1, end='!', file=f); f.getvalue()")).text == "'1!'"
    assert ok(shared_kernel.run("str(inspect.signature(print)), pickle.loads(pickle.dumps(print)) is print")).text == (
        "(\"(*args, sep=' ', end='\\\\n', file=None, flush=False)\", True)")
    r = shared_kernel.run("print(1, sep=2)")
    assert (r.error["name"], r.error["value"], r.stdout) == ("TypeError", "sep must be None or a string, not int", "")
    assert ok(shared_kernel.run("o, sys.stdout = sys.stdout, None; print('nowhere'); sys.stdout = o")).stdout == ""


def test_text_of_the_c_library_is_in_order(shared_kernel):
    r = ok(shared_kernel.run(code("""
        import ctypes
        libc = ctypes.CDLL(None)
        print("1 ", end=""); libc.printf(b"2 "); print("3 ", end=""); libc.printf(b"4\\n");
    """)))
    assert r.stdout == "1 2 3 4\n"


def test_text_before_a_display_comes_before_it(shared_kernel):
    r = ok(shared_kernel.run("print('before'); display(1); print('after')"))
    assert r.displays[0]["stdout_before"] == "before\n" and r.stdout == "before\nafter\n"


def test_odd_text(shared_kernel):
    r = ok(shared_kernel.run("print('é 漢 \U0001f600 \\x00 \\ud800')"))
    assert r.stdout == "é 漢 \U0001f600 \x00 \\ud800\n"
    r = ok(shared_kernel.run("import sys; sys.stdout.encoding, sys.stdout.errors, sys.stdout.fileno(), sys.stdout.isatty()"))
    assert r.text == "('utf-8', 'backslashreplace', 1, False)"


@pytest.mark.parametrize("text", [
    "import sys, io; sys.stdout = sys.stderr = io.StringIO()", "import sys; sys.stdout.close(); sys.stderr.close()",
    "import sys; sys.stdout = None; sys.stderr = None; sys.stdin = None", "import sys; del sys.stdout, sys.stderr, sys.stdin",
    "import sys; sys.stdout.detach(); sys.stdin.detach()", "import sys; sys.stdin.close(); sys.stdout = 5",
    "import sys; sys.stdout.reconfigure(encoding='ascii', errors='strict', write_through=False)",
    "import sys; sys.stdin = open('/dev/null')", "import builtins; del builtins.input",
])
def test_broken_streams_are_whole_in_the_next_execution(shared_kernel, text):
    shared_kernel.run(text)
    r = ok(shared_kernel.run("import sys; print('é'); print('f', file=sys.stderr); input('p')", ["x"]))
    assert (r.stdout, r.stderr, r.text) == ("é\n", "f\n", "'x'")


def test_kernel_survives_games_with_descriptors(kernel):
    kernel.run("import os; os.close(1); os.close(2)")
    assert ok(kernel.run("1 + 1")).text == "2"
    assert kernel.run("print(1)").error["name"] == "OSError"
    assert ok(kernel.run("os.closerange(3, 64); 2 + 2")).text == "4"  # the loop's epoll is among them
    assert ok(kernel.run("3 + 3")).text == "6"
    assert ok(kernel.run("import asyncio\nawait asyncio.sleep(0.01, 4)")).text == "4"


def test_nonblocking_stdout_loses_nothing(kernel):
    r = ok(kernel.run("import os, sys; os.set_blocking(1, False); n = sys.stdout.write('x' * 1_000_000)"))
    assert len(r.stdout) == 1_000_000


def test_threads_may_print_and_display(kernel):
    r = ok(kernel.run(code("""
        import threading
        def work(n):
            for i in range(5): display(n); print("t")
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        display("main")
    """)))
    assert len(r.displays) == 21 and r.stdout.count("t") == 20


def test_thread_that_goes_on_after_its_execution(kernel):
    kernel.start(code("""
        import threading, time
        def work():
            time.sleep(0.05)
            seen.append(input("late"))
        seen = []
        t = threading.Thread(target=work); t.start()
    """))
    ok(kernel.finish())
    m = kernel.message()
    assert m["prompt"] == "late"
    kernel.start("1 + 1")  # read by that thread; must reach the kernel
    assert ok(kernel.finish()).text == "2"
    kernel.send({"type": "input_response", "id": m["id"], "value": "v"})
    assert ok(kernel.run("t.join(); seen")).text == "['v']"


# --- input

def test_input(shared_kernel):
    r = ok(shared_kernel.run("name = input('name? '); name", ["Ada"]))
    assert r.text == "'Ada'" and r.stdout == ""
    m = r.messages[0]
    assert (m["type"], m["prompt"], m["password"]) == ("input_request", "name? ", False)
    r = ok(shared_kernel.run("input(), input(5)", ["", "two\n"]))
    assert r.text == "('', 'two')" and [m["prompt"] for m in r.messages[:2]] == ["", "5"]


def test_getpass(shared_kernel):
    r = ok(shared_kernel.run("import getpass; getpass.getpass('secret: ')", ["s3"]))
    assert r.text == "'s3'" and r.messages[0]["password"] is True and r.messages[0]["prompt"] == "secret: "
    assert ok(shared_kernel.run("from getpass import getpass; getpass()", ["s4"])).text == "'s4'"


def test_stdin_is_a_file(shared_kernel):
    r = ok(shared_kernel.run("import sys; sys.stdin.readline(), sys.stdin.readline()", ["one", "two"]))
    assert r.text == "('one\\n', 'two\\n')"
    assert ok(shared_kernel.run("[l for l in sys.stdin]", ["a\nb", "c", {"eof": True}])).text == "['a\\n', 'b\\n', 'c\\n']"
    assert ok(shared_kernel.run("sys.stdin.read().split()", ["1 2", "3", {"eof": True}])).text == "['1', '2', '3']"
    assert ok(shared_kernel.run("sys.stdin.buffer.readline()", ["é"])).text == "b'\\xc3\\xa9\\n'"
    assert ok(shared_kernel.run("input(), input()", ["x\ny"])).text == "('x', 'y')"


def test_unanswered_input(shared_kernel):
    r = shared_kernel.run("input()", [{"eof": True}])
    assert r.error["name"] == "EOFError" and trace(r).count("File") == 1
    r = shared_kernel.run("input('?')", [{"error": "this client cannot answer"}])
    assert (r.error["name"], r.error["value"]) == ("EOFError", "this client cannot answer")


def test_input_from_a_stream_of_the_users_own(shared_kernel):
    assert ok(shared_kernel.run("import sys, io; sys.stdin = io.StringIO('own\\n'); input('p')")).text == "'own'"
