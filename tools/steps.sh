#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# steps.sh - Run make targets, all of them even when one fails, and end with a table of their results.
#
# usage: tools/steps.sh LANE... [-- LANE...]...
#
# A lane is a list of targets in one argument; they run one after the other. The lanes between two `--` run side by side, and
# the lanes after a `--` wait for all of them. The very first target is the build. The others wait for it and are made without
# it (-o build), so that no two of them work on one build directory at once; when the build fails, they do not run. Only
# targets that fetch (*-fetch) need no build and start beside it.
#
# The output of a target is kept and printed whole when the target is over, so that outputs do not mix; a target that has no
# neighbour prints at once.
#
# If at most AGAIN_MAX tests failed in all, each of them is run once more, alone, after everything else. A test that fails
# again has failed. A test that passes only then is named in the summary, every time: its fault, or the program's, has to be
# found.
set -u
set -o pipefail
AGAIN_MAX=3
cd "$(dirname "$0")/.." || exit 2

begin=$SECONDS
logs=$(mktemp -d) || exit 2
trap 'rm -rf "$logs"' EXIT
# A signal to this script ends the lanes: each is a process group of its own.
set -m
lanes=()
# shellcheck disable=SC2317 # called by the trap
end_lanes() {
	local lane
	for lane in "${lanes[@]}"; do kill -TERM -- "-$lane" 2>/dev/null; done
	exit 130
}
trap end_lanes INT TERM HUP

build=${1%% *}
# Locked until the build is over.
exec 8>"$logs/building"
flock 8

report() { # TARGET VERDICT SECONDS
	printf '%-15s %-4s %4d s\n' "$@" >>"$logs/summary"
	[ "$2" = ok ] || echo "$1" >>"$logs/failed"
}

# Print the tests that failed, or whose fixtures did, by a target's output; nothing when there was an error outside of a test.
failures() { # TARGET
	grep -E '^(ERROR|!!!!)' "$logs/$1" | grep -qv '^ERROR [^ ]*tests/[^ ]*::' ||
		sed -nE 's/^(FAILED|ERROR) ([^ ]*tests\/[^ ]*::.*)$/\2/p' "$logs/$1" | sed 's/ - .*//' | sort -u
}

# Run the tests that failed once more, alone; true when all of them pass.
again() {
	local target rest=0
	while read -r target; do
		failures "$target" >"$logs/$target.only"
		[ -s "$logs/$target.only" ] || return 1
		cat "$logs/$target.only" >>"$logs/unsteady"
	done <"$logs/failed"
	[ "$(wc -l <"$logs/unsteady")" -le "$AGAIN_MAX" ] || return 1
	while read -r target; do
		printf '\n==== %s: the tests that failed, once more ====\n' "$target"
		CAISSON_ONLY=$logs/$target.only make --no-print-directory -o "$build" "$target" </dev/null 8>&- || rest=1
	done <"$logs/failed"
	return "$rest"
}

# Run one target: with its output at once, or as a block when others run beside it.
step() { # TARGET ALONE
	local target=$1 alone=$2 start verdict=ok without=(-o "$build")
	case $target in
	"$build") without=() ;;
	*-fetch) ;;
	*)
		flock -s "$logs/building" true
		[ -e "$logs/built" ] || return
		;;
	esac
	start=$SECONDS
	if [ "$alone" = 1 ]; then
		printf '\n==== %s ====\n' "$target"
		make --no-print-directory "${without[@]}" "$target" 2>&1 8>&- | tee "$logs/$target" || verdict=FAIL
	else
		make --no-print-directory "${without[@]}" "$target" >"$logs/$target" 2>&1 8>&- || verdict=FAIL
		{
			flock 9
			printf '\n==== %s: %s after %d s ====\n' "$target" "$verdict" $((SECONDS - start))
			cat "$logs/$target"
		} 9>"$logs/lock"
	fi
	report "$target" "$verdict" $((SECONDS - start))
	if [ "$target" = "$build" ]; then
		[ "$verdict" != ok ] || : >"$logs/built"
		flock -u 8
	fi
}

phase() { # LANE...
	local lane target
	[ $# -gt 0 ] || return 0
	[ $# -eq 1 ] || printf '\n---- side by side:%s ----\n' "$(printf ' [%s]' "$@")"
	lanes=()
	for lane in "$@"; do
		for target in $lane; do
			step "$target" "$(($# == 1))"
		done </dev/null &
		lanes+=("$!")
	done
	wait
	lanes=()
}

now=()
for argument in "$@" --; do
	if [ "$argument" != -- ]; then
		now+=("$argument")
		continue
	fi
	phase "${now[@]}"
	now=()
done

printf '\n==== summary ====\n'
cat "$logs/summary"
if [ ! -e "$logs/failed" ]; then
	printf 'all of %d steps passed in %d s\n' "$(wc -l <"$logs/summary")" $((SECONDS - begin))
	exit 0
fi
if again; then
	printf '\nall of %d steps passed in %d s, but these tests only when they were run again:\n' \
		"$(wc -l <"$logs/summary")" $((SECONDS - begin))
	cat "$logs/unsteady"
	exit 0
fi
printf 'FAILED, after %d s\n' $((SECONDS - begin))
exit 1
