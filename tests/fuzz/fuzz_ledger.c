/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ledger.c - Any bytes as lines of a ledger, and any bytes as values in one.
 *
 * As a file: scanning finds exactly the lines that counting newlines finds, and an accepted line of
 * the chain has the hash that another call of the library computes. As values: the written text is
 * one JSON object, is accepted, and is not accepted with any one byte changed.
 */
#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "ledger/chain.h"
#include "ledger/ledger_reader.h"

static struct chain chain;
static struct scan *scan;

/* The definition in docs/protocol/ledger.md, by its words: take `,"hash":"..."` out. */
static void check_hash(const char *line, size_t len)
{
	static const char key[] = ",\"hash\":\"";
	unsigned char sum[32];
	char *copy = malloc(len), hex[65];
	const char *at = memmem(line + len - 75, 75, key, strlen(key));

	require(at != NULL);
	memcpy(copy, line, (size_t)(at - line));
	copy[at - line] = '}';
	require(EVP_Digest(copy, (size_t)(at - line) + 1, sum, NULL, EVP_sha256(), NULL) == 1);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
	require(memcmp(hex, at + strlen(key), 64) == 0);
	free(copy);
}

static void try_line(const char *line, size_t len, struct chain_link *link)
{
	struct chain_line parts;
	struct chain_link before = *link;
	const char *why = chain_parse(line, len, &parts);

	if (!why) {
		require(len < CHAIN_LINE_MAX && utf8_valid(line, len) && parts.seq > 0);
		require(parts.prev > line && parts.hash > parts.prev &&
			parts.hash + 64 < line + len);
		require(parts.body_len == (size_t)(parts.prev + 64 + 1 - line));
	}
	if (chain_check(&chain, line, len, link, NULL) < 0) {
		require(memcmp(&before, link, sizeof(before)) == 0);
		return;
	}
	require(!why && link->known && link->seq == parts.seq);
	require(!before.known || link->seq == before.seq + 1);
	check_hash(line, len);
}

static void as_file(const uint8_t *data, size_t size)
{
	_fd_ int fd = fd_memfd("ledger", data, size);
	const char *begin = (const char *)data, *line;
	struct chain_link link = { 0 };
	size_t len;
	int r;

	require(fd >= 0);
	scan_begin(scan, fd);
	while ((r = scan_next(scan, &line, &len)) != 0) {
		const char *end = memchr(begin, '\n', size - (size_t)(begin - (const char *)data));

		require(end != NULL);
		if (r == -EMSGSIZE) {
			require(end - begin >= CHAIN_LINE_MAX);
		} else {
			require(r == 1 && len == (size_t)(end - begin) && len < CHAIN_LINE_MAX);
			require(memcmp(line, begin, len) == 0);
			try_line(line, len, &link);
		}
		begin = end + 1;
		require(scan->begin == (uint64_t)(begin - (const char *)data));
	}
	size_t rest = size - (size_t)(begin - (const char *)data);

	require(scan_rest(scan) == rest && !(rest && memchr(begin, '\n', rest)));
}

static void as_values(const uint8_t *data, size_t size)
{
	_buf_ struct buf out = BUF_INIT(CHAIN_LINE_MAX);
	char name[64] = "";
	size_t half = size / 2;
	struct chain_link link, next;

	memcpy(name, data, size < sizeof(name) - 1 ? size : sizeof(name) - 1);
	const struct ledger_field fields[] = {
		L_STRN("first", (const char *)data, half),
		L_SHA256("code_sha256", (const char *)data, size),
		L_OBJECT("usage"),
		L_STRN("second", (const char *)data + half, size - half),
		L_UINT("n", size),
		L_END,
	};
	const struct ledger_event event = { "fuzz", name, name, fields, ARRAY_SIZE(fields) };

	chain_start(&link);
	link.seq = size;
	require(chain_format(&chain, &out, &link, size * 7919, &event, &next) == 0);
	require(out.len <= CHAIN_LINE_MAX && out.data[out.len - 1] == '\n');
	json_t *parsed =
		json_loadb(out.data, out.len - 1, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

	require(json_is_object(parsed));
	json_decref(parsed);
	check_hash(out.data, out.len - 1);
	struct chain_link at = link;

	require(chain_check(&chain, out.data, out.len - 1, &at, NULL) == 0);
	require(memcmp(at.hash, next.hash, 64) == 0);
	if (size == 0)
		return;
	size_t where = (size_t)(data[0] | data[size - 1] << 8) % (out.len - 1);

	out.data[where] = (char)(out.data[where] ^ (1 << (data[0] & 7)));
	at = link;
	require(chain_check(&chain, out.data, out.len - 1, &at, NULL) == -EBADMSG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!scan)
		require(chain_open(&chain, NULL) == 0 && (scan = malloc(sizeof(*scan))));
	as_file(data, size);
	as_values(data, size);
	return 0;
}
