/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow.h - Egress of existing sandboxes under a policy that allows less than they have.
 *
 * Of all rules of a policy only this one takes effect at once for existing sandboxes: a name that
 * the operator has just forbidden does not stay open. Entries that are still allowed stay; open
 * connections to others are cut.
 */
#ifndef CAISSON_FRONT_POLICY_NARROW_H
#define CAISSON_FRONT_POLICY_NARROW_H

#include <jansson.h>

struct sandbox;
struct sandboxes;

/* policy_narrowed() - The entries of @list that the policy allows the sandbox now: @list itself, or
 * a shorter one, which is then in the log and in the ledger. A new reference. */
json_t *policy_narrowed(struct sandbox *s, json_t *list);
/* policy_narrow() - One sandbox. If that fails the sandbox is stopped. */
void policy_narrow(struct sandbox *s);
/* policy_narrow_all() - All of them, because the policy has changed. */
void policy_narrow_all(struct sandboxes *sandboxes);

#endif
