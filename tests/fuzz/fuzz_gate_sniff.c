/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gate_sniff.c - First bytes of connections: ClientHello and HTTP head over arbitrary bytes; a
 * proxy's answer and its URL.
 *
 * Checked for every input: a parsed host has an end and no control byte, a refusal has a reason,
 * and a decision on a part of the bytes stays the same with more of them.
 */
#include "fuzz.h"

#include "gate/gate.h"
#include "gate/sniff.h"

static void look_at_url(const char *data, size_t size)
{
	char url[1024];
	struct proxy p;

	if (size >= sizeof(url))
		return;
	memcpy(url, data, size);
	url[size] = '\0';
	if (proxy_parse(url, url, &p, NULL) < 0 || !p.on)
		return;
	require(p.port > 0 && p.host[0] && memchr(p.host, '\0', sizeof(p.host)));
	(void)proxy_wanted(&p, "a.example.org");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sniff whole, part;

	sniff_bytes(data, size, &whole);
	require(memchr(whole.host, '\0', sizeof(whole.host)) != NULL);
	require(whole.kind != SNIFF_BAD || whole.why);
	require(whole.kind != SNIFF_MORE || size < SNIFF_MAX);
	if (whole.kind == SNIFF_TLS || whole.kind == SNIFF_HTTP)
		for (const char *p = whole.host; *p; p++)
			require(*p > ' ' && *p < 0x7f);
	for (size_t cut = size / 2; cut < size; cut += size / 8 + 1) {
		sniff_bytes(data, cut, &part);
		if (part.kind != SNIFF_MORE)
			require(part.kind == whole.kind && strcmp(part.host, whole.host) == 0);
	}
	look_at_url((const char *)data, size);
	int r = proxy_answer((const char *)data, size);

	require(r <= 0 || (size_t)r <= size);
	return 0;
}
