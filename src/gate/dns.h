/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns.h - The few kinds of DNS messages that the resolver in a cell understands and writes. Pure.
 *
 * One question, no compression in it; everything after the question is ignored. What is not a plain
 * query is answered with an error or with nothing, never with a guess.
 */
#ifndef CAISSON_GATE_DNS_H
#define CAISSON_GATE_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gate.h"

#define DNS_MESSAGE_MAX 512u /* of those that are written; all are small */

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };
enum dns_rcode {
	DNS_OK = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5
};

struct dns_question {
	uint16_t id, flags, type, class;
	char name[GATE_HOST_MAX]; /* lower case, without a trailing dot; other bytes than of host
				     names as '?' */
	bool is_host;             /* every byte could be shown */
	size_t wire_len;          /* of header and question, as they came */
};

/*
 * dns_parse() - 0: a question. -EBADMSG: to be answered with FORMERR, when there is an id at all.
 * -EOPNOTSUPP: another kind of query (NOTIMP). -EPROTO: nothing that is to be answered.
 */
int dns_parse(const uint8_t *msg, size_t len, struct dns_question *ret);

/*
 * dns_answer() - To the question at @msg, whose dns_parse() gave @q.
 * @address: 4 or 16 bytes of a record of the asked type, @n of them; 0: no record
 * Return: the length; 0 when it does not fit.
 */
size_t dns_answer(const uint8_t *msg, const struct dns_question *q, enum dns_rcode rcode,
		  const void *address, size_t n, uint8_t *out, size_t size);

/* dns_is_reverse() - Whether a name only asks what an address is called. */
bool dns_is_reverse(const char *name);

#endif
