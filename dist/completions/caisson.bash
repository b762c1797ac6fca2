# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of caisson(1) for bash.

_caisson() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local verbs='run exec doctor help'
	local options='--lang --code --memory --cpus --pids --timeout --cpu-time --disk --inodes --files
		--max-output --capture --env --mount --workdir --user --image --tty --json --receipt
		--without --state --help'
	local verb='' i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		run | exec | doctor | help)
			verb=${COMP_WORDS[i]}
			break
			;;
		esac
	done

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
	--state | --workdir)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--mount)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--memory | --cpus | --pids | --timeout | --cpu-time | --disk | --inodes | --files | --max-output | \
		--capture | --env | --code | --user)
		return
		;;
	esac

	case $verb in
	'') mapfile -t COMPREPLY < <(compgen -W "$verbs --version --help" -- "$cur") ;;
	help) mapfile -t COMPREPLY < <(compgen -W 'run exec doctor' -- "$cur") ;;
	doctor) mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur") ;;
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
