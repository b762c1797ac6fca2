# SPDX-License-Identifier: Apache-2.0
"""network.py - Egress: denied with a hint, allowed by name. $WEB is a web server outside, as name and port."""
from case import Case, bash, http, javascript, python

ASK = "import os, urllib.request\nprint(urllib.request.urlopen('http://' + os.environ['WEB'] + '/', timeout=20).read().decode())"
EXAMPLE = "import urllib.request\nurllib.request.urlopen('http://example.com/', timeout=20)"
WEB = {"WEB": "{web}"}
OPEN = {"egress": ["{web}"], "env": WEB}

CASES = [
    Case("denied with a hint", python(EXAMPLE, code=1, error="URLError", hint="egress to example.com is not allowed; add it to egress"), spec=OPEN, quick=True),
    Case("denied in a sandbox without any egress", python(EXAMPLE, code=1, error="URLError", hint="egress")),
    Case("allowed by name", python(ASK, shows="hello from web.test"), spec=OPEN, quick=True),
    Case("allowed by name with curl", bash("curl -sS http://$WEB/", shows="hello from web.test"), spec=OPEN, needs="curl"),
    Case("allowed by name with fetch",
         javascript("(await (await fetch('http://' + process.env.WEB + '/')).text()).slice(0, 19)", result="'hello from web.test'"), spec=OPEN, needs="node"),
    Case("posting to an allowed host", python("""
            import os, urllib.request
            urllib.request.urlopen('http://' + os.environ['WEB'] + '/', data=b'sent', timeout=20).read()""", result="b'sent'"), spec=OPEN),
    Case("another port is refused", python("""
            import socket
            socket.create_connection(('web.test', 9), 5)""", code=1, error="ConnectionRefusedError"), spec=OPEN),
    Case("an address is unreachable at once", python("""
            import socket
            socket.create_connection(('93.184.216.34', 80), 5)""", code=1, error="OSError: [Errno 101] Network is unreachable"), spec=OPEN),
    Case("loopback of the host is out of reach", bash("curl -sS --max-time 5 http://127.0.0.1:${WEB##*:}/", code=7), spec={"env": WEB}, needs="curl"),
    Case("hosts can be added later", python(ASK, code=1, error="URLError"), http("PUT", "/egress", body={"egress": ["{web}"]}),
         python(ASK, shows="hello from web.test"), spec={"env": WEB}),
    Case("use of the network is listed", python(ASK, shows="hello"), http("GET", "/net", json={"opened": 1}), spec=OPEN),
]
