#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-style.sh - The rules that no compiler and no formatter knows. One line per violation.
#
# usage: tools/check-style.sh [FILE...]     without files: the whole tree
set -eu

lines_max=800
bad=0

complain() { # FILE LINE MESSAGE
	echo "$1:$2: $3"
	bad=1
}

# each PATTERN MESSAGE FILES...: one complaint per matching line
each() {
	pattern=$1 message=$2
	shift 2
	found=$(grep -nHE -e "$pattern" -- "$@" /dev/null || :)
	[ -n "$found" ] || return 0
	echo "$found" | sed "s|^\([^:]*:[0-9]*\):.*|\1: $message|"
	bad=1
}

check_c() {
	# Words in comments are fine, calls are not: a name, then an opening parenthesis.
	for name in strcpy strcat strncpy strncat sprintf vsprintf gets atoi atol atoll atof strtok \
		alloca strdupa mktemp tmpnam tempnam system popen; do
		each "(^|[^A-Za-z0-9_])${name}\(" "$name() is banned, see CONTRIBUTING.md" "$@"
	done
	each '^[[:space:]]*//' 'comment with //: prose is /* */' "$@"
	each '(TODO|FIXME|(^|[^X])XXX)([^X(]|$)' 'open end without an issue number: TODO(#123)' "$@"
}

check_text() {
	for f in "$@"; do
		case "$f" in
		*.c | *.h | *.py | *.sh | *meson.build | *Makefile)
			head -n 2 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
				complain "$f" 1 'no SPDX line at the top'
			;;
		esac
		lines=$(wc -l <"$f")
		[ "$lines" -le "$lines_max" ] ||
			complain "$f" "$lines" "more than $lines_max lines: split it by noun"
		[ ! -s "$f" ] || [ -z "$(tail -c 1 "$f")" ] || complain "$f" "$lines" 'no newline at the end'
	done
	each '[[:blank:]]$' 'trailing space' "$@"
}

# Every source file must be in the build: a file that nobody compiles is checked by nobody.
check_listed() {
	for f in $(find src -name '*.c' | sort); do
		grep -qF "'${f#src/}'" src/meson.build || grep -qF "'${f#src/front/}'" src/front/meson.build ||
			grep -qF "'../$f'" guest/meson.build ||
			grep -qE "'(../$(basename "$(dirname "$f")")/)?$(basename "$f")'" src/*/meson.build ||
			complain "$f" 1 'not listed in src/meson.build'
	done
	for f in $(find tests/unit tests/fuzz -name '*.c' | sort); do
		name=$(basename "$f" .c)
		grep -qE "['/]${name#fuzz_}(\.c)?'" "$(echo "$f" | cut -d/ -f1-2)/meson.build" ||
			complain "$f" 1 "not listed in $(echo "$f" | cut -d/ -f1-2)/meson.build"
	done
}

if [ $# -gt 0 ]; then
	check_text "$@"
	check_c "$@"
else
	cd "$(dirname "$0")/.."
	# shellcheck disable=SC2046 # the names in this tree have no spaces
	check_text $(find . \( -name .git -o -name 'build*' -o -path ./tests/fuzz/corpus -o -name __pycache__ \
		-o -name .pytest_cache \) -prune -o -type f \( -name '*.[ch]' -o -name '*.py' -o -name '*.sh' \
		-o -name '*.md' -o -name '*.scd' -o -name '*.policy' -o -name meson.build -o -name Makefile \) -print |
		sed 's|^\./||' | sort)
	# shellcheck disable=SC2046
	check_c $(find src tools -name '*.[ch]' | sort)
	check_listed
	[ "$bad" -ne 0 ] || echo "check-style: clean"
fi
exit "$bad"
