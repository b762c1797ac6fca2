#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""fetch.py - Bring the conformance suite and the clients into the build directory, all at once, before the tests that need them.

Missing ones are reported and are not a failure: the tests that need them are skipped with the same reason.
"""
import sys
import threading
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / d) for d in ("mcp", "lib", "serve", "integ")]

from clients_lib import node_clients, node_servers, python_client  # noqa: E402
from process import BIN  # noqa: E402
from suite_lib import NotHere, Suite  # noqa: E402


def fetch(name, get):
    try:
        get()
        print("%s: here" % name)
    except NotHere as e:
        print("%s: not here: %s" % (name, e))


def from_npm():
    Suite(BIN.parent / "mcp-suite")
    node_clients()
    node_servers()


WANTED = {"conformance suite, clients and servers from npm": from_npm, "clients from PyPI, first version": lambda: python_client(1),
          "clients from PyPI, second version": lambda: python_client(2)}
threads = [threading.Thread(target=fetch, args=one) for one in WANTED.items()]
for t in threads:
    t.start()
for t in threads:
    t.join()
