/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - Parse the answer of a server that is not trusted: the client's side of HTTP/1.x.
 *
 * For a relay, which frames the answer anew: the parser yields a status, headers and bytes, and
 * decides alone where the message ends. Parsing is llhttp's in strict mode. Also refused are a head
 * over ANSWER_HEAD_MAX bytes (1xx answers before it count) or with more than ANSWER_HEADERS_MAX
 * headers, control bytes in a value, a transfer coding other than `chunked`, a status out of 200 to
 * 599, and a 101 that was not requested or names no protocol. 1xx answers and trailers are dropped.
 *
 * Pure and bounded: it holds one head, and no body.
 *
 * The parser is stopped at the end of every message, so that one run of it never sees two: a fresh
 * parser follows a 1xx answer, and bytes after the answer itself are not parsed.
 */
#include "net/http_relay.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* The largest text of a head: one NUL more for each name and value. */
#define TEXT_MAX (ANSWER_HEAD_MAX + 4 * ANSWER_HEADERS_MAX)

static int refuse(struct answer *a, const char *why)
{
	if (!a->why)
		a->why = why;
	return -1;
}

/* ---- callbacks of llhttp ------------------------------------------------------------------- */

static int on_name(llhttp_t *p, const char *at, size_t len)
{
	struct answer *a = p->data;

	if (a->headed)
		return 0; /* a trailer */
	if (a->n == ANSWER_HEADERS_MAX)
		return refuse(a, "it has too many headers");
	return buf_append(&a->text, at, len) < 0 ? -1 : 0;
}

static int on_name_end(llhttp_t *p)
{
	struct answer *a = p->data;

	if (a->headed)
		return 0;
	(void)buf_append(&a->text, "", 1);
	a->at[a->n].value = (uint32_t)a->text.len;
	return a->text.err ? -1 : 0;
}

static int on_value(llhttp_t *p, const char *at, size_t len)
{
	struct answer *a = p->data;

	return a->headed || buf_append(&a->text, at, len) == 0 ? 0 : -1;
}

static int on_value_end(llhttp_t *p)
{
	struct answer *a = p->data;

	if (a->headed)
		return 0;
	(void)buf_append(&a->text, "", 1);
	if (a->text.err)
		return -1;
	a->n++;
	if (a->n < ANSWER_HEADERS_MAX)
		a->at[a->n].name = (uint32_t)a->text.len;
	return 0;
}

/* Names in lower case, values without space around them; neither with a control byte. */
static bool tidy(struct answer *a)
{
	for (size_t i = 0; i < a->n; i++) {
		char *name = a->text.data + a->at[i].name, *value = a->text.data + a->at[i].value;
		size_t len = strlen(value);

		if (!*name || value != name + strlen(name) + 1)
			return false; /* a NUL inside */
		for (char *c = name; *c; c++) {
			if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || *c == ':')
				return false;
			*c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
		}
		for (const char *c = value; *c; c++)
			if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
				return false;
		while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
			value[--len] = '\0';
		a->at[i].value += (uint32_t)strspn(value, " \t");
	}
	return true;
}

static bool framing_is_plain(struct answer *a, const llhttp_t *p)
{
	const char *coding = answer_header(a, "transfer-encoding");

	if (coding && (strcasecmp(coding, "chunked") != 0 || !(p->flags & F_CHUNKED)))
		return false;
	a->has_length = p->flags & F_CONTENT_LENGTH && !coding;
	a->length = a->has_length ? p->content_length : 0;
	return true;
}

