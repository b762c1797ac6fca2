# SPDX-License-Identifier: Apache-2.0
"""pip, as every python of a cell imports it: the image's own pip, except for `pip install`.

This package comes before the image's pip in PYTHONPATH. So `python -m pip`, and the program pip of a virtual environment, come
here; pip_install.py, beside this package, does what needs the network. For everything else this package becomes the image's: its
code, its submodules, its file.
"""
import os
import re
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location

_lib = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_real = PathFinder.find_spec("pip", [p for p in sys.path if os.path.abspath(p) != _lib])
_is_program = bool(re.fullmatch(r"pip[\d.]*", os.path.basename(sys.argv[0] if sys.argv else "")))


def _command(args):
    """Do what needs the network, and exit; or return."""
    spec = spec_from_file_location("caisson_pip_install", os.path.join(_lib, "pip_install.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    status = module.command(args)
    if status is not None:
        sys.exit(status)


if _is_program:
    _command(sys.argv[1:])
elif _real is None and sys.argv[:1] != ["-m"]:
    raise ModuleNotFoundError("No module named 'pip'", name="pip")
if _real is not None:
    __path__ = [os.path.join(_lib, "pip"), *(_real.submodule_search_locations or ())]
    __file__ = _real.origin
    exec(_real.loader.get_code("pip"), globals())
