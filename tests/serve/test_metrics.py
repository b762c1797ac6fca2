# SPDX-License-Identifier: Apache-2.0
"""test_metrics.py - GET /metrics: the format of Prometheus, and the names that dashboards use."""
import shutil
import subprocess

import pytest

from process import SLOW, unique, wait_until
from serve_lib import total


def test_promtool_accepts_it(daemon):
    """Also with a changed value of every kind."""
    for code in ("1", "1 / 0", "import os; os._exit(3)", "import sys; sys.exit(2)"):
        daemon.execute(code)
    daemon.execute("import time; time.sleep(9)", timeout=1)
    daemon.get("/nothing")
    r = daemon.get("/metrics")
    assert r.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("no promtool here (apt-get install prometheus)")
    p = subprocess.run([promtool, "check", "metrics"], input=r.body, capture_output=True, timeout=60 * SLOW)
    assert p.returncode == 0 and p.stdout + p.stderr == b"", p


def test_the_four_names(daemon):
    """They exist before the first event, which rate() would miss otherwise."""
    text = daemon.get("/metrics").body.decode()
    for name, kind in [("sandbox_executions_total", "counter"), ("sandbox_execution_duration_seconds", "histogram"),
                       ("sandbox_package_installs_total", "counter"), ("sandbox_errors_total", "counter")]:
        assert "# TYPE %s %s\n" % (name, kind) in text and "# HELP %s " % name in text, name
        assert any(line.startswith(name) for line in text.splitlines() if not line.startswith("#")), name


def moved(before, after):
    return {k: after.get(k, 0) - before.get(k, 0) for k in set(after) | set(before) if after.get(k, 0) != before.get(k, 0)}


def test_executions_are_counted_by_language_and_status(daemon):
    a = daemon.metrics()
    daemon.execute("1")
    daemon.execute("1 / 0")
    daemon.execute("true", language="bash")
    b = daemon.metrics()
    assert total(b, "sandbox_executions_total") - total(a, "sandbox_executions_total") == 3
    m = moved(a, b)
    assert m['sandbox_executions_total{language="python",status="ok"}'] == 1
    assert m['sandbox_executions_total{language="python",status="error"}'] == 1
    assert m['sandbox_executions_total{language="bash",status="ok"}'] == 1
    assert m['sandbox_errors_total{type="exception"}'] == 1


def test_duration_histogram(daemon):
    a = daemon.metrics()
    daemon.execute("import time; time.sleep(0.3)")
    b = daemon.metrics()
    name = "sandbox_execution_duration_seconds"
    assert b[name + "_count"] - a[name + "_count"] == 1 and b[name + "_sum"] - a[name + "_sum"] >= 0.3
    assert b[name + '_bucket{le="0.25"}'] == a[name + '_bucket{le="0.25"}']
    assert b[name + '_bucket{le="+Inf"}'] == b[name + "_count"]
    values = [b[k] for k in b if k.startswith(name + "_bucket")]
    assert values == sorted(values), "buckets are cumulative"


@pytest.mark.parametrize("code,fields,kind", [
    ("import time; time.sleep(9)", {"timeout": 1}, "wall"), ("import os; os.kill(os.getpid(), 11)", {}, "signal")])
def test_errors_are_counted_by_cause(daemon, code, fields, kind):
    a = daemon.metrics()
    daemon.execute(code, **fields)
    m = moved(a, daemon.metrics())
    got = [k for k in m if k.startswith("sandbox_errors_total")]
    assert got == ['sandbox_errors_total{type="%s"}' % kind], got


def test_memory_is_counted_by_cause(serve):
    d = serve("--memory", "48M")
    d.execute("bytearray(300 << 20)")
    assert d.metrics()['sandbox_errors_total{type="memory"}'] == 1


@pytest.mark.parametrize("path,body,kind", [("/execute", {}, "missing_field"), ("/execute", {"code": 1}, "wrong_type"), ("/nothing", None, "not_found"),
                                            ("/execute", {"code": "1", "language": "cobol"}, "unknown_language")])
