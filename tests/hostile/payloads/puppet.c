/* SPDX-License-Identifier: Apache-2.0 */
/*
 * puppet.c - Makes a running process hostile: it executes the system calls that we choose, and
 * lives on.
 *
 * usage: puppet PID     (as root, on the host; driven by tests/hostile/puppet.py)
 *
 * Theory of operation. PTRACE_SEIZE and PTRACE_INTERRUPT stop the process wherever it is. Its
 * registers and its signal mask are saved, all signals are blocked, and for each call the registers
 * are set to a `syscall` instruction that is already in its code. So the process itself makes the
 * call: its user, capabilities, namespaces, filter, Landlock domain and descriptors apply, as they
 * would to an attacker who runs code in it. Arguments that are pointers point into memory that the
 * process itself maps for us. At the end the mapping goes, registers and mask come back, and a call
 * that the stop had interrupted is made again.
 *
 * One command per line on standard input, one JSON object per line as the answer:
 *
 *     poke OFFSET HEX         bytes into the scratch memory
 *     peek OFFSET LENGTH      {"data": HEX}
 *     call NR A0 .. A5        {"ret": N}, where -4095..-1 is an errno; "blocked": it was
 * interrupted after BLOCK_US; "child": a process was made, and killed at once; "exec": the process
 * runs another program;
 *                             {"dead": STATUS}: the process ended, by the call or by its filter
 *     end                     {"ok": true}, after it was let go
 *
 * The first line is {"base": ADDRESS, "size": SIZE}. End of input is `end`.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __x86_64__
#error "puppet.c knows the registers of x86-64 only"
#endif

#define SCRATCH 65536ul
#define BLOCK_US 500000
#define OPTIONS                                                                                    \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |  \
	 PTRACE_O_TRACEEXEC)

static pid_t pid;
static int mem = -1;
static unsigned long base, insn;
static struct user_regs_struct saved;
static uint64_t saved_mask;
static volatile sig_atomic_t late;

static void die(const char *what)
{
	(void)printf("{\"error\": \"%s: %s\"}\n", what, strerror(errno));
	(void)fflush(stdout);
	exit(1);
}

static void on_alarm(int sig)
{
	(void)sig;
	late = 1;
	(void)ptrace(PTRACE_INTERRUPT, pid, 0, 0);
}

static int wait_for(pid_t who)
{
	int status;

	while (waitpid(who, &status, __WALL) < 0)
		if (errno != EINTR)
			die("waitpid");
	return status;
}

/* The address of `syscall` (0f 05) in its code, as text or in the middle of another instruction. */
static unsigned long find_insn(void)
{
	char path[64], line[512];
	unsigned long from, to, found = 0;
	unsigned char *code = malloc(1 << 20);
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!code || !maps)
		die("read its maps");
	while (!found && fgets(line, sizeof(line), maps)) {
		char perms[5];

		if (sscanf(line, "%lx-%lx %4s", &from, &to, perms) != 3 || perms[2] != 'x' ||
		    strstr(line, "[vsyscall]"))
			continue;
		for (; !found && from < to; from += (1 << 20) - 1) {
			size_t want = to - from < 1 << 20 ? to - from : 1 << 20;
			ssize_t n = pread(mem, code, want, (off_t)from);
			unsigned char *at = n > 0 ? memmem(code, (size_t)n, "\x0f\x05", 2) : NULL;

			found = at ? from + (unsigned long)(at - code) : 0;
		}
	}
	(void)fclose(maps);
	free(code);
	return found;
}

/* ---- one call ------------------------------------------------------------------------------ */

struct outcome {
	long ret;
	pid_t child;
	int dead; /* wait status, when it is over */
	bool exec, is_dead;
};

