# SPDX-License-Identifier: Apache-2.0
"""test_bash.py - The bash kernel: state that is kept, ends that are survived, JSON by builtins alone."""
import json
import os
import time

import pytest

from drivers import DRIVERS
from kernel_lib import interpreter

DRIVER = DRIVERS["bash"]
pytestmark = DRIVER.mark


@pytest.fixture
def k(tmp_path):
    kernel = DRIVER.start(tmp_path)
    yield kernel
    assert kernel.alive(), "the kernel did not survive the test"
    assert kernel.close() == 0


def test_output_and_status(k):
    r = k.run("echo out; echo err >&2")
    assert (r.status, r.exit_code, r.stdout, r.stderr) == ("ok", 0, "out\n", "err\n")
    assert r.result is None and r.error is None
    r = k.run("(exit 7)")
    assert (r.status, r.exit_code, r.error) == ("error", 7, None)
    assert k.run("").status == "ok"
    assert k.run("# nothing").status == "ok"


def test_order_of_builtins_and_programs(k):
    assert k.run("echo a; /bin/echo b; printf 'c\\n'; sh -c 'echo d'").stdout == "a\nb\nc\nd\n"


def test_state_is_kept(k, tmp_path):
    k.run("plain=1; export exported=2; declare -A map=([k]='v w'); list=(a 'b c'); f() { echo f$1; }; alias ll='echo LL'")
    k.run("mkdir sub; cd sub; set -o noclobber; shopt -s nullglob; umask 027; set -- x 'y z'")
    r = k.run("ll; f 3; echo $plain ${map[k]} ${#list[@]} \"$2\" $PWD $(umask); sh -c 'echo $exported'; "
              "set -o | grep noclobber; shopt nullglob; declare -p map")
    assert r.stdout.splitlines()[:4] == ["LL", "f3", "1 v w 2 y z %s/sub 0027" % tmp_path.resolve(), "2"]
    assert "on" in r.stdout.splitlines()[4] and "on" in r.stdout.splitlines()[5]


def test_declare_is_global(k):
    k.run("declare -i n=3; local_like=1; readonly fixed=9")
    assert k.run("n+=4; echo $n $fixed").stdout == "7 9\n"


def test_status_of_the_last_execution(k):
    k.run("(exit 5)")
    assert k.run("echo $?").stdout == "5\n"
    assert k.run("echo $?").stdout == "0\n"
    k.run("read -r < <(echo line)")
    assert k.run("echo $REPLY").stdout == "line\n"


def test_background_jobs_are_kept(k):
    k.run("sleep 100 & pid=$!")
    assert k.run("exit 3").exit_code == 3
    r = k.run("jobs; kill %1; wait %1; echo $?; kill -0 $pid 2>/dev/null || echo gone")
    assert "sleep 100" in r.stdout and r.stdout.endswith("143\ngone\n")


def test_exit_in_subshells_is_their_own(k):
    r = k.run("(exit 3); echo $?; x=$(exit 4); echo $?; true | exit 5; echo $?; exit 1 2 2>/dev/null; echo still")
    assert r.stdout == "3\n4\n5\nstill\n" and r.status == "ok"


def test_many_exits(k):
    k.run("n=0; sleep 100 & ")
    for _ in range(230):  # past the depth at which the shell is restarted
        assert k.run("((++n)); exit 1").exit_code == 1
    assert k.run("echo $n; kill $!").stdout == "230\n"


def test_set_e(k):
    k.run("keep=1; arr=(a 'b c'); declare -A m=([x]='1 2'); f() { echo \"f $1\"; }; alias al='echo alias'; trap 'echo usr1' USR1")
    k.run("export E=1 'W=a\nb'; export -f f; cd /; set -- p 'q r'; IFS=:")
    r = k.run("set -euo pipefail\nfalse\necho never")
    assert (r.status, r.exit_code, r.stdout) == ("error", 1, "")
    assert r.error["name"] == "ExitStatus" and r.error["value"] == "1" and r.error["traceback"] == []
    r = k.run("al; f \"$keep\"; echo \"${arr[1]} ${m[x]} $PWD $2 $W $-\"; kill -USR1 $$; sh -c 'echo $E'; bash -c 'f exported'; set -o | grep pipefail")
    assert r.stdout.splitlines()[:3] == ["alias", "f 1", "b c 1 2 / q r a"]
    assert "e" in r.stdout.splitlines()[3] and "u" in r.stdout.splitlines()[3]
    assert r.stdout.splitlines()[4:7] == ["usr1", "1", "f exported"]
    assert r.stdout.splitlines()[7].split() == ["pipefail", "on"]
    assert k.ready["pid"] == int(k.run("echo $$").stdout)


def test_set_e_spares_a_last_false_condition(k):
    r = k.run("set -e\n[[ a == b ]] && echo no")
    assert (r.status, r.exit_code, r.error) == ("error", 1, None)
    assert k.run("[[ a == b ]] && echo no").error is None


