/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - Structured lines on stderr: one record per event, whatever bytes are in it.
 *
 *   json: {"time":"2026-11-16T03:25:16.123Z","level":"info","event":"request","method":"POST",...}
 *   text: 03:25:16.123 info request method=POST path="/execute" status=200 ms=1.200
 *
 * Values that come from clients or guests are escaped (control bytes, quotes, invalid UTF-8) and
 * cut at 256 bytes with a mark; a line has at most LOG_LINE_MAX bytes, and fields that do not fit
 * are left out with "cut":true in their place. Keys and event names are the program's own. No
 * token, no code beyond a short prefix at debug level, no environment is ever passed here.
 *
 * Each record is one write(2). A full or broken stderr never blocks or ends the daemon: lines are
 * dropped and counted.
 */
#ifndef CAISSON_FRONT_LOG_H
#define CAISSON_FRONT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/support/config.h"

struct buf;

#define LOG_VALUE_MAX 256
#define LOG_LINE_MAX 4096 /* PIPE_BUF: a pipe takes it whole or not at all */

enum log_kind { LOG_STR, LOG_STRN, LOG_UINT, LOG_INT, LOG_MS, LOG_BOOL };

struct log_field {
	const char *key;
	enum log_kind kind;
	union {
		const char *s; /* NULL is written as null */
		uint64_t u;    /* LOG_MS: nanoseconds, printed as milliseconds with 3 digits */
		int64_t i;
		bool b;
	} v;
	size_t len; /* LOG_STRN */
};

#define F_STR(k, x) ((struct log_field){ .key = (k), .kind = LOG_STR, .v.s = (x) })
#define F_STRN(k, x, n) ((struct log_field){ .key = (k), .kind = LOG_STRN, .v.s = (x), .len = (n) })
#define F_UINT(k, x) ((struct log_field){ .key = (k), .kind = LOG_UINT, .v.u = (x) })
#define F_INT(k, x) ((struct log_field){ .key = (k), .kind = LOG_INT, .v.i = (x) })
#define F_MS(k, x) ((struct log_field){ .key = (k), .kind = LOG_MS, .v.u = (x) })
#define F_BOOL(k, x) ((struct log_field){ .key = (k), .kind = LOG_BOOL, .v.b = (x) })

/*
 * log_setup() - Before the jail: opens a private, non-blocking way to stderr where that is a pipe
 * or a terminal (whose flags others share), reads the time zone, and ignores SIGPIPE. Until it is
 * called, records are text at level info. May be called again.
 */
void log_setup(enum log_level level, bool json);

bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t n);

/* log_lost() - How many lines stderr did not take, whole or in part. */
uint64_t log_lost(void);

/*
 * log_format() - One record with its newline into @out, which is cleared first. Pure but for the
 * time zone. @time_ns: nanoseconds of CLOCK_REALTIME.
 */
void log_format(struct buf *out, bool json, uint64_t time_ns, enum log_level level,
		const char *event, const struct log_field *fields, size_t n);

/* log_event() - The fields are evaluated only when the level is on. At least one field. */
#define log_event(level, event, ...)                                                               \
	do {                                                                                       \
		if (log_enabled(level)) {                                                          \
			struct log_field f_[] = { __VA_ARGS__ };                                   \
			log_write(level, event, f_, sizeof(f_) / sizeof(f_[0]));                   \
		}                                                                                  \
	} while (0)

#endif
