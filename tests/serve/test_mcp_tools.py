# SPDX-License-Identifier: Apache-2.0
"""test_mcp_tools.py - The tools as a model uses them, and their answers, in both eras."""
import base64
import http.client
import json
import re

import pytest

from mcp_lib import Legacy, Modern, RpcError
from process import unique, wait_until
from serve_lib import Daemon

DEFAULT = ["execute_code", "execute_python", "run_shell", "read_file", "write_file", "list_files", "read_output", "interrupt"]
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


@pytest.fixture(params=[Legacy, Modern])
def client(request, daemon):
    return request.param(daemon)


@pytest.fixture
def session(daemon):
    name = unique("mcp")
    yield name
    daemon.request("DELETE", "/v1/sandboxes/" + name)


@pytest.fixture(scope="module")
def everything(pytestconfig):
    d = Daemon(pytestconfig.serve_dir, "--tools", "all")
    yield d
    d.stop()


def text(result):
    return "\n".join(b["text"] for b in result["content"] if b["type"] == "text")


# ---- the list --------------------------------------------------------------------------------------------------------


def test_default_tools_are_few_and_described(client):
    tools = client.tools()
    assert list(tools) == DEFAULT
    for t in tools.values():
        assert re.fullmatch(r"[a-z_]{1,64}", t["name"]) and len(t["description"]) > 20 and t["title"]
        assert t["inputSchema"]["type"] == "object" and t["inputSchema"]["additionalProperties"] is False
        assert t["outputSchema"]["type"] == "object"
        assert set(t["annotations"]) == {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        for field in t["inputSchema"]["properties"].values():
            assert field["description"], t
    assert list(client.tools()) == DEFAULT  # and in the same order


def test_seeds_fields(client):
    tools = client.tools()
    assert tools["execute_code"]["inputSchema"]["required"] == ["session_id", "code"]
    assert set(tools["execute_python"]["inputSchema"]["properties"]) == {"code", "timeout"}
    assert set(tools["list_files"]["inputSchema"]["properties"]) >= {"session_id", "path"}


# ---- code ------------------------------------------------------------------------------------------------------------


def test_variables_are_kept(client, session):
    r = client.tool("execute_code", session_id=session, language="python", code="x = 20\nprint('set')")
    assert not r["isError"] and text(r) == "set\n"
    assert r["structuredContent"]["state"] == "kept" and r["structuredContent"]["epoch"] == 0
    r = client.tool("execute_code", session_id=session, language="python", code="x * 2 + 2")
    assert text(r) == "42" and r["structuredContent"]["result"] == "42"


def test_python_once_keeps_nothing(client):
    assert not client.tool("execute_python", code="y = 1")["isError"]
    r = client.tool("execute_python", code="y")
    assert not r["isError"] and "NameError" in text(r) and r["structuredContent"]["exit_code"] == 1 and r["structuredContent"]["ok"] is False


def test_the_same_words_on_every_wire(client, session):
    """Without a language it is python, everywhere."""
    for code, ok in (("6 * 7", True), ("1 / 0", False), ("import sys; sys.exit(2)", False)):
        d = client.daemon
        for r in (d.post("/execute", {"code": code}).json, d.post("/v1/run_python", {"code": code}).json,
                  client.tool("execute_code", session_id=session, code=code)["structuredContent"], client.tool("execute_python", code=code)["structuredContent"],
                  d.post("/v1/run_shell", {"script": "exit %d" % (not ok)}).json):
            assert (r["ok"], r["success"], r["status"], r["exit_code"] == 0) == (ok, ok, "ok" if ok else "error", ok), r


def test_shell_keeps_its_directory(client, session):
    client.tool("run_shell", session_id=session, command="mkdir -p a/b && cd a/b && export K=v")
    assert text(client.tool("run_shell", session_id=session, command="pwd; echo $K")) == "/workspace/a/b\nv\n"


def test_error_has_cause_and_hint(client):
    r = client.tool("execute_python", code="while True: pass", timeout=1)
    assert r["isError"] and r["structuredContent"]["status"] == "timeout" and r["structuredContent"]["cause"] == "wall"
    assert "a longer timeout" in r["structuredContent"]["hint"] and r["structuredContent"]["hint"] in text(r)
    assert "--" not in r["structuredContent"]["hint"]  # there are no options over a wire


def test_a_remedy_takes_nothing_that_is_not_there(client, session):
    """create_sandbox is no tool of the default, and no tool has a field for standard input."""
    names = {t["name"] for t in client.call("tools/list")["tools"]}
    assert "create_sandbox" not in names
    for code in ("b'x' * (4 << 30)", "import urllib.request as r; r.urlopen('https://example.com')"):
        text = client.tool("execute_code", session_id=session, code=code)["content"][0]["text"]
        assert "create_sandbox if it is offered" in text, text
    text = client.tool("execute_code", session_id=session, code="input()")["content"][0]["text"]
    assert "write the answer into the code" in text, text


def test_lost_state_is_reported(client, session):
    client.tool("execute_code", session_id=session, language="python", code="x = 1")
    r = client.tool("execute_code", session_id=session, language="python", code="import os; os._exit(3)")
    assert not r["isError"] and r["structuredContent"]["state"] == "reset" and "variables" in text(r)


def test_pictures_are_pictures(client):
    code = "class P:\n  def _repr_png_(self):\n    import base64\n    return base64.b64decode(%r)\nP()" % base64.b64encode(PNG).decode()
    r = client.tool("execute_python", code=code)
    pictures = [b for b in r["content"] if b["type"] == "image"]
    assert len(pictures) == 1 and pictures[0]["mimeType"] == "image/png" and base64.b64decode(pictures[0]["data"]) == PNG
    assert r["content"][0]["type"] == "text"


def test_long_output_is_cut_and_can_be_read(client, session):
    r = client.tool("execute_code", session_id=session, language="python", code="for i in range(20000): print(i)")
    s = r["structuredContent"]
    assert s["truncated"] and len(s["stdout"]) == 10000 and len(text(r)) < 10400 and "read_output" in text(r)
    got, offset = "", 0
    for _ in range(100):
        part = client.tool("read_output", session_id=session, execution_id=s["execution_id"], offset=offset, limit=65536)
        got += part["content"][0]["text"]
        assert part["structuredContent"]["content"] == part["content"][0]["text"]
        offset = part["structuredContent"]["next_offset"]
        if part["structuredContent"]["complete"]:
            break
    assert got == "".join("%d\n" % i for i in range(20000))


# ---- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, field", [
    ({"language": "python", "code": "1"}, "session_id"),
    ({"session_id": "a", "language": "python"}, "code"),
    ({"session_id": "../x", "language": "python", "code": "1"}, "session_id"),
    ({"session_id": "a", "language": "python", "code": "1", "timeout": 1e9}, "timeout"),
    ({"session_id": "a", "language": "python", "code": "1", "colour": "red"}, "colour"),
    ({"session_id": "a", "language": "cobol", "code": "1"}, "language"),
])
def test_wrong_arguments_are_reported_to_the_model(client, arguments, field):
    r = client.call("tools/call", {"name": "execute_code", "arguments": arguments})
    assert r["isError"] and field in text(r), r


