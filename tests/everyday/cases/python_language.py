# SPDX-License-Identifier: Apache-2.0
"""python_language.py - Python as a language and as a notebook: values, state, errors, output, input, await, magics."""
from case import Case, bash, python

CASES = [
    # ---- values and state
    Case("print", python("print('hello')", out="hello\n"), quick=True),
    Case("last expression", python("""
            import math
            round(math.pi, 4)""", result="3.1416", out=""), quick=True),
    Case("none is no result", python("None", result="", out="")),
    Case("semicolon hides the result", python("6 * 7;", result="", out="")),
    Case("variables, functions and imports stay", python("""
            import math
            x = 41
            def inc(n):
                return n + 1"""), python("inc(x) + math.floor(0.5)", result="42"), quick=True),
    Case("classes stay and pickle", python("""
            import pickle
            class Point:
                def __init__(self, x): self.x = x"""), python("pickle.loads(pickle.dumps(Point(5))).x", result="5")),
    Case("working directory stays", python("""
            import os
            os.makedirs('a/b')
            os.chdir('a')"""), python("print(os.getcwd(), os.listdir())", out="/workspace/a ['b']\n")),
    Case("files are shared with bash", python("open('note.txt', 'w').write('from python')"), bash("cat note.txt", out="from python"), quick=True),
    Case("underscore is the last value", python("20 + 1"), python("_ * 2", result="42")),
    Case("unicode text", python("""
            print('naïve café 漢字 🎉')
            'ß'.upper()""", out="naïve café 漢字 🎉\n", result="'SS'"), quick=True),
    Case("long strings of results", python("'x' * 50", result="'%s'" % ("x" * 50))),
    Case("dataclass repr", python("""
            from dataclasses import dataclass, field, asdict
            @dataclass(order=True)
            class P:
                x: int
                tags: list = field(default_factory=list)
            print(asdict(P(1, ['a'])), P(1) < P(2))
            P(3)""", out="{'x': 1, 'tags': ['a']} True\n", result="P(x=3, tags=[])")),
    Case("match statement", python("""
            def kind(v):
                match v:
                    case {'type': 'circle', 'r': r}: return f'circle {r}'
                    case [x, *rest]: return f'{x}+{len(rest)}'
                    case _: return 'other'
            print(kind({'type': 'circle', 'r': 2}), kind([1, 2, 3]), kind(0))""", out="circle 2 1+2 other\n")),
    Case("generators and comprehensions", python("""
            def fib():
                a, b = 0, 1
                while True:
                    yield a
                    a, b = b, a + b
            from itertools import islice
            print(list(islice(fib(), 8)), {k: v for k, v in zip('ab', range(2))})""", out="[0, 1, 1, 2, 3, 5, 8, 13] {'a': 0, 'b': 1}\n")),
    Case("typing with generics and protocols", python("""
            from typing import Protocol, TypeVar, Generic, runtime_checkable, get_type_hints
            T = TypeVar('T')
            class Box(Generic[T]):
                def __init__(self, v: T): self.v = v
            @runtime_checkable
            class HasV(Protocol):
                v: int
            def f(a: int, b: 'list[str]' = ()) -> bool: ...
            print(isinstance(Box(1), HasV), sorted(get_type_hints(f)))""", out="True ['a', 'b', 'return']\n")),
    Case("if name is main", python("""
            def main():
                print('ran')
            if __name__ == '__main__':
                main()""", out="ran\n"), quick=True),
    Case("script with arguments in a file", python(r"""
            open('tool.py', 'w').write('import argparse\np = argparse.ArgumentParser()\np.add_argument("--n", type=int, default=1)\nprint(p.parse_args().n * 2)\n')
            import subprocess, sys
            print(subprocess.run([sys.executable, 'tool.py', '--n', '21'], capture_output=True, text=True).stdout)""", shows="42")),
    Case("argparse in a cell", python("""
            import argparse
            p = argparse.ArgumentParser()
            p.add_argument('--rate', type=float, default=0.5)
            print(p.parse_args([]).rate, p.parse_args(['--rate', '2']).rate)""", out="0.5 2.0\n")),
    Case("argparse without arguments in a cell", python("""
            import argparse
            p = argparse.ArgumentParser()
            p.add_argument('--rate', type=float, default=0.5)
            print(p.parse_args().rate)""", out="0.5\n")),
    Case("own module is imported and reloaded", python(r"""
            open('helper.py', 'w').write('N = 1\n')
            import helper
            print(helper.N)""", out="1\n"), python(r"""
            import importlib, time
            open('helper.py', 'w').write('N = 222\n')
            importlib.reload(helper).N""", result="222")),
    Case("package with relative imports", python("""
            import os
            os.makedirs('app/sub')
            for p, t in {'app/__init__.py': '', 'app/sub/__init__.py': 'from ..core import f', 'app/core.py': 'def f(): return "core"'}.items():
                open(p, 'w').write(t)
            from app.sub import f
            f()""", result="'core'")),
    Case("sys.argv is one name", python("""
            import sys
            len(sys.argv)""", result="1")),
    Case("which python", python("""
            import sys
            print(sys.version_info >= (3, 8), bool(sys.executable))""", out="True True\n")),

    # ---- errors
    Case("exception shows the line", python("""
            x = 1
            y = 0
            print(x / y)
            """, code=1, error="ZeroDivisionError: division by zero", traceback=("line 3", "print(x / y)")), quick=True),
    Case("exception in a function shows both lines", python("""
            def half(n):
                return 10 / n

            def run():
                return half(0)

            run()""", code=1, error="ZeroDivisionError", traceback=("line 2", "return 10 / n", "line 5", "return half(0)", "line 7"))),
    Case("exception of an earlier cell shows its source", python("""
            def broken(d):
                return d['missing']"""), python("broken({})", code=1, error="KeyError: 'missing'", traceback="return d['missing']")),
    Case("syntax error shows the place", python("""
            def f(:
                pass""", code=1, error="SyntaxError", traceback=("line 1", "^"))),
    Case("indentation error", python("""
            if True:
            print(1)""", code=1, error="IndentationError")),
    Case("unknown name", python("""
            value = 1
            valuee""", code=1, error="NameError: name 'valuee' is not defined")),
    Case("state survives an exception", python("""
            kept = [1]
            kept.append(2)
            raise RuntimeError('stop here')""", code=1, error="RuntimeError: stop here", state="kept"), python("kept", result="[1, 2]"), quick=True),
    Case("missing module names it", python("import no_such_module_xyz", code=1, error="ModuleNotFoundError: No module named 'no_such_module_xyz'"), quick=True),
    Case("chained exceptions", python("""
            try:
                int('x')
            except ValueError as e:
                raise RuntimeError('bad input') from e""", code=1, error="RuntimeError: bad input", traceback=("invalid literal", "direct cause"))),
    Case("exception with notes", python("""
            e = ValueError('broken')
            e.add_note('row 17')
            raise e""", code=1, error="ValueError: broken", err="row 17")),
    Case("exception group",
         python("raise ExceptionGroup('several', [ValueError('one'), TypeError('two')])", code=1, error="ExceptionGroup", err=("one", "two"))),
    Case("own exception class", python("""
            class TooBig(Exception): pass
            raise TooBig('17 > 10')""", code=1, error="TooBig: 17 > 10")),
    Case("assertion", python("assert 1 + 1 == 3, 'arithmetic'", code=1, error="AssertionError: arithmetic")),
    Case("recursion error", python("""
            def f(n): return f(n + 1)
            f(0)""", code=1, error="RecursionError"), python("1 + 1", result="2")),
    Case("traceback.print_exc", python("""
            import traceback
            try:
                {}['k']
            except KeyError:
                traceback.print_exc()
            print('on')""", out="on\n", err=("Traceback", "KeyError: 'k'"))),
    Case("sys.exit with a code", python("""
            import sys
            print('before')
            sys.exit(3)
            print('after')""", out="before\n", code=3), python("'still here'", result="'still here'"), quick=True),
    Case("sys.exit without a code", python("""
            import sys
            sys.exit()""", code=0)),
    Case("sys.exit with a message", python("""
            import sys
            sys.exit('no input file')""", code=1, err="no input file")),
    Case("exit and quit", python("exit()", code=0), python("quit(2)", code=2), python("1", result="1")),
    Case("warnings are shown once", python("""
            import warnings
            warnings.warn('deprecated thing', UserWarning)
            print('on')""", out="on\n", err="UserWarning: deprecated thing")),
    Case("crash of the interpreter", python("x = 1"), python("""
            import ctypes
            ctypes.string_at(0)""", code=139, status="signal", state="reset", cause="signal"), python("'x' in globals()", result="False")),
    Case("keyboard interrupt can be raised", python("raise KeyboardInterrupt", code=130, error="KeyboardInterrupt", status="error")),

    # ---- output and input
    Case("stderr is separate", python("""
            import sys
            print('out')
            print('err', file=sys.stderr)""", out="out\n", err="err\n"), quick=True),
    Case("print without newline", python("""
            print('a', end='')
            print('b', end='', flush=True)""", out="ab")),
    Case("pprint", python("""
            from pprint import pprint
            pprint({'b': list(range(3)), 'a': {'x': 1}})""", out="{'a': {'x': 1}, 'b': [0, 1, 2]}\n")),
    Case("carriage returns of progress bars", python(r"""
            import sys, time
            for i in range(3):
                sys.stdout.write(f'\rstep {i}')
                sys.stdout.flush()
            print()""", shows="step 2")),
    Case("bytes to stdout", python(r"""
            import sys
            sys.stdout.buffer.write(b'raw \xc3\xa9\n')
            sys.stdout.flush()""", shows="raw é\n")),
    Case("output of children in order", python("""
            import subprocess
            print('a', flush=True)
            subprocess.run(['echo', 'b'])
            print('c')""", out="a\nb\nc\n")),
    Case("large output is cut and says so", python("for i in range(20000): print('line', i)", truncated=True, shows="line 0\n"), quick=True),
    Case("redirect_stdout", python("""
            import io, contextlib
            b = io.StringIO()
            with contextlib.redirect_stdout(b):
                print('caught')
            b.getvalue()""", result="'caught\\n'", out="")),
    Case("input from the request", python("""
            name = input('name? ')
            print('hi', name)""", stdin="Ada\n", shows="hi Ada")),
    Case("input without an answer explains", python("input('continue? ')", code=1, error="EOFError"), quick=True),
    Case("stdin lines", python("""
            import sys
            print(sum(int(line) for line in sys.stdin))""", stdin="1\n2\n39\n", out="42\n")),

    # ---- async
    Case("top level await", python("""
            import asyncio
            await asyncio.sleep(0.01)
            await asyncio.gather(*(asyncio.sleep(0.01, i) for i in range(3)))""", result="[0, 1, 2]"), quick=True),
    Case("asyncio.run as in a script", python("""
            import asyncio
            async def main():
                async with asyncio.timeout(5):
                    await asyncio.sleep(0.01)
                return 'done'
            print(asyncio.run(main()))""", out="done\n")),
    Case("async for and async with", python("""
            import contextlib
            async def numbers():
                for i in range(3): yield i
            @contextlib.asynccontextmanager
            async def ctx():
                yield 'c'
            async with ctx() as c:
                print(c, [n async for n in numbers()])""", out="c [0, 1, 2]\n")),
    Case("tasks go on between cells", python("""
            import asyncio
            seen = []
            async def work():
                for i in range(3):
                    seen.append(i)
                    await asyncio.sleep(0.01)
            task = asyncio.create_task(work())"""), python("""
            await task
            seen""", result="[0, 1, 2]")),
    Case("asyncio queue and semaphore", python("""
            import asyncio
            async def main():
                q, sem, out = asyncio.Queue(), asyncio.Semaphore(2), []
                async def worker():
                    while True:
                        n = await q.get()
                        async with sem: out.append(n * n)
                        q.task_done()
                ws = [asyncio.create_task(worker()) for _ in range(3)]
                for i in range(5): q.put_nowait(i)
                await q.join()
                for w in ws: w.cancel()
                return sorted(out)
            asyncio.run(main())""", result="[0, 1, 4, 9, 16]")),
    Case("async subprocess", python("""
            import asyncio
            p = await asyncio.create_subprocess_exec('echo', 'from child', stdout=asyncio.subprocess.PIPE)
            out, _ = await p.communicate()
            print(out.decode())""", shows="from child")),

    # ---- magics
    Case("shell command", python("!echo hello from the shell", out="hello from the shell\n"), quick=True),
    Case("shell output as a list", python(r"""
            files = !printf 'a\nb\n'
            print(files, len(files))""", out="['a', 'b'] 2\n")),
    Case("shell command with a variable", python("""
            name = 'data'
            !echo {name}.csv $name""", out="data.csv data\n")),
    Case("magic time", python("%time sum(range(1000))", shows="Wall time", result="499500")),
    Case("magic timeit", python("%timeit -n 10 -r 2 sum(range(10))", shows="per loop")),
    Case("cell magic time", python("""
            %%time
            total = sum(range(10))
            print(total)""", shows=("45", "Wall time")), python("total", result="45")),
    Case("cell magic bash", python("""
            %%bash
            for i in 1 2 3; do echo n$i; done""", out="n1\nn2\nn3\n"), quick=True),
    Case("cell magic writefile", python("""
            %%writefile conf.ini
            [a]
            b = 1
            """, files={"conf.ini": "[a]\nb = 1\n"})),
    Case("magic cd and pwd", python("""
            %mkdir -p sub
            %cd sub"""), python("%pwd", result="'/workspace/sub'")),
    Case("magic env", python("%env MODE=fast"), python("""
            import os
            os.environ['MODE']""", result="'fast'")),
    Case("magic capture", python("""
            %%capture cap
            print('hidden')""", out=""), python("cap.stdout", result="'hidden\\n'")),
    Case("magic who and whos", python("""
            alpha = 1
            beta = 'x'"""), python("%who", shows=("alpha", "beta"))),
    Case("magic run", python(r"""
            open('s.py', 'w').write('v = 7\nprint("ran")')
            %run s.py
            v""", out="ran\n", result="7")),
    Case("magic matplotlib inline is accepted", python("""
            %matplotlib inline
            print('ok')""", shows="ok")),
    Case("help of a function", python("""
            def area(r):
                'The area of a circle.'
            area?""", shows="The area of a circle.")),
    Case("help()", python("help(len)", shows="Return the number of items")),
    Case("unknown magic explains", python("%no_such_magic", code=1, error="no_such_magic")),
    Case("comments alone", python("# nothing to do\n", out="", result="")),
    Case("indented paste", python("    x = 5\n    print(x)", out="5\n")),
]
