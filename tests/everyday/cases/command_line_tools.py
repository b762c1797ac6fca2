# SPDX-License-Identifier: Apache-2.0
"""command_line_tools.py - Text tools, archives, git, compilers and projects, as agents use them in a shell."""
from case import Case, bash, http

C = r"""
cat > hello.c <<'EOF'
#include <stdio.h>
int main(int argc, char **argv) { printf("hello %s\n", argc > 1 ? argv[1] : "C"); return 3; }
EOF
gcc -O2 -Wall -o hello hello.c && ./hello agent
"""
CPP = r"""
cat > v.cpp <<'EOF'
#include <algorithm>
#include <iostream>
#include <thread>
#include <vector>
int main() { std::vector<int> v{3, 1, 2}; std::sort(v.begin(), v.end()); std::thread t([&] { for (int x : v) std::cout << x << ' '; }); t.join(); }
EOF
g++ -std=c++17 -pthread v.cpp -o v && ./v
"""
REPOSITORY = r"""
git init -q -b main repo && cd repo
git config user.email agent@example.com && git config user.name Agent
echo one > a.txt && git add a.txt && git commit -q -m first
git switch -q -c feature && echo two >> a.txt && git commit -q -am second
git switch -q main && echo b > b.txt && git add . && git commit -q -m third
"""
# A server on a port of the sandbox; the loop waits until it answers.
SERVE = r"""
mkdir -p www; echo '{"ok": 1}' > www/a.json
python3 -m http.server %d --bind 127.0.0.1 -d www >/dev/null 2>&1 &
for i in $(seq 200); do (: </dev/tcp/127.0.0.1/%d) 2>/dev/null && break; sleep 0.05; done
"""

