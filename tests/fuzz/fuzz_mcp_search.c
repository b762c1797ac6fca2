/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mcp_search.c - Lists of tools from strangers, and questions: the first line is the question,
 * the rest the list. */
#include <jansson.h>

#include "base/buf.h"
#include "fuzz.h"
#include "mcp/search.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_buf_ struct buf query = BUF_INIT(size + 1), out = BUF_INIT(8u << 20);
	const uint8_t *nl = size ? memchr(data, '\n', size) : NULL;

	if (!nl)
		return 0;
	(void)buf_append(&query, data, (size_t)(nl - data));
	json_t *tools = json_loadb((const char *)nl + 1, size - (size_t)(nl - data) - 1, 0, NULL);
	struct search *s = search_new();

	require(s && search_add(s, "server", "alias", tools) >= 0 &&
		search_write(s, buf_str(&query), NULL, 20, true, &out) >= 0);
	json_t *answer = json_loads(buf_str(&out), 0, NULL);

	require(answer && json_array_size(json_object_get(answer, "results")) <= SEARCH_LIMIT_MAX);
	json_decref(answer);
	search_free(s);
	json_decref(tools);
	return 0;
}
