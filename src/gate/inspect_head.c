/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_head.c - Heads as they go on: of requests with secrets in them, of answers without.
 *
 * Only values of headers are changed, and of requests only those headers that are for credentials,
 * or that the operator named (vault/vault.h): others end up in logs and in answers. A secret that a
 * server sends back in a header becomes its placeholder again; bodies pass as they are in both
 * directions.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gate/binds.h"
#include "gate/box.h"
#include "gate/flow.h"
#include "gate/gate.h"
#include "gate/inspect.h"
#include "gate/swap.h"

#define VALUE_MAX (128u << 10)

static const char *header(const struct http_request *q, const char *name)
{
	for (size_t i = 0; i < q->n_headers; i++)
		if (strcmp(q->headers[i].name, name) == 0)
			return q->headers[i].value;
	return NULL;
}

/* Whether a comma-separated list (NULL: none) has this word, in any case. */
static bool has_word(const char *list, const char *word)
{
	size_t want = strlen(word);

	for (const char *at = list ? list : ""; *at;) {
		at += strspn(at, ", \t");
		size_t len = strcspn(at, ", \t");

		if (len == want && strncasecmp(at, word, want) == 0)
			return true;
		at += len;
	}
	return false;
}

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

/*
 * Between two neighbours only (RFC 9110, 7.6.1): what Connection names, and what is said to
 * proxies, since a word for one (Proxy-Authorization) is not for the server. But not what says whom
 * the request is for and where it ends: without these the server would read another request than
 * the one that was judged, or two.
 */
static bool is_hop(const char *name, const char *connection)
{
	static const char *const hop[] = { "connection", "keep-alive",        "te", "trailer",
					   "upgrade",    "transfer-encoding", NULL };
	static const char *const end_to_end[] = { "host", "content-length", NULL };

	return !is_one_of(name, end_to_end) &&
	       (is_one_of(name, hop) || strncmp(name, "proxy-", 6) == 0 ||
		has_word(connection, name));
}

bool inspect_has_body(const struct http_request *q)
{
	const char *length = header(q, "content-length");

	return header(q, "transfer-encoding") || (length && length[strspn(length, "0")]);
}

bool inspect_switches(const struct inspect *i, const struct http_request *q)
{
	const char *to = header(q, "upgrade");

	(void)i;
	return to && strcasecmp(to, "websocket") == 0 && !q->http10 &&
	       strcmp(q->method, "GET") == 0 && has_word(header(q, "connection"), "upgrade") &&
	       !header(q, "transfer-encoding") && !header(q, "content-length");
}

/* One line of the ledger for each secret that this request used, and for each that it must not. */
static void tell(struct inspect *i, enum gate_event_kind kind, const struct swap *pairs,
		 const unsigned char *used, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		struct gate_event ev = { .kind = kind, .port = i->flow->port };

		if (!used[k])
			continue;
		(void)snprintf(ev.host, sizeof(ev.host), "%s", i->flow->host);
		(void)snprintf(ev.why, sizeof(ev.why), "%s",
			       binds_name(&i->flow->box->binds, pairs[k].from));
		box_tell(i->flow->box, &ev);
	}
}

static bool goes_on(const struct http_header *h, const char *connection)
{
	return !is_hop(h->name, connection) && strcmp(h->name, "expect") != 0;
}

bool inspect_misplaced(struct inspect *i, const struct http_request *q, struct buf *why)
{
	struct swap pairs[GATE_BINDS_MAX], strays[GATE_BINDS_MAX];
	const struct box *b = i->flow->box;
	const char *connection = header(q, "connection");
	size_t n_strays = 0;
	size_t n = binds_swaps(&b->binds, &b->g->vault, i->secure ? i->flow->host : "", pairs,
			       strays, &n_strays);

	for (size_t k = 0; n > 0 && k < q->n_headers; k++) {
		const struct http_header *h = &q->headers[k];
		_buf_ struct buf ignored = BUF_INIT(VALUE_MAX);
		struct swap unfit[GATE_BINDS_MAX];
		unsigned char hit[GATE_BINDS_MAX] = { 0 };
		size_t m = 0, p = 0;

		if (!goes_on(h, connection))
			continue;
		for (size_t s = 0; s < n; s++)
			if (!vault_header(pairs[s].secret, h->name))
				unfit[m++] = pairs[s];
		if (swap_header(h->value, unfit, m, hit, &ignored) == 0)
			continue;
		while (p < m - 1 && !hit[p])
			p++;
		(void)buf_printf(why,
				 "the secret %s is not for the header %s: it goes into the "
				 "usual headers for credentials, or into those that the "
				 "operator lists for it in the secrets file "
				 "(NAME@HOST[HEADER,...]=VALUE)",
				 binds_name(&b->binds, unfit[p].from), h->name);
		return true;
	}
	return false;
}

