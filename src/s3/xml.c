/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xml.c - One walker for lists, errors and values.
 *
 * It keeps the names of the elements it is in and the text of the innermost, and calls a function
 * when an element ends. Namespaces are cut off: servers differ in them, and no name has two
 * meanings.
 */
#include "s3/xml.h"

#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"

#define DEPTH_MAX 8u
#define NAME_MAX_ 48u
#define TEXT_MAX (8u << 10) /* a key of 1024 bytes, each written with three letters */

struct walk {
	XML_Parser parser;
	char names[DEPTH_MAX][NAME_MAX_];
	size_t depth;
	struct buf text;
	void (*start)(void *arg, const XML_Char *name, const XML_Char **attributes);
	/* An element ended; names[depth - 1] is it. Negative: stop. */
	int (*end)(struct walk *w, const char *text, size_t len);
	void *arg;
	int failed;
};

static void stop(struct walk *w, int code)
{
	w->failed = code;
	(void)XML_StopParser(w->parser, XML_FALSE);
}

static void on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
	struct walk *w = arg;
	const char *local = strrchr(name, ':');

	(void)attributes;
	local = local ? local + 1 : name;
	if (w->depth == DEPTH_MAX || strlen(local) >= NAME_MAX_) {
		stop(w, -EBADMSG);
		return;
	}
	memcpy(w->names[w->depth++], local, strlen(local) + 1);
	buf_clear(&w->text);
}

static void on_text(void *arg, const XML_Char *data, int len)
{
	struct walk *w = arg;

	if (buf_append(&w->text, data, (size_t)len) < 0)
		stop(w, -EBADMSG);
}

static void on_end(void *arg, const XML_Char *name)
{
	struct walk *w = arg;

	(void)name;
	if (w->failed || w->depth == 0)
		return;
	int r = w->end(w, buf_str(&w->text), w->text.len);

	w->depth--;
	buf_clear(&w->text);
	if (r < 0)
		stop(w, r);
}

static void on_doctype(void *arg, const XML_Char *name, const XML_Char *system,
		       const XML_Char *public, int internal)
{
	(void)name;
	(void)system;
	(void)public;
	(void)internal;
	stop(arg, -EBADMSG);
}

static int walk(struct walk *w, const char *text, size_t len)
{
	w->parser = XML_ParserCreate("UTF-8");
	if (!w->parser)
		return -ENOMEM;
	buf_init(&w->text, TEXT_MAX);
	XML_SetUserData(w->parser, w);
	XML_SetElementHandler(w->parser, w->start, on_end);
	XML_SetCharacterDataHandler(w->parser, on_text);
	XML_SetStartDoctypeDeclHandler(w->parser, on_doctype);
	bool good = len <= 1u << 30 &&
		    XML_Parse(w->parser, text, (int)len, XML_TRUE) == XML_STATUS_OK;

	XML_ParserFree(w->parser);
	buf_free(&w->text);
	return w->failed ? w->failed : good ? 0 : -EBADMSG;
}

/* Whether the element that ends is @name, @depth elements deep. */
static bool at(const struct walk *w, size_t depth, const char *name)
{
	return w->depth == depth && strcmp(w->names[depth - 1], name) == 0;
}

void s3_etag(const char *text, size_t len, char out[S3_ETAG_MAX])
{
	if (len > 1 && text[0] == '"' && text[len - 1] == '"') {
		text++;
		len -= 2;
	}
	if (len >= S3_ETAG_MAX)
		len = 0;
	memcpy(out, text, len);
	out[len] = '\0';
}

/* ---- lists --------------------------------------------------------------------------------- */

void s3_page_free(struct s3_page *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->list[i].key);
	free(p->list);
	free(p->token);
	*p = (struct s3_page){ 0 };
}

/* encoding-type=url: "%20", and '+' for a blank. */
static char *decode(const char *text, size_t len, size_t *ret_len)
{
	char *out = malloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; out && i < len; i++) {
		int byte = hex_escape(text + i, len - i);

		if (byte >= 0) {
			out[n++] = (char)byte;
			i += 2;
		} else {
			out[n++] = text[i] == '+' ? ' ' : text[i];
		}
	}
	if (out)
		out[n] = '\0';
	*ret_len = n;
	return out;
}

