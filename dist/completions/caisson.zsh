#compdef caisson
# SPDX-License-Identifier: Apache-2.0
# Completion of caisson(1) for zsh.

_caisson() {
	local -a verbs options audit image daemon create_options program_options
	verbs=(
		'run:run code in a fresh cell'
		'exec:run a program in a fresh cell'
		'serve:start the HTTP daemon, with warm interpreters'
		'mcp:offer tools to models, on standard input and output'
		'audit:show the audit log, or check its hash chain'
		'approve:list, approve or deny waiting tool calls'
		'image:manage images for cells'
		'policy:check a policy file as a daemon would'
		'doctor:report what this machine enforces or lacks'
		'create:make a sandbox of a daemon'
		'shell:open an interactive shell in a sandbox'
		'cp:copy files into or out of a sandbox'
		'install:install packages into a sandbox'
		'ps:list sandboxes'
		'top:show the resource usage of sandboxes, live'
		'logs:show the latest output of a sandbox'
		'port:open a port of a sandbox and print its URL'
		'net:show the connections of a sandbox, or set its allowed hosts'
		'workspace:manage directories that outlive sandboxes'
		'stop:end the programs of a sandbox'
		'kill:end the programs of a sandbox at once'
		'rm:remove a sandbox'
		'help:show the help of a verb'
	)
	options=(
		'--lang[language of the code]:language:(python bash javascript r)'
		'--code[run CODE, even if it looks like a file name]:code'
		'--memory[memory limit]:size'
		'--oom[what ends when memory is used up]:what:(process sandbox)'
		'--cpus[processors, as in 0.5]:number'
		'--pids[processes and threads]:number'
		'--timeout[wall time limit]:duration'
		'--cpu-time[cpu time limit]:duration'
		'--disk[size of the writable layer]:size'
		'--inodes[files in the writable layer]:number'
		'--files[open files per process]:number'
		'--max-output[end the cell after this number of bytes of output]:size'
		'--capture[characters of each stream in --json]:number'
		'*--env[set an environment variable]:K=V'
		'*--mount[show a host path in the cell]:SRC\:DST[\:rw]:_files'
		'--workdir[working directory in the cell]:directory'
		'--user[user in the cell]:UID[\:GID]'
		'--image[root file system]:image:(host dir\:)'
		'--image-store[directory of pulled images]:directory:_files -/'
		'--image-pull[pull an image that is not there]:when:(missing never)'
		'--name[run it in this sandbox of a daemon]:name:_caisson_names'
		'--tty[run on a terminal of the cell]'
		'--json[print one result object]'
		'--receipt[print the isolation receipt]'
		'*--without[run without a layer]:layer:(seccomp landlock cgroup)'
		'--state[state directory]:directory:_directories'
		'--help[show help]'
	)
	audit=(
		'--state[state directory]:directory:_directories'
		'--sandbox[only events of this sandbox]:name'
		'--owner[only events of this owner]:owner'
		'--event[only events with this name]:event'
		'--since[only events since then]:time'
		'--tail[only the last N of these]:number'
		'--head[line that must exist]:SEQ\:HASH'
		'--from[first line of the ledger]:number'
		'--json[print JSON]'
		'--help[show help]'
	)

	image=(
		'--store[directory of the image store]:directory:_directories'
		'--json[print JSON]'
		'--quiet[show no progress]'
		'--allow[accept only references that match a pattern]:patterns'
		'--name[reference for the image]:reference'
		'--authfile[file of registry credentials]:file:_files'
		'--package[further Debian packages]:names'
		'--suite[Debian release]:name'
		'--mirror[Debian mirror]:URL'
		'--ca[CA certificates for the registry]:file:_files'
		'--insecure[accept any certificate, and plain HTTP]'
		'--all[also remove images that have a reference]'
		'--help[show help]'
	)
	daemon=(
		'--json[print JSON]'
		'--socket[unix socket of the daemon]:socket:_files'
		'--state[state directory]:directory:_directories'
		'--url[URL of the daemon]:url'
		'--token-file[file with the token]:file:_files'
		'--ca-file[CA certificates for the daemon]:file:_files'
		'--help[show help]'
	)
	program_options=(
		'--name[the sandbox]:name:_caisson_names'
		'*--env[set an environment variable]:K=V'
		'--workdir[working directory]:directory'
		'--cwd[working directory]:directory'
		'--timeout[wall time]:duration'
		'--lang[language of the code]:language:(python bash javascript r)'
		'--code[run CODE, even if it looks like a file name]:code'
		'--stdin[send standard input]'
		$daemon
	)
	create_options=(
		'--memory[memory limit]:size'
		'--oom[what ends when memory is used up]:what:(process sandbox)'
		'--cpus[processors, as in 0.5]:number'
		'--pids[processes and threads]:number'
		'--disk[size of the writable layer]:size'
		'--workspace[workspace to mount at /workspace]:name'
		'*--mount-only[use only this mount of the daemon]:place'
		'--image[root file system]:image'
		'*--env[set an environment variable]:K=V'
		'*--label[add a label]:K=V'
		'--timeout[remove the sandbox after this time]:duration'
		'*--egress[host that the sandbox may reach]:host'
		'*--secret[a secret of the daemon]:name'
		'--idle[end the sandbox when it was idle for this time]:duration'
		'*--server[MCP server whose tools the code may call]:name'
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
	serve) [[ $words[CURRENT] == -* ]] && _caisson_serve || _files ;;
	policy) _arguments '--json[print one object]' '--help[show help]' '2:verb:(check)' '3:file:_files' ;;
	mcp) _arguments '--tools[tools of a private daemon]:names' '--print-config[print the configuration for a host]:host:(claude cursor vscode mcpo openwebui)' $daemon ;;
	approve) _arguments '--deny[deny the call]' '--reason[reason, shown to the code]:text' $daemon '2:id' ;;
	create) _arguments $create_options ':name' ;;
	ps|top) _arguments '--all[also list sandboxes that do not run]' '*--label[list only sandboxes with this label]:K=V' $daemon ;;
	logs) _arguments '--follow[continue with new output]' '--tail[print only the last lines]:number' $daemon '2:name:_caisson_names' ;;
	shell) _arguments '*--env[set an environment variable]:K=V' '--workdir[working directory]:directory' $daemon '2:name:_caisson_names' ;;
	cp) _arguments '--recursive[copy directories]' $daemon '*:file:_files' ;;
	install) _arguments '--lang[language of the packages]:language:(python javascript)' '--upgrade[the newest version, also if the image has one]' $daemon '1:name:_caisson_names' ;;
	stop) _arguments '--grace[time between SIGTERM and the end]:duration' $daemon '*:name:_caisson_names' ;;
	rm) _arguments '--force[ignore missing names]' $daemon '*:name:_caisson_names' ;;
	port) _arguments '--close[close the port]' '--listen[forward a local port to it]:[address\:]port' $daemon '2:name:_caisson_names' '3:port' ;;
	net) _arguments '*--egress[host that the sandbox may reach]:host' $daemon '2:name:_caisson_names' ;;
	workspace) _arguments '--disk[size of the workspace]:size' '*--label[add a label]:K=V' '--recursive[copy directories]' '--force[ignore missing names]' $daemon '2:verb:(create ls rm diff commit discard cp)' ;;
	kill) _arguments $daemon '*:name:_caisson_names' ;;
	help) _values verb run exec serve mcp audit approve image policy doctor create shell cp install ps top logs port net workspace stop kill rm ;;
	esac
}

# Options of the daemon: so many, and so often more, that its help is asked for them.
_caisson_serve() {
	compadd -- --help ${(f)"$(caisson serve --help 2>/dev/null | awk '$1 ~ /^--/ { print $1 }')"}
}

_caisson_names() {
	local -a names
	names=(${(f)"$(caisson ps --all 2>/dev/null | awk 'NR > 1 { print $1 }')"})
	_describe name names
}

_caisson "$@"
