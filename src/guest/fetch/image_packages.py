# SPDX-License-Identifier: Apache-2.0
"""image_packages.py - The packages that the image has: installers keep them, and some of them join a request.

Installed packages come before those of the image, so an installed package that the image has too replaces it for the whole
interpreter. Two kinds of packages of the image may not work with the other version, so they join the request and are
installed in versions that fit; and so does a package that is too old for one that is installed beside it, where the metadata
of that one keeps silent about it (UNDECLARED):

- A package whose metadata requires another version of the replaced one.
- A package with compiled modules that use those of the replaced one: they were built for the memory layout of one version
  ("numpy.dtype size changed"). The metadata does not tell; distributions even remove requirements from it. But a compiled
  module that uses another package names it, so its file has that name.

Packages without metadata are not known here, and left alone. Before python 3.8 no package of the image is known.
"""
import csv
import importlib
import mmap
import os
import re
import sys

try:
    from importlib import metadata
except ImportError:  # before 3.8
    metadata = None

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
VERSION = re.compile(r"(\d+!)?\d+(\.\d+)*([._]?(a|b|c|rc|alpha|beta|pre|preview)[._]?\d*)?([._]?(post|rev|r)[._]?\d*)?([._]?dev[._]?\d*)?"
                     r"(\+[a-z0-9]+([._][a-z0-9]+)*)?$", re.I)
# Requirements of packages, from a major version on, which their metadata does not have.
UNDECLARED = (("pyarrow", 26, "numpy>=2"),)
MODULE_MAX = 256 << 20  # bytes of a compiled module that is read


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def names_of(requires):
    """The packages that requirements name, whatever their conditions."""
    return {canonical(NAME.match(r).group()) for r in requires if NAME.match(r)}


def parse(requirement):
    """By the library that the image or its pip has. None: the image has no such library, or the requirement is invalid."""
    for module in ("pip._vendor.packaging.requirements", "packaging.requirements"):
        try:
            return importlib.import_module(module).Requirement(requirement)
        except Exception:
            continue
    return None


def is_active(parsed):
    """Whether it is required here, without any extra."""
    try:
        return parsed.marker is None or parsed.marker.evaluate({"extra": ""})
    except Exception:
        return True


def active_names(requires):
    """The packages that requirements name which are active here."""
    parsed = [(r, parse(r)) for r in requires]
    return names_of(r for r, p in parsed if (is_active(p) if p else "extra" not in r))


def mentions(path, names):
    """Whether the file has one of these names as a word that ends there, or before a dot."""
    if not 0 < os.path.getsize(path) <= MODULE_MAX:
        return False
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for name in names:
            at = content.find(name)
            while at >= 0:
                end = at + len(name)
                if content[end:end + 1] in (b".", b"\0") and not content[max(at - 1, 0):at].isalnum():
                    return True
                at = content.find(name, end)
    return False


class ImagePackage:
    def __init__(self, dist):
        self.dist, self.name, self.version = dist, canonical(dist.metadata["Name"]), dist.version
        self.requires = [r for r in dist.requires or () if NAME.match(r)]
        if not VERSION.match(self.version):
            raise ValueError(self.version)

    def refuses(self, name, version):
        """Its requirement that this version of that package does not meet, or may not; None: it meets all."""
        for requirement in self.requires:
            if names_of([requirement]) == {name}:
                p = parse(requirement)
                if p is None or (is_active(p) and not p.specifier.contains(version, prereleases=True)):
                    return requirement.split(";")[0].strip()
        return None

    def files(self):
        """As installers record them; none, if they did not."""
        return [row[0] for row in csv.reader((self.dist.read_text("RECORD") or "").splitlines()) if row]

    def modules(self):
        """The names of its modules at the top."""
        tops = {f.split("/")[0] if "/" in f else f.split(".")[0] for f in self.files()}
        tops = tops or set((self.dist.read_text("top_level.txt") or self.name.replace("-", "_")).split())
        return {t for t in tops if t.isidentifier() and t != "__pycache__"}

    def compiled(self):
        """The paths of its compiled modules."""
        base, files, found = str(self.dist.locate_file("")), self.files(), []
        if files:
            return [f for f in (os.path.join(base, f) for f in files if f.endswith(".so")) if os.path.isfile(f)]
        for top in self.modules():
            found += [os.path.join(base, f) for f in os.listdir(base) if f.startswith(top + ".") and f.endswith(".so")]
            for where, _, files in os.walk(os.path.join(base, top)):
                found += [os.path.join(where, f) for f in files if f.endswith(".so")]
        return found

    def metadata(self):
        """The part that a resolver reads."""
        lines = ["Metadata-Version: 2.1", "Name: " + self.name, "Version: " + self.version]
        lines += ["Provides-Extra: " + e for e in self.dist.metadata.get_all("Provides-Extra") or ()]
        lines += ["Requires-Dist: " + r for r in self.requires if "@" not in r and (parse(r) or not parse("any"))]
        return "".join(line + "\n" for line in lines)


class ImagePackages:
    """By canonical name. The first in the path counts, as for imports."""

    def __init__(self):
        self.all = {}
        path = [p for p in os.environ.get("PYTHONPATH", "").split(":") if p] + sys.path
        for dist in metadata.distributions(path=path) if metadata else ():
            try:
                package = ImagePackage(dist)
            except Exception:  # there is no limit to what a strange image has for metadata
                continue
            self.all.setdefault(package.name, package)

    def version(self, name):
        return self.all[name].version if name in self.all else None

    def joining(self, closure):
        """The packages that join a closure (name -> version): name -> (the requirement, the replaced package, the reason)."""
        replaced = [n for n, v in closure.items() if n in self.all and self.all[n].version != v]
        built = {n: [m.encode() for m in self.all[n].modules()] for n in replaced if self.all[n].compiled()}
        joining = self.outdated(closure)
        for package in self.all.values():
            if package.name in closure:
                continue
            files = package.compiled() if built else ()
            for name in replaced:
                refused = package.refuses(name, closure[name])
                if name in built and any(mentions(f, built[name]) for f in files):
                    reason = "was built for %s %s" % (name, self.all[name].version)
                    joining[package.name] = "%s!=%s" % (package.name, package.version), name, reason
                elif refused and package.name not in joining:
                    joining[package.name] = package.name, name, "needs " + refused
        return joining

    def outdated(self, closure):
        """The packages that join a closure because one of it needs a newer version, in the form of joining()."""
        found = {}
        for name, since, requirement in UNDECLARED:
            (other,) = names_of([requirement])
            major = re.match(r"\d*", closure.get(name, "")).group()
            wanted = parse(requirement)
            if other in self.all and other not in closure and int(major or 0) >= since and not (
                    wanted and wanted.specifier.contains(self.all[other].version, prereleases=True)):
                found[other] = requirement, name, "is too old for it"
        return found

    def used(self, names, closure):
        """The packages of the image that these names lead to, unless the closure has them."""
        used, left = {}, list(names)
        while left:
            name = left.pop()
            if name in self.all and name not in used and name not in closure:
                used[name] = self.all[name].version
                left += active_names(self.all[name].requires)
        return used

    def write_metadata(self, where):
        """A directory that has, for an installer, exactly these packages."""
        for package in self.all.values():
            info = os.path.join(where, "%s-%s.dist-info" % (package.name.replace("-", "_"), package.version))
            os.makedirs(info, exist_ok=True)
            for name, text in (("METADATA", package.metadata()), ("INSTALLER", "image\n"), ("RECORD", ""),
                               ("WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")):
                with open(os.path.join(info, name), "w") as f:
                    f.write(text)
