# SPDX-License-Identifier: Apache-2.0
"""python_library.py - The standard library, as agents use it: files, formats, processes, threads, sockets, time, text."""
from case import Case, python

SERVER = """
import http.server, json, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"path": self.path, "n": 42}).encode()
        self.send_response(200 if self.path != "/missing" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8099), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
URL = "http://127.0.0.1:8099"
"""

CASES = [
    Case("json file both ways", python("""
            import json
            with open("data.json", "w") as f:
                json.dump({"name": "Ada", "tags": ["x", "é"]}, f, ensure_ascii=False)
            print(json.load(open("data.json"))["tags"][1])""", out="é\n", files={"data.json": '{"name": "Ada", "tags": ["x", "é"]}'}), quick=True),
    Case("csv DictReader and DictWriter", python("""
            import csv
            with open("people.csv", "w", newline="") as f:
                w = csv.DictWriter(f, ["name", "age"])
                w.writeheader()
                w.writerows([{"name": "Ada, Countess", "age": 36}, {"name": "Alan", "age": 41}])
            print(sum(int(r["age"]) for r in csv.DictReader(open("people.csv"))))""", out="77\n", files={"people.csv": 'name,age\r\n"Ada, Countess",36\r\nAlan,41\r\n'}),
         quick=True),
    Case("sqlite3 in memory and in a file", python("""
            import sqlite3
            for where in (":memory:", "shop.db"):
                db = sqlite3.connect(where)
                db.execute("create table item(name text, price real)")
                db.executemany("insert into item values (?, ?)", [("tea", 2.5), ("cake", 4)])
                db.commit()
                print(db.execute("select sum(price), count(*) from item").fetchone())""", out="(6.5, 2)\n(6.5, 2)\n"), quick=True),
    Case("sqlite3 WAL mode and full text search", python("""
            import sqlite3
            db = sqlite3.connect("notes.db")
            print(db.execute("pragma journal_mode=wal").fetchone()[0])
            db.execute("create virtual table note using fts5(body)")
            db.execute("insert into note values ('the quick brown fox')")
            db.commit()
            print(db.execute("select count(*) from note where note match 'quick'").fetchone()[0])""", out="wal\n1\n")),
    Case("pathlib walk and glob", python(r"""
            from pathlib import Path
            for p in ("src/a.py", "src/deep/b.py", "README.md"):
                Path(p).parent.mkdir(parents=True, exist_ok=True)
                Path(p).write_text("x\n" * 3)
            print(sorted(str(p) for p in Path(".").rglob("*.py")), Path("README.md").stat().st_size)""", out="['src/a.py', 'src/deep/b.py'] 6\n")),
    Case("os.walk, rename, remove", python("""
            import os, shutil
            os.makedirs("d/e"); open("d/e/f.txt", "w").close()
            os.rename("d/e/f.txt", "d/g.txt"); shutil.copytree("d", "copy"); shutil.rmtree("d")
            print(sorted((a, sorted(b), sorted(c)) for a, b, c in os.walk("copy")), os.path.exists("d"))""", out="[('copy', ['e'], ['g.txt']), ('copy/e', [], [])] False\n")),
    Case("temporary files", python("""
            import tempfile, os
            with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile("w+", dir=d, suffix=".txt") as f:
                f.write("x"); f.flush()
                print(os.path.getsize(f.name), d.startswith("/tmp"))""", out="1 True\n")),
    Case("zipfile and tarfile", python("""
            import zipfile, tarfile, io
            with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as z: z.writestr("x/y.txt", "hello " * 100)
            with tarfile.open("a.tgz", "w:gz") as t: t.add("a.zip")
            print(zipfile.ZipFile("a.zip").read("x/y.txt")[:5], tarfile.open("a.tgz").getnames())""", out="b'hello' ['a.zip']\n")),
    Case("gzip, bz2, lzma, base64", python("""
            import gzip, bz2, lzma, base64, zlib
            data = b"abc" * 1000
            print([len(m.decompress(m.compress(data))) for m in (gzip, bz2, lzma, zlib)], base64.b64encode(b"hi").decode())""", out="[3000, 3000, 3000, 3000] aGk=\n")),
    Case("big file", python("""
            with open("big.bin", "wb") as f:
                for _ in range(100): f.write(bytes(1 << 20))
            import os
            os.path.getsize("big.bin") >> 20""", result="100")),
    Case("mmap", python("""
            import mmap
            open("m", "wb").write(b"hello world")
            with open("m", "r+b") as f, mmap.mmap(f.fileno(), 0) as m: m[:5] = b"HELLO"
            open("m").read()""", result="'HELLO world'")),
    Case("file lock", python("""
            import fcntl
            with open("lock", "w") as f:
                fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)
                print("locked")""", out="locked\n")),

    # ---- processes and threads
    Case("subprocess with pipes", python(r"""
            import subprocess
            p = subprocess.run("sort | uniq -c | sort -rn | head -1", shell=True, input="b\na\nb\n", capture_output=True, text=True, check=True)
            p.stdout.split()""", result="['2', 'b']"), quick=True),
    Case("subprocess failure is visible", python("""
            import subprocess
            subprocess.run(['ls', '/nowhere'], check=True)""", code=1, error="CalledProcessError", err="/nowhere")),
    Case("subprocess timeout", python("""
            import subprocess
            try:
                subprocess.run(['sleep', '30'], timeout=0.2)
            except subprocess.TimeoutExpired as e:
                print('late', e.cmd)""", out="late ['sleep', '30']\n")),
    Case("os.popen and os.system", python("""
            import os
            print(os.popen('echo popen').read().strip(), os.system('exit 3') >> 8)""", out="popen 3\n")),
    Case("threads and locks", python("""
            import threading
            n, lock = 0, threading.Lock()
            def add():
                global n
                for _ in range(1000):
                    with lock: n += 1
            ts = [threading.Thread(target=add) for _ in range(8)]
            [t.start() for t in ts]; [t.join() for t in ts]
            n""", result="8000"), quick=True),
    Case("thread pool", python("""
            from concurrent.futures import ThreadPoolExecutor
            with ThreadPoolExecutor(4) as ex: print(sum(ex.map(lambda x: x * x, range(10))))""", out="285\n")),
    Case("process pool", python("""
            from concurrent.futures import ProcessPoolExecutor
            def square(x): return x * x
            with ProcessPoolExecutor(2) as ex: print(list(ex.map(square, range(5))))""", out="[0, 1, 4, 9, 16]\n")),
    Case("multiprocessing pool", python("""
            from multiprocessing import Pool, cpu_count
            def cube(x): return x ** 3
            if __name__ == "__main__":
                with Pool(2) as p: print(p.map(cube, [1, 2, 3]), cpu_count() >= 1)""", out="[1, 8, 27] True\n"), quick=True),
    Case("multiprocessing queue, event and shared memory", python("""
            import multiprocessing as mp
            from multiprocessing import shared_memory
            def child(q, name):
                s = shared_memory.SharedMemory(name); s.buf[0] = 7; s.close(); q.put("done")
            s = shared_memory.SharedMemory(create=True, size=16)
            q = mp.Queue(); p = mp.Process(target=child, args=(q, s.name)); p.start()
            print(q.get(), s.buf[0]); p.join(); s.close(); s.unlink()""", out="done 7\n")),
    Case("multiprocessing spawn", python(r"""
            open("work.py", "w").write("def double(x): return 2 * x\n")
            import multiprocessing as mp, work
            with mp.get_context("spawn").Pool(2) as p: print(p.map(work.double, [1, 2]))""", out="[2, 4]\n")),
    Case("signals and alarms", python("""
            import signal, os, time
            got = []
            signal.signal(signal.SIGUSR1, lambda *a: got.append("usr1"))
            os.kill(os.getpid(), signal.SIGUSR1); time.sleep(0.05)
            def late(*a): raise TimeoutError("too slow")
            signal.signal(signal.SIGALRM, late); signal.setitimer(signal.ITIMER_REAL, 0.1)
            try: time.sleep(10)
            except TimeoutError as e: got.append(str(e))
            got""", result="['usr1', 'too slow']")),
    Case("queue and timer", python("""
            import queue, threading
            q = queue.Queue()
            threading.Timer(0.05, q.put, ['tick']).start()
            q.get(timeout=10)""", result="'tick'")),
    Case("resource limits can be read", python("""
            import resource
            resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 256""", result="True")),
    Case("fork and wait", python("""
            import os
            pid = os.fork()
            if pid == 0: os._exit(5)
            os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])""", result="5")),
    Case("pty", python("""
            import pty, os
            pid, fd = pty.fork()
            if pid == 0: os.execvp('tty', ['tty'])
            data = os.read(fd, 100); os.waitpid(pid, 0)
            print(data.startswith(b'/dev/pts/'))""", out="True\n")),

    # ---- network inside the sandbox
    Case("urllib against an own server", python(SERVER), python("""
            import urllib.request, urllib.error
            print(json.load(urllib.request.urlopen(URL + "/a?b=1"))["path"])
            r = urllib.request.urlopen(urllib.request.Request(URL, data=b"posted", method="POST")); print(r.status, r.read())
            try: urllib.request.urlopen(URL + "/missing")
            except urllib.error.HTTPError as e: print(e.code)""", out="/a?b=1\n201 b'posted'\n404\n"), quick=True),
    Case("http.client by the name localhost", python(SERVER), python("""
            import http.client
            c = http.client.HTTPConnection('localhost', 8099)
            c.request('GET', '/x')
            c.getresponse().status""", result="200")),
    Case("sockets", python("""
            import socket
            a, b = socket.socketpair(); a.sendall(b"pair"); print(b.recv(10))
            s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); d, _ = s.accept()
            d.sendall(b"tcp"); print(c.recv(10))
            u, v = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "uv"); u.bind(("127.0.0.1", 0)); v.sendto(b"udp", u.getsockname()); print(u.recv(10))""", out="b'pair'\nb'tcp'\nb'udp'\n"),
         quick=True),
    Case("unix socket server", python(r"""
            import socketserver, threading, socket
            class H(socketserver.StreamRequestHandler):
                def handle(self): self.wfile.write(self.rfile.readline().upper())
            s = socketserver.ThreadingUnixStreamServer("/tmp/s.sock", H); threading.Thread(target=s.serve_forever, daemon=True).start()
            c = socket.socket(socket.AF_UNIX); c.connect("/tmp/s.sock"); c.sendall(b"shout\n"); print(c.recv(100)); s.shutdown()""", out="b'SHOUT\\n'\n")),
    Case("asyncio streams", python(r"""
            import asyncio
            async def serve(r, w): w.write((await r.readline())[::-1]); await w.drain(); w.close()
            s = await asyncio.start_server(serve, "127.0.0.1", 0)
            r, w = await asyncio.open_connection(*s.sockets[0].getsockname()); w.write(b"abc\n"); print(await r.read())""", out="b'\\ncba'\n")),
    Case("ipv6 loopback", python("""
            import socket
            s = socket.create_server(('::1', 0), family=socket.AF_INET6)
            c = socket.create_connection(s.getsockname()[:2])
            print('connected')""", out="connected\n")),
    Case("ssl context", python("""
            import ssl
            c = ssl.create_default_context()
            print(c.verify_mode.name, c.check_hostname, ssl.HAS_TLSv1_3)""", out="CERT_REQUIRED True True\n")),
    Case("host name resolves", python("""
            import socket
            print(socket.gethostbyname(socket.gethostname()).startswith('127.'), socket.getaddrinfo('localhost', 80) != [])""", out="True True\n")),
    Case("xmlrpc and socketserver", python("""
            from xmlrpc.server import SimpleXMLRPCServer
            from xmlrpc.client import ServerProxy
            import threading
            s = SimpleXMLRPCServer(("127.0.0.1", 8077), logRequests=False); s.register_function(pow)
            threading.Thread(target=s.serve_forever, daemon=True).start()
            ServerProxy("http://127.0.0.1:8077").pow(2, 10)""", result="1024")),

    # ---- time, text, numbers
    Case("datetime arithmetic", python("""
            from datetime import datetime, timedelta, timezone
            d = datetime(2024, 2, 28, tzinfo=timezone.utc) + timedelta(days=2)
            d.isoformat()""", result="'2024-03-01T00:00:00+00:00'"), quick=True),
    Case("time zones", python("""
            from zoneinfo import ZoneInfo
            from datetime import datetime
            datetime(2024, 7, 1, 12, tzinfo=ZoneInfo('Europe/Berlin')).astimezone(ZoneInfo('America/New_York')).hour""", result="6")),
    Case("clock is right and moves", python("""
            import time
            a = time.time(); m = time.monotonic(); time.sleep(0.02)
            print(a > 1.7e9, time.monotonic() - m >= 0.02, time.strftime('%Z'))""", out="True True UTC\n")),
    Case("locale is utf-8", python("""
            import locale, sys
            print(locale.getpreferredencoding().lower().replace('-', ''), sys.getfilesystemencoding(), sys.stdout.encoding.lower())""", out="utf8 utf-8 utf-8\n")),
    Case("file names with unicode and spaces", python("""
            import os
            open('мой файл ☃.txt', 'w').write('x')
            os.listdir()""", result="['мой файл ☃.txt']"), quick=True),
    Case("regular expressions", python(r"""
            import re
            re.findall(r'(?P<k>\w+)=(?P<v>\d+)', 'a=1, b=22')""", result="[('a', '1'), ('b', '22')]")),
    Case("string templates and textwrap", python("""
            import textwrap, string
            print(textwrap.fill('the quick brown fox jumps', 10)); print(string.Template('$a!').substitute(a='hi'))""", out="the quick\nbrown fox\njumps\nhi!\n")),
    Case("logging to stderr and to a file", python("""
            import logging
            logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(message)s", handlers=[logging.StreamHandler(), logging.FileHandler("app.log")])
            logging.info("started"); logging.getLogger("x").warning("careful")""", err=("INFO:started", "WARNING:careful"), files={"app.log": "INFO:started\nWARNING:careful\n"})),
    Case("hashlib, hmac, secrets", python("""
            import hashlib, hmac, secrets
            print(hashlib.sha256(b'x').hexdigest()[:8], hmac.new(b'k', b'm', 'sha1').hexdigest()[:8], len(secrets.token_hex(8)))""", out="2d711642 772b71c8 16\n")),
    Case("random differs between sandboxes and can be seeded", python("""
            import random
            random.seed(1)
            random.randint(1, 1000)""", result="138")),
    Case("decimal, fractions, statistics", python("""
            from decimal import Decimal
            from fractions import Fraction
            import statistics
            print(Decimal('0.1') + Decimal('0.2'), Fraction(1, 3) + Fraction(1, 6), statistics.median([3, 1, 2]))""", out="0.3 1/2 2\n")),
    Case("big integers", python("len(str(2 ** 10000))", result="3011")),
    Case("itertools, functools, collections", python("""
            from collections import Counter, defaultdict, deque
            from functools import lru_cache, reduce
            from itertools import groupby, permutations
            print(Counter("banana").most_common(1), reduce(lambda a, b: a * b, range(1, 6)), len(list(permutations("abc"))), deque([1, 2], maxlen=1))""", out="[('a', 3)] 120 6 deque([2], maxlen=1)\n")),
    Case("enum and named tuples", python("""
            from enum import Enum, auto
            from typing import NamedTuple
            class C(Enum):
                RED = auto()
            class P(NamedTuple):
                x: int = 1
            print(C.RED.name, P())""", out="RED P(x=1)\n")),
    Case("pickle, copy, struct", python("""
            import pickle, copy, struct
            print(pickle.loads(pickle.dumps({'a': [1]})), copy.deepcopy([[1]]), struct.pack('>I', 258))""", out="{'a': [1]} [[1]] b'\\x00\\x00\\x01\\x02'\n")),
    Case("xml and html parsers", python("""
            import xml.etree.ElementTree as ET
            from html.parser import HTMLParser
            from html import unescape
            class P(HTMLParser):
                def handle_starttag(self, t, a): print(t, dict(a))
            P().feed('<a href="/x">y</a>'); print([e.text for e in ET.fromstring("<r><i>1</i><i>2</i></r>").iter("i")], unescape("&lt;"))""", out="a {'href': '/x'}\n['1', '2'] <\n")),
    Case("configparser, toml, shlex", python(r"""
            import configparser, tomllib, shlex
            c = configparser.ConfigParser(); c.read_string("[a]\nb = 1")
            print(c.getint("a", "b"), tomllib.loads("x = [1, 2]")["x"], shlex.split("a 'b c'"))""", out="1 [1, 2] ['a', 'b c']\n")),
    Case("email message", python("""
            from email.message import EmailMessage
            m = EmailMessage()
            m['Subject'] = 'Hi'
            m.set_content('text')
            m.add_attachment(b'x', maintype='a', subtype='b', filename='f')
            print(m.get_content_type())""", out="multipart/mixed\n")),
    Case("ctypes", python("""
            import ctypes
            libc = ctypes.CDLL(None)
            print(libc.abs(-5), libc.getpid() > 0)""", out="5 True\n")),
    Case("difflib and unittest.mock", python("""
            import difflib
            from unittest.mock import MagicMock, patch
            m = MagicMock(return_value=3)
            print(m(1), m.called, len(list(difflib.unified_diff(['a'], ['b']))))""", out="3 True 5\n")),
    Case("unittest in a cell", python("""
            import unittest
            class T(unittest.TestCase):
                def test_a(self): self.assertEqual(1 + 1, 2)
                def test_b(self): self.assertIn("x", "xyz")
            unittest.main(argv=["x"], exit=False)""", err=("Ran 2 tests", "OK"))),
    Case("doctest and timeit", python("""
            import doctest, timeit
            def f(x):
                '''
                >>> f(2)
                4
                '''
                return x * 2
            print(doctest.testmod().failed, timeit.timeit('1+1', number=10) < 5)""", out="0 True\n")),
    Case("cProfile and tracemalloc", python("""
            import cProfile, tracemalloc
            tracemalloc.start()
            cProfile.run('sum(range(1000))')
            print(tracemalloc.get_traced_memory()[1] > 0)""", shows=("function calls", "True"))),
    Case("user and home", python("""
            import getpass, os, pwd, pathlib
            print(getpass.getuser(), os.path.expanduser('~'), pwd.getpwuid(os.getuid()).pw_name, os.access(pathlib.Path.home(), os.W_OK))""", out="agent /home/agent agent True\n")),
    Case("platform", python("""
            import platform, sys, os
            print(platform.system(), os.cpu_count() >= 1, sys.platform)""", out="Linux True linux\n")),
    Case("virtual environment", python("""
            import subprocess, sys
            subprocess.run([sys.executable, '-m', 'venv', '--without-pip', 'env'], check=True)
            print(subprocess.run(['env/bin/python', '-c', 'import sys; print(sys.prefix)'], capture_output=True, text=True).stdout)""", shows="/workspace/env")),
    Case("compileall and zipapp", python("""
            import compileall, zipapp, subprocess, sys, os
            os.makedirs("app"); open("app/__main__.py", "w").write("print('zipped')")
            zipapp.create_archive("app"); print(subprocess.run([sys.executable, "app.pyz"], capture_output=True, text=True).stdout)""", shows="zipped")),
    Case("curses has a terminal description", python("""
            import curses
            curses.setupterm('xterm', 1)
            print(curses.tigetnum('colors') >= 8)""", out="True\n")),
    Case("readline and code module", python("""
            import code
            i = code.InteractiveInterpreter()
            i.runsource('print(6*7)')""", shows="42")),
]
