#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# machine.sh - Boot a Debian root with systemd, run the service dist-test in it, and bring back what it left in /out.
#
# The root is not changed: the machine gets an overlay of it, in a mount namespace of its own.
#
# container: namespaces and cgroups of its own on this machine's Linux kernel; no network. It resembles a server more than a container of
# an engine: /proc is whole and cgroups are writable, because systemd and the daemon shall find what they find there. systemd has /proc/sys
# read-only, so that it sets nothing of this machine; a second /proc is whole, because the Linux kernel gives a new /proc (a cell's) only to
# a mount namespace that has a whole one.
#
# qemu: a guest with the root's own Linux kernel, from a disk of its own, and cgroup v2. It needs no KVM, and emulates the processor.
#
# usage: machine.sh container|qemu ROOT ADDED OUT SECONDS     ADDED: a directory that is laid over the root; OUT: gets the files of /out,
#        and the console
# environment: MACHINE_PROCESSORS, of the guest (2)
# Status: 77 this kind of machine cannot be had here (the reason is on stderr); 124 timeout.
set -eu

kind=$1 root=$(realpath "$2") added=$(realpath "$3") out=$(realpath "$4") seconds=$5
name=caisson-dist-$PPID

none() {
	echo "machine.sh: $1" >&2
	exit 77
}

# ---- cgroups, outside ------------------------------------------------------------------------------

# Every hierarchy, as the first process sees it: those of v1, and v2.
hierarchies() { awk '$(NF - 2) == "cgroup" || $(NF - 2) == "cgroup2" { print $5 }' /proc/self/mountinfo; }

enter_cgroups() {
	local top
	for top in $(hierarchies); do
		mkdir -p "$top/$name"
		if [ -e "$top/$name/cpuset.cpus" ] && [ -e "$top/cpuset.cpus" ]; then
			cat "$top/cpuset.cpus" >"$top/$name/cpuset.cpus"
			cat "$top/cpuset.mems" >"$top/$name/cpuset.mems"
		fi
		echo "$BASHPID" >"$top/$name/cgroup.procs"
	done
}

# shellcheck disable=SC2317 # called by the trap
leave_cgroups() {
	local top
	for top in $(hierarchies); do
		[ -d "$top/$name" ] || continue
		find "$top/$name" -depth -type d -exec rmdir {} + || :
	done
}

# ---- the container, inside -------------------------------------------------------------------------

inside() {
	local merged=$work/root at options
	mount -t proc -o nosuid,nodev,noexec proc "$merged/proc"
	mount --bind "$merged/proc/sys" "$merged/proc/sys"
	mount -o remount,bind,ro "$merged/proc/sys"
	mount -t sysfs -o nosuid,nodev,noexec,ro sysfs "$merged/sys"
	if grep -qw cgroup /proc/filesystems && [ -d /sys/fs/cgroup/memory ]; then
		mount -t tmpfs -o mode=755 tmpfs "$merged/sys/fs/cgroup"
		while read -r at options; do
			mkdir -p "$merged$at"
			mount -t "${options%% *}" -o "${options#* }" cgroup "$merged$at"
		done < <(awk '$(NF - 2) ~ /^cgroup2?$/ { split($NF, o, ","); t = $(NF - 2); s = ""
			for (i in o) if (o[i] !~ /^(rw|ro|nsdelegate|memory_recursiveprot|xattr)$/) s = s "," o[i]
			print $5, t, "rw" s }' /proc/self/mountinfo)
	else
		mount -t cgroup2 cgroup2 "$merged/sys/fs/cgroup"
	fi
	mount -t tmpfs -o mode=755,nosuid tmpfs "$merged/dev"
	for at in null zero full random urandom tty; do
		: >"$merged/dev/$at"
		mount --bind "/dev/$at" "$merged/dev/$at"
	done
	mkdir "$merged/dev/pts" "$merged/dev/shm" "$merged/dev/whole-proc"
	mount -t devpts -o newinstance,mode=620,ptmxmode=666 devpts "$merged/dev/pts"
	ln -s pts/ptmx "$merged/dev/ptmx"
	ln -s /proc/self/fd "$merged/dev/fd"
	mount -t tmpfs -o mode=1777 tmpfs "$merged/dev/shm"
	mount -t proc -o nosuid,nodev,noexec proc "$merged/dev/whole-proc"
	mount -t tmpfs -o mode=755 tmpfs "$merged/run"
	cd "$merged"
	mkdir -p old
	pivot_root . old
	exec chroot . /bin/sh -c 'umount -l /old && rmdir /old && exec env -i container=caisson-test TERM=dumb /lib/systemd/systemd --log-target=journal' </dev/null
}

# ---- both ------------------------------------------------------------------------------------------

if [ "${MACHINE_STEP-}" = inside ]; then
	inside
elif [ "${MACHINE_STEP-}" != mounts ]; then
	[ "$(id -u)" = 0 ] || none "only root can boot machines here"
	# Not exec: the cgroups are removed when everything in them has ended.
	trap leave_cgroups EXIT
	MACHINE_STEP=mounts unshare --mount --propagation private -- "$0" "$@"
	exit
fi

work=$(mktemp -d "$out/work.XXXXXX")
trap 'umount --lazy "$work/root" || :; rm -rf --one-file-system "$work"' EXIT
mkdir "$work/upper" "$work/work" "$work/root"
cp -a --no-preserve=ownership "$added/." "$work/upper/"
chmod 755 "$work/upper"
mount -t overlay -o "lowerdir=$root,upperdir=$work/upper,workdir=$work/work" overlay "$work/root"

status=0
case $kind in
container)
	(
		enter_cgroups
		export work MACHINE_STEP=inside
		exec timeout -k 10 "$seconds" unshare --cgroup --pid --fork --kill-child --uts --ipc --net --mount --propagation private -- "$0" "$@"
	) >"$out/console" 2>&1 </dev/null || status=$?
	cp "$work/upper"/out/* "$out/" || :
	;;
qemu)
	command -v qemu-system-x86_64 >/dev/null || none "there is no QEMU (tools/deps.sh dist-test)"
	kernel=$(echo "$root"/boot/vmlinuz-*) initrd=$(echo "$root"/boot/initrd.img-*)
	if [ ! -f "$kernel" ] || [ ! -f "$initrd" ]; then
		none "the root has no Linux kernel"
	fi
	mke2fs -q -t ext4 -d "$work/root" "$work/disk" 6G
	timeout -k 10 "$seconds" qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none \
		-machine pc,accel=tcg -cpu max -smp "${MACHINE_PROCESSORS-2}" -m 2048 -serial stdio -kernel "$kernel" -initrd "$initrd" \
		-drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" \
		-append "root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off systemd.show_status=0" \
		</dev/null >"$out/console" 2>&1 || status=$?
	debugfs -R "rdump /out $work" "$work/disk" 2>/dev/null
	cp "$work"/out/* "$out/" || :
	;;
esac
exit "$status"
