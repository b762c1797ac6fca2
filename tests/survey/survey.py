#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""survey.py - Install and import the packages that people use most, each in a fresh sandbox of a daemon of its own.

The names are in python.txt and javascript.txt. A package counts as installed when the daemon says so, and as imported when its
modules can be imported in that sandbox (imports.py, imports.js); a package without a module is judged by its program or its
metadata, and the table says so. The indexes are those that the daemon finds, the limits are its defaults.

A package that fails is tried once more, alone, and then without Caisson (outside.py). If it fails there too, the table lists it
with both reasons, and the goal is one of the other packages.

Results are kept in BUILD/packages-survey.json: a run of everything begins a new file, and a run of some (--only, --language)
completes the last one. With --output they are written to docs/packages-survey.md, and in short to docs/packages.md.
"""
import argparse
import concurrent.futures
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests" / d) for d in ("lib", "bench")]

import chart  # noqa: E402
from daemon import BareDaemon  # noqa: E402
from outside import alike, outside, said  # noqa: E402
from process import unique  # noqa: E402

GOAL = 0.98
LANGUAGES = {"python": ("PyPI", "imports.py"), "javascript": ("npm", "imports.js")}
FLAGS = ("--pool", "1", "--log-level", "error", "--package-rate", "100000", "--package-keep", "10s")
INSTALL_SECONDS, IMPORT_SECONDS = 700, 100
TRIES = 3
LATER = {"packages_busy", "index_unavailable", "index_timeout"}  # not a fault of the package


def names_of(language):
    """(name, hint) of each line."""
    lines = (HERE / (language + ".txt")).read_text().splitlines()
    return [(line.split() + [""])[:2] for line in lines if line and not line.startswith("#")]


def error_of(r):
    try:
        e = r.json["error"]
        return e["code"], "%s: %s" % (e["code"], e["message"])
    except (ValueError, KeyError):
        return "", "status %d" % r.status


def install(daemon, box, language, name):
    """The error, or nothing; and whether the image has the package already."""
    for last in range(TRIES):
        r = daemon.request("POST", box + "/packages", {"packages": [name], "language": language}, timeout=INSTALL_SECONDS)
        if r.status == 200:
            return "", any(p["name"] == name and p["origin"] == "image" for p in r.json["packages"])
        code, text = error_of(r)
        if code not in LATER:
            break
        time.sleep(5 * (last + 1))
    return text, False


def imported(daemon, box, language):
    """The findings of the code in the sandbox."""
    code = (HERE / LANGUAGES[language][1]).read_text()
    r = daemon.request("POST", box + "/execute", {"code": code, "language": language, "timeout": IMPORT_SECONDS}, timeout=IMPORT_SECONDS + 60)
    if r.status != 200:
        return {"error": error_of(r)[1]}
    return said(r.json["stdout"]) or {"error": "%s: %s" % (r.json["status"], (r.json["stderr"] or r.json["stdout"])[-300:])}


def survey(daemon, language, name, hint):
    box = "/v1/sandboxes/" + unique("survey")
    began = time.monotonic()
    row = {"installed": False, "imported": False, "how": "", "version": "", "reason": "", "image": False}
    try:
        r = daemon.request("POST", "/v1/sandboxes", {"name": box.rsplit("/", 1)[1], "env": {"SURVEY_NAME": name, "SURVEY_HINT": hint}})
        row["reason"], row["image"] = install(daemon, box, language, name) if r.status == 201 else (error_of(r)[1], False)
        if not row["reason"]:
            found = imported(daemon, box, language)
            row.update(installed=True, imported="error" not in found, how=found.get("how", ""), version=found.get("version", ""), reason=found.get("error", ""))
        daemon.request("DELETE", box)
    except OSError as e:
        row["reason"] = "the daemon did not answer: %s" % e
    return {**row, "seconds": round(time.monotonic() - began, 1)}


class Survey:
    """One run: a daemon, and the jobs (language, name, hint)."""

    def __init__(self, args, directory, results):
        self.args, self.results, self.lock = args, results, threading.Lock()
        self.jobs = [(language, name, hint) for language in LANGUAGES if args.language in ("", language)
                     for name, hint in names_of(language) if not args.only or name in args.only]
        unknown = set(args.only) - {name for _, name, _ in self.jobs}
        if unknown:
            sys.exit("survey: not in the lists: %s" % " ".join(sorted(unknown)))
        self.daemon = BareDaemon(directory, *FLAGS, binary=args.build / "caisson", log_format=None)

    def row(self, job):
        return self.results[job[0]][job[1]]

    def keep(self, job, row):
        with self.lock:
            self.results.setdefault(job[0], {})[job[1]] = row
            self.args.results.write_text(json.dumps(self.results, indent=1))
            print("survey: %-4s %-45s %-18s %6.1f s  %s" % ("ok" if row["imported"] else "FAIL", job[1], row["version"], row["seconds"], row["reason"][:300]), flush=True)

    def again(self, job, indexes):
        """A package that failed: alone, then without Caisson."""
        row = {**survey(self.daemon, *job), "alone": True}
        if not row["imported"]:
            row["outside"] = outside(*job, indexes)
        self.keep(job, row)

    def run(self):
        self.daemon.launch()
        try:
            self.daemon.wait_ready()
            about = self.daemon.request("GET", "/health").json["packages"]
            with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
                list(pool.map(lambda job: self.keep(job, survey(self.daemon, *job)), self.jobs))
            for job in self.jobs:
                if not self.row(job)["imported"]:
                    self.again(job, {language: about[language]["index"] for language in LANGUAGES})
        finally:
            self.daemon.p.terminate()
            self.daemon.p.wait(60)
        return [self.row(job) for job in self.jobs]


def fails_everywhere(row):
    return not row["imported"] and all(row.get("outside", {"": ""}).values())


# ---- the documents ---------------------------------------------------------------------------------------------------


def cell(text):
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")[:220].strip()


def counts(index, rows):
    """A line of the summary."""
    installed, imported = (sum(r[key] for r in rows) for key in ("installed", "imported"))
    everywhere = sum(map(fails_everywhere, rows))
    return "| %s | %d | %d | %d | %d | %.1f %% | %.0f s |" % (index, len(rows), installed, imported, everywhere, 100 * imported / max(1, len(rows) - everywhere),
                                                        statistics.median(r["seconds"] for r in rows))


def elsewhere(row):
    """How a package that failed fares without Caisson."""
    words = {how: "works" if not reason else "the same" if alike(reason, row["reason"]) else cell(reason) for how, reason in row.get("outside", {}).items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join("%s: %s" % pair for pair in words.items())


def failures(rows):
    """The lines of the packages that failed. rows: (index, name, row)."""
    lines = ["", "| failed | index | step | reason | without Caisson |", "|---|---|---|---|---|"]
    for index, name, r in rows:
        lines.append("| %s | %s | %s | %s | %s |" % (name, index, "import" if r["installed"] else "install", cell(r["reason"]), elsewhere(r)))
    return lines


def summary(results):
    lines = ["%d processors, Linux %s, %s; image `host`: %s, node %s." % (
        os.cpu_count(), platform.release(), ", ".join(results["runs"]), program("/usr/bin/python3", "--version"), program("node", "--version")), "",
        "| index | packages | installed | imported | fail everywhere | imported, of the others | median time |", "|---|---:|---:|---:|---:|---:|---:|"]
    failed, notes = [], []
    for language, (index, _) in LANGUAGES.items():
        rows = {name: results.get(language, {})[name] for name, _ in names_of(language) if name in results.get(language, {})}
        if not rows:
            continue
        lines.append(counts(index, list(rows.values())))
        hows = [r["how"] for r in rows.values() if r["imported"]]
        notes.append("%s: %d by import, %d by a command, %d by metadata; the image had %d already." % (
            index, *(hows.count(h) for h in ("import", "command", "metadata")), sum(r["image"] for r in rows.values())))
        alone = [name for name, r in rows.items() if r["imported"] and r.get("alone")]
        if alone:
            notes.append("Imported only when tried again, alone: %s." % ", ".join(alone))
        failed += [(index, name, r) for name, r in rows.items() if not r["imported"]]
    lines += ["", "The column \"imported\" counts all ways in which a package was judged. " + " ".join(notes)]
    return lines + failures(failed) if failed else lines


def program(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def table(results):
    lines = []
    for language, (index, _) in LANGUAGES.items():
        lines += ["", "## " + index, "", "| package | version | installed | imported | seconds | reason |", "|---|---|---|---|---:|---|"]
        for name, _ in names_of(language):
            r = results.get(language, {}).get(name)
            if r:
                how = "yes" if r["how"] == "import" else "by its " + r["how"]
                how = how if r["imported"] else "no, as without Caisson" if fails_everywhere(r) else "no"
                lines.append("| %s | %s | %s | %s | %.1f | %s |" % (name, cell(r["version"]), "yes" if r["installed"] else "no", how, r["seconds"], cell(r["reason"])))
    return lines


HEAD = """# Survey of packages

