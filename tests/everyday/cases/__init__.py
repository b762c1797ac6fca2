# SPDX-License-Identifier: Apache-2.0
"""The tables of everyday work, one module for each group; case.py explains their form."""
