/* SPDX-License-Identifier: Apache-2.0 */
/* network_hint.h - The hint for a result whose program missed the network. */
#ifndef CAISSON_FRONT_SANDBOX_NETWORK_HINT_H
#define CAISSON_FRONT_SANDBOX_NETWORK_HINT_H

#include <stdint.h>

struct buf;
struct result;
struct sandbox;
struct spool;

/*
 * network_hint() - Set the hint of @r, if it has none, and the gate has refused something since
 * @since_ns or the output shows that a host was not found. @error: the exception, as JSON, or NULL.
 */
void network_hint(const struct sandbox *s, uint64_t since_ns, const struct spool *out,
		  const struct spool *err, const struct buf *error, struct result *r);

#endif