static int on_headers(llhttp_t *p)
{
	struct answer *a = p->data;

	a->status = p->status_code;
	p->upgrade = 0;
	if (!tidy(a))
		return refuse(a, "its headers contain invalid bytes");
	if (a->status >= 100 && a->status < 200 && a->status != 101)
		return 1; /* not the final answer */
	if (a->status == 101 && (!a->may_switch || !answer_header(a, "upgrade")))
		return refuse(a, "it switches to another protocol without a request for it");
	if (a->status != 101 && (a->status < 200 || a->status > 599))
		return refuse(a, "its status is not between 200 and 599");
	if (!framing_is_plain(a, p))
		return refuse(a, "its transfer coding is not 'chunked'");
	a->headed = true;
	a->ops->head(a);
	/* These have no body, whatever they announce. */
	return a->to_head || a->status == 101 || a->status == 204 || a->status == 304 ? 1 : 0;
}

static int on_body(llhttp_t *p, const char *at, size_t len)
{
	struct answer *a = p->data;

	if (len > 0)
		a->ops->body(a, at, len);
	return 0;
}

static int on_message(llhttp_t *p)
{
	struct answer *a = p->data;

	a->over = a->headed;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_header_field = on_name,
	.on_header_field_complete = on_name_end,
	.on_header_value = on_value,
	.on_header_value_complete = on_value_end,
	.on_headers_complete = on_headers,
	.on_body = on_body,
	.on_message_complete = on_message,
};

/* ---- input --------------------------------------------------------------------------------- */

static void restart(struct answer *a)
{
	llhttp_init(&a->parser, HTTP_RESPONSE, &settings);
	a->parser.data = a;
	buf_clear(&a->text);
	a->n = 0;
	a->at[0].name = 0;
}

void answer_init(struct answer *a, bool to_head, bool may_switch, const struct answer_ops *ops,
		 void *arg)
{
	*a = (struct answer){
		.ops = ops,
		.arg = arg,
		.to_head = to_head,
		.may_switch = may_switch,
	};
	buf_init(&a->text, TEXT_MAX);
	restart(a);
}

void answer_free(struct answer *a)
{
	buf_free(&a->text);
}

static int fail(struct answer *a)
{
	const char *reason = llhttp_get_error_reason(&a->parser);

	if (a->text.err == -ENOMEM)
		return -ENOMEM;
	(void)refuse(a, reason && *reason ? reason : "it is not HTTP");
	a->over = true;
	return -EPROTO;
}

int answer_feed(struct answer *a, const char *data, size_t len, size_t *ret_used)
{
	size_t at = 0;

	while (at < len && !a->over) {
		size_t n = len - at;

		if (!a->headed && n > ANSWER_HEAD_MAX - a->seen)
			n = ANSWER_HEAD_MAX - a->seen;
		if (n == 0) {
			(void)refuse(a, "its head is too long");
			return fail(a);
		}
		bool in_head = !a->headed;
		llhttp_errno_t r = llhttp_execute(&a->parser, data + at, n);

		if (r == HPE_PAUSED)
			n = (size_t)(llhttp_get_error_pos(&a->parser) - (data + at));
		else if (r != HPE_OK)
			return fail(a);
		a->seen += in_head ? n : 0;
		at += n;
		if (r == HPE_PAUSED && !a->over)
			restart(a);
	}
	*ret_used = at;
	return a->over ? 1 : 0;
}

int answer_eof(struct answer *a)
{
	if (a->over)
		return a->why ? -EPROTO : 1;
	llhttp_errno_t r = a->headed ? llhttp_finish(&a->parser) : HPE_INVALID_EOF_STATE;

	if (a->over && (r == HPE_OK || r == HPE_PAUSED))
		return 1;
	(void)refuse(a, a->headed ? "it broke off" :
				    "the connection was closed before the end of its head");
	a->over = true;
	return -EPROTO;
}

const char *answer_name(const struct answer *a, size_t i)
{
	return a->text.data + a->at[i].name;
}

const char *answer_value(const struct answer *a, size_t i)
{
	return a->text.data + a->at[i].value;
}

const char *answer_header(const struct answer *a, const char *lower_name)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(answer_name(a, i), lower_name) == 0)
			return answer_value(a, i);
	return NULL;
}
