#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh - Run libFuzzer targets for a bounded time each, on copies of their corpora.
#
# New inputs stay in BUILD_DIR; a crash is copied to tests/fuzz/artifacts/ and named in the output.
# To keep one for good, put it into tests/fuzz/corpus/TARGET/ with a name that describes it.
#
# usage: tools/fuzz.sh BUILD_DIR SECONDS [TARGET]
set -u
cd "$(dirname "$0")/.." || exit 2
build=$1 seconds=$2 only=${3-}
status=0 n=0

mkdir -p tests/fuzz/artifacts
for program in "$build"/tests/fuzz/fuzz_*; do
	if [ ! -f "$program" ] || [ ! -x "$program" ]; then continue; fi
	target=${program##*/fuzz_}
	[ -z "$only" ] || [ "$only" = "$target" ] || continue
	n=$((n + 1))
	mkdir -p "$build/corpus/$target"
	printf '\n== %s, %s s ==\n' "$target" "$seconds"
	"$program" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 \
		-artifact_prefix="tests/fuzz/artifacts/$target-" \
		"$build/corpus/$target" "tests/fuzz/corpus/$target" 2>&1 |
		grep -vE '^#[0-9]+.*(NEW|REDUCE|pulse|RELOAD)|^INFO:|# Uses: |ecommended dictionary'
	[ "${PIPESTATUS[0]}" = 0 ] || {
		echo "fuzz: $target FAILED; the input is in tests/fuzz/artifacts/"
		status=1
	}
done
if [ "$n" = 0 ]; then
	echo "fuzz: no target '${only}'; there are: $(cd tests/fuzz && echo fuzz_*.c | sed 's/fuzz_\([a-z0-9_]*\)\.c/\1/g')" >&2
	exit 2
fi
exit "$status"
