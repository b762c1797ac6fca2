/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_request.c - From the bytes of a head and a body to a struct http_request.
 *
 * Theory of operation: the prescan has accepted the head and knows its end and the framing of the
 * body. llhttp parses the same bytes, all at once, and only reports the places of names and values;
 * then everything is copied, once, into the memory of the exchange. If the two disagree about the
 * framing, the request is refused: neither is trusted alone. The parser gets exactly the bytes of
 * this message, never one of the next.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "net/exchange.h"
#include "net/http_header.h"
#include "net/target.h"

struct span {
	const char *at;
	size_t len;
};

/* The report of llhttp about a head: places in it. */
struct head {
	struct span target;
	struct span name[HTTP_HEADERS_MAX], value[HTTP_HEADERS_MAX];
	size_t n; /* names that are complete */
	bool complete;
};

/* A second span must continue the first one. */
static int extend(struct span *s, const char *at, size_t len)
{
	if (!s->at)
		s->at = at;
	else if (s->at + s->len != at)
		return -1;
	s->len += len;
	return 0;
}

static int on_url(llhttp_t *p, const char *at, size_t len)
{
	return extend(&((struct head *)p->data)->target, at, len);
}

static int on_header_field(llhttp_t *p, const char *at, size_t len)
{
	struct head *head = p->data;

	return head->n < HTTP_HEADERS_MAX ? extend(&head->name[head->n], at, len) : -1;
}

static int on_header_field_complete(llhttp_t *p)
{
	((struct head *)p->data)->n++;
	return 0;
}

static int on_header_value(llhttp_t *p, const char *at, size_t len)
{
	struct head *head = p->data;

	return head->n > 0 ? extend(&head->value[head->n - 1], at, len) : -1;
}

static int on_headers_complete(llhttp_t *p)
{
	((struct head *)p->data)->complete = true;
	/* Upgrades are decided later; a body is read in any case. */
	p->upgrade = 0;
	return 0;
}

static const llhttp_settings_t head_settings = {
	.on_url = on_url,
	.on_header_field = on_header_field,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value = on_header_value,
	.on_headers_complete = on_headers_complete,
};

static int on_body(llhttp_t *p, const char *at, size_t len)
{
	struct http_exchange *x = p->data;

	x->body_seen += len;
	return buf_append(&x->body, at, len) < 0 ? -1 : 0;
}

static int on_message_complete(llhttp_t *p)
{
	((struct http_exchange *)p->data)->body_done = true;
	return 0;
}

