# SPDX-License-Identifier: Apache-2.0
"""serve_peers.py - The peers of the comparison: each starts, gives samples, and stops.

samples() maps a name to (function that takes one sample in seconds, take it every how many rounds).
"""
import os
import subprocess
import tarfile
import time
from pathlib import Path

PYTHON = "/usr/bin/python3"


def timed(argv, expect=b"1\n", **kw):
    begin = time.perf_counter()
    out = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, **kw).stdout
    took = time.perf_counter() - begin
    if out != expect:
        raise RuntimeError(f"{argv[0]} printed {out[:100]!r}")
    return took


class PlainPython:
    def __init__(self, directory):
        del directory
        self.numpy = subprocess.run([PYTHON, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode == 0

    def samples(self):
        kinds = {"python": (lambda: timed([PYTHON, "-c", "print(1)"]), 1)}
        if self.numpy:
            kinds["python_numpy"] = (lambda: timed([PYTHON, "-c", "import numpy; print(1)"]), 2)
        return kinds

    def stop(self):
        pass


class Bubblewrap:
    ARGV = ["bwrap", "--unshare-all", "--unshare-user", "--unshare-cgroup", "--uid", "1000", "--gid", "1000", "--ro-bind", "/usr", "/usr",
            "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev",
            "/dev", "--tmpfs", "/tmp", "--die-with-parent", "--cap-drop", "ALL", PYTHON, "-c", "print(1)"]

    def __init__(self, directory):
        del directory
        timed(self.ARGV)

    def samples(self):
        return {"bubblewrap": (lambda: timed(self.ARGV), 1)}

    def stop(self):
        pass


class Docker:
    """A docker daemon of our own: own directories and socket, no bridge, no firewall rules."""

    RUN = ["run", "--rm", "--network", "none", "--memory", "512m", "--pids-limit", "128", "-v", "/usr:/usr:ro", "bench"]

    def __init__(self, directory):
        base = Path(directory, "docker")
        base.mkdir()
        self.host = f"unix://{base}/docker.sock"
        self.log = open(base / "log", "wb")
        self.daemon = subprocess.Popen(
            ["dockerd", "--data-root", base / "data", "--exec-root", base / "exec", "-H", self.host, "--pidfile", base / "pid",
             "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-masq=false", "--storage-driver", "vfs"],
            stdout=self.log, stderr=self.log)
        try:
            self.wait(base)
            self.build(base)
            self.docker("run", "-d", "--name", "bench", "--network", "none", "-v", "/usr:/usr:ro", "bench", "/usr/bin/sleep", "3600")
            timed(self.argv(*self.RUN, PYTHON, "-c", "print(1)"))
        except BaseException:
            self.stop()
            raise

    def argv(self, *args):
        return ["docker", "-H", self.host, *args]

    def docker(self, *args, **kw):
        return subprocess.run(self.argv(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=120, **kw)

    def wait(self, base):
        for _ in range(300):
            if self.daemon.poll() is not None:
                raise RuntimeError("dockerd ended: " + (base / "log").read_text(errors="replace").strip().splitlines()[-1][:200])
            if subprocess.run(self.argv("version"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError("dockerd did not answer within 30 s")

    def build(self, base):
        """A root file system of links; /usr is mounted from the host, as for the others."""
        with tarfile.open(base / "root.tar", "w") as tar:
            for name in ("usr", "proc", "dev", "tmp", "etc"):
                info = tarfile.TarInfo(name)
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
            for name in ("bin", "lib", "lib64", "sbin"):
                if os.path.islink("/" + name):
                    info = tarfile.TarInfo(name)
                    info.type, info.linkname = tarfile.SYMTYPE, "usr/" + name
                    tar.addfile(info)
        self.docker("import", base / "root.tar", "bench")

    def samples(self):
        return {
            "docker_run": (lambda: timed(self.argv(*self.RUN, PYTHON, "-c", "print(1)")), 4),
            "docker_exec": (lambda: timed(self.argv("exec", "bench", PYTHON, "-c", "print(1)")), 4),
        }

    def stop(self):
        if self.daemon.poll() is None:
            subprocess.run(self.argv("rm", "-f", "bench"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.daemon.terminate()
            try:
                self.daemon.wait(30)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
        self.log.close()


class Ipykernel:
    """Jupyter's own kernel by its own client: no isolation."""

    def __init__(self, directory):
        os.environ["JUPYTER_RUNTIME_DIR"] = os.environ["IPYTHONDIR"] = os.environ["JUPYTER_CONFIG_DIR"] = str(directory)
        from jupyter_client.manager import start_new_kernel
        self.start_new_kernel = start_new_kernel
        self.manager, self.client = self.start()
        self.execute(self.client)

    def start(self):
        return self.start_new_kernel(kernel_name="python3", extra_arguments=["--HistoryManager.enabled=False"])

    @staticmethod
    def execute(client):
        begin = time.perf_counter()
        wanted = client.execute("print(1)")
        done = False
        while not done:
            m = client.get_iopub_msg(timeout=60)
            done = m["parent_header"].get("msg_id") == wanted and m["content"].get("execution_state") == "idle"
        client.get_shell_msg(timeout=60)
        return time.perf_counter() - begin

    def fresh(self):
        begin = time.perf_counter()
        manager, client = self.start()
        self.execute(client)
        took = time.perf_counter() - begin
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        return took

    def samples(self):
        return {"ipykernel_warm": (lambda: self.execute(self.client), 1), "ipykernel_start": (self.fresh, 10)}

    def stop(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
