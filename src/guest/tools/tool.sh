#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tool.sh - Stands before pip, uv, npm, npx and apt in the PATH of a cell, which has no network of its own.
#
# Commands that install packages go to lib/pip_install.py and lib/npm.js, which request the packages of the daemon. Other
# commands that need a network are answered here, at once and in one line, unless egress allows the index. Everything else
# runs the program of the image, as if this one were not there.
set -f
tools=/packages/tools
name=${0##*/}

say() {
	printf '%s\n' "$1" >&2
	exit "${2:-1}"
}

# find NAME: the image's program of that name is $found, or $found is empty.
find() {
	found=
	old=$IFS IFS=:
	for dir in $PATH; do
		case $dir in "$tools"/*) continue ;; esac
		if [ -f "$dir/$1" ] && [ -x "$dir/$1" ]; then
			found=$dir/$1
			break
		fi
	done
	IFS=$old
}

# run ARGUMENTS...: the image's program of this name, or an installed one.
run() {
	remedy=
	[ "$name" != uv ] || remedy="; 'pip install uv' installs it"
	find "$name"
	[ -n "$found" ] || say "$name: this image has no $name$remedy" 127
	exec "$found" "$@"
}

# with INTERPRETER ARGUMENTS...
with() {
	find "$1"
	[ -n "$found" ] || say "$name: this image has no $1" 127
	shift
	exec "$found" "$@"
}

# online HOST ARGUMENTS...: the image's program, if the sandbox may reach the host.
online() {
	host=$1
	shift
	! getent hosts "$host" >/dev/null 2>&1 || run "$@"
}

# first ARGUMENTS...: the first word that is neither an option nor the value of one is $verb.
first() {
	verb=
	while [ $# -gt 0 ]; do
		case $1 in
		--prefix | -C | --registry | --loglevel | --cache | -w | --workspace | --cache-dir | --log | --python | --project | --directory)
			[ $# -eq 1 ] || shift
			;;
		-*) ;;
		*)
			verb=$1
			return
			;;
		esac
		shift
	done
}

first "$@"
case $name:$verb in
pip:install | pip3:install | pip:download | pip3:download | pip:wheel | pip3:wheel | pip:index | pip3:index | pip:search | pip3:search)
	with python3 "$tools/lib/pip_install.py" "$@"
	;;
pip:* | pip3:*)
	find "$name"
	[ -n "$found" ] || with python3 -m pip "$@"
	exec "$found" "$@"
	;;
uv:pip)
	if [ "$1 ${2-}" = 'pip install' ]; then
		shift 2
		with python3 "$tools/lib/pip_install.py" install "$@"
	fi
	run "$@"
	;;
uv:add | uv:sync | uv:lock | uv:tool | uv:python | uvx:*)
	online pypi.org "$@"
	say "$name $verb: needs a network, and this sandbox has none; the daemon installs packages: uv pip install NAME, pip install NAME"
	;;
npm:install | npm:i | npm:in | npm:add | npm:ci | npm:clean-install | npm:exec | npm:x | npx:*)
	with node "$tools/lib/npm.js" "$name" "$@"
	;;
npm:update | npm:up | npm:upgrade | npm:create | npm:view | npm:info | npm:show | npm:search | npm:outdated | npm:audit | npm:publish | npm:login | npm:ping)
	online registry.npmjs.org "$@"
	say "npm $verb: needs a network, and this sandbox has none; the daemon installs packages: npm install NAME, npx NAME"
	;;
apt*:install | apt*:reinstall | apt*:remove | apt*:purge | apt*:autoremove | apt*:update | apt*:upgrade | apt*:*-upgrade | apt*:build-dep)
	say "$name $verb: a sandbox has no root and cannot change its system; use an image that has these programs, or pip install and npm install"
	;;
esac
run "$@"