def test_unknown_tool_is_an_error_of_the_protocol(client):
    with pytest.raises(RpcError) as e:
        client.call("tools/call", {"name": "nothing", "arguments": {}})
    assert e.value.code == -32602 and e.value.status == 200


def test_unknown_session_has_a_remedy(client):
    r = client.tool("read_file", session_id="never-was", path="x")
    assert r["isError"] and "no_such_session" in text(r) and "execute_code" in text(r)


# ---- files -----------------------------------------------------------------------------------------------------------


def test_files_there_and_back(client, session):
    r = client.tool("write_file", session_id=session, path="d/e/f.txt", content="häl\0lo\n")
    assert r["structuredContent"] == {"path": "d/e/f.txt", "size": 8, "created": True}
    assert text(client.tool("execute_code", session_id=session, language="python", code="print(ascii(open('d/e/f.txt').read()))")) == "'h\\xe4l\\x00lo\\n'\n"
    client.tool("write_file", session_id=session, path="d/e/f.txt", content="line\n" * 3)
    r = client.tool("read_file", session_id=session, path="d/e/f.txt", offset=5, limit=5)
    assert r["content"][0]["text"] == "line\n" and r["structuredContent"]["next_offset"] == 10 and r["structuredContent"]["truncated"]
    assert r["structuredContent"]["content"] == "line\n"
    r = client.tool("list_files", session_id=session, path="d", recursive=True)
    assert {f["name"] for f in r["structuredContent"]["files"]} == {"e", "e/f.txt"}
    assert "e/f.txt" in text(r)


