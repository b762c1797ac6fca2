# SPDX-License-Identifier: Apache-2.0
"""test_browser.py - JupyterLab in a real headless browser, with the daemon as its gateway, as a person would see it."""
import json
import os
import struct
import subprocess
import urllib.request
import zlib

import pytest

from real_lib import NotHere, chromium, debian, environment, lab, node
from process import HANG, free_port, wait_until

TOKEN = "t" * 64
CELLS = ["import matplotlib.pyplot as plt\nkept = 'kept'\nprint('hello')\nplt.figure(facecolor='red')\nplt.plot([1, 3, 2]);",
         "print('going', flush=True)\nwhile True: pass", "print(kept)"]


def pixels(path):
    """(width, height, share of each colour) of a PNG with 8 bits per channel, as browsers write them."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        n, kind = struct.unpack_from(">I4s", data, at)
        chunks.setdefault(kind, b"")
        chunks[kind] += data[at + 8:at + 8 + n]
        at += n + 12
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    size = {2: 3, 6: 4}[colour]
    assert depth == 8
    raw, before, out = zlib.decompress(chunks[b"IDAT"]), bytearray(width * size), {}
    for y in range(height):
        kind, row = raw[y * (width * size + 1)], bytearray(raw[y * (width * size + 1) + 1:(y + 1) * (width * size + 1)])
        for i in range(len(row)):
            a, b, c = row[i - size] if i >= size else 0, before[i], before[i - size] if i >= size else 0
            p = a + b - c
            nearest = min((abs(p - v), k, v) for k, v in enumerate((a, b, c)))[2]
            row[i] = (row[i] + (0, a, b, (a + b) // 2, nearest)[kind]) & 255
        before = row
        for x in range(0, len(row), size):
            key = tuple(row[x:x + 3])
            out[key] = out.get(key, 0) + 1
    return width, height, {k: v / (width * height) for k, v in out.items()}


@pytest.fixture
def jupyter_lab(daemon, tmp_path):
    """(the address of a notebook in JupyterLab, the directory with node's packages, the browser)"""
    if not os.environ.get("CAISSON_BROWSER"):
        pytest.skip("brings a browser and JupyterLab: make jupyter runs it")
    try:
        debian("matplotlib")
        browser, packages, program = chromium(), node(), lab()
    except NotHere as e:
        pytest.skip("not here: %s" % e)
    (tmp_path / "a.ipynb").write_text(json.dumps({
        "cells": [{"cell_type": "code", "id": "c%d" % i, "metadata": {}, "outputs": [], "execution_count": None, "source": c} for i, c in enumerate(CELLS)],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}, "nbformat": 4, "nbformat_minor": 5}))
    port = free_port()
    with open(tmp_path / "log", "wb") as log:
        p = subprocess.Popen([program, "--allow-root", "--no-browser", "--port", str(port), "--ip", "127.0.0.1", "--IdentityProvider.token=" + TOKEN,
                              "--gateway-url", "http://127.0.0.1:%d" % daemon.port, "--ServerApp.root_dir", str(tmp_path),
                              "--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"],
                             env=environment(tmp_path), stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path)

    def answers():
        assert p.poll() is None, (tmp_path / "log").read_text()[-3000:]
        try:
            return urllib.request.urlopen("http://127.0.0.1:%d/api?token=%s" % (port, TOKEN), timeout=5).status == 200
        except OSError:
            return False

    try:
        assert wait_until(answers, HANG), (tmp_path / "log").read_text()[-3000:]
        yield "http://127.0.0.1:%d/lab/tree/a.ipynb?token=%s" % (port, TOKEN), packages, browser
    finally:
        p.terminate()
        p.wait(60)


def test_a_person_in_jupyterlab(daemon, jupyter_lab, tmp_path):
    url, packages, browser = jupyter_lab
    picture = tmp_path / "plot.png"
    r = subprocess.run(["node", packages / "lab.mjs", url, browser, tmp_path / "profile", picture], capture_output=True, text=True, timeout=280)
    assert r.returncode == 0, r.stdout + r.stderr[-3000:]
    seen = json.loads(r.stdout.strip().splitlines()[-1])
    assert "error" not in seen, seen
    assert seen["text"].strip() == "hello" and seen["plot"]["width"] > 100 and seen["plot"]["height"] > 100
    assert seen["interrupted"] and seen["kept"] and seen["restarted"] and seen["counted"]
    width, height, colours = pixels(picture)
    assert width > 100 and height > 100 and colours.get((255, 0, 0), 0) > 0.1 and len(colours) > 10, "a plot on red, with a line and labels"
    for k in daemon.get("/api/kernels").json:
        daemon.request("DELETE", "/api/kernels/" + k["id"])
