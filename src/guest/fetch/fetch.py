# SPDX-License-Identifier: Apache-2.0
"""fetch.py - Resolve, download and build packages of python, in a cell of its own; fetch.js does it for javascript.

The front starts it with one JSON argument; it reports its work as JSON lines on stdout:

    {"event": "progress", "text": ...}        a step is in progress; with "done" and "total" once the number is known
    {"event": "closure", "packages": [...], "installer": ...}
                                              the packages to install; then it waits for a line on stdin: "go"
    {"event": "done"}                         the tree is complete in SITE
    {"event": "error", "code": ..., "message": ..., "log": ...}   it failed, and why

After a package was built, that package may have written any of these lines: the front treats all of them as data.
No code of a package runs before its wheel is known to be missing: wheels come first, for the whole closure.
"""
import base64
import hashlib
import http.client
import importlib.util
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

SITE = "/tmp/site"
HOME = "/tmp/fetch"
CERTS = "/etc/ssl/certs/ca-certificates.crt"
LOG_MAX = 4000
PIP_NEEDED = (22, 2)
# Variables of the image that would change the behaviour of the installers.
NOT_PASSED = re.compile(r"PIP_|UV_|.*_proxy$", re.I)
SAYS = re.compile(r"\s*(Collecting|Downloading|Building|Preparing|Installing|Resolved|Prepared|Installed|Built)\b.*")
STEP = re.compile(r"(Collecting|Installing|Installed) ")
ALL_STEPS = re.compile(r"Prepared ")  # uv prints it once, for all of them


class Failed(Exception):
    def __init__(self, code, message, log=""):
        super().__init__(message)
        self.code, self.log = code, log


def say(event, **members):
    sys.stdout.write(json.dumps({"event": event, **members}) + "\n")
    sys.stdout.flush()


def environment(**more):
    return {**{k: v for k, v in os.environ.items() if not NOT_PASSED.match(k)}, "HOME": HOME, "TMPDIR": HOME, **more}


class Steps:
    """The progress: a step for each package, one for installing, and one for the rest."""
    done = total = 0


def step(text, steps=1):
    Steps.done = max(Steps.done, min(Steps.done + steps, Steps.total))
    say("progress", text=text, done=Steps.done, total=Steps.total)


def run(argv, cwd=HOME, env=None):
    """The exit status of a program, and its whole output; its progress is passed on."""
    lines = []
    process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    for line in process.stdout:
        lines.append(line)
        if SAYS.match(line):
            step(line.strip()[:160], 1 if STEP.match(line) else Steps.total - 2 if ALL_STEPS.match(line) else 0)
    return process.wait(), "".join(lines)


# Messages of the tools, and their meaning. The first match counts.
MEANINGS = (
    ("index_unavailable", r"Retrying \(|Connection broken|Connection aborted|BadStatusLine|timed out|Max retries|Failed to establish|SSLError|"
                          r"ProxyError|HTTP error 5|[45]\d\d (?:Client|Server) Error|"
                          r"error sending request|Failed to fetch",
     "the index did not answer, or its answer is not that of an index"),
    ("too_big", r"No space left on device|Disk quota exceeded", "no space: the packages are larger than allowed"),
    ("conflict", r"ResolutionImpossible|conflicting dependencies|have conflicting|we can conclude",
     "its dependencies contradict each other, or packages of the sandbox"),
    ("invalid_package", r"outside the target directory|BadZipFile|is invalid|Invalid wheel|invalid metadata|"
                        r"has an invalid|unsupported wheel",
     "the index has an invalid package"),
    ("hash_mismatch", r"DO NOT MATCH THE HASHES|Hash mismatch", "the downloaded file has another hash"),
    ("build_failed", r"subprocess-exited-with-error|Failed to build|Failed building|metadata-generation-failed|"
                     r"build backend", "the package could not be built"),
    ("package_not_found", r"from versions: none|was not found in the package registry",
     "the index has no such package"),
    ("version_not_found", r"No matching distribution|Could not find a version|there is no version",
     "the index has no suitable version of it"),
)


