/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_json.h - A sandbox as its owner is told. */
#ifndef CAISSON_FRONT_SANDBOX_JSON_H
#define CAISSON_FRONT_SANDBOX_JSON_H

struct buf;
struct json;
struct sandbox;

/*
 * sandbox_json() - One object. @receipt: the JSON text of the receipt, or NULL: then neither it nor
 * the use is in it, as in lists.
 */
void sandbox_json(const struct sandbox *s, const struct buf *receipt, struct json *j);

#endif
