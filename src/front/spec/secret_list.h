/* SPDX-License-Identifier: Apache-2.0 */
/* secret_list.h - The member `secrets` of a SandboxSpec. Pure. */
#ifndef CAISSON_FRONT_SPEC_SECRET_LIST_H
#define CAISSON_FRONT_SPEC_SECRET_LIST_H

#include <jansson.h>

struct refusal;

/*
 * secrets_parse() - The member `secrets` of a request, as it is kept: canonical, each once.
 * @env: its member `env`, whose names must be others
 * @ret: a new reference, NULL without secrets. Return: 0, or -1 with @ret_why.
 */
int secrets_parse(const json_t *list, const json_t *env, json_t **ret, struct refusal *ret_why);

#endif