static struct s3_object *grow(struct s3_page *p)
{
	if (mem_grow(&p->list, &p->cap, p->n + 1, sizeof(*p->list)) < 0)
		return NULL;
	p->list[p->n] = (struct s3_object){ 0 };
	return &p->list[p->n++];
}

static int64_t parse_time(const char *text)
{
	struct tm tm = { 0 };

	return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (int64_t)timegm(&tm) : 0;
}

/* A member of <Contents>, of which the first makes the object. */
static int member(struct walk *w, struct s3_page *p, const char *text, size_t len)
{
	const char *name = w->names[2];
	struct s3_object *o = &p->list[p->n - 1];

	if (strcmp(name, "Key") == 0) {
		free(o->key);
		o->key = decode(text, len, &o->key_len);
		return o->key ? 0 : -ENOMEM;
	}
	if (strcmp(name, "Size") == 0)
		return num_parse_u64(text, 0, INT64_MAX, &o->size, NULL) < 0 ? -EBADMSG : 0;
	if (strcmp(name, "LastModified") == 0)
		o->mtime = parse_time(text);
	if (strcmp(name, "ETag") == 0)
		s3_etag(text, len, o->etag);
	return 0;
}

static int list_end(struct walk *w, const char *text, size_t len)
{
	struct s3_page *p = w->arg;

	if (w->depth == 3 && strcmp(w->names[1], "Contents") == 0)
		return p->n ? member(w, p, text, len) : -EBADMSG;
	if (at(w, 2, "Contents") && (p->n == 0 || !p->list[p->n - 1].key))
		return -EBADMSG;
	if (at(w, 2, "IsTruncated"))
		p->more = strcmp(text, "true") == 0;
	if (at(w, 2, "NextContinuationToken")) {
		free(p->token);
		p->token = strndup(text, len);
		return p->token ? 0 : -ENOMEM;
	}
	return at(w, 1, "ListBucketResult") || w->depth > 1 ? 0 : -EBADMSG;
}

static void list_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
	struct walk *w = arg;

	on_start(arg, name, attributes);
	if (!w->failed && at(w, 2, "Contents") && !grow(w->arg))
		stop(w, -ENOMEM);
}

int s3_xml_list(const char *text, size_t len, struct s3_page *ret, struct err *e)
{
	struct walk w = { .end = list_end, .start = list_start, .arg = ret };

	*ret = (struct s3_page){ 0 };
	int r = walk(&w, text, len);

	if (r == 0 && ret->more && !ret->token)
		r = -EBADMSG; /* the same page would come for ever */
	if (r < 0)
		s3_page_free(ret);
	return r == -ENOMEM ? err_set(e, r, "read a list of objects") :
	       r < 0        ? err_say(e, r, "the answer is not a list of objects") :
			      0;
}

/* ---- errors and values --------------------------------------------------------------------- */

struct element {
	const char *name;
	char *to;
	size_t size;
	bool done;
};

static int value_end(struct walk *w, const char *text, size_t len)
{
	struct element *list = w->arg;

	for (struct element *k = list; k->name; k++)
		if (!k->done && at(w, 2, k->name) && len < k->size && !memchr(text, '\0', len)) {
			memcpy(k->to, text, len);
			k->to[len] = '\0';
			k->done = true;
		}
	return 0;
}

/* For messages: one line of printable characters. */
static void tame(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = ' ';
}

void s3_xml_error(const char *text, size_t len, char code[64], char message[200])
{
	struct element list[] = { { "Code", code, 64, false },
				  { "Message", message, 200, false },
				  { NULL, NULL, 0, false } };
	struct walk w = { .end = value_end, .start = on_start, .arg = list };

	code[0] = message[0] = '\0';
	(void)walk(&w, text, len);
	tame(code);
	tame(message);
}

bool s3_xml_value(const char *text, size_t len, const char *name, char *to, size_t size)
{
	struct element list[] = { { name, to, size, false }, { NULL, NULL, 0, false } };
	struct walk w = { .end = value_end, .start = on_start, .arg = list };

	return walk(&w, text, len) == 0 && list[0].done;
}
