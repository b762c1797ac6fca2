# SPDX-License-Identifier: Apache-2.0
"""dist_lib.py - The files of `make dist`, clean Debian roots, and machines that boot them.

Roots come from the mirror that apt uses here, and are kept below build/dist-test while the list of their packages stays the same. A root
is never changed: tests work on overlays of it, in namespaces of their own. NotHere has the reason why something cannot be had.
"""
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAISSON_BUILD", ROOT / "build")).resolve()
DIST = BUILD / "dist"
PLACE = BUILD / "dist-test"
HERE = Path(__file__).resolve().parent
VERSION = re.search(r"version: '(.+)'", (ROOT / "meson.build").read_text())[1]
NEWER = "trixie"  # the first Debian release whose AppArmor knows abi 4.0
# A server, a Linux kernel for QEMU, and shells whose completions are tested; not what the package depends on.
SERVER = ["systemd-sysv", "dbus", "udev", "curl", "procps", "man-db", "bash-completion", "zsh", "linux-image-cloud-amd64"]


class NotHere(Exception):
    pass


def run(*argv, check=True, **kw):
    """stdout and stderr are text, in that order."""
    r = subprocess.run([str(a) for a in argv], **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **kw})
    assert r.returncode == 0 or not check, "%s: %s" % (argv, (r.stdout or "")[-4000:] + (r.stderr or "")[-4000:])
    return r


def artefact(pattern):
    found = list(DIST.glob(pattern))
    assert len(found) == 1, "%s of build/dist: %s; make dist" % (pattern, found)
    return found[0]


def deb():
    return artefact("caisson_*_*.deb")


def field(package, name):
    return run("dpkg-deb", "--field", package, name).stdout.strip()


# ---- roots -------------------------------------------------------------------------------------------------


def release():
    return re.search(r"^VERSION_CODENAME=(.+)$", Path("/etc/os-release").read_text(), re.M)[1]


def mirror():
    """The URL of the distribution's archive in apt's own configuration."""
    r = run("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages", "Component: main", check=False)
    found = [line.split()[1] for line in r.stdout.splitlines() if line.split()[:1] == [release()]]
    if not found:
        raise NotHere("apt knows no archive of %s (apt-get update)" % release())
    return found[0]


def make_root(name, suite, packages, *options, source=None, key=""):
    """A root of these packages, by mmdebstrap, from @source or else this machine's mirror. Kept until the list, or the key of the files that
    the options put in, changes."""
    if os.geteuid() != 0:
        raise NotHere("only root makes roots and machines here")
    if not shutil.which("mmdebstrap"):
        raise NotHere("there is no mmdebstrap (tools/deps.sh dist-test)")
    root, made = PLACE / ("root-" + name), PLACE / ("root-%s.list" % name)
    list_ = "\n".join([suite, *packages, *map(str, options), str(key)])
    if made.exists() and made.read_text() == list_ and root.exists():
        return root
    PLACE.mkdir(parents=True, exist_ok=True)
    run("rm", "-rf", "--one-file-system", root, made)
    r = run("mmdebstrap", "--variant=minbase", "--include=" + ",".join(packages), "--dpkgopt=force-unsafe-io", *options, suite, root, source or mirror(), check=False,
            timeout=1800)
    if r.returncode:
        raise NotHere("mmdebstrap cannot make %s here: %s" % (suite, r.stderr.strip()[-600:]))
    made.write_text(list_)
    return root


def server_root(package):
    """A server of this release, with the packages that @package depends on as files in /repo/1, not installed."""
    depends = field(package, "Depends")
    fetch = ["--customize-hook=chroot \"$1\" apt-get clean",
             "--customize-hook=chroot \"$1\" apt-get satisfy -q -y --no-install-recommends --download-only '%s'" % depends,
             "--customize-hook=mkdir -p \"$1/repo/1\" && mv \"$1\"/var/cache/apt/archives/*.deb \"$1/repo/1/\" && "
             "cd \"$1/repo/1\" && dpkg-scanpackages . >Packages",
             "--customize-hook=rm -f \"$1/etc/resolv.conf\"; echo server >\"$1/etc/hostname\""]
    return make_root("server", release(), SERVER, *fetch)


def next_version(package, where):
    """The same package with a higher version and one more file; (version, file)."""
    tree, version = where / "next", field(package, "Version") + "+next"
    run("dpkg-deb", "--raw-extract", package, tree)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: " + version, control.read_text(), flags=re.M))
    (tree / "usr/share/doc/caisson/NEXT").write_text("next\n")
    (tree / "usr/share/doc/caisson/NEXT").chmod(0o644)
    target = where / ("caisson_%s_next.deb" % version)
    run("dpkg-deb", "--root-owner-group", "--build", tree, target)
    shutil.rmtree(tree)
    return version, target


def write_index(directory, pool):
    """Packages of an archive that consists of this directory and of @pool, the same place in the root."""
    text = run("dpkg-scanpackages", "--multiversion", ".", cwd=directory).stdout
    if pool:
        text += run("dpkg-scanpackages", "--multiversion", ".", cwd=pool).stdout
    (directory / "Packages").write_text(text)


# ---- machines ----------------------------------------------------------------------------------------------


def boot(kind, root, added, script, out, seconds, processors=2):
    """Boot @root with the files of @added and run @script of this directory in it. Returns {case: (status, output)} of its report."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    units = added / "etc/systemd/system"
    (units / "multi-user.target.wants").mkdir(parents=True)
    shutil.copy(HERE / "dist-test.service", units)
    (units / "multi-user.target.wants/dist-test.service").symlink_to("/etc/systemd/system/dist-test.service")
    (added / "test").mkdir()
    shutil.copy(HERE / script, added / "test/run")
    r = run(HERE / "machine.sh", kind, root, added, out, seconds, check=False, timeout=seconds + 300, env={**os.environ, "MACHINE_PROCESSORS": str(processors)})
    if r.returncode == 77:
        raise NotHere(r.stderr.strip())
    report = out / "report"
    console = (out / "console").read_text(errors="replace")[-4000:] if (out / "console").exists() else ""
    assert report.exists(), "no report; status %d, %s, the end of the console:\n%s" % (r.returncode, r.stderr[-2000:], console)
    cases = read_report(report.read_text(errors="replace"))
    assert r.returncode != 124, "not done after %d s; the last case is '%s'; the end of the console:\n%s" % (seconds, list(cases)[-1:], console)
    return cases


def read_report(text):
    _, *rest = re.split(r"^== (\S+)\n", text, flags=re.M)
    cases = {}
    for name, body in zip(rest[::2], rest[1::2]):
        out, _, tail = body.rpartition("\n-- ")
        assert name not in cases, "the report has %s twice" % name
        cases[name] = (int(tail.split()[0]) if tail.strip() else None, out)
    return cases


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
