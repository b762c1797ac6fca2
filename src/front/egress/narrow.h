/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow.h - Egress of sandboxes that exist, under a policy that allows less than they have.
 *
 * Of all that a policy bounds this is what takes effect at once: a name that the operator has just
 * forbidden is not left open to what runs already. What is within stays; open connections to the
 * rest are cut.
 */
#ifndef CAISSON_FRONT_POLICY_NARROW_H
#define CAISSON_FRONT_POLICY_NARROW_H

struct front;
struct sandbox;

/* policy_narrow() - One, whose entries are others now. A sandbox that can not be narrowed is
 * stopped. */
void policy_narrow(struct sandbox *s);
/* policy_narrow_all() - Each, because the policy is another one. */
void policy_narrow_all(struct front *f);

#endif
