#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh - Run every static check of the tree, and fail at the end if one of them failed.
#
# usage: tools/lint.sh [BUILD_DIR]     a configured Meson build, for compile_commands.json
#
# LINT_TIDY=no: without clang-tidy and cppcheck, which take most of the time.
# TIDY_NODES: how many states clang's analyzer follows in one function. Its own default, 225000, costs four
# times as much, and is worth a look before a release: TIDY_NODES=225000 make lint
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build}
jobs=$(nproc)
nodes=${TIDY_NODES:-50000}
failed=()

step() { # NAME COMMAND...
	local name=$1 start=$SECONDS
	shift
	if "$@"; then
		printf 'lint: %-12s ok    %3d s\n' "$name" $((SECONDS - start))
	else
		printf 'lint: %-12s FAIL  %3d s\n' "$name" $((SECONDS - start))
		failed+=("$name")
	fi
}

mapfile -t c_files < <(find src tools tests -name '*.[ch]' | sort)
mapfile -t py_files < <(find tools tests sdk -name '*.py' -not -path '*/__pycache__/*' | sort)
mapfile -t sh_files < <({
	find tools tests dist sdk -name '*.sh' -o -name '*.bash'
	echo .ci/run debian/caisson.postinst debian/caisson.prerm debian/caisson.postrm | tr ' ' '\n'
} | sort)

# The output of clang-format differs a little between versions: Debian 12's decides; others print a note.
format() {
	local v
	v=$(clang-format --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
	if [ "$v" = 14 ]; then
		clang-format --dry-run -Werror "${c_files[@]}"
		return
	fi
	clang-format --dry-run "${c_files[@]}" 2>&1 | grep -c clang-format-violations |
		sed "s/.*/lint: clang-format $v sees & differences; version 14 decides, so this is no verdict/"
}

# Only files that the build compiles: clang-tidy needs their flags. Flags that clang 14 does not take
# from a gcc build are switched off again.
tidy() {
	local files
	mapfile -t files < <(/usr/bin/python3 - "$build" <<-'END'
		import json, os, sys
		root, build = os.getcwd(), os.path.abspath(sys.argv[1])
		seen = set()
		for c in json.load(open(build + "/compile_commands.json")):
		    f = os.path.relpath(os.path.join(c["directory"], c["file"]), root)
		    if f.startswith(("src/", "tools/")):
		        seen.add(f)
		print("\n".join(sorted(seen)))
	END
	)
	[ "${#files[@]}" -gt 0 ] || return 1
	printf '%s\0' "${files[@]}" | timeout 600 xargs -0 -n 1 -P "$jobs" clang-tidy -p "$build" --quiet \
		--extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument \
		--extra-arg=-ftrivial-auto-var-init=uninitialized --extra-arg=-Xclang --extra-arg=-analyzer-config \
		--extra-arg=-Xclang "--extra-arg=max-nodes=$nodes" 2> >(grep -v 'warnings\? generated' >&2)
}

# memleak: like clang-tidy's, it does not know the cleanup attribute.
cpp_check() {
	timeout 600 cppcheck --quiet -j "$jobs" --std=c11 --language=c --error-exitcode=1 --inline-suppr \
		--enable=warning,performance,portability --max-configs=1 -Isrc -D_GNU_SOURCE "-D__$(uname -m)__" \
		--suppress=missingIncludeSystem --suppress=unknownMacro --suppress=memleak --suppress=checkersReport src
}

spell() {
	codespell -q 3 --skip './.git,./build*,./tests/fuzz/corpus,./src/front/packages/popular,./tests/unit/front/packages/typosquats.txt,./tests/survey/*.txt,./LICENSE,*.pyc,*/package-lock.json' \
		--ignore-words tools/codespell.words
}

step layers tools/check-layers.py
step prose tools/check-prose.py
step replies tools/check-replies.py
step style tools/check-style.sh
step docs tools/check-docs.py
step format format
step shellcheck shellcheck "${sh_files[@]}"
step python /usr/bin/python3 -m pyflakes "${py_files[@]}"
step spelling spell
step checkers /usr/bin/python3 -m pytest -q -p no:cacheprovider tools/test_tools.py tools/test_prose.py
if [ "${LINT_TIDY:-yes}" != no ]; then
	step cppcheck cpp_check
	step tidy tidy
fi

if [ "${#failed[@]}" -gt 0 ]; then
	echo "lint: failed: ${failed[*]}"
	exit 1
fi
echo "lint: clean (${#c_files[@]} C files, ${#py_files[@]} Python files, ${#sh_files[@]} shell files)"
