# SPDX-License-Identifier: Apache-2.0
"""case.py - The table of everyday work: what a case is, and how the outcome of a step is compared with what a user expects.

A case is plain data: a name, and the steps that an agent takes in one fresh sandbox. Variables and files stay from step to step. A
step goes through a door (doors.py): a language, the shell, a request, the command line, MCP, the Python library. Everything that a
step names beside its code is either a field of the request (FIELDS) or an expectation (WANTED):

    Case("variables stay", python("x = 41"), python("x + 1", result="42"), quick=True)

The common indentation of code that begins with an empty line is removed, so that it can stand indented in a table.

Without other expectations, a step has to succeed with exit code 0. A text that is expected "in" something may be a tuple of texts.
"""
import re
import textwrap
from dataclasses import dataclass, field

FIELDS = {"timeout", "stdin", "env", "cwd", "body", "headers", "until"}

WANTED = {
    "out": "standard output, exactly",
    "shows": "texts in standard output, or in the text of an answer",
    "matches": "a regular expression that is found in standard output",
    "err": "texts in standard error",
    "lacks": "texts that are neither in standard output nor in standard error",
    "result": "the text of the last expression, exactly",
    "error": "texts in 'Name: value' of the exception",
    "traceback": "texts in the traceback",
    "mime": "media types among the displays and the result",
    "no_mime": "media types that are not among them",
    "pictures": "the number of PNG images among the displays and the result",
    "code": "exit code, 0 unless given",
    "status": "ok, error, signal, timeout, limit; follows from the exit code unless given",
    "cause": "kind of the limit or event that ended it",
    "hint": "texts in the hint",
    "state": "kept, reset or discarded",
    "truncated": "whether output was cut",
    "http": "status of an HTTP answer, 200 unless given",
    "bytes": "the body of an HTTP answer, exactly",
    "json": "members of the JSON answer, with these values",
    "files": "{path: content} of files in the sandbox after the step",
}


@dataclass(frozen=True)
class Step:
    door: str
    what: object
    fields: dict
    want: dict


@dataclass(frozen=True)
class Case:
    name: str
    steps: tuple
    needs: tuple = ()     # programs that the image must have
    modules: tuple = ()   # python modules; distributions that the image lacks are installed
    npm: tuple = ()       # packages of npm
    index: tuple = ()     # languages whose package index has to answer, because the code itself installs
    spec: dict = field(default_factory=dict)  # of the sandbox: memory_mib, egress, env
    image: str = ""       # only for this image
    quick: bool = False   # in `make test`
    group: str = ""       # the module of the table

    def __init__(self, name, *steps, **more):
        unknown = set(more) - {"needs", "modules", "npm", "index", "spec", "image", "quick"}
        assert not unknown and steps, (name, unknown)
        assert re.fullmatch(r"[a-z0-9][ -~]*", name) and " - " not in name, "the name is a part of a test's name: %r" % name
        for key in ("needs", "modules", "npm", "index"):
            more[key] = as_tuple(more.get(key, ()))
        for key, value in {"name": name, "steps": steps, "spec": {}, "image": "", "quick": False, "group": "", **more}.items():
            object.__setattr__(self, key, value)


# The distribution of a module, where the names differ.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "PIL": "pillow", "bs4": "beautifulsoup4", "yaml": "pyyaml", "cv2": "opencv-python-headless",
                 "dateutil": "python-dateutil", "docx": "python-docx", "attr": "attrs", "pptx": "python-pptx", "dotenv": "python-dotenv", "jwt": "pyjwt"}


def as_tuple(value):
    return (value,) if isinstance(value, (str, bytes)) else tuple(value)


def step(door, what, /, **words):
    unknown = set(words) - FIELDS - set(WANTED)
    assert not unknown, "%s: unknown expectation %s" % (what, unknown)
    fields = {k: v for k, v in words.items() if k in FIELDS}
    if isinstance(what, str) and what.startswith("\n"):
        what = textwrap.dedent(what[1:])
    return Step(door, what, fields, {k: v for k, v in words.items() if k in WANTED})


# ---- doors, as the tables name them --------------------------------------------------------------------------


def python(code, /, **words):
    return step("python", code, **words)


def bash(code, /, **words):
    """In the shell that the sandbox keeps."""
    return step("bash", code, **words)


def javascript(code, /, **words):
    return step("javascript", code, **words)


