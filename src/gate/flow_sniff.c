/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow_sniff.c - The first bytes of a flow, judged; and the path that the flow takes.
 *
 * The gate looks at the first bytes with MSG_PEEK; SO_RCVLOWAT makes the Linux kernel report only
 * more bytes than the gate has seen.
 *
 * One kind of first bytes goes on before it is judged. A word without the end of its line can be
 * the method of a request, or a whole message of a protocol whose client now waits. Where another
 * protocol is allowed the word goes on, and the gate remembers it and judges the next bytes
 * together with it, until the bytes prove to be another protocol. If they prove to be a request, it
 * is refused: no server has received a whole line of it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "gate/flow.h"
#include "gate/gate_sandbox.h"
#include "gate/inspect.h"

/* ---- the path ------------------------------------------------------------------------------ */

/*
 * On the ports of HTTP and TLS the client sends first. On other ports a server may send first, as
 * with SSH; but not for a host whose requests the gate reads.
 */
bool flow_waits(const struct flow *f)
{
	return f->port == 80 || f->port == 443 ||
	       gate_sandbox_inspects(f->sandbox, f->host, f->port);
}

/* Port 80 is for HTTP, and rules for requests hold for HTTP alone. Other ports carry any
 * protocol. */
bool flow_needs_http(const struct flow *f)
{
	return f->port == 80 || gate_sandbox_has_rules(f->sandbox, f->host, f->port);
}

/* Plain HTTP is always read: a connection that is kept open carries many requests, and each of them
 * names a host. */
const struct flow_path *flow_choose(const struct flow *f)
{
	if (f->sniff.kind == SNIFF_TLS && gate_sandbox_inspects(f->sandbox, f->host, f->port))
		return &inspect_path;
	return f->sniff.kind == SNIFF_HTTP ? &inspect_path : &splice_path;
}

/* ---- the first bytes ----------------------------------------------------------------------- */

static bool contradicts(const struct flow *f)
{
	const struct sniff *h = &f->sniff;
	size_t n = strlen(h->host);

	if (n == 0)
		return false;
	if (h->host[n - 1] == '.')
		n--;
	if (strlen(f->host) != n || memcmp(f->host, h->host, n) != 0)
		return true;
	return h->port && h->port != f->port;
}

static void set_lowat(struct flow *f, int n)
{
	(void)setsockopt(f->inner.fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n));
}

/* So many bytes may go on; the path that moves them looks at the next ones. */
static void let(struct flow *f, size_t n)
{
	f->may = n;
	f->seen = 0;
	set_lowat(f, 1);
	if (!f->path) {
		loop_del(&f->inner);
		flow_join(f);
	}
}

static void judge(struct flow *f)
{
	char why[GATE_REASON_MAX];

	if (f->doom) {
		flow_refuse(f, f->doom);
	} else if (f->sniff.kind == SNIFF_BAD) {
		flow_refuse(f, f->sniff.why);
	} else if (contradicts(f)) {
		(void)snprintf(why, sizeof(why), "%s names another host: %.50s",
			       f->sniff.kind == SNIFF_TLS ? "the TLS server name" : "the HTTP host",
			       f->sniff.host);
		flow_refuse(f, why);
	} else if (f->sniff.kind != SNIFF_HTTP && f->port == 80) {
		flow_refuse(f, "port 80 is for plain HTTP, and this is another protocol");
	} else if (f->sniff.kind == SNIFF_OTHER && flow_needs_http(f)) {
		flow_refuse(f, "only some HTTP requests to this host are allowed");
	} else {
		f->judged = true;
		buf_free(&f->passed);
		let(f, SIZE_MAX);
	}
}

static void refuse_bytes(struct flow *f, const char *why)
{
	f->sniff.kind = SNIFF_BAD;
	f->sniff.why = why;
	judge(f);
}

/* The bytes are not enough for a verdict. @p: all bytes of the client; @n: how many of them have
 * not gone on yet. */
static void wait_for_more(struct flow *f, const uint8_t *p, size_t n)
{
	if (f->sniff.like == SNIFF_OTHER && !flow_needs_http(f)) {
		if (buf_append(&f->passed, p + f->passed.len, n) < 0)
			flow_end(f, "the gate is out of memory");
		else
			let(f, n);
	} else if (f->sniff.like == SNIFF_OTHER && f->sniff.odd) {
		f->sniff.kind = SNIFF_OTHER;
		judge(f);
	} else if (n > f->seen) {
		f->seen = n;
		set_lowat(f, (int)n + 1); /* wait for more than this, or for the end */
	} else {
		refuse_bytes(f, "its first message is cut off");
	}
}

void flow_look(struct flow *f)
{
	static uint8_t peeked[SNIFF_MAX];
	size_t passed = f->passed.len; /* below the maximum, beyond which sniff_bytes() refuses */
	ssize_t n = recv(f->inner.fd, peeked + passed, sizeof(peeked) - passed,
			 MSG_PEEK | MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN)
			flow_end(f, "the client broke the connection off");
		return;
	}
	if (n == 0 && f->seen == 0 && flow_needs_http(f)) {
		flow_end(f, NULL); /* connected, and closed without a byte */
		return;
	}
	memcpy(peeked, buf_str(&f->passed), passed);
	sniff_bytes(peeked, passed + (size_t)n, &f->sniff);
	if (n == 0) {
		f->sniff.kind = SNIFF_OTHER; /* no more bytes come */
	} else if (passed > 0 && sniff_like(&f->sniff) == SNIFF_HTTP) {
		refuse_bytes(f, "the first line of its HTTP request came in pieces");
		return;
	} else if (f->sniff.kind == SNIFF_MORE) {
		wait_for_more(f, peeked, (size_t)n);
		return;
	}
	judge(f);
}

void flow_sniff_late(struct timer *t)
{
	struct flow *f = t->arg;

	if (f->may > 0)
		return; /* the client has sent, and waits for the server */
	if (f->seen == 0) {
		flow_end(f, "the client sent nothing");
		return;
	}
	refuse_bytes(f, "its first message did not come in time");
}
