/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - Events of a stream, and base64. */
#include "remote/event.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

int event_parse(const char *line, size_t len, struct event *ret)
{
	json_t *root = json_loadb(line, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	const char *type = json_string_value(json_object_get(root, "type"));
	json_int_t id = json_integer_value(json_object_get(root, "id"));

	if (!type) {
		json_decref(root);
		return -EBADMSG;
	}
	*ret = (struct event){ .root = root, .type = type, .id = id > 0 ? (uint64_t)id : 0 };
	return 0;
}

void event_free(struct event *ev)
{
	json_decref(ev->root);
	ev->root = NULL;
}

bool event_is(const struct event *ev, const char *type)
{
	return strcmp(ev->type, type) == 0;
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int event_base64(const char *s, size_t len, struct buf *out)
{
	size_t start = out->len, pad = 0;

	while (pad < 2 && pad < len && s[len - 1 - pad] == '=')
		pad++;
	if (len % 4 != 0)
		return -EBADMSG;
	for (size_t i = 0; i < len; i += 4) {
		int v = 0, n = i + 4 == len ? 4 - (int)pad : 4;

		for (int k = 0; k < 4; k++) {
			int d = k < n ? digit(s[i + (size_t)k]) : 0;

			if (d < 0) {
				out->len = start;
				if (out->data)
					out->data[start] = '\0';
				return -EBADMSG;
			}
			v = v << 6 | d;
		}
		char bytes[3] = { (char)(v >> 16), (char)(v >> 8), (char)v };

		(void)buf_append(out, bytes, (size_t)n - 1);
	}
	return 0;
}

int event_text(const struct event *ev, struct buf *out)
{
	const json_t *coded = json_object_get(ev->root, "data_base64");
	const json_t *data = json_object_get(ev->root, "data");

	if (json_is_string(coded))
		return event_base64(json_string_value(coded), json_string_length(coded), out) < 0 ?
			       -EBADMSG :
			       1;
	if (!json_is_string(data))
		return -EBADMSG;
	const char *s = json_string_value(data);
	size_t len = json_string_length(data);

	(void)buf_append(out, s, len);
	return memmem(s, len, "\xef\xbf\xbd", 3) ? 0 : 1;
}
