#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# apparmor.sh - In a booted Ubuntu, whose Linux kernel restricts user namespaces to programs with an AppArmor profile: what the profile of
# the package changes. test_apparmor.py reads /out/report, and judges it.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root
cd /
mkdir -p /out
exec >/out/report 2>&1 </dev/null

case_() { # NAME COMMAND...
	echo "== $1"
	[ ! -c /dev/console ] || echo "apparmor.sh: $1" >/dev/console
	shift
	"$@"
	printf '\n-- %d\n' $?
}

useradd -m ordinary
as_user() { setpriv --reuid ordinary --regid ordinary --init-groups --reset-env -- "$@"; }
run_code() { as_user caisson run --without cgroup --timeout 120 'print(6 * 7)'; }

case_ restricted cat /proc/sys/kernel/apparmor_restrict_unprivileged_userns
case_ loaded grep '^caisson ' /sys/kernel/security/apparmor/profiles
# The restriction is real: another program of the same user is refused.
case_ others as_user unshare --user --map-root-user true
case_ run run_code
case_ doctor as_user caisson doctor --without cgroup --json
case_ nested as_user caisson run --without cgroup --timeout 120 'import subprocess; print(subprocess.run(["unshare", "--user", "true"]).returncode)'
systemctl start caisson.service
case_ service curl -sS --fail --retry 10 --unix-socket /run/caisson/caisson.sock http://localhost/execute -d '{"code": "print(6 * 7)"}'
systemctl stop caisson.socket caisson.service

case_ unload apparmor_parser --remove /etc/apparmor.d/caisson
case_ run-without run_code
case_ root-without caisson run --timeout 120 'print(6 * 7)'
case_ doctor-without as_user caisson doctor --without cgroup --json
case_ boot sh -c 'systemctl reload apparmor.service && grep "^caisson " /sys/kernel/security/apparmor/profiles'
case_ purge dpkg --purge caisson
case_ profile-gone sh -c 'grep "^caisson " /sys/kernel/security/apparmor/profiles; ls -l /etc/apparmor.d/caisson'
journalctl -b --no-pager >/out/journal
sync
