# SPDX-License-Identifier: Apache-2.0
"""hooks.py - Facts about this daemon for schemathesis, so that its requests get beyond 404.

schemathesis loads this file ($SCHEMATHESIS_HOOKS) in an interpreter of its own. Valid names and ids of its requests are
replaced by those of an existing sandbox, execution and process; requests that end a sandbox or a process get one that may
end. Requests that are meant to be refused stay unchanged.
"""
import contextlib
import json
import os
import urllib.error
import urllib.request

import schemathesis
from schemathesis.core.parameters import ParameterLocation

BASE = os.environ["CAISSON_FUZZ_URL"]
NAME, VICTIM, NOBODY = "fuzz", "victim", "nobody"
ENDS_SANDBOX = {"remove_sandbox", "stop_sandbox", "kill_sandbox", "extend_sandbox"}  # the last one: in a second, if the request asks for it
ENDS_PROCESS = {"remove_process", "signal_process", "write_stdin"}
ENDLESS = {"watch_files"}  # a good answer would never end: it gets a sandbox that does not exist
SECONDS = {"timeout": 600, "grace_seconds": 300}


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE + path, data, {"Content-Type": "application/json"} if data else {}, method=method)
    with urllib.request.urlopen(request, timeout=60) as r:
        return json.loads(r.read() or b"null")


def post(path, body):
    return ask("POST", path, body)


def renew(name):
    with contextlib.suppress(urllib.error.HTTPError):
        ask("DELETE", "/v1/sandboxes/" + name)
    post("/v1/sandboxes", {"name": name})


@schemathesis.serializer("application/x-tar")
def archive(ctx, value):
    """Arbitrary bytes: the daemon must find out that they are not an archive."""
    return value if isinstance(value, bytes) else str(value).encode()


class World:
    """Existing objects; made with the first request that needs one, and again when they are gone."""
    execution = process = None

    @classmethod
    def build(cls):
        post("/v1/sandboxes", {"name": NAME})
        cls.execution = post("/v1/sandboxes/%s/shell" % NAME, {"script": "echo one; echo two >&2; echo 3 > file"})["execution_id"]
        cls.process, cls.ended = cls.start("cat"), cls.start("true")

    ended = victim = None

    @classmethod
    def start_victim(cls):
        """A process that may end; the previous one is ended, because the number of processes is limited."""
        if cls.victim:
            with contextlib.suppress(urllib.error.HTTPError):
                ask("DELETE", "/v1/sandboxes/%s/processes/%s" % (NAME, cls.victim))
        cls.victim = cls.start("cat")
        return cls.victim

    @staticmethod
    def start(cmd):
        return post("/v1/sandboxes/%s/processes" % NAME, {"cmd": cmd, "stdin": True})["process_id"]


def aim(case, name):
    """The value for a path parameter of a case, or None to leave it unchanged."""
    what = case.operation.definition.raw.get("operationId")
    if name == "name":
        if what in ENDLESS:
            return NOBODY
        if what in ENDS_SANDBOX:
            renew(VICTIM)
        return VICTIM if what in ENDS_SANDBOX else NAME
    if name == "session_id":  # schemathesis reuses names from answers, and one of the routes ends the session that it gets
        renew(VICTIM)
        return VICTIM
    if name == "process_id" and what == "wait_process":
        return World.ended
    if name == "process_id":
        return World.start_victim() if what in ENDS_PROCESS else World.process
    return World.execution if name == "execution_id" else None


@schemathesis.hook
def before_call(ctx, case, kwargs):
    if World.process is None:
        World.build()
    meta = case.meta
    if case.path_parameters and not (meta and meta.is_negative_at(ParameterLocation.PATH)):
        for name in list(case.path_parameters):
            case.path_parameters[name] = aim(case, name) or case.path_parameters[name]
    # The test cannot wait as long as a valid request may ask for.
    if isinstance(case.body, dict):
        for key, most in SECONDS.items():
            if type(case.body.get(key)) is int and 1 < case.body[key] <= most:
                case.body[key] = 1


@schemathesis.check
def code_conformance(ctx, response, case):
    """The code of an error must be one that the operation declares for that status. Methods that the path does not have are left out."""
    declared = case.operation.definition.raw["x-errors"]
    if response.status_code < 400 or response.status_code in (405, 416) or case.method.upper() != case.operation.method.upper():
        return
    code = response.json()["error"]["code"]
    known = declared.get(str(response.status_code), [])
    assert code in known, "%d %s is not declared: %s" % (response.status_code, code, known)
