# SPDX-License-Identifier: Apache-2.0
"""bash.py - The shell that a sandbox keeps: state, syntax, exit codes, jobs; and scripts in a shell of their own."""
from case import Case, bash, program, python, shell

CASES = [
    Case("echo and exit code", bash("echo out; echo err >&2; (exit 3)", out="out\n", err="err\n", code=3), bash("echo $?", out="3\n"), quick=True),
    Case("variables, functions and directory stay", bash("x=41; f() { echo $((x + $1)); }; mkdir -p sub; cd sub; export E=exported"),
         bash("f 1; pwd; sh -c 'echo $E'", out="42\n/workspace/sub\nexported\n"), quick=True),
    Case("aliases and options stay", bash("alias ll='ls -1'; shopt -s nullglob; set -o pipefail; touch a b"),
         bash("ll; false | true; echo $?; echo *.none", out="a\nb\n1\n\n")),
    Case("pipes", bash("printf '%s\\n' b a b c | sort | uniq -c | sort -rn | head -1 | tr -s ' '", out=" 2 b\n"), quick=True),
    Case("arrays and maps",
         bash("a=(x 'y z'); a+=(w); declare -A m=([k]=v); echo ${#a[@]} \"${a[1]}\" ${m[k]} ${!m[@]}; for i in \"${!a[@]}\"; do echo -n $i; done", out="3 y z v k\n012")),
    Case("here documents", bash("""
            name=World
            cat <<EOF > t.txt
            Hello $name
            $(echo sub)
            EOF
            cat <<'EOF' >> t.txt
            $literal
            EOF
            cat t.txt; cat <<<word""", out="Hello World\nsub\n$literal\nword\n"), quick=True),
    Case("loops and tests",
         bash("for i in {1..3}; do [[ $i == 2 ]] && continue; echo -n \"$i \"; done; n=0; while ((n < 3)); do ((n++)); done; echo $n; case abc in a*) echo starts;; esac", out="1 3 3\nstarts\n")),
    Case("parameter expansion",
         bash("f=/a/b.tar.gz; echo ${f##*/} ${f%.gz} ${f/b/c} ${#f} ${none:-default} ${f^^}", out="b.tar.gz /a/b.tar /a/c.tar.gz 11 default /A/B.TAR.GZ\n")),
    Case("arithmetic and printf", bash("printf '%03d %.2f %s\\n' 7 3.14159 \"$((2**10 % 1000))\"", out="007 3.14 24\n")),
    Case("process substitution", bash("diff <(printf 'a\\nb\\n') <(printf 'a\\nc\\n'); comm -12 <(echo x) <(echo x)", out="2c2\n< b\n---\n> c\nx\n")),
    Case("command substitution and quoting", bash("n=$(printf '%s\\n' 1 2 3 | wc -l); echo \"lines: $n\" '$n' $(echo a   b)", out="lines: 3 $n a b\n")),
    Case("set -e stops, and the shell survives", bash("""
            keep=1
            set -e
            false
            echo never""", code=1, lacks="never"), bash("set +e; echo $keep", out="1\n"), quick=True),
    Case("set -u names the variable", bash("set -u; echo $undefined_name", code=127, err="undefined_name: unbound variable"),
         bash("set +u; echo on", out="on\n")),
    Case("set -x traces", bash("set -x; echo hi; set +x", out="hi\n", err="+ echo hi")),
    Case("exit keeps the sandbox", bash("x=1; exit 4", code=4), bash("echo ${x:-lost}; echo here", shows="here")),
    Case("command not found", bash("no_such_command --flag", code=127, err="no_such_command: command not found"), quick=True),
    Case("syntax error", bash("if true; then echo a", code=2, status="error", err="syntax error"), bash("echo on", out="on\n")),
    Case("permission denied and missing file", bash("cat /nowhere; cat /etc/shadow", code=1, err="No such file or directory")),
    Case("traps", bash("trap 'echo caught' USR1; kill -USR1 $$; trap 'echo bye' EXIT; exit 0", shows=("caught", "bye"))),
    Case("background jobs and wait", bash("sleep 0.1 & p=$!; jobs | grep -c sleep; wait $p; echo $?", out="1\n0\n")),
    Case("job goes on between calls", bash("(sleep 0.3; echo done > flag) & echo started", out="started\n"), bash("wait; cat flag", out="done\n")),
    Case("nohup server and curl", bash("""
            nohup python3 -m http.server 8066 --bind 127.0.0.1 >server.log 2>&1 &
            for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:8066/ && break; sleep 0.1; done"""),
         bash("echo hi > page.txt; curl -s http://127.0.0.1:8066/page.txt; kill %1", out="hi\n"), needs="curl"),
    Case("timeout program", bash("timeout 0.2 sleep 10; echo $?", out="124\n")),
    Case("xargs and parallel work", bash("seq 6 | xargs -P 3 -I{} sh -c 'echo {}' | sort | tr '\\n' ' '", out="1 2 3 4 5 6 ")),
    Case("read lines of a file",
         bash("printf 'a 1\\nb 2\\n' > f; while read -r k v; do echo \"$v=$k\"; done < f; mapfile -t rows < f; echo ${#rows[@]}", out="1=a\n2=b\n2\n")),
    Case("read without input does not hang", bash("read -r -p 'name? ' x; echo \"[$x]\"; sudo -n true 2>/dev/null || echo no sudo", shows=("[]", "no sudo"))),
    Case("subshells and groups", bash("(cd /tmp; x=1); echo ${x:-unset} $PWD; { echo a; echo b; } > g; wc -l < g", out="unset /workspace\n2\n")),
    Case("select by glob", bash("""
            touch a1.txt a2.txt b.md; shopt -s extglob globstar
            echo *.txt; echo !(*.txt)
            mkdir -p d/e; touch d/e/x.py; echo **/*.py""", out="a1.txt a2.txt\nb.md\nd/e/x.py\n")),
    Case("unicode", bash("s='héllo 漢字'; echo ${#s}; echo \"$s\" | wc -m; echo \"$s\" > 'naïve ☃.txt'; ls", out="8\n9\nnaïve ☃.txt\n")),
    Case("dates", bash("date -u -d '2024-02-28 +2 days' +%F; date -u -d @0 +%Y", out="2024-03-01\n1970\n")),
    Case("environment of the shell",
         bash("echo $HOME $USER $PWD; id -un; whoami; [ -t 0 ] || echo no terminal", out="/home/agent agent /workspace\nagent\nagent\nno terminal\n"),
         quick=True),
    Case("heredoc to python", bash("""
            python3 - <<'EOF'
            import sys
            print('py', 6 * 7)
            EOF
            python3 -c 'print(1)'""", out="py 42\n1\n")),
    Case("script file with a shebang",
         bash("printf '#!/usr/bin/env bash\\nset -euo pipefail\\necho \"args: $*\"\\n' > run.sh; chmod +x run.sh; ./run.sh a 'b c'", out="args: a b c\n"),
         quick=True),
    Case("getopts",
         bash("f() { local OPTIND o; while getopts 'n:v' o; do case $o in n) echo n=$OPTARG;; v) echo verbose;; esac; done; }; f -v -n 5", out="verbose\nn=5\n")),
    Case("source a file", bash("echo 'A=from_env' > .env; source .env; set -a; . ./.env; set +a; sh -c 'echo $A'", out="from_env\n")),
    Case("large output is cut", bash("seq 100000", truncated=True, shows="1\n2\n3\n")),
    Case("output without newline and binary bytes", bash("printf 'no newline'", out="no newline"),
         bash("head -c 3 /dev/zero | od -An -tx1", out=" 00 00 00\n")),
    Case("a shell script of its own", shell("cd /tmp; x=1; echo $0 $x; exit 7", shows="1", code=7), shell("echo ${x:-fresh} $PWD", out="fresh /workspace\n"),
         quick=True),
    Case("a program without a shell", program("printf", "%s|", "$HOME", "a b", "*", out="$HOME|a b|*|"), quick=True),
    Case("a program that is not there", program("no-such-program", code=127, hint="no-such-program")),
    Case("program with input, environment and directory",
         program("sh", "-c", "cat; echo $A $PWD", stdin="in\n", env={"A": "1"}, cwd="/tmp", out="in\n1 /tmp\n")),
    Case("ps and kill", bash("sleep 100 & p=$!; kill -0 $p && echo alive; kill $p; wait $p; echo $?", out="alive\n143\n")),
    Case("ps shows the processes", bash("ps aux | grep -c '[b]ash'", matches=r"[1-9]"), needs="ps"),
    Case("top, free, df, uptime", bash("top -bn1 | head -1; free -m | head -1; df -h /workspace | tail -1; nproc", shows=("top", "total")),
         needs=("ps", "top", "free")),
    Case("mktemp, dev files and devices",
         bash("t=$(mktemp); d=$(mktemp -d); echo x > $t; test -d $d && cat $t; echo y > /dev/null; head -c 4 /dev/urandom | wc -c; echo z > /dev/stderr", out="x\n4\n", err="z")),
    Case("hostname and kernel", bash("hostname; uname -s", shows="Linux"), needs="hostname"),
    Case("python sees what bash installed in the environment", bash("export TOKEN=abc; echo $TOKEN > token"),
         python("open('token').read().strip()", result="'abc'")),
]
