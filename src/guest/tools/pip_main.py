# SPDX-License-Identifier: Apache-2.0
"""`python -m pip`: see __init__.py."""
import os
import runpy
import sys

import pip

pip._command(sys.argv[1:])
if pip._real is None:
    sys.exit("%s: No module named pip" % sys.executable)
runpy.run_path(os.path.join(os.path.dirname(pip._real.origin), "__main__.py"), run_name="__main__")
