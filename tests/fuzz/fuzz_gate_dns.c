/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gate_dns.c - Questions of cells over arbitrary bytes.
 *
 * Checked for every input: a question has a printable name with an end, and its answer begins with
 * the question, fits into its buffer, and is not a question itself.
 */
#include "fuzz.h"
#include "gate/dns.h"
#include "gate/gate_sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t address[16] = { 1 };
	uint8_t out[DNS_MESSAGE_MAX];
	struct dns_question q, again;

	if (dns_parse(data, size, &q) != 0)
		return 0;
	require(memchr(q.name, '\0', sizeof(q.name)) != NULL && q.wire_len <= size);
	for (const char *p = q.name; *p; p++)
		require(*p > ' ' && *p < 0x7f);
	for (size_t n = 0; n <= 16; n += 4) {
		size_t len = dns_answer(data, &q, DNS_OK, address, n, out, sizeof(out));

		require(len <= sizeof(out));
		require(len == 0 ||
			(len == q.wire_len + (n ? 12 + n : 0) && memcmp(out, data, 2) == 0 &&
			 memcmp(out + 12, data + 12, q.wire_len - 12) == 0 &&
			 dns_parse(out, len, &again) < 0));
	}
	return 0;
}
