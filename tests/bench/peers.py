# SPDX-License-Identifier: Apache-2.0
"""peers.py - The candidates of the benchmark: how each one runs python code in a fresh sandbox.

Every container-like candidate gets the same root: the machine's own /usr, read-only, and nothing to
download. Each uses its own defaults beyond that.
"""
import json
import os
import shutil
import subprocess
from pathlib import Path

PRINT = "print(1)"
PYTHON = "/usr/bin/python3"
CELL_ENV = ["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"]
NAMESPACES = ("user", "pid", "mount", "network", "ipc", "uts", "cgroup")


class Candidate:
    """One way to run code. argv() may contain the argument "{id}", replaced by a unique name."""

    name = title = namespaces = filter = limits = caps = ""
    program = ""  # looked up in PATH

    def __init__(self, build: Path, work: Path):
        self.build, self.work = build, work
        self.path = self.program

    def argv(self, code):
        raise NotImplementedError

    def version(self):
        return first_line([self.path, "--version"])

    def setup(self):
        """Make the requirements of argv(). Return a reason if that is impossible."""
        return None

    def close(self):
        """Undo setup()."""

    def try_run(self):
        """Return None if it prints "1", otherwise the error."""
        argv = [a if a != "{id}" else f"bench-probe-{os.getpid()}" for a in plain_argv(self.argv(PRINT))]
        try:
            r = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            return str(e)
        if r.returncode == 0 and r.stdout == "1\n":
            return None
        said = (r.stderr.strip() or r.stdout.strip()).splitlines()
        return f"exit code {r.returncode}: {said[-1] if said else 'no output'}"

    def prepare(self):
        """Return None when it runs here, otherwise the reason why not."""
        if not self.program.startswith("/"):
            self.path = shutil.which(self.program, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
            if not self.path:
                return f"{self.program} is not installed"
        return self.setup() or self.try_run()

    def cleanup(self, marker):
        """Remove the leftovers of a killed client."""

    def describe(self):
        argv = self.argv(PRINT)
        command = " ".join(shown(a, self.work, self.build) for a in argv if a[0] != "@")
        return {"title": self.title, "namespaces": self.namespaces, "filter": self.filter,
                "limits": self.limits, "caps": self.caps, "version": self.version(), "command": command}


def shown(arg, work, build):
    arg = arg.replace(str(work), "DIR").replace(str(build) + "/", "")
    return f"'{arg}'" if any(ch in arg for ch in "(; ") else arg


def first_line(argv):
    try:
        r = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown version"
    return (r.stdout.strip() or r.stderr.strip() or "unknown version").splitlines()[0]


def plain_argv(argv):
    """The same command for a caller other than bench-spawn: "@PATH" becomes nsenter."""
    return ["/usr/bin/nsenter", f"--mount={argv[0][1:]}", *argv[1:]] if argv[0][0] == "@" else argv


class Plain(Candidate):
    name, title, program = "python3", "plain `python3 -c`, no isolation", PYTHON
    namespaces = filter = limits = caps = "none"

    def argv(self, code):
        return [PYTHON, "-c", code]


class Caisson(Candidate):
    name, title = "caisson", "`caisson run`"
    namespaces = "all seven"
    filter = "allow-list, and Landlock"
    limits = "memory, cpu, pids, disk, inodes, files, time"
    caps = "zero"

    def __init__(self, build, work):
        super().__init__(build, work)
        self.program = self.path = str(build / "caisson")

    def argv(self, code):
        return [self.path, "run", code]


class Bubblewrap(Candidate):
    name, title, program = "bubblewrap", "bubblewrap, all namespaces", "bwrap"
    namespaces, filter, limits, caps = "all seven", "none", "none", "zero"

    def argv(self, code):
        return [self.path, "--unshare-all", "--unshare-user", "--unshare-cgroup", "--uid", "1000",
                "--gid", "1000", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
                "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc",
                "--dev", "/dev", "--tmpfs", "/tmp", "--die-with-parent", "--cap-drop", "ALL",
                PYTHON, "-c", code]


def make_root(path: Path):
    """A root directory that is nothing but places to mount on; /usr comes from the host."""
    for d in ("usr", "proc", "dev", "sys", "tmp", "etc", "run"):
        (path / d).mkdir(parents=True, exist_ok=True)
    for link in ("bin", "lib", "lib64", "sbin"):
        if not (path / link).is_symlink():
            (path / link).symlink_to(f"usr/{link}")
    path.chmod(0o755)
    return path


class Oci(Candidate):
    """crun and runc: `run` of a bundle. The code is part of config.json, so each has its bundle."""

    namespaces, filter = "all seven", "none in this bundle"
    limits, caps = "memory, pids", "zero"

    def bundle(self, code):
        path = self.work / f"{self.name}-{abs(hash(code)):x}"
        if not path.exists():
            make_root(path / "rootfs")
            (path / "config.json").write_text(json.dumps(self.config(code)), encoding="utf-8")
            for parent in (self.work, path):
                parent.chmod(0o755)  # the container's root is another user
        return path

    def config(self, code):
        none = {"bounding": [], "effective": [], "inheritable": [], "permitted": [], "ambient": []}
        uid = os.getuid()
        mapping = ([{"containerID": 0, "hostID": 1000000, "size": 65536}] if uid == 0 else
                   [{"containerID": 0, "hostID": uid, "size": 1}])
        return {
            "ociVersion": "1.0.0",
            "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": [PYTHON, "-c", code],
                        "env": CELL_ENV, "cwd": "/", "capabilities": none, "noNewPrivileges": True},
            "root": {"path": "rootfs", "readonly": True},
            "hostname": "bench",
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                 "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev"]},
                {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
            ],
            "linux": {"uidMappings": mapping, "gidMappings": mapping,
                      "namespaces": [{"type": n} for n in NAMESPACES],
                      "resources": {"memory": {"limit": 512 << 20}, "pids": {"limit": 128}}},
        }

    holder = None  # keeps a mount namespace alive

    def setup(self):
        why = self.try_run()
        if why and "hybrid mode" in why and os.geteuid() == 0:
            # crun refuses machines that have v1 controllers and a v2 tree with one of its own; it is
            # shown a machine without the v2 tree.
            self.holder = subprocess.Popen(  # pylint: disable=consider-using-with
                ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
                 "umount /sys/fs/cgroup/unified && echo ready && exec sleep 3600"],
                stdout=subprocess.PIPE, text=True)
            self.holder.stdout.readline()
            self.title += " (shown no v2 tree: it refuses hybrid machines)"
        return None

    def close(self):
        if self.holder:
            self.holder.kill()
            self.holder.wait()

    def argv(self, code):
        enter = [f"@/proc/{self.holder.pid}/ns/mnt"] if self.holder else []
        return [*enter, self.path, "--root", str(self.work / f"{self.name}-state"), "run", "--bundle",
                str(self.bundle(code)), "{id}"]

    def cleanup(self, marker):
        state = self.work / f"{self.name}-state"
        for entry in state.iterdir() if state.is_dir() else ():
            subprocess.run([self.path, "--root", str(state), "delete", "--force", entry.name],
                           capture_output=True, check=False)


