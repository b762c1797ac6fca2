# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of caisson(1) for bash.

# Sandboxes of the daemon that the environment names.
_caisson_names() { caisson ps --all 2>/dev/null | awk 'NR > 1 { print $1 }'; }

_caisson() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local verbs='run exec serve audit doctor create shell cp ps top logs port stop kill rm help'
	local options='--lang --code --memory --cpus --pids --timeout --cpu-time --disk --inodes --files
		--max-output --capture --env --mount --workdir --user --image --name --tty --json --receipt
		--without --state --help'
	local audit='--state --sandbox --owner --event --since --tail --head --from --json --help'
	local daemon='--json --socket --state --url --token-file --ca-file --help'
	local verb='' own='' named='' i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		run | exec | serve | audit | doctor | help | create | shell | cp | ps | top | logs | port | stop | kill | rm)
			verb=${COMP_WORDS[i]}
			break
			;;
		esac
	done
	for ((; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != --name ]] || named=1
	done
	# run and exec have other options with a sandbox.
	case $verb$named in
	run1) options="--name --timeout --lang --code --stdin $daemon" ;;
	exec1) options="--name --env --workdir --cwd --timeout --stdin $daemon" ;;
	create) own='--memory --cpus --pids --disk --image --env --label --timeout --idle' ;;
	shell) own='--env --workdir --cwd' ;;
	cp) own='--recursive' ;;
	ps | top) own='--all --label' ;;
	logs) own='--follow --tail' ;;
	stop) own='--grace' ;;
	rm) own='--force' ;;
	esac

	COMPREPLY=()
	case $prev in
	--lang)
		mapfile -t COMPREPLY < <(compgen -W 'python bash javascript r' -- "$cur")
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
	--name)
		mapfile -t COMPREPLY < <(compgen -W "$(_caisson_names)" -- "$cur")
		return
		;;
	--socket | --token-file | --ca-file)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--state | --workdir | --cwd)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--mount)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--memory | --cpus | --pids | --timeout | --cpu-time | --disk | --inodes | --files | --max-output | \
		--capture | --env | --code | --user | --sandbox | --owner | --event | --since | --tail | --head | --from | \
		--label | --idle | --grace | --url)
		return
		;;
	esac

	case $verb in
	'') mapfile -t COMPREPLY < <(compgen -W "$verbs --version --help" -- "$cur") ;;
	help) mapfile -t COMPREPLY < <(compgen -W "${verbs% help}" -- "$cur") ;;
	doctor) mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur") ;;
	audit) mapfile -t COMPREPLY < <(compgen -W "ls verify $audit" -- "$cur") ;;
	create | ps | top) mapfile -t COMPREPLY < <(compgen -W "$own $daemon" -- "$cur") ;;
	shell | logs | port | stop | kill | rm | cp)
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
