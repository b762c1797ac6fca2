# SPDX-License-Identifier: Apache-2.0
"""test_seed_003.py - Code for the seed's interface works unchanged, except for the import line."""
import dataclasses
import inspect
import re
from types import SimpleNamespace

import pytest
import seed_003

import caisson


def snippets():
    return re.findall(r"``((?:await |run_shell)[^`]*)``", seed_003.__doc__)


def test_there_are_three_snippets():
    assert len(snippets()) == 3


@pytest.mark.parametrize("name", ["ExecResult", "SandboxSpec"])
def test_dataclasses_begin_with_the_same_fields(name):
    theirs, ours = getattr(seed_003, name), getattr(caisson, name)
    assert ours.__dataclass_params__.frozen
    want = [(f.name, f.default, f.default_factory) for f in dataclasses.fields(theirs)]
    have = [(f.name, f.default, f.default_factory) for f in dataclasses.fields(ours)][: len(want)]
    assert have == want
    assert all(f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING for f in dataclasses.fields(ours)[len(want):])
    for property_name, value in vars(theirs).items():
        assert not isinstance(value, property) or isinstance(vars(ours)[property_name], property)


@pytest.mark.parametrize("ours, theirs", [
    (caisson.SandboxHandle, seed_003.SandboxHandle), (caisson.AsyncSandbox, seed_003.SandboxHandle),
    (caisson.SandboxClient, seed_003.SandboxClient), (caisson.AsyncCaisson, seed_003.SandboxClient)])
def test_signatures_are_compatible(ours, theirs):
    """Every call that fits the seed's signature fits ours, with the same meaning of each position."""
    for name, method in vars(theirs).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        mine = getattr(ours, name)
        assert inspect.iscoroutinefunction(mine), name
        have = inspect.signature(mine).parameters
        for want in inspect.signature(method).parameters.values():
            assert want.name in have and have[want.name].kind == want.kind, (name, want)
            assert have[want.name].default == want.default or want.default is want.empty, (name, want)
        extra = [p for p in have.values() if p.name not in inspect.signature(method).parameters]
        assert all(p.default is not p.empty or p.kind == p.VAR_KEYWORD for p in extra), name


def test_unavailable_is_what_it_was():
    assert issubclass(caisson.SandboxUnavailable, RuntimeError)
    assert issubclass(caisson.AsyncCaisson, caisson.SandboxClient) and issubclass(caisson.AsyncSandbox, caisson.SandboxHandle)


async def test_snippets(url):
    """The snippets unchanged. The first has no repository to clone, the third an image that does not exist: they report this."""
    async with caisson.AsyncCaisson(url) as client:
        ctx = SimpleNamespace(sandbox=client)
        pipeline, binary, image = snippets()
        r = await evaluate(pipeline, ctx=ctx)
        assert not r.ok and r.exit_code and "…" in r.output, r
        async with await ctx.sandbox.create(caisson.SandboxSpec(name="seed")) as sb:
            made = await sb.shell("cd /tmp && git init -q origin && cd origin && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first")
            assert made.ok, made
            r = await evaluate(binary, sb=sb, url="/tmp/origin")
            assert r.ok and await sb.files.exists("origin/.git/HEAD"), r
        with pytest.raises(caisson.ImageUnavailable) as e:
            await evaluate("await ctx.sandbox." + image, ctx=ctx)
        assert e.value.field == "image" and e.value.hint


async def evaluate(snippet, **names):
    """An expression with `await` in it, as a line of an agent's code."""
    space = dict(names)
    exec("async def snippet(%s):\n    return %s" % (", ".join(names), snippet), space)
    return await space["snippet"](**names)


@pytest.mark.parametrize("base", [seed_003.SandboxClient, caisson.SandboxClient, caisson.AsyncCaisson])
async def test_run_python_and_run_shell(url, base):
    """The seed's own code with our client, our code, and the daemon's give the same results."""
    async with caisson.AsyncCaisson(url) as client:
        if base is seed_003.SandboxClient:
            seed_003.SandboxSpec = caisson.SandboxSpec  # the import line
            client.run_python = lambda code, **kw: base.run_python(client, code, image=caisson.types.DEFAULT_IMAGE, **kw)
            client.run_shell = lambda script, **kw: base.run_shell(client, script, image=caisson.types.DEFAULT_IMAGE, **kw)
        elif base is caisson.SandboxClient:
            client.run_python = lambda code, **kw: base.run_python(client, code, **kw)
            client.run_shell = lambda script, **kw: base.run_shell(client, script, **kw)
        r = await client.run_python("print(6 * 7)", memory_mib=256, labels={"who": "seed"})
        assert r.ok and r.stdout == "42\n" and r.output == "42\n" and not r.truncated
        r = await client.run_python("import sys\nprint('out')\nprint('err', file=sys.stderr)\nraise SystemExit(3)")
        assert (r.stdout, r.stderr, r.exit_code, r.ok) == ("out\n", "err\n", 3, False)
        r = await client.run_python("1 / 0")
        assert not r.ok and "ZeroDivisionError" in r.output, r
        r = await client.run_shell("echo $((6 * 7)); echo err >&2; exit 4")
        assert (r.stdout, r.stderr, r.exit_code) == ("42\n", "err\n", 4)
        assert await client.list() == []


async def test_a_handle(url):
    async with caisson.AsyncCaisson(url) as client:
        sb = await client.create(caisson.SandboxSpec(name="seed-life", labels={"a": "b"}))
        assert sb.name == "seed-life" and await client.list() == ["seed-life"]
        again = await client.get("seed-life")
        assert (await again.exec("echo", ["a b", "$HOME"])).stdout == "a b $HOME\n"
        assert (await again.shell("sleep 100", timeout=1)).exit_code == 124
        await again.shell("echo one; echo two")
        assert (await sb.logs(tail=1)) == "two\n" and "one\n" in await sb.logs()
        await sb.stop()
        with pytest.raises(caisson.SandboxStopped):
            await sb.shell("true")
        await client.remove("seed-life")
        with pytest.raises(caisson.SandboxNotFound):
            await client.get("seed-life")
        sb = await client.create(caisson.SandboxSpec(name="seed-kill"))
        await sb.kill()
        await client.remove("seed-kill")
        assert await client.list() == []


async def test_no_runtime(tmp_path):
    async with caisson.AsyncCaisson(socket=str(tmp_path / "nowhere")) as client:
        with pytest.raises(caisson.SandboxUnavailable) as e:
            await client.run_python("print(1)")
    assert "nowhere" in str(e.value) and "caisson serve" in e.value.hint
