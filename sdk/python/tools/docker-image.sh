#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docker-image.sh - A root file system of Debian packages, once, for the tests of the docker runtime. Where Debian's mirrors do not
# answer, these tests are skipped, with the reason.
#
# usage: docker-image.sh DIR     DIR/docker-rootfs.tar
set -eu
mkdir -p "$1"
dir=$(cd "$1" && pwd)

[ ! -e "$dir/docker-rootfs.tar" ] || exit 0
if mmdebstrap --quiet --variant=essential --include=python3 "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" \
	"$dir/docker-rootfs.part.tar" >"$dir/docker-rootfs.log" 2>&1; then
	mv "$dir/docker-rootfs.part.tar" "$dir/docker-rootfs.tar"
else
	rm -f "$dir/docker-rootfs.part.tar"
	echo "sdk: no image for Docker: $(tail -n 1 "$dir/docker-rootfs.log" | cut -c 1-200)"
fi
