/* SPDX-License-Identifier: Apache-2.0 */
/* meter.c - Bytes, and bytes per second. */
#include "remote/meter.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

void meter_begin(struct meter *m, uint64_t total)
{
	uint64_t now = clock_now_ns();

	*m = (struct meter){ .begin_ns = now,
			     .next_ns = isatty(STDERR_FILENO) ? now + CLOCK_NS_PER_S : UINT64_MAX,
			     .total = total };
}

void meter_text(uint64_t done, uint64_t total, uint64_t ns, char *text, size_t size)
{
	char a[NUM_FORMAT_MAX], b[NUM_FORMAT_MAX], c[NUM_FORMAT_MAX];
	uint64_t ms = ns / CLOCK_NS_PER_MS;
	double rate = ms ? (double)done * 1000 / (double)ms : 0;

	(void)snprintf(text, size, "%s%s%s, %s/s", num_format_size(done, a, sizeof(a)),
		       total ? " of " : "", total ? num_format_size(total, b, sizeof(b)) : "",
		       num_format_size((uint64_t)rate, c, sizeof(c)));
}

void meter_add(struct meter *m, size_t bytes)
{
	char text[4 * NUM_FORMAT_MAX];

	m->done += bytes;
	if (m->next_ns == UINT64_MAX)
		return;
	uint64_t now = clock_now_ns();

	if (now < m->next_ns)
		return;
	m->next_ns = now + CLOCK_NS_PER_S / 5;
	m->shown = true;
	meter_text(m->done, m->total, now - m->begin_ns, text, sizeof(text));
	(void)fprintf(stderr, "\r%s\033[K", text);
}

void meter_end(struct meter *m)
{
	if (m->shown)
		(void)fprintf(stderr, "\r\033[K");
	m->shown = false;
}
