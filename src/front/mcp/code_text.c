/* SPDX-License-Identifier: Apache-2.0 */
/* code_text.c - What an execution wrote, showed and ended with, as a person would read it. */
#include "front/mcp/code_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "front/execution.h"
#include "front/front.h"
#include "front/mcp/tool.h"
#include "front/sandbox.h"

#define IMAGES_BYTES (4u << 20)

static void put_stream(struct buf *b, const char *title, const struct capture *c, uint64_t chars,
		       bool kept)
{
	size_t len = utf8_truncate(buf_str(&c->kept), c->kept.len, chars);

	if (c->bytes == 0)
		return;
	if (b->len > 0 && buf_str(b)[b->len - 1] != '\n')
		(void)buf_puts(b, "\n");
	if (title)
		(void)buf_printf(b, "[%s]\n", title);
	(void)buf_append(b, buf_str(&c->kept), len);
	if (c->bytes > len && kept)
		(void)buf_printf(b,
				 "\n[%zu of %" PRIu64
				 " bytes; the rest: read_output with offset %zu]",
				 len, c->bytes, len);
	else if (c->bytes > len)
		(void)buf_printf(b,
				 "\n[%zu of %" PRIu64
				 " bytes; the rest is gone: print less, or use a session]",
				 len, c->bytes);
}

static void put_line(struct buf *b, const char *text)
{
	if (b->len > 0 && buf_str(b)[b->len - 1] != '\n')
		(void)buf_puts(b, "\n");
	(void)buf_puts(b, text);
}

const char *mcp_code_plain(const json_t *bundle)
{
	return json_string_value(json_object_get(bundle, "text/plain"));
}

void mcp_code_text(const struct execution *x, const json_t *result, struct mcp_output *o)
{
	_buf_ struct buf b = BUF_INIT(MCP_CODE_TEXT_MAX(x->f));
	uint64_t chars = x->f->config.max_output;

	put_stream(&b, NULL, &x->out, chars, x->sandbox->name[0] != '\0');
	put_stream(&b, "stderr", &x->err, chars, x->sandbox->name[0] != '\0');
	if (mcp_code_plain(result))
		put_line(&b, mcp_code_plain(result));
	if (x->verdict.cause != CAUSE_NONE) {
		char line[400];

		(void)snprintf(line, sizeof(line), "[%s: %s] %s",
			       result_status_name(x->verdict.status),
			       result_cause_name(x->verdict.cause), x->verdict.hint);
		put_line(&b, line);
	}
	if (strcmp(x->state, "reset") == 0)
		put_line(&b, "[state: reset] variables of this session are gone");
	if (b.len == 0)
		(void)buf_puts(&b, "(no output)");
	mcp_output_text(o, buf_str(&b), b.len);
}

static void write_image(const json_t *bundle, struct mcp_output *o, size_t *left)
{
	static const char *const types[] = { "image/png", "image/jpeg", "image/webp", "image/gif" };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const json_t *v = json_object_get(bundle, types[i]);
		char note[96];

		if (!json_is_string(v))
			continue;
		if (json_string_length(v) <= *left) {
			*left -= json_string_length(v);
			mcp_output_image(o, json_string_value(v), json_string_length(v), types[i]);
		} else {
			(void)snprintf(note, sizeof(note), "[%s of %zu KiB left out: too large]",
				       types[i], json_string_length(v) * 3 / 4096);
			mcp_output_text(o, note, strlen(note));
		}
		return;
	}
}

void mcp_code_images(const struct execution *x, const json_t *result, struct mcp_output *o)
{
	_buf_ struct buf list = BUF_INIT(EXECUTION_DISPLAYS_BYTES + 8);
	size_t left = IMAGES_BYTES, i;
	json_t *displays, *one;

	(void)buf_printf(&list, "[%s]", buf_str(&x->displays));
	displays = json_loadb(buf_str(&list), list.len, 0, NULL);
	json_array_foreach(displays, i, one) write_image(json_object_get(one, "data"), o, &left);
	write_image(result, o, &left);
	json_decref(displays);
}
