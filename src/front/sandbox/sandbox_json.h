/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_json.h - A sandbox as JSON, for its owner. */
#ifndef CAISSON_FRONT_SANDBOX_JSON_H
#define CAISSON_FRONT_SANDBOX_JSON_H

struct buf;
struct json;
struct sandbox;

/*
 * sandbox_json() - Write the sandbox as one object. @receipt: the JSON text of the receipt; NULL,
 * as in lists: the object has neither the receipt nor the usage.
 */
void sandbox_json(const struct sandbox *s, const struct buf *receipt, struct json *j);

#endif
