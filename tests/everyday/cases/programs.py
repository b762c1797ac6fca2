# SPDX-License-Identifier: Apache-2.0
"""programs.py - Larger programs that agents start: compilers of other languages, databases, browsers, office, media. Skipped where the image lacks them."""
from case import Case, bash, program, python

JAVA = r"""
cat > Hello.java <<'END'
import java.util.List;
public class Hello {
    public static void main(String[] a) throws Exception {
        Thread t = new Thread(() -> System.out.println("thread"));
        t.start(); t.join();
        System.out.println("java " + List.of(1, 2, 3).stream().mapToInt(x -> x).sum());
    }
}
END
"""
# PostgreSQL refuses to run as root; in a sandbox nothing does.
POSTGRES = r"""
export PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
initdb -D db -U agent --auth=trust >init.log 2>&1 || { tail init.log; exit 1; }
pg_ctl -D db -o "-k /tmp -c listen_addresses=127.0.0.1 -p 5433" -l pg.log -w start >start.log 2>&1 || { tail start.log pg.log; exit 1; }
psql -h 127.0.0.1 -p 5433 -U agent -d postgres -Atc "create table t(n int); insert into t select generate_series(1, 10); select sum(n) from t"
pg_ctl -D db -m fast stop >/dev/null
"""
REDIS = r"""
redis-server --port 6390 --daemonize yes --dir /tmp >/dev/null
for i in $(seq 100); do redis-cli -p 6390 ping >/dev/null 2>&1 && break; sleep 0.05; done
redis-cli -p 6390 set k v; redis-cli -p 6390 get k; redis-cli -p 6390 shutdown nosave
"""

