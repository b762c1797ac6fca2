#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deps.sh - Install the Debian/Ubuntu packages that a group of make targets needs, and only those
# that are missing. When nothing is missing it asks dpkg once and ends: no network, no root.
#
# usage: tools/deps.sh [--dry-run] GROUP...      groups: build test guest lint fuzz valgrind bench docker container container-test dist dist-test jupyter browser everyday
set -eu

packages() {
	case "$1" in
	build) echo gcc libc6-dev musl-dev meson ninja-build pkg-config python3 libseccomp-dev libcmocka-dev scdoc \
		libjansson-dev libwslay-dev libssl-dev libcurl4-openssl-dev libexpat1-dev libsqlite3-dev node-llhttp libc-ares-dev libidn2-dev libarchive-dev ;;
	test) echo python3-pytest procps util-linux strace nodejs r-base-core curl openssl python3-numpy python3-venv python3-pip flit git iproute2 docker-registry skopeo umoci apache2-utils busybox-static zstd mmdebstrap ;;
	guest) echo qemu-system-x86 ;;
	lint) echo clang-format clang-tidy cppcheck shellcheck codespell pyflakes3 ;;
	fuzz) echo clang "$(fuzzer_runtime)" ;;
	valgrind) echo valgrind libc6-dbg ;;
	docker) echo docker.io ;;
	container) echo mmdebstrap ;;
	container-test) echo docker.io python3-pytest python3-yaml curl util-linux ;;
	dist) echo dpkg-dev debhelper xz-utils git binutils flit ;;
	dist-test) echo python3-pytest python3-venv python3-pip lintian mmdebstrap qemu-system-x86 e2fsprogs util-linux ;;
	jupyter) echo jupyter-server python3-nbclient python3-jupyter-kernel-test python3-matplotlib python3-pandas ;;
	browser) echo chromium ;;
	# No servers: their packages would start them. Cases of servers that are not here are skipped.
	everyday) echo rsync ruby php-cli lua5.4 gfortran ffmpeg imagemagick graphviz pandoc poppler-utils tesseract-ocr libreoffice-calc-nogui libreoffice-writer-nogui chromium tmux gdb default-jdk-headless ;;
	bench) echo bubblewrap crun runc podman docker.io docker-registry skopeo python3-ipykernel python3-numpy wrk ;;
	*)
		echo "deps.sh: unknown group '$1' (build test guest lint fuzz valgrind bench docker container container-test dist dist-test jupyter browser everyday)" >&2
		exit 2
		;;
	esac
}

# libFuzzer's library carries the version of the distribution's clang in its package name.
fuzzer_runtime() {
	v=$(apt-cache show clang 2>/dev/null | sed -n 's/^Depends:.*clang-\([0-9][0-9]*\).*/\1/p' | head -n 1)
	echo "libclang-rt-${v:-14}-dev"
}

dry_run=
if [ "${1-}" = --dry-run ]; then
	dry_run=1
	shift
fi

wanted=
for group in "$@"; do
	names=$(packages "$group")
	wanted="$wanted $names"
done

# shellcheck disable=SC2086 # a list of package names, without spaces inside
have=$(dpkg-query -W -f '${Package}=${db:Status-Status} ' $wanted 2>/dev/null || :)
missing=
for p in $wanted; do
	case " $have $missing " in
	*" $p=installed "* | *" $p "*) ;;
	*) missing="${missing:+$missing }$p" ;;
	esac
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "deps.sh: this is not Debian or Ubuntu; please install the content of these packages: $missing" >&2
	exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "deps.sh: missing packages, and neither root nor sudo here. Run as root:" >&2
		echo "    apt-get install $missing" >&2
		exit 1
	fi
	as_root=sudo
fi

echo "deps.sh: installing: $missing"
[ -z "$dry_run" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
# The lists may be stale or absent (container images have none): try, refresh, try again.
install() {
	# shellcheck disable=SC2086 # a list of package names, without spaces inside
	$as_root apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 $missing
}
if ! install >/dev/null 2>&1; then
	echo "deps.sh: refreshing the package lists"
	if ! $as_root apt-get update -q -o Acquire::Retries=3 >/dev/null; then
		echo "deps.sh: some lists did not refresh; continuing with the others" >&2
	fi
	install
fi
