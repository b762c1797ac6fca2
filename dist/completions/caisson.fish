# SPDX-License-Identifier: Apache-2.0
# Completion of caisson(1) for fish.

set -l verbs run exec doctor help
set -l none "not __fish_seen_subcommand_from $verbs"
set -l cell "__fish_seen_subcommand_from run exec"

complete -c caisson -f
complete -c caisson -n "$none" -a run -d 'run code in a fresh cell'
complete -c caisson -n "$none" -a exec -d 'run a program in a fresh cell'
complete -c caisson -n "$none" -a doctor -d 'what this kernel gives and which layers are enforced'
complete -c caisson -n "$none" -a help -d 'explain a verb'
complete -c caisson -n "$none" -l version -d 'show the version'
complete -c caisson -l help -d 'show help'
complete -c caisson -n "__fish_seen_subcommand_from help" -a "run exec doctor"
complete -c caisson -n "__fish_seen_subcommand_from doctor" -l json -d 'print one object'

complete -c caisson -n "$cell" -F
complete -c caisson -n "$cell" -l lang -s l -x -a 'python bash javascript r' -d 'language of the code'
complete -c caisson -n "__fish_seen_subcommand_from run" -l code -s c -x -d 'run this, whatever it looks like'
complete -c caisson -n "$cell" -l memory -s m -x -d 'memory limit'
complete -c caisson -n "$cell" -l cpus -x -d 'processors, as a number'
complete -c caisson -n "$cell" -l pids -x -d 'processes and threads'
complete -c caisson -n "$cell" -l timeout -s t -x -d 'wall time limit'
complete -c caisson -n "$cell" -l cpu-time -x -d 'cpu time limit'
complete -c caisson -n "$cell" -l disk -x -d 'size of the writable layer'
complete -c caisson -n "$cell" -l inodes -x -d 'files in the writable layer'
complete -c caisson -n "$cell" -l files -x -d 'open files per process'
complete -c caisson -n "$cell" -l max-output -x -d 'end the cell after so many bytes of output'
complete -c caisson -n "$cell" -l capture -x -d 'characters of each stream in --json'
complete -c caisson -n "$cell" -l env -s e -x -d 'set a variable K=V'
complete -c caisson -n "$cell" -l mount -s v -r -d 'show a host path in the cell, SRC:DST[:ro|rw]'
complete -c caisson -n "$cell" -l workdir -s w -x -d 'working directory in the cell'
complete -c caisson -n "$cell" -l user -s u -x -d 'who runs it in the cell, UID[:GID]'
complete -c caisson -n "$cell" -l image -x -a 'host dir:' -d 'root file system'
complete -c caisson -n "$cell" -l tty -d 'run on a terminal of the cell'
complete -c caisson -n "$cell" -l json -d 'print one result object'
complete -c caisson -n "$cell" -l receipt -d 'print the isolation receipt'
complete -c caisson -n "$cell" -l without -x -a 'seccomp landlock cgroup' -d 'give up a layer, visibly'
complete -c caisson -n "$cell" -l state -x -a '(__fish_complete_directories)' -d 'state directory'
