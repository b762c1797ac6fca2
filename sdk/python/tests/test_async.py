# SPDX-License-Identifier: Apache-2.0
"""test_async.py - The same client on an event loop: many at once, and tasks that are cancelled."""
import asyncio
import contextlib
import random
import threading

import pytest
from process import call_yourself, unique, wait_until
from test_streams import FOREVER, Cutter, Script, answer, refusal, text

import caisson


async def until(condition, seconds=60):
    for _ in range(seconds * 20):
        if await condition():
            return True
        await asyncio.sleep(0.05)
    return False


async def test_everything_once(url, tmp_path):
    """Every part of it: only waiting differs from the blocking client."""
    async with caisson.AsyncCaisson(url) as c:
        assert (await c.health())["status"] == "healthy" and (await c.policy())["owner"] and await c.approvals() == []
        assert (await c.execute("40 + 2")).text == "42" and (await c.stream("print(1)").result()).stdout == "1\n"
        async with await c.create(labels={"a": "b"}) as box:
            assert [s.name for s in await c.sandboxes({"a": "b"})] == [box.name] == await c.list()
            assert (await box.execute("x = 1")).state == "kept"
            r = await box.shell("echo a; echo b >out")
            assert r.stdout == "a\n" and (await box.executions.output(r.execution_id)).data == b"a\n"
            assert [a.path for a in await box.artifacts(r)] == ["out"] and "a\n" in await box.logs()

            async def body():
                for i in range(3):
                    yield b"%d\n" % i

            await box.files.write("d/f", body(), parents=True)
            assert await box.files.read("d/f") == b"0\n1\n2\n" and [e.name for e in await box.files.list("d")] == ["f"]
            assert await box.files.download("d/f", tmp_path / "f") == 6
            assert await box.files.upload_dir(tmp_path, "e") == 1 and await box.files.download_dir("e", tmp_path / "g") == []
            async with await box.files.watch("e") as news:
                await box.files.delete("e/f")
                assert (await news.__anext__()).type == "deleted"
            p = await box.processes.start("cat", stdin=True)
            await p.write("x" * 300000, close=True)
            assert len(b"".join([piece async for piece in p.follow()])) == 300000 and (await p.wait()).exit_code == 0
            async with await box.processes.terminal("cat") as t:
                await t.write("typed\n")
                assert b"typed" in await t.read()
            assert (await box.ports.open(80)).port == 80 and await box.egress.get() == [] and (await box.egress.net()).live == 0
            with pytest.raises(caisson.PackagesUnavailable):
                await box.packages.install("requests")
            with pytest.raises(caisson.NothingRuns):
                await box.interrupt()
            assert (await box.info()).receipt


async def test_streams_are_taken_up_again(daemon, url):
    async with caisson.AsyncCaisson(url) as c:
        async with await c.create() as box:
            with Cutter(daemon.port, 150000) as way:
                async with caisson.AsyncCaisson(way.url) as cut:
                    sb = caisson.AsyncSandbox(cut.transport, box.name)
                    got = [e async for e in sb.stream_shell("seq 100000")]
    assert text(got) == "".join("%d\n" % i for i in range(1, 100001)) and [e.id for e in got] == list(range(1, len(got) + 1))


@pytest.mark.parametrize("how", ["execute", "stream", "shell", *(pytest.param(h, marks=pytest.mark.slow) for h in ("fresh", "run_python"))])
async def test_cancelling_a_task_cancels_on_the_server(daemon, url, how):
    """Judged from outside of the sandbox: the process has ended, or runs nothing."""
    mark = unique("m")[:15]
    code = call_yourself(mark) + FOREVER
    async with caisson.AsyncCaisson(url) as c:
        async with await c.create() as box:
            async def streamed():
                async for _ in box.stream(code, timeout=100):
                    pass

            work = {"execute": lambda: box.execute(code, timeout=100), "stream": streamed, "fresh": lambda: c.execute(code, timeout=100),
                    "shell": lambda: box.shell("exec python3 -c '%s'" % code.replace("'", '"'), timeout=100), "run_python": lambda: c.run_python(code, timeout=100)}[how]
            task = asyncio.ensure_future(work())

            async def named():
                return bool(daemon.named(mark))

            assert await until(named)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            if how in ("execute", "stream"):
                async def idle():
                    return not (await box.info()).busy
                assert await until(idle)
                assert (await box.execute("1")).epoch == 0, "its variables are kept"
            else:
                async def gone():
                    return not daemon.named(mark)
                assert await until(gone)


