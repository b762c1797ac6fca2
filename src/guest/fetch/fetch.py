# SPDX-License-Identifier: Apache-2.0
"""fetch.py - Resolve, download and build packages of python, in a cell of its own; fetch.js does it for javascript.

The front starts it with one JSON argument; it reports its work as JSON lines on stdout:

    {"event": "progress", "text": ...}        a step is in progress; with "done" and "total" once the number is known
    {"event": "closure", "packages": [...], "installer": ..., "recalled": ...}
                                              the packages to install; then it waits for a line on stdin: "go"
    {"event": "done"}                         the tree is complete in SITE
    {"event": "error", "code": ..., "message": ..., "log": ...}   it failed, and why

After a package was built, that package may have written any of these lines: the front treats all of them as data.
No code of a package runs before its wheel is known to be missing: wheels come first, for the whole closure.

The closure also has the packages of the image that the request leads to ("image": true): they stay where they are, and
nothing of them is fetched. image_packages.py says which ones cannot stay. In a cell both files are one (tools/inline-py.py).

"constraints" are the packages that the sandbox has already. If they forbid the request, it is resolved together with the
earlier requests of the sandbox instead, which "recalled" has: the new tree then replaces the earlier ones.
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

from image_packages import ImagePackages, active_names, canonical, names_of

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
    ("index_unavailable", r"included as a URL dependency", "a package requires another one from an address, and only the index is reached"),
    ("invalid_package", r"Skipping unsafe file name|[Ii]nvalid zip|[Ff]ailed to (?:extract|read|unzip)|zip archive|dist-info|Failed to parse",
     "the index has an invalid package"),
    ("package_not_found", r"was not found in the package registry|was not found in the provided package locations",
     "the index has no such package"),
    ("version_not_found", r"there (?:is|are) no versions? of|has no (?:usable )?wheels|have no (?:usable )?wheels|only .{0,200} (?:is|are) available|"
                          r"Building source distributions is disabled", "the index has no suitable version of it"),
    *MEANINGS,
)


# The words of pip and uv that explain an error, some errors better than others; a server that has no name.
SENTENCE = r"(?:ERROR|error|cause)[: ]+((?:No matching|Could not find|THESE|Failed|Cannot|Because).{0,200})"
EXPLAINED = {"index_unavailable": r"((?:HTTPS?Connection|[45]\d\d (?:Client|Server) Error).{0,160})",
             "conflict": r"conflict is caused by:\s+((?:.+\n)+)"}
ADDRESS = r"(?:host='|for url \(https?://)(\d+\.\d+\.\d+\.\d+|\[?[0-9a-f]*:[0-9a-f:]+\]?)[':/]"


def newest(match):
    """pip lists all versions, the oldest first: the end of the list tells what to ask for."""
    versions = match.group(1).split(", ")
    return match.group() if len(versions) <= 6 else "(from versions: ..., %s)" % ", ".join(versions[-6:])


def failed(log, meanings=MEANINGS):
    """The error that a log reports."""
    log = re.sub(r"\(from versions: ([^)\n]*)\)", newest, log)
    for code, pattern, text in meanings:
        if re.search(pattern, log):
            break
    else:
        code, text = "install_failed", "the package could not be installed"
    address = re.search(ADDRESS, log)
    if code == "index_unavailable" and address:
        return Failed(code, "the index leads to %s, and the fetcher reaches no bare address: that server needs a name, and the "
                      "operator lists it in --package-host" % address.group(1), log[-LOG_MAX:])
    match = re.search(EXPLAINED.get(code, SENTENCE), log) or re.search(SENTENCE, log)
    said = re.sub(r"\s*\n\s*", "; ", match.group(1).strip()) if match else ""
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


def add_own_certs(task):
    """The machine's certificates are there. The index may also have one that only the image trusts."""
    if task.get("certs") and os.path.exists(CERTS):
        with open(CERTS, "rb") as own, open(task["certs"], "r+b") as trusted:
            text = own.read()
            if text not in trusted.read():
                trusted.write(text)


def certs_of(task):
    return task.get("certs") or CERTS


def index_of(task):
    """The address of the index. Credentials in it are placeholders: the gate has the values, and sends them only to the index."""
    url = task.get("index")
    user, password = (os.environ.get("CAISSON_PIP_" + name, "") for name in ("USER", "PASSWORD"))
    if not url or not (user or password):
        return url
    return url.replace("://", "://%s%s@" % (user, ":" + password if password else ""), 1)


