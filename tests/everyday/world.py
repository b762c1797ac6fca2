# SPDX-License-Identifier: Apache-2.0
"""world.py - The place of the battery: one daemon, its images, and a small outside world for egress.

The daemon uses the package indexes of this machine (the quick part uses none). Its resolver is ours: it knows the name of a web
server on loopback and passes other names to the machine's own resolver.
"""
import importlib
import os
import pkgutil
import socket
import urllib.error
import urllib.request
from pathlib import Path

import cases
from box_lib import Box
from egress_lib import Resolver, Web
from integ_lib import run
from process import BIN
from serve_lib import Daemon

WEB = "web.test"
# The image's own: the daemon's tools stand before some programs that the image may lack.
FIND_PROGRAMS = "PATH=$(echo $PATH | sed 's,/packages/[^:]*,/nothing,g'); for p; do command -v $p >/dev/null && echo $p; done"
FIND_MODULES = "import importlib.util, sys\nfor m in sys.argv[1:]: importlib.util.find_spec(m) and print(m)"


class Names(dict):
    """Addresses by name: our own, and those that the machine's resolver knows."""

    def get(self, name, default=None):
        if name in self:
            return self[name]
        try:
            return sorted({a[4][0] for a in socket.getaddrinfo(name, 443, type=socket.SOCK_STREAM)})
        except OSError:
            return default


class World:
    def __init__(self, where, packages):
        self.dns, self.web = Resolver(), Web()
        self.dns.zone = Names({WEB: ["127.0.0.1"]})
        self.web_host = "%s:%d" % (WEB, self.web.port)
        self.store = Path(os.environ.get("CAISSON_EVERYDAY_STORE") or BIN.parent / "everyday" / "images")
        self.cli_state = where / "cli-state"
        env = {"CAISSON_POOL": "1"}
        if packages:
            env.update({"CAISSON_PIP_INDEX": None, "CAISSON_NPM_REGISTRY": None})
        self.daemon = Daemon(where, "--image-store", self.store, "--egress-private", "127.0.0.0/8", "--egress-dns", self.dns.address,
                             "--tools", "all", "--package-rate", 1000, env=env)
        self.known, self.indexes, self.absent = {}, {}, {}

    def close(self):
        try:
            self.daemon.stop()
        finally:
            self.daemon.kill()
            self.web.close()
            self.dns.close()

    def why_not(self, image):
        """Why an image cannot be used; None if it can."""
        if image not in self.absent:
            there = image == "host" or run("image", "inspect", "--store", self.store, image).code == 0
            self.absent[image] = None if there else "no image %s in %s: make everyday-image builds it" % (image, self.store)
        return self.absent[image]

    def about(self, image):
        """The programs and python modules of an image that any case names."""
        if image not in self.known:
            table = load()
            with Box(self.daemon, image=image) as box:
                programs = box.exec("sh", "-c", FIND_PROGRAMS, "sh", *sorted({p for c in table for p in c.needs}))
                modules = box.exec("python3", "-c", FIND_MODULES, *sorted({m for c in table for m in c.modules}))
                self.known[image] = set(programs["stdout"].split()), set(modules["stdout"].split())
        return self.known[image]

    def no_index(self, language):
        """Why the package index of a language cannot be used; None if it can."""
        if language not in self.indexes:
            url = self.daemon.health()["packages"][language]["index"]
            try:
                reason = None if url != "none" else "turned off"
                if not reason:
                    urllib.request.urlopen(url, timeout=15).close()
            except urllib.error.HTTPError:
                pass  # it answers
            except OSError as e:
                reason = str(e)
            self.indexes[language] = reason and "the %s package index (%s) does not answer: %s" % (language, url, reason)
        return self.indexes[language]

    def programs(self, image):
        return self.about(image)[0]

    def modules(self, image):
        return self.about(image)[1]


def load():
    """All cases of all tables, each with the name of its table as its group."""
    found, names = [], set()
    for module in sorted(m.name for m in pkgutil.iter_modules(cases.__path__)):
        for case in importlib.import_module("cases." + module).CASES:
            object.__setattr__(case, "group", module)
            assert (module, case.name) not in names, "two cases have the name %s" % case.name
            names.add((module, case.name))
            found.append(case)
    return found
