# SPDX-License-Identifier: Apache-2.0
"""_version.py - Which version of the library this is."""

VERSION = "0.1.0"
