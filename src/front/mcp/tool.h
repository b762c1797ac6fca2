/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h - The tools that a model can call: one row per tool, and the blocks of its result.
 *
 * A row makes a tool of an operation, which has the names, words and arguments. The rows are in
 * tables by subject (tools.c has the list of tables); lists keep their order. tools.c checks the
 * arguments before it calls run, and reports an error in them as the tool's result, so that the
 * model can correct it. A failure of the operation is a result too (isError); errors of the
 * protocol are those that no model can correct.
 */
#ifndef CAISSON_FRONT_MCP_TOOL_H
#define CAISSON_FRONT_MCP_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "front/mcp/call.h"
#include "front/support/operation.h"

struct err;
struct refusal;
struct sandbox;

enum mcp_tool_hint {
	TOOL_READ_ONLY = 1u << 0,   /* changes nothing */
	TOOL_DESTRUCTIVE = 1u << 1, /* may destroy something */
	TOOL_IDEMPOTENT = 1u << 2,  /* twice is as once */
	TOOL_OPEN_WORLD = 1u << 3,  /* reaches beyond this machine */
};

/* The daemons that offer a tool by default. With --tools all, every daemon does. */
enum mcp_tool_offer {
	TOOL_BY_NAME, /* none: --tools has to name it */
	TOOL_ALWAYS,
	TOOL_WITH_PACKAGES, /* those that can install packages */
	TOOL_WITH_SERVERS,  /* those with MCP servers that code may call */
};

/* An argument that modern clients repeat as the HTTP header Mcp-Param-<header>, so that proxies can
 * route. */
struct mcp_mirror {
	const char *arg;
	const char *header; /* all of it, in lower case */
};

struct mcp_tool {
	const struct operation *op;
	/* @args: checked, borrowed from the call. Answers, now or later. */
	void (*run)(struct mcp_call *c, json_t *args);
	unsigned int hints; /* enum mcp_tool_hint */
	enum mcp_tool_offer offer;
	const char *output_schema; /* JSON text, or NULL: no structured content */
	bool task;                 /* may take long: then it becomes a task (task.h) */
	const char *input_schema;  /* JSON text in place of op->fields: tools.c checks nothing */
	const struct mcp_mirror *mirrors; /* as in input_schema; ends with arg NULL; may be NULL */
};

/* Tables; each ends with op NULL. */
extern const struct mcp_tool mcp_tools_code[], mcp_tools_files[], mcp_tools_output[],
	mcp_tools_packages[], mcp_tools_processes[], mcp_tools_run_python[], mcp_tools_sandboxes[];

/* mcp_tool_find() - A tool that this daemon offers, or NULL. */
const struct mcp_tool *mcp_tool_find(const struct mcp *mcp, const char *name);
/* mcp_tools_hash() - Of the names of all tools that @owner has. */
uint64_t mcp_tools_hash(const struct mcp *mcp, const char *owner);
/* mcp_tools_check() - Whether every word of --tools is "default", "all" or the name of a tool. */
bool mcp_tools_check(const char *list, char *unknown, size_t size);
/* mcp_tools_option() - The same for config_parse(). */
int mcp_tools_option(const char *v, struct err *e);

/*
 * mcp_obtain_sandbox() - The caller's running sandbox that args.session_id names. One that does not
 * exist is made, as by its first execution. NULL: the call was answered with the reason.
 */
struct sandbox *mcp_obtain_sandbox(struct mcp_call *c, const json_t *args);
/* mcp_find_sandbox() - The same, but nothing is made. */
struct sandbox *mcp_find_sandbox(struct mcp_call *c, const json_t *args);

/* mcp_arg_number() - The integer argument @name, or @fallback. */
uint64_t mcp_arg_number(const json_t *args, const char *name, uint64_t fallback);

/* ---- results ------------------------------------------------------------------------------- */

/*
 * Blocks for a model and, where the tool has an output schema, one object for programs. Both are
 * sent whole, or in their place a failure: the result does not fit into an answer
 * (mcp_output_end()).
 */
struct mcp_output {
	struct mcp_answer a; /* inside the array `content` */
	struct buf data;
	struct json s; /* structuredContent, into data: write one object, or nothing */
	size_t pictures, picture_bytes; /* that code made, so far */
};

void mcp_output_begin(const struct mcp_call *c, struct mcp_output *o);
/* mcp_output_move() - To another place in memory. */
void mcp_output_move(struct mcp_output *to, struct mcp_output *from);
void mcp_output_drop(struct mcp_output *o); /* without an answer */
void mcp_output_text(struct mcp_output *o, const char *text, size_t len);
void mcp_output_printf(struct mcp_output *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* mcp_output_image() - @base64: as it is to be sent. */
void mcp_output_image(struct mcp_output *o, const char *base64, size_t len, const char *mime);
/* mcp_output_link() - A resource to be read when wanted; @mime may be NULL. */
void mcp_output_link(struct mcp_output *o, const char *uri, const char *name, const char *mime,
		     uint64_t size);
/* mcp_output_takes() - Whether this result has room for a picture of code, of so many bytes of
 * base64; counts the picture. */
#define MCP_PICTURES_MAX 8u
#define MCP_PICTURE_BYTES (4u << 20)
bool mcp_output_takes(struct mcp_output *o, size_t base64_len);
/* mcp_output_file() - Bytes as an image block. */
void mcp_output_file(struct mcp_output *o, const void *data, size_t len, const char *mime);
/* mcp_output_end() - Answers: with the result, or with a failure when it is not whole. The call is
 * over. */
void mcp_output_end(struct mcp_call *c, struct mcp_output *o, bool is_error);

/* mcp_output_refuse() - A result with the reason and the remedy. The call is over. */
void mcp_output_refuse(struct mcp_call *c, const struct refusal *r);
/* mcp_output_fail() - The same with another text. @code: one word; @hint: the remedy, or NULL. */
void mcp_output_fail(struct mcp_call *c, const char *code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
