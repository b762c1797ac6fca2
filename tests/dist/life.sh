#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# life.sh - In a booted Debian root: the life of the package, from its installation to its purge. dist-test.service starts it.
#
# Each case appends "== NAME", what the command wrote, and "-- STATUS" to /out/report. test_install.py reads that, and judges it. /repo/1
# has this version and all packages that it depends on, /repo/2 the next version.
# shellcheck disable=SC2016,SC2317 # the code in quotes is for other shells; functions are called by case_()
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive HOME=/root
cd /
mkdir -p /out
exec >/out/report 2>&1 </dev/null

socket=/run/caisson/caisson.sock
unix=(curl -sS --max-time 120 --unix-socket "$socket")
token=0123456789abcdef0123456789abcdef

case_() { # NAME COMMAND...
	echo "== $1"
	[ ! -c /dev/console ] || echo "life.sh: $1" >/dev/console
	shift
	"$@"
	printf '\n-- %d\n' $?
}

source_() { # NUMBER
	echo "deb [trusted=yes] file:/repo/$1 ./" >/etc/apt/sources.list
	rm -f /etc/apt/sources.list.d/*
	apt-get update -q
}

get() { apt-get "$1" -q -y --no-install-recommends -o Dpkg::Use-Pty=0 "${@:2}"; }

execute() { # CODE [FIELDS]; again while no kernel is ready, as in an emulated machine
	"${unix[@]}" --fail --retry 10 http://localhost/execute -d "{\"code\": \"$1\"${2:+, $2}}"
}

# Everything but what dpkg, apt and the start of the machine write for themselves: kind, mode, owner, and size with time or content.
listing() {
	find / -xdev \( -path /out -o -path /proc -o -path /tmp -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \
		-o -path /var/lib/systemd/random-seed -o -path /var/lib/systemd/timers -o -path /var/tmp -o -path '/etc/*-' -o -path /etc/apt \) -prune -o \
		\( -path '/etc/*' -o -type d \) -printf '%y %m %U:%G %p %l\n' -o -printf '%y %m %U:%G %s %T@ %p %l\n'
	find /run -path '*caisson*' -printf '%y %m %U:%G %p\n'
	find /etc -xdev -path /etc/apt -prune -o -type f ! -name '*-' -exec sha256sum {} +
}

# Processes, cgroups, mounts, units and links of the package, or of code in its cells.
traces() {
	pgrep -a 'caisson|zygote'
	pgrep -af 'sleep 86399'
	find /sys/fs/cgroup -name '*caisson*'
	grep -s caisson /proc/*/mountinfo
	systemctl list-units --no-legend --plain 'caisson*' # active or failed
	find /run/systemd /etc/systemd /var/lib/systemd -name '*caisson*'
}

clients() { # FILE: count requests and failures until FILE.stop is there
	local good=0 bad=0
	while [ ! -e "$1.stop" ]; do
		if "${unix[@]}" -o /dev/null http://localhost/health; then good=$((good + 1)); else bad=$((bad + 1)); fi
		sleep 0.05
	done 2>"$1"
	echo "good $good bad $bad" >>"$1"
	head -n 3 "$1"
}

seconds() { # COMMAND...: its time, after its output
	local start=$EPOCHREALTIME status
	"$@"
	status=$?
	echo
	awk "BEGIN { print \"seconds\", $EPOCHREALTIME - $start }"
	return $status
}

linger() { # a process of code, which stays in the sandbox
	execute "import subprocess; subprocess.Popen(['sleep', '86399']); x = 41" '"session_id": "demo"'
	pgrep -af 'sleep 86399'
}

case_ machine sh -c 'systemd-detect-virt; uname -r; stat -fc %T /sys/fs/cgroup; cat /etc/debian_version'
case_ depends sh -c 'dpkg-deb -f /repo/1/caisson_*.deb Depends'
case_ source source_ 1
case_ satisfy get satisfy "$(dpkg-deb -f /repo/1/caisson_*.deb Depends)"
listing >/out/before

# ---- install --------------------------------------------------------------------------------------

