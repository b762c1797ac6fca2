#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-style.sh - Check the rules that neither a compiler nor a formatter checks. One line per violation.
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
	found=$(awk -v max="$lines_max" '
		function end_file() {
			if (file ~ /(\.[ch]|\.py|\.sh|meson\.build|Makefile)$/ && !spdx)
				print file ":1: no SPDX line at the top"
			if (lines > max)
				print file ":" lines ": more than " max " lines: split it by noun"
		}
		FNR == 1 { if (file) end_file(); file = FILENAME; spdx = 0 }
		FNR <= 2 && /SPDX-License-Identifier: Apache-2.0/ { spdx = 1 }
		{ lines = FNR }
		END { if (file) end_file() }' "$@")
	[ -z "$found" ] || {
		echo "$found"
		bad=1
	}
	for f in "$@"; do [ -s "$f" ] || complain "$f" 1 'empty'; done
	# The last bytes of all files at once; one by one only when there is something to find.
	[ -z "$(tail -q -c 1 -- "$@" | tr -d '\n')" ] || for f in "$@"; do
		[ -z "$(tail -c 1 "$f")" ] || complain "$f" "$(wc -l <"$f")" 'no newline at the end'
	done
	each '[[:blank:]]$' 'trailing space' "$@"
}

# Every source file must be in the build: a file that is never compiled is never checked.
check_listed() {
	listed=$(cat src/meson.build src/*/meson.build guest/meson.build)
	for f in $(find src -name '*.c' | sort); do
		dir=${f%/*}
		case $listed in
		*"'${f#src/}'"* | *"'${f#src/front/}'"* | *"'../$f'"* | *"'${f##*/}'"* | *"'../${dir##*/}/${f##*/}'"*) ;;
		*) complain "$f" 1 'not listed in src/meson.build' ;;
		esac
	done
	for dir in tests/unit tests/fuzz; do
		listed=$(cat $dir/meson.build)
		for f in $(find $dir -name '*.c' | sort); do
			name=${f##*/}
			name=${name%.c}
			name=${name#fuzz_}
			case $listed in
			*\'"$name'"* | */"$name'"* | *\'"$name.c'"* | */"$name.c'"*) ;;
			*) complain "$f" 1 "not listed in $dir/meson.build" ;;
			esac
		done
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
