# SPDX-License-Identifier: Apache-2.0
"""test_programs.py - Programs of the machine, in sandboxes of the image `host`: they start, and give the result that a user expects.

A table: a script for the shell of a sandbox, what its output has to contain, and the programs that it needs. A program that is
not installed here is a skip that says so. `make test` leaves the large ones (slow) to `make serve-test`.
"""
import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from box_lib import Box
from egress_lib import Resolver, Web, certificate
from serve_lib import Daemon

NODE_MODULES = [Path(d) for d in ("/usr/lib/node_modules", "/usr/local/lib/node_modules")]

C = """\
cat >a.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	char *lost = argv[0];
	int answer = 42;
	for (int i = 0; argc == 1 && i < 10; i++)
		lost = malloc(42);
	printf("%p\\n", (void *)lost);
	return answer - 42;
}
END
"""

CHEAP = {
    "openssl": ("openssl", """\
        openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 1 -subj /CN=cell 2>/dev/null
        openssl s_server -key key -cert cert -port 4433 -www >/dev/null 2>&1 &
        for i in $(seq 50); do
            echo | openssl s_client -connect localhost:4433 -CAfile cert -verify_return_error 2>&1 | grep 'Verify return code' && break
            sleep 0.1
        done; kill %1""", "Verify return code: 0 (ok)"),
    "names of ports, protocols and types": ("python3", """\
        python3 -c "import socket, mimetypes; print(socket.getservbyname('postgresql'), socket.getprotobyname('udp'))"
        date +%Z""", "5432 17\nUTC"),
    "tmux": ("tmux", """\
        tmux -f /dev/null new-session -d -s t -x 80 -y 24 sh
        tmux send-keys -t t 'echo $((6 * 7)) answers' Enter
        for i in $(seq 50); do tmux capture-pane -p -t t | grep '^42 answers' && break; sleep 0.1; done
        tmux kill-server""", "42 answers"),
    "gdb on its own child": ("gdb gcc", C + """\
        gcc -g -O0 a.c
        gdb -batch -ex 'break 9' -ex run -ex 'print answer' -ex 'set var answer = 49' -ex continue ./a.out 2>&1""",
                             "$1 = 42|exited with code 07"),
    "strace": ("strace", "strace -f -e trace=openat -o log sh -c 'cat /etc/hostname'; grep hostname log", 'openat(AT_FDCWD, "/etc/hostname", O_RDONLY)'),
    "AddressSanitizer": ("gcc", C + """\
        gcc -g -O0 -fsanitize=address a.c
        ASAN_OPTIONS=detect_leaks=0 ./a.out && echo clean""", "clean"),
    "the set-group-id bit of directories": ("tar", """\
        mkdir -p d/e; chmod g+s d; chmod 2775 d/e; stat -c %a d
        tar cf t.tar d; mkdir out; tar xpf t.tar -C out; cp -a d copy
        python3 -c "import shutil; shutil.copytree('d', 'tree')"
        stat -c %a out/d/e copy/e tree/e; chmod u+s d || echo refused""", "2755\n2775\n2775\n2775\nrefused"),
    "git in a shared repository": ("git", "git init -q --shared=group r && git -C r config core.sharedRepository && stat -c %a r/.git", "1\n2775"),
    "R draws": ("Rscript", """\
        Rscript -e 'png("p.png", type = "cairo"); plot(1:10, main = "title"); invisible(dev.off()); cat(file.size("p.png") > 2000, "\\n")'
        head -c 4 p.png | tail -c 3""", "TRUE|PNG"),
    "java": ("javac", """\
        echo 'class A { public static void main(String[] a) throws Exception { System.out.println(java.net.NetworkInterface.getByName("lo").isUp());
            System.out.println(javax.net.ssl.SSLContext.getDefault().getProtocol()); } }' >A.java
        javac A.java && java A""", "true\nDefault"),
}

