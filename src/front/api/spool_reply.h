/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_reply.h - Answers from a spool: bytes by offset, lines by pattern. For executions and
 * processes.
 */
#ifndef CAISSON_FRONT_OUTPUT_H
#define CAISSON_FRONT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "front/output/spool.h"

struct http_exchange;

#define OUTPUT_LIMIT (1u << 20) /* bytes of an answer, when nobody says otherwise */
#define SEARCH_LIMIT 100u       /* lines */
#define SEARCH_LIMIT_MAX 1000u

/* The handlers call these, so that the fields of the request are there. */

/* output_is_stderr() - Which stream the field `stream` names. */
bool output_is_stderr(const struct http_exchange *x);

/*
 * output_reply() - Bytes of @s from `offset`, up to `limit`; none at the end. X-Output-Offset says
 * where they begin, X-Output-Bytes how many were written in all, X-Output-Kept how many of them can
 * be read, X-Output-Lost why that is less, and X-Output-Complete whether no more will come
 * (@ended).
 */
void output_reply(struct http_exchange *x, const struct spool *s, bool ended);

/*
 * output_search() - Lines with `pattern`, from `offset` on. Answer with
 * {"matches":[{offset,line,text}],"truncated","next_offset","bytes","kept_bytes"}, perhaps some
 * rounds later. @find gives the spool again each time, from the request context alone; NULL: it is
 * gone.
 */
void output_search(struct http_exchange *x, const struct spool *(*find)(struct http_exchange *x));

#endif
