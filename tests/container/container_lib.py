# SPDX-License-Identifier: Apache-2.0
"""container_lib.py - A Docker daemon, and the daemon in containers of it.

The engine is the one that `docker` reaches, or else one of Debian's docker.io that is started here and ended again: with data, sockets and
processes of its own, and without a bridge and iptables, which a machine may lack. NotHere has the reason why neither can be had.

Where the engine has a bridge, ports are published (-p); elsewhere containers have the machine's network, and the daemon in them listens on
loopback. Either way the tests reach it on 127.0.0.1.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / d) for d in ("lib", "serve", "integ", "mcp")]

from daemon import BareDaemon  # noqa: E402
from process import IS_ROOT, ROOT, free_port, wait_until  # noqa: E402
from suite_lib import NotHere  # noqa: E402

IMAGE = "sandbox:latest"
BUILT = ROOT / "build/container"
FILTER = "seccomp=%s" % (ROOT / "dist/container/seccomp.json")
APPARMOR = Path("/sys/module/apparmor/parameters/enabled")
UNCONFINED = ["--security-opt=apparmor=unconfined"] if APPARMOR.exists() and APPARMOR.read_text().startswith("Y") else []
# As docs/container.md has them: what to add to Docker's defaults, and the same without those of the defaults that nothing needs.
ADDED = ["--cap-add=SYS_ADMIN", "--cap-add=SYS_PTRACE", "--cap-add=DAC_READ_SEARCH", "--security-opt=" + FILTER, *UNCONFINED]
KEPT = ["--cap-add=" + c for c in ("SETUID", "SETGID", "SETPCAP", "KILL", "DAC_OVERRIDE", "CHOWN", "FOWNER", "SYS_CHROOT")]
LEAST = ["--cap-drop=ALL", *KEPT, *ADDED]
START_SECONDS = 120


# ---- the engine ----------------------------------------------------------------------------------------------


class Engine:
    """A Docker daemon that answers. close() ends it, if it was started here."""

    def __init__(self):
        if not shutil.which("docker"):
            raise NotHere("there is no docker (tools/deps.sh container-test)")
        self.env, self.own, self.names, self.volumes = dict(os.environ), None, [], []
        if not self.answers():
            self.start()
        self.bridge = bool(self("network", "ls", "--quiet", "--filter", "driver=bridge").stdout.strip())

    def __call__(self, *args, check=True, timeout=600, **kw):
        """Run docker; stdout and stderr are text, in that order."""
        r = subprocess.run(["docker", *map(str, args)], env=self.env, timeout=timeout, text=True,
                           **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw})
        assert r.returncode == 0 or not check, "docker %s: %s" % (args, (r.stdout or "") + (r.stderr or ""))
        return r

    def answers(self):
        return self("version", "--format", "{{.Server.Version}}", check=False).returncode == 0

    def start(self):
        if not IS_ROOT or not shutil.which("dockerd"):
            raise NotHere("no Docker daemon answers, and only root with Debian's docker.io can start one here (tools/deps.sh container-test)")
        data = Path(os.environ.get("CAISSON_CONTAINER_DATA", BUILT / "docker")).resolve()
        data.mkdir(parents=True, exist_ok=True)
        self.run = Path(tempfile.mkdtemp(prefix="caisson-docker-"))  # socket paths are short
        self.env["DOCKER_HOST"] = "unix://%s/sock" % self.run
        with open(self.run / "log", "w") as log:
            self.own = subprocess.Popen(["dockerd", "--host", self.env["DOCKER_HOST"], "--data-root", data, "--exec-root", self.run / "exec",
                                         "--pidfile", self.run / "pid", "--bridge=none", "--iptables=false", "--ip6tables=false"],
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        if not wait_until(lambda: self.own.poll() is not None or self.answers(), 60) or self.own.poll() is not None:
            text = (self.run / "log").read_text()
            self.close()
            raise NotHere("Debian's dockerd does not start here: " + (text.splitlines() or ["no log"])[-1])

    def close(self):
        if self.own and self.own.poll() is None:
            for name in self.names:
                self("rm", "--force", "--volumes", name, check=False)
            for name in self.volumes:
                self("volume", "rm", "--force", name, check=False)
            self.own.send_signal(signal.SIGTERM)
            self.own.wait(60)
        if self.own:
            # dockerd leaves empty cgroups, and a mount.
            for place in Path("/sys/fs/cgroup").glob("**/docker"):
                with contextlib.suppress(OSError):
                    place.rmdir()
            for line in Path("/proc/self/mounts").read_text().splitlines():
                if line.split()[1].startswith(str(self.run)):
                    subprocess.run(["umount", "--lazy", line.split()[1]], check=False)
            shutil.rmtree(self.run, ignore_errors=True)

    def once(self, *command, options=(), check=False, image=IMAGE, **kw):
        """A container that runs one command to its end: (exit code, stdout, stderr)."""
        r = self("run", "--rm", "--network=host", *options, image, *command, check=check, **kw)
        return r.returncode, r.stdout, r.stderr

    def volume(self):
        name = "caisson-test-%d-%d" % (os.getpid(), len(self.volumes))
        self.volumes.append(name)
        self("volume", "create", name)
        return name


# ---- the daemon in a container -------------------------------------------------------------------------------


class Container(BareDaemon):
    """`docker run` of the image, in the background, and requests to the daemon in it."""

    def __init__(self, engine, *options, command=(), env=None, token=None, wait=True, network=True):
        self.engine, self.port, self.token = engine, free_port(), token
        self.name = "caisson-test-%d" % self.port
        engine.names.append(self.name)
        reach = []
        if network:
            reach = ["-p", "127.0.0.1:%d:8001" % self.port] if engine.bridge else ["--network=host", "-e", "CAISSON_LISTEN=127.0.0.1:%d" % self.port]
        variables = [w for k, v in (env or {}).items() for w in ("-e", "%s=%s" % (k, v))]
        engine("run", "--detach", "--name", self.name, *reach, *variables, *options, IMAGE, *command)
        if wait:
            try:
                self.wait_ready(START_SECONDS)
            except BaseException:
                self.close()
                raise

    def inspect(self, what):
        return json.loads(self.engine("inspect", "--format", "{{json .%s}}" % what, self.name).stdout)

    def running(self):
        return self.inspect("State.Running")

    def ready(self):
        assert self.running(), "the container ended with %s: %s" % (self.inspect("State.ExitCode"), self.log_text()[-2000:])
        try:
            h = self.health()
        except OSError:
            return None
        return h if h["status"] == "healthy" and not h["pool"]["making"] and self.filled(h) else None

    def log_text(self):
        r = self.engine("logs", self.name, stderr=subprocess.STDOUT)
        return r.stdout

    def log(self, event=None):
        lines = [json.loads(line) for line in self.log_text().splitlines() if line.startswith('{"time"')]
        return [e for e in lines if event in (None, e["event"])]

    def exec(self, *command, check=True, **kw):
        return self.engine("exec", self.name, *command, check=check, **kw)

    def execute(self, code, **fields):
        r = self.request("POST", "/execute", {"code": code, **fields}, timeout=120)
        assert r.status == 200, r
        return r.json

    def close(self):
        self.engine("rm", "--force", "--volumes", self.name, check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