/* A process that was made runs our registers; it ends before it runs anything. */
static pid_t end_child(void)
{
	unsigned long child = 0;

	if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &child) < 0)
		die("the child's pid");
	(void)syscall(SYS_tkill, (pid_t)child, SIGKILL);
	(void)waitpid((pid_t)child, NULL, __WALL);
	return (pid_t)child;
}

/* Run until the stop behind the call. Stops in between: the one before it, a child, another
 * program, our own interruption. */
static void run_call(struct outcome *o)
{
	bool entered = false;

	for (;;) {
		int status, event;

		if (ptrace(PTRACE_SYSCALL, pid, 0, 0) < 0 && errno != ESRCH)
			die("PTRACE_SYSCALL");
		status = wait_for(pid);
		event = status >> 16;
		if (!WIFSTOPPED(status)) {
			o->is_dead = true;
			o->dead = status;
			return;
		}
		if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
		    event == PTRACE_EVENT_CLONE)
			o->child = end_child();
		else if (event == PTRACE_EVENT_EXEC)
			o->exec = true;
		else if (WSTOPSIG(status) == (SIGTRAP | 0x80) && entered)
			return;
		else if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			entered = true;
		else if (!event && WSTOPSIG(status) == SIGSYS) {
			o->ret = -SIGSYS; /* the filter's trap: the handler is not run, and the call
					     was not made */
			return;
		}
	}
}

static void call(const unsigned long a[7], struct outcome *o)
{
	struct user_regs_struct r = saved;
	const struct itimerval limit = { .it_value.tv_usec = BLOCK_US,
					 .it_interval.tv_usec = 100000 };
	const struct itimerval none = { 0 };

	r.rip = insn;
	r.rax = a[0];
	r.rdi = a[1];
	r.rsi = a[2];
	r.rdx = a[3];
	r.r10 = a[4];
	r.r8 = a[5];
	r.r9 = a[6];
	r.rsp = (saved.rsp - 1024) & ~15ul; /* below the red zone */
	r.orig_rax = (unsigned long)-1;
	late = 0;
	if (ptrace(PTRACE_SETREGS, pid, 0, &r) < 0)
		die("PTRACE_SETREGS");
	(void)setitimer(ITIMER_REAL, &limit, NULL);
	run_call(o);
	(void)setitimer(ITIMER_REAL, &none, NULL);
	if (o->is_dead || o->ret)
		return;
	if (ptrace(PTRACE_GETREGS, pid, 0, &r) < 0)
		die("PTRACE_GETREGS");
	o->ret = (long)r.rax;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void begin(void)
{
	const uint64_t all = ~0ull;
	const unsigned long map[7] = {
		SYS_mmap,          0, SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		(unsigned long)-1, 0
	};
	struct outcome o = { 0 };
	char path[64];

	if (ptrace(PTRACE_SEIZE, pid, 0, OPTIONS) < 0)
		die("PTRACE_SEIZE");
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		die("PTRACE_INTERRUPT");
	if (!WIFSTOPPED(wait_for(pid)))
		die("it ended");
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = open(path, O_RDWR | O_CLOEXEC);
	if (mem < 0)
		die(path);
	if (ptrace(PTRACE_GETREGS, pid, 0, &saved) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, pid, sizeof(saved_mask), &saved_mask) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, pid, sizeof(all), &all) < 0)
		die("its registers");
	insn = find_insn();
	if (!insn) {
		errno = ENOENT;
		die("a syscall instruction");
	}
	call(map, &o);
	if (o.is_dead || (unsigned long)o.ret > (unsigned long)-4096) {
		errno = o.is_dead ? ESRCH : (int)-o.ret;
		die("mmap in it");
	}
	base = (unsigned long)o.ret;
	(void)printf("{\"base\": %lu, \"size\": %lu}\n", base, SCRATCH);
}

/* The kernel would have done this on the way back from the interrupted call; we come back from
 * another one. */
