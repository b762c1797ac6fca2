/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_head.c - Heads that are passed on: of requests with secrets in them, of answers without.
 *
 * Only values of headers are changed, and of requests only in headers that are for credentials, or
 * that the operator named (vault/vault.h): the values of others end up in logs and in answers. A
 * secret that a server sends back in a header becomes its placeholder again. Bodies pass unchanged
 * in both directions.
 */
#include <string.h>

#include "gate/bindings.h"
#include "gate/flow.h"
#include "gate/gate.h"
#include "gate/gate_sandbox.h"
#include "gate/inspect.h"
#include "net/http_header.h"

#define VALUE_MAX (128u << 10)

bool inspect_has_body(const struct http_request *q)
{
	const char *length = header_find(q, "content-length");

	return header_find(q, "transfer-encoding") || (length && length[strspn(length, "0")]);
}

/* One line in the ledger for each secret that this request used, or for each stray placeholder. */
static void report(const struct flow *f, enum gate_event_kind kind, const struct replacement *pairs,
		   const unsigned char *used, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (used[k])
			gate_sandbox_event(f->sandbox, kind, f->host, f->port,
					   bindings_name(&f->sandbox->bindings, pairs[k].from));
}

static bool is_passed_on(const struct http_header *h, const char *connection)
{
	return !header_is_hop(h->name, connection) && strcmp(h->name, "expect") != 0;
}

bool inspect_misplaced(struct inspect *i, const struct http_request *q, struct buf *why)
{
	struct replacement pairs[GATE_BINDS_MAX], strays[GATE_BINDS_MAX];
	const struct gate_sandbox *sb = i->flow->sandbox;
	const char *connection = header_find(q, "connection");
	size_t n_strays = 0;
	size_t n = bindings_replacements(&sb->bindings, &sb->g->vault,
					 i->secure ? i->flow->host : "", pairs, strays, &n_strays);

	for (size_t k = 0; n > 0 && k < q->n_headers; k++) {
		const struct http_header *h = &q->headers[k];
		_buf_ struct buf ignored = BUF_INIT(VALUE_MAX);
		struct replacement unfit[GATE_BINDS_MAX];
		unsigned char hit[GATE_BINDS_MAX] = { 0 };
		size_t m = 0, p = 0;

		if (!is_passed_on(h, connection))
			continue;
		for (size_t s = 0; s < n; s++)
			if (!vault_header(pairs[s].secret, h->name))
				unfit[m++] = pairs[s];
		if (placeholder_replace(h->value, unfit, m, hit, &ignored) == 0)
			continue;
		while (p < m - 1 && !hit[p])
			p++;
		(void)buf_printf(why,
				 "the secret %s is not for the header %s: it goes into the "
				 "usual headers for credentials, or into those that the "
				 "operator lists for it in the secrets file "
				 "(NAME@HOST[HEADER,...]=VALUE)",
				 bindings_name(&sb->bindings, unfit[p].from), h->name);
		return true;
	}
	return false;
}

/* The value of a header, with the secrets that it may carry. */
static void put_value(struct inspect *i, const struct http_header *h,
		      const struct replacement *pairs, unsigned char *used, size_t n)
{
	struct replacement fit[GATE_BINDS_MAX];
	unsigned char hit[GATE_BINDS_MAX] = { 0 };
	size_t from[GATE_BINDS_MAX], m = 0;

	for (size_t k = 0; k < n; k++)
		if (vault_header(pairs[k].secret, h->name)) {
			fit[m] = pairs[k];
			from[m++] = k;
		}
	(void)placeholder_replace(h->value, fit, m, hit, &i->relay.head);
	for (size_t k = 0; k < m; k++)
		used[from[k]] |= hit[k];
}

int inspect_head(struct inspect *i, const struct http_request *q, bool switches)
{
	struct replacement pairs[GATE_BINDS_MAX], strays[GATE_BINDS_MAX];
	unsigned char used[GATE_BINDS_MAX] = { 0 }, strayed[GATE_BINDS_MAX] = { 0 };
	const struct gate_sandbox *sb = i->flow->sandbox;
	size_t n_strays = 0;
	/* Without TLS every placeholder is a stray one: no host has the empty name. */
	size_t n = bindings_replacements(&sb->bindings, &sb->g->vault,
					 i->secure ? i->flow->host : "", pairs, strays, &n_strays);
	struct buf *out = &i->relay.head;
	const char *connection = header_find(q, "connection");

	(void)buf_printf(out, "%s %s HTTP/1.1\r\n", q->method, q->target);
	if (!q->host[0])
		(void)buf_printf(out, "host: %s\r\n", i->flow->host);
	for (size_t k = 0; k < q->n_headers; k++) {
		const struct http_header *h = &q->headers[k];
		_buf_ struct buf ignored = BUF_INIT(VALUE_MAX);

		if (!is_passed_on(h, connection))
			continue;
		(void)buf_printf(out, "%s: ", h->name);
		put_value(i, h, pairs, used, n);
		(void)placeholder_replace(h->value, strays, n_strays, strayed, &ignored);
		(void)buf_puts(out, "\r\n");
	}
	if (header_find(q, "transfer-encoding"))
		(void)buf_puts(out, "transfer-encoding: chunked\r\n");
	if (i->last)
		(void)buf_puts(out, "connection: close\r\n");
	if (switches)
		(void)buf_puts(out, "upgrade: websocket\r\nconnection: upgrade\r\n");
	(void)buf_puts(out, "\r\n");
	for (size_t k = 0; k < n; k++)
		if (used[k])
			(void)buf_append(&i->judged.secrets, pairs[k].from,
					 strlen(pairs[k].from) + 1);
	report(i->flow, GATE_SECRET_USED, pairs, used, n);
	report(i->flow, GATE_SECRET_STRAY, strays, strayed, n_strays);
	return out->err ? out->err : i->judged.secrets.err;
}

void inspect_add_headers(struct inspect *i)
{
	struct replacement pairs[GATE_BINDS_MAX], back[GATE_BINDS_MAX], strays[GATE_BINDS_MAX];
	const struct gate_sandbox *sb = i->flow->sandbox;
	const struct answer *a = &i->relay.answer;
	size_t n_strays = 0;
	size_t n = bindings_replacements(&sb->bindings, &sb->g->vault, i->flow->host, pairs, strays,
					 &n_strays);
	const char *connection = answer_header(a, "connection");

	for (size_t k = 0; k < n; k++)
		back[k] = (struct replacement){ pairs[k].to, pairs[k].from, NULL };
	for (size_t k = 0; k < a->n; k++) {
		const char *name = answer_name(a, k);
		_buf_ struct buf value = BUF_INIT(VALUE_MAX);

		if (header_is_hop(name, connection) || strcmp(name, "content-length") == 0 ||
		    strcmp(name, "date") == 0 || strcmp(name, "alt-svc") == 0)
			continue;
		if (placeholder_replace(answer_value(a, k), back, n, NULL, &value) >= 0)
			http_add_header(i->relay.x, name, buf_str(&value));
	}
}