class Crun(Oci):
    name, title, program = "crun", "crun", "crun"


class Runc(Oci):
    name, title, program = "runc", "runc", "runc"


class Podman(Candidate):
    name, title, program = "podman", "podman run", "podman"
    namespaces = "its defaults, no network"
    filter, limits, caps = "its default profile", "memory, pids", "its default set"
    runtime = ()

    def setup(self):
        runc = shutil.which("runc", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
        if self.try_run() and runc:
            self.runtime = ("--runtime", runc)
            self.title = "podman run (with runc)"
        return None

    def argv(self, code):
        return [self.path, *self.runtime, "--root", str(self.work / "podman-root"), "--runroot",
                str(self.work / "podman-run"), "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs",
                "--events-backend", "none", "run", "--rm", "--network", "none", "--memory", "512m",
                "--pids-limit", "128", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
                "--log-driver", "none", "-v", "/usr:/usr:ro", "--rootfs",
                str(make_root(self.work / "podman-rootfs")), PYTHON, "-c", code]

    def cleanup(self, marker):
        base = self.argv("")
        subprocess.run(base[:base.index("run")] + ["rm", "--all", "--force", "--time", "0"],
                       capture_output=True, check=False)


class Docker(Candidate):
    name, title, program = "docker", "docker run", "docker"
    namespaces = "its defaults, no network"
    filter, limits, caps = "its default profile", "memory, pids", "its default set"
    image = "caisson-bench:local"

    def setup(self):
        r = subprocess.run([self.path, "info", "--format", "{{.ServerVersion}}"], capture_output=True,
                           text=True, check=False)
        if r.returncode != 0:
            return "no docker daemon runs, and this part of the benchmark does not start one"
        root = make_root(self.work / "docker-rootfs")
        tar = subprocess.run(["tar", "-C", str(root), "-c", "."], capture_output=True, check=True)
        r = subprocess.run([self.path, "import", "-", self.image], input=tar.stdout, capture_output=True,
                           check=False)
        return None if r.returncode == 0 else "docker import failed"

    def argv(self, code):
        return [self.path, "run", "--rm", "--network", "none", "--memory", "512m", "--pids-limit", "128",
                "--name", "{id}", "-v", "/usr:/usr:ro", self.image, PYTHON, "-c", code]

    def cleanup(self, marker):
        r = subprocess.run([self.path, "ps", "-aq", "--filter", f"name={marker}"], capture_output=True,
                           text=True, check=False)
        if r.stdout.split():
            subprocess.run([self.path, "rm", "-f", *r.stdout.split()], capture_output=True, check=False)


def all_candidates(build, work):
    return [cls(build, work) for cls in (Plain, Bubblewrap, Caisson, Crun, Runc, Podman, Docker)]