`make packages-survey` installs and imports each of these packages in a fresh sandbox of the image `host`, with the
daemon's default limits, and writes this table. `tests/survey` has the lists, with their sources, and the code. "By its
command" is a package that is a program: its command ran. "By its metadata" is a package that has no code, or none that
the language can load by itself: its metadata was found. [Packages](packages.md#survey) has the summary.
"""


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--only", default="", help="names, with commas or spaces between them")
    p.add_argument("--language", default="", choices=["", *LANGUAGES])
    p.add_argument("--jobs", type=int, default=3, help="sandboxes at once (default 3; the daemon fetches for 4 at most)")
    p.add_argument("--output", type=Path, help="the directory of the documents")
    args = p.parse_args()
    args.build, args.only = args.build.resolve(), re.split(r"[\s,]+", args.only.strip()) if args.only.strip() else []
    args.results = args.build / "packages-survey.json"
    whole = not args.only and not args.language
    results = json.loads(args.results.read_text()) if args.results.exists() and not whole else {}
    day = time.strftime("%Y-%m-%d")
    results["runs"] = [*(r for r in results.get("runs", []) if r != day), day]
    with tempfile.TemporaryDirectory(prefix="caisson-survey-") as directory:
        done = Survey(args, directory, results).run()
    chart.publish(args.output and args.output / "packages.md", "survey", summary(results))
    if args.output:
        (args.output / "packages-survey.md").write_text(HEAD + "\n".join(table(results)) + "\n")
    good, judged = sum(r["imported"] for r in done), len(done) - sum(map(fails_everywhere, done))
    print("survey: %d of %d installed and imported, and %d more fail without Caisson too; the goal is %.0f %%" % (good, judged, len(done) - judged, 100 * GOAL))
    return 0 if good >= GOAL * judged else 1


if __name__ == "__main__":
    sys.exit(main())
