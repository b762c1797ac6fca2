# SPDX-License-Identifier: Apache-2.0
"""test_floods.py - Much output at once: all of it arrives unchanged, and the daemon does not grow; also beside clients that never read."""
import base64
import hashlib
import json
import threading

import pytest
from box_lib import Box, Events
from process import SANITIZED, SLOW, unique, wait_until
from serve_lib import Peak

MIB = 1 << 20
# Lines, every byte value, and characters of other alphabets, to cover every branch of the JSON writer.
SOURCE = ("import os, hashlib\nline = b'The quick brown fox \"jumps\" over the lazy dog \\\\ and on: 0123456789\\n'\n"
          "b = (line * 1000 + 'привет, 世界\\n'.encode() * 500 + bytes(range(256)) * (%d // 64) + b'y\\n' * 2000)\n"
          "n, h = %d, hashlib.sha256()\nwhile n:\n    part = b[:n]\n    n -= len(part)\n    h.update(part)\n    os.write(1, part)\n"
          "os.write(2, h.hexdigest().encode())\n")


def bytes_of(event):
    return base64.b64decode(event["data_base64"]) if "data_base64" in event else event["data"].encode()


@pytest.mark.parametrize("accept,binary", [("text/event-stream", False), ("application/x-ndjson", True)])
def test_64_mib_arrive_and_the_daemon_stays_as_it_is(daemon, accept, binary):
    """Not a byte is lost, doubled or changed, and the daemon keeps only the events that a client may come back for."""
    total, got, digest = 64 * MIB, 0, hashlib.sha256()
    with Box(daemon) as box:
        peak = Peak(daemon.pid)
        body = {"cmd": "python3", "args": ["-c", SOURCE % (64 if binary else 0, total)], "timeout": 100, "stream": True}
        said, last = b"", None
        with Events(daemon, "POST", box.url + "/exec", body, {"Accept": accept}) as s:
            for kind, event in ((k, d) for k, d in (lines(s) if accept.endswith("ndjson") else ((k, d) for _, k, d in s))):
                if kind == "stdout":
                    data = bytes_of(event)
                    got += len(data)
                    digest.update(data)
                elif kind == "stderr":
                    said += bytes_of(event)
                last = kind, event
        grown = peak.grown()
    assert last[0] == "done" and last[1]["usage"]["stdout_bytes"] == total == got, (got, last)
    assert said.decode() == digest.hexdigest()
    # A sanitizer keeps freed memory, up to 256 MiB: its builds are judged by the bytes alone.
    assert grown < 16 * 1024 or SANITIZED, "%d KiB" % grown


def lines(stream):
    text = b""
    for chunk in stream.chunks():
        text += chunk
        *whole, text = text.split(b"\n")
        for line in whole:
            event = json.loads(line)
            yield event["type"], event
    assert not text


READERS, SILENT = 32, 32
WORK = "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; head -c 300000 /dev/zero | tr '\\0' z"


def test_32_clients_that_never_read_stop_no_other(serve):
    """Beside 32 clients that read nothing of their floods, 32 others get all of theirs; the daemon's memory is bounded."""
    d = serve("--max-sandboxes", "80", "--memory", "64M")
    with Box(d, unique("deaf")) as deaf, Box(d, unique("other")) as other:
        peak = Peak(d.pid)
        silent = [Events(d, "POST", deaf.url + "/exec", {"cmd": "yes", "stream": True, "timeout": 100}, receive_buffer=4096)
                  for _ in range(SILENT)]
        assert wait_until(lambda: sum(e["state"] == "running" for e in deaf.get("/executions").json["executions"]) == SILENT)
        results, failed = [], []

        def read():
            try:
                events = other.stream(WORK, timeout=100).all()
                text = b"".join(bytes_of(x) for _, kind, x in events if kind == "stdout")
                results.append((text, events[-1]))
            except Exception as e:  # checked below: a thread that dies reports nothing
                failed.append(e)
        threads = [threading.Thread(target=read) for _ in range(READERS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(120 * SLOW)
        expected = b"".join(b"line %d\n" % i for i in range(200)) + b"z" * 300000
        assert not failed and len(results) == READERS, failed
        assert all(text == expected and last[1] == "done" and last[2]["ok"] for text, last in results)
        running = [e for e in deaf.get("/executions").json["executions"] if e["state"] == "running"]
        assert len(running) == SILENT and all(e["stdout_bytes"] < 16 * MIB for e in running), running
        # For each client at most a full log and the output in flight.
        assert peak.grown() < (SILENT + READERS) * 6 * 1024 * SLOW
        for s in silent:
            s.close()
