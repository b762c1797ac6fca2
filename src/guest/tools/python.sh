#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python.sh - `python`, where the image has only python3. It is the last directory of PATH.
exec python3 "$@"
