/* SPDX-License-Identifier: Apache-2.0 */
/* header.c - The one escape that header values have. */
#include "mcp/header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"

#define BEGIN "=?base64?"
#define END "?="
#define VALUE_MAX (64u << 10)

int mcp_header_decode(const char *value, struct buf *out)
{
	size_t len = strlen(value), begin = sizeof(BEGIN) - 1, end = sizeof(END) - 1;
	size_t before = out->len;

	if (len < begin + end || strncmp(value, BEGIN, begin) != 0 ||
	    strcmp(value + len - end, END) != 0)
		return buf_append(out, value, len);
	if (!base64_decode(value + begin, len - begin - end, out))
		return out->err == -ENOMEM ? -ENOMEM : -EINVAL;
	if (memchr(buf_str(out) + before, '\0', out->len - before) ||
	    !utf8_valid(buf_str(out) + before, out->len - before))
		return -EINVAL;
	return 0;
}

int mcp_header_encode(const char *value, struct buf *out)
{
	size_t len = strlen(value), begin = sizeof(BEGIN) - 1;
	bool plain = len == 0 || (value[0] != ' ' && value[len - 1] != ' ');

	for (size_t i = 0; plain && i < len; i++)
		plain = value[i] >= 0x20 && value[i] < 0x7f;
	if (plain && strncmp(value, BEGIN, begin) != 0)
		return buf_append(out, value, len);
	_buf_ struct buf quoted = BUF_INIT(out->max);
	struct json j;

	json_init(&j, &quoted);
	json_base64(&j, value, len);
	if (json_finish(&j) < 0)
		return -ENOMEM;
	(void)buf_puts(out, BEGIN);
	(void)buf_append(out, quoted.data + 1, quoted.len - 2);
	return buf_puts(out, END);
}

static bool same_integer(const char *text, json_int_t value)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && n == value;
}

bool mcp_header_mirrors(const char *header, const json_t *value)
{
	_buf_ struct buf text = BUF_INIT(VALUE_MAX);

	if (!header || !value || json_is_null(value))
		return !header && (!value || json_is_null(value));
	if (mcp_header_decode(header, &text) < 0)
		return false;
	if (json_is_boolean(value))
		return strcmp(buf_str(&text), json_is_true(value) ? "true" : "false") == 0;
	if (json_is_integer(value))
		return same_integer(buf_str(&text), json_integer_value(value));
	return json_is_string(value) && text.len == json_string_length(value) &&
	       memcmp(buf_str(&text), json_string_value(value), text.len) == 0;
}
