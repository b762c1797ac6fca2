# SPDX-License-Identifier: Apache-2.0
"""bridge_lib.py - The front's end of the channel to caisson-bridge (docs/protocol/bridge.md), for tests."""
import array
import json
import os
import socket
import subprocess
import threading
from concurrent.futures import Future

from process import BIN

PACKET = 64 << 10


class Refused(Exception):
    """The bridge did not start; the message is its own."""


class CallError(Exception):
    def __init__(self, head):
        super().__init__("%s: %s" % (head["code"], head["message"]))
        self.code, self.message, self.hint = head["code"], head["message"], head.get("hint")


class Bridge:
    def __init__(self, *configs, args=(), env=None, stderr=None, cwd=None, user=None):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [str(BIN.parent / "caisson-bridge"), "--log", "dj"]
        for c in configs:
            argv += ["--config", str(c)]
        if user or (user is None and os.getuid() == 0):
            argv += ["--user", user or "root"]
        fd = theirs.fileno()

        def place():
            if fd == 3:
                os.set_inheritable(3, True)
            else:
                os.dup2(fd, 3)

        self.proc = subprocess.Popen(argv + list(args), preexec_fn=place, pass_fds=(3,) if fd == 3 else (3, fd),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=env, cwd=cwd)
        theirs.close()
        self.last, self.waiting, self.events, self.progress = 0, {}, [], {}
        self.cond = threading.Condition()
        self.servers = None
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()
        with self.cond:
            if not self.cond.wait_for(lambda: self.servers is not None, 30):
                raise AssertionError("no hello in 30 s")
        if isinstance(self.servers, Exception):
            self.proc.wait(10)
            raise self.servers

    def recv(self):
        packet, ancillary, flags, _ = self.sock.recvmsg(PACKET, 4096)
        if not packet:
            return None, b""
        head, body = packet.split(b"\n", 1)
        for _, _, data in ancillary:
            fds = array.array("i")
            fds.frombytes(data)
            with open(fds[0], "rb") as f:
                body = f.read()
        return json.loads(head), body

    def listen(self):
        while True:
            try:
                head, body = self.recv()
            except OSError:
                head = None
            with self.cond:
                if head is None:
                    self.servers = self.servers if self.servers is not None else Refused("it ended")
                    self.events.append({"event": "end"})
                elif head["event"] == "hello":
                    self.servers = json.loads(body)["servers"]
                    for future in self.waiting.values():  # a new worker: as the front does
                        future.set_exception(CallError({"code": "internal", "message": "the bridge was restarted"}))
                    self.waiting = {}
                    self.events.append(head)
                elif head["event"] == "refused":
                    self.servers = Refused(head["message"])
                elif head["event"] == "progress":
                    self.progress.setdefault(head["id"], []).append(head)
                elif head["event"] in ("result", "error"):
                    future = self.waiting.pop(head["id"], None)
                    if future is None:
                        self.events.append(head)
                    elif head["event"] == "error":
                        future.set_exception(CallError(head))
                    else:
                        future.is_error = head["is_error"]
                        future.set_result(body)
                else:
                    self.events.append(head)
                self.cond.notify_all()
                if head is None:
                    return

    def send(self, head, body=b""):
        data = json.dumps(head).encode() + b"\n"
        if len(data) + len(body) <= PACKET:
            self.sock.sendmsg([data + body])
            return
        fd = os.memfd_create("body")
        with open(fd, "wb", closefd=False) as f:
            f.write(body)
        self.sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        os.close(fd)

    def ask(self, head, body=b""):
        future = Future()
        with self.cond:
            self.last += 1
            future.id = head["id"] = self.last
            self.waiting[self.last] = future
            self.send(head, body)
        return future

    def begin(self, server, tool, arguments=None, timeout_ms=30000, progress=False):
        body = arguments if isinstance(arguments, bytes) else json.dumps(arguments or {}).encode()
        return self.ask({"op": "call", "server": server, "tool": tool, "timeout_ms": timeout_ms, "progress": progress}, body)

    def call(self, server, tool, arguments=None, timeout_ms=30000, **more):
        return json.loads(self.begin(server, tool, arguments, timeout_ms, **more).result(timeout_ms / 1000 + 30))

    def tools(self, server):
        return json.loads(self.ask({"op": "tools", "server": server}).result(120))["tools"]

    def cancel(self, future):
        with self.cond:
            self.waiting.pop(future.id, None)
        self.send({"op": "cancel", "id": future.id})

    def states(self, server):
        with self.cond:
            return [e["state"] for e in self.events if e.get("event") == "state" and e["server"] == server]

    def wait_event(self, seconds=20, **like):
        with self.cond:
            def there():
                return next((e for e in self.events if all(e.get(k) == v for k, v in like.items())), None)
            if not self.cond.wait_for(there, seconds):
                raise AssertionError("no event %r among %r" % (like, self.events))
            return there()

    def stop(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        return self.proc.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