async def test_tasks_that_are_cancelled_at_any_moment(daemon, url):
    """While they connect, send, wait, read, close: nothing is left open here, and nothing runs there."""
    async with caisson.AsyncCaisson(url) as c, await c.create() as box:
        async def streamed():
            async with box.stream("for i in range(3): print(i)") as s:
                async for _ in s:
                    pass

        kinds = [lambda: c.execute("1"), lambda: box.shell("echo 1"), streamed, lambda: box.files.write("f", b"x" * 200000), lambda: box.files.read("f")]
        await box.files.write("f", b"x" * 200000)
        for i in range(120):
            task = asyncio.ensure_future(kinds[i % len(kinds)]())
            await asyncio.sleep(random.uniform(0, 0.004) if i % 3 else 0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            if i % 10 == 0:
                for connection in c.transport._idle:
                    connection.close()  # so that some of them have to connect

        async def idle():
            return not (await box.info()).busy
        assert await until(idle)
        assert (await box.execute("6 * 7")).text == "42"


async def test_timeout_of_a_task(url):
    async with caisson.AsyncCaisson(url) as c:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(c.execute("import time; time.sleep(100)", timeout=100), 0.3)
        assert (await c.execute("1")).ok


@pytest.mark.slow
async def test_a_hundred_sandboxes(url):
    """From one event loop, all at once, each with its own variables; and without a second thread."""
    async with caisson.AsyncCaisson(url, timeout=280) as c:
        before = threading.active_count()
        boxes = await asyncio.gather(*(c.create("hundred-%d" % i, memory_mib=64) for i in range(100)))
        try:
            await asyncio.gather(*(b.execute("x = %d" % i) for i, b in enumerate(boxes)))
            got = await asyncio.gather(*(b.execute("x") for b in boxes))
            assert [r.text for r in got] == [str(i) for i in range(100)]
            assert threading.active_count() == before
            streams = await asyncio.gather(*(b.stream("print(x)").result() for b in boxes))
            assert [r.stdout for r in streams] == ["%d\n" % i for i in range(100)]
        finally:
            await asyncio.gather(*(b.remove() for b in boxes))
        assert await c.list() == []


async def test_retries():
    with Script(None, refusal(429, "busy", "Retry-After: 0"), answer(200, b'{"owner": "x"}')) as s:
        async with caisson.AsyncCaisson(s.url) as c:
            assert await c.policy() == {"owner": "x"}
    with Script(None) as s:
        async with caisson.AsyncCaisson(s.url) as c:
            with pytest.raises(caisson.ConnectionLost):
                await c.execute("1")


async def test_silence_has_an_end():
    async def mute(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    async with caisson.AsyncCaisson("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], timeout=0.2) as c:
        with pytest.raises(caisson.AnswerTimeout):
            await c.list()
    server.close()
    await server.wait_closed()


async def test_closed(url):
    c = caisson.AsyncCaisson(url)
    await c.list()
    await c.aclose()
    with pytest.raises(caisson.ClientClosed):
        await c.list()


def test_one_client_per_loop(url):
    c = caisson.AsyncCaisson(url)

    async def ask(close):
        await c.list()
        if close:
            await c.aclose()

    asyncio.run(ask(True))
    with pytest.raises(caisson.ClientClosed):
        asyncio.run(ask(False))


@pytest.mark.slow
def test_unix_socket(serve, short_dir):
    path = short_dir / "s"
    serve(socket=path)
    assert wait_until(path.exists)

    async def ask(**where):
        async with caisson.AsyncCaisson(**where) as c:
            return (await c.execute("6 * 7")).text

    with caisson.Caisson(socket=str(path)) as c:
        assert c.execute("6 * 7").text == "42"
    assert asyncio.run(ask(socket=str(path))) == asyncio.run(ask(url="unix:%s" % path)) == "42"