def test_bytes_and_pictures(client, session):
    client.tool("write_file", session_id=session, path="p.png", content_base64=base64.b64encode(PNG).decode())
    r = client.tool("read_file", session_id=session, path="p.png")
    assert [b["type"] for b in r["content"]] == ["image"] and base64.b64decode(r["content"][0]["data"]) == PNG
    client.tool("write_file", session_id=session, path="b.bin", content_base64=base64.b64encode(b"\xff\x00\xfe").decode())
    r = client.tool("read_file", session_id=session, path="b.bin")
    assert base64.b64decode(r["structuredContent"]["content_base64"]) == b"\xff\x00\xfe"


def test_missing_file(client, session):
    client.tool("write_file", session_id=session, path="a", content="")
    r = client.tool("read_file", session_id=session, path="b")
    assert r["isError"] and "no_such_file" in text(r)
    r = client.tool("write_file", session_id=session, path="c")
    assert r["isError"] and "content" in text(r)


# ---- the whole set -----------------------------------------------------------------------------------------------------


def test_processes(everything):
    c = Modern(everything)
    name = unique("p")
    r = c.tool("start_process", session_id=name, command="while read l; do echo got $l; done; exit 7")
    pid = r["structuredContent"]["process_id"]
    assert r["structuredContent"]["state"] == "running"
    c.tool("process_input", session_id=name, process_id=pid, data="one\n")
    r = c.tool("process_output", session_id=name, process_id=pid, wait_seconds=30)
    assert r["content"][0]["text"] == r["structuredContent"]["content"] == "got one\n" and r["structuredContent"]["state"] == "running"
    at = r["structuredContent"]["next_offset"]
    c.tool("process_input", session_id=name, process_id=pid, data="two\n", close=True)
    seen = ""
    for _ in range(20):
        r = c.tool("process_output", session_id=name, process_id=pid, offset=at, wait_seconds=30)
        seen += r["content"][0]["text"] if r["structuredContent"]["next_offset"] > at else ""
        at = r["structuredContent"]["next_offset"]
        if r["structuredContent"]["complete"]:
            break
    assert seen == "got two\n" and r["structuredContent"]["exit_code"] == 7
    assert [p["process_id"] for p in c.tool("list_processes", session_id=name)["structuredContent"]["processes"]] == [pid]
    r = c.tool("start_process", session_id=name, command="sleep 1000")
    assert not c.tool("stop_process", session_id=name, process_id=r["structuredContent"]["process_id"])["isError"]
    assert c.tool("stop_process", session_id=name, process_id="nothing")["isError"]


def test_sandboxes(everything):
    c = Modern(everything)
    made = c.tool("create_sandbox", memory_mib=64, disk_mib=1, env={"A": "1"})["structuredContent"]
    name = made["session_id"]
    assert len(name) == 32 and made["sandbox"]["spec"]["memory_mib"] == 64
    r = c.tool("execute_code", session_id=name, language="python", code="import os; print(os.environ['A']); x = bytearray(10 ** 9)")
    assert r["isError"] and r["structuredContent"]["cause"] == "memory"
    assert "files are still there" in r["content"][0]["text"] and "files_lost" not in r["structuredContent"]
    r = c.tool("write_file", session_id=name, path="big", content="x" * (2 << 20))
    assert r["isError"] and "2 MiB" in r["content"][0]["text"] and "left of 1 MiB" in r["content"][0]["text"], r
    assert name in [s["session_id"] for s in c.tool("list_sandboxes")["structuredContent"]["sandboxes"]]
    assert c.tool("remove_sandbox", session_id=name)["structuredContent"]["removed"]
    assert c.tool("remove_sandbox", session_id=name)["isError"]