def r(code, /, **words):
    return step("r", code, **words)


def shell(script, /, **words):
    """A script in a shell of its own."""
    return step("shell", script, **words)


def program(*argv, **words):
    return step("program", argv, **words)


def background(*argv, **words):
    """A process that goes on; until: wait for this text in its output."""
    return step("background", argv, **words)


def http(method, path, /, **words):
    """A request below the sandbox's own path; fields body and headers."""
    return step("http", (method, path), **words)


def install(*packages, **words):
    """Packages over the HTTP API; code=1 if the daemon has to refuse."""
    return step("install", packages, **words)


def cli(*argv, **words):
    """The command line on the user's machine. {box} is the sandbox's name, {image} the image, {dir} a directory of the case."""
    return step("cli", argv, **words)


def mcp(tool, arguments, /, **words):
    return step("mcp", (tool, arguments), **words)


def sdk(code, /, **words):
    """A program of the user with the Python library; BOX and IMAGE are names in it."""
    return step("sdk", code, **words)


# ---- judging ----------------------------------------------------------------------------------------------------


class Outcome:
    """All that a user sees of a step. Doors set what they have."""

    def __init__(self, **seen):
        self.out = self.err = self.result = self.error = self.traceback = self.cause = self.hint = self.state = ""
        self.code, self.status, self.mime, self.pictures, self.truncated = 0, None, set(), 0, False
        self.http, self.bytes, self.json = 200, b"", None
        for key, value in seen.items():
            assert hasattr(self, key), key
            setattr(self, key, value)
        if self.status is None:
            self.status = "error" if self.code else "ok"

    def __repr__(self):
        hidden = {"json", "http", "traceback"} if self.error or self.out or self.err else {"traceback"}
        seen = {k: v for k, v in vars(self).items() if v not in ("", b"", set(), None, False, 0) and k not in hidden}
        return "\n".join("    %-9s %s" % (k, shorten(v)) for k, v in seen.items())


def shorten(value, size=1500):
    text = repr(value)
    return text if len(text) <= size else text[:size // 2] + " ... " + text[-size // 2:]


def of_result(r):
    """The outcome in an ExecResult of the daemon."""
    bundles = [d["data"] for d in r.get("displays") or ()] + [r.get("result") or {}]
    error = r.get("error") or {}
    return Outcome(out=r["stdout"], err=r["stderr"], code=r["exit_code"], status=r["status"], cause=r.get("cause") or "", hint=r.get("hint") or "",
                   state=r.get("state") or "", result=(r.get("result") or {}).get("text/plain", ""), truncated=r["truncated"],
                   error="%s: %s" % (error["name"], error["value"]) if error else "", traceback="\n".join(error.get("traceback") or ()),
                   mime={m for b in bundles for m in b}, pictures=sum("image/png" in b for b in bundles), json=r)


def missing(texts, where):
    return [t for t in as_tuple(texts) if t not in where]


def wrong(want, seen):
    """One line for each expectation that is not met. files are the business of the runner."""
    want = {"code": 0, "http": 200, **want}
    want.setdefault("status", "ok" if want["code"] == 0 else "error")
    found = []
    for key, expected in want.items():
        if key in ("out", "result", "code", "status", "cause", "state", "truncated", "http", "bytes", "pictures"):
            if getattr(seen, key) != expected:
                found.append("%s is %s, not %s" % (key, shorten(getattr(seen, key), 400), shorten(expected, 400)))
        elif key in ("shows", "err", "hint", "error", "traceback"):
            value = getattr(seen, {"shows": "out"}.get(key, key))
            found += ["%s lacks %r" % (key, t) for t in missing(expected, value)]
        elif key == "matches" and not re.search(expected, seen.out):
            found.append("out does not match %r" % expected)
        elif key == "lacks":
            found += ["output has %r" % t for t in as_tuple(expected) if t in seen.out or t in seen.err]
        elif key == "mime":
            found += ["no display of type %s" % m for m in missing(expected, seen.mime)]
        elif key == "no_mime":
            found += ["a display of type %s" % m for m in as_tuple(expected) if m in seen.mime]
        elif key == "json":
            found += ["%s is %s, not %r" % (k, shorten((seen.json or {}).get(k), 400), v) for k, v in expected.items()
                      if (seen.json or {}).get(k) != v]
    return found