def places_of(task, index_option, insecure_option):
    """Where packages are: options of the installer, and the file of certificates that it has to trust (None: its own)."""
    index, certs = index_of(task), None
    url = urllib.parse.urlsplit(index or "")
    options = [index_option, index] if index else ["--no-index"]
    if url.scheme == "http":
        options += [insecure_option, url.hostname]
    elif index and os.path.exists(certs_of(task)):
        certs = certs_of(task)
    if task.get("dir"):
        options += ["--find-links", task["dir"]]
    return options, certs


class Pip:
    wheels, builds, forbidden = ["--only-binary", ":all:"], ["--prefer-binary"], ("conflict",)

    def __init__(self, task, image):
        self.task, self.image = task, image
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
        places, certs = places_of(self.task, "--index-url", "--trusted-host")
        return options + places + (["--cert", certs] if certs else [])

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

    def entry(self, item):
        info, meta = item["download_info"], item["metadata"]
        url = info["url"]
        digest = info.get("archive_info", {}).get("hashes", {}).get("sha256")
        old = info.get("archive_info", {}).get("hash", "")
        if not digest and old.startswith("sha256="):
            digest = old[len("sha256="):]
        if not digest and url.startswith("file://"):
            digest = sha256(urllib.parse.unquote(urllib.parse.urlsplit(url).path))
        requires = meta.get("requires_dist", [])
        return {"name": canonical(meta["name"]), "version": meta["version"], "sha256": digest or "",
                "built": not url.split("#")[0].endswith(".whl"), "needs": names_of(requires), "uses": active_names(requires)}

    def resolve(self, requirements, constraints, only):
        """The packages to install beside those of the image, which pip knows itself. The prefix: not for a user's home."""
        report = HOME + "/report.json"
        args = ["--dry-run", "--prefix", HOME + "/prefix", "--report", report, *only]
        if not self.image.all:
            args += ["--ignore-installed"]
        if self.task.get("upgrade"):
            args += ["--upgrade"]
        self.run(*args, "--constraint", write_lines("constraints.txt", constraints), *requirements)
        with open(report) as f:
            return [self.entry(item) for item in json.load(f)["install"]]

    def install(self, pinned, only):
        self.run("--no-deps", "--require-hashes", "--no-compile", "--target", SITE, *only, "-r", pinned)


class Uv:
    wheels, builds, forbidden = ["--only-binary", ":all:"], [], ("conflict", "version_not_found")

    def __init__(self, task, image):
        self.task, self.image, self.says = task, image, self.version()

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
        places, certs = places_of(self.task, "--default-index", "--allow-insecure-host")
        options += places
        if certs:
            env["SSL_CERT_FILE"] = certs
        status, log = run(["uv", "pip", *args, *options], env=env)
        if status or "Skipping unsafe file name" in log:  # uv leaves such a file out and continues; pip does not
            raise failed(re.sub(r"\n\s+", " ", log), UV_MEANINGS)
        return log

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
                "needs": needs.get(name, set()), "uses": needs.get(name, set())}

    def needs(self, pins, only):
        """Which package needs which, as uv notes it beside each: "a==1  # via b, c". Nothing, if the index lacks a
        package that the image has."""
        needs, out = {}, self.fresh("needs.txt")
        try:
            self.run("compile", pins, *only, "--format", "requirements.txt", "--no-header", "--annotation-style", "line", "-o", out)
        except Failed:
            return needs
        with open(out) as f:
            for name, via in re.findall(r"^([\w.-]+)==\S+\s+# via (.*)$", f.read(), re.M):
                for other in via.split(", "):
                    needs.setdefault(canonical(other), set()).add(canonical(name))
        return needs

    @staticmethod
    def fresh(name):
        """The path of a new file: uv prefers the versions of an old one."""
        if os.path.exists(HOME + "/" + name):
            os.unlink(HOME + "/" + name)
        return HOME + "/" + name

    def resolve(self, requirements, constraints, only):
        """The packages to install beside those of the image. uv finds the metadata of these in a directory of their own, so
        that it needs no access to the image's. Its first report has no hashes."""
        import tomllib
        have, out = HOME + "/image", self.fresh("pylock.toml")
        os.makedirs(have, exist_ok=True)
        self.image.write_metadata(have)
        args = ["--dry-run", "--target", have, "-r", write_lines("requirements.txt", requirements),
                "--constraint", write_lines("constraints.txt", constraints), *only]
        if self.task.get("upgrade"):
            args += [word for name in sorted(names_of(self.task["requirements"])) for word in ("--upgrade-package", name)]
        found = re.findall(r"^ [+~] ([\w.-]+)==(\S+)", self.run("install", *args), re.M)
        if not found:
            return []
        pins = write_lines("pins.txt", ["%s==%s" % f for f in found])
        self.run("compile", pins, *only, "--no-deps", "--generate-hashes", "--format", "pylock.toml", "-o", out)
        with open(out, "rb") as f:
            items = tomllib.load(f)["packages"]
        needs = self.needs(pins, only)
        return [self.entry(item, needs) for item in items]

    def install(self, pinned, only):
        self.run("install", "--no-deps", "--require-hashes", "--link-mode", "copy", "--target", SITE, *only, "-r", pinned)
        if os.path.exists(SITE + "/.lock"):
            os.unlink(SITE + "/.lock")