/* The value of a header, with those secrets in it that it may carry. */
static void put_value(struct inspect *i, const struct http_header *h, const struct swap *pairs,
		      unsigned char *used, size_t n)
{
	struct swap fit[GATE_BINDS_MAX];
	unsigned char hit[GATE_BINDS_MAX] = { 0 };
	size_t from[GATE_BINDS_MAX], m = 0;

	for (size_t k = 0; k < n; k++)
		if (vault_header(pairs[k].secret, h->name)) {
			fit[m] = pairs[k];
			from[m++] = k;
		}
	(void)swap_header(h->value, fit, m, hit, &i->head);
	for (size_t k = 0; k < m; k++)
		used[from[k]] |= hit[k];
}

int inspect_head(struct inspect *i, const struct http_request *q)
{
	struct swap pairs[GATE_BINDS_MAX], strays[GATE_BINDS_MAX];
	unsigned char used[GATE_BINDS_MAX] = { 0 }, strayed[GATE_BINDS_MAX] = { 0 };
	const struct box *b = i->flow->box;
	size_t n_strays = 0;
	/* In plain every placeholder is one that has strayed: the empty name is no host's. */
	size_t n = binds_swaps(&b->binds, &b->g->vault, i->secure ? i->flow->host : "", pairs,
			       strays, &n_strays);
	const char *connection = header(q, "connection");

	(void)buf_printf(&i->head, "%s %s HTTP/1.1\r\n", q->method, q->target);
	if (!q->host[0])
		(void)buf_printf(&i->head, "host: %s\r\n", i->flow->host);
	for (size_t k = 0; k < q->n_headers; k++) {
		const struct http_header *h = &q->headers[k];
		_buf_ struct buf ignored = BUF_INIT(VALUE_MAX);

		if (!goes_on(h, connection))
			continue;
		(void)buf_printf(&i->head, "%s: ", h->name);
		put_value(i, h, pairs, used, n);
		(void)swap_header(h->value, strays, n_strays, strayed, &ignored);
		(void)buf_puts(&i->head, "\r\n");
	}
	if (header(q, "transfer-encoding"))
		(void)buf_puts(&i->head, "transfer-encoding: chunked\r\n");
	if (i->last)
		(void)buf_puts(&i->head, "connection: close\r\n");
	if (i->switches)
		(void)buf_puts(&i->head, "upgrade: websocket\r\nconnection: upgrade\r\n");
	(void)buf_puts(&i->head, "\r\n");
	for (size_t k = 0; k < n; k++)
		if (used[k])
			(void)buf_append(&i->asked.secrets, pairs[k].from,
					 strlen(pairs[k].from) + 1);
	tell(i, GATE_SECRET_USED, pairs, used, n);
	tell(i, GATE_SECRET_STRAY, strays, strayed, n_strays);
	return i->head.err ? i->head.err : i->asked.secrets.err;
}

void inspect_answer(struct inspect *i)
{
	struct swap pairs[GATE_BINDS_MAX], back[GATE_BINDS_MAX], strays[GATE_BINDS_MAX];
	const struct box *b = i->flow->box;
	const struct answer *a = &i->answer;
	size_t n_strays = 0;
	size_t n = binds_swaps(&b->binds, &b->g->vault, i->flow->host, pairs, strays, &n_strays);
	const char *connection = answer_header(a, "connection");

	for (size_t k = 0; k < n; k++)
		back[k] = (struct swap){ pairs[k].to, pairs[k].from, NULL };
	for (size_t k = 0; k < a->n; k++) {
		const char *name = answer_name(a, k);
		_buf_ struct buf value = BUF_INIT(VALUE_MAX);

		if (is_hop(name, connection) || strcmp(name, "content-length") == 0 ||
		    strcmp(name, "date") == 0 || strcmp(name, "alt-svc") == 0)
			continue;
		if (swap_header(answer_value(a, k), back, n, NULL, &value) >= 0)
			http_add_header(i->x, name, buf_str(&value));
	}
}
