/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h - What a model can call: one row per tool, and the blocks of its result.
 *
 * The rows are in tables by subject (tools.c has the list of tables); lists keep their order.
 * Arguments are checked against the row's fields before run is called: what is wrong with them is
 * told to the model as the result, so that it can do better. A failure of what the tool does is a
 * result too (isError); errors of the protocol are for what no model can mend.
 */
#ifndef CAISSON_FRONT_MCP_TOOL_H
#define CAISSON_FRONT_MCP_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "front/http/route.h" /* struct field */
#include "front/mcp/call.h"

struct config;
struct refusal;

enum mcp_tool_hint {
	TOOL_READ_ONLY = 1u << 0,   /* changes nothing */
	TOOL_DESTRUCTIVE = 1u << 1, /* may destroy something */
	TOOL_IDEMPOTENT = 1u << 2,  /* twice is as once */
	TOOL_OPEN_WORLD = 1u << 3,  /* reaches beyond this machine */
};

enum mcp_tool_set {
	TOOL_SET_DEFAULT = 1u << 0,
	TOOL_SET_ALL = 1u << 1,
	TOOL_SET_PACKAGES = 1u << 2, /* among the default ones where packages can be installed */
	TOOL_SET_SERVERS = 1u << 3,  /* among them where there are MCP servers that code may call */
};

/* An argument that modern clients repeat as the HTTP header Mcp-Param-<header>, so that proxies can
 * route. */
struct mcp_mirror {
	const char *arg;
	const char *header; /* all of it, in lower case */
};

struct mcp_tool {
	const char *name, *title, *description;
	const struct field *input; /* ends with name NULL */
	const char *input_schema;  /* instead of input, JSON text: arguments are not checked here */
	const char *output_schema; /* JSON text, or NULL: no structured content */
	unsigned int hints, sets;
	bool task;                        /* may take long: then it becomes a task (task.h) */
	const struct mcp_mirror *mirrors; /* as in input_schema; ends with arg NULL; may be NULL */
	/* @args: checked, borrowed from the call. Answers, now or later. */
	void (*run)(struct mcp_call *c, json_t *args);
};

/* Tables; each ends with name NULL. */
extern const struct mcp_tool mcp_tools_code[];
extern const struct mcp_tool mcp_tools_files[];
extern const struct mcp_tool mcp_tools_output[];
extern const struct mcp_tool mcp_tools_packages[];
extern const struct mcp_tool mcp_tools_processes[];
extern const struct mcp_tool mcp_tools_run_python[];
extern const struct mcp_tool mcp_tools_sandboxes[];
void mcp_tools_sandboxes_setup(void); /* before the first of them is listed */

/* mcp_tool_at() - The i-th tool that this daemon offers, NULL after the last. */
const struct mcp_tool *mcp_tool_at(const struct front *f, size_t i);
const struct mcp_tool *mcp_tool_find(const struct front *f, const char *name);
/* mcp_tools_print() - A number that is another one when @owner has other tools. */
uint64_t mcp_tools_print(const struct front *f, const char *owner);
/* mcp_tools_check() - Whether --tools names tools that there are: "default", "all", or names. */
bool mcp_tools_check(const char *list, char *unknown, size_t size);

/* ---- results ------------------------------------------------------------------------------- */

/*
 * Blocks for a model and, where the tool has an output schema, one object for programs. Neither is
 * sent unless both are whole: what does not fit into an answer becomes a result that says so
 * (mcp_output_end()).
 */
struct mcp_output {
	struct mcp_answer a; /* inside the array `content` */
	struct buf data;
	struct json s; /* structuredContent, into data: write one object, or nothing */
	size_t pictures, picture_bytes; /* of code's own, so far */
};

void mcp_output_begin(const struct mcp_call *c, struct mcp_output *o);
/* mcp_output_move() - It lives at @to from now on. */
void mcp_output_move(struct mcp_output *to, struct mcp_output *from);
void mcp_output_drop(struct mcp_output *o); /* without an answer */
void mcp_output_text(struct mcp_output *o, const char *text, size_t len);
/* mcp_output_image() - @base64: as it is to be sent. */
void mcp_output_image(struct mcp_output *o, const char *base64, size_t len, const char *mime);
/* mcp_output_link() - A resource to be read when wanted; @mime may be NULL. */
void mcp_output_link(struct mcp_output *o, const char *uri, const char *name, const char *mime,
		     uint64_t size);
/* mcp_output_takes() - Whether a picture of so many bytes of base64 that code made has room in this
 * result. Counts it. */
#define MCP_PICTURES_MAX 8u
#define MCP_PICTURE_BYTES (4u << 20)
bool mcp_output_takes(struct mcp_output *o, size_t base64_len);
/* mcp_output_file() - Bytes as an image block. */
void mcp_output_file(struct mcp_output *o, const void *data, size_t len, const char *mime);
/* mcp_output_end() - Answers, with what was written or, when that is not whole, with a failure. The
 * call is over. */
void mcp_output_end(struct mcp_call *c, struct mcp_output *o, bool is_error);

/* mcp_output_refuse() - A result that says why not, and what to do. The call is over. */
void mcp_output_refuse(struct mcp_call *c, const struct refusal *r);
/* mcp_output_fail() - The same, in our words. @code: one word. */
void mcp_output_fail(struct mcp_call *c, const char *code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
