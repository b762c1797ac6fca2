/* SPDX-License-Identifier: Apache-2.0 */
/* bridge_log.h - Lines for the daemon's log, in its form: of the bridge, and of servers' stderr. */
#ifndef CAISSON_BRIDGE_BRIDGE_LOG_H
#define CAISSON_BRIDGE_BRIDGE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

void log_setup(enum log_level least, bool json);

/*
 * log_bytes() - One record. @server: or NULL. Control characters are escaped, a long text is cut.
 * Never blocks: a line that stderr does not take at once is dropped.
 */
void log_bytes(enum log_level level, const char *event, const char *server, const char *text,
	       size_t len);
void log_text(enum log_level level, const char *event, const char *server, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
