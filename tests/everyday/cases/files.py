# SPDX-License-Identifier: Apache-2.0
"""files.py - Files of a sandbox over the API: what goes in is what the code sees, and what the code writes comes out."""
import io
import tarfile

from case import Case, bash, http, javascript, python, shell


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


ALL_BYTES = bytes(range(256)) * 40
BIG = b"0123456789abcdef" * (20 << 16)  # 20 MiB

CASES = [
    Case("upload and use", http("PUT", "/files?path=in.txt", body=b"three lines\nof\ntext\n", http=201), python("len(open('in.txt').readlines())", result="3"),
         quick=True),
    Case("write and download", python("open('out.bin', 'wb').write(bytes(range(256)) * 40)"), http("GET", "/files?path=out.bin", bytes=ALL_BYTES), quick=True),
    Case("bytes arrive unchanged", http("PUT", "/files?path=b", body=ALL_BYTES, http=201), bash("wc -c < b", out="10240\n"),
         http("GET", "/files?path=b", bytes=ALL_BYTES)),
    Case("names with unicode and spaces", http("PUT", "/files?path=%D0%BC%D0%BE%D0%B9%20%E2%98%83.txt", body=b"x", http=201), bash("ls", out="мой ☃.txt\n"),
         http("GET", "/files?path=%D0%BC%D0%BE%D0%B9%20%E2%98%83.txt", bytes=b"x")),
    Case("upload into new directories", http("PUT", "/files?path=a/b/c.txt&parents=true", body=b"deep", http=201), bash("cat a/b/c.txt", out="deep")),
    Case("upload without the directory explains", http("PUT", "/files?path=a/b/c.txt", body=b"x", http=404, error="no_such_file")),
    Case("missing file explains", http("GET", "/files?path=none.txt", http=404, error="no_such_file"), quick=True),
    Case("list a directory", shell("mkdir -p d/e; echo 12345 > d/f; touch d/e/g"),
         http("GET", "/files/list?path=d", shows=('"name":"e"', '"name":"f"', '"size":6')), http("GET", "/files/list?path=d&recursive=true", shows='"e/g"')),
    Case("stat a file", shell("echo hello > f; chmod 640 f"), http("GET", "/files/stat?path=f", json={"type": "file", "size": 6, "mode": "640"})),
    Case("overwrite, move, delete", http("PUT", "/files?path=f", body=b"1", http=201), http("PUT", "/files?path=f", body=b"22", http=200),
         http("POST", "/files/move", body={"from": "f", "to": "g"}, http=204), http("GET", "/files?path=g", bytes=b"22"),
         http("DELETE", "/files?path=g", http=204), bash("ls -A", out="")),
    Case("mkdir", http("POST", "/files/mkdir", body={"path": "x/y", "parents": True}, http=201), bash("test -d x/y && echo there", out="there\n")),
    Case("mode of an upload", http("PUT", "/files?path=run.sh&mode=755", body=b"#!/bin/sh\necho ran\n", http=201), bash("./run.sh", out="ran\n")),
    Case("absolute paths and the home directory", http("PUT", "/files?path=/home/agent/.config.ini", body=b"k=v", http=201),
         bash("cat ~/.config.ini", out="k=v"), http("PUT", "/files?path=/tmp/t", body=b"t", http=201), bash("cat /tmp/t", out="t")),
    Case("system files cannot be written", http("PUT", "/files?path=/usr/bin/x", body=b"x", http=403, error="permission_denied")),
    Case("part of a file", shell("printf 0123456789 > f"), http("GET", "/files?path=f", headers={"Range": "bytes=2-4"}, http=206, bytes=b"234")),
    Case("archive in",
         http("PUT", "/files/tar?path=proj&parents=true", body=archive({"main.py": b"print('from the archive')", "lib/x.txt": b"x"}), json={"entries": 2}),
         bash("python3 proj/main.py; cat proj/lib/x.txt", out="from the archive\nx")),
    Case("archive out", shell("mkdir p; echo one > p/a; echo two > p/b"), http("GET", "/files/tar?path=p", shows=("one", "two"))),
    Case("big file both ways", http("PUT", "/files?path=big", body=BIG, http=201), bash("md5sum < big | cut -c1-8; stat -c %s big", shows="20971520"),
         http("GET", "/files?path=big", bytes=BIG)),
    Case("files of an execution", python("open('chart.svg', 'w').write('<svg/>')"), http("GET", "/files/list?path=.", shows="chart.svg")),
    Case("javascript sees uploads", http("PUT", "/files?path=d.json", body=b'{"n": 42}', http=201), javascript("require('./d.json').n", result="42"),
         needs="node"),
    Case("file written by a program in the background", bash("(sleep 0.2; echo late > late.txt) &"), bash("wait"),
         http("GET", "/files?path=late.txt", bytes=b"late\n")),
]
