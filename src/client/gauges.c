/* SPDX-License-Identifier: Apache-2.0 */
/* gauges.c - Read cgroup files by descriptor, again and again. */
#include "client/gauges.h"

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"

void gauges_init(struct gauges *g)
{
	for (size_t i = 0; i < GAUGE_MAX_; i++)
		g->fd[i] = -1;
}

void gauges_take(struct gauges *g, uint32_t have, int *fds, size_t n)
{
	size_t at = 0;

	gauges_close(g);
	for (size_t i = 0; i < GAUGE_MAX_ && at < n; i++)
		if (have & 1u << i) {
			g->fd[i] = fds[at];
			fds[at++] = -1;
		}
}

void gauges_close(struct gauges *g)
{
	for (size_t i = 0; i < GAUGE_MAX_; i++)
		g->fd[i] = fd_close(g->fd[i]);
}

bool gauges_number(const char *text, size_t len, uint64_t *ret)
{
	size_t n = 0;

	while (n < len && text[n] != '\n' && text[n] != ' ')
		n++;
	return num_digits(text, n, ret);
}

bool gauges_key(const char *text, size_t len, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);

	while (len > n) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len;

		if (line > n && memcmp(text, key, n) == 0 && text[n] == ' ')
			return gauges_number(text + n + 1, line - n - 1, ret);
		if (!end)
			break;
		text += line + 1;
		len -= line + 1;
	}
	return false;
}

#define STAT_MAX 8192  /* memory.stat is the longest */
#define SPARE_PART 32u /* of the limit */
#define SPARE_MIN (1ull << 20)

static bool read_key(int fd, const char *key, uint64_t unit, uint64_t *ret)
{
	char text[512];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);

	if (n <= 0 ||
	    !(key ? gauges_key(text, (size_t)n, key, ret) : gauges_number(text, (size_t)n, ret)))
		return false;
	*ret *= unit;
	return true;
}

bool gauges_cpu(const struct gauges *g, uint64_t *ret_ns)
{
	return g->fd[GAUGE_CPU_STAT] >= 0 ?
		       read_key(g->fd[GAUGE_CPU_STAT], "usage_usec", 1000, ret_ns) :
		       read_key(g->fd[GAUGE_CPU_NS], NULL, 1, ret_ns);
}

bool gauges_read(const struct gauges *g, struct cell_usage *u)
{
	bool throttled =
		g->fd[GAUGE_CPU_STAT] >= 0 ?
			read_key(g->fd[GAUGE_CPU_STAT], "throttled_usec", 1000, &u->throttled_ns) :
			read_key(g->fd[GAUGE_THROTTLED], "throttled_time", 1, &u->throttled_ns);

	return gauges_cpu(g, &u->cpu_ns) && throttled &&
	       read_key(g->fd[GAUGE_MEMORY_PEAK], NULL, 1, &u->memory_peak) &&
	       read_key(g->fd[GAUGE_PIDS_PEAK], NULL, 1, &u->pids_peak) &&
	       read_key(g->fd[GAUGE_PIDS_EVENTS], "max", 1, &u->pids_denied) &&
	       read_key(g->fd[GAUGE_OOM], "oom_kill", 1, &u->oom_kills);
}

uint64_t gauges_oom(const struct gauges *g)
{
	uint64_t n;

	return read_key(g->fd[GAUGE_OOM], "oom_kill", 1, &n) ? n : 0;
}

bool gauges_memory(const struct gauges *g, uint64_t *ret)
{
	return read_key(g->fd[GAUGE_MEMORY_USED], NULL, 1, ret);
}

bool gauges_room(const struct gauges *g, uint64_t limit, uint64_t *ret)
{
	uint64_t used, spare = limit / SPARE_PART > SPARE_MIN ? limit / SPARE_PART : SPARE_MIN;
	uint64_t inactive = 0, active = 0;
	char text[STAT_MAX];
	ssize_t n = g->fd[GAUGE_MEMORY_STAT] < 0 ?
			    -1 :
			    pread(g->fd[GAUGE_MEMORY_STAT], text, sizeof(text), 0);

	if (n <= 0 || !read_key(g->fd[GAUGE_MEMORY_USED], NULL, 1, &used) ||
	    !gauges_key(text, (size_t)n, "inactive_file", &inactive) ||
	    !gauges_key(text, (size_t)n, "active_file", &active))
		return false;
	used += spare;
	used -= inactive + active < used ? inactive + active : used;
	*ret = used < limit ? limit - used : 0;
	return true;
}