SLOW = {
    "Maven": ("mvn", "mvn --version", "Apache Maven"),
    "jshell": ("jshell", "echo 'System.out.println(6 * 7)' | jshell -s -", "42"),
    "PostgreSQL": ("psql initdb", """\
        bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
        $bin/initdb -D db -A trust >/dev/null && $bin/pg_ctl -D db -w -l log start >/dev/null || cat log
        psql -d postgres -Atc "create table t as select generate_series(1, 9) n; select sum(n) from t"
        $bin/pg_ctl -D db -m fast stop >/dev/null""", "45"),
    "Redis": ("redis-server redis-cli", """\
        redis-server --port 7777 --daemonize yes --save '' >/dev/null
        for i in $(seq 50); do redis-cli -p 7777 ping 2>/dev/null | grep PONG && break; sleep 0.1; done
        redis-cli -p 7777 incrby n 42; redis-cli -p 7777 shutdown nosave""", "PONG\n42"),
    "ffmpeg": ("ffmpeg ffprobe", """\
        ffmpeg -loglevel error -f lavfi -i testsrc=duration=1:size=160x120:rate=10 -y v.mp4
        ffprobe -loglevel error -show_entries stream=nb_frames,width -of csv=p=0 v.mp4""", "160,10"),
    "LibreOffice": ("soffice", """\
        printf 'a,b\\n1,2\\n' >t.csv; soffice --headless --convert-to pdf t.csv >/dev/null 2>&1; head -c 5 t.pdf""", "%PDF-"),
    "Chromium": ("chromium", """\
        echo '<body style="background:red"><script>document.title = 6 * 7; document.body.append(6 * 7)</script>' >p.html
        chromium --headless --disable-gpu --dump-dom file:///workspace/p.html 2>err || tail err
        chromium --headless --disable-gpu --window-size=200,100 --screenshot=s.png file:///workspace/p.html 2>>err; head -c 4 s.png | tail -c 3; echo
        chromium --headless --disable-gpu --print-to-pdf=s.pdf file:///workspace/p.html 2>>err; head -c 5 s.pdf""",
                 "<title>42</title>|PNG|%PDF-"),
    "Playwright": ("chromium node playwright-core", """\
        cat >p.js <<'END'
        const { chromium } = require('playwright-core');
        (async () => {
            const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });
            const page = await browser.newPage();
            await page.setContent('<button onclick="this.textContent = 6 * 7">press</button>');
            await page.click('button');
            console.log('button', await page.textContent('button'), (await page.screenshot()).length > 500);
            await browser.close();
        })();
        END
        NODE_PATH=/usr/lib/node_modules:/usr/local/lib/node_modules node p.js""", "button 42 true"),
}


def missing(needs):
    """The programs that are not here. Debian keeps those of PostgreSQL's server out of PATH."""
    def here(name):
        return shutil.which(name) or list(Path("/usr/lib/postgresql").glob("*/bin/" + name)) or any((d / name).exists() for d in NODE_MODULES)
    return [n for n in needs.split() if not here(n)]


def rows():
    for table, marks in ((CHEAP, []), (SLOW, [pytest.mark.slow])):
        for name, row in table.items():
            yield pytest.param(*row, id=name, marks=marks)


@pytest.mark.parametrize("needs, script, expected", rows())
def test_program(daemon, needs, script, expected):
    absent = missing(needs)
    if absent:
        pytest.skip("not installed here: " + ", ".join(absent))
    with Box(daemon, memory_mib=2048, disk_mib=1024, pids=256) as box:
        r = box.shell(textwrap.dedent(script), timeout=110)
        for part in expected.split("|"):
            assert part in r["stdout"], r


@pytest.mark.skipif(not shutil.which("git"), reason="not installed here: git")
def test_git_over_https(tmp_path):
    """Without egress a clone fails at once and says why; with it, it works, and the certificate is checked."""
    def git(*args):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *args], check=True, cwd=tmp_path / "work", capture_output=True,
                       env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})
    (tmp_path / "work").mkdir()
    (tmp_path / "work/file").write_text("from afar\n")
    for line in ("init -q -b main", "add file", "commit -q -m first", "clone -q --bare . ../web/r.git"):
        git(*line.split())
    subprocess.run(["git", "-C", tmp_path / "web/r.git", "update-server-info"], check=True)
    tls = certificate(tmp_path, "git.test")
    web, dns = Web(tls=tls, directory=str(tmp_path / "web")), Resolver({"git.test": ["127.0.0.1"]})
    clone = "time git clone -q https://git.test:%d/r.git r 2>&1 && cat r/file" % web.port
    try:
        with Daemon(tmp_path, "--pool", "1", "--egress-private", "127.0.0.0/8", "--egress-dns", dns.address) as d:
            with Box(d) as box:
                r = box.shell(clone, timeout=20)
                assert r["exit_code"] == 128 and "Could not resolve host" in r["stdout"] and r["status"] == "error", r
            with Box(d, egress=["git.test:%d" % web.port]) as box:
                r = box.shell(clone, timeout=20)
                assert r["exit_code"] == 128 and "certificate" in r["stdout"], r
                r = box.shell("cat >ca.pem <<'END'\n%sEND\nexport GIT_SSL_CAINFO=$PWD/ca.pem\n%s" % (Path(tls[0]).read_text(), clone), timeout=20)
                assert r["exit_code"] == 0 and "from afar" in r["stdout"], r
    finally:
        web.close()
        dns.close()
