#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# container.sh - Make the files of the container image, without a registry and without a container engine: debian.tar (packages of
# this machine's release of Debian or Ubuntu, with whose libraries the programs are linked), caisson.tar (this tree, as `make install`
# installs it), and both as the OCI layout oci. debian.tar is kept while the list of packages stays the same.
#
# usage: tools/container.sh       makes build/container, which the Dockerfile names
# environment: CONTAINER_PACKAGES (further packages, separated by commas), CONTAINER_MIRROR (of the distribution),
#              SOURCE_DATE_EPOCH (else the time of the last commit)
set -eu
cd "$(dirname "$0")/.."
dir=build/container stage=build/container/stage
packages=python3,python3-pip,nodejs,git,curl,ca-certificates,procps

fail() {
	echo "container.sh: $1" >&2
	exit 1
}

# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
if [ -z "$suite" ] || ! command -v dpkg >/dev/null; then
	fail "this is not Debian or Ubuntu, of whose packages the image is made"
fi
[ -n "${SOURCE_DATE_EPOCH-}" ] || SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

# ---- this tree -----------------------------------------------------------------------------------

rm -rf "$stage"
mkdir -p "$stage"
# A build of its own: the prefix is compiled in.
make --no-print-directory install RELEASE=$dir/build PREFIX=/usr DESTDIR="$(realpath "$stage")" >$dir/install.log 2>&1 || {
	tail -n 20 $dir/install.log >&2
	fail "make install failed; the whole log is $dir/install.log"
}
# Parts that nothing in a container uses.
rm -rf "$stage/usr/lib/systemd" "$stage/usr/lib/sysusers.d" "${stage:?}/lib" "$stage/usr/share/man" "$stage/usr/share/zsh" \
	"$stage/usr/share/fish" "$stage/usr/share/caisson/apparmor-profile"
install -D -m 644 dist/container/seccomp.json "$stage/usr/share/caisson/seccomp.json"
install -d -m 755 "$stage/var" "$stage/var/lib"
install -d -m 700 "$stage/var/lib/caisson"
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf $dir/caisson.tar .

# ---- Debian --------------------------------------------------------------------------------------

# The package of a library. With /usr merged, dpkg knows a file by one of two names.
owner() {
	dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "/usr$1" 2>/dev/null || dpkg-query -S "${1#/usr}" 2>/dev/null ||
		fail "$1 belongs to no package, so the image would lack it: link with the distribution's own"
}
find "$stage" -type f -perm -100 -exec ldd {} + 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) (.*/\1/p' | sort -u >$dir/libraries
while read -r library; do
	found=$(owner "$library")
	echo "${found%%:*}"
done <$dir/libraries >$dir/owners
packages=$packages,$(sort -u $dir/owners | paste -sd,)${CONTAINER_PACKAGES:+,$CONTAINER_PACKAGES}

if [ "$(cat $dir/debian.list 2>/dev/null)" != "$suite $packages" ] || [ ! -e $dir/debian.tar ]; then
	command -v mmdebstrap >/dev/null || fail "mmdebstrap, which makes the root file system, is not installed: apt-get install mmdebstrap"
	# As `caisson image build` does.
	mmdebstrap --variant=minbase --format=tar --include="$packages" --dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' "$suite" $dir/debian.tar.new ${CONTAINER_MIRROR:+"$CONTAINER_MIRROR"}
	mv $dir/debian.tar.new $dir/debian.tar
	echo "$suite $packages" >$dir/debian.list
fi

tools/oci-layout.py Dockerfile sandbox:latest $dir/oci
echo "container: $(du -ch $dir/debian.tar $dir/caisson.tar | sed -n 's/\ttotal//p') in $dir; now: docker build -t sandbox:latest ."
