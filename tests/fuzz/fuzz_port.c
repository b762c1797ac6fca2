/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_port.c - Answers of a hostile service: parsed, and rewritten for the client.
 *
 * The first byte chooses how the rest is cut, and two bits of the second whether it answers a HEAD
 * and whether a switch was requested. The outcome is the same with any cuts. The bytes for the
 * client include none that could end a line, no cookie that is not marked and confined, and no more
 * of a body than was announced. The same bytes are also read as names of ports and as paths, in
 * which no token may be left.
 */
#include "base/buf.h"
#include "front/ports/port_head.h"
#include "fuzz.h"
#include "net/http_relay.h"

#define PATH "; Path=/v1/sandboxes/box/ports/80"

struct told {
	struct answer a;
	int end, status;
	unsigned int heads;
	size_t n_headers;
	uint64_t body, sum;
	size_t used;
};

static void check_header(const struct port_way *w, const struct answer *a, size_t i)
{
	_buf_ struct buf out = BUF_INIT(ANSWER_HEAD_MAX + PORT_PREFIX_MAX);
	const char *name = answer_name(a, i), *value = answer_value(a, i);

	for (const char *c = name; *c; c++)
		require((unsigned char)*c > ' ' && (unsigned char)*c < 0x7f && *c != ':');
	if (!port_answer_header(w, answer_header(a, "connection"), name, value, &out))
		return;
	for (const char *c = buf_str(&out); *c; c++)
		require(((unsigned char)*c >= ' ' || *c == '\t') && *c != 0x7f);
	require(strlen(buf_str(&out)) == out.len && out.len <= strlen(value) + PORT_PREFIX_MAX);
	require(strcmp(name, "content-length") != 0 && strcmp(name, "transfer-encoding") != 0 &&
		strcmp(name, "connection") != 0);
	if (strcmp(name, "set-cookie") == 0) {
		const char *path = NULL;

		for (const char *at = strstr(buf_str(&out), "; Path="); at;
		     at = strstr(at + 1, "; Path="))
			path = at;
		require(strncmp(buf_str(&out), PORT_COOKIE, strlen(PORT_COOKIE)) == 0);
		require(path && strncmp(path, PATH, strlen(PATH)) == 0);
	}
}

static void on_head(struct answer *a)
{
	struct told *t = a->arg;
	struct port_way w = { .peer = "", .proto = "" };

	port_way_set(&w, "box", 80, NULL);
	t->heads++;
	t->status = a->status;
	t->n_headers = a->n;
	require(a->n <= ANSWER_HEADERS_MAX && a->seen <= ANSWER_HEAD_MAX);
	require(a->status == 101 ? a->may_switch : a->status >= 200 && a->status <= 599);
	for (size_t i = 0; i < a->n; i++)
		check_header(&w, a, i);
}

static void on_body(struct answer *a, const char *data, size_t len)
{
	struct told *t = a->arg;

	require(t->heads == 1 && len > 0 && !a->to_head && a->status != 101);
	for (size_t i = 0; i < len; i++)
		t->sum = t->sum * 31 + (unsigned char)data[i];
	t->body += len;
	require(!a->has_length || t->body <= a->length);
}

static const struct answer_ops ops = { on_head, on_body };

static void tell(struct told *t, const char *data, size_t len, size_t step, unsigned int how)
{
	*t = (struct told){ 0 };
	answer_init(&t->a, how & 1, how & 2, &ops, t);
	for (size_t at = 0; at < len && t->end == 0; at += step) {
		size_t n = len - at < step ? len - at : step, used = 0;

		t->end = answer_feed(&t->a, data + at, n, &used);
		t->used += t->end == 1 ? used : n;
		require(used <= n);
	}
	if (t->end == 0)
		t->end = answer_eof(&t->a);
	require(t->end != 0 && t->heads <= 1 && (t->end != 1 || t->heads == 1));
	require((t->end < 0) == (t->a.why != NULL));
	answer_free(&t->a);
}

static void run_names(const char *data, size_t len)
{
	char *text = malloc(len + 1), *out = malloc(len + 1), token[PORT_TOKEN_LEN + 1];
	unsigned int n;

	require(text && out);
	memcpy(text, data, len);
	text[len] = '\0';
	if (port_name_parse(text, &n, token))
		require(n >= 1 && n <= 65535 && (!token[0] || strlen(token) == PORT_TOKEN_LEN));
	port_hide(text, out, len + 1);
	require(strlen(out) <= strlen(text));
	for (const char *at = strchr(out, '~'); at; at = strchr(at + 1, '~'))
		require(strspn(at + 1, "0123456789abcdefABCDEF") < PORT_HIDE_MIN);
	const char *inner = port_inner_target(text);

	require(inner[0] == '/');
	free(text);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct told whole, cut;

	if (size < 2)
		return 0;
	const char *text = (const char *)data + 2;

	tell(&whole, text, size - 2, size, data[1]);
	tell(&cut, text, size - 2, data[0] ? data[0] : 1, data[1]);
	require(whole.end == cut.end && whole.heads == cut.heads && whole.status == cut.status &&
		whole.n_headers == cut.n_headers);
	/* An answer that breaks off may have been reported to a different extent before. */
	if (whole.end == 1)
		require(whole.body == cut.body && whole.sum == cut.sum && whole.used == cut.used);
	run_names(text, size - 2);
	return 0;
}