def test_set_u(k):
    k.run("keep=1")
    r = k.run("set -u; echo $nothing; echo never")
    assert r.status == "error" and r.exit_code != 0 and r.error["name"] == "ExitStatus"
    assert "nothing: unbound variable" in r.stderr and "never" not in r.stdout
    assert k.run("set +u; echo $keep$nothing").stdout == "1\n"
    assert "bad thing" in k.run(": ${nothing:?bad thing}").stderr
    assert k.run("echo $keep").stdout == "1\n"


def test_exec(k):
    k.run("keep=1; printf 'one\\ntwo\\n' > lines")
    r = k.run("f() { exec sh -c 'echo instead; exit 5'; }; f; echo never")
    assert (r.stdout, r.exit_code) == ("instead\n", 5)
    assert k.run("exec 5<lines; read -r a <&5; echo $a").stdout == "one\n"
    assert k.run("read -r b <&5; echo $b $keep").stdout == "two 1\n"
    k.run("exec 6>&1 >log")
    k.run("echo logged")
    assert k.run("exec >&6 6>&-; cat log").stdout == "logged\n"
    assert k.run("(exec echo sub); echo $(exec echo sub2); find . -name lines -exec echo {} \\;").stdout == "sub\nsub2\n./lines\n"


def test_trap_exit(k):
    assert k.run("trap 'echo bye $?' EXIT; echo set").stdout == "set\n"
    assert k.run("echo later; trap").stdout == "later\ntrap -- 'echo bye $?' EXIT\n"
    r = k.run("exit 3")
    assert (r.stdout, r.exit_code) == ("bye 3\n", 3)
    assert k.run("trap; exit 4").stdout == ""
    r = k.run("cleanup() { rc=$?; echo clean $rc; exit 9; }; trap cleanup EXIT; set -e; (exit 4)")
    assert (r.stdout, r.exit_code) == ("clean 4\n", 9)
    k.start("set -e; trap 'echo go; sleep 10' EXIT; false")
    k.wait_stdout("go")
    time.sleep(0.1)
    k.interrupt()
    r = k.finish()
    assert (r.status, r.exit_code, r.error["name"]) == ("interrupted", 130, "ExitStatus")
    r = k.run("set +e; (trap 'echo sub' EXIT; echo in)")
    assert r.stdout == "in\nsub\n"


def test_other_traps(k):
    r = k.run("trap 'echo err' ERR; false; trap - ERR; false; trap 'echo term' TERM; kill -TERM $$")
    assert r.stdout == "err\nterm\n"
    r = k.run("f() { trap 'echo ret' RETURN; echo body; }; f; trap - RETURN; trap -p TERM")
    assert r.stdout == "body\nret\ntrap -- 'echo term' SIGTERM\n"
    k.run("trap 'echo debug' DEBUG")
    assert k.run("true").stdout == "debug\n"
    assert k.run("exit 3").exit_code == 3
    assert k.run("trap - DEBUG; true").stdout == "debug\n"


@pytest.mark.parametrize("code", ["echo )", "if true; then\necho a", "echo 'open", "echo a &&", "for x in; do; done", "set -e\nif then"])
def test_syntax_errors(k, code):
    r = k.run(code)
    assert r.status == "error" and r.exit_code != 0
    assert r.error["name"] == "SyntaxError", r
    assert "syntax error" in r.error["value"] or "unexpected" in r.error["value"]
    assert r.stderr
    assert k.run("set +e; echo ok").stdout == "ok\n"


def test_messages_name_bash_and_the_line(k):
    r = k.run("true\n\nno_such_command\n")
    assert "line 3: no_such_command: command not found" in r.stderr or "line 2: no_such_command" in r.stderr  # before 5.1
    assert r.stderr.startswith("bash:") and r.exit_code == 127 and r.error is None


def test_here_documents(k):
    r = k.run("x=1; cat <<A; cat <<'B'\nvalue $x\nA\nvalue $x\nB\ncat <<<word")
    assert r.stdout == "value 1\nvalue $x\nword\n"


def test_stdin_is_empty(k):
    assert k.run("read -r x; echo \"rc $?\"; cat; echo end").stdout == "rc 1\nend\n"


def test_stray_break_and_continue(k):
    for code in ("break", "continue", "break 7; echo never", "continue 3"):
        assert "never" not in k.run(code).stdout
        assert k.run("echo ok").stdout == "ok\n"


def test_control_descriptors_are_not_inherited(k):
    for code in ("ls /proc/self/fd", "set -e; false", "set +e; ls /proc/self/fd"):
        r = k.run(code)
    assert r.stdout.split() == ["0", "1", "2", "3"]  # 3 is ls's own
    assert k.run("{ echo x >&3; } 2>/dev/null || { echo x >&4; } 2>/dev/null || echo closed").stdout == "closed\n"
    k.run("exec 10<&0 11<&0 12<&0 3</dev/null 4</dev/null")
    assert k.run("echo ok").stdout == "ok\n"


