# SPDX-License-Identifier: Apache-2.0
"""notebook.py - nbclient runs a notebook through jupyter_server's gateway classes. usage: notebook.py URL; prints the outputs as JSON."""
import json
import os
import sys

import nbformat
from jupyter_server.gateway.managers import GatewayClient, GatewayKernelManager
from nbclient import NotebookClient

GatewayClient.instance().url = sys.argv[1]
notebook = nbformat.v4.new_notebook()
notebook.cells = [nbformat.v4.new_code_cell(c) for c in json.load(sys.stdin)]
NotebookClient(notebook, kernel_manager_class=GatewayKernelManager, kernel_name="python3", timeout=60, allow_errors=True).execute()
print(json.dumps([[dict(o) for o in c.outputs] for c in notebook.cells]), flush=True)
os._exit(0)  # a thread of the gateway's client would wait for ever
