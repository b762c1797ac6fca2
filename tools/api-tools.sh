#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# api-tools.sh - Fetch third-party tools for OpenAPI documents, once, into DIR: schemathesis and a validator from PyPI
# (DIR/venv), a linter from npm (DIR/node_modules). Versions are fixed. If a tool is not available, prints the reason in one
# line and exits with 1: the tests that need it are skipped with that line.
#
# usage: tools/api-tools.sh DIR python|npm
set -eu
dir=$1

fail() {
	echo "$1" >&2
	exit 1
}

case $2 in
python)
	[ ! -x "$dir/venv/bin/st" ] || exit 0
	rm -rf "$dir/venv"
	/usr/bin/python3 -m venv "$dir/venv" >/dev/null 2>&1 || fail "no virtual environment can be made: install python3-venv"
	timeout 240 "$dir/venv/bin/pip" install -q --disable-pip-version-check 'schemathesis==4.32.5' 'openapi-spec-validator==0.7.2' \
		>"$dir/pip.log" 2>&1 || {
		rm -rf "$dir/venv"
		fail "PyPI gives no schemathesis: $(tail -n 1 "$dir/pip.log" | cut -c 1-200)"
	}
	;;
npm)
	[ ! -x "$dir/node_modules/.bin/redocly" ] || exit 0
	command -v npm >/dev/null || fail "npm is not installed"
	timeout 240 npm install --silent --no-audit --no-fund --prefix "$dir" '@redocly/cli@2.11.1' >"$dir/npm.log" 2>&1 || {
		rm -rf "$dir/node_modules"
		fail "npm gives no @redocly/cli: $(tail -n 1 "$dir/npm.log" | cut -c 1-200)"
	}
	;;
*)
	fail "api-tools.sh: python or npm, not '$2'"
	;;
esac