# uv explains an error in one sentence, which ends with "we can conclude" for every reason.
UV_MEANINGS = (
    ("invalid_package", r"Skipping unsafe file name|[Ii]nvalid zip|[Ff]ailed to (?:extract|read|unzip)|zip archive|dist-info|Failed to parse",
     "the index has an invalid package"),
    ("package_not_found", r"was not found in the package registry|was not found in the provided package locations",
     "the index has no such package"),
    ("version_not_found", r"there (?:is|are) no versions? of|has no (?:usable )?wheels|have no (?:usable )?wheels|only .{0,200} (?:is|are) available|"
                          r"Building source distributions is disabled", "the index has no suitable version of it"),
    *MEANINGS,
)


def failed(log, meanings=MEANINGS):
    """The error that a log reports."""
    for code, pattern, text in meanings:
        if re.search(pattern, log):
            break
    else:
        code, text = "install_failed", "the package could not be installed"
    match = (re.search(r"(?:ERROR|error|cause)[: ]+((?:No matching|Could not find|THESE|Failed|Cannot|Because).{0,200})", log)
             if code != "index_unavailable" else re.search(r"((?:HTTPS?Connection|[45]\d\d (?:Client|Server) Error).{0,160})", log))
    said = match.group(1).strip() if match else ""
    own = re.findall(r"lines of output\]\n(.*?)\[end of output\]", log, re.S)
    if code == "build_failed" and own:  # the output of the build, without pip's own
        log = re.sub(r"[ \t]*\n[ \t]*", "\n", own[-1]).strip()
    return Failed(code, text + (": " + said if said else ""), log[-LOG_MAX:])


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


# ---- python -----------------------------------------------------------------------------------------------
#
# uv if the image has it, else pip. Both report what they would install, with the hash of each file, and then install exactly
# that. pip builds packages that have no wheel, if there is pip: it prefers an older version with a wheel to a newer one
# without, which uv cannot do.

def write_lines(name, lines):
    with open(HOME + "/" + name, "w") as f:
        f.write("".join(line + "\n" for line in lines))
    return HOME + "/" + name


def trust(task):
    certs = certs_of(task)
    return ssl.create_default_context(cafile=certs) if os.path.exists(certs) else None


def certs_of(task):
    return task.get("certs") or CERTS


def index_of(task):
    """The address of the index. Credentials in it are placeholders: the gate has the values, and sends them only to the index."""
    url = task.get("index")
    user, password = (os.environ.get("CAISSON_PIP_" + name, "") for name in ("USER", "PASSWORD"))
    if not url or not (user or password):
        return url
    return url.replace("://", "://%s%s@" % (user, ":" + password if password else ""), 1)


