/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refuse.h - Answer a request that was not admitted.
 */
#ifndef CAISSON_FRONT_REFUSE_H
#define CAISSON_FRONT_REFUSE_H

struct auth_verdict;
struct http_exchange;
struct request_context;

/*
 * refuse() - In on_head, which then returns http_status(). A wrong token from an address that
 * guesses (429) is answered a second later, and nothing of its body is read: each of its
 * connections tries one token in a second.
 * @metadata: see reply_verdict()
 */
void refuse(struct http_exchange *x, struct request_context *v, const struct auth_verdict *verdict,
	    const char *metadata);

#endif
