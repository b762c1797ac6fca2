/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns.h - The kinds of DNS messages that the resolver in a cell reads and writes. Pure.
 *
 * One question without compression; everything after the question is ignored. A message that is not
 * a plain query gets an error or no answer, never a guess.
 */
#ifndef CAISSON_GATE_DNS_H
#define CAISSON_GATE_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gate.h"

#define DNS_MESSAGE_MAX 512u /* of a message that is written */

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };
enum dns_rcode { DNS_OK = 0, DNS_FORMERR = 1, DNS_SERVFAIL = 2, DNS_NXDOMAIN = 3, DNS_NOTIMP = 4 };

struct dns_question {
	uint16_t id, flags, type, class;
	char name[GATE_HOST_MAX]; /* lower case, no trailing dot; invalid bytes are '?' */
	bool is_host;             /* every byte is valid in a host name */
	size_t wire_len;          /* of header and question, as received */
};

/*
 * dns_parse() - 0: a question. -EBADMSG: answer with FORMERR. -EOPNOTSUPP: another kind of query
 * (NOTIMP). -EPROTO: send no answer.
 */
int dns_parse(const uint8_t *msg, size_t len, struct dns_question *ret);

/*
 * dns_answer() - Write the answer to the question at @msg, which dns_parse() has read into @q.
 * @address: @n bytes, 4 or 16, of a record of the requested type; 0: no record
 * Return: the length; 0 when it does not fit.
 */
size_t dns_answer(const uint8_t *msg, const struct dns_question *q, enum dns_rcode rcode,
		  const void *address, size_t n, uint8_t *out, size_t size);

/* dns_is_reverse() - Whether a name is of a reverse lookup. */
bool dns_is_reverse(const char *name);

#endif
