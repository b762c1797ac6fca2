#compdef caisson
# SPDX-License-Identifier: Apache-2.0
# Completion of caisson(1) for zsh.

_caisson() {
	local -a verbs options audit image daemon create_options program_options
	verbs=(
		'run:run code in a fresh cell'
		'exec:run a program in a fresh cell'
		'serve:HTTP daemon with warm, stateful interpreters'
		'mcp:tools for models, on standard input and output'
		'audit:the audit log, shown and checked'
		'approve:tool calls of code that wait for your decision'
		'image:images that cells can be made of'
		'policy:check a policy file as a daemon would'
		'doctor:what this machine enforces, and what is missing'
		'create:make a sandbox of a daemon'
		'shell:an interactive shell in a sandbox'
		'cp:copy files into or out of a sandbox'
		'install:packages for a sandbox'
		'ps:list sandboxes'
		'top:the use of resources of sandboxes, live'
		'logs:the latest output of a sandbox'
		'port:open a port of a sandbox and print its URL'
		'net:the connections of a sandbox, and hosts it may reach'
		'workspace:directories that outlive sandboxes'
		'stop:end the programs of a sandbox'
		'kill:end it at once'
		'rm:remove a sandbox'
		'help:explain a verb'
	)
	options=(
		'--lang[language of the code]:language:(python bash javascript r)'
		'--code[run CODE, even if it looks like a file name]:code'
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
		'--user[user in the cell]:UID[\:GID]'
		'--image[root file system]:image:(host dir\:)'
		'--image-store[where pulled images are]:directory:_files -/'
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

	image=(
		'--store[where images are kept]:directory:_directories'
		'--json[for programs]'
		'--quiet[no progress]'
		'--allow[only references like these]:patterns'
		'--name[its reference]:reference'
		'--authfile[credentials]:file:_files'
		'--package[further Debian packages]:names'
		'--suite[release of Debian]:name'
		'--mirror[where Debian is taken from]:URL'
		'--ca[certificates of the registry]:file:_files'
		'--insecure[any certificate, and plain HTTP]'
		'--all[images with a reference, too]'
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
		'--code[run CODE, even if it looks like a file name]:code'
		'--stdin[send our standard input]'
		$daemon
	)
	create_options=(
		'--memory[memory limit]:size'
		'--cpus[processors, as a number]:number'
		'--pids[processes and threads]:number'
		'--disk[size of the writable layer]:size'
		'--workspace[a workspace, with its mode]:name'
		'*--mount-only[of the mounts of the daemon only this one]:place'
		'--image[root file system]:image'
		'*--env[set a variable]:K=V'
		'*--label[mark it]:K=V'
		'--timeout[its life]:duration'
		'*--egress[a host that it may reach]:host'
		'*--secret[a secret of the daemon]:name'
		'--idle[end it when unused for so long]:duration'
		'*--server[MCP server whose tools its code may call]:name'
		'--tool-rules[restrict these tools]:JSON'
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
	image) _arguments $image '2:verb:(pull import build ls inspect verify rm prune)' '*:file:_files' ;;
	policy) _arguments '--json[print one object]' '--help[show help]' '2:verb:(check)' '3:file:_files' ;;
	mcp) _arguments '--tools[tools of a daemon of its own]:names' '--print-config[print the configuration for a host]:host:(claude cursor vscode mcpo openwebui)' $daemon ;;
	approve) _arguments '--deny[say no]' '--reason[why]:text' $daemon '2:id' ;;
	create) _arguments $create_options ':name' ;;
	ps|top) _arguments '--all[also those that do not run]' '*--label[only those marked so]:K=V' $daemon ;;
	logs) _arguments '--follow[continue with new output]' '--tail[only the last lines]:number' $daemon '2:name:_caisson_names' ;;
	shell) _arguments '*--env[set a variable]:K=V' '--workdir[working directory]:directory' $daemon '2:name:_caisson_names' ;;
	cp) _arguments '--recursive[directories]' $daemon '*:file:_files' ;;
	install) _arguments '--lang[language of the packages]:language:(python javascript)' $daemon '1:name:_caisson_names' ;;
	stop) _arguments '--grace[from SIGTERM to the end]:duration' $daemon '*:name:_caisson_names' ;;
	rm) _arguments '--force[one that is not there is no error]' $daemon '*:name:_caisson_names' ;;
	port) _arguments '--close[close the port]' '--listen[be that port here]:[address\:]port' $daemon '2:name:_caisson_names' '3:port' ;;
	net) _arguments '*--egress[a host that it may reach]:host' $daemon '2:name:_caisson_names' ;;
	workspace) _arguments '--disk[how much it may hold]:size' '*--label[mark it]:K=V' '--recursive[directories]' '--force[one that is not there is no error]' $daemon '2:verb:(create ls rm diff commit discard cp)' ;;
	kill) _arguments $daemon '*:name:_caisson_names' ;;
	help) _values verb run exec serve mcp audit approve image policy doctor create shell cp install ps top logs port net workspace stop kill rm ;;
	esac
}

_caisson_names() {
	local -a names
	names=(${(f)"$(caisson ps --all 2>/dev/null | awk 'NR > 1 { print $1 }')"})
	_describe name names
}

_caisson "$@"