NOT_MET = ("package_not_found", "version_not_found", "conflict")


def resolve(tool, requirements, constraints, only):
    """The closure of the requirements, with all packages of the image that would not work beside it."""
    image, joined, versions = tool.image, {}, {}
    while True:
        try:
            packages = tool.resolve(requirements + sorted(j[0] for j in joined.values()), constraints, only)
        except Failed as error:
            if joined and error.code in NOT_MET:
                raise contradiction(image, joined, versions, error)
            raise
        versions = {p["name"]: p["version"] for p in packages}
        more = {n: j for n, j in image.joining(versions).items() if n not in joined or (joined[n][0] == n and j[0] != n)}
        if not more:
            return packages
        joined.update(more)


def contradiction(image, joined, versions, error):
    """The packages of the image joined a request that can be met without them, and cannot be met with them."""
    said = canonical(str(error) + error.log)
    name = next((n for n in sorted(joined) if re.search(r"\b%s\b" % re.escape(n), said)), min(joined))
    _, other, reason = joined[name]
    return Failed("conflict", "%s %s does not work with %s %s of the image, which %s; and no other %s fits" % (
        other, versions[other], name, image.version(name), reason, name), error.log)


def resolve_request(tool, only):
    """The closure of the request, and the requirements that it is for."""
    task = tool.task
    try:
        return resolve(tool, task["requirements"], task["constraints"], only), task["requirements"]
    except Failed as error:
        if error.code not in tool.forbidden or not task["constraints"]:
            raise
    return resolve(tool, task["recalled"], [], only), task["recalled"]


def report(requirements, image, packages):
    """The closure as the front gets it: the packages to install, then those of the image that they use."""
    names = {p["name"] for p in packages}
    used = image.used(names_of(requirements).union(*(p.pop("uses") for p in packages)), names)
    for p in packages:
        p["needs"] = sorted((p["needs"] & (names | set(used))) - {p["name"]})
        if image.version(p["name"]) not in (None, p["version"]):
            p["replaces"] = image.version(p["name"])
    return packages + [{"name": n, "version": used[n], "image": True} for n in sorted(used)]


def install_python(task):
    image = ImagePackages()
    tools = [tool(task, image) for tool in (Uv, Pip) if tool.is_here()]
    if not tools:
        old = Pip.version()
        raise Failed("no_installer", "the image has python %d.%d, and neither uv (for 3.11 and later) nor pip for it" % sys.version_info[:2] if not old else
                     "the pip %s of the image is too old" % old)
    step("Resolving %s" % ", ".join(task["requirements"])[:100])
    tool, only = tools[0], tools[0].wheels
    try:
        packages, requirements = resolve_request(tool, only)
    except Failed as error:
        if error.code not in NOT_MET or not task.get("build"):
            raise
        tool, only = tools[-1], tools[-1].builds
        packages, requirements = resolve_request(tool, only)
    confirm(report(requirements, image, packages), tool.says, requirements != task["requirements"])
    if not packages:
        return
    tool.install(write_lines("pinned.txt", ["%s==%s --hash=sha256:%s" % (p["name"], p["version"], p["sha256"])
                                            for p in packages]), only)
    step("Compiling")
    # Valid without a check of the source's time, which is not kept.
    subprocess.call([sys.executable, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", SITE],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# ---- the conversation ---------------------------------------------------------------------------------------------------

def confirm(packages, installer, recalled):
    say("closure", packages=packages, installer=installer, recalled=recalled)
    Steps.total = sum(1 for p in packages if not p.get("image")) + 2
    if sys.stdin.readline().strip() != "go":
        sys.exit(0)


def main():
    task = json.loads(sys.argv[1])
    try:
        for path in (HOME, SITE):
            os.makedirs(path)
        add_own_certs(task)
        install_python(task)
        say("done")
    except Failed as error:
        say("error", code=error.code, message=str(error), log=error.log)
    except OSError as error:
        say("error", code="too_big" if error.errno == 28 else "install_failed", message=str(error), log="")


if __name__ == "__main__":
    main()
