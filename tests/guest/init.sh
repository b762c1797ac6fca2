#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# init.sh - Pid 1 of the test guest: mount what a normal machine has, run /command, say its status,
# switch off. /settings is run.sh's: the words that frame the output, and the cgroup layout.
b=/bin/busybox

# First in the initramfs, where pivot_root is impossible: move to a root that is a real mount.
if [ ! -e /moved ]; then
	$b mount -t tmpfs -o mode=755,size=80% tmpfs /new
	for f in /* ; do
		case "$f" in /new | /dev | /proc | /sys) ;; *) $b cp -a "$f" /new/ ;; esac
	done
	$b mkdir -p /new/dev /new/proc /new/sys
	: >/new/moved
	exec $b switch_root /new /init
fi

frame='' layout=''
# shellcheck disable=SC1091 # exists in the guest only
. /settings
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
$b --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -sf /proc/self/fd /dev/fd
exec </dev/null >/dev/ttyS0 2>&1
stty -F /dev/ttyS0 -onlcr 2>/dev/null
chmod 1777 /tmp
hostname guest
ip link set lo up
echo 'root:x:0:0:root:/root:/bin/sh
user:x:1000:1000:user:/tmp:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false' >/etc/passwd
echo 'root:x:0:
user:x:1000:
nogroup:x:65534:' >/etc/group
[ ! -e /lib/overlay.ko ] || insmod /lib/overlay.ko

v1() { # CONTROLLERS...
	for list in "$@"; do
		mkdir -p "/sys/fs/cgroup/$list"
		mount -t cgroup -o "$list" cgroup "/sys/fs/cgroup/$list"
	done
}
case "$layout" in
v2)
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	;;
v1)
	mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
	v1 memory pids cpu,cpuacct
	;;
hybrid)
	mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
	v1 memory pids cpu cpuacct
	mkdir /sys/fs/cgroup/unified
	mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
	;;
esac

echo
echo "$frame begin"
sh -c "$(cat /command)"
status=$?
echo
echo "$frame end $status"
sync
reboot -f
