#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""api-coverage.py - Compare the answers in the OpenAPI document with the answers that the tests saw, both ways.

usage: tools/api-coverage.py OPENAPI.json DIR

DIR has the answers of daemons while the tests ran with CAISSON_COVERAGE=DIR (tests/serve/serve_lib.py): lines of
[method, path, status, code]. Every (operation, status, code) of the document must have been seen, and every seen one must be
in the document. Answers that a test cannot cause from outside are in UNSEEN, with the reason; a reason for an answer that
the document does not have is an error too.
"""
import fnmatch
import json
import re
import sys
from pathlib import Path

# (operation id, status, code): the reason why no test causes it. All three may be patterns.
UNSEEN = {
    **{(op, status, code): "takes a fetcher and minutes: tests/hostile/test_hostile_packages.py, tests/unit/front/packages"
       for op in ("pip_install", "install_packages") for status, code in (
           ("403", "package_not_allowed"), ("403", "package_not_pinned"), ("403", "too_many_packages"), ("404", "package_not_found"),
           ("409", "package_conflict"), ("409", "session_ended"), ("413", "package_too_big"), ("422", "*_*"), ("429", "package*"),
           ("501", "no_installer"), ("50[234]", "*"))},
    ("install_packages", "403", "policy_refused"): "the same rule as pip_install's, checked by the same function (test_policy.py)",
    ("install_packages", "403", "package_*"): "the same rules as pip_install's, checked by the same function",
    ("list_artifacts", "429", "busy"): "the executions that fill a sandbox push out the requested one",
    ("*", "409", "sandbox_ended"): "a race that a test can only cause in a call that waits for its client (test_every_error.py)",
    ("*", "422", "language_unavailable"): "needs an image without an interpreter",
    ("search_output", "410", "execution_gone"): "the execution must be dropped while it is searched, which takes milliseconds",
    ("*", "503", "draining"): "idle connections are closed by then: only a request at that very moment gets it",
    ("make_directory", "507", "disk_full"): "a directory takes no space of a disk in memory",
    ("run_*", "503", "not_recorded"): "on a full disk the cell cannot be recorded either, and that comes first",
    ("run_*", "409", "session_ended"): "only the end of the daemon ends such a sandbox",
    ("*workspace", "503", "workspace_failed"): "takes a workspace store that is killed in that moment (test_workspaces_life.py, slow)",
    ("create_workspace", "429", "too_many_workspaces"): "takes a thousand workspaces",
    ("*_workspace", "409", "workspace_changing"): "a race with code that shrinks a file while it is read",
    ("*_workspace", "409", "session_ended"): "a race with the end of a cell",
    ("*_workspace", "404", "no_such_workspace"): "a workspace that a sandbox uses cannot be removed",
    ("diff_workspace", "413", "workspace_full"): "a diff makes nothing",
    ("diff_workspace", "422", "workspace_unreadable"): "the same reader as commit's",
    ("run_*", "409", "workspace_busy"): "the same function as create_sandbox's",
    ("*", "422", "quota_unavailable"): "as root the Linux kernel enforces quotas, unless the machine has no loop devices",
    ("*", "400", "bad_request"): "HTTP itself: refused before a route is known, or by test_errors.py for one of them",
}
# Faults of the daemon or its machine, which any operation may answer with (see the document's description).
FAULTS = {("500", "internal"), ("503", "out_of_memory"), ("503", "sandbox_failed"), ("503", "kernel_failed"), ("502", "file_call_ended"),
          ("504", "file_call_timeout"), ("500", "spool_failed"), ("500", "file_error"), ("503", "image_pull_failed"), ("507", "image_pull_failed")}
# HTTP errors, which any path may answer with.
HTTP = {"408", "413", "414", "417", "431", "501", "505"}


def documented(doc):
    """{(id, status, code)}; a success has no code."""
    found = set()
    for operations in doc["paths"].values():
        for op in operations.values():
            if not op["x-errors"]:
                continue  # a service in a sandbox answers
            for status in op["responses"]:
                codes = op["x-errors"].get(status, [""])
                found |= {(op["operationId"], status, code) for code in codes}
    return found


def patterns(doc):
    """[(method, expression of the path, id)]; a path without parameters goes before one with."""
    rows = [(method.upper(), re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) + "$"), op["operationId"], path.count("{"))
            for path, operations in doc["paths"].items() for method, op in operations.items() if op["x-errors"]]
    return sorted(rows, key=lambda r: r[3])


def answered(doc, where):
    rows, found = patterns(doc), {}
    for file in sorted(Path(where).glob("*.jsonl")):
        for line in file.read_text().splitlines():
            method, path, status, code = json.loads(line)
            wanted = "GET" if method == "HEAD" else method
            code = "bad_request" if (status, code) == (400, "") else code  # a 400 without a code
            for m, expression, name, _ in rows:
                if m == wanted and expression.match(path):
                    found.setdefault((name, str(status), code), path)
                    break
    return found


def excused(entry):
    return next((k for k in UNSEEN if all(fnmatch.fnmatchcase(a, b) for a, b in zip(entry, k))), None)


def is_own(entry):
    """Whether the document must have this answer: it is not a fault, an end of a connection or an HTTP error."""
    _, status, code = entry
    return (status, code) not in FAULTS | {("404", "not_found")} and not (code == "" and status in ("0", "499")) and not (status in HTTP and code != "not_implemented")


def main(document, where):
    doc = json.loads(Path(document).read_text())
    promised, seen = documented(doc), answered(doc, where)
    wrong = ["never seen:     %s %s %s" % e for e in sorted(promised - set(seen)) if not excused(e)]
    wrong += ["not documented: %s %s %s (%s)" % (*e, seen[e][:80]) for e in sorted(set(seen) - promised) if is_own(e)]
    used = {excused(e) for e in promised}
    wrong += ["unused reason: %s %s %s" % k for k in UNSEEN if k not in used]
    print("\n".join(wrong + ["%d of %d answers of the document were seen, %d are excused" % (
        len(promised & set(seen)), len(promised), sum(1 for e in promised - set(seen) if excused(e)))]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
