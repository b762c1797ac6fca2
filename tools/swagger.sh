#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swagger.sh - Fetch Swagger UI's assets for GET /docs into the build directory. Nothing is vendored: one
# pinned version comes from the npm registry, and only when its hash is the one written here. Without
# it (no network, a slow one, another hash) the reason is printed and the daemon serves the small page
# of src/front/docs instead.
#
# usage: tools/swagger.sh [--required] DIR STAMP
#        DIR gets the assets, or nothing; STAMP is written last, and records which. --required: fail
#        instead of going on without.
# environment: npm_config_registry; CAISSON_SWAGGER_CACHE, where the package is kept, else caisson/ below XDG_CACHE_HOME
set -eu

version=5.34.1
# sha512 of the package: `npm view swagger-ui-dist@5.34.1 dist.integrity`, in hexadecimal.
sha512=552afc7d77c8f77a1b61a42270b25b2d42864710e88e3fd27d12430cb0a2a064d4063e012bf363e1e13d8c278202727154b8bb892fb4f0f6e264bcab40a06425
seconds=20
registry=${npm_config_registry:-https://registry.npmjs.org}
cache=${CAISSON_SWAGGER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/caisson}

required=
if [ "${1-}" = --required ]; then
	required=1
	shift
fi
if [ $# -ne 2 ]; then
	sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2
	exit 2
fi
dir=$1 stamp=$2
name=swagger-ui-dist-$version.tgz
rm -rf "$dir"
mkdir -p "$dir"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

without() { # REASON
	echo "swagger.sh: $1; GET /docs will be the small page" >&2
	[ -z "$required" ] || exit 1
	echo "none: $1" >"$stamp"
	exit 0
}

good() { # FILE
	[ -f "$1" ] && echo "$sha512  $1" | sha512sum --check --status -
}

fetch() { # URL FILE
	if command -v curl >/dev/null; then
		timeout "$seconds" curl -fsSL --connect-timeout 5 -o "$2" "$1"
	else
		timeout "$seconds" python3 -c 'import shutil, sys, urllib.request as u
with u.urlopen(sys.argv[1], timeout=5) as r, open(sys.argv[2], "wb") as f: shutil.copyfileobj(r, f)' "$1" "$2"
	fi 2>"$work/why"
}

if good "$cache/$name"; then
	cp "$cache/$name" "$work/$name"
else
	fetch "${registry%/}/swagger-ui-dist/-/$name" "$work/$name" ||
		without "could not fetch it from $registry ($(tail -n 1 "$work/why"))"
	good "$work/$name" || without "$name from $registry has another hash than the one pinned"
	# A cache that cannot be written costs a download next time, no more.
	{ mkdir -p "$cache" && cp "$work/$name" "$cache/.$name.$$" && mv "$cache/.$name.$$" "$cache/$name"; } \
		2>/dev/null || :
fi
tar -xzf "$work/$name" -C "$work" package/swagger-ui.css package/swagger-ui-bundle.js \
	package/swagger-ui-bundle.js.LICENSE.txt package/NOTICE
# The source map stays behind, so its name goes too.
sed 's|^//# sourceMappingURL=.*||' "$work/package/swagger-ui-bundle.js" >"$dir/swagger-ui-bundle.js"
sed 's|^/\*# sourceMappingURL=.*||' "$work/package/swagger-ui.css" >"$dir/swagger-ui.css"
cat "$work/package/NOTICE" "$work/package/swagger-ui-bundle.js.LICENSE.txt" >"$dir/swagger-notice.txt"
echo "swagger-ui-dist $version" >"$stamp"
