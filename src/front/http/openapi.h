/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.h - Between the files that write the OpenAPI document; whoever wants it has openapi_write() of route.h. */
#ifndef CAISSON_FRONT_OPENAPI_H
#define CAISSON_FRONT_OPENAPI_H

#include <stdbool.h>

struct field;
struct json;
struct route;

/*
 * schema_write_field() - The schema of a field. @nullable: if it is not required it may be null, which means absent. @told: with
 * its description and example.
 */
void schema_write_field(struct json *j, const struct field *f, bool nullable, bool told);
bool schema_any_required(const struct field *fields);

/* Members of an operation: "responses", and "x-errors", the codes of errors by status. */
void openapi_write_responses(struct json *j, const struct route *r);
void openapi_write_errors(struct json *j, const struct route *r);

#endif
