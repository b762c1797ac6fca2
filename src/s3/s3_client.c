/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3_client.c - Attempts, their signatures, and when another one is worth it.
 *
 * One multi handle of libcurl, which keeps connections. Each attempt is a request of its own: a
 * signature is good for minutes and names the headers that it covers, so an attempt that differs in
 * its range or its time has another one.
 */
#include "s3/s3_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "hash/hash.h"

#define SILENT_S 60L /* a connection on which nothing moves for so long is dropped */
#define POLL_MS 500
#define FIRST_PAUSE_MS 200u

int s3_client_open(struct s3_client *c, struct err *e)
{
	c->multi = http_call_multi();
	if (!c->multi)
		return err_say(e, -ENOMEM, "libcurl does not start");
	return 0;
}

/* ---- an attempt ---------------------------------------------------------------------------- */

static bool is_good(const struct s3_call *call)
{
	return call->status >= 200 && call->status < 300;
}

static void on_header(void *arg, const char *name, const char *value)
{
	struct s3_call *call = arg;
	uint64_t size;

	if (!name) {
		call->status = http_call_status(&call->http);
		/* The request was for the rest, and the server sends all. */
		call->skip = call->status == 200 ? call->got : 0;
	} else if (strcasecmp(name, "etag") == 0 && strlen(value) < S3_ETAG_MAX + 8) {
		s3_etag(value, strlen(value), call->etag);
	} else if (strcasecmp(name, "x-amz-bucket-region") == 0 &&
		   strlen(value) < sizeof(call->region)) {
		(void)snprintf(call->region, sizeof(call->region), "%s", value);
	} else if (strcasecmp(name, "content-length") == 0 && is_good(call) &&
		   num_parse_u64(value, 0, INT64_MAX, &size, NULL) == 0) {
		call->size = call->status == 206 ? size + call->got : size;
	}
}

static int on_body(void *arg, const char *data, size_t n)
{
	struct s3_call *call = arg;
	size_t dropped = call->skip < n ? (size_t)call->skip : n;

	/* Of an error only the beginning is looked at. */
	if (!is_good(call))
		(void)buf_append_some(&call->text, data, n);
	if (!is_good(call))
		return 0;
	if (!call->sink)
		return buf_append(&call->text, data, n);
	call->skip -= dropped;
	if (n > dropped)
		call->stopped = call->sink(call->arg, data + dropped, n - dropped);
	if (call->stopped)
		return -ECANCELED;
	call->got += n - dropped;
	return 0;
}

static void add_signed(struct s3_ask *ask, const char *name, const char *value)
{
	if (ask->n_headers < S3_HEADERS_MAX)
		ask->headers[ask->n_headers++] = (struct s3_header){ name, value };
}

/* Headers of this attempt, all of them signed. */
static int sign(struct s3_call *call, const char *host, const char *path)
{
	const struct s3_client *c = call->client;
	char stamp[S3_STAMP_MAX], hash[S3_HASH_HEX + 1], range[48], match[S3_ETAG_MAX + 3];
	_buf_ struct buf auth = BUF_INIT(8u << 10);
	struct s3_ask ask = { .method = call->method,
			      .host = host,
			      .path = path,
			      .query = call->query ? call->query : "",
			      .payload = hash,
			      .now = (int64_t)time(NULL) };
	int r = hash_sha256_hex(call->body ? call->body : "", call->len, hash) ? 0 : -EIO;

	s3_stamp(ask.now, stamp);
	add_signed(&ask, "x-amz-content-sha256", hash);
	add_signed(&ask, "x-amz-date", stamp);
	if (c->creds.token[0])
		add_signed(&ask, "x-amz-security-token", c->creds.token);
	for (size_t i = 0; i < call->n_headers; i++)
		add_signed(&ask, call->headers[i].name, call->headers[i].value);
	if (call->got > 0) {
		(void)snprintf(range, sizeof(range), "bytes=%llu-", (unsigned long long)call->got);
		add_signed(&ask, "range", range);
		(void)snprintf(match, sizeof(match), "\"%s\"", call->etag);
		if (call->etag[0] && call->n_headers == 0)
			add_signed(&ask, "if-match", match);
	}
	if (r == 0)
		r = s3_sign(&c->creds, c->site.region, &ask, &auth);
	for (size_t i = 0; i < ask.n_headers; i++)
		http_call_header(&call->http, "%s: %s", ask.headers[i].name, ask.headers[i].value);
	http_call_header(&call->http, "Authorization: %s", buf_str(&auth));
	return r;
}

static void conclude(void *arg, CURLcode code);

static void prepare(struct s3_call *call, const char *url)
{
	const struct http_call_options o = {
		.ca = call->client->ca, .http1 = true, .path_as_is = true, .silent_s = SILENT_S
	};

	call->http.on_header = on_header;
	call->http.on_body = on_body;
	call->http.on_end = conclude;
	call->http.arg = call;
	http_call_begin(&call->http, &o, call->method, url);
	http_call_header(&call->http, "Accept: */*"); /* not for libcurl to guess */
	if (strcmp(call->method, "PUT") == 0 || strcmp(call->method, "POST") == 0)
		http_call_body(&call->http, call->body ? call->body : "", call->len);
}