/* For the body: then p->data is the exchange. Trailers are parsed and dropped. */
static const llhttp_settings_t body_settings = {
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

/*
 * Tabs at the end of a value become spaces: neither is a part of the value (RFC 9112, 5), and
 * llhttp accepts only spaces behind the two values that frame a message. The prescan has judged the
 * same bytes, and a value that llhttp reads in another way than the prescan is refused below.
 */
static void blank_tails(char *head, size_t len)
{
	char *end = head + len, *tab = memchr(head, '\t', len);

	while (tab) {
		char *rest = tab;

		while (rest < end && (*rest == ' ' || *rest == '\t'))
			rest++;
		if (rest < end && *rest == '\r')
			memset(tab, ' ', (size_t)(rest - tab));
		tab = memchr(rest, '\t', (size_t)(end - rest));
	}
}

/* Let llhttp parse the head, and compare what it found with what the prescan found. */
static int parse(struct http_conn *h, struct head *head, const char **ret_message)
{
	const struct prescan *scan = &h->scan;
	llhttp_t *p = &h->parser;

	llhttp_init(p, HTTP_REQUEST, &head_settings);
	p->data = head;

	char *text = h->in.data + h->off + scan->skipped;
	size_t len = scan->head_len - scan->skipped;

	blank_tails(text, len);
	llhttp_errno_t r = llhttp_execute(p, text, len);

	p->data = NULL;
	if (r == HPE_INVALID_METHOD) {
		*ret_message = "an unknown request method";
		return 501;
	}
	if (r != HPE_OK) {
		const char *reason = llhttp_get_error_reason(p);

		*ret_message = reason ? reason : "the request head is malformed";
		return 400;
	}

	uint64_t length = scan->has_length ? (uint64_t)scan->length : 0;

	/* For a request without a body llhttp has already reset the flags. */
	if (!head->complete || head->n != scan->n_headers || head->target.len != scan->target_len ||
	    p->http_major != 1 || p->http_minor != scan->minor ||
	    ((length > 0 || scan->chunked) && !(p->flags & F_CHUNKED) != !scan->chunked) ||
	    (!scan->chunked && p->content_length != length)) {
		*ret_message = "the request head is ambiguous";
		return 400;
	}
	return 0;
}

/* A cursor over the text of an exchange; its size was computed so that all of it fits. */
struct text {
	char *at, *end;
};

static char *put(struct text *t, const char *s, size_t len)
{
	char *to = t->at;

	assert((size_t)(t->end - to) > len);
	memcpy(to, s, len);
	to[len] = '\0';
	t->at += len + 1;
	return to;
}

static struct span trim(struct span s)
{
	while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s.at ? s : (struct span){ "", 0 };
}

/*
 * Names in lower case, each once: the values of one that is repeated are joined in their order, as
 * RFC 9110 (5.3) allows. The text of all of them is never longer than their lines were.
 */
static size_t put_headers(struct text *t, struct head *head, struct http_header *out)
{
	size_t n = 0;

	for (size_t i = 0; i < head->n; i++) {
		struct span name = head->name[i], value = trim(head->value[i]);

		if (!name.at)
			continue; /* was joined to an earlier one */

		char *lower = put(t, name.at, name.len);

		for (char *c = lower; *c; c++)
			*c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);

		char *text = put(t, value.at, value.len);

		for (size_t j = i + 1; j < head->n; j++) {
			struct span more = trim(head->value[j]);

			if (!head->name[j].at || head->name[j].len != name.len ||
			    strncasecmp(head->name[j].at, name.at, name.len) != 0)
				continue;
			head->name[j].at = NULL;
			t->at--;
			(void)put(t, ", ", 2);
			t->at--;
			(void)put(t, more.at, more.len);
		}
		out[n++] = (struct http_header){ lower, text, (size_t)(t->at - text) - 1 };
	}
	return n;
}

static int put_target(struct http_exchange *x, struct text *t, struct span raw,
		      const char **ret_message)
{
	struct http_request *req = &x->req;
	struct target target;

	if (target_split(raw.at, raw.len, &target, ret_message) < 0)
		return 400;
	if (target.path_len == 1 && target.path[0] == '*') {
		req->target = req->path = put(t, "*", 1);
		*ret_message = "the target '*' is for OPTIONS only";
		return strcmp(req->method, "OPTIONS") == 0 ? 0 : 400;
	}
	if (target.authority &&
	    (strlen(req->host) != target.authority_len ||
	     strncasecmp(req->host, target.authority, target.authority_len) != 0)) {
		*ret_message = "the host in the request target is not the one in Host";
		return 400;
	}

	/* An absolute form without a path asks for "/". */
	const char *path = target.path_len > 0 ? target.path : "/";
	size_t path_len = target.path_len > 0 ? target.path_len : 1;

	req->target = put(t, path, path_len);
	if (target.query) {
		t->at--;
		(void)put(t, "?", 1);
		t->at--;
		req->query = put(t, target.query, target.query_len);
	}

	if (x->h->config->raw_path) {
		req->path = put(t, path, path_len);
		return 0;
	}
	char *decoded = t->at;

	size_t own = x->h->config->own_path ? x->h->config->own_path(path, path_len) : path_len;

	assert((size_t)(t->end - decoded) > path_len);
	if (target_decode_path(path, path_len, own, decoded, ret_message) < 0)
		return 400;
	t->at += strlen(decoded) + 1;
	req->path = decoded;
	return 0;
}