static void restart(struct user_regs_struct *r)
{
	long ret = (long)r->rax;

	if ((long)r->orig_rax >= 0 && (ret == -512 || ret == -513 || ret == -514)) {
		r->rax = r->orig_rax; /* ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND */
		r->rip -= 2;
	} else if ((long)r->orig_rax >= 0 && ret == -516) {
		r->rax = SYS_restart_syscall; /* ERESTART_RESTARTBLOCK */
		r->rip -= 2;
	}
	r->orig_rax = (unsigned long)-1;
}

static void let_go(void)
{
	const unsigned long unmap[7] = { SYS_munmap, base, SCRATCH, 0, 0, 0, 0 };
	struct outcome o = { 0 };

	call(unmap, &o);
	restart(&saved);
	if (ptrace(PTRACE_SETREGS, pid, 0, &saved) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, pid, sizeof(saved_mask), &saved_mask) < 0 ||
	    ptrace(PTRACE_DETACH, pid, 0, 0) < 0)
		die("let it go");
}

/* ---- commands ------------------------------------------------------------------------------ */

static void poke(unsigned long at, const char *hex)
{
	static unsigned char bytes[SCRATCH];
	size_t n = strspn(hex, "0123456789abcdef") / 2;

	if (at > SCRATCH || n > SCRATCH - at) {
		(void)printf("{\"error\": \"poke: outside of the scratch memory\"}\n");
		return;
	}
	for (size_t i = 0; i < n; i++)
		(void)sscanf(hex + 2 * i, "%2hhx", &bytes[i]);
	if (pwrite(mem, bytes, n, (off_t)(base + at)) != (ssize_t)n)
		die("poke");
	(void)printf("{\"ok\": true}\n");
}

static void peek(unsigned long at, unsigned long n)
{
	static unsigned char bytes[SCRATCH];

	if (at > SCRATCH || n > SCRATCH - at) {
		(void)printf("{\"error\": \"peek: outside of the scratch memory\"}\n");
		return;
	}
	if (pread(mem, bytes, n, (off_t)(base + at)) != (ssize_t)n)
		die("peek");
	(void)printf("{\"data\": \"");
	for (size_t i = 0; i < n; i++)
		(void)printf("%02x", bytes[i]);
	(void)printf("\"}\n");
}

/* False: the process is gone. */
static bool one_call(const char *text)
{
	unsigned long a[7] = { 0 };
	struct outcome o = { 0 };
	char *end;

	for (size_t i = 0; i < 7; i++, text = end)
		a[i] = strtoul(text, &end, 10);
	call(a, &o);
	if (o.is_dead) {
		(void)printf("{\"dead\": %d}\n", o.dead);
		return false;
	}
	(void)printf("{\"ret\": %ld, \"blocked\": %s, \"child\": %d, \"exec\": %s}\n", o.ret,
		     late ? "true" : "false", o.child, o.exec ? "true" : "false");
	if (o.exec && ptrace(PTRACE_DETACH, pid, 0, 0) < 0)
		die("let it go");
	return !o.exec;
}

int main(int argc, char **argv)
{
	static char line[4 * SCRATCH];
	struct sigaction act = { .sa_handler = on_alarm };

	pid = argc == 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	if (pid <= 0) {
		(void)fprintf(stderr, "usage: puppet PID\n");
		return 2;
	}
	(void)sigaction(SIGALRM, &act, NULL);
	begin();
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3) != 0) {
		unsigned long x = 0, y = 0;
		int at = 0;

		if (sscanf(line, "poke %lu %n", &x, &at) == 1 && at)
			poke(x, line + at);
		else if (sscanf(line, "peek %lu %lu", &x, &y) == 2)
			peek(x, y);
		else if (strncmp(line, "call ", 5) == 0) {
			if (!one_call(line + 5))
				return 0;
		} else
			(void)printf("{\"error\": \"no such command\"}\n");
		(void)fflush(stdout);
	}
	let_go();
	(void)printf("{\"ok\": true}\n");
	return 0;
}
