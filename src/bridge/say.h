/* SPDX-License-Identifier: Apache-2.0 */
/* say.h - Lines for the daemon's log, in its form: what the bridge does, and what servers write to
 * stderr. */
#ifndef CAISSON_BRIDGE_SAY_H
#define CAISSON_BRIDGE_SAY_H

#include <stdbool.h>
#include <stddef.h>

enum say_level { SAY_DEBUG, SAY_INFO, SAY_WARNING, SAY_ERROR };

void say_setup(enum say_level least, bool json);

/* say() - One record. @server: or NULL. Control characters are escaped; what is long is cut. Never
 * blocks: a line that is not taken at once is dropped. */
void say(enum say_level level, const char *event, const char *server, const char *text, size_t len);
void say_text(enum say_level level, const char *event, const char *server, const char *text);

#endif