class Pip:
    wheels, builds = ["--only-binary", ":all:"], ["--prefer-binary"]

    def __init__(self, task):
        self.task = task
        self.says = "pip " + self.version()

    @staticmethod
    def version():
        if importlib.util.find_spec("pip") is None:
            return ""
        import pip  # its top only; importlib.metadata is younger than some images
        return pip.__version__

    @classmethod
    def is_here(cls):
        """pip must be able to report what it would install."""
        return tuple(map(int, re.findall(r"\d+", cls.version())[:2])) >= PIP_NEEDED

    def options(self):
        options = ["--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar", "off",
                   "--timeout", "15", "--retries", "2", "--cache-dir", HOME + "/cache"]
        index = index_of(self.task)
        if index:
            url = urllib.parse.urlsplit(index)
            options += ["--index-url", index]
            if url.scheme == "http":
                options += ["--trusted-host", url.hostname]
            elif os.path.exists(certs_of(self.task)):
                options += ["--cert", certs_of(self.task)]
        else:
            options += ["--no-index"]
        if self.task.get("dir"):
            options += ["--find-links", self.task["dir"]]
        return options

    def run(self, *args):
        env = environment(PIP_CONFIG_FILE=os.devnull)
        status, log = run([sys.executable, "-m", "pip", "install", *self.options(), *args], env=env)
        if status:
            self.ask_again(log)
            raise failed(log)

    def ask_again(self, log):
        """pip treats an index that answers with an error like one that does not have the package: check it."""
        name = re.search(r"the requirement ([A-Za-z0-9._-]+).*\(from versions: none\)", log)
        url = urllib.parse.urlsplit(index_of(self.task) or "")
        if not name or not url.hostname:
            return
        page = "%s://%s%s/%s/" % (url.scheme, url.netloc.rpartition("@")[2], url.path.rstrip("/"), canonical(name.group(1)))
        request = urllib.request.Request(page)
        if url.username:
            words = "%s:%s" % (urllib.parse.unquote(url.username), urllib.parse.unquote(url.password or ""))
            request.add_header("Authorization", "Basic " + base64.b64encode(words.encode()).decode())
        try:
            urllib.request.urlopen(request, timeout=15, context=trust(self.task)).close()
        except urllib.error.HTTPError as error:
            if error.code not in (404, 410):
                raise Failed("index_unavailable", "the index answered with an error: %d %s" % (error.code, error.reason), log)
        except (OSError, http.client.HTTPException) as error:
            raise Failed("index_unavailable", "the index did not answer, or its answer is not that of an index: %s" % error, log)

    def entry(self, item, names):
        info, meta = item["download_info"], item["metadata"]
        url = info["url"]
        digest = info.get("archive_info", {}).get("hashes", {}).get("sha256")
        old = info.get("archive_info", {}).get("hash", "")
        if not digest and old.startswith("sha256="):
            digest = old[len("sha256="):]
        if not digest and url.startswith("file://"):
            digest = sha256(urllib.parse.unquote(urllib.parse.urlsplit(url).path))
        name = canonical(meta["name"])
        needs = {canonical(re.match(r"[A-Za-z0-9._-]+", r).group()) for r in meta.get("requires_dist", [])
                 if re.match(r"[A-Za-z0-9._-]+", r)}
        return {"name": name, "version": meta["version"], "sha256": digest or "",
                "built": not url.split("#")[0].endswith(".whl"), "needs": sorted(needs & names - {name})}

    def resolve(self, only):
        report = HOME + "/report.json"
        args = ["--dry-run", "--ignore-installed", "--report", report, *only]
        if self.task.get("constraints"):
            args += ["--constraint", write_lines("constraints.txt", self.task["constraints"])]
        self.run(*args, *self.task["requirements"])
        with open(report) as f:
            items = json.load(f)["install"]
        names = {canonical(item["metadata"]["name"]) for item in items}
        return [self.entry(item, names) for item in items]

    def install(self, pinned, only):
        self.run("--no-deps", "--require-hashes", "--no-compile", "--target", SITE, *only, "-r", pinned)


