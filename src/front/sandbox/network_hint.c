/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network_hint.c - The hint for a result whose program missed the network.
 *
 * Where the gate runs, it reports each refusal. A sandbox without egress has no gate: its resolver
 * does not exist, and programs report that in words of their own. These words are all that the
 * front can know, so the hint says "looks like". A program that failed is searched whole, one that
 * went well only in stderr: code often goes on after a command that failed.
 */
#include "front/sandbox/network_hint.h"

#include "base/buf.h"
#include "client/network_words.h"
#include "client/result.h"
#include "front/output/spool.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"

static bool in_stream(const struct spool *s)
{
	size_t len = s ? s->memory.len : 0;

	return len > 0 &&
	       network_words(s->memory.data, len < NETWORK_WORDS_MAX ? len : NETWORK_WORDS_MAX);
}

void network_hint(const struct sandbox *s, uint64_t since_ns, const struct spool *out,
		  const struct spool *err, const struct buf *error, struct result *r)
{
	bool failed = r->status != RESULT_OK;

	if (r->hint[0])
		return;
	bool looks = in_stream(err) ||
		     (failed && (in_stream(out) || (error && error->len > 0 &&
						    network_words(error->data, error->len))));

	if (failed || looks)
		(void)s->sandboxes->hooks->egress.hint(s, since_ns, looks, r->hint,
						       sizeof(r->hint));
}
