/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_index.c - Configuration files of pip and npm, and the addresses of indexes in them. */
#include "base/buf.h"
#include "base/err.h"
#include "cli/package_index.h"
#include "fuzz.h"
#include "vault/index.h"

/* Whatever stands there: the credentials are in no other part of it, and add no line to the vault.
 */
static void judge(enum index_kind kind, const char *text)
{
	static struct index_keys keys;
	_buf_ struct buf lines = BUF_INIT(1u << 16);
	struct index_url u, again;
	struct err e = { 0 };
	size_t n = 0;

	index_keys_wipe(&keys);
	if (index_url_parse(kind, text, &u, &keys, &e) < 0)
		return;
	require(index_url_parse(kind, u.url, &again, NULL, &e) == 0 && again.port == u.port &&
		strcmp(again.host, u.host) == 0);
	require(index_url_parse(kind, u.inside, &again, NULL, &e) == 0 &&
		strcmp(again.host, u.name) == 0);
	if (index_keys_lines(kind, &u, &keys, &lines, &e) < 0)
		return;
	for (const char *at = buf_str(&lines); (at = strchr(at, '\n')); at++)
		n++;
	require(n <= 2 && (n == 0 || u.secure));
}

static void on_pair(void *arg, const char *section, const char *key, const char *value)
{
	(void)section;
	require(strlen(key) < 1u << 20);
	judge(*(enum index_kind *)arg, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ini_form *const forms[INDEX_KINDS] = { &ini_python, &ini_npm };

	if (size > 65536)
		return 0;
	for (int kind = 0; kind < INDEX_KINDS; kind++) {
		enum index_kind k = (enum index_kind)kind;
		char *text = fuzz_text(data, size);

		judge(k, text);
		ini_read(forms[kind], text, on_pair, &k);
		free(text);
	}
	return 0;
}
