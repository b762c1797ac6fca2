/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_event.c - Events of a stream, read in two ways.
 *
 * A program may write a gigabyte, and all of it comes as lines of one form. event_quick() reads
 * that form: it compares the head, and copies runs of bytes between escapes. It leaves every line
 * that differs from the form to the real parser, so only the lines that it accepts have to be
 * right.
 */
#include "remote/stream_event.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/num.h"

#define ID_DIGITS 18

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
			       0 :
			       -EBADMSG;
	if (!json_is_string(data))
		return -EBADMSG;
	(void)buf_append(out, json_string_value(data), json_string_length(data));
	return 0;
}

/* ---- the quick way ------------------------------------------------------------------------- */

struct cursor {
	const char *at, *end;
};

static bool skip(struct cursor *c, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(c->end - c->at) < n || memcmp(c->at, text, n) != 0)
		return false;
	c->at += n;
	return true;
}

static bool take_id(struct cursor *c, uint64_t *ret)
{
	const char *begin = c->at;

	*ret = 0;
	while (c->at < c->end && *c->at >= '0' && *c->at <= '9' && c->at - begin < ID_DIGITS)
		*ret = *ret * 10 + (uint64_t)(*c->at++ - '0');
	return *ret > 0 && *begin != '0';
}

/* The escape behind a backslash, as bytes. Return: how many; 0: left to the parser. */
static size_t unescape(struct cursor *c, char to[static 2])
{
	static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *letter = c->at < c->end ? strchr(letters, *c->at) : NULL;

	if (letter && *letter) {
		c->at++;
		to[0] = bytes[letter - letters];
		return 1;
	}
	if (!skip(c, "u00") || c->end - c->at < 2)
		return 0;
	int high = hex_digit(c->at[0]), low = hex_digit(c->at[1]);

	if (high < 0 || low < 0)
		return 0;
	c->at += 2;
	if (high < 8) {
		to[0] = (char)(high << 4 | low);
		return 1;
	}
	to[0] = (char)(0xc0 | high >> 2);
	to[1] = (char)(0x80 | (high & 3) << 4 | low);
	return 2;
}

/* All of a string, up to the quote that is the end of @c. */
static bool take_string(struct cursor *c, struct buf *out)
{
	char bytes[2];

	while (c->at < c->end) {
		const char *slash = memchr(c->at, '\\', (size_t)(c->end - c->at));
		size_t n = (size_t)((slash ? slash : c->end) - c->at);

		if (memchr(c->at, '"', n) || buf_append(out, c->at, n) < 0)
			return false;
		c->at += n;
		if (!slash)
			return true;
		c->at++;
		n = unescape(c, bytes);
		if (n == 0 || buf_append(out, bytes, n) < 0)
			return false;
	}
	return true;
}

/* A coded string holds no quote, so the last one before the end is where it begins. */
static const char *coded(const struct cursor *c)
{
	static const char key[] = "\",\"data_base64\":";
	const char *quote = memrchr(c->at, '"', (size_t)(c->end - c->at));

	if (!quote || (size_t)(quote - c->at) < sizeof(key) - 1 ||
	    memcmp(quote - (sizeof(key) - 1), key, sizeof(key) - 1) != 0)
		return NULL;
	return quote + 1;
}

bool event_quick(const char *line, size_t len, uint64_t *ret_id, bool *ret_is_stderr,
		 struct buf *out)
{
	struct cursor c = { .at = line, .end = line + len };

	buf_clear(out);
	if (!skip(&c, "{\"id\":") || !take_id(&c, ret_id) || !skip(&c, ",\"type\":\"std"))
		return false;
	*ret_is_stderr = skip(&c, "err");
	if ((!*ret_is_stderr && !skip(&c, "out")) || !skip(&c, "\",\"data\":\"") ||
	    c.end - c.at < 2 || memcmp(c.end - 2, "\"}", 2) != 0)
		return false;
	c.end -= 2;
	const char *text = coded(&c);

	return text ? base64_decode(text, (size_t)(c.end - text), out) : take_string(&c, out);
}
