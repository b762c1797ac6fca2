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

#include <string.h>

#include "base/buf.h"
#include "base/fd.h" /* ARRAY_SIZE */
#include "client/result.h"
#include "front/output/spool.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"

#define SEARCH_MAX (64u << 10) /* bytes of a stream */

bool network_words(const char *text, size_t len)
{
	static const char *const words[] = {
		"emporary failure in name resolution", /* getaddrinfo: Python, curl, ssh, R */
		"ame or service not known",
		"emporary failure resolving", /* apt */
		"ould not resolve host",      /* curl, git, ssh, npm */
		"nable to resolve host",      /* wget */
		"EAI_AGAIN",                  /* node */
		"ENOTFOUND",
		"ENETUNREACH",
		"etwork is unreachable",
		"198.18.0.1:53", /* Go: "lookup example.org on 198.18.0.1:53: ..." */
		"no such host",
		"dns error", /* uv, cargo */
		"failed to lookup address",
		"bad address '", /* busybox */
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (memmem(text, len, words[i], strlen(words[i])))
			return true;
	return false;
}

static bool in_stream(const struct spool *s)
{
	size_t len = s ? s->memory.len : 0;

	return len > 0 && network_words(s->memory.data, len < SEARCH_MAX ? len : SEARCH_MAX);
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
