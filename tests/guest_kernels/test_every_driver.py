# SPDX-License-Identifier: Apache-2.0
"""test_every_driver.py - The kernels of bash, javascript and R, as far as they have to do the same: exits, interrupts, odd messages.

The ways of one language are tested in test_bash.py, test_javascript.py and test_r.py.
"""
import time

import pytest

from drivers import DRIVERS

EXITS = {
    "bash": [
        ("exit 3; echo never", 3),
        ("exit; echo never", 0),
        ("false; exit; echo never", 1),
        ("f() { g; echo never; }; g() { for i in 1 2; do exit 4; echo never; done; }; while true; do f; done; echo never", 4),
        ("for ((;;)); do for i in 1 2; do until false; do exit 5; done; done; done; echo never", 5),
        ("{ echo x | cat >/dev/null; exit 6; echo never; } 2>&1", 6),
        ("echo 'exit 7; echo never' > s.sh; . ./s.sh; echo never", 7),
        ("false || exit 8; echo never", 8),
        ("exit -1", 255),
        ("exit nonsense 2>/dev/null; echo never", 2),
        ("builtin exit 9; echo never", 9),
    ],
    "javascript": [
        ("process.exit(3); console.log('never')", 3),
        ("process.exit()", 0),
        ("await 1; process.exit(4); console.log('never')", 4),
        ("async function f() { await null; process.exit(5) }\nawait f(); console.log('never')", 5),
        ("setTimeout(() => process.exit(6), 10); await new Promise(() => {})", 6),
        ("try { process.exit(7) } catch (e) { console.log('never') } 1", 7),
        ("(async () => {})().then(() => process.exit(0)).catch(e => { console.error('never', e); process.exit(1) })", 0),
        ("process.exitCode = 8; undefined", 8),
    ],
    "r": [
        ("q(status = 3); cat('never')", 3),
        ("quit('no')", 0),
        ("base::quit(status = 4)", 4),
        ("f <- function() tryCatch(q(status = 5), error = function(e) cat('never')); f(); cat('never')", 5),
    ],
}
ENDLESS = {
    "bash": [
        "echo go; sleep 10; echo never",
        "echo go; while :; do :; done; echo never",
        "f() { echo go; while true; do sleep 1; done; }; f; echo never",
        "echo go; for ((;;)); do ((x++)); done; echo never",
        "echo go; sleep 10 | cat; echo never",
        "echo go; x=$(sleep 10); echo never",
        "echo go; sleep 10 & wait; echo never",
        "mkfifo ff; exec 7<>ff; echo go; read -r -u 7 x; echo never",
        "set -e; echo go; sleep 10; echo never",
    ],
    "javascript": [
        "console.log('go'); while (true);",
        "console.log('go'); await new Promise(() => {}); console.log('never')",
        "await 1; console.log('go'); for (;;) {}",
        "console.log('go'); for (;;) await null",
        "async function l() { for (;;) await null }\nconsole.log('go'); await l()",
        "console.log('go'); try { while (true); } catch (e) { console.log('never') }",
        "console.log('go'); require('child_process').execSync('sleep 10'); console.log('never')",
        "process.on('SIGINT', () => console.log('never')); console.log('go'); while (true);",
        "console.log('go'); ({get [Symbol.toStringTag]() { for (;;); }})",
    ],
    "r": [
        "cat('go'); while (TRUE) {}",
        "cat('go'); Sys.sleep(20); cat('never')",
        "f <- function() { cat('go'); for (i in 1:1e9) i }; f(); cat('never')",
        "cat('go'); tryCatch(Sys.sleep(20), error = function(e) cat('never'), finally = cat('fin'))",
    ],
}
NONSENSE = (b"", b"{}", b"null", b"not json", b'{"type":"ack"}', b'{"type":"hello"}', b'["execute"]', b"[1]", b'"x\\',
            b'{"type":"input_response","id":99,"value":"x"}', b'{"type":"rpc_response","id":"1","payload":{"type":"execute","code":"echo no"}}')


def cases(table):
    return [pytest.param(name, case, id="%s-%d" % (name, i), marks=DRIVERS[name].mark) for name, of in table.items() for i, case in enumerate(of)]


every = pytest.mark.parametrize("driver", [pytest.param(name, marks=d.mark) for name, d in DRIVERS.items()], indirect=True)


@pytest.fixture
def driver(request):
    return DRIVERS[request.param]


@pytest.fixture(scope="module")
def kept():
    """Kernels for all tests, of drivers that take long to start."""
    kernels = {}
    yield kernels
    for kernel in kernels.values():
        assert kernel.close() == 0


@pytest.fixture
def k(driver, tmp_path, kept):
    kernel = kept.get(driver.name) or driver.start(tmp_path)
    if driver.slow:
        kept[driver.name] = kernel
    kernel.run(driver.keep)
    yield kernel
    assert kernel.alive(), "the kernel did not survive the test"
    assert driver.slow or kernel.close() == 0


@every
def test_ready(k, driver):
    assert k.ready["language"] == driver.name and k.ready["version"][0].isdigit()
    assert int(k.run(driver.own_pid).stdout) == k.ready["pid"]


@pytest.mark.parametrize("driver, case", cases(EXITS), indirect=["driver"])
def test_exit_ends_the_execution_only(k, driver, case):
    code, status = case
    r = k.run(code)
    assert (r.exit_code, r.status) == (status, "error" if status else "ok"), r
    assert driver.name == "bash" or r.error is None, r
    assert "never" not in r.stdout + r.stderr
    driver.check_kept(k)


@pytest.mark.parametrize("driver, case", cases(ENDLESS), indirect=["driver"])
def test_interrupt(k, driver, case):
    k.interrupt_at_go(case)
    k.run(driver.tidy)
    driver.check_kept(k)


@every
def test_interrupt_while_idle_and_in_storms(k, driver):
    for _ in range(30):
        k.interrupt()
    driver.check_kept(k)
    if driver.storms:
        k.start(driver.loop)
        k.wait_stdout("go")
        for _ in range(30):
            k.interrupt()
        assert k.finish().status == "interrupted"
    for i in range(driver.rounds):
        k.start(driver.nothing)
        time.sleep(driver.pause * (i % 31))
        k.interrupt()
        assert k.finish().status in ("ok", "interrupted")
        driver.check_kept(k)


@every
def test_unknown_messages_are_ignored(k, driver):
    for line in NONSENSE:
        k.send(line)
    driver.check_kept(k)


@every
def test_end_of_file_ends_the_kernel(tmp_path, driver):
    kernel = driver.start(tmp_path)
    kernel.run(driver.lingering)
    assert kernel.close() == 0
