/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - Format a record, and hand it to stderr without ever waiting for it.
 *
 * Making stderr itself non-blocking would change it for every process that shares it: the shell
 * that started us, a sibling on the same pipe. So log_setup() opens it anew through /proc, which
 * gives a file description of our own for pipes and terminals. Where that fails, each write is
 * preceded by a poll(2): a pipe that polls as writable takes PIPE_BUF bytes at once, and no line is
 * longer. Sockets (the journal) are told not to wait with each send. A file on disk is just
 * written.
 *
 * A line that went out in part is closed by a newline before the next one, so that a reader of
 * lines loses one record and not two.
 */
#include "front/support/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"

_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line is one atomic write to a pipe");

/* Room that every line keeps for its end. */
static const char json_cut[] = ",\"cut\":true";
static const char text_cut[] = " cut=true";
#define TAIL_MAX 16

static const char *const level_names[] = {
	[LOG_LEVEL_DEBUG] = "debug",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_ERROR] = "error",
};

static struct {
	enum log_level level;
	bool json;
	int own;        /* our own description of stderr, or -1 */
	bool is_socket; /* send(2) with MSG_DONTWAIT */
	bool must_poll;
	bool torn; /* the last line went out in part */
	uint64_t lost;
} sink = { .level = LOG_LEVEL_INFO, .own = -1, .must_poll = true };

/* ---- format -------------------------------------------------------------------------------- */

/* A string as JSON: cut at a character's end, with a mark. */
static void format_string(struct buf *out, const char *s, size_t len)
{
	char cut[LOG_VALUE_MAX + 4];
	struct json j;

	json_init(&j, out);
	if (len > LOG_VALUE_MAX) {
		size_t n = utf8_fit(s, len, LOG_VALUE_MAX);

		memcpy(cut, s, n);
		memcpy(cut + n, "\xe2\x80\xa6", 3); /* U+2026 */
		s = cut;
		len = n + 3;
	}
	(void)json_strn(&j, s, len);
}

/* Words that can stand without quotes in a line of text. */
static bool is_word(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr("._:+-", c))))
			return false;
	}
	return len > 0 && len <= 64;
}

static void format_value(struct buf *out, bool json, const struct log_field *f)
{
	size_t len;

	switch (f->kind) {
	case LOG_STR:
	case LOG_STRN:
		if (!f->v.s) {
			(void)buf_puts(out, "null");
			break;
		}
		len = f->kind == LOG_STRN ? f->len : strlen(f->v.s);
		if (!json && is_word(f->v.s, len))
			(void)buf_append(out, f->v.s, len);
		else
			format_string(out, f->v.s, len);
		break;
	case LOG_UINT:
		(void)buf_printf(out, "%" PRIu64, f->v.u);
		break;
	case LOG_INT:
		(void)buf_printf(out, "%" PRId64, f->v.i);
		break;
	case LOG_MS:
		(void)buf_printf(out, "%" PRIu64 ".%03" PRIu64, f->v.u / 1000000,
				 f->v.u / 1000 % 1000);
		break;
	case LOG_BOOL:
		(void)buf_puts(out, f->v.b ? "true" : "false");
		break;
	}
}

static void format_head(struct buf *out, bool json, uint64_t time_ns, enum log_level level,
			const char *event)
{
	time_t seconds = (time_t)(time_ns / CLOCK_NS_PER_S);
	unsigned int ms = (unsigned int)(time_ns / CLOCK_NS_PER_MS % 1000);
	struct tm tm = { 0 };
	char when[40] = "";

	if (json) {
		(void)gmtime_r(&seconds, &tm);
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
		(void)buf_printf(out, "{\"time\":\"%s.%03uZ\",\"level\":\"%s\",\"event\":", when,
				 ms, level_names[level]);
		format_string(out, event, strlen(event));
	} else {
		(void)localtime_r(&seconds, &tm);
		(void)strftime(when, sizeof(when), "%H:%M:%S", &tm);
		(void)buf_printf(out, "%s.%03u %s %.*s", when, ms, level_names[level],
				 LOG_VALUE_MAX, event);
	}
}

void log_format(struct buf *out, bool json, uint64_t time_ns, enum log_level level,
		const char *event, const struct log_field *fields, size_t n)
{
	_buf_ struct buf field = BUF_INIT(LOG_LINE_MAX);
	bool cut = false;

	buf_clear(out);
	format_head(out, json, time_ns, level, event);
	for (size_t i = 0; i < n; i++) {
		buf_clear(&field);
		(void)buf_printf(&field, json ? ",\"%s\":" : " %s=", fields[i].key);
		format_value(&field, json, &fields[i]);
		if (field.err || out->len + field.len + TAIL_MAX > LOG_LINE_MAX)
			cut = true;
		else
			(void)buf_append(out, field.data, field.len);
	}
	if (cut)
		(void)buf_puts(out, json ? json_cut : text_cut);
	(void)buf_puts(out, json ? "}\n" : "\n");
}

/* ---- write --------------------------------------------------------------------------------- */

void log_setup(enum log_level level, bool json)
{
	struct stat st;

	sink.level = level;
	sink.json = json;
	sink.own = fd_close(sink.own);
	sink.is_socket = sink.must_poll = false;
	if (fstat(STDERR_FILENO, &st) == 0) {
		sink.is_socket = S_ISSOCK(st.st_mode);
		if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
			sink.own = open("/proc/self/fd/2",
					O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
			sink.must_poll = sink.own < 0;
		}
	}
	tzset();
	(void)signal(SIGPIPE, SIG_IGN);
}

bool log_enabled(enum log_level level)
{
	return level >= sink.level;
}

uint64_t log_lost(void)
{
	return sink.lost;
}

static ssize_t put(const char *data, size_t len)
{
	int fd = sink.own >= 0 ? sink.own : STDERR_FILENO;
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (sink.is_socket)
		return send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sink.must_poll && (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT)))
		return -1;
	return write(fd, data, len);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t n)
{
	_buf_ struct buf line = BUF_INIT(LOG_LINE_MAX + 1);
	struct timespec now;

	if (!log_enabled(level))
		return;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	log_format(&line, sink.json, (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec,
		   level, event, fields, n);
	if (line.err) {
		sink.lost++;
		return;
	}
	if (sink.torn && put("\n", 1) == 1)
		sink.torn = false;

	ssize_t sent = sink.torn ? -1 : put(line.data, line.len);

	if (sent != (ssize_t)line.len)
		sink.lost++;
	if (sent > 0 && sent < (ssize_t)line.len)
		sink.torn = true;
}