static int attempt(struct s3_call *call, struct err *e)
{
	const struct s3_site *s = &call->client->site;
	_buf_ struct buf host = BUF_INIT(512), path = BUF_INIT(S3_URL_MAX),
			 url = BUF_INIT(S3_URL_MAX);

	call->tried++;
	call->status = 0;
	call->again_ns = 0;
	buf_clear(&call->text);
	s3_host(s, call->bucket, &host);
	s3_path(s, call->bucket, call->key, &path);
	(void)buf_printf(&url, "%s://%s%s%s%s", s->tls ? "https" : "http", buf_str(&host),
			 buf_str(&path), call->query ? "?" : "", call->query ? call->query : "");
	prepare(call, buf_str(&url));
	int r = url.err ? url.err : sign(call, buf_str(&host), buf_str(&path));

	if (r == 0)
		r = http_call_start(&call->http, call->client->multi);
	if (r == 0)
		return 0;
	http_call_stop(&call->http);
	return err_set(e, r, "make a request");
}

/* ---- all of them --------------------------------------------------------------------------- */

static bool worth_another(const struct s3_call *call)
{
	if (call->stopped)
		return false;
	if (call->code != CURLE_OK)
		return call->code != CURLE_PEER_FAILED_VERIFICATION &&
		       call->code != CURLE_URL_MALFORMAT && call->code != CURLE_SSL_CACERT_BADFILE;
	return call->status == 408 || call->status == 429 ||
	       (call->status >= 500 && call->status != 501);
}

static void conclude(void *arg, CURLcode code)
{
	struct s3_call *call = arg;
	unsigned int tries = call->client->tries ? call->client->tries : S3_TRIES;

	call->code = code;
	if (worth_another(call) && call->tried < tries)
		call->again_ns = clock_now_ns() +
				 ((uint64_t)FIRST_PAUSE_MS << (call->tried - 1)) * CLOCK_NS_PER_MS;
	else
		call->over = true;
}

static bool is_cancelled(const struct s3_client *c)
{
	struct pollfd p = { .fd = c->cancel_fd };

	return c->cancel_fd >= 0 && poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP);
}

static int step(struct s3_client *c, struct err *e)
{
	struct curl_waitfd extra = { .fd = c->cancel_fd };

	if (!http_call_step(c->multi))
		return err_say(e, -EIO, "libcurl gave up");
	if (is_cancelled(c))
		return err_say(e, -ECANCELED, "cancelled: no request waits for it");
	/* Pauses end with the next round: it is never more than POLL_MS away. */
	(void)curl_multi_poll(c->multi, &extra, c->cancel_fd >= 0 ? 1 : 0, POLL_MS / 5, NULL);
	return 0;
}

/* Begin the attempts that are due. @ret_left: how many calls are not over. */
static int revive(struct s3_call **calls, size_t n, size_t *ret_left, struct err *e)
{
	uint64_t now = clock_now_ns();

	*ret_left = 0;
	for (size_t i = 0; i < n; i++) {
		if (calls[i]->over)
			continue;
		(*ret_left)++;
		if (calls[i]->again_ns && now >= calls[i]->again_ns && attempt(calls[i], e) < 0)
			return e->code;
	}
	return 0;
}

static int result(const struct s3_call *call, struct err *e)
{
	if (call->stopped)
		return err_say(e, call->stopped, "the answer could not be processed");
	if (call->code == CURLE_OK)
		return 0;
	return err_say(e, call->code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EHOSTUNREACH,
		       "%s cannot be reached: %s", call->client->site.host,
		       http_call_why(&call->http, call->code));
}

int s3_run(struct s3_client *c, struct s3_call **calls, size_t n, struct err *e)
{
	size_t left = n;
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		calls[i]->client = c;
		calls[i]->over = false;
		calls[i]->text.max = S3_TEXT_MAX;
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		r = attempt(calls[i], e);
	while (r == 0 && left > 0) {
		r = step(c, e);
		if (r == 0)
			r = revive(calls, n, &left, e);
	}
	for (size_t i = 0; i < n; i++)
		http_call_stop(&calls[i]->http);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = result(calls[i], e);
	return r;
}

void s3_call_free(struct s3_call *call)
{
	http_call_free(&call->http);
	buf_free(&call->text);
}

int s3_check(const struct s3_call *call, struct err *e)
{
	char code[64], message[200];
	int errnum = call->status == 404                        ? -ENOENT :
		     call->status == 403 || call->status == 401 ? -EACCES :
		     call->status == 412 || call->status == 409 ? -ESTALE :
		     call->status == 501                        ? -EOPNOTSUPP :
								  -EIO;

	if (is_good(call))
		return 0;
	s3_xml_error(buf_str(&call->text), call->text.len, code, message);
	if (call->status >= 300 && call->status < 400 && call->region[0])
		return err_say(e, -EINVAL, "the bucket '%s' is in the region %s; name that",
			       call->bucket, call->region);
	return err_say(e, errnum, "%s answers %d%s%s%s%s", call->client->site.host, call->status,
		       code[0] ? " " : "", code, message[0] ? ": " : "", message);
}
