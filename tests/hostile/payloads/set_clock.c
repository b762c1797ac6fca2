/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set_clock.c - Set the machine's clock, in every way there is.
 *
 *   set_clock SECONDS   shift by so much; 0 sets the clock to itself (the control)
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

int main(int argc, char **argv)
{
	long shift = argc > 1 ? atol(argv[1]) : 0;
	struct timex same = { .modes = 0 }, set = { 0 };
	struct timespec now;
	struct timeval tv;

	(void)adjtimex(&same);
	set.modes = ADJ_STATUS;
	set.status = same.status;
	say("adjtimex", adjtimex(&set));
	say("clock_adjtime", syscall(SYS_clock_adjtime, CLOCK_REALTIME, &set));
	if (shift) { /* a control that really steps the clock would disturb others */
		(void)clock_gettime(CLOCK_REALTIME, &now);
		now.tv_sec += shift;
		say("clock_settime", clock_settime(CLOCK_REALTIME, &now));
		(void)gettimeofday(&tv, NULL);
		tv.tv_sec += shift;
		say("settimeofday", syscall(SYS_settimeofday, &tv, NULL));
	}
	return 0;
}
