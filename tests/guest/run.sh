#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh - Run one command in a small QEMU guest with a Debian kernel and a chosen cgroup layout.
#
# The guest is a kernel and an initramfs with busybox and the files given; there is no disk and no
# network. Works without KVM. The kernel and busybox are Debian packages that are downloaded once
# and unpacked below the cache directory; nothing is installed on the host.
#
# usage: run.sh [-c v2|v1|hybrid] [-t SECONDS] [-m MIB] [-a KERNEL-ARGS] [-f HOST[:GUEST]]...
#               [-d HOSTDIR:GUESTDIR]... [-v] -- COMMAND [ARG...]
#   -f  copy a file (default: to /bin), with the shared libraries it needs
#   -d  copy a directory
#   -v  show the whole console
# Output: what the command wrote. Status: the command's; 77 the guest cannot be had here (the reason
# is on stderr); 124 timeout; 125 the guest ended without a verdict.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${CAISSON_GUEST_CACHE:-$here/../../build/guest}
layout=v2 seconds=180 memory=512 args='' verbose='' files='' dirs=''

no_guest() {
	echo "guest: cannot run here: $1" >&2
	exit 77
}

usage() {
	sed -n 's/^# \{0,1\}//; /^usage/,/^Output/p' "$0" >&2
	exit 2
}

while getopts c:t:m:a:f:d:v option; do
	case "$option" in
	c) layout=$OPTARG ;;
	t) seconds=$OPTARG ;;
	m) memory=$OPTARG ;;
	a) args=$OPTARG ;;
	f) files="$files $OPTARG" ;;
	d) dirs="$dirs $OPTARG" ;;
	v) verbose=1 ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
case "$layout" in v2 | v1 | hybrid) ;; *) usage ;; esac

# ---- what the guest is made of ----

# fetch DIR PACKAGE...: unpack packages into DIR once.
fetch() {
	into=$1
	shift
	[ ! -e "$into/.complete" ] || return 0
	command -v apt-get >/dev/null || no_guest "no apt-get to download $* with"
	rm -rf "$into" "$into.deb"
	mkdir -p "$into" "$into.deb"
	(cd "$into.deb" && apt-get download -q "$@" >log 2>&1) ||
		no_guest "apt-get download $*: $(tail -n 1 "$into.deb/log")"
	for deb in "$into.deb"/*.deb; do
		dpkg-deb -x "$deb" "$into"
	done
	rm -rf "$into.deb"
	: >"$into/.complete"
}

# The package behind a distribution's "newest kernel for virtual machines".
kernel_packages() {
	for meta in linux-image-cloud-amd64 linux-image-virtual; do
		real=$(apt-cache depends "$meta" 2>/dev/null |
			sed -n 's/^ *Depends: \(linux-\(image\|modules\)-[0-9][^ ]*\)$/\1/p')
		case "$real" in
		*linux-modules*) ;;
		linux-image-*-generic) real="$real linux-modules-${real#linux-image-}" ;;
		esac
		[ -z "$real" ] || break
	done
	# shellcheck disable=SC2086 # one line for the list
	echo $real
}

[ "$(uname -m)" = x86_64 ] || no_guest "only for x86-64"
command -v qemu-system-x86_64 >/dev/null || no_guest "no QEMU: apt-get install qemu-system-x86"
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
exec 9>"$cache/.lock"
flock 9 # two runs must not unpack the same package at once
if [ ! -e "$cache/kernel/.complete" ]; then
	packages=$(kernel_packages)
	[ -n "$packages" ] || no_guest "no kernel package known to apt (apt-get update?)"
	# shellcheck disable=SC2086 # a list of package names
	fetch "$cache/kernel" $packages
fi
fetch "$cache/busybox" busybox-static
flock -u 9
kernel=$(echo "$cache"/kernel/boot/vmlinuz-*)
[ -f "$kernel" ] || no_guest "the kernel package holds no vmlinuz"
busybox=$cache/busybox/bin/busybox
[ -x "$busybox" ] || busybox=$cache/busybox/usr/bin/busybox

# ---- the initramfs ----

work=$(mktemp -d "${TMPDIR:-/tmp}/caisson-guest.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
root=$work/root
mkdir -p "$root/bin" "$root/sbin" "$root/etc" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" \
	"$root/run" "$root/mnt" "$root/new" "$root/usr/bin" "$root/lib" "$root/root"
cp "$busybox" "$root/bin/busybox"

copy_file() { # HOST GUEST
	mkdir -p "$root$(dirname "$2")"
	cp -L "$1" "$root$2"
	# Its libraries, where the loader looks for them; nothing for a static program or a script.
	for lib in $(ldd "$1" 2>/dev/null | sed -n 's/.*[[:space:]]\(\/[^ ]*\) (0x.*/\1/p'); do
		[ -e "$root$lib" ] || {
			mkdir -p "$root$(dirname "$lib")"
			cp -L "$lib" "$root$lib"
		}
	done
}

for f in $files; do
	case "$f" in
	*:*) copy_file "${f%%:*}" "${f#*:}" ;;
	*) copy_file "$f" "/bin/$(basename "$f")" ;;
	esac
done
for d in $dirs; do
	mkdir -p "$root${d#*:}"
	cp -a "${d%%:*}/." "$root${d#*:}/"
done
# Built as a module: the writable layer of a cell's root.
find "$cache/kernel" -name 'overlay.ko*' | while read -r ko; do
	case "$ko" in
	*.zst) zstd -q -d "$ko" -o "$root/lib/overlay.ko" ;;
	*.xz) xz -d <"$ko" >"$root/lib/overlay.ko" ;;
	*) cp "$ko" "$root/lib/overlay.ko" ;;
	esac
done

quoted=
for word in "$@"; do
	quoted="$quoted '$(printf %s "$word" | sed "s/'/'\\\\''/g")'"
done
# The console carries the kernel's lines too: the command's part is framed by a word of this run.
frame=guest-$$-$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
cp "$here/init.sh" "$root/init"
printf 'frame=%s layout=%s\n' "$frame" "$layout" >"$root/settings"
printf '%s\n' "$quoted" >"$root/command"
chmod 755 "$root/init"
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initrd"

# ---- the run ----

status=0
timeout -k 5 "$seconds" qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none \
	-machine pc,accel=tcg -cpu max -smp 2 -m "$memory" -serial stdio \
	-kernel "$kernel" -initrd "$work/initrd" \
	-append "console=ttyS0 quiet loglevel=4 sysctl.kernel.hung_task_timeout_secs=60 panic=-1 mitigations=off nokaslr rdinit=/init $args" \
	</dev/null >"$work/console" 2>"$work/qemu" || status=$?
tr -d '\r' <"$work/console" >"$work/text"

[ -z "$verbose" ] || cat "$work/text" >&2
sed -n "/^$frame begin\$/,/^$frame end /p" "$work/text" | sed "/^$frame /d"
verdict=$(sed -n "s/^$frame end \([0-9]*\)\$/\1/p" "$work/text")
[ -z "$verdict" ] || exit "$verdict"
if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
	echo "guest: not done after $seconds s; the end of its console, with the tasks that hung for a minute:" >&2
	tail -n 80 "$work/text" >&2
	exit 124
fi
echo "guest: ended without a verdict (QEMU status $status); the end of its console:" >&2
cat "$work/qemu" >&2
tail -n 40 "$work/text" >&2
exit 125
