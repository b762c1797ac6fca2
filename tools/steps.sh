#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# steps.sh - Run make targets, all of them even when one fails, and end with a table of what happened.
#
# usage: tools/steps.sh LANE... [-- LANE...]...
#
# A lane is a list of targets in one argument; they run one after the other. The lanes between two `--`
# run side by side, and what comes after a `--` waits for all of them. The first target is the build,
# which the others need: when it fails the run ends, and the others are made without it (-o build), so
# that no two of them look after one build directory at once.
#
# The output of a target is kept and printed whole when it is over, so that nothing is mixed; a target
# that has no neighbour speaks at once.
#
# A test that failed is run once more when all is over and the machine has nothing else to do, if no more
# than AGAIN_MAX of them failed in all: what fails then has failed. What passes only then is named in the
# summary, every time: it is a fault of the test or of the program, that has to be found.
set -u
set -o pipefail
AGAIN_MAX=3
cd "$(dirname "$0")/.." || exit 2

begin=$SECONDS
logs=$(mktemp -d) || exit 2
trap 'rm -rf "$logs"' EXIT
# Whoever ends us ends what runs: each lane is a process group of its own.
set -m
lanes=()
# shellcheck disable=SC2317 # called by the trap
end_lanes() {
	local lane
	for lane in "${lanes[@]}"; do kill -TERM -- "-$lane" 2>/dev/null; done
	exit 130
}
trap end_lanes INT TERM HUP

say() { # TARGET VERDICT SECONDS
	printf '%-14s %-4s %4d s\n' "$@" >>"$logs/summary"
	[ "$2" = ok ] || echo "$1" >>"$logs/failed"
}

# The tests that a target's output calls failed, or whose surroundings did. An error outside of a test is none of them: then
# there is no list.
failures() { # TARGET
	grep -E '^(ERROR|!!!!)' "$logs/$1" | grep -qv '^ERROR [^ ]*tests/[^ ]*::' ||
		sed -nE 's/^(FAILED|ERROR) ([^ ]*tests\/[^ ]*::.*)$/\2/p' "$logs/$1" | sed 's/ - .*//' | sort -u
}

# Once more, alone, what failed; true when all of it passes.
again() {
	local target rest=0
	while read -r target; do
		failures "$target" >"$logs/$target.only"
		[ -s "$logs/$target.only" ] || return 1
		cat "$logs/$target.only" >>"$logs/unsteady"
	done <"$logs/failed"
	[ "$(wc -l <"$logs/unsteady")" -le "$AGAIN_MAX" ] || return 1
	while read -r target; do
		printf '\n==== %s, once more what failed ====\n' "$target"
		CAISSON_ONLY=$logs/$target.only make --no-print-directory -o build "$target" </dev/null || rest=1
	done <"$logs/failed"
	return "$rest"
}

# One target: make's own output, or a block of it when others run beside.
step() { # TARGET ALONE OPTIONS...
	local target=$1 alone=$2 start=$SECONDS verdict=ok
	shift 2
	if [ "$alone" = 1 ]; then
		printf '\n==== %s ====\n' "$target"
		make --no-print-directory "$@" "$target" 2>&1 | tee "$logs/$target" || verdict=FAIL
	else
		make --no-print-directory "$@" "$target" >"$logs/$target" 2>&1 || verdict=FAIL
		{
			flock 9
			printf '\n==== %s: %s after %d s ====\n' "$target" "$verdict" $((SECONDS - start))
			cat "$logs/$target"
		} 9>"$logs/lock"
	fi
	say "$target" "$verdict" $((SECONDS - start))
	[ "$verdict" = ok ]
}

phase() { # LANE...
	local lane target
	[ $# -gt 0 ] || return 0
	[ $# -eq 1 ] || printf '\n---- side by side:%s ----\n' "$(printf ' [%s]' "$@")"
	lanes=()
	for lane in "$@"; do
		for target in $lane; do
			step "$target" "$(($# == 1))" -o build
		done </dev/null &
		lanes+=("$!")
	done
	wait
	lanes=()
}

if step "$1" 1; then
	shift
	now=()
	for argument in "$@" --; do
		if [ "$argument" != -- ]; then
			now+=("$argument")
			continue
		fi
		phase "${now[@]}"
		now=()
	done
fi

printf '\n==== summary ====\n'
cat "$logs/summary"
if [ ! -e "$logs/failed" ]; then
	printf 'all of %d steps passed in %d s\n' "$(wc -l <"$logs/summary")" $((SECONDS - begin))
	exit 0
fi
if again; then
	printf '\nall of %d steps passed in %d s, but these only when they were run again:\n' "$(wc -l <"$logs/summary")" $((SECONDS - begin))
	cat "$logs/unsteady"
	exit 0
fi
printf 'FAILED, after %d s\n' $((SECONDS - begin))
exit 1
