#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# valgrind.sh - Run the unit tests under valgrind's memcheck: no invalid access, no undefined value, no definite leak.
#
# usage: tools/valgrind.sh BUILD_DIR [PROGRAM...]
#
# Reports of memcheck are what is judged, in forked children too. A test of what valgrind itself can not do (it runs the program on a
# processor of its own, keeps descriptors and limits for itself, and knows no newer system calls) fails under it and nowhere else;
# those programs are in the table with the reason, and of them only the reports count.
set -u
cd "$(dirname "$0")/.." || exit 2
build=$1
shift
jobs=${VALGRIND_JOBS:-$(nproc)}

declare -A NOT_RUN=(
	[front-jail]='a filter of system calls can not be put on a process that valgrind runs'
	[front-jail_serve]='as front-jail'
	[front-jail_user]='as front-jail'
)
declare -A FAILS_UNDER_IT=(
	[base-fd]='valgrind keeps descriptors beyond the limit for itself'
	[cell-idmap]='no open_tree and mount_setattr in valgrind'
	[cell-plan]='no fsopen in valgrind'
	[cell-rlimit]='limits are simulated'
	[init-command_start]='no execveat of descriptors, limits are simulated'
	[init-control]='as init-command_start'
	[net-listen]='valgrind keeps descriptors beyond the limit for itself'
)

command -v valgrind >/dev/null || {
	echo "valgrind is missing: tools/deps.sh valgrind" >&2
	exit 2
}
logs=$(mktemp -d) || exit 2
trap 'rm -rf "$logs"' EXIT

# One program; its verdict is a file.
check() { # LOGS PROGRAM
	local name=${2##*/unit-} code
	name=${name/-test_/-}
	valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
		--log-file="$1/$name.%p" "$2" >"$1/$name.out" 2>&1
	code=$?
	grep -hE '^==[0-9]+==' "$1/$name".[0-9]* >"$1/$name.report" 2>/dev/null
	echo "$code" >"$1/$name.code"
}
export -f check

programs=("$@")
[ $# -gt 0 ] || programs=("$build"/tests/unit/unit-*-test_*)
selected=()
for program in "${programs[@]}"; do
	if [ ! -f "$program" ] || [ ! -x "$program" ]; then continue; fi
	name=${program##*/unit-} name=${name/-test_/-}
	if [ -n "${NOT_RUN[$name]-}" ]; then
		echo "valgrind: not run: $name: ${NOT_RUN[$name]}"
	else
		selected+=("$program")
	fi
done
printf '%s\0' "${selected[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'check "$@"' check "$logs"

passed=0 failed=0
for program in "${selected[@]}"; do
	name=${program##*/unit-} name=${name/-test_/-}
	if [ -s "$logs/$name.report" ]; then
		echo "valgrind: $name: reports of memcheck:"
		head -60 "$logs/$name.report"
		failed=$((failed + 1))
	elif [ "$(cat "$logs/$name.code")" = 0 ]; then
		passed=$((passed + 1))
	elif [ -n "${FAILS_UNDER_IT[$name]-}" ]; then
		echo "valgrind: $name: no report; of its tests some fail under valgrind alone: ${FAILS_UNDER_IT[$name]}"
		passed=$((passed + 1))
	else
		echo "valgrind: $name: failed"
		grep -vE '^\[ +(OK|RUN) +\]' "$logs/$name.out" | tail -20
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, ${#NOT_RUN[@]} skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
