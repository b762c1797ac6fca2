# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of caisson(1) for bash.

# Sandboxes of the daemon that the environment names.
_caisson_names() { caisson ps --all 2>/dev/null | awk 'NR > 1 { print $1 }'; }

# Options of the daemon: so many, and so often more, that its help is asked for them.
_caisson_serve() { caisson serve --help 2>/dev/null | awk '$1 ~ /^--/ { print $1 } END { print "--help" }'; }

_caisson() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local verbs='run exec serve mcp audit approve image policy doctor create shell cp install ps top logs port net workspace stop kill rm help'
	local options='--lang --code --memory --oom --cpus --pids --timeout --cpu-time --disk --inodes --files
		--max-output --capture --env --mount --workdir --user --image --image-store --image-pull --name --tty --json --receipt
		--without --state --help'
	local audit='--state --sandbox --owner --event --since --tail --head --from --json --help'
	local image='--store --json --quiet --allow --name --authfile --ca --insecure --all --package --suite --mirror --help'
	local daemon='--json --socket --state --url --token-file --ca-file --help'
	local verb='' own='' named='' behind='' i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		run | exec | serve | mcp | audit | approve | image | policy | doctor | help | create | shell | cp | install | ps | top | logs | port | net | workspace | stop | kill | rm)
			verb=${COMP_WORDS[i]}
			break
			;;
		esac
	done
	for ((; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != --name ]] || named=1
		[[ ${COMP_WORDS[i]} != -- ]] || behind=1
	done
	# Options of a daemon follow --.
	[[ $verb$behind != mcp1 && $verb$behind != policy1 ]] || verb=serve
	if [[ $verb == serve ]]; then
		[[ $cur == -* ]] && own=$(_caisson_serve) || own=''
		mapfile -t COMPREPLY < <([[ $cur == -* ]] || compgen -f -- "$cur"; compgen -W "$own" -- "$cur")
		return
	fi
	# run and exec have other options with a sandbox.
	case $verb$named in
	run1) options="--name --timeout --lang --code --stdin $daemon" ;;
	exec1) options="--name --env --workdir --cwd --timeout --stdin $daemon" ;;
	create) own='--memory --oom --cpus --pids --disk --workspace --mount-only --image --env --label --egress --secret --timeout --idle --server --tool-rules' ;;
	shell) own='--env --workdir --cwd' ;;
	cp) own='--recursive' ;;
	install) own='--lang --upgrade' ;;
	workspace) own='create ls rm diff commit discard cp --disk --label --force --recursive' ;;
	ps | top) own='--all --label' ;;
	logs) own='--follow --tail' ;;
	stop) own='--grace' ;;
	rm) own='--force' ;;
	port) own='--listen --close' ;;
	net) own='--egress' ;;
	approve) own='--deny --reason' ;;
	mcp) own='--tools --print-config' ;;
	esac

	COMPREPLY=()
	case $prev in
	--lang)
		[[ $verb == install ]] && own='python javascript' || own='python bash javascript r'
		mapfile -t COMPREPLY < <(compgen -W "$own" -- "$cur")
		return
		;;
	--without)
		mapfile -t COMPREPLY < <(compgen -W 'seccomp landlock cgroup' -- "$cur")
		return
		;;
	--image)
		mapfile -t COMPREPLY < <(compgen -W 'host dir:' -- "$cur")
		return
		;;
	--print-config)
		mapfile -t COMPREPLY < <(compgen -W 'claude cursor vscode mcpo openwebui' -- "$cur")
		return
		;;
	--name)
		mapfile -t COMPREPLY < <(compgen -W "$(_caisson_names)" -- "$cur")
		return
		;;
	--socket | --token-file | --ca-file | --authfile | --ca)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--state | --store | --workdir | --cwd)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--mount)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--oom)
		mapfile -t COMPREPLY < <(compgen -W 'process sandbox' -- "$cur")
		return
		;;
	--memory | --cpus | --pids | --timeout | --cpu-time | --disk | --inodes | --files | --max-output | \
		--capture | --env | --code | --user | --sandbox | --owner | --event | --since | --tail | --head | --from | \
		--label | --mount-only | --egress | --secret | --idle | --grace | --url | --tools | --server | --tool-rules | --reason | --allow)
		return
		;;
	esac

	case $verb in
	'') mapfile -t COMPREPLY < <(compgen -W "$verbs --version --help" -- "$cur") ;;
	help) mapfile -t COMPREPLY < <(compgen -W "${verbs% help}" -- "$cur") ;;
	doctor) mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur") ;;
	image)
		if [[ $cur == -* || $prev == image ]]; then
			mapfile -t COMPREPLY < <(compgen -W "pull import build ls inspect verify rm prune $image" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur"; compgen -W "$(caisson image ls 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur")
		fi
		;;
	audit) mapfile -t COMPREPLY < <(compgen -W "ls verify $audit" -- "$cur") ;;
	policy)
		if [[ $prev == policy ]]; then
			mapfile -t COMPREPLY < <(compgen -W 'check --help' -- "$cur")
		elif [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	mcp) mapfile -t COMPREPLY < <(compgen -W "$own ${daemon#--json }" -- "$cur") ;;
	create | ps | top | approve) mapfile -t COMPREPLY < <(compgen -W "$own $daemon" -- "$cur") ;;
	shell | install | logs | port | net | stop | kill | rm | cp)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$own $daemon" -- "$cur")
		elif [[ $verb == cp ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$cur"; compgen -S : -W "$(_caisson_names)" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -W "$(_caisson_names)" -- "$cur")
		fi
		;;
	exec)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
		fi
		;;
	run)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	esac
}
complete -o filenames -F _caisson caisson
