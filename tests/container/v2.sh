#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# v2.sh - Inside of the guest: a container by runc, with a configuration that Docker wrote, on cgroup v2.
#
# Each case prints "== NAME", what the command wrote, and "-- STATUS". test_cgroup_v2.py reads that.
# shellcheck disable=SC2016,SC2317 # the code in quotes is for the shell in the cell; inside() is called by case_()
case_() { # NAME COMMAND...
	echo "== $1"
	shift
	"$@" 2>&1
	echo "-- $?"
}

# The container's root is one file system of its own, with busybox as its programs.
root=/bundle/rootfs
mkdir -p $root/proc $root/sys $root/dev $root/tmp $root/run $root/etc $root/usr/bin $root/bin $root/var/lib/caisson
touch $root/.dockerenv
cp /bin/busybox $root/bin/
for applet in sh cat sleep id grep ls; do ln -s busybox $root/bin/$applet; done
mkdir -p $root/opt && cp -r /opt/caisson $root/opt/
runc run --bundle /bundle --detach box </dev/null >/tmp/box 2>&1 || cat /tmp/box
inside() { runc exec box "$@"; }
case_ doctor inside /opt/caisson/caisson doctor --json
# The first vacates the container's cgroup, as the daemon does; the second comes from another process, as by docker exec.
case_ first inside /opt/caisson/caisson exec --json --receipt -- /bin/sh -c 'id -u; cat /proc/self/cgroup'
case_ second inside /opt/caisson/caisson exec --json --memory 32M -- /bin/sh -c 'x=x; while :; do x=$x$x; done'
case_ outside cat /sys/fs/cgroup/docker/*/memory.max
case_ places find /sys/fs/cgroup/docker -type d
case_ masked inside /bin/cat /proc/self/mountinfo
runc kill box KILL
sleep 1
runc delete --force box
case_ gone find /sys/fs/cgroup/docker -mindepth 1 -type d

# Without a cgroup namespace the machine's cgroups are in sight, and cells would be made outside of the container's.
cp /bundle/host.json /bundle/config.json
runc run --bundle /bundle --detach host </dev/null >/tmp/host 2>&1 || cat /tmp/host
case_ machine runc exec host /opt/caisson/caisson doctor --json
case_ untouched find /sys/fs/cgroup -name 'caisson*'
runc kill host KILL
exit 0