CASES = [
    Case("grep", bash(r"""
            printf 'alpha\nbeta\nAlphabet\n' > f
            grep -in alpha f; grep -c zzz f; grep -rl beta .; grep -oP '\w+(?=bet)' f""", out="1:alpha\n3:Alphabet\n0\n./f\nAlpha\n")),
    Case("sed and awk", bash(r"""
            printf 'a,1\nb,2\n' > f; sed -i 's/a/A/; 2s/$/!/' f; cat f
            awk -F, '{s += $2} END {print NR, s}' f""", out="A,1\nb,2!\n2 3\n"), quick=True),
    Case("find with actions", bash(r"""
            mkdir -p d/e; touch d/a.log d/e/b.log d/c.txt
            find d -name '*.log' -type f | sort; find d -name '*.log' -delete; find d -type f -exec basename {} \;""", out="d/a.log\nd/e/b.log\nc.txt\n")),
    Case("sort, cut, paste, join", bash(r"""
            printf '3 c\n1 a\n2 b\n' | sort -n | cut -d' ' -f2 | paste -sd+
            printf '1 x\n' > l; printf '1 y\n' > r; join l r; seq 3 | tac | tr '\n' ,; echo abc | rev""", out="a+b+c\n1 x y\n3,2,1,cba\n"), needs="rev"),
    Case("jq", bash("""
            echo '{"items": [{"n": 1}, {"n": 41}]}' | jq '[.items[].n] | add'
            echo '{"a":"x"}' | jq -r .a""", out="42\nx\n"), needs="jq"),
    Case("tar and gzip", bash("""
            mkdir p; echo x > p/f; tar czf p.tgz p; tar tzf p.tgz
            gzip -k p/f; zcat p/f.gz; rm -r p; tar xf p.tgz; cat p/f""", out="p/\np/f\nx\nx\n"), quick=True),
    Case("zip and unzip", bash("echo x > f; zip -q a.zip f; rm f; unzip -q a.zip; cat f", out="x\n"), needs=("zip", "unzip")),
    Case("xz and bzip2", bash("echo data > f; xz -k f; xzcat f.xz; bzip2 -k f; bzcat f.bz2", out="data\ndata\n"), needs=("xz", "bzip2")),
    Case("checksums and base64", bash("""
            printf x | sha256sum | cut -c1-8; printf x | md5sum | cut -c1-8
            printf hi | base64; echo aGk= | base64 -d""", out="2d711642\n9dd4e461\naGk=\nhi")),
    Case("diff and patch", bash(r"printf 'a\nb\n' > o; printf 'a\nc\n' > n; diff -u o n > d.patch; patch -s o d.patch; cat o", out="a\nc\n"), needs="patch"),
    Case("links, modes, times", bash("""
            echo x > f; ln -s f l; ln f h; chmod 640 f; stat -c '%a %h %U' f; readlink l
            touch -d 2024-01-02 f; date -r f +%F; [ f -ef h ] && echo same""", out="640 2 agent\nf\n2024-01-02\nsame\n")),
    Case("split, head, tail, nl", bash(r"""
            seq 10 > s; split -l 4 s part-; ls part-* | wc -l
            tail -n +9 s | nl -ba | tr -s ' \t' ' '; head -c 3 s""", out="3\n 1 9\n 2 10\n1\n2")),
    Case("column and fold", bash(r"printf 'a b\nccc d\n' | column -t; echo abcdef | fold -w 3", out="a    b\nccc  d\nabc\ndef\n"), needs="column"),
    Case("bc", bash("echo 'scale=3; 22/7' | bc", out="3.142\n"), needs="bc"),
    Case("xxd", bash(r"printf 'PK\003\004' | xxd -p", out="504b0304\n"), needs="xxd"),
    Case("file", bash("echo text > t; file t", shows="ASCII text"), needs="file"),
    Case("curl against an own server", bash(SERVE % (8065, 8065)), bash(r"""
            curl -s http://127.0.0.1:8065/a.json
            curl -s -o /dev/null -w '%{http_code}\n' http://localhost:8065/none""", out='{"ok": 1}\n404\n'), needs="curl"),
    Case("wget against an own server", bash(SERVE % (8064, 8064)), bash("wget -q -O got http://127.0.0.1:8064/a.json; cat got", out='{"ok": 1}\n'),
         needs="wget"),
    Case("curl without network explains", bash("curl -sS https://example.com", code=6, err="example.com", hint="egress"), needs="curl"),
    Case("rsync", bash("mkdir -p a/b; echo 1 > a/b/c; rsync -a a/ z/; cat z/b/c", out="1\n"), needs="rsync"),
    Case("python -m http.server through the daemon", bash(SERVE % (8063, 8063)), http("POST", "/ports/8063", http=201),
         http("GET", "/ports/8063/a.json", bytes=b'{"ok": 1}\n'), quick=True),
    Case("awk report", bash(r"""
        printf 'eu 3\nus 4\neu 5\n' | awk '{t[$1] += $2} END {for (k in t) printf "%-4s%3d\n", k, t[k]}' | sort""", out="eu    8\nus    4\n")),

    # ---- git
    Case("git commit, log and status", bash(REPOSITORY),
         bash("git log --format=%s; git status --short; git branch --list", out="third\nfirst\n  feature\n* main\n"), needs="git", quick=True),
    Case("git merge and diff", bash(REPOSITORY),
         bash("git merge -q --no-edit feature && cat a.txt && git diff HEAD~1 --stat | tail -1", shows=("one\ntwo\n", "1 file changed")), needs="git"),
    Case("git conflict", bash(REPOSITORY), bash("echo other >> a.txt; git commit -qam other; git merge feature", code=1, shows="CONFLICT"),
         bash("git diff --name-only --diff-filter=U; git merge --abort; git status --short", out="a.txt\n"), needs="git"),
    Case("git without an identity explains",
         bash("git init -q r; cd r; echo x > f; git add f; git commit -m x", code=128, err="git config --global user.email"), needs="git"),
    Case("git config global", bash("""
            git config --global user.name A; git config --global user.email a@b.c; git config --global --get user.name
            git init -q x; cd x; git commit -q --allow-empty -m e && git log --format=%an""", out="A\nA\n"), needs="git"),
    Case("git clone, rebase, tag, blame", bash(REPOSITORY), bash("""
            cd ..; git clone -q repo copy; cd copy; git config user.email a@b.c; git config user.name A
            git rebase -q origin/feature; git tag v1; git describe --tags; git blame -s a.txt | wc -l""", out="v1\n2\n"), needs="git"),
    Case("git apply and worktree", bash(REPOSITORY), bash("""
            git diff main feature -- a.txt > p.patch; git apply p.patch; tail -1 a.txt
            git worktree add -q ../wt feature; wc -l < ../wt/a.txt""", out="two\n2\n"), needs="git"),

    # ---- compilers and projects
    Case("gcc", bash(C, out="hello agent\n", code=3), needs="gcc"),
    Case("gcc error shows the line", bash("echo 'int main(void) { return x; }' > b.c; gcc b.c", code=1, err=("b.c:1", "error", "undeclared")), needs="gcc"),
    Case("g++ with threads", bash(CPP, out="1 2 3 "), needs="g++"),
    Case("make", bash(r"""
            printf 'all: out\nout: in\n\ttr a-z A-Z < in > out\n.PHONY: all\n' > Makefile
            echo abc > in; make -s; cat out; make -q && echo fresh; make nothing""", code=2, out="ABC\nfresh\n", err="No rule to make target 'nothing'"),
         needs="make"),
    Case("cmake", bash(r"""
            printf 'cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_executable(x x.c)\n' > CMakeLists.txt
            echo 'int main(void) { return 0; }' > x.c
            cmake -S . -B build >log 2>&1 && cmake --build build >>log 2>&1 && ./build/x && echo built || tail log""", out="built\n"),
         needs=("cmake", "gcc", "make")),
    Case("go", bash(r"""
        mkdir h && cd h && printf 'package main\nimport "fmt"\nfunc main() { fmt.Println("go", 6*7) }\n' > main.go && go run main.go""", out="go 42\n"),
         needs="go"),
    Case("rustc", bash("echo 'fn main() { println!(\"rust {}\", 6 * 7); }' > m.rs; rustc m.rs && ./m", out="rust 42\n"), needs="rustc"),
    Case("perl", bash("perl -ne 'print uc if /b/' <<< abc; perl -MPOSIX -e 'print floor(3.7)'", out="ABC\n3"), needs="perl"),
    Case("ruby", bash("ruby -e 'puts [1,2,3].sum'", out="6\n"), needs="ruby"),
    Case("php", bash("php -r 'echo json_encode([1, 2]);'", out="[1,2]"), needs="php"),
    Case("lua", bash("lua -e 'print(6 * 7)'", out="42\n"), needs="lua"),

    # ---- python and node projects
    Case("python venv", bash("""
            python3 -m venv --without-pip v && . v/bin/activate && python -c 'import sys; print(sys.prefix)'
            command -v python; deactivate""", out="/workspace/v\n/workspace/v/bin/python\n")),
    Case("python unittest discovery", bash(r"""
            mkdir t; printf 'import unittest\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(2, 1 + 1)\n' > t/test_a.py
            python3 -m unittest discover -s t""", err=("Ran 1 test", "OK"))),
    Case("python json.tool and py_compile", bash("""
            echo '{"a":1}' | python3 -m json.tool --compact
            echo 'x = 1' > m.py; python3 -m py_compile m.py && ls __pycache__ | wc -l""", out='{"a":1}\n1\n')),
    Case("python command without a three", bash("python --version; python -c 'print(6*7)'", shows=("Python 3", "42"))),
    Case("pip version and list", bash("python3 -m pip --version; pip list", shows=("pip ", "Version")), needs="pip"),
    Case("pip install in the shell", bash("""
            pip install -q python-slugify
            python3 -c 'import slugify; print(slugify.slugify("Hello World"))'""", out="hello-world\n"), index="python", needs="pip"),
    Case("pip install -r", bash(r"""
            printf 'toolz\n# comment\n' > requirements.txt; python3 -m pip install -q -r requirements.txt
            python3 -c 'import toolz; print(toolz.first([7]))'""", out="7\n"), index="python", needs="pip"),
    Case("npm init and install", bash("""
            mkdir app && cd app && npm init -y >/dev/null && npm install --silent left-pad >/dev/null
            node -e 'console.log(require("left-pad")(7, 3, 0))'""", out="007\n"), index="javascript", needs="npm"),
    Case("npx of a package", bash("npx -y cowsay hi", shows="< hi >"), index="javascript", needs="npx"),
    Case("npm run script", bash("""
            mkdir app && cd app && echo '{"scripts": {"hi": "echo from script"}}' > package.json
            npm run -s hi""", out="from script\n"), needs="npm"),
    Case("apt-get explains", bash("apt-get install -y cowsay", code=1, err="an image that has"), needs="apt-get"),
]
