/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_addr.c - Listening addresses over arbitrary text.
 *
 * Checked for every input: a refusal has a printable message and leaves the result unchanged; the
 * text form of an accepted address is accepted again and means the same; and only 127/8, ::1 and
 * the former inside IPv6 count as loopback.
 */
#include <errno.h>

#include "base/err.h"
#include "fuzz.h"
#include "net/addr.h"
#include "net/conn.h"

static void check_refusal(int r, const struct err *e, const struct sockaddr_storage *ss)
{
	static const struct sockaddr_storage untouched;

	require(r == -EINVAL && e->code == r);
	require(memcmp(ss, &untouched, sizeof(*ss)) == 0);
	require(e->msg[0] != '\0');
	for (const char *s = e->msg; *s; s++)
		require(*s >= 0x20 && *s < 0x7f);
}

static void check_address(const char *text, int len, const struct sockaddr_storage *ss)
{
	struct sockaddr_storage again_ss;
	struct peer p = { 0 }, again = { 0 };

	require((text[0] == '[') == (ss->ss_family == AF_INET6));
	addr_peer(ss, &p);
	require(strlen(p.host) >= 2 && strlen(p.text) >= strlen(p.host) + 2);
	require(addr_is_loopback(text, NULL) == p.is_loopback);
	require(p.is_loopback == (strncmp(p.host, "127.", 4) == 0 || strcmp(p.host, "::1") == 0));
	require(strchr(text, ':') != NULL);

	int n = addr_parse(p.text, &again_ss, NULL);

	/* IPv4 inside IPv6 comes back as IPv4, everything else as it was. */
	require(n == len ? memcmp(ss, &again_ss, sizeof(*ss)) == 0 : n > 0 && n < len);
	addr_peer(&again_ss, &again);
	require(strcmp(p.text, again.text) == 0 && p.is_loopback == again.is_loopback);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_storage ss = { 0 };
	struct err e = { 0 };
	char *text = fuzz_text(data, size);

	int r = addr_parse(text, &ss, &e);

	if (r < 0)
		check_refusal(r, &e, &ss);
	else
		check_address(text, r, &ss);
	free(text);
	return 0;
}