CASES = [
    # ---- languages
    Case("java compiles and runs", bash(JAVA), bash("javac Hello.java && java Hello", out="thread\njava 6\n"),
         needs=("javac", "java"), spec={"memory_mib": 1024}),
    Case("java in the default memory", bash(JAVA), bash("java Hello.java", out="thread\njava 6\n"), needs="java"),
    Case("java version", bash("java -version 2>&1 | head -1", shows="version"), needs="java"),
    Case("maven version", bash("mvn -v", shows="Apache Maven"), needs="mvn"),
    Case("dotnet version", bash("dotnet --version"), needs="dotnet"),
    Case("octave", bash("octave --eval 'disp(6 * 7)'", shows="42"), needs="octave"),
    Case("gfortran", bash("printf 'program p\\n print *, 42\\nend program\\n' > p.f90; gfortran p.f90 -o p && ./p", shows="42"), needs="gfortran"),

    # ---- databases
    Case("sqlite3 command",
         bash("sqlite3 a.db 'create table t(n); insert into t values (40), (2); select sum(n) from t'; sqlite3 -json a.db 'select n from t limit 1'", out='42\n[{"n":40}]\n'),
         needs="sqlite3", quick=True),
    Case("postgresql server and psql", bash(POSTGRES, shows="55"), needs="psql", spec={"memory_mib": 1024}),
    Case("redis server and client", bash(REDIS, shows=("OK", "v")), needs=("redis-server", "redis-cli")),
    Case("duckdb command", bash("duckdb -csv -c 'select 42 as n'", shows="42"), needs="duckdb"),
    Case("mysql client version", bash("mysql --version"), needs="mysql"),

    # ---- security and network tools
    Case("openssl digest, key and certificate", bash("""
            printf x | openssl dgst -sha256 | grep -o 2d711642
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout k.pem -out c.pem -days 1 -subj /CN=test 2>/dev/null
            openssl x509 -in c.pem -noout -subject; openssl rand -hex 4 | wc -c""", shows="2d711642\n", matches=r"CN ?= ?test\n9\n"), needs="openssl"),
    Case("openssl server with curl", bash("""
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout k.pem -out c.pem -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
            openssl s_server -quiet -accept 8443 -cert c.pem -key k.pem -www >/dev/null 2>&1 &
            for i in $(seq 100); do (: </dev/tcp/127.0.0.1/8443) 2>/dev/null && break; sleep 0.05; done
            curl -s --cacert c.pem https://localhost:8443/ | grep -c 'TLSv1'; kill %1""", matches=r"[1-9]"), needs=("openssl", "curl")),
    Case("ssh-keygen", bash("ssh-keygen -q -t ed25519 -N '' -f k && cut -d' ' -f1 k.pub", out="ssh-ed25519\n"), needs="ssh-keygen"),
    Case("gpg symmetric",
         bash("echo secret > s; gpg --batch --quiet --passphrase p --symmetric s && gpg --batch --quiet --passphrase p -d s.gpg", shows="secret"), needs="gpg"),
    Case("nginx", bash("""
            mkdir -p n/logs n/html; echo nginx works > n/html/index.html
            echo 'daemon off; pid n.pid; error_log stderr; events {} http { access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5; server { listen 127.0.0.1:8062; root html; } }' > n/c.conf
            nginx -p $PWD/n -c c.conf >/dev/null 2>&1 &
            for i in $(seq 100); do curl -sf http://127.0.0.1:8062/ && break; sleep 0.05; done; kill %1""", out="nginx works\n"), needs=("nginx", "curl")),

    # ---- terminals and debuggers
    Case("tmux", bash("""
            tmux new-session -d -s w 'echo from tmux; sleep 30'; sleep 0.5
            tmux capture-pane -p -t w | head -1; tmux kill-server""", shows="from tmux"), needs="tmux"),
    Case("script and a terminal", bash("script -qec 'tty; test -t 1 && echo terminal' /dev/null", shows=("/dev/pts/", "terminal")), needs="script"),
    Case("gdb backtrace", bash("""
            echo 'int g(int *p) { return *p; } int main(void) { return g(0); }' > c.c; gcc -g c.c -o c
            gdb -batch -ex run -ex bt ./c 2>&1 | grep -E '^#' """, shows=("#0", "g (p=0x0)", "main")), needs=("gdb", "gcc")),
    Case("strace", bash("strace -c true 2>&1 | head -1", shows="time"), needs="strace"),
    Case("vim in batch mode", bash("printf 'one\\n' > f; vim -es -c '%s/one/two/' -c wq f; cat f", out="two\n"), needs="vim"),
    Case("less and man do not wait for a key", bash("seq 3 | less", out="1\n2\n3\n"), needs="less"),
    Case("core of a crash", bash("echo 'int main(void) { *(volatile int *)0 = 1; }' > c.c; gcc c.c -o c; ./c; echo $?", shows="139"), needs="gcc"),

    # ---- documents, pictures, sound
    Case("ffmpeg makes a video",
         bash("ffmpeg -loglevel error -f lavfi -i testsrc=size=64x64:rate=5:duration=1 v.mp4 && ffprobe -loglevel error -show_entries stream=width -of csv=p=0 v.mp4", out="64\n"),
         needs=("ffmpeg", "ffprobe")),
    Case("imagemagick", bash("convert -size 8x8 xc:red r.png && identify -format '%wx%h' r.png", out="8x8"), needs=("convert", "identify")),
    Case("graphviz", bash("echo 'digraph { a -> b }' | dot -Tsvg | grep -c '<svg'", out="1\n"), needs="dot"),
    Case("pandoc", bash("echo '# Hi' | pandoc -t html", shows="Hi</h1>"), needs="pandoc"),
    Case("pdflatex",
         bash(r"echo '\documentclass{article}\begin{document}Hi\end{document}' > a.tex; pdflatex -interaction=batchmode a.tex >/dev/null; ls a.pdf", out="a.pdf\n"),
         needs="pdflatex"),
    Case("pdftotext", bash("pdftotext -v 2>&1 | head -1", shows="pdftotext"), needs="pdftotext"),
    Case("tesseract", bash("tesseract --version 2>&1 | head -1", shows="tesseract"), needs="tesseract"),
    Case("libreoffice converts", bash("printf 'a,b\\n1,2\\n' > t.csv; soffice --headless --convert-to pdf t.csv >/dev/null 2>&1; head -c 4 t.pdf", out="%PDF"),
         needs="soffice", spec={"memory_mib": 2048}),
    Case("chromium makes a screenshot",
         bash("echo '<h1>Hi</h1>' > p.html; chromium --headless --no-sandbox --disable-gpu --screenshot=s.png file://$PWD/p.html >log 2>&1; head -c 4 s.png | tail -c 3", out="PNG"),
         needs="chromium", spec={"memory_mib": 2048, "pids": 512}),

    # ---- the rest of a system
    Case("locale", bash("locale 2>/dev/null | grep -c UTF-8", matches=r"[1-9]"), needs="locale"),
    Case("etc has users and hosts",
         bash("getent passwd agent | cut -d: -f6; getent hosts localhost | grep -c localhost; cat /etc/os-release | grep -c ^ID=", out="/home/agent\n1\n1\n"),
         needs="getent"),
    Case("systemctl explains", bash("systemctl status", code=1, err="systemd"), needs="systemctl"),
    Case("uv makes an environment", bash("uv --version", shows="uv "), needs="uv"),
    Case("proc and sys",
         bash("cat /proc/self/comm; test -r /proc/meminfo && grep -c MemTotal /proc/meminfo; test -r /proc/cpuinfo && echo cpu", out="cat\n1\ncpu\n"),
         quick=True),
    Case("memory that programs are told", python("""
            total = int(open('/proc/meminfo').readline().split()[1]) >> 10
            print(total <= 512)""", out="True\n")),
    Case("crontab, sudo and su are no way out", bash("sudo -n id 2>/dev/null || su -c id </dev/null 2>/dev/null || echo refused", out="refused\n")),
    Case("yes, seq, shuf, watch-like loops", bash("yes | head -2 | wc -l; seq 5 | shuf --random-source=<(yes) | sort | tail -1", out="2\n5\n")),
    Case("program from an uploaded script", bash("printf '#!/usr/bin/env python3\\nprint(\"direct\")\\n' > t; chmod +x t; ./t", out="direct\n"),
         program("/workspace/t", out="direct\n")),
]