def test_a_sandbox_is_the_same_over_http(everything):
    """Every field of a SandboxSpec is accepted with the same name, and refused with the same message."""
    c = Modern(everything)
    spec = everything.get("/openapi.json").json["components"]["schemas"]
    fields = c.tools()["create_sandbox"]["inputSchema"]["properties"]
    over_http = everything.get("/openapi.json").json["paths"]["/v1/sandboxes"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    over_http = spec[over_http["$ref"].split("/")[-1]] if "$ref" in over_http else over_http
    assert set(fields) - {"session_id"} == set(over_http["properties"]) - {"name", "stream"}  # a tool has progress instead
    assert all(fields[k]["description"] for k in fields)
    made = c.tool("create_sandbox", egress=["Example.COM."], labels={"a": "b"}, pids=50, idle_seconds=60)["structuredContent"]
    assert made["sandbox"]["spec"]["egress"] == ["example.com"] and made["sandbox"]["spec"]["pids"] == 50
    c.tool("remove_sandbox", session_id=made["session_id"])
    for wrong, word in (({"egress": ["10.0.0.1"]}, "10.0.0.1"), ({"secrets": ["NO_SUCH_KEY"]}, "NO_SUCH_KEY"), ({"secrets": "X"}, "secrets")):
        r = c.tool("create_sandbox", **wrong)
        assert r["isError"] and word in r["content"][0]["text"], r


def test_operator_chooses(serve):
    d = serve("--tools", "execute_python,list_sandboxes")
    c = Legacy(d)
    assert list(c.tools()) == ["execute_python", "list_sandboxes"]
    with pytest.raises(RpcError):
        c.call("tools/call", {"name": "execute_code", "arguments": {}})


# ---- resources -------------------------------------------------------------------------------------------------------


def test_resources_of_a_session(client, session):
    client.tool("write_file", session_id=session, path="dir/a ü?.csv", content="1,2\n")
    client.tool("write_file", session_id=session, path="b.bin", content_base64=base64.b64encode(b"\x00\xff").decode())
    root = "sandbox://%s/files/" % session
    assert root in [r["uri"] for r in client.call("resources/list")["resources"]]
    assert "sandbox://{id}/files/{+path}" in [t["uriTemplate"] for t in client.call("resources/templates/list")["resourceTemplates"]]
    listing = client.call("resources/read", {"uri": root})["contents"][0]
    assert listing["mimeType"] == "application/json" and '"b.bin"' in listing["text"]
    r = client.call("resources/read", {"uri": root + "dir/a%20%C3%BC%3F.csv"})["contents"]
    assert r == [{"uri": root + "dir/a%20%C3%BC%3F.csv", "mimeType": "text/csv", "text": "1,2\n"}]
    assert base64.b64decode(client.call("resources/read", {"uri": root + "b.bin"})["contents"][0]["blob"]) == b"\x00\xff"
    assert client.call("resources/read", {"uri": root + "/etc/hostname"})["contents"][0]["text"]
    r = client.tool("execute_code", session_id=session, language="python", code="print('x' * 20000)")
    uri = "sandbox://%s/executions/%s/stdout" % (session, r["structuredContent"]["execution_id"])
    assert client.call("resources/read", {"uri": uri})["contents"][0]["text"] == "x" * 20000 + "\n"


@pytest.mark.parametrize("uri", ["sandbox://never-was/files/a", "sandbox://%s/files/missing", "sandbox://%s/executions/00/stdout", "file:///etc/passwd",
                                 "sandbox://%s/files/%%00", "sandbox://%s", "sandbox:///files/a"])
def test_missing_resources(client, session, uri):
    client.tool("write_file", session_id=session, path="a", content="")
    uri = uri.replace("%s", session).replace("%%", "%")
    with pytest.raises(RpcError) as e:
        client.call("resources/read", {"uri": uri})
    assert e.value.code == (-32002 if isinstance(client, Legacy) else -32602) and e.value.error["data"]["uri"] == uri


def test_an_unknown_cursor(client):
    with pytest.raises(RpcError) as e:
        client.call("resources/list", {"cursor": "/no/such"})
    assert e.value.code == -32602


def test_another_owner_has_nothing(serve, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("ann:%s\nbob:%s\n" % ("a" * 40, "b" * 40))
    tokens.chmod(0o600)
    d = serve("--token-file", str(tokens))
    ann, bob = Modern(d, Authorization="Bearer " + "a" * 40), Modern(d, Authorization="Bearer " + "b" * 40)
    ann.tool("write_file", session_id="s", path="secret", content="x")
    assert bob.tool("read_file", session_id="s", path="secret")["isError"]
    with pytest.raises(RpcError):
        bob.call("resources/read", {"uri": "sandbox://s/files/secret"})
    assert not [r for r in bob.call("resources/list")["resources"] if r["uri"].startswith("sandbox:")]
    legacy = Legacy(d, Authorization="Bearer " + "a" * 40)
    thief = Legacy(d, Authorization="Bearer " + "b" * 40)
    thief.headers["Mcp-Session-Id"] = legacy.headers["Mcp-Session-Id"]
    with pytest.raises(RpcError) as e:
        thief.call("tools/list")
    assert e.value.status == 404


def test_files_that_code_made_are_links(client, session):
    first = client.tool("execute_code", session_id=session, language="python", code="import os; os.makedirs('out'); open('out/a b.csv', 'w').write('1')")
    second = client.tool("execute_code", session_id=session, language="python", code="1 + 1")
    third = client.tool("execute_code", session_id=session, language="python", code="_ = open('out/a b.csv', 'w').write('2')")
    fourth = client.tool("run_shell", session_id=session, command="echo hi > c.txt; mkdir .hidden; echo > .hidden/d")
    links = [[b for b in r["content"] if b["type"] == "resource_link"] for r in (first, second, third, fourth)]
    csv = {"type": "resource_link", "uri": "sandbox://%s/files/out/a%%20b.csv" % session, "name": "out/a b.csv", "mimeType": "text/csv", "size": 1}
    assert links[0] == [csv] and links[1] == [] and links[2] == [csv]
    names = [x["name"] for x in links[3]]  # recently changed files may be among them
    assert "c.txt" in names and ".hidden/d" not in names
    assert first["structuredContent"]["files"] == [{"path": "out/a b.csv", "size": 1, "mime_type": "text/csv"}]
    assert client.call("resources/read", {"uri": csv["uri"]})["contents"][0]["text"] == "2"


def test_unsupported_requests_are_refused_with_the_reason(everything):
    c = Modern(everything)
    r = c.call("tools/call", {"name": "pip_install", "arguments": {"package": "requests"}})
    assert r["isError"] and "not_configured" in text(r) and "--pip-index" in text(r)
    r = c.call("tools/call", {"name": "install_package", "arguments": {"session_id": "s", "package_name": "requests"}})
    assert r["isError"] and "not_configured" in text(r) and "--pip-index" in text(r)
    assert text(c.tool("run_python", code="6 * 7", servers=[])) == "42"
    r = c.call("tools/call", {"name": "run_python", "arguments": {"code": "1", "servers": ["weather"]}})
    assert r["isError"] and "servers" in text(r)


def test_subscription_tells_of_changes(daemon, session):
    c = Legacy(daemon)
    c.tool("write_file", session_id=session, path="a.txt", content="1")
    stream = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    stream.request("GET", "/mcp", headers={"Accept": "text/event-stream", **c.headers})
    answer = stream.getresponse()
    assert answer.status == 200
    uri = "sandbox://%s/files/a.txt" % session
    c.call("resources/subscribe", {"uri": uri})
    c.tool("write_file", session_id=session, path="other.txt", content="not this one")
    c.tool("write_file", session_id=session, path="a.txt", content="2")
    line = answer.readline()
    while not line.startswith(b"data:") or b"list_changed" in line:  # sessions begin and end
        line = answer.readline()
    assert json.loads(line[5:]) == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
    c.call("resources/unsubscribe", {"uri": uri})
    assert c.daemon.request("DELETE", "/mcp", headers=c.headers).status == 204
    assert b"resources/updated" not in answer.read()  # and it ends
    stream.close()
    with pytest.raises(RpcError) as e:
        Legacy(daemon).call("resources/subscribe", {"uri": "sandbox://%s/files/no/where/a" % session})
    assert e.value.code == -32002


def test_files_are_in_the_ledger(daemon, session):
    c = Modern(daemon)
    c.tool("write_file", session_id=session, path="l.txt", content="abc")
    c.tool("read_file", session_id=session, path="l.txt")
    c.call("resources/read", {"uri": "sandbox://%s/files/l.txt" % session})
    c.tool("execute_code", session_id=session, language="python", code="1")
    def mine():
        lines = (daemon.state / "ledger" / "ledger.jsonl").read_text().splitlines()
        return [e for e in map(json.loads, lines) if e["sandbox"] == session]

    assert wait_until(lambda: [e["event"] for e in mine()].count("file.end") == 3)
    mine = mine()
    assert [(e["op"], e["path"]) for e in mine if e["event"] == "file.begin"] == [("write", "l.txt"), ("read", "l.txt"), ("read", "l.txt")]
    assert [e["outcome"] for e in mine if e["event"] == "file.end"] == ["done"] * 3
    assert [e["event"] for e in mine if e["event"].startswith("execution.")] == ["execution.begin", "execution.end"]


# ---- sizes -----------------------------------------------------------------------------------------------------------

CAP = 10000  # --max-output, which no test here changes


def test_a_picture_too_large_for_a_block_is_a_link(client, session):
    most = 3 << 20
    client.tool("execute_code", session_id=session, language="python",
                code="for n in (0, 1): open('%%d.png' %% n, 'wb').write(b'\\x89PNG'.ljust(%d + n, b'x'))" % most)
    r = client.tool("read_file", session_id=session, path="0.png")
    assert [b["type"] for b in r["content"]] == ["image"] and len(base64.b64decode(r["content"][0]["data"])) == most
    r = client.tool("read_file", session_id=session, path="1.png")
    assert [b["type"] for b in r["content"]] == ["text", "resource_link"] and "offset" in text(r)
    assert r["structuredContent"]["truncated"] and r["structuredContent"]["next_offset"] == 0 and r["structuredContent"]["size"] == most + 1
    assert r["content"][1]["uri"] == "sandbox://%s/files/1.png" % session
    r = client.tool("read_file", session_id=session, path="1.png", offset=most, limit=10)
    assert base64.b64decode(r["structuredContent"].get("content_base64", "")) == b"x" or r["structuredContent"]["content"] == "x"


def test_a_long_list_is_read_by_pages(client, session):
    """Names that grow to six times their length when they are escaped."""
    client.tool("execute_code", session_id=session, language="python",
                code="import os\nd = '/'.join(['\\x01' * 250] * 5); os.makedirs(d)\nfor i in range(300): open(d + '/' + '\\x01' * 200 + str(i), 'w').close()\n"
                     "for i in range(1500): open('f%04d' % i, 'w').close()")
    names, cursor, pages = [], None, 0
    while cursor or not pages:
        r = client.tool("list_files", session_id=session, **({"cursor": cursor} if cursor else {}))
        s = r["structuredContent"]
        assert len(text(r)) < CAP + 200 and len(json.dumps(s, separators=(",", ":"))) < CAP + 1000
        names += [f["name"] for f in s["files"]]
        assert s["truncated"] == ("next_cursor" in s) and (not s["truncated"] or json.dumps(s["next_cursor"]) in text(r))
        cursor, pages = s.get("next_cursor"), pages + 1
        assert pages < 100
    assert pages > 5 and names == ["\x01" * 250] + ["f%04d" % i for i in range(1500)]
    r = client.tool("list_files", session_id=session, limit=1000)
    assert len(r["structuredContent"]["files"]) == 1000 and r["structuredContent"]["next_cursor"] == "f0998"
    r = client.tool("list_files", session_id=session, recursive=True, limit=1000)
    assert r["structuredContent"]["files"] and r["structuredContent"]["truncated"] and r["structuredContent"]["next_cursor"]
    uri = "sandbox://%s/files/%s/" % (session, "/".join(["%01" * 250] * 5))
    listing = json.loads(client.call("resources/read", {"uri": uri})["contents"][0]["text"])
    assert listing["files"] and {f["type"] for f in listing["files"]} == {"file"}


def test_commands_are_not_repeated_in_answers(everything):
    c = Modern(everything)
    name = unique("long")
    long = "sleep 1000 #" + "\x01" * 100000
    ids = []
    for _ in range(30):
        r = c.tool("start_process", session_id=name, command=long)
        assert r["structuredContent"]["command"] == long[:200] and r["structuredContent"]["command_truncated"] and len(json.dumps(r)) < 6000
        ids.append(r["structuredContent"]["process_id"])
    seen, more = [], {}
    for _ in range(30):
        r = c.tool("list_processes", session_id=name, **more)
        assert len(text(r)) < CAP + 200 and len(json.dumps(r["structuredContent"], separators=(",", ":"))) < CAP + 200
        seen += [p["process_id"] for p in r["structuredContent"]["processes"]]
        if not r["structuredContent"]["truncated"]:
            break
        more = {"cursor": r["structuredContent"]["next_cursor"]}
    assert seen == ids and more
    c.tool("remove_sandbox", session_id=name)


def test_a_result_that_does_not_fit_is_marked(serve):
    """Escaped text grows; the answer still has a bound, and is JSON."""
    d = serve("--max-output", "16777216")
    c = Modern(d)
    r = c.tool("execute_code", session_id="s", language="python", code="print('\\x01' * 15000000)")
    assert r["isError"] and "result_too_large" in text(r) and "structuredContent" not in r
    assert text(c.tool("execute_code", session_id="s", language="python", code="6 * 7")) == "42"


def test_an_error_with_a_giant_id_is_json(daemon):
    c = Modern(daemon)
    m = c.message("tools/call", {"name": "nothing", "arguments": {}})
    m["id"] = "\x01" * (1 << 20)
    r = c.post(m, **c.headers_of(m))
    assert r.json["error"]["code"] == -32602


@pytest.mark.parametrize("tool", ["execute_code", "execute_python", "run_python"])
def test_a_long_value_is_cut_as_output_is(everything, tool):
    c = Modern(everything)
    more = {"session_id": "value", "language": "python"} if tool == "execute_code" else {}
    for n in (CAP * 100, 2 << 20):
        r = c.tool(tool, code="'x' * %d" % n, **more)
        s = r["structuredContent"]
        assert s["truncated"] and len(s["result"]) == CAP and len(text(r)) < CAP + 300 and "read_file" in text(r)
    r = c.tool(tool, code="'x' * 100", **more)
    assert not r["structuredContent"].get("truncated") and r["structuredContent"]["result"] == repr('x' * 100)


SHOWN = """
class Shown:
    def __init__(self, **data): self.data = {k.replace('_', '/').replace('1', '+'): v for k, v in data.items()}
    def _repr_mimebundle_(self, **_): return self.data
    def __repr__(self): return '<Shown>'
display('plain text')
display(Shown(text_html='<b>bold</b>'))
display(Shown(text_markdown='# head', text_plain='kept plain'))
display(Shown(application_json={'a': [1]}))
display(Shown(**{'image_svg1xml': '<svg/>'}))
display({'image/png': 'AAAA', 'text/plain': '<Figure>'}, raw=True)
print('printed')
"""


def test_what_is_displayed_is_there(client, session):
    r = client.tool("execute_code", session_id=session, language="python", code=SHOWN)
    assert text(r) == "printed\n'plain text'\n<b>bold</b>\nkept plain\n{\"a\":[1]}\n<svg/>\n<Figure>"
    assert r["structuredContent"]["displays"] == ["'plain text'", "<b>bold</b>", "kept plain", '{"a":[1]}', "<svg/>", "<Figure>"]
    assert not r["structuredContent"]["truncated"] and [b["type"] for b in r["content"]] == ["text", "image"]
    r = client.tool("execute_code", session_id=session, language="python", code="display('one'); display({'text/html': 'a\\0b'}, raw=True)")
    assert "'one'" in text(r)  # whatever the other is worth
    r = client.tool("execute_code", session_id=session, language="python", code="for i in range(30): display('%02d' % i + 'y' * 1000)")
    assert r["structuredContent"]["truncated"] and CAP - 100 < len(text(r)) < CAP + 400 and "read_file" in text(r)


def test_updates_replace_what_was_displayed(client, session):
    r = client.tool("execute_code", session_id=session, language="python",
                    code="h = display('0 %', display_id=True)\nfor i in range(80): h.update('%d %%' % i)\ndisplay('done')")
    assert r["structuredContent"]["displays"] == ["'79 %'", "'done'"] and not r["structuredContent"]["truncated"]


@pytest.mark.parametrize("tool, code, number", [("run_shell", "pwd; (exit 3)", 3), ("execute_code", "import sys; sys.exit(4)", 4),
                                                ("execute_code", "import os; os._exit(9)", 9), ("execute_code", "1 / 0", 1)])
def test_the_text_of_a_failure_has_the_exit_code(client, session, tool, code, number):
    """It is a result, not an error of the tool: the client shows it."""
    more = {"command": code} if tool == "run_shell" else {"language": "python", "code": code}
    r = client.tool(tool, session_id=session, **more)
    assert not r["isError"] and "exit code %d]" % number in text(r) and r["structuredContent"]["exit_code"] == number


def test_losses_are_reported_as_they_are(everything):
    """The end of the interpreter keeps files; the end of the cell does not."""
    c = Modern(everything)
    name = unique("lost")
    c.tool("create_sandbox", session_id=name, memory_mib=64, oom="sandbox")
    c.tool("write_file", session_id=name, path="kept.txt", content="x")
    r = c.tool("execute_code", session_id=name, language="python", code="import os; os._exit(9)")
    assert r["structuredContent"]["state"] == "reset" and "files are still there" in text(r)
    first = r["structuredContent"]["epoch"]
    assert not c.tool("read_file", session_id=name, path="kept.txt")["isError"]
    r = c.tool("execute_code", session_id=name, language="python", code="x = bytearray(10 ** 9)")
    assert r["structuredContent"]["state"] == "reset" and "files are gone" in text(r) and r["structuredContent"]["epoch"] > first and r["structuredContent"]["files_lost"]
    assert c.tool("read_file", session_id=name, path="kept.txt")["isError"]
    c.tool("remove_sandbox", session_id=name)


def test_pictures_in_files_are_pictures(client, session):
    many = client.tool("execute_code", session_id=session, language="python", code=(
        "import base64; png = base64.b64decode(%r)\nfor i in range(12): open('p%%02d.png' %% i, 'wb').write(png)\n"
        "open('none.png', 'w').write('not a picture'); open('large.jpg', 'wb').write(b'\\xff\\xd8\\xff' + bytes(4 << 20))" % base64.b64encode(PNG).decode()))
    pictures = [b for b in many["content"] if b["type"] == "image"]
    assert 7 <= len(pictures) <= 8 and {b["mimeType"] for b in pictures} == {"image/png"}
    assert all(base64.b64decode(b["data"]) == PNG for b in pictures)
    assert [b["name"] for b in many["content"] if b["type"] == "resource_link"] == ["large.jpg", "none.png"] + ["p%02d.png" % i for i in range(12)]
    assert many["content"][0]["type"] == "text" and len(many["structuredContent"]["files"]) == 14


def test_log_messages_go_to_subscribers(daemon, session):
    c = Legacy(daemon)
    assert c.hello["capabilities"]["logging"] == {}

    def said(code):
        c.call("tools/call", {"name": "execute_code", "arguments": {"session_id": session, "language": "python", "code": code}})
        return [(n["params"]["level"], n["params"]["data"]) for n in c.notes if n["method"] == "notifications/message"]

    assert said("1") == []
    c.call("logging/setLevel", {"level": "warning"})
    assert said("1") == []
    (level, data), = said("1 / 0")
    assert level == "error" and "exit code 1]" in data
    c.call("logging/setLevel", {"level": "info"})
    (level, data), = said("1")
    assert level == "info" and "python): ok after" in data
    with pytest.raises(RpcError):
        c.call("logging/setLevel", {"level": "loud"})
