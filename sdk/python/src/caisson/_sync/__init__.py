# SPDX-License-Identifier: Apache-2.0
# Made from ../_async/__init__.py by tools/unasync.py. Change it there.
"""The blocking client. It is made from ../_async by tools/unasync.py."""
