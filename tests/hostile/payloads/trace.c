/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - A tracer that tries to get more than its tracee may.
 *
 *   trace           a child asks to be traced. On its way into getppid() its call becomes
 *                   io_uring_setup(), and then its filter is suspended in the two ways there are.
 *   trace PID       attach to PID, read its memory, seize it
 *   trace chain N   N processes, each traced by its parent and held on its way out (TRACEEXIT)
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

static int look(int pid)
{
	char byte;
	struct iovec mine = { &byte, 1 }, theirs = { &byte, 1 };

	say("seize", ptrace(PTRACE_SEIZE, pid, 0, 0));
	say("process_vm_readv", process_vm_readv(pid, &mine, 1, &theirs, 1, 0));
	say("attach", ptrace(PTRACE_ATTACH, pid, 0, 0));
	return 0;
}

static _Noreturn void chain(int n)
{
	int status;
	pid_t pid = -1;
	sigset_t all;

	(void)sigfillset(&all); /* a tracee would stop for its own SIGCHLD */
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	while (n-- > 0 && (pid = fork()) == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, 0, 0);
		(void)raise(SIGSTOP);
		pid = -1;
	}
	if (pid < 0)
		say("chain", 0);
	else if (waitpid(pid, &status, 0) != pid ||
		 ptrace(PTRACE_SETOPTIONS, pid, 0, (void *)(long)PTRACE_O_TRACEEXIT) < 0 ||
		 ptrace(PTRACE_CONT, pid, 0, 0) < 0)
		say("chain", -1);
	for (;;)
		(void)pause();
}

#ifdef __x86_64__
static void change_call(pid_t pid)
{
	struct user_regs_struct regs;
	int status;

	for (int i = 0; i < 100; i++) { /* to the entry of the call, past those of the C library */
		if (ptrace(PTRACE_SYSCALL, pid, 0, 0) < 0 || waitpid(pid, &status, 0) != pid ||
		    !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, pid, 0, &regs) < 0)
			return;
		if (regs.orig_rax == SYS_getppid)
			break;
	}
	regs.orig_rax = SYS_io_uring_setup;
	regs.rdi = 1;
	regs.rsi = 0;
	if (say("setregs", ptrace(PTRACE_SETREGS, pid, 0, &regs)) < 0 ||
	    ptrace(PTRACE_SYSCALL, pid, 0, 0) < 0 || waitpid(pid, &status, 0) != pid ||
	    ptrace(PTRACE_GETREGS, pid, 0, &regs) < 0)
		return;
	errno = (int)-(long)regs.rax;
	say("changed-call", (long)regs.rax < 0 ? -1 : (long)regs.rax);
}
#else
static void change_call(pid_t pid)
{
	(void)pid;
}
#endif

int main(int argc, char **argv)
{
	int status;

	if (argc > 2)
		chain(atoi(argv[2]));
	if (argc > 1)
		return look(atoi(argv[1]));
	pid_t pid = fork();

	if (pid == 0) {
		say("traceme", ptrace(PTRACE_TRACEME, 0, 0, 0));
		(void)raise(SIGSTOP);
		(void)syscall(SYS_getppid);
		for (;;)
			(void)pause();
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return 3;
	change_call(pid);
	say("suspend-by-option",
	    ptrace(PTRACE_SETOPTIONS, pid, 0, (void *)(long)PTRACE_O_SUSPEND_SECCOMP));
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);

	for (int seize = 0; seize < 2; seize++) {
		pid = fork();
		if (pid == 0)
			for (;;)
				(void)pause();
		if (seize)
			say("suspend-by-seize",
			    ptrace(PTRACE_SEIZE, pid, 0, (void *)(long)PTRACE_O_SUSPEND_SECCOMP));
		else
			say("attach-child", ptrace(PTRACE_ATTACH, pid, 0, 0));
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
	}
	return 0;
}
