/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resources.h - Content that a client can read by its address: rows of single resources and of
 * templates.
 *
 * The rows are in tables by subject (resources.c has the list of tables). A template's row answers
 * for every address that it matches.
 */
#ifndef CAISSON_FRONT_MCP_RESOURCES_H
#define CAISSON_FRONT_MCP_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct mcp_call;
struct mcp_page;

struct mcp_resource {
	const char *uri; /* of a template: RFC 6570, as in "sandbox://{name}/files/{+path}" */
	const char *name, *title, *description, *mime;
	bool (*match)(const char *uri); /* NULL: no template, only its own address */
	/* Of a template: those that there are now, as rows of a list; may be NULL. */
	void (*list)(struct mcp_call *c, struct json *j, struct mcp_page *page);
	/* Answers, now or later. */
	void (*read)(struct mcp_call *c, const char *uri);
	/*
	 * Of a template, for completion: write what begins with @value for its variable @arg as
	 * strings to
	 * @j, at most @max; return how many there are. May be NULL.
	 */
	size_t (*complete)(struct mcp_call *c, const char *arg, const char *value, struct json *j,
			   size_t max);
	bool watched; /* changes are seen by watching it (watch.h) */
};

/* Tables; each ends with uri NULL. */
extern const struct mcp_resource mcp_resources_sandboxes[], mcp_resources_skills[];

/* mcp_resource_find() - The row that answers for @uri, or NULL. */
const struct mcp_resource *mcp_resource_find(const char *uri);
/* mcp_template_find() - The row whose template is this text. */
const struct mcp_resource *mcp_template_find(const char *uri_template);

/* Answers of read; the call is over. @ttl_ms: how long it may be kept. */
void mcp_resource_text(struct mcp_call *c, const char *uri, const char *mime, const char *text,
		       size_t len, uint64_t ttl_ms);
void mcp_resource_blob(struct mcp_call *c, const char *uri, const char *mime, const void *data,
		       size_t len, uint64_t ttl_ms);
void mcp_resource_missing(struct mcp_call *c, const char *uri);

#endif