def test_refusals_are_counted_once(daemon, path, body, kind):
    a = daemon.metrics()
    daemon.post(path, body)
    m = {k: v for k, v in moved(a, daemon.metrics()).items() if k.startswith("sandbox_errors_total")}
    assert m == {'sandbox_errors_total{type="%s"}' % kind: 1}, m


def test_broken_http_is_counted_once(daemon):
    a = daemon.metrics()
    daemon.raw(b"nonsense\r\n\r\n")
    m = {k: v for k, v in moved(a, daemon.metrics()).items() if k.startswith("sandbox_errors_total")}
    assert m == {'sandbox_errors_total{type="bad_request"}': 1}, m


def test_package_installs(daemon):
    a = daemon.metrics()
    daemon.post("/pip_install", {"package": "requests"})
    daemon.post("/pip_install", {"package": "subprocess"})
    m = {k: v for k, v in moved(a, daemon.metrics()).items() if k.startswith("sandbox_package_installs_total")}
    assert m == {'sandbox_package_installs_total{outcome="unsupported"}': 1, 'sandbox_package_installs_total{outcome="blocked"}': 1}, m


def test_gauges(daemon):
    name = unique()
    run = daemon.begin("import time; time.sleep(60)", session_id=name, timeout=100)
    assert wait_until(lambda: daemon.sessions().get(name, {}).get("state") == "busy")
    waits = daemon.begin("1", session_id=name)
    assert wait_until(lambda: daemon.sessions().get(name, {}).get("queued") == 2)
    m = daemon.metrics()
    assert m["caisson_sandboxes"] == 1 and m["caisson_sandboxes_busy"] == 1 and m["caisson_executions_queued"] == 1, m
    daemon.end_session(name)
    run.result(), waits.result()
    m = daemon.metrics()
    assert m["caisson_sandboxes"] == m["caisson_sandboxes_busy"] == m["caisson_executions_queued"] == 0


def test_gauge_of_running_executions(daemon):
    name = unique()
    run = daemon.begin("import time; time.sleep(60)", session_id=name, timeout=100)
    assert wait_until(lambda: daemon.sessions().get(name, {}).get("state") == "busy")
    m = daemon.metrics()
    daemon.end_session(name)
    run.result()
    assert m["caisson_executions_running"] == 1 and daemon.metrics()["caisson_executions_running"] == 0


def test_pool_gauges_agree_with_health(daemon):
    def both():
        h, m = daemon.health()["pool"], daemon.metrics()
        return (m["caisson_pool_kernels"], m["caisson_pool_cells"]) == (h["kernels_ready"], h["cells_ready"]) and h["making"] == 0 and \
            m["caisson_cells"] == h["kernels_ready"] + h["cells_ready"]
    assert wait_until(both), (daemon.health(), {k: v for k, v in daemon.metrics().items() if "pool" in k or "cells" in k})


def test_cells_balance(daemon):
    """Each sandbox that was made exists, or was ended."""
    for _ in range(5):
        daemon.execute("1")

    def balance():
        m = daemon.metrics()
        return m["caisson_cells_created_total"] - m["caisson_cells_destroyed_total"] == m["caisson_cells"]
    assert wait_until(balance), {k: v for k, v in daemon.metrics().items() if "cells" in k}


def test_labels_can_not_be_made_by_clients(daemon):
    """Paths, languages, sessions and codes of clients add no time series."""
    a = daemon.metrics()
    for i in range(30):
        daemon.get("/path-%d" % i)
        daemon.try_execute("1", language="lang-%d" % i)
        daemon.request("DELETE", "/sessions/s-%d" % i)
    added = set(daemon.metrics()) - set(a)
    assert len(added) < 8 and not any("-1" in k for k in added), added


def test_output_is_counted(daemon):
    a = daemon.metrics()
    daemon.execute("print('x' * 99999)")
    assert daemon.metrics()["caisson_output_bytes_total"] - a["caisson_output_bytes_total"] == 100000


def test_process_numbers(daemon):
    m = daemon.metrics()
    assert 1 << 20 < m["process_resident_memory_bytes"] < (1 << 28) * SLOW and m["process_open_fds"] > 5 and m["process_start_time_seconds"] > 1e9