case_ install get install caisson
case_ version caisson --version
case_ verify dpkg --verify caisson
case_ conffiles dpkg-query -W -f '${Conffiles}\n' caisson
case_ enabled systemctl is-enabled caisson.socket caisson.service
case_ active systemctl is-active caisson.socket caisson.service
case_ socket stat -c '%U %G %a' $socket
case_ man sh -c 'for p in caisson caisson-serve caisson-shell caisson-policy; do man -w $p || exit 1; done; man caisson-serve | head -n 3'
case_ bash bash -c '. /usr/share/bash-completion/completions/caisson; complete -p caisson'
case_ zsh zsh -c 'autoload -U compinit; compinit -D -u; print $_comps[caisson]'
case_ fish ls /usr/share/fish/vendor_completions.d/caisson.fish
case_ apparmor ls -l /etc/apparmor.d/caisson

# ---- serve ----------------------------------------------------------------------------------------

first() { # three starts, as other work may be in the way of one
	for _ in 1 2 3; do
		seconds systemctl start caisson.service || return
		seconds execute 'print(6 * 7)' || return
		seconds execute 'print(6 * 7)' || return
		seconds python3 -c 'print(6 * 7)'
		systemctl stop caisson.socket caisson.service
		systemctl start caisson.socket
	done
}
case_ first first
case_ by-connection execute 'print(6 * 7)'
case_ health "${unix[@]}" http://localhost/health
case_ doctor caisson doctor --json
case_ status systemctl show -p User,ActiveState,SubState,NRestarts,ControlGroup caisson.service

# ---- the group ------------------------------------------------------------------------------------

useradd -m member && useradd -m stranger && usermod -aG caisson member
as() { setpriv --reuid "$1" --regid "$1" --init-groups --reset-env -- "${@:2}"; }
case_ member as member "${unix[@]}" http://localhost/execute -d '{"code": "import os; print(os.getuid())"}'
case_ member-verb as member caisson ps
case_ member-state as member ls /var/lib/caisson
case_ member-ids as member cat /run/caisson-ids/taken
main=$(systemctl show -p MainPID --value caisson.service)
case_ member-kill as member kill "${main/#0/none}"
case_ stranger as stranger "${unix[@]}" http://localhost/health
userdel -r member && userdel -r stranger

# ---- settings -------------------------------------------------------------------------------------

mkdir -p /etc/caisson
echo "ci:$token" >/etc/caisson/tokens
chmod 600 /etc/caisson/tokens
printf 'CAISSON_LISTEN=127.0.0.1:8001\nCAISSON_TOKEN_FILE=/etc/caisson/tokens\n' >>/etc/default/caisson
case_ restart systemctl restart caisson.service
tcp() { curl -sS --retry 10 --max-time 120 -H "Authorization: Bearer $1" http://127.0.0.1:8001/execute -d '{"code": "print(6 * 7)"}'; }
case_ tcp tcp $token
case_ tcp-refused tcp "x$token"
case_ tcp-local execute 'print(6 * 7)'

# ---- upgrade --------------------------------------------------------------------------------------

case_ linger linger
case_ pid-before systemctl show -p MainPID --value caisson.service
clients /tmp/clients >/tmp/clients.result &
source_ 2 >/dev/null
case_ upgrade get install --only-upgrade caisson
case_ pid-after systemctl show -p MainPID --value caisson.service
case_ upgraded dpkg-query -W -f '${Version} ${Status}\n' caisson
case_ upgraded-tcp tcp $token
case_ upgraded-settings grep ^CAISSON /etc/default/caisson
case_ upgraded-lost pgrep -af 'sleep 86399'
touch /tmp/clients.stop
wait
case_ clients cat /tmp/clients.result

# ---- remove, install again, purge -----------------------------------------------------------------

case_ linger-again linger
rm -f /tmp/clients.stop
clients /tmp/clients >/tmp/clients.result & # which would start the service again
case_ remove get remove caisson
case_ remove-traces traces
case_ remove-kept ls /etc/default/caisson /var/lib/caisson/ledger
touch /tmp/clients.stop
wait
case_ again get install caisson
case_ again-tcp sh -c 'systemctl start caisson.service'
case_ again-settings tcp $token
rm -rf /etc/caisson
case_ purge get purge caisson
case_ purge-traces traces
case_ purge-group getent group caisson
listing >/out/after
case_ difference diff /out/before /out/after
journalctl -b --no-pager >/out/journal
case_ journal journalctl -b --no-pager -o cat -u caisson.service -u caisson.socket -p warning
sync
