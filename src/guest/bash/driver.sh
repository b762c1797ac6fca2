#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# driver.sh - The bash kernel: runs code in one shell that lives on, and exchanges JSON lines with the host.
#
# Theory of operation
#
# Goals: the code runs by `eval` at the top level of this very shell (never in a function, so that `declare`
# is global), and so cwd, variables, functions, aliases, options, positional parameters, traps, descriptors
# and jobs are kept from one execution to the next. The protocol needs no program: JSON is read and written
# by builtins. bash 4.4 or newer.
#
# Start: `bash driver.sh` replaces itself by `bash -c MAIN bash`, which sources this file for its functions.
# So messages read "bash: line 3: ...", line numbers count from the first line of the code, and $0 is
# "bash".
#
# Descriptors: 3 and 4 are moved to high numbers that are close-on-exec, so no program inherits them. bash
# has no command for that flag, but it sets it on the copy that it saves of a redirected descriptor, and
# `exec N<&M` copies it from M to N; see __caisson_open. Forked subshells still hold them. Standard
# input is that of the host (/dev/null), so `read` meets the end of file at once.
#
# The end of an execution that is not the end of the code. Two ways back to MAIN:
#  1. Unwinding, for `exit n`, `exec program` and SIGINT. `exit` is a function that notes its status and
#     arms a DEBUG trap under `extdebug`: in a function or sourced file the trap answers 2, which bash takes
#     as `return`; at the top level it breaks out of all loops, MAIN's own as well, which therefore starts
#     itself again (one `eval` deeper, DEPTH_MAX at most). Nothing is lost. `exec program` is run in a
#     subshell whose end is the end of the execution; `exec` with redirections alone is bash's own.
#  2. Restart, for commands that end a shell immediately: `set -e`, `set -u`, ${x:?}, `builtin exit`. The EXIT
#     trap replaces the process by a new bash (same pid, cwd, descriptors, umask), which reads the old one's
#     state from a pipe: variables, functions, aliases, options, traps, positional parameters, directory
#     stack. Lost: the job table ($!, %1, `wait`; the processes live on), locals of the function that died
#     turn global. A second SIGINT within the few milliseconds of a restart would end the kernel.
# `trap` is a function too, which keeps EXIT and INT for the driver: the code's EXIT trap runs when an
# execution ends by `exit` or by a fatal error (as if a script had ended there), not at the end of each
# execution; its INT trap replaces the interrupt. `set -n` and `exec program` in forms that are not
# recognised (`command exec ...`) end the kernel; the host sees that.
#
# SIGINT is ignored between executions, and handled from the moment an execution is decoded to the moment
# its end is reported. A command that handles SIGINT itself is waited for, as in any shell.
#
# Every name of the driver begins with __caisson_, but for `exit` and `trap`. Its functions run with
# options, IFS and locale of their own.

