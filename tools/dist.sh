#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dist.sh - Make the files of a release from the last commit: the source, the Debian package of this machine's release, the Python
# library, a bill of materials, and the checksums of all of them.
#
# Everything is made from the unpacked source tarball, so that nothing of the work tree gets in, and everything that the tarball lacks
# is noticed. Times are the commit's. The same commit on the same packages gives the same bytes in every directory.
#
# usage: tools/dist.sh [DIR]      default: build/dist. The build is below DIR.work, with its log
# environment: CAISSON_SWAGGER=disabled for a build that asks no npm registry: GET /docs is then a small page of Caisson's own
set -eu
cd "$(dirname "$0")/.."
dir=$(realpath -m "${1:-build/dist}") work=$(realpath -m "${1:-build/dist}").work

fail() {
	echo "dist.sh: $1" >&2
	exit 1
}

version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
name=caisson-$version
[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] ||
	fail "this is not a git clone, whose last commit would be released; in an unpacked tarball: dpkg-buildpackage -b -us -uc"
changed=$(git status --porcelain | head -n 5)
[ -z "$changed" ] || fail "the tree differs from the commit that would be released; commit, stash or remove:
$changed"
command -v dpkg-buildpackage >/dev/null || fail "dpkg-buildpackage is missing: tools/deps.sh dist"

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C.UTF-8
umask 022
rm -rf "$dir" "$work"
mkdir -p "$work/out"

git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | xz -6 -T1 >"$work/out/$name.tar.xz"
tar -C "$work" -xJf "$work/out/$name.tar.xz"
source=$work/$name

# debhelper hides the cache of the home directory from the build.
export CAISSON_SWAGGER="${CAISSON_SWAGGER:-enabled}"
export CAISSON_SWAGGER_CACHE="${CAISSON_SWAGGER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/caisson}"
(cd "$source" && dpkg-buildpackage -b -us -uc) >"$work/log" 2>&1 || {
	tail -n 20 "$work/log" >&2
	fail "dpkg-buildpackage failed; the whole log is $work/log"
}
mv "$work"/*.deb "$work/out/"

# By flit_core of the distribution; nothing is fetched.
cp "$source/LICENSE" "$source/sdk/python/"
(cd "$source/sdk/python" && /usr/bin/python3 -c '
import sys
from flit_core import buildapi
buildapi.build_sdist(sys.argv[1])
buildapi.build_wheel(sys.argv[1])' "$work/out")

tools/sbom.py --build "$(echo "$source"/obj-*)" --buildinfo "$(echo "$work"/caisson_*.buildinfo)" \
	"$(echo "$work"/out/caisson_*.deb)" >"$work/out/$name.spdx.json"
(cd "$work/out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
mv "$work/out" "$dir"
du -h --apparent-size "$dir"/*
