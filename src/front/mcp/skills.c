/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skills.c - The extension io.modelcontextprotocol/skills: a guide to the sandbox that a model
 * loads when it needs it. Its files are compiled in; they are resources like any other, and the
 * list of them has their digests, so that a client can tell what it reads from what it approved.
 */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "front/mcp/call.h"
#include "front/mcp/resources.h"
#include "hash/hash.h"

extern const struct embed_file skill_files[];

#define TTL_MS (3600u * 1000u)
#define MARKDOWN "text/markdown"
#define ROOT "skill://caisson-sandbox"
#define MAIN "SKILL.md"
/* As in the head of SKILL.md. */
#define NAME "caisson-sandbox"
#define ABOUT                                                                                      \
	"Run code in Caisson's sealed sandboxes and read its results. Use to run code, try "       \
	"programs, analyse data."

/* ---- its files as resources ---------------------------------------------------------------- */

static void read_file(struct mcp_call *c, const char *uri)
{
	const struct embed_file *f = embed_find(skill_files, uri + strlen(ROOT "/"));

	mcp_resource_text(c, uri, MARKDOWN, (const char *)f->data, f->len, TTL_MS);
}

const struct mcp_resource mcp_resources_skills[] = {
	{ .uri = ROOT "/" MAIN,
	  .name = NAME,
	  .title = "Running code in Caisson",
	  .description = ABOUT,
	  .mime = MARKDOWN,
	  .read = read_file },
	{ .uri = ROOT "/references/results.md",
	  .name = "results.md",
	  .title = "The parts of a result",
	  .description = "Every status and cause of a result, and what to do about it.",
	  .mime = MARKDOWN,
	  .read = read_file },
	{ 0 },
};

/* ---- skills/list, skills/get --------------------------------------------------------------- */

static void write_file(struct json *j, const struct embed_file *f)
{
	char text[7 + HASH_HEX + 1] = "sha256:", uri[128];

	if (!hash_sha256_hex(f->data, f->len, text + 7))
		text[0] = '\0';
	(void)snprintf(uri, sizeof(uri), ROOT "/%s", f->name);
	json_object_begin(j);
	json_member_str(j, "uri", uri);
	json_member_str(j, "digest", text);
	json_member_uint(j, "size", f->len);
	json_object_end(j);
}

static void write_skill(struct json *j)
{
	json_object_begin(j);
	json_member_str(j, "uri", ROOT "/" MAIN);
	json_member_object(j, "frontmatter");
	json_member_str(j, "name", NAME);
	json_member_str(j, "description", ABOUT);
	json_object_end(j);
	json_member_array(j, "resources");
	for (const struct embed_file *f = skill_files; f->name; f++)
		write_file(j, f);
	json_array_end(j);
	json_object_end(j);
}

void mcp_method_skills_list(struct mcp_call *c)
{
	struct mcp_answer a;
	struct mcp_page page;

	if (!mcp_page_begin(c, &page))
		return;
	mcp_answer_begin(c, &a);
	json_member_array(&a.j, "skills");
	if (mcp_page_takes(&page))
		write_skill(&a.j);
	json_array_end(&a.j);
	mcp_answer_cache(c, &a, TTL_MS, true);
	mcp_answer_end(c, &a);
}

void mcp_method_skills_get(struct mcp_call *c)
{
	const char *uri = json_string_value(json_object_get(c->m.params, "uri"));
	struct mcp_answer a;

	if (!uri || strcmp(uri, ROOT "/" MAIN) != 0) {
		mcp_fail(c, MCP_INVALID_PARAMS,
			 "params.uri is not the address of a skill; see skills/list");
		return;
	}
	mcp_answer_begin(c, &a);
	json_key(&a.j, "skill");
	write_skill(&a.j);
	mcp_answer_cache(c, &a, TTL_MS, true);
	mcp_answer_end(c, &a);
}

/* ---- resources/directory/read -------------------------------------------------------------- */

/* The name of a child of @dir ("" or "references/"), as a text of its own; false: @file is not
 * below. */
static bool child_of(const char *dir, const char *file, char *ret, size_t size, bool *is_dir)
{
	size_t len = strlen(dir), n;

	if (strncmp(file, dir, len) != 0)
		return false;
	n = strcspn(file + len, "/");
	*is_dir = file[len + n] == '/';
	(void)snprintf(ret, size, "%.*s", (int)n, file + len);
	return true;
}

static void write_child(struct json *j, const char *dir, const char *name, bool is_dir)
{
	char uri[160];

	(void)snprintf(uri, sizeof(uri), ROOT "/%s%s", dir, name);
	json_object_begin(j);
	json_member_str(j, "uri", uri);
	json_member_str(j, "name", name);
	json_member_str(j, "mimeType", is_dir ? "inode/directory" : MARKDOWN);
	json_object_end(j);
}

static size_t write_children(struct json *j, const char *dir)
{
	char name[64], last[64] = "";
	size_t n = 0;
	bool is_dir;

	for (const struct embed_file *f = skill_files; f->name; f++) {
		/* Files of one directory stand together. */
		if (!child_of(dir, f->name, name, sizeof(name), &is_dir) || strcmp(name, last) == 0)
			continue;
		memcpy(last, name, sizeof(last));
		write_child(j, dir, name, is_dir);
		n++;
	}
	return n;
}

void mcp_method_directory_read(struct mcp_call *c)
{
	const char *uri = json_string_value(json_object_get(c->m.params, "uri"));
	char dir[64] = "";
	struct mcp_page page;
	struct mcp_answer a;
	size_t len;

	if (!mcp_page_begin(c, &page))
		return;
	if (uri && strncmp(uri, ROOT "/", strlen(ROOT "/")) == 0 && uri[strlen(ROOT "/")]) {
		len = strlen(uri);
		(void)snprintf(dir, sizeof(dir), "%s%s", uri + strlen(ROOT "/"),
			       uri[len - 1] == '/' ? "" : "/");
	} else if (!uri || (strcmp(uri, ROOT) != 0 && strcmp(uri, ROOT "/") != 0)) {
		dir[0] = '?'; /* no file has this in its name */
	}
	mcp_answer_begin(c, &a);
	json_member_array(&a.j, "resources");
	if (write_children(&a.j, dir) == 0) {
		buf_free(&a.buf);
		mcp_fail(c, MCP_INVALID_PARAMS, "params.uri: unknown directory");
		return;
	}
	json_array_end(&a.j);
	mcp_answer_cache(c, &a, TTL_MS, true);
	mcp_answer_end(c, &a);
}
