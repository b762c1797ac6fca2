/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - Events of a stream. */
#include "remote/event.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
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

int event_text(const struct event *ev, struct buf *out)
{
	const json_t *coded = json_object_get(ev->root, "data_base64");
	const json_t *data = json_object_get(ev->root, "data");

	if (json_is_string(coded))
		return base64_decode(json_string_value(coded), json_string_length(coded), out) ?
			       1 :
			       -EBADMSG;
	if (!json_is_string(data))
		return -EBADMSG;
	const char *s = json_string_value(data);
	size_t len = json_string_length(data);

	(void)buf_append(out, s, len);
	return memmem(s, len, "\xef\xbf\xbd", 3) ? 0 : 1;
}
