#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli.sh - Inside of the guest: use the command line as root and as an ordinary user, on cgroup v2.
#
# Each case prints "== NAME", what the command wrote, and "-- STATUS". test_v2.py reads that.
# shellcheck disable=SC2016 # the code in quotes is for the shell in the cell
caisson=/opt/caisson/caisson

# An image that is nothing but busybox. For the user too, so it is world-readable.
mkdir -p /image/bin
cp /bin/busybox /image/bin/
for applet in sh cat dd echo id sleep true; do
	ln -s busybox "/image/bin/$applet"
done

case_() { # NAME COMMAND...
	echo "== $1"
	shift
	"$@" 2>&1
	echo "-- $?"
}
cell() { # OPTIONS -- COMMAND...
	"$caisson" exec --image dir:/image --json "$@"
}

case_ hello cell -- /bin/sh -c 'id -u; echo hello; cat /proc/self/cgroup'
case_ status cell -- /bin/sh -c 'exit 42'
case_ memory cell --memory 32M -- /bin/dd if=/dev/zero of=/dev/null bs=64M count=1
case_ memory-all cell --memory 32M --oom sandbox -- /bin/sh -c '/bin/dd if=/dev/zero of=/dev/null bs=64M count=1; sleep 60'
case_ memory-one cell --memory 32M -- /bin/sh -c '/bin/dd if=/dev/zero of=/dev/null bs=64M count=1; echo $?'
case_ memory-files cell --memory 32M --disk 100M -- /bin/dd if=/dev/zero of=/tmp/x bs=1M count=64
case_ memory-fits cell --memory 96M -- /bin/dd if=/dev/zero of=/dev/null bs=32M count=1
case_ pids cell --pids 6 -- /bin/sh -c '(for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done); exit 0'
case_ cpu-quota cell --cpus 0.2 --timeout 2 -- /bin/sh -c 'while :; do :; done'
case_ cpu-time cell --cpu-time 1 --timeout 20 -- /bin/sh -c 'while :; do :; done'
case_ timeout cell --timeout 1 -- /bin/sleep 20
case_ bomb cell --pids 40 --timeout 3 -- /bin/sh -c 'f() { f | f & f; }; f'
case_ after cell -- /bin/echo fine
case_ doctor "$caisson" doctor
case_ left-root find /sys/fs/cgroup -mindepth 1 -type d

# A user to whom nothing was delegated.
as_user() {
	su user -c "cd /tmp && XDG_RUNTIME_DIR=/tmp/run-user $*"
}
mkdir -m 700 /tmp/run-user
chown user /tmp/run-user
line="$caisson exec --image dir:/image --json"
case_ user-refused as_user "$line -- /bin/echo no"
case_ user-without as_user "$line --without cgroup -- /bin/echo without"

# And one with a cgroup of their own, as systemd-run --user --scope -p Delegate=yes makes one. The
# leaf for the scope's own processes, which had to make room for cells, stays in it.
echo '+memory +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control
scope=/sys/fs/cgroup/scope
delegated() {
	mkdir "$scope"
	for file in . cgroup.procs cgroup.subtree_control cgroup.threads; do
		chown user:user "$scope/$file"
	done
	sh -c 'echo $$ >"$0/cgroup.procs" && exec su user -c "$1"' "$scope" \
		"cd /tmp && export XDG_RUNTIME_DIR=/tmp/run-user; $*"
	status=$?
	rmdir "$scope/caisson.self" "$scope"
	return $status
}
case_ user-hello delegated "$line -- /bin/echo delegated"
case_ user-memory delegated "$line --memory 32M -- /bin/dd if=/dev/zero of=/dev/null bs=64M count=1"
# Two in one scope: the second finds the place that the first made.
case_ user-twice delegated "$line -- /bin/true; $line -- /bin/echo second"
case_ left-user find /sys/fs/cgroup -mindepth 1 -type d