def test_strings_of_all_kinds(k):
    text = "\\ \\\\ \\n \" ' / \t | \u0001\u0002\u007f é ü \u20ac 漢字 \U0001f600 \U0010ffff \\u0041 ${x} `x` $(x) \\" + "end\\\""
    code = "cat <<'EOF'\n%s\nEOF" % text
    assert k.run(code).stdout == text + "\n"
    for raw in (code, json.dumps(code, ensure_ascii=False)):
        message = {"type": "execute", "code": code, "name": "x"}
        k.start(None, raw=lambda i: json.dumps(dict(message, id=i), ensure_ascii=False, indent=None).encode())
        assert k.finish().stdout == text + "\n"
    k.start(None, raw=lambda i: (
        '  { "nested" : {"code": "echo no", "list": [1, "id", {"type": "x"}]} , "type"\t: "execute","id":"%s",'
        '"code":"echo \\u00e9\\ud83d\\ude00\\/\\ud800x\\b\\f\\u0000", "n": null }' % i).encode())
    assert k.finish().stdout == "é\U0001f600/\ufffdx\b\f\n"


def test_big_code(k):
    line = "echo \"a\tb 'quoted'\" \\\\ $x # é 漢字\n"
    code = ": <<'EOF'\n" + line * (100_000 // len(line)) + "EOF\necho done"
    r = k.run(code)
    assert r.stdout == "done\n"
    assert r.seconds < 20, "100 KB took %.1f s" % r.seconds  # half a second, or minutes when each character costs all before it


def test_big_output(k):
    r = k.run("for i in {1..200000}; do echo 0123456789; done")
    assert len(r.stdout) == 200000 * 11


def test_own_interrupt_trap(k):
    k.run("trap 'echo mine' INT")
    k.start("echo go; sleep 20; echo after")  # the signal ends the sleep, which has no trap
    k.wait_stdout("go")
    time.sleep(0.1)
    k.interrupt()
    r = k.finish()
    assert r.stdout == "go\nmine\nafter\n" and r.status == "ok"
    k.run("trap - INT")
    k.interrupt_at_go("echo go; sleep 10; echo never")


def test_hostile_settings(k):
    k.run("IFS=abc; set -f; shopt -s nocasematch failglob; read() { echo mine; }; printf() { echo mine; }; local() { :; }; eval() { echo no; }; set() { :; }")
    k.run("unset -f set; unset PATH; LC_ALL=C; set -k; set -a")
    r = k.run("x='é b a'; printf z; echo ${#x}; set -o posix")
    assert r.stdout.startswith("mine\n") and r.status == "ok"
    assert k.run("exit 3").exit_code == 3
    assert k.run("set +o posix; echo ok").stdout == "ok\n"


def test_packages(k, tmp_path):
    """New packages: the variables have them, and the code's own directories stay."""
    env = {"PATH": "/packages/tools/bin:/usr/bin:/bin:/packages/new/bin", "PYTHONPATH": "/packages/tools/lib:/packages/new", "NODE_PATH": "/packages/js/node_modules"}
    k.run("PATH=/packages/tools/bin:/usr/bin:/bin:/packages/old/bin:/mine; export PYTHONPATH=/lib\\ mine:/packages/old; readonly NODE_PATH=kept")
    k.send({"type": "packages", "paths": ["/packages/new"], "env": env})
    assert k.run("echo $PATH; echo \"$PYTHONPATH\"; echo $NODE_PATH; sh -c 'echo \"$PYTHONPATH\"'; echo ${#IFS}").stdout.splitlines() == [
        "/packages/tools/bin:/usr/bin:/bin:/mine:/packages/new/bin", "/lib mine:/packages/tools/lib:/packages/new", "kept",
        "/lib mine:/packages/tools/lib:/packages/new", "3"]
    k.send({"type": "packages", "paths": [], "env": {}})
    assert k.run("echo $PATH").stdout == "/packages/tools/bin:/usr/bin:/bin:/mine:/packages/new/bin\n"


def test_needs_no_programs(tmp_path):
    kernel = DRIVER.start(tmp_path, env={"PATH": "/nonexistent"})
    assert kernel.run("echo $PATH; x=1").stdout == "/nonexistent\n"
    assert kernel.run("set -e; false").exit_code == 1
    assert kernel.run("set +e; echo $x; exit 4").exit_code == 4
    assert kernel.run("if").error["name"] == "SyntaxError"
    assert kernel.close() == 0


def test_driver_is_clean_for_shellcheck():
    shellcheck = interpreter("shellcheck")
    if not shellcheck:
        pytest.skip("no shellcheck on this machine")
    assert os.spawnv(os.P_WAIT, shellcheck, [shellcheck, str(DRIVER.arguments[0])]) == 0