/* Headers that are about the exchange itself. */
static int judge(struct http_exchange *x, const struct prescan *scan, const char **ret_message)
{
	const char *connection = http_header(x, "connection"), *expect = http_header(x, "expect");
	const char *host = http_header(x, "host");

	x->chunked_in = scan->chunked;
	x->length = scan->has_length ? scan->length : 0;
	x->has_body = scan->chunked || x->length > 0;
	x->body_done = !x->has_body;
	x->req.http10 = scan->minor == 0;
	x->req.keep_alive = !header_has_token(connection, "close") &&
			    (!x->req.http10 || header_has_token(connection, "keep-alive"));
	if (host) {
		x->req.host = host;
		if (!host_valid(host, strlen(host))) {
			*ret_message = "the Host header is malformed";
			return 400;
		}
	}
	if (expect && !x->req.http10) {
		if (strcasecmp(expect, "100-continue") != 0) {
			*ret_message = "an expectation other than 100-continue";
			return 417;
		}
		x->expects = true;
	}
	return 0;
}

int request_head(struct http_conn *h, const char **ret_message)
{
	struct head head = { .n = 0 };
	int r = parse(h, &head, ret_message);

	if (r != 0)
		return r;

	/* Headers take less than their lines; the target is kept as sent and decoded. */
	size_t room = h->scan.head_len + 2 * (head.target.len + 4);
	struct text t;
	struct http_exchange *x = exchange_new(h, head.n, room, &t.at);

	if (!x)
		return -ENOMEM;
	t.end = t.at + room;
	h->x = x;
	buf_init(&x->body, h->config->body_max);
	x->req.method = llhttp_method_name((llhttp_method_t)h->parser.method);
	x->is_head = strcmp(x->req.method, "HEAD") == 0;
	x->req.n_headers = put_headers(&t, &head, (struct http_header *)x->req.headers);
	r = judge(x, &h->scan, ret_message);

	/* The target is kept in any case, for the log. */
	const char *why = NULL;
	int bad_target = put_target(x, &t, head.target, &why);

	if (h->parser.method == HTTP_CONNECT) {
		*ret_message = "CONNECT is not served here";
		r = 501;
	} else if (r == 0 && bad_target != 0) {
		*ret_message = why;
		r = bad_target;
	}
	if (r == 0 && x->has_body) {
		chunks_init(&h->chunks, h->config->body_max);
		h->parser.settings = (void *)&body_settings;
		h->parser.data = x;
	}
	return r;
}

int request_body(struct http_conn *h, const char *data, size_t len, size_t *ret_used,
		 const char **ret_message)
{
	struct http_exchange *x = h->x;
	uint64_t left = (uint64_t)x->length - x->body_seen;
	bool done = false;

	if (x->chunked_in) {
		enum chunks_result r = chunks_feed(&h->chunks, data, len, ret_used);

		if (r == CHUNKS_BAD) {
			*ret_message = h->chunks.message;
			return h->chunks.status;
		}
		done = r == CHUNKS_DONE;
	} else {
		*ret_used = len < left ? len : (size_t)left;
		done = len >= left;
	}

	llhttp_errno_t e = llhttp_execute(&h->parser, data, *ret_used);

	if (x->body.err == -ENOMEM)
		return -ENOMEM;
	if (e != HPE_OK || x->body_done != done) {
		const char *reason = llhttp_get_error_reason(&h->parser);

		*ret_message = e != HPE_OK && reason ? reason :
						       "the framing of the body is ambiguous";
		return 400;
	}
	x->req.body = buf_str(&x->body);
	x->req.body_len = x->body.len;
	return 0;
}

const struct http_request *http_request(const struct http_exchange *x)
{
	return &x->req;
}

const char *http_header(const struct http_exchange *x, const char *lower_name)
{
	return header_find(&x->req, lower_name);
}

bool http_query(const struct http_exchange *x, const char *name, struct buf *out)
{
	const char *pos = x->req.query;
	_buf_ struct buf key = BUF_INIT(x->h->config->target_max);
	_buf_ struct buf value = BUF_INIT(x->h->config->target_max);
	bool found = false;
	int r;

	buf_clear(out);
	while ((r = query_next(&pos, &key, &value)) > 0) {
		if (strcmp(buf_str(&key), name) != 0)
			continue;
		if (found)
			return false; /* repeated, so it is ambiguous */
		found = true;
		(void)buf_append(out, value.data, value.len);
	}
	return r == 0 && found && !out->err && utf8_valid(buf_str(out), out->len);
}
