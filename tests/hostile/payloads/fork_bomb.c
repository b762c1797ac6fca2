/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_bomb.c - Make processes or threads without end, in the ways a kernel counts them.
 *
 * usage: fork_bomb fork|thread|clone|vfork [once]
 *
 * fork    children that bomb on; the classic
 * thread  threads that sleep
 * clone   CLONE_VM without SIGCHLD: a child that no wait() sees
 * vfork   each child makes the next one while its parent is held
 *
 * Goes on after a refusal, for ever; with "once" it exits 11 at the first refusal (EAGAIN is 11).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK (64 * 1024)

static bool once;

static void refused(void)
{
	if (once)
		_exit(errno == EAGAIN ? 11 : 99);
	(void)usleep(1000);
}

static void bomb_fork(void)
{
	for (;;) {
		pid_t pid = fork();

		if (pid < 0)
			refused();
		if (pid == 0 && once)
			for (;;)
				(void)pause();
	}
}

static void *sleeper(void *unused)
{
	for (;;)
		(void)pause();
	return unused;
}

static void bomb_thread(void)
{
	pthread_attr_t attr;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK);
	for (;;) {
		pthread_t t;
		int r = pthread_create(&t, &attr, sleeper, NULL);

		if (r) {
			errno = r;
			refused();
		}
	}
}

static int silent_child(void *unused)
{
	(void)unused;
	for (;;)
		(void)pause();
	return 0;
}

static void bomb_clone(void)
{
	for (;;) {
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		if (stack == MAP_FAILED)
			_exit(98);
		if (clone(silent_child, stack + STACK, CLONE_VM | CLONE_FILES, NULL) < 0) {
			refused();
			(void)munmap(stack, STACK);
		}
	}
}

/* Every level is held by the kernel until the one below it ends, which none does. */
static void bomb_vfork(void)
{
	for (;;) {
		pid_t pid = vfork();

		if (pid < 0)
			refused();
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	once = argc > 2 && strcmp(argv[2], "once") == 0;
	(void)signal(SIGCHLD, SIG_IGN);
	if (strcmp(mode, "fork") == 0)
		bomb_fork();
	else if (strcmp(mode, "thread") == 0)
		bomb_thread();
	else if (strcmp(mode, "clone") == 0)
		bomb_clone();
	else if (strcmp(mode, "vfork") == 0)
		bomb_vfork();
	return 97;
}
