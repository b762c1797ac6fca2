/* SPDX-License-Identifier: Apache-2.0 */
/* test_supervise.c - Workers follow one another, and the last one's exit status is the end. */
#include "base/supervise.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"

/* Shared with the workers. */
static struct {
	uint32_t lives, killed; /* so many kill themselves first */
	int status;
	uint32_t waits; /* calls of the hook */
	pid_t orphan;
} * seen;

static int work(void *arg, uint32_t life)
{
	(void)arg;
	seen->lives = life + 1;
	if (life == 0 && seen->orphan) {
		pid_t parent = getpid(), pid = fork();

		if (pid == 0) { /* as the jobs of a store do */
			if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
				_exit(1);
			for (;;)
				(void)pause();
		}
		seen->orphan = pid;
	}
	if (life < seen->killed)
		(void)raise(SIGKILL);
	return seen->status;
}

TEST(follows)
{
	struct supervise s = { .work = work, .lives_max = 5, .failed = 9, .pause_ms = 1 };

	seen->killed = 3;
	seen->status = 4;
	assert_int_equal(supervise(&s), 4);
	assert_int_equal(seen->lives, 4);
	seen->killed = 100;
	assert_int_equal(supervise(&s), 9);
	assert_int_equal(seen->lives, 5);
}

TEST(insists)
{
	struct supervise s = {
		.work = work, .lives_max = 3, .failed = 9, .insist = true, .pause_ms = 1
	};

	seen->killed = 0;
	seen->status = 4;
	assert_int_equal(supervise(&s), 9);
	assert_int_equal(seen->lives, 3);
	seen->status = 0;
	assert_int_equal(supervise(&s), 0);
	assert_int_equal(seen->lives, 1);
}

/* Of a worker that was killed nothing is left when the next one begins. */
TEST(buries)
{
	struct supervise s = {
		.work = work, .lives_max = 2, .failed = 9, .bury_all = true, .pause_ms = 1
	};

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	seen->killed = 1;
	seen->status = 0;
	seen->orphan = 1;
	assert_int_equal(supervise(&s), 0);
	assert_true(seen->orphan > 1);
	assert_int_equal(kill(seen->orphan, 0), -1);
	seen->orphan = 0;
}

static unsigned int pauses[8];

static bool note_wait(void *arg, pid_t worker, unsigned int ms, int *ret_status)
{
	(void)arg;
	if (worker)
		return waitpid(worker, ret_status, 0) == worker;
	pauses[seen->waits++] = ms;
	return seen->waits < 5;
}

TEST(pauses)
{
	struct supervise s = {
		.work = work, .failed = 9, .pause_ms = 100, .pause_max_ms = 500, .wait = note_wait
	};
	const unsigned int expected[] = { 100, 200, 400, 500, 500 };

	seen->killed = 100;
	assert_int_equal(supervise(&s), 9);
	assert_int_equal(seen->waits, 5);
	assert_memory_equal(pauses, expected, sizeof(expected));
}

int main(void)
{
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return seen == MAP_FAILED ? 1 : unit_run();
}
