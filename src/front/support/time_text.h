/* SPDX-License-Identifier: Apache-2.0 */
/* time_text.h - The time of day: milliseconds since 1970, and text in RFC 3339 and UTC. */
#ifndef CAISSON_FRONT_TIME_TEXT_H
#define CAISSON_FRONT_TIME_TEXT_H

#include <stdint.h>

struct json;

uint64_t time_now_ms(void);

/* time_files_ms() - By the clock of file times, which shows the last tick: a file that changes from
 * now on has no earlier time. */
uint64_t time_files_ms(void);

#define STAMP_MAX 40
/* time_text() - "2026-01-31T23:59:59.123Z". */
void time_text(char text[static STAMP_MAX], uint64_t ms);
/* time_json() - Member @key: "2026-01-31T23:59:59.123Z". */
void time_json(struct json *j, const char *key, uint64_t ms);

#endif
