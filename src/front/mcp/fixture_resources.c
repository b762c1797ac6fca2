/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_resources.c - Resources of the conformance suite. */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "front/mcp/call.h"
#include "front/mcp/fixture.h"
#include "front/mcp/resource.h"

#define TTL_MS 1000u
#define PREFIX "test://template/"
#define SUFFIX "/data"
#define ABOUT "For conformance."

static void read_text(struct mcp_call *c, const char *uri)
{
	static const char text[] = "This is the content of the static text resource.";

	mcp_resource_text(c, uri, "text/plain", text, strlen(text), TTL_MS);
}

static void read_binary(struct mcp_call *c, const char *uri)
{
	_buf_ struct buf b = BUF_INIT(4096);

	(void)base64_decode(FIXTURE_PNG, strlen(FIXTURE_PNG), &b);
	mcp_resource_blob(c, uri, "image/png", buf_str(&b), b.len, TTL_MS);
}

static void read_watched(struct mcp_call *c, const char *uri)
{
	static const char text[] = "Watched resource content";

	mcp_resource_text(c, uri, "text/plain", text, strlen(text), 0);
}

static bool is_data(const char *uri)
{
	size_t len = strlen(uri), around = strlen(PREFIX) + strlen(SUFFIX);

	return len > around && strncmp(uri, PREFIX, strlen(PREFIX)) == 0 &&
	       strcmp(uri + len - strlen(SUFFIX), SUFFIX) == 0 &&
	       !memchr(uri + strlen(PREFIX), '/', len - around);
}

static void read_data(struct mcp_call *c, const char *uri)
{
	_buf_ struct buf b = BUF_INIT(64u << 10);
	int len = (int)(strlen(uri) - strlen(PREFIX) - strlen(SUFFIX));
	const char *id = uri + strlen(PREFIX);
	char said[1024];
	struct json j;

	(void)snprintf(said, sizeof(said), "Data for ID: %.*s", len, id);
	json_init(&j, &b);
	json_object_begin(&j);
	json_key(&j, "id");
	(void)json_strn(&j, id, (size_t)len);
	json_member_bool(&j, "templateTest", true);
	json_member_str(&j, "data", said);
	json_object_end(&j);
	(void)json_finish(&j);
	mcp_resource_text(c, uri, "application/json", buf_str(&b), b.len, TTL_MS);
}

#define ROW(uri_, name_, mime_, fn)                                                                \
	{                                                                                          \
		.uri = (uri_), .name = (name_), .title = (name_), .description = ABOUT,            \
		.mime = (mime_), .conformance = true, .read = (fn)                                 \
	}

const struct mcp_resource mcp_resources_fixture[] = {
	ROW("test://static-text", "static-text", "text/plain", read_text),
	ROW("test://static-binary", "static-binary", "image/png", read_binary),
	ROW("test://watched-resource", "watched-resource", "text/plain", read_watched),
	{ .uri = PREFIX "{id}" SUFFIX,
	  .name = "template-data",
	  .title = "template-data",
	  .description = ABOUT,
	  .mime = "application/json",
	  .conformance = true,
	  .match = is_data,
	  .read = read_data },
	{ 0 },
};
