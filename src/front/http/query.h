/* SPDX-License-Identifier: Apache-2.0 */
/* query.h - The names in a query string, for those who only have to know whether one is there. */
#ifndef CAISSON_FRONT_QUERY_H
#define CAISSON_FRONT_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#define QUERY_NAME_MAX 64

/*
 * query_name_next() - The next parameter's name of "a=1&b=2", decoded once ('+' and %XX),
 * NUL-terminated.
 * @at: where to go on; the start of the query at first.
 *
 * A name that is too long is cut, and a byte that would end the text early is kept as '?'; both can
 * only make a name unknown. Empty parts ("a&&b") are skipped. Pure.
 * Return: false when there is none left.
 */
bool query_name_next(const char **at, char name[QUERY_NAME_MAX]);

#endif
