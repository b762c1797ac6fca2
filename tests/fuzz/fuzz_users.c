/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_users.c - Any text as an image's /etc/passwd: found numbers stand in the text as a field. */
#include "fuzz.h"
#include "init/users.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned int ids[] = { 0, 7, 1000, 4294967295u };
	char *exact = malloc(size + 1), *text = fuzz_text(data, size);

	/* A copy without a NUL behind it: the sanitizer sees a step beyond. */
	require(exact);
	if (size > 0)
		memcpy(exact, data, size);
	exact = realloc(exact, size > 0 ? size : 1);
	require(exact);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		char digits[16], line[32];
		bool found = users_has(exact, size, ids[i]);

		(void)snprintf(digits, sizeof(digits), "%u", ids[i]);
		require(!found || strlen(text) < size || strstr(text, digits));
		(void)snprintf(line, sizeof(line), "x:x:%u:", ids[i]);
		require(users_has(line, strlen(line), ids[i]));
	}
	free(exact);
	free(text);
	return 0;
}
