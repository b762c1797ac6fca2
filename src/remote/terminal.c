/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c - Colours and progress where there is a terminal, harmless text everywhere. */
#include "remote/terminal.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

void terminal_colour(const char *colour)
{
	static int on = -1;

	if (on < 0) {
		const char *no = getenv("NO_COLOR");

		on = isatty(STDOUT_FILENO) && !(no && *no);
	}
	if (on)
		(void)printf("\033[%sm", colour);
}

/* The code point of a valid character of @n bytes. */
static unsigned int decode(const unsigned char *s, size_t n)
{
	unsigned int v = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++)
		v = v << 6 | (s[i] & 0x3f);
	return v;
}

static bool is_harmless(unsigned int c)
{
	return c >= 0x20 && !(c >= 0x7f && c <= 0x9f) && !(c >= 0x200b && c <= 0x200f) &&
	       !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2060 && c <= 0x2069) && c != 0xfeff;
}

size_t terminal_text(FILE *out, const char *s, size_t len)
{
	size_t columns = 0;

	for (size_t i = 0; i < len;) {
		size_t n = utf8_next(s + i, len - i);
		unsigned int c = n ? decode((const unsigned char *)s + i, n) : (unsigned char)s[i];
		int wrote = 1;

		if (n && is_harmless(c))
			(void)fwrite(s + i, 1, n, out);
		else
			wrote = fprintf(out, c > 0xff ? "\\u%04x" : "\\x%02x", c);
		columns += wrote > 0 ? (size_t)wrote : 0;
		i += n ? n : 1;
	}
	return columns;
}

void progress_begin(struct progress *p, const char *what)
{
	*p = (struct progress){ .what = what, .begin_ns = clock_now_ns() };
	p->next_ns = isatty(STDERR_FILENO) ? p->begin_ns + CLOCK_NS_PER_S : UINT64_MAX;
}

void progress_update(struct progress *p, uint64_t done, uint64_t total)
{
	uint64_t now;

	if (p->next_ns == UINT64_MAX)
		return;
	now = clock_now_ns();
	if (now < p->next_ns)
		return;
	p->next_ns = now + CLOCK_NS_PER_S / 5;
	p->shown = true;
	(void)fprintf(stderr, "\r%s: %u %%\033[K", p->what,
		      total ? (unsigned int)(done >= total ? 100 : done * 100 / total) : 0u);
}

void progress_end(struct progress *p)
{
	if (p->shown)
		(void)fprintf(stderr, "\r\033[K");
	p->shown = false;
}
