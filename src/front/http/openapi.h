/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.h - Between the files that write the OpenAPI document; whoever wants it has
 * openapi_write() of route.h. */
#ifndef CAISSON_FRONT_OPENAPI_H
#define CAISSON_FRONT_OPENAPI_H

#include <stdbool.h>

struct field;
struct json;
struct route;

/* Members of an operation: "responses", and "x-errors", the codes of errors by status. */
void openapi_write_responses(struct json *j, const struct route *r);
void openapi_write_errors(struct json *j, const struct route *r);

#endif
