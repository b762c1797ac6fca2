/* SPDX-License-Identifier: Apache-2.0 */
/* bridge_log.c - One record, one write(2). */
#include "bridge/bridge_log.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"

#define TEXT_MAX 512 /* escaped, it has up to six times as many bytes */
#define LINE_MAX_BYTES (16u << 10)

static struct {
	enum log_level least;
	bool json;
} setup = { LOG_INFO, false };

static const char *const levels[] = { "debug", "info", "warning", "error" };

void log_setup(enum log_level least, bool json)
{
	setup.least = least;
	setup.json = json;
}

static void stamp(char *to, size_t size)
{
	struct timespec now;
	struct tm tm;
	char seconds[32];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (setup.json)
		(void)gmtime_r(&now.tv_sec, &tm);
	else
		(void)localtime_r(&now.tv_sec, &tm);
	(void)strftime(seconds, sizeof(seconds), setup.json ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S",
		       &tm);
	(void)snprintf(to, size, "%s.%03ld%s", seconds, now.tv_nsec / 1000000,
		       setup.json ? "Z" : "");
}

static void put_json(struct buf *out, const char *time, enum log_level level, const char *event,
		     const char *server, const char *text, size_t len)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_member_str(&j, "time", time);
	json_member_str(&j, "level", levels[level]);
	json_member_str(&j, "event", event);
	if (server)
		json_member_str(&j, "server", server);
	json_key(&j, "text");
	(void)json_strn(&j, text, len);
	json_object_end(&j);
}

/* A reader of the log that is slow must not stop us: a pipe that is ready takes a line of this size
 * whole. */
static void put(const struct buf *out)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (!out->err && out->len <= PIPE_BUF && poll(&p, 1, 0) == 1 && p.revents & POLLOUT &&
	    write(STDERR_FILENO, out->data, out->len) < 0)
		return; /* nobody reads the log, and there is no other place to report that */
}

void log_bytes(enum log_level level, const char *event, const char *server, const char *text,
	       size_t len)
{
	_buf_ struct buf out = BUF_INIT(LINE_MAX_BYTES);
	char time[64];

	if (level < setup.least)
		return;
	len = utf8_fit(text, len, TEXT_MAX);
	stamp(time, sizeof(time));
	if (setup.json) {
		put_json(&out, time, level, event, server, text, len);
	} else {
		(void)buf_printf(&out, "%s %s %s", time, levels[level], event);
		if (server) {
			(void)buf_puts(&out, " server=");
			(void)json_quote(&out, server, strlen(server));
		}
		(void)buf_puts(&out, " text=");
		(void)json_quote(&out, text, len);
	}
	(void)buf_puts(&out, "\n");
	put(&out);
}

void log_text(enum log_level level, const char *event, const char *server, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_bytes(level, event, server, text, strlen(text));
}
