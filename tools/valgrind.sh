#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# valgrind.sh - Run the unit tests under valgrind's memcheck: no invalid access, no undefined value, no definite leak.
#
# usage: tools/valgrind.sh BUILD_DIR [PROGRAM...]
#
# Reports of memcheck are judged in forked children too. A test of a feature that valgrind lacks (it runs the program on a
# processor of its own, keeps descriptors and limits for itself, and does not have newer system calls) fails only under it.
# Programs with such tests are in a table with the reason: their reports count, but neither their verdict nor their leaks,
# because a test that fails leaves by longjmp.
set -u
cd "$(dirname "$0")/.." || exit 2
build=$1
shift

declare -A NOT_RUN=(
	[front-jail]='a filter of system calls can not be put on a process that valgrind runs'
	[front-jail_serve]='as front-jail'
	[front-jail_user]='as front-jail'
	[front-spare]='it replaces malloc, and so does valgrind'
)
declare -A UNABLE=(
	[base-fd]='descriptors beyond the limit are kept by valgrind'
	[cell-cgroup_enter]='no clone3 in valgrind'
	[cell-cgroup_kernel]='as cell-cgroup_enter'
	[cell-idmap]='no open_tree and mount_setattr in valgrind'
	[cell-plan]='no fsopen in valgrind'
	[cell-rlimit]='limits are simulated'
	[init-command_start]='limits are simulated'
	[init-control]='as init-command_start'
	[net-listen]='as base-fd'
	[remote-archive]='no openat2 in valgrind'
	[warden-claim]='no pidfd_open in valgrind'
	[warden-deadline]='as warden-claim'
	[warden-kernel]='as warden-claim'
	[warden-remains]='as warden-claim'
	[warden-zygote]='as warden-claim'
)

command -v valgrind >/dev/null || {
	echo "valgrind is missing: tools/deps.sh valgrind" >&2
	exit 2
}
logs=$(mktemp -d) || exit 2
trap 'rm -rf "$logs"' EXIT

# The name of a program from its path: unit-base-test_fd is base-fd.
name_of() {
	local name=${1##*/unit-}
	echo "${name/-test_/-}"
}

# Run one program. It leaves its output, its exit code, and the reports of every process that has some.
check() { # LOGS NAME LEAKS PROGRAM
	local log
	valgrind --leak-check="$3" --show-leak-kinds=definite --errors-for-leak-kinds=definite \
		--suppressions=tools/valgrind.supp --log-file="$1/$2.%p" "$4" >"$1/$2.out" 2>&1
	echo $? >"$1/$2.code"
	for log in "$1/$2".[0-9]*; do
		grep -qE 'ERROR SUMMARY: [1-9]' "$log" && sed -n '7,$p' "$log" >>"$1/$2.report"
	done
}
export -f check

programs=("$@")
[ $# -gt 0 ] || programs=("$build"/tests/unit/unit-*-test_*)
names=()
for program in "${programs[@]}"; do
	if [ ! -f "$program" ] || [ ! -x "$program" ]; then continue; fi
	name=$(name_of "$program")
	if [ -n "${NOT_RUN[$name]-}" ]; then
		echo "valgrind: not run: $name: ${NOT_RUN[$name]}" >&2
		continue
	fi
	names+=("$name")
	leaks=full
	[ -z "${UNABLE[$name]-}" ] || leaks=no
	printf '%s\0' "$name" "$leaks" "$program"
done > >(xargs -0 -n 3 -P "${VALGRIND_JOBS:-$(nproc)}" bash -c 'check "$@"' check "$logs")
wait $!

passed=0 failed=0
for name in "${names[@]}"; do
	if [ -s "$logs/$name.report" ]; then
		echo "valgrind: $name: memcheck reports:"
		head -60 "$logs/$name.report"
	elif [ "$(cat "$logs/$name.code")" != 0 ] && [ -z "${UNABLE[$name]-}" ]; then
		echo "valgrind: $name: failed"
		grep -vE '^\[ +(OK|RUN) +\]' "$logs/$name.out" | tail -20
	else
		[ -z "${UNABLE[$name]-}" ] || echo "valgrind: $name: no report; not all of its tests can pass: ${UNABLE[$name]}"
		passed=$((passed + 1))
		continue
	fi
	failed=$((failed + 1))
done
echo "$passed passed, $failed failed, ${#NOT_RUN[@]} skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
