#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""adapter.py - A kernel for programs that use ZeroMQ: every message goes to a kernel of the daemon, and back.

usage: adapter.py CONNECTION_FILE        CAISSON_TEST_URL names the daemon, CAISSON_TEST_SPEC the kernelspec.
"""
import json
import os
import sys
import threading
import urllib.request
from pathlib import Path

import zmq
from jupyter_client.session import Session

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / d) for d in ("lib", "serve", "integ")]
from serve_lib import WebSocket  # noqa: E402


class Where:
    """The part of serve_lib.Daemon that its WebSocket needs."""
    token = None

    def __init__(self, url):
        self.port = int(url.rstrip("/").rpartition(":")[2])

    def connect(self, timeout):
        import socket
        return socket.create_connection(("127.0.0.1", self.port), timeout)


def main():
    info = json.loads(Path(sys.argv[1]).read_text())
    url = os.environ["CAISSON_TEST_URL"]
    body = json.dumps({"name": os.environ.get("CAISSON_TEST_SPEC", "python3")}).encode()
    kernel = json.load(urllib.request.urlopen(urllib.request.Request(url + "/api/kernels", body, {"Content-Type": "application/json"})))
    ws = WebSocket(Where(url), "/api/kernels/%s/channels?session_id=adapter" % kernel["id"], timeout=None)
    session = Session(key=info["key"].encode(), signature_scheme=info["signature_scheme"])
    context = zmq.Context()
    sockets = {}
    for channel, kind in (("shell", zmq.ROUTER), ("control", zmq.ROUTER), ("stdin", zmq.ROUTER), ("iopub", zmq.PUB), ("hb", zmq.ROUTER)):
        sockets[channel] = context.socket(kind)
        sockets[channel].bind("%s://%s:%d" % (info["transport"], info["ip"], info[channel + "_port"]))
    inner, outer = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    inner.bind("inproc://ws")
    outer.connect("inproc://ws")
    asked = {}  # message id -> identities of the client

    def listen():
        while True:
            try:
                m = ws.receive()
            except OSError:
                m = None
            outer.send_json(m)
            if m is None:
                return

    threading.Thread(target=listen, daemon=True).start()
    poller = zmq.Poller()
    for s in (*sockets.values(), inner):
        poller.register(s, zmq.POLLIN)
    while True:
        for s, _ in poller.poll():
            if s is sockets["hb"]:
                s.send_multipart(s.recv_multipart())
            elif s is inner:
                m = inner.recv_json()
                if m is None:
                    return
                parts = session.serialize({"header": m["header"], "msg_id": m["msg_id"], "msg_type": m["msg_type"], "parent_header": m["parent_header"],
                                           "metadata": m["metadata"], "content": m["content"]},
                                          ident=asked.get(m["parent_header"].get("msg_id")) if m["channel"] != "iopub" else [m["msg_type"].encode()])
                sockets[m["channel"]].send_multipart(parts)
            else:
                channel = next(c for c, x in sockets.items() if x is s)
                identities, rest = session.feed_identities(s.recv_multipart())
                m = session.deserialize(rest)
                asked[m["header"]["msg_id"]] = identities
                ws.send(json.dumps({"channel": channel, "header": m["header"], "parent_header": m["parent_header"], "metadata": m["metadata"],
                                    "content": m["content"], "buffers": []}, default=str))


main()
