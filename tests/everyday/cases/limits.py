# SPDX-License-Identifier: Apache-2.0
"""limits.py - Messages that a user gets at a limit, and the use of the sandbox afterwards."""
from case import Case, bash, cli, javascript, program, python, shell

EAT = "b = []\nwhile True: b.append(bytearray(8 << 20))"
FORK = "import os, time\nkids = []\nwhile True:\n    p = os.fork()\n    if not p: time.sleep(60)\n    kids.append(p)"

CASES = [
    Case("timeout of python keeps the variables", python("x = 1"),
         python("while True: pass", timeout=1, code=124, status="timeout", cause="wall", hint=("still running after 1 s", "longer timeout"), state="kept"),
         python("x", result="1"), quick=True),
    Case("timeout shows the output until then", python("""
            import time
            print('begun', flush=True)
            time.sleep(60)""", timeout=1, code=124, status="timeout", out="begun\n")),
    Case("timeout of bash", bash("y=2; cd /tmp"), bash("sleep 60", timeout=1, code=124, status="timeout", cause="wall"), bash("echo $y $PWD", out="2 /tmp\n")),
    Case("timeout of javascript", javascript("await new Promise(r => setTimeout(r, 60000))", timeout=1, code=124, status="timeout", cause="wall"),
         javascript("1", result="1"), needs="node"),
    Case("timeout of a program", program("sleep", "60", timeout=1, code=124, status="timeout", cause="wall", hint="still running after 1 s")),
    Case("except Exception does not catch the timeout", python("""
            import time
            try:
                time.sleep(60)
            except Exception:
                print('swallowed')""", timeout=1, code=124, status="timeout", out="")),
    Case("out of memory in python", python("open('work.txt', 'w').write('hours of work')"),
         python(EAT, code=137, status="limit", cause="memory", hint="out of memory: all of 128 MiB used"), python("1 + 1", result="2"),
         spec={"memory_mib": 128}, quick=True),
    Case("out of memory keeps the files", python("open('work.txt', 'w').write('hours of work')"), python(EAT, code=137, status="limit", cause="memory"),
         python("open('work.txt').read()", result="'hours of work'"), spec={"memory_mib": 128}),
    Case("out of memory in a child of bash", bash("echo kept > f; x=1"),
         bash("python3 -c '%s'" % EAT, code=137, cause="memory", status="limit", hint="out of memory"), bash("echo on; cat f", out="on\nkept\n"),
         spec={"memory_mib": 128}),
    Case("out of memory of a program", program("python3", "-c", EAT, code=137, status="limit", cause="memory"), program("echo", "on", out="on\n"),
         spec={"memory_mib": 128}),
    Case("memory error that can be caught", python("""
            try:
                bytearray(1 << 60)
            except MemoryError:
                print('caught')""", out="caught\n")),
    Case("too many processes", python(FORK, code=1, status="limit", cause="pids", error="BlockingIOError", hint="pids"), spec={"pids": 24}),
    Case("sandbox after too many processes", python("x = 5"), python(FORK, code=1, status="limit", cause="pids"), python("""
            import signal
            for k in kids: os.kill(k, signal.SIGKILL); os.waitpid(k, 0)
            x""", result="5"), spec={"pids": 24}),
    Case("too many threads", python("""
            import threading, time
            def w(): time.sleep(60)
            while True: threading.Thread(target=w, daemon=True).start()""", code=1, status="limit", cause="pids", error="can't start new thread"),
         spec={"pids": 24}),
    Case("disk full", python("open('big', 'wb').write(b'x' * (64 << 20))", code=1, status="limit", cause="disk", error="No space left on device", hint="disk"),
         python("""
            import os
            os.remove('big')
            open('small', 'w').write('ok')""", result="2"), spec={"disk_mib": 16, "memory_mib": 256}, quick=True),
    Case("output over the limit can be read", python("for i in range(30000): print(i)", truncated=True, shows="0\n1\n2\n"), quick=True),
    Case("output of one long line", bash("head -c 200000 /dev/zero | tr '\\0' x", truncated=True)),
    Case("endless output with a timeout", bash("yes", timeout=2, code=124, status="timeout", truncated=True, shows="y\ny\n"), bash("echo on", out="on\n")),
    Case("no network explains", python("""
            import socket
            socket.create_connection(('example.com', 80), 5)""", code=1, error="gaierror", hint="egress")),
    Case("no privileges", bash("mount -t tmpfs x /mnt; chown root f 2>/dev/null; id -u", shows="1000\n", err="mount")),
    Case("crash of a program", bash("bash -c 'kill -SEGV $$'; echo $?", shows="139"),
         program("sh", "-c", "kill -KILL $$", code=137, status="signal", cause="signal")),
    Case("interpreter that is killed", python("x = 1"), python("""
            import os
            os._exit(7)""", code=7, state="reset"), python("'x' in globals()", result="False")),
    Case("limits by the command line", cli("run", "--timeout", "1", "import time; time.sleep(60)", code=124, err="still running after 1 s"),
         cli("run", "--memory", "64M", EAT, code=137, err="out of memory"), image="host"),
    Case("files can be open in number", python("""
            fs = [open('/dev/null') for _ in range(500)]
            len(fs)""", result="500")),
    Case("deep recursion of json", shell("python3 -c 'import json; json.loads(\"[\" * 100000)'", code=1, err="RecursionError")),
]
