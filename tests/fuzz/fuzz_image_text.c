/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_image_text.c - Any text as a reference, a pattern, a challenge, the store's references, a
 * name in a layer. */
#include "base/buf.h"
#include "fuzz.h"
#include "image/image_store.h"
#include "image/ref.h"
#include "image/registry.h"
#include "image/unpack.h"

static void try_ref(const char *text)
{
	char canonical[IMAGE_REF_MAX], people[IMAGE_REF_MAX];
	struct ref r, again;

	if (ref_parse(text, &r, NULL) < 0)
		return;
	ref_format(&r, canonical);
	ref_short(&r, people);
	require(r.host[0] && r.name[0] && (r.tag[0] || r.digest[0]) &&
		!strpbrk(canonical, " \t\r\n'\"\\$`;"));
	require(!strstr(canonical, "..") || strstr(r.tag, ".."));
	require(ref_parse(canonical, &again, NULL) == 0 && memcmp(&r, &again, sizeof(r)) == 0);
	require(ref_parse(people, &again, NULL) == 0 && memcmp(&r, &again, sizeof(r)) == 0);
	require(ref_matches(&r, canonical) && ref_matches(&r, people) && ref_matches(&r, "*"));
}

static void try_name(const char *text)
{
	char path[UNPACK_PATH_MAX], again[UNPACK_PATH_MAX];
	int kind = unpack_name(text, path);

	if (kind < 0 || kind == NAME_IGNORED)
		return;
	require(path[0] != '/' && !strstr(path, "//") && strcmp(path, "..") != 0 &&
		strncmp(path, "../", 3) != 0 && !strstr(path, "/../"));
	if (kind == NAME_PLAIN)
		require(unpack_name(path, again) == NAME_PLAIN && strcmp(path, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_buf_ struct buf text = BUF_INIT(size + 1);
	struct challenge c = { 0 };
	struct creds creds;
	struct refs refs;

	(void)buf_append(&text, data, size);
	try_ref(buf_str(&text));
	try_name(buf_str(&text));
	(void)ref_pattern_ok(buf_str(&text));
	challenge_parse(&c, buf_str(&text));
	require(strlen(c.realm) < sizeof(c.realm) && !strpbrk(c.realm, "\r\n"));
	if (refs_parse(buf_str(&text), text.len, &refs, NULL) == 0)
		refs_free(&refs);
	if (creds_parse(buf_str(&text), text.len, "r.io", &creds, NULL) == 0)
		require(!strpbrk(creds.user, "\r\n") && !strpbrk(creds.password, "\r\n") &&
			!strchr(creds.helper, '/'));
	return 0;
}
