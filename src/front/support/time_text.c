/* SPDX-License-Identifier: Apache-2.0 */
/* time_text.c - The time of day, as a number and as text. */
#include "front/support/time_text.h"

#include <stdio.h>
#include <time.h>

#include "base/json.h"

static uint64_t now_ms(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t time_now_ms(void)
{
	return now_ms(CLOCK_REALTIME);
}

uint64_t time_files_ms(void)
{
	return now_ms(CLOCK_REALTIME_COARSE);
}

void time_text(char text[static STAMP_MAX], uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	text[0] = '\0';
	if (gmtime_r(&seconds, &tm)) {
		size_t n = strftime(text, STAMP_MAX, "%Y-%m-%dT%H:%M:%S", &tm);

		(void)snprintf(text + n, STAMP_MAX - n, ".%03uZ", (unsigned int)(ms % 1000));
	}
}

void time_json(struct json *j, const char *key, uint64_t ms)
{
	char text[STAMP_MAX];

	time_text(text, ms);
	json_member_str(j, key, text);
}
