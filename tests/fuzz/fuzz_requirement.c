/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_requirement.c - Any text as a requirement, and as a message of a fetcher: accepted text is
 * safe as an argument. */
#include <jansson.h>

#include "base/buf.h"
#include "front/packages/closure.h"
#include "front/packages/package_rules.h"
#include "front/packages/requirement.h"
#include "fuzz.h"

static void try_wish(enum ecosystem eco, const char *text)
{
	struct requirement r, again;
	char other[PACKAGE_NAME_MAX + 1];

	if (requirement_parse(eco, text, NULL, &r))
		return;
	require(r.text[0] && r.text[0] != '-' && !strpbrk(r.text, " \t\r\n;:#'\"\\$`"));
	require(eco == ECO_JAVASCRIPT || !strpbrk(r.text, "/@"));
	require(!requirement_parse(eco, r.text, NULL, &again) && !strcmp(again.text, r.text) &&
		!strcmp(again.name, r.name));
	(void)rules_lookalike(eco, r.name, &r, 1, other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_buf_ struct buf text = BUF_INIT(size + 1);
	json_t *said = json_loadb((const char *)data, size, 0, NULL), *closure;

	(void)buf_append(&text, data, size);
	for (int eco = 0; eco < ECO_MAX_; eco++) {
		try_wish((enum ecosystem)eco, buf_str(&text));
		closure = closure_take((enum ecosystem)eco, said);
		json_decref(closure);
	}
	json_decref(said);
	return 0;
}
