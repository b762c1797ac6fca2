# SPDX-License-Identifier: Apache-2.0
"""_version.py - The version of the library."""

VERSION = "0.1.0"
