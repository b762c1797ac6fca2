# SPDX-License-Identifier: Apache-2.0
"""ports.py - A web application in a sandbox that the user opens through the daemon."""
from case import Case, background, bash, cli, http, javascript, python

PLAIN = """
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("path " + self.path).encode()
        self.send_response(200); self.send_header("Content-Type", "text/plain"); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).upper()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), H)
print("ready", flush=True)
s.serve_forever()
"""
OPEN = http("POST", "/ports/8000", http=201)

CASES = [
    Case("process with a web server", background("python3", "-u", "-c", PLAIN, until="ready"), OPEN, http("GET", "/ports/8000/x?y=1", shows="path /x?y=1"),
         http("POST", "/ports/8000/", body=b"abc", bytes=b"ABC"), quick=True),
    Case("server in a thread of the interpreter",
         python(PLAIN.replace("s.serve_forever()", "import threading; threading.Thread(target=s.serve_forever, daemon=True).start()")), OPEN,
         http("GET", "/ports/8000/", shows="path /"), python("s.server_port", result="8000")),
    Case("server on all addresses", bash("""
            python3 -m http.server 8000 >log 2>&1 &
            for i in $(seq 200); do (: </dev/tcp/127.0.0.1/8000) 2>/dev/null && break; sleep 0.05; done"""), OPEN,
         http("GET", "/ports/8000/", shows="Directory listing")),
    Case("nothing listens", OPEN, http("GET", "/ports/8000/", http=502, shows="8000")),
    Case("open ports are listed", OPEN, http("POST", "/ports/8001", http=201), http("GET", "/ports", shows=("8000", "8001")),
         http("DELETE", "/ports/8001", http=204), http("GET", "/ports/8001/", http=404)),
    Case("node server",
         javascript("require('http').createServer((q, r) => r.end('node ' + q.url)).listen(8000, '127.0.0.1'); await new Promise(r => setTimeout(r, 50))"),
         OPEN, http("GET", "/ports/8000/a", bytes=b"node /a"), needs="node"),
    Case("flask application",
         python("open('app.py', 'w').write('from flask import Flask\\napp = Flask(__name__)\\n@app.get(\"/\")\\ndef home(): return \"<h1>Flask</h1>\"\\n')"),
         background("python3", "-m", "flask", "run", "--port", "8000", until="Running on"), OPEN, http("GET", "/ports/8000/", bytes=b"<h1>Flask</h1>"),
         modules="flask"),
    Case("fastapi with uvicorn",
         python("open('main.py', 'w').write('from fastapi import FastAPI\\napp = FastAPI()\\n@app.get(\"/double/{n}\")\\ndef d(n: int): return {\"n\": 2 * n}\\n')"),
         background("python3", "-m", "uvicorn", "main:app", "--port", "8000", until="Uvicorn running"), OPEN,
         http("GET", "/ports/8000/double/21", json={"n": 42}), http("GET", "/ports/8000/docs", shows="swagger"), modules=("fastapi", "uvicorn")),
    Case("express application",
         javascript("const app = require('express')(); app.get('/', (q, r) => r.json({express: true})); await new Promise(r => app.listen(8000, '127.0.0.1', r)); 1"),
         OPEN, http("GET", "/ports/8000/", json={"express": True}), needs="node", npm="express"),
    Case("http-server of npm, which lists its addresses", background("http-server", "-p", "8000", ".", until="http://127.0.0.1:8000"), OPEN,
         http("GET", "/ports/8000/", shows="Index of /"), needs="node", npm="http-server"),
    Case("streamlit application", python("open('app.py', 'w').write('import streamlit as st\\nst.title(\"Hi\")\\n')"),
         background("python3", "-m", "streamlit", "run", "app.py", "--server.port", "8000", "--server.headless", "true", "--global.developmentMode", "false", "--browser.gatherUsageStats", "false", until="Network URL"),
         OPEN, http("GET", "/ports/8000/_stcore/health", bytes=b"ok"), modules="streamlit"),
    Case("port by the command line", background("python3", "-u", "-c", PLAIN, until="ready"),
         cli("port", "{box}", "8000", shows=("http://127.0.0.1:", "/ports/8000~"))),
    Case("server goes on while code runs", background("python3", "-u", "-c", PLAIN, until="ready"), python("""
            import urllib.request
            urllib.request.urlopen('http://127.0.0.1:8000/in').read()""", result="b'path /in'")),
]