class Uv:
    wheels, builds = ["--only-binary", ":all:"], []

    def __init__(self, task):
        self.task, self.says = task, self.version()

    @staticmethod
    def version():
        """"uv 0.9.1", or nothing if uv is missing or does not run."""
        if not shutil.which("uv"):
            return ""
        said = subprocess.run(["uv", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return " ".join(said.stdout.split()[:2]) if said.returncode == 0 else ""

    @classmethod
    def is_here(cls):
        return importlib.util.find_spec("tomllib") is not None and cls.version() != ""

    def run(self, *args):
        options = ["--no-config", "--no-progress", "--color", "never", "--cache-dir", HOME + "/uv", "--no-python-downloads",
                   "--python", sys.executable]
        env = environment(UV_HTTP_TIMEOUT="15", UV_HTTP_RETRIES="2", RUST_LOG="warn")
        index = index_of(self.task)
        if index:
            url = urllib.parse.urlsplit(index)
            options += ["--default-index", index]
            if url.scheme == "http":
                options += ["--allow-insecure-host", url.hostname]
            elif os.path.exists(certs_of(self.task)):
                env["SSL_CERT_FILE"] = certs_of(self.task)
        else:
            options += ["--no-index"]
        if self.task.get("dir"):
            options += ["--find-links", self.task["dir"]]
        status, log = run(["uv", "pip", *args, *options], env=env)
        if status or "Skipping unsafe file name" in log:  # uv leaves such a file out and continues; pip does not
            raise failed(re.sub(r"\n\s+", " ", log), UV_MEANINGS)

    @staticmethod
    def rank(wheel):
        """The wheel that pip would choose: made for this interpreter, for a newer libc, for one platform."""
        interpreter, abi, platform = wheel.rsplit(".whl", 1)[0].split("-")[-3:]
        libc = max(((int(a), int(b)) for a, b in re.findall(r"linux_(\d+)_(\d+)", platform)), default=(0, 0))
        version = max((int(v or 0) for v in re.findall(r"(?:cp|py)3(\d*)", interpreter)), default=0)
        return interpreter.startswith("cp"), abi.startswith("cp"), abi != "none", version, platform != "any", libc

    def entry(self, item, needs):
        name, wheels = canonical(item["name"]), {}
        for wheel in item.get("wheels", []):
            wheels[wheel.get("name") or urllib.parse.unquote(wheel.get("url", wheel.get("path", "")).rsplit("/", 1)[-1])] = wheel
        files = [wheels[max(wheels, key=self.rank)]] if wheels else [item.get("sdist") or item.get("archive") or {}]
        digest = files[0].get("hashes", {}).get("sha256", "")
        path = files[0].get("path") or urllib.parse.unquote(urllib.parse.urlsplit(files[0].get("url", "")).path)
        if not digest and self.task.get("dir") and os.path.exists(os.path.join(HOME, path)):
            digest = sha256(os.path.join(HOME, path))
        return {"name": name, "version": item["version"], "sha256": digest, "built": not wheels,
                "needs": sorted(needs.get(name, ()))}

    def needs(self, args):
        """Which package needs which, as uv notes it beside each: "a==1  # via b, c"."""
        needs = {}
        self.run("compile", *args, "--format", "requirements.txt", "--no-header", "--annotation-style", "line",
                 "-o", HOME + "/needs.txt")
        with open(HOME + "/needs.txt") as f:
            for name, via in re.findall(r"^([\w.-]+)==\S+\s+# via (.*)$", f.read(), re.M):
                for other in via.split(", "):
                    needs.setdefault(canonical(other), set()).add(canonical(name))
        return needs

    def resolve(self, only):
        import tomllib
        args = [write_lines("requirements.txt", self.task["requirements"]), *only]
        if self.task.get("constraints"):
            args += ["--constraint", write_lines("constraints.txt", self.task["constraints"])]
        self.run("compile", *args, "--generate-hashes", "--format", "pylock.toml", "-o", HOME + "/pylock.toml")
        with open(HOME + "/pylock.toml", "rb") as f:
            items = tomllib.load(f)["packages"]
        needs = self.needs(args)
        return [self.entry(item, needs) for item in items]

    def install(self, pinned, only):
        self.run("install", "--no-deps", "--require-hashes", "--link-mode", "copy", "--target", SITE, *only, "-r", pinned)
        if os.path.exists(SITE + "/.lock"):
            os.unlink(SITE + "/.lock")


def install_python(task):
    tools = [tool(task) for tool in (Uv, Pip) if tool.is_here()]
    if not tools:
        old = Pip.version()
        raise Failed("no_installer", "the image has python %d.%d, and neither uv (for 3.11 and later) nor pip for it" % sys.version_info[:2] if not old else
                     "the pip %s of the image is too old" % old)
    step("Resolving %s" % ", ".join(task["requirements"])[:100])
    tool, only = tools[0], tools[0].wheels
    try:
        packages = tool.resolve(only)
    except Failed as error:
        if error.code not in ("package_not_found", "version_not_found", "conflict") or not task.get("build"):
            raise
        tool, only = tools[-1], tools[-1].builds
        packages = tool.resolve(only)
    confirm(packages, tool.says)
    tool.install(write_lines("pinned.txt", ["%s==%s --hash=sha256:%s" % (p["name"], p["version"], p["sha256"])
                                            for p in packages]), only)
    step("Compiling")
    # Valid without a check of the source's time, which is not kept.
    subprocess.call([sys.executable, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", SITE],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# ---- the conversation ---------------------------------------------------------------------------------------------------

def confirm(packages, installer):
    say("closure", packages=packages, installer=installer)
    Steps.total = len(packages) + 2
    if sys.stdin.readline().strip() != "go":
        sys.exit(0)


def main():
    task = json.loads(sys.argv[1])
    try:
        for path in (HOME, SITE):
            os.makedirs(path)
        install_python(task)
        say("done")
    except Failed as error:
        say("error", code=error.code, message=str(error), log=error.log)
    except OSError as error:
        say("error", code="too_big" if error.errno == 28 else "install_failed", message=str(error), log="")


if __name__ == "__main__":
    main()
