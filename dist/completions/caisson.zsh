#compdef caisson
# SPDX-License-Identifier: Apache-2.0
# Completion of caisson(1) for zsh.

_caisson() {
	local -a verbs options audit daemon create_options program_options
	verbs=(
		'run:run code in a fresh cell'
		'exec:run a program in a fresh cell'
		'serve:HTTP daemon with warm, stateful interpreters'
		'audit:the audit log, shown and checked'
		'doctor:what this kernel gives and which layers will be enforced'
		'create:make a sandbox of a daemon'
		'shell:an interactive shell in a sandbox'
		'cp:copy files into or out of a sandbox'
		'ps:list sandboxes'
		'top:what sandboxes use, live'
		'logs:what was written in a sandbox lately'
		'port:where a port of a sandbox is'
		'stop:end what runs in a sandbox'
		'kill:end it at once'
		'rm:remove a sandbox'
		'help:explain a verb'
	)
	options=(
		'--lang[language of the code]:language:(python bash javascript r)'
		'--code[run this, whatever it looks like]:code'
		'--memory[memory limit]:size'
		'--cpus[processors, as a number]:number'
		'--pids[processes and threads]:number'
		'--timeout[wall time limit]:duration'
		'--cpu-time[cpu time limit]:duration'
		'--disk[size of the writable layer]:size'
		'--inodes[files in the writable layer]:number'
		'--files[open files per process]:number'
		'--max-output[end the cell after so many bytes of output]:size'
		'--capture[characters of each stream in --json]:number'
		'*--env[set a variable]:K=V'
		'*--mount[show a host path in the cell]:SRC\:DST[\:rw]:_files'
		'--workdir[working directory in the cell]:directory'
		'--user[who runs it in the cell]:UID[\:GID]'
		'--image[root file system]:image:(host dir\:)'
		'--name[run it in this sandbox of a daemon]:name:_caisson_names'
		'--tty[run on a terminal of the cell]'
		'--json[print one result object]'
		'--receipt[print the isolation receipt]'
		'*--without[give up a layer, visibly]:layer:(seccomp landlock cgroup)'
		'--state[state directory]:directory:_directories'
		'--help[show help]'
	)
	audit=(
		'--state[state directory]:directory:_directories'
		'--sandbox[only events of this sandbox]:name'
		'--owner[only events of this owner]:owner'
		'--event[only this event]:event'
		'--since[only from then on]:time'
		'--tail[only the last of these]:number'
		'--head[a line that was noted]:SEQ\:HASH'
		'--from[the first line that must be there]:number'
		'--json[as JSON]'
		'--help[show help]'
	)

	daemon=(
		'--json[for programs]'
		'--socket[unix socket of the daemon]:socket:_files'
		'--state[state directory]:directory:_directories'
		'--url[a daemon elsewhere]:url'
		'--token-file[file with the token]:file:_files'
		'--ca-file[certificates that its own must come from]:file:_files'
		'--help[show help]'
	)
	program_options=(
		'--name[the sandbox]:name:_caisson_names'
		'*--env[set a variable]:K=V'
		'--workdir[working directory]:directory'
		'--cwd[working directory]:directory'
		'--timeout[wall time]:duration'
		'--lang[language of the code]:language:(python bash javascript r)'
		'--code[run this, whatever it looks like]:code'
		'--stdin[send our standard input]'
		$daemon
	)
	create_options=(
		'--memory[memory limit]:size'
		'--cpus[processors, as a number]:number'
		'--pids[processes and threads]:number'
		'--disk[size of the writable layer]:size'
		'--image[root file system]:image'
		'*--env[set a variable]:K=V'
		'*--label[mark it]:K=V'
		'--timeout[its life]:duration'
		'--idle[end it when unused for so long]:duration'
		$daemon
	)

	if (( CURRENT == 2 )); then
		_describe verb verbs
		_arguments '--version[show the version]' '--help[show help]'
		return
	fi
	case $words[2] in
	run|exec) (( $words[(I)--name] )) && options=($program_options) ;;
	esac
	case $words[2] in
	run) shift words; (( CURRENT-- )); _arguments -S $options '*:code or file:_files' ;;
	exec) shift words; (( CURRENT-- )); _arguments -S $options '*::program:_normal' ;;
	doctor) _arguments '--json[print one object]' '--help[show help]' ;;
	audit) _arguments $audit '2:verb:(ls verify)' ;;
	create) _arguments $create_options ':name' ;;
	ps|top) _arguments '--all[also those that do not run]' '*--label[only those marked so]:K=V' $daemon ;;
	logs) _arguments '--follow[go on with what is written later]' '--tail[only the last lines]:number' $daemon '2:name:_caisson_names' ;;
	shell) _arguments '*--env[set a variable]:K=V' '--workdir[working directory]:directory' $daemon '2:name:_caisson_names' ;;
	cp) _arguments '--recursive[directories]' $daemon '*:file:_files' ;;
	stop) _arguments '--grace[from SIGTERM to the end]:duration' $daemon '*:name:_caisson_names' ;;
	rm) _arguments '--force[one that is not there is no error]' $daemon '*:name:_caisson_names' ;;
	kill|port) _arguments $daemon '*:name:_caisson_names' ;;
	help) _values verb run exec serve audit doctor create shell cp ps top logs port stop kill rm ;;
	esac
}

_caisson_names() {
	local -a names
	names=(${(f)"$(caisson ps --all 2>/dev/null | awk 'NR > 1 { print $1 }')"})
	_describe name names
}

_caisson "$@"
