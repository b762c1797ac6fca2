# SPDX-License-Identifier: Apache-2.0
"""The client. This is the source; tools/unasync.py makes the blocking client in ../_sync from it."""
