#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# extras.sh - Libraries of others that the library is tested with, from PyPI, once. Where PyPI does not answer, the tests that need them are skipped.
#
# usage: extras.sh DIR     DIR/extras
set -eu
mkdir -p "$1"
dir=$(cd "$1" && pwd)

[ ! -e "$dir/extras/whole" ] || exit 0
rm -rf "$dir/extras"
if /usr/bin/python3 -m venv "$dir/extras" >"$dir/extras.log" 2>&1 &&
	timeout 300 "$dir/extras/bin/pip" install -q --disable-pip-version-check 'smolagents==1.26.0' 'mcp>=1.9,<2' >"$dir/extras.log" 2>&1; then
	touch "$dir/extras/whole"
else
	rm -rf "$dir/extras"
	echo "sdk: PyPI gives no smolagents and mcp: $(tail -n 1 "$dir/extras.log" | cut -c 1-200)"
fi
