/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.c - Take processor time, or refuse to end.
 *
 * usage: busy spin [THREADS] | sched | sleep | stop | vfork | deaf | handlers | timers | sigqueue
 *
 * spin      THREADS busy threads
 * sched     ask for real-time, a better nice value and another cpu set; prints "CALL ERRNO" lines
 * sleep     wait for ever
 * stop      SIGSTOP itself and a child
 * vfork     a parent held by a vfork child that sleeps
 * deaf      block and ignore every signal, then send itself those that usually end a program
 * handlers  catch every signal and continue
 * timers    a million POSIX timers, some of which fire all the time
 * sigqueue  queue signals to itself that are never handled
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define ARMED 64

static const char *name_of(int e)
{
	return e ? strerrorname_np(e) : "OK";
}

static void *spin(void *unused)
{
	volatile unsigned long n = 0;

	for (;;)
		n++;
	return unused;
}

static void spin_all(int threads)
{
	pthread_t t;

	for (int i = 1; i < threads; i++)
		(void)pthread_create(&t, NULL, spin, NULL);
	(void)spin(NULL);
}

static void ask_scheduler(void)
{
	struct sched_param p = { .sched_priority = 1 }, zero = { 0 };
	struct {
		unsigned int size, policy;
		unsigned long long flags;
		int nice;
		unsigned int priority;
		unsigned long long runtime, deadline, period;
	} dl = { sizeof(dl), 6, 0, 0, 0, 10000000, 100000000, 100000000 };

	(void)printf("fifo %s\n", name_of(sched_setscheduler(0, SCHED_FIFO, &p) ? errno : 0));
	(void)printf("rr %s\n", name_of(sched_setscheduler(0, SCHED_RR, &p) ? errno : 0));
	(void)printf("deadline %s\n", name_of(syscall(314, 0, &dl, 0) ? errno : 0));
	(void)printf("nice %s\n", name_of(setpriority(PRIO_PROCESS, 0, -5) ? errno : 0));
	(void)printf("idle %s\n", name_of(sched_setscheduler(0, SCHED_IDLE, &zero) ? errno : 0));
}

static void stop_all(void)
{
	if (fork() == 0)
		for (;;)
			(void)raise(SIGSTOP);
	for (;;)
		(void)raise(SIGSTOP);
}

static void hold_by_vfork(void)
{
	if (vfork() == 0)
		for (;;)
			(void)pause();
	_exit(0);
}

static void go_on(int sig)
{
	(void)sig;
}

static void deaf(int catch_them)
{
	sigset_t all;

	for (int s = 1; s < NSIG; s++)
		(void)signal(s, catch_them ? go_on : SIG_IGN);
	(void)sigfillset(&all);
	if (!catch_them)
		(void)sigprocmask(SIG_BLOCK, &all, NULL);
	for (int s = 1; s < 32; s++)
		if (s != SIGKILL && s != SIGSTOP)
			(void)raise(s);
	for (;;)
		(void)pause();
}

static void timers(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec fast = { { 0, 1000 }, { 0, 1000 } };
	struct itimerval often = { { 0, 1 }, { 0, 1 } };
	timer_t armed[ARMED];
	long made = 0;
	int e = 0;

	(void)signal(SIGALRM, go_on);
	(void)signal(SIGRTMIN, go_on);
	for (; made < 1000000; made++) {
		timer_t t;

		if (timer_create(CLOCK_MONOTONIC, &ev, &t) < 0) {
			e = errno;
			break;
		}
		if (made < ARMED)
			armed[made] = t;
	}
	(void)printf("%ld %s\n", made, name_of(e));
	(void)fflush(stdout);
	/* Not before: they leave no time for anything else. */
	for (long i = 0; i < ARMED && i < made; i++)
		(void)timer_settime(armed[i], 0, &fast, NULL);
	(void)setitimer(ITIMER_REAL, &often, NULL);
	for (;;)
		(void)pause();
}

static void queue_signals(void)
{
	sigset_t all;
	long n = 0;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	while (n < 10000000 &&
	       sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = 1 }) == 0)
		n++;
	(void)printf("%ld %s\n", n, name_of(errno));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "spin") == 0)
		spin_all(argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1);
	else if (strcmp(mode, "sched") == 0)
		ask_scheduler();
	else if (strcmp(mode, "sleep") == 0)
		for (;;)
			(void)pause();
	else if (strcmp(mode, "stop") == 0)
		stop_all();
	else if (strcmp(mode, "vfork") == 0)
		hold_by_vfork();
	else if (strcmp(mode, "deaf") == 0)
		deaf(0);
	else if (strcmp(mode, "handlers") == 0)
		deaf(1);
	else if (strcmp(mode, "timers") == 0)
		timers();
	else if (strcmp(mode, "sigqueue") == 0)
		queue_signals();
	else
		return 97;
	return 0;
}