# The loop is on one line: line numbers in messages start where `eval` stands. It is `until`, because under
# `set -n` every command "succeeds" and a `while` would spin. $? reaches the code through the condition of
# `if`, where neither `set -e` nor an ERR trap minds. __caisson_live is empty while no code runs: then
# SIGINT has no effect.
# shellcheck disable=SC2016 # the expansions are MAIN's
__caisson_main='until { __caisson_live= __caisson_next "$?"; } 2>/dev/null; do if { __caisson_status; } 2>/dev/null; then builtin eval "$__caisson_code"; else builtin eval "$__caisson_code"; fi; done; __caisson_live= __caisson_over || builtin eval "$__caisson_main"'
# shellcheck disable=SC2016
__caisson_start='trap : INT; . "$1" "$2" "$3" "$4"; set -- "${__caisson_args[@]}"; eval "$__caisson_main"'

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
		echo "bash kernel: needs bash 4.4 or newer, this is $BASH_VERSION" >&2
		exit 1
	fi
	if [[ $0 == /* ]]; then set -- ''; else set -- "$PWD/"; fi
	exec "$BASH" -O expand_aliases -c "$__caisson_start" bash "$1$0" 3 4 ''
fi

# The DEBUG trap while an execution is being left: it passes the driver's own commands (and stops there), and
# otherwise returns or breaks. `! break` because the trap must fail for the command to be skipped, and after
# a `break` nothing else runs.
__caisson_unwind='case $BASH_COMMAND in
__caisson_live=* | *__caisson_main*) __caisson_disarm ;;
*) case ${FUNCNAME-} in "") ! builtin break ;; *) __caisson_two ;; esac ;;
esac'
# The same in an execution whose code seems to have an `exec program` in it, until that comes.
# shellcheck disable=SC2016
__caisson_guard='case $BASH_COMMAND in
__caisson_live=* | *__caisson_main*) __caisson_disarm ;;
exec\ [!-\<\>\&\{0-9]*)
	if [[ $BASHPID == "$$" ]]; then
		__caisson_command=${BASH_COMMAND#exec }
		builtin set +T
		(builtin eval "$__caisson_command")
		__caisson_leave exit "$?"
		'$__caisson_unwind'
	fi ;;
esac'
# The EXIT trap: options and traps must be read here, outside of any function.
# shellcheck disable=SC2016
__caisson_exit='{
	__caisson_end=$? __caisson_quiet=__caisson_ __caisson_dump_flags=$-:$BASHOPTS:
	__caisson_dump_options=$(builtin set +o; builtin shopt -p)
	__caisson_dump_traps=$(builtin trap -p)
	builtin set +efuvx +o posix
} 2>/dev/null
__caisson_fatal "$__caisson_end" "$@"'
__caisson_exec_pattern='(^|[^-[:alnum:]_./$])exec[[:blank:]]+[^-<>&{0-9[:blank:]]'
# If `set -e` or an ERR trap may be in force, the code gets a last line that keeps its status, so that
# `eval` itself always succeeds: a last `[[ ... ]] && ...` that is false must not end the shell. Not where
# the line would complete an incomplete command.
# shellcheck disable=SC2016
__caisson_tail=$'\n''{ __caisson_kept=$?; } 2>/dev/null'
__caisson_tail_pattern='(^|[^[:alnum:]_])(set[[:blank:]]+-[[:alpha:]]*e|errexit|ERR)'
__caisson_open_pattern='([|]|&&|\\)[[:space:]]*$'
__caisson_depth_max=200

__caisson_two() { return 2; }

# The code is next. $? as the last execution left it; and the guard, if this one needs it (here and not in
# __caisson_next, whose options are local).
__caisson_status() {
	__caisson_live=1
	# The `local -` of bash 4.4 takes it away.
	[[ $__caisson_options != *:expand_aliases:* ]] || builtin shopt -s expand_aliases
	if [[ -n $__caisson_watch ]]; then
		__caisson_watch='' __caisson_armed=$-
		builtin trap -- "$__caisson_guard" DEBUG
		builtin set -T
	fi
	return "$__caisson_last"
}

# __caisson_leave KIND STATUS: note how this execution ends, and return to MAIN with the next command. A DEBUG
# trap of the code would be restored in the place of ours, so there it is a restart.
__caisson_leave() {
	__caisson_stop=$1 __caisson_stop_status=$2
	[[ -z ${__caisson_traps[DEBUG]-} ]] || builtin exit "$2"
	[[ -n $__caisson_armed ]] || __caisson_armed=$-
	builtin set +e
	builtin shopt -s extdebug
	builtin trap -- "$__caisson_unwind" DEBUG
}

# extdebug sets functrace and errtrace, and takes both away with it.
__caisson_disarm() {
	builtin trap - DEBUG
	builtin shopt -u extdebug
	case $__caisson_armed in *T*) builtin set -T ;; esac
	case $__caisson_armed in *E*) builtin set -E ;; esac
	case $__caisson_armed in *e*) builtin set -e ;; esac
	__caisson_armed=
}

# __caisson_interrupt COMMAND: SIGINT came while COMMAND was running. The builtins that read go on after a
# trap, so only a restart gets them out.
__caisson_interrupt() {
	[[ -n $__caisson_live ]] || return 0
	case $1 in
	read | read\ * | mapfile* | readarray* | select* | IFS=*)
		__caisson_stop=interrupt __caisson_stop_status=130
		builtin exit 130
		;;
	esac
	__caisson_leave interrupt 130
}

exit() {
	builtin local __caisson_code_="$?"
	[[ $BASHPID == "$$" ]] || builtin exit "${@-$__caisson_code_}"
	if [[ $# -gt 0 ]]; then
		[[ $1 != -- ]] || shift
		if [[ ! ${1-$__caisson_code_} =~ ^[[:space:]]*[-+]?[0-9]+[[:space:]]*$ ]]; then
			builtin printf 'bash: exit: %s: numeric argument required\n' "$1" >&2
			builtin set -- 2
		elif [[ $# -gt 1 ]]; then
			builtin printf 'bash: exit: too many arguments\n' >&2
			return 1
		fi
	fi
	[[ ${1-$__caisson_code_} =~ (-?)0*([0-9]+) ]]
	__caisson_code_=${BASH_REMATCH[1]}${BASH_REMATCH[2]}
	__caisson_leave exit "$((__caisson_code_ & 255))"
	return "$((__caisson_code_ & 255))"
}

# EXIT and INT are kept for the driver, ERR is a constant that looks up its text. DEBUG and RETURN are
# wrapped: they must not run for the driver's own functions, this one among them.
trap() {
	if [[ $# -eq 0 || $1 == -p ]]; then
		__caisson_trap_print "${@:2}"
		return
	fi
	[[ $1 != -- || $# -lt 3 ]] || shift
	if [[ $# -lt 2 || $1 == -l || $1 == -- ]]; then
		[[ $# -eq 1 && $1 != -* && -n ${__caisson_special[$1]-} ]] || {
			# shellcheck disable=SC2064 # the caller has quoted it
			builtin trap "$@"
			return
		}
		builtin set -- - "$1"
	fi
	builtin local __caisson_t="$1" __caisson_s __caisson_r=0
	shift
	for __caisson_s; do
		if [[ -n $__caisson_s && -n ${__caisson_special[$__caisson_s]-} ]]; then
			__caisson_trap_set "$__caisson_t" "${__caisson_special[$__caisson_s]}"
		else
			builtin trap -- "$__caisson_t" "$__caisson_s" || __caisson_r=1
		fi
	done
	return "$__caisson_r"
}

declare -A __caisson_special=([EXIT]=EXIT [exit]=EXIT [0]=EXIT [INT]=INT [int]=INT [SIGINT]=INT [sigint]=INT [2]=INT
	[DEBUG]=DEBUG [debug]=DEBUG [RETURN]=RETURN [return]=RETURN [ERR]=ERR [err]=ERR)

# __caisson_trap_set TEXT NAME
__caisson_trap_set() {
	builtin local main=
	[[ $BASHPID != "$$" ]] || main=1
	if [[ $1 == - ]]; then
		builtin unset "__caisson_traps[$2]"
	else
		__caisson_traps[$2]=$1
	fi
	case $2 in
	EXIT)
		[[ -n $main ]] || builtin trap -- "$1" EXIT
		;;
	INT)
		if [[ -n $main ]]; then __caisson_catch; else builtin trap -- "$1" INT; fi
		;;
	ERR)
		# bash up to 5.1 would put an ERR trap that a function takes away back when it returns: so
		# it stays, and does nothing.
		# shellcheck disable=SC2016
		builtin trap 'case ${__caisson_traps[ERR]-} in "") ;; *) builtin eval "${__caisson_traps[ERR]}" ;; esac' ERR
		;;
	*)
		[[ $1 == - || -z $1 ]] || builtin set -- "case \$__caisson_quiet\${FUNCNAME-} in __caisson_* | trap | exit) ;; *) case \$BASH_COMMAND in *__caisson_*) ;; *)
$1
;; esac ;; esac" "$2"
		builtin trap -- "$1" "$2"
		;;
	esac
}

# Traced, or bash up to 5.1 would put a DEBUG trap that they take away back when they return.
declare -ft trap __caisson_trap_set

__caisson_trap_print() {
	builtin local s
	if [[ $# -eq 0 ]]; then
		builtin set -- EXIT INT DEBUG RETURN ERR 1 {3..31} {34..64}
	fi
	for s; do
		s=${__caisson_special[$s]-$s}
		if [[ $s != @(EXIT|INT|DEBUG|RETURN|ERR) ]]; then
			builtin trap -p "$s"
		elif [[ -n ${__caisson_traps[$s]+set} ]]; then
			[[ $s != INT ]] || s=SIGINT
			builtin printf 'trap -- %s %s\n' "${__caisson_traps[${s#SIG}]@Q}" "$s"
		fi
	done
}

# From here on SIGINT belongs to the execution.
__caisson_catch() {
	if [[ -n ${__caisson_traps[INT]+set} ]]; then
		builtin trap -- "${__caisson_traps[INT]}" INT
	else
		builtin trap '__caisson_interrupt "$BASH_COMMAND"' INT
	fi
}

# __caisson_next STATUS: report the execution that has just ended, if any; wait for the next one and leave
# it in __caisson_code. Return: 1 if there is code to run, 0 if the host has closed the channel.
__caisson_next() {
	__caisson_options=:$BASHOPTS:
	builtin local flags="$-"
	builtin local - LC_ALL=C IFS=
	builtin set +eTEuvxk -f
	__caisson_quiet=
	if [[ -n $__caisson_id ]] && __caisson_report "${__caisson_kept:-$1}"; then
		__caisson_catch
		return 1
	fi
	builtin trap '' INT
	builtin local line
	builtin local -A msg
	while builtin read -r -u "$__caisson_in" line; do
		msg=()
		__caisson_parse "$line"
		[[ ${msg[type]-} != packages ]] || __caisson_packages
		[[ ${msg[type]-} == execute ]] || continue
		__caisson_id=${msg[id]-} __caisson_code=${msg[code]-} __caisson_stop='' __caisson_phase=code __caisson_told=
		[[ -n $__caisson_id ]] || __caisson_id=' '
		__caisson_catch
		if [[ $flags == *e* || -n ${__caisson_traps[ERR]-} || $__caisson_code =~ $__caisson_tail_pattern ]]; then
			[[ $__caisson_code =~ $__caisson_open_pattern ]] || __caisson_code+=$__caisson_tail
		fi
		if [[ -z ${__caisson_traps[DEBUG]-} && $__caisson_code =~ $__caisson_exec_pattern ]]; then
			__caisson_watch=1
		fi
		return 1
	done
	__caisson_eof=1
	return 0
}

# The sandbox has other packages than before; msg[] has the variables by which programs find them. The code may have
# set these variables, too: its own directories stay, and come first in all but PATH.
__caisson_packages() {
	builtin local IFS=: name dir told list
	for name in PATH PYTHONPATH NODE_PATH; do
		told=${msg[$name]-} list=
		[[ -n $told && $(builtin declare -p "$name" 2>/dev/null) != 'declare -'*([[:alpha:]])r* ]] || continue
		for dir in ${!name-}; do
			[[ $dir == /packages/* && ($name != PATH || $dir != /packages/tools/*) ]] && continue
			[[ $name != PATH && :$told: == *":$dir:"* ]] || list+=:$dir
		done
		for dir in $told; do
			[[ $name == PATH && $dir != /packages/* || :$list: == *":$dir:"* ]] || list+=:$dir
		done
		builtin export "$name=${list#:}"
	done
	builtin hash -r
}

# __caisson_report STATUS. Return: 0 if the code's EXIT trap has to run before the execution is over; it is
# in __caisson_code then.
__caisson_report() {
	builtin local status="$1" word=ok
	builtin trap '' INT
	__caisson_kept=
	[[ -z $__caisson_stop ]] || status=$__caisson_stop_status
	if [[ $__caisson_stop == interrupt ]]; then
		__caisson_error KeyboardInterrupt interrupted
	elif [[ $__caisson_phase == exit && $__caisson_stop != exit ]]; then
		status=$__caisson_end
	elif [[ $__caisson_stop != exit ]]; then
		[[ $status == [12] ]] && __caisson_syntax || [[ $__caisson_stop != fatal ]] || __caisson_error ExitStatus "$status"
	fi
	__caisson_last=$status
	if [[ $__caisson_phase == code && $__caisson_stop == @(exit|fatal) && -n ${__caisson_traps[EXIT]-} ]]; then
		__caisson_code=${__caisson_traps[EXIT]} __caisson_phase=exit __caisson_end=$status __caisson_stop=
		builtin unset '__caisson_traps[EXIT]'
		return 0
	fi
	[[ $status == 0 ]] || word=error
	[[ $__caisson_stop != interrupt ]] || word=interrupted
	__caisson_quote "$__caisson_id"
	__caisson_id='' __caisson_code=''
	builtin printf '{"type":"execution_done","id":%s,"status":"%s","exit_code":%d}\n' "$__caisson_reply" "$word" "$status" >&"$__caisson_out"
	return 1
}

# Return: 0 if the code has a syntax error, which is reported. It has no status of its own, so ask a shell
# that only parses. It sees the whole text at once where `eval` went line by line: with the options as they
# are now, that differs for aliases alone.
__caisson_syntax() {
	builtin local text extglob=+O
	[[ ! -v BASHOPTS || :$BASHOPTS: != *:extglob:* ]] || extglob=-O
	text=$("$BASH" --norc "$extglob" extglob -n 2>&1 < <(builtin printf '%s\n' "${__caisson_code%"$__caisson_tail"}")) && return 1
	text=${text//"$BASH: "/bash: }
	[[ $text == *syntax\ error* || $text == *unexpected* ]] && __caisson_error SyntaxError "$text"
}

# __caisson_error NAME VALUE: once in an execution.
__caisson_error() {
	[[ -z $__caisson_told ]] || return 0
	__caisson_told=1
	__caisson_quote "$2"
	builtin printf '{"type":"error","name":"%s","value":%s,"traceback":[]}\n' "$1" "$__caisson_reply" >&"$__caisson_out"
}

# __caisson_quote TEXT: __caisson_reply is its JSON string, cut at 2000 bytes. Bytes that are not UTF-8 become U+FFFD.
# Runs in the C locale.
__caisson_quote() {
	builtin local text="$1" out='' c rest i n
	[[ ${#text} -le 2000 ]] || text=${text:0:2000}...
	for ((i = 0; i < ${#text}; i++)); do
		c=${text:i:1}
		case $c in
		[\"\\]) out+=\\$c ;;
		[' '-~]) out+=$c ;;
		*)
			builtin printf -v n %d "'$c"
			((n &= 255))
			rest=${text:i}
			if ((n < 128)); then
				builtin printf -v c '\\u%04x' "$n"
			elif [[ $rest =~ $__caisson_utf8 ]]; then
				c=${BASH_REMATCH[0]}
				((i += ${#c} - 1))
			else
				c='\ufffd'
			fi
			out+=$c
			;;
		esac
	done
	__caisson_reply=\"$out\"
}

__caisson_utf8=$'^([\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|\xed[\x80-\x9f][\x80-\xbf]'
__caisson_utf8+=$'|[\xe1-\xec\xee\xef][\x80-\xbf][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf][\x80-\xbf]'
__caisson_utf8+=$'|[\xf1-\xf3][\x80-\xbf][\x80-\xbf][\x80-\xbf]|\xf4[\x80-\x8f][\x80-\xbf][\x80-\xbf])'

# __caisson_parse LINE: fill the caller's msg[] with the string members of a JSON object, and those of `env` in it. In time linear in
# the line: it is cut at backslashes, the pieces are decoded and joined again, then cut at quotes. An
# escaped quote is the byte 0xff, which UTF-8 never has, in between. Runs in the C locale with `set -f`.
# Text that is not JSON gives an undefined result: the host is trusted to send JSON.
# shellcheck disable=SC2206,SC2141 # splitting at backslashes is intended
__caisson_parse() {
	builtin local IFS=\\ i n s text key depth=0 quote=$'\xff'
	builtin local -a part piece
	part=($1)
	n=${#part[@]}
	for ((i = 1; i < n; i++)); do
		s=${part[i]}
		case $s in
		'')
			part[i]=\\
			((i++))
			;;
		n*) part[i]=$'\n'${s:1} ;;
		\"*) part[i]=$quote${s:1} ;;
		t*) part[i]=$'\t'${s:1} ;;
		u*)
			text=${__caisson_char[${s:1:4}.]-}
			if [[ -n $text ]]; then part[i]=$text${s:5}; else __caisson_unicode; fi
			;;
		/*) part[i]=$s ;;
		r*) part[i]=$'\r'${s:1} ;;
		b*) part[i]=$'\b'${s:1} ;;
		f*) part[i]=$'\f'${s:1} ;;
		esac
	done
	IFS=
	text="${part[*]}"
	IFS=\"
	part=($text)
	n=${#part[@]}
	for ((i = 0; i + 1 < n; i += 2)); do
		# Even pieces are the text between strings, odd pieces are strings.
		s=${part[i]//[!\{\}\[\]]/}
		text=${s//[\}\]]/}
		((depth += 2 * ${#text} - ${#s}))
		s=${part[i + 2]-}
		[[ $depth == [12] && ${s//[[:space:]]/} == : ]] || continue
		key=${part[i + 1]} text=${part[i + 3]-}
		if [[ $text == *"$quote"* ]]; then
			IFS=$quote
			piece=($text.)
			IFS=\"
			text="${piece[*]}"
			text=${text%.}
		fi
		case $depth$key in 1type | 1id | 1code | 2PATH | 2PYTHONPATH | 2NODE_PATH) msg[$key]=$text ;; esac
		((i += 2))
	done
}

# The piece part[i] is "uXXXX...": put the character in its place, with the second half of a surrogate pair
# from part[i + 1]. Remember it, unless it is half of a pair.
__caisson_unicode() {
	builtin local hex="${s:1:4}" v low="${part[i + 1]-}" bytes
	[[ $hex == [0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F] ]] || return 0
	v=$((16#$hex))
	if [[ ${#s} == 5 && $hex == [dD][89aAbB]* && $low == u[dD][c-fC-F][0-9a-fA-F][0-9a-fA-F]* ]]; then
		((v = 0x10000 + ((v - 0xd800) << 10) + 16#${low:1:4} - 0xdc00))
		part[i]=
		((i++))
		s=$low
	elif ((v >= 0xd800 && v < 0xe000)); then
		v=0xfffd
	fi
	if ((v == 0)); then
		bytes= # A shell has no NUL in its strings: leave it out.
	elif ((v < 0x80)); then
		builtin printf -v bytes '\\x%x' "$v"
	elif ((v < 0x800)); then
		builtin printf -v bytes '\\x%x' "$((v >> 6 | 0xc0))" "$((v & 63 | 0x80))"
	elif ((v < 0x10000)); then
		builtin printf -v bytes '\\x%x' "$((v >> 12 | 0xe0))" "$((v >> 6 & 63 | 0x80))" "$((v & 63 | 0x80))"
	else
		builtin printf -v bytes '\\x%x' "$((v >> 18 | 0xf0))" "$((v >> 12 & 63 | 0x80))" "$((v >> 6 & 63 | 0x80))" "$((v & 63 | 0x80))"
	fi
	builtin printf -v bytes %b "$bytes"
	part[i]=$bytes${s:5}
	[[ $hex == [dD][89a-fA-F]* ]] || __caisson_char[$hex.]=$bytes
}

# MAIN's loop has ended. Return: 0 if it is for good; else it is started again. When that has made the stack
# deep, a restart makes it flat.
__caisson_over() {
	[[ -z $__caisson_eof ]] || return 0
	[[ -n $__caisson_stop ]] || __caisson_stop=break __caisson_stop_status=0
	((++__caisson_depth < __caisson_depth_max)) || builtin exit 0
	return 1
}

# __caisson_fatal STATUS ARGUMENTS...: the EXIT trap. The shell is about to end: continue in a new one.
__caisson_fatal() {
	# A child that is killed before bash has made it a subshell comes here too.
	[[ -n $__caisson_id && $BASHPID == "$$" ]] || return 0
	# A trapped SIGINT is at its default in the new shell; an ignored one could never be trapped there.
	builtin trap : INT
	[[ -n $__caisson_stop ]] || __caisson_stop=fatal __caisson_stop_status=$1
	__caisson_args=("${@:2}")
	# Copies without close-on-exec: a descriptor below 3 never gets the flag, nor does a copy of it.
	exec {__caisson_fd_0}<&0 0<&"$__caisson_in"
	exec {__caisson_fd_in}<&0 0<&"$__caisson_out"
	exec {__caisson_fd_out}<&0 0<&"$__caisson_fd_0" {__caisson_fd_0}<&-
	exec {__caisson_fd_state}< <(__caisson_dump)
	exec "$BASH" -O expand_aliases -c "$__caisson_start" bash "$__caisson_file" "$__caisson_fd_in" "$__caisson_fd_out" "$__caisson_fd_state"
}

# The state as commands, for the new shell to source. The options come last: they are the code's, and may be
# `set -e`.
# shellcheck disable=SC2154,SC2016 # the dump variables are set by the EXIT trap; the expansions are the new shell's
__caisson_dump() {
	builtin local __caisson_c __caisson_n
	for __caisson_c in {a..z} {A..Z} _; do
		builtin eval "builtin set -- \"\${!$__caisson_c@}\""
		for __caisson_n; do
			case $__caisson_n in
			BASH | BASHOPTS | BASHPID | BASH_ALIASES | BASH_ARG* | BASH_CMDS | BASH_COMMAND | BASH_EXECUTION_STRING) ;;
			BASH_LINENO | BASH_MONOSECONDS | BASH_SOURCE | BASH_SUBSHELL | BASH_TRAPSIG | BASH_VERS*) ;;
			COMP_WORDBREAKS | DIRSTACK | EPOCH* | EUID | FUNCNAME | GROUPS | HISTCMD | LINENO | PIPESTATUS) ;;
			PPID | PWD | RANDOM | SECONDS | SHELLOPTS | SHLVL | SRANDOM | UID | _ | __caisson_* | '') ;;
			*) builtin declare -p "$__caisson_n" ;;
			esac
		done
	done
	builtin declare -p __caisson_{id,code,stop,stop_status,phase,end,last,kept,told,armed,watch,args,traps}
	builtin printf 'SECONDS=%s\n' "$SECONDS"
	while IFS=' ' builtin read -r __caisson_c __caisson_c __caisson_n; do
		case $__caisson_n in __caisson_* | exit | trap) continue ;; esac
		builtin declare -f "$__caisson_n"
		[[ $__caisson_c == -f ]] || builtin printf 'builtin declare %s %q\n' "$__caisson_c" "$__caisson_n"
	done < <(builtin declare -F)
	builtin alias -p
	for ((__caisson_n = ${#DIRSTACK[@]} - 1; __caisson_n > 0; __caisson_n--)); do
		builtin printf 'builtin pushd -n %q >/dev/null\n' "${DIRSTACK[__caisson_n]}"
	done
	# The code's traps by name are in __caisson_traps; of the others DEBUG is left out, it may be the driver's own.
	builtin printf '%s\n' "${__caisson_dump_traps//trap -- /builtin trap -- }" 'builtin trap - DEBUG' \
		'for __caisson_n in DEBUG RETURN ERR; do' \
		'[[ -z ${__caisson_traps[$__caisson_n]-} ]] ||' \
		'__caisson_trap_set "${__caisson_traps[$__caisson_n]}" "$__caisson_n"; done' \
		'builtin trap -- "$__caisson_exit" EXIT' 'exec {__caisson_fd_state}<&-' "$__caisson_dump_options"
	# A command substitution does not show the true values of these two.
	case $__caisson_dump_flags in *:expand_aliases:*) builtin echo 'builtin shopt -s expand_aliases' ;; esac
	case ${__caisson_dump_flags%%:*} in *e*) builtin echo 'builtin set -e' ;; esac
	builtin echo '[[ -z $__caisson_armed ]] || __caisson_disarm'
}

# __caisson_open FROM TO: move a descriptor, with close-on-exec. FROM is closed for a group of commands, so
# bash keeps a copy that has the flag, at the lowest free number from 10 on; from there the copy is copied.
# (`builtin exec` would not keep redirections.)
__caisson_open() {
	builtin local n=10
	while [[ -e /dev/fd/$n ]]; do ((n++)); done
	builtin eval "{ exec $2<&$n; } $1<&-"
	[[ -e /dev/fd/$2 ]] || builtin eval "exec $2<&$1"
	builtin eval "exec $1<&-"
}

# Sourced by __caisson_start with: descriptor in, descriptor out, descriptor of the state of a shell that
# has died or nothing.
__caisson_file=${BASH_SOURCE[0]} __caisson_in=253 __caisson_out=254 __caisson_fd_state=$3
__caisson_live=1 __caisson_depth=0 __caisson_eof='' __caisson_armed='' __caisson_watch='' __caisson_args=() __caisson_last=0 __caisson_kept='' __caisson_told=''
__caisson_id='' __caisson_code='' __caisson_stop='' __caisson_stop_status=0 __caisson_phase='' __caisson_end=0
# While it is not empty the code's DEBUG and RETURN traps stay silent, see __caisson_trap_set.
__caisson_quiet=__caisson_
declare -A __caisson_char=() __caisson_traps=()
__caisson_open "$1" "$__caisson_in"
__caisson_open "$2" "$__caisson_out"
if [[ -n $3 ]]; then
	# shellcheck disable=SC1090 # a pipe from __caisson_dump
	. "/dev/fd/$3"
else
	printf '{"type":"ready","language":"bash","version":"%s.%s.%s","pid":%d}\n' "${BASH_VERSINFO[@]:0:3}" "$$" >&"$__caisson_out"
	builtin trap -- "$__caisson_exit" EXIT
fi
