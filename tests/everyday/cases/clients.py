# SPDX-License-Identifier: Apache-2.0
"""clients.py - The same sandbox from the user's side: the command line, MCP as a model uses it, the Python library."""
from case import Case, bash, cli, mcp, python, sdk

HOST = {"image": "host"}

CASES = [
    # ---- the command line without a daemon
    Case("caisson run", cli("run", "--image", "{image}", "print(6 * 7)", out="42\n"), quick=True),
    Case("caisson run with exit code", cli("run", "--image", "{image}", "import sys; sys.exit(3)", code=3)),
    Case("caisson run bash", cli("run", "--image", "{image}", "--lang", "bash", "echo $((6 * 7)); uname -s", out="42\nLinux\n")),
    Case("caisson run with input", cli("run", "--image", "{image}", "print(input()[::-1])", stdin="abc\n", out="cba\n")),
    Case("caisson run traceback", cli("run", "--image", "{image}", "1 / 0", code=1, err=("Traceback", "ZeroDivisionError"))),
    Case("caisson run json", cli("run", "--image", "{image}", "--json", "print('x')", shows=('"status":"ok"', '"stdout":"x\\n"'))),
    Case("caisson exec", cli("exec", "--image", "{image}", "--", "sh", "-c", "echo $0 args; exit 4", out="sh args\n", code=4)),
    Case("caisson run of a file", sdk("open('s.py', 'w').write('import sys; print(sys.argv[1:])')"),
         cli("run", "--image", "{image}", "s.py", "a", "b", out="['a', 'b']\n")),
    Case("caisson run with a mount", sdk("import os; os.mkdir('data'); open('data/x', 'w').write('mounted'); os.chmod('.', 0o755)"),
         cli("run", "--image", "{image}", "--mount", "{dir}/data:/data", "print(open('/data/x').read())", out="mounted\n")),
    Case("caisson doctor", cli("doctor", shows="ok"), **HOST),

    # ---- with a daemon
    Case("run --name keeps variables", cli("run", "--name", "{box}", "x = 20"), cli("run", "--name", "{box}", "x * 2 + 2", out="42\n"), quick=True),
    Case("create, exec, rm", cli("create", "{box}-2", "--image", "{image}", shows="-2"), cli("exec", "--name", "{box}-2", "--", "echo", "hi", out="hi\n"),
         cli("rm", "{box}-2"), cli("exec", "--name", "{box}-2", "--", "true", code=125, err="no such sandbox")),
    Case("cp in and out", sdk("open('in.txt', 'w').write('up and down')"), cli("cp", "in.txt", "{box}:"),
         cli("exec", "--name", "{box}", "--", "cat", "in.txt", out="up and down"), cli("cp", "{box}:in.txt", "-", out="up and down"), quick=True),
    Case("cp of a directory", sdk("import os; os.makedirs('d/e'); open('d/e/f', 'w').write('deep')"), cli("cp", "-r", "d", "{box}:"),
         cli("exec", "--name", "{box}", "--", "cat", "d/e/f", out="deep"), cli("cp", "-r", "{box}:d", "back"),
         sdk("print(open('back/e/f').read())", out="deep\n")),
    Case("ps and top", cli("ps", shows=("NAME", "STATE")), cli("ps", "--json", shows='"sandboxes"'), cli("top", shows="NAME")),
    Case("logs", cli("run", "--name", "{box}", "print('remembered')", out="remembered\n"), cli("logs", "{box}", shows="remembered")),
    Case("stop and rm", cli("stop", "{box}"), cli("ps", "-a", shows="stopped"), cli("rm", "{box}"), cli("logs", "{box}", code=5)),
    Case("error of code by the command line", cli("run", "--name", "{box}", "int('x')", code=1, err=("ValueError", "invalid literal"))),
    Case("exec with a pipe", cli("exec", "--name", "{box}", "-i", "--", "tr", "a-z", "A-Z", stdin="loud\n", out="LOUD\n")),
    Case("unknown sandbox", cli("run", "--name", "never-made-this", "1", code=125, err="never-made-this")),
    Case("net", cli("net", "{box}", shows="0 connections opened")),

    # ---- MCP
    Case("execute_code keeps variables", mcp("execute_code", {"session_id": "{box}", "language": "python", "code": "x = 41"}),
         mcp("execute_code", {"session_id": "{box}", "language": "python", "code": "x + 1"}, out="42"), quick=True),
    Case("execute_python", mcp("execute_python", {"code": "print('fresh')"}, shows="fresh"), **HOST),
    Case("run_shell keeps its directory", mcp("run_shell", {"session_id": "{box}", "command": "mkdir -p a && cd a"}),
         mcp("run_shell", {"session_id": "{box}", "command": "pwd"}, out="/workspace/a\n")),
    Case("write_file, read_file, list_files", mcp("write_file", {"session_id": "{box}", "path": "n/t.txt", "content": "héllo\n"}),
         mcp("read_file", {"session_id": "{box}", "path": "n/t.txt"}, shows="héllo"), mcp("list_files", {"session_id": "{box}", "path": "n"}, shows="t.txt"),
         bash("cat n/t.txt", out="héllo\n"), quick=True),
    Case("error of code is a result",
         mcp("execute_code", {"session_id": "{box}", "language": "python", "code": "1/0"}, code=1, shows=("ZeroDivisionError", "line 1"))),
    Case("timeout with a hint",
         mcp("execute_code", {"session_id": "{box}", "language": "python", "code": "while True: pass", "timeout": 1}, code=124, cause="wall", hint="longer timeout")),
    Case("cut output can be read",
         mcp("execute_code", {"session_id": "{box}", "language": "python", "code": "for i in range(20000): print(i)"}, truncated=True, shows="read_output")),
    Case("picture is an image block",
         mcp("execute_code", {"session_id": "{box}", "language": "python", "code": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"}, pictures=1, mime="image/png"),
         modules="matplotlib"),
    Case("wrong argument names the field", mcp("execute_code", {"session_id": "{box}", "language": "python"}, code=1, shows="code")),
    Case("start_process and its output", mcp("start_process", {"session_id": "{box}", "command": "echo begun; sleep 100"}, json={"state": "running"}),
         mcp("list_processes", {"session_id": "{box}"}, shows="sleep 100")),
    Case("install_package", mcp("install_package", {"session_id": "{box}", "package_name": "humanize"}, shows="humanize"),
         mcp("execute_code", {"session_id": "{box}", "language": "python", "code": "import humanize; humanize.intcomma(1234567)"}, shows="1,234,567"),
         index="python"),

    # ---- the Python library
    Case("sdk execute and files", sdk("""
            from caisson import Caisson
            with Caisson() as c:
                box = c.get(BOX)
                box.execute("x = 41")
                print(box.execute("x + 1").text)
                box.files.write("a.txt", b"from the library")
                print(box.shell("cat a.txt").stdout, box.files.read("a.txt") == b"from the library")""", out="42\nfrom the library True\n"), quick=True),
    Case("sdk create and remove", sdk("""
            from caisson import Caisson
            with Caisson() as c, c.create(memory_mib=256, image=IMAGE) as box:
                r = box.shell("echo out; echo err >&2; exit 3")
                print(r.exit_code, r.stdout, r.stderr)""", shows="3 out\n err\n")),
    Case("sdk error and check", sdk("""
            from caisson import Caisson
            from caisson.errors import ExecutionFailed
            with Caisson() as c:
                try: c.get(BOX).execute("1 / 0").check()
                except ExecutionFailed as e: print("failed", "ZeroDivisionError" in str(e))""", out="failed True\n")),
    Case("sdk stream", sdk("""
            from caisson import Caisson
            with Caisson() as c, c.get(BOX).stream("for i in range(3): print(i)") as run:
                print("".join(e.text for e in run if e.type == "stdout").split())""", out="['0', '1', '2']\n")),
    Case("sdk and code share the sandbox", python("shared = 'yes'"), sdk("""
            from caisson import Caisson
            with Caisson() as c: print(c.get(BOX).execute("shared").text)""", out="'yes'\n")),
]
