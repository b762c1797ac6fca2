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

/* The value of a digit and one; 0: it is none. */
static const unsigned char digits[256] = {
	['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,
	['H'] = 8,  ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14,
	['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21,
	['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28,
	['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35,
	['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49,
	['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
	['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63,
	['/'] = 64,
};

int event_base64(const char *s, size_t len, struct buf *out)
{
	size_t pad = 0;

	while (pad < 2 && pad < len && s[len - 1 - pad] == '=')
		pad++;
	if (len % 4 != 0)
		return -EBADMSG;
	char *to = buf_reserve(out, len / 4 * 3);

	if (!to)
		return -EBADMSG;
	for (size_t i = 0; i < len; i += 4) {
		int v = 0, n = i + 4 == len ? 4 - (int)pad : 4;

		for (int k = 0; k < 4; k++) {
			int d = k < n ? digits[(unsigned char)s[i + (size_t)k]] - 1 : 0;

			if (d < 0)
				return -EBADMSG; /* nothing is committed */
			v = v << 6 | d;
		}
		*to++ = (char)(v >> 16);
		*to++ = (char)(v >> 8);
		*to++ = (char)v;
	}
	buf_commit(out, len / 4 * 3 - pad);
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
