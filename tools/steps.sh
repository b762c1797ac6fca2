#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# steps.sh - Run make targets one after the other, all of them even when one fails, and end with a
# table of what happened. The first one (the build) is needed by all others: it stops the run.
#
# usage: tools/steps.sh TARGET...
set -u
cd "$(dirname "$0")/.." || exit 2

summary=()
status=0
first=1
begin=$SECONDS
for target in "$@"; do
	printf '\n==== %s ====\n' "$target"
	start=$SECONDS
	if make --no-print-directory "$target"; then
		verdict=ok
	else
		verdict=FAIL
		status=1
	fi
	summary+=("$(printf '%-14s %-4s %4d s' "$target" "$verdict" $((SECONDS - start)))")
	[ "$first" = 1 ] && [ "$verdict" = FAIL ] && break
	first=0
done

printf '\n==== summary ====\n'
printf '%s\n' "${summary[@]}"
if [ "$status" = 0 ]; then
	printf 'all of %d steps passed in %d s\n' "${#summary[@]}" $((SECONDS - begin))
else
	printf 'FAILED, after %d s\n' $((SECONDS - begin))
fi
exit "$status"
