#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lint.sh - The library's static checks: that the blocking client is what the asynchronous one makes, ruff, mypy --strict.
#
# usage: lint.sh fetch DIR     ruff and mypy from PyPI into DIR/lint, once; versions are fixed
#        lint.sh check DIR     what could not be fetched is skipped, with the reason
set -eu
what=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."

fetch() {
	[ ! -x "$dir/lint/bin/mypy" ] || return 0
	rm -rf "$dir/lint"
	if /usr/bin/python3 -m venv "$dir/lint" >"$dir/lint.log" 2>&1 &&
		timeout 240 "$dir/lint/bin/pip" install -q --disable-pip-version-check 'ruff==0.14.0' 'mypy==1.18.2' >"$dir/lint.log" 2>&1; then
		return 0
	fi
	rm -rf "$dir/lint"
	echo "PyPI gives no ruff and mypy: $(tail -n 1 "$dir/lint.log" | cut -c 1-200)" >"$dir/lint.why"
	return 1
}

check() {
	tools/unasync.py --check
	if ! fetch; then
		echo "sdk: ruff and mypy were not run: $(cat "$dir/lint.why")"
		return 0
	fi
	"$dir/lint/bin/ruff" check --quiet --no-cache .
	# The oldest Python that the library promises, whatever runs here.
	"$dir/lint/bin/mypy" --no-error-summary --python-version 3.9 --cache-dir "$dir/lint/cache"
}

case $what in
fetch) fetch || cat "$dir/lint.why" ;;
check) check ;;
*)
	echo "lint.sh: fetch or check, not '$what'" >&2
	exit 2
	;;
esac
