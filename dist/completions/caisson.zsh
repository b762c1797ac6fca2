#compdef caisson
# SPDX-License-Identifier: Apache-2.0
# Completion of caisson(1) for zsh.

_caisson() {
	local -a verbs options
	verbs=(
		'run:run code in a fresh cell'
		'exec:run a program in a fresh cell'
		'doctor:what this kernel gives and which layers will be enforced'
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
		'--tty[run on a terminal of the cell]'
		'--json[print one result object]'
		'--receipt[print the isolation receipt]'
		'*--without[give up a layer, visibly]:layer:(seccomp landlock cgroup)'
		'--state[state directory]:directory:_directories'
		'--help[show help]'
	)

	if (( CURRENT == 2 )); then
		_describe verb verbs
		_arguments '--version[show the version]' '--help[show help]'
		return
	fi
	case $words[2] in
	run) shift words; (( CURRENT-- )); _arguments -S $options '*:code or file:_files' ;;
	exec) shift words; (( CURRENT-- )); _arguments -S $options '*::program:_normal' ;;
	doctor) _arguments '--json[print one object]' '--help[show help]' ;;
	help) _values verb run exec doctor ;;
	esac
}

_caisson "$@"
