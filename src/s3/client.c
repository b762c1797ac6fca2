/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - See client.h.
 *
 * One libcurl multi handle, which keeps connections, and one easy handle for each attempt: a signature is good for
 * minutes and names the headers it covers, so an attempt that differs in its range or its time is another request.
 */
#include "s3/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"

#define CONNECT_S 15L
#define SILENT_S 60L /* a connection on which nothing moves for so long is dropped */
#define POLL_MS 500
#define FIRST_PAUSE_MS 200u

int s3_client_open(struct s3_client *c, struct err *e)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(c->multi = curl_multi_init()))
		return err_say(e, -ENOMEM, "libcurl does not start");
	return 0;
}

void s3_client_close(struct s3_client *c)
{
	if (c->multi)
		(void)curl_multi_cleanup(c->multi);
	c->multi = NULL;
}

/* ---- an attempt ------------------------------------------------------------------------------------------ */

static bool is_good(const struct s3_call *call)
{
	return call->status >= 200 && call->status < 300;
}

/* "Name: value" of a header line. NULL: it is another one. */
static const char *value_of(const char *line, size_t n, const char *name, char *to, size_t size)
{
	size_t len = strlen(name);

	if (n <= len || strncasecmp(line, name, len) != 0 || line[len] != ':')
		return NULL;
	line += len + 1;
	n -= len + 1;
	while (n > 0 && (*line == ' ' || *line == '\t'))
		line++, n--;
	while (n > 0 && strchr("\r\n \t", line[n - 1]))
		n--;
	if (n >= size)
		return NULL;
	memcpy(to, line, n);
	to[n] = '\0';
	return to;
}

static size_t on_header(char *line, size_t one, size_t n, void *arg)
{
	struct s3_call *call = arg;
	char text[S3_ETAG_MAX + 8];
	uint64_t size;

	(void)one;
	if (n > 5 && strncasecmp(line, "HTTP/", 5) == 0) {
		long status = 0;

		(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
		call->status = (int)status;
		/* It was asked for the rest, and sends all. */
		call->skip = status == 200 ? call->got : 0;
		return n;
	}
	if (value_of(line, n, "etag", text, sizeof(text)))
		s3_etag(text, strlen(text), call->etag);
	(void)value_of(line, n, "x-amz-bucket-region", call->region, sizeof(call->region));
	if (value_of(line, n, "content-length", text, sizeof(text)) &&
	    num_parse_u64(text, 0, INT64_MAX, &size, NULL) == 0 && is_good(call))
		call->size = call->status == 206 ? size + call->got : size;
	return n;
}

static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
	struct s3_call *call = arg;
	size_t dropped = call->skip < n ? (size_t)call->skip : n;

	(void)one;
	if (!call->sink || !is_good(call)) {
		/* Of an error only the beginning is looked at. */
		if (!is_good(call))
			(void)buf_append_some(&call->text, data, n);
		else if (buf_append(&call->text, data, n) < 0)
			return 0;
		return n;
	}
	call->skip -= dropped;
	if (n > dropped)
		call->stopped = call->sink(call->arg, data + dropped, n - dropped);
	if (call->stopped)
		return 0;
	call->got += n - dropped;
	return n;
}

static bool add_line(struct s3_call *call, const char *name, const char *value)
{
	_buf_ struct buf line = BUF_INIT(8u << 10);
	struct curl_slist *more;

	(void)buf_printf(&line, "%s: %s", name, value);
	more = line.err ? NULL : curl_slist_append(call->list, buf_str(&line));
	if (more)
		call->list = more;
	return more;
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
	int r = s3_hash(call->body ? call->body : "", call->len, hash);

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
	for (size_t i = 0; r == 0 && i < ask.n_headers; i++)
		r = add_line(call, ask.headers[i].name, ask.headers[i].value) ? 0 : -ENOMEM;
	if (r == 0 && !add_line(call, "Authorization", buf_str(&auth)))
		r = -ENOMEM;
	return r;
}

static void set_options(struct s3_call *call, const char *url)
{
	CURL *h = call->easy;

	(void)curl_easy_setopt(h, CURLOPT_URL, url);
	(void)curl_easy_setopt(h, CURLOPT_PRIVATE, call);
	(void)curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
	(void)curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	(void)curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
	(void)curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, SILENT_S);
	(void)curl_easy_setopt(h, CURLOPT_ERRORBUFFER, call->error);
	(void)curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
	(void)curl_easy_setopt(h, CURLOPT_HEADERDATA, call);
	(void)curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(h, CURLOPT_WRITEDATA, call);
	(void)curl_easy_setopt(h, CURLOPT_USERAGENT, "caisson/" CAISSON_VERSION);
	(void)curl_easy_setopt(h, CURLOPT_HTTPHEADER, call->list);
	if (call->client->ca) {
		struct curl_blob ca = { .data = call->client->ca->data,
					.len = call->client->ca->len,
					.flags = CURL_BLOB_NOCOPY };

		(void)curl_easy_setopt(h, CURLOPT_CAINFO_BLOB, &ca);
	}
	if (strcmp(call->method, "HEAD") == 0) {
		(void)curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
	} else if (strcmp(call->method, "PUT") == 0 || strcmp(call->method, "POST") == 0) {
		(void)curl_easy_setopt(h, CURLOPT_POST, 1L);
		(void)curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->len);
		(void)curl_easy_setopt(h, CURLOPT_POSTFIELDS, call->body ? call->body : "");
		(void)curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, call->method);
	} else {
		(void)curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, call->method);
	}
}

static void drop(struct s3_call *call)
{
	if (call->easy) {
		(void)curl_multi_remove_handle(call->client->multi, call->easy);
		curl_easy_cleanup(call->easy);
	}
	curl_slist_free_all(call->list);
	call->easy = NULL;
	call->list = NULL;
}

static int attempt(struct s3_call *call, struct err *e)
{
	const struct s3_site *s = &call->client->site;
	_buf_ struct buf host = BUF_INIT(512), path = BUF_INIT(S3_URL_MAX),
			 url = BUF_INIT(S3_URL_MAX);

	call->tried++;
	call->status = 0;
	call->again_ns = 0;
	call->error[0] = '\0';
	buf_clear(&call->text);
	s3_host(s, call->bucket, &host);
	s3_path(s, call->bucket, call->key, &path);
	(void)buf_printf(&url, "%s://%s%s%s%s", s->tls ? "https" : "http", buf_str(&host),
			 buf_str(&path), call->query ? "?" : "", call->query ? call->query : "");
	int r = url.err ? url.err : sign(call, buf_str(&host), buf_str(&path));

	/* Without the first libcurl waits for leave to send; the other is not for it to guess. */
	if (r == 0 && (!add_line(call, "Expect", "") || !add_line(call, "Accept", "*/*")))
		r = -ENOMEM;
	call->easy = r == 0 ? curl_easy_init() : NULL;
	if (call->easy) {
		set_options(call, buf_str(&url));
		if (curl_multi_add_handle(call->client->multi, call->easy) == CURLM_OK)
			return 0;
	}
	drop(call);
	return err_set(e, r < 0 ? r : -ENOMEM, "make a request");
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

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

static void conclude(struct s3_call *call, CURLcode code)
{
	unsigned int tries = call->client->tries ? call->client->tries : S3_TRIES;

	call->code = code;
	drop(call);
	if (worth_another(call) && call->tried < tries)
		call->again_ns = clock_now_ns() +
				 ((uint64_t)FIRST_PAUSE_MS << (call->tried - 1)) * CLOCK_NS_PER_MS;
	else
		call->over = true;
}

static void collect(struct s3_client *c)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(c->multi, &left))) {
		struct s3_call *call = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		CURLcode code = m->data.result;

		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&call);
		conclude(call, code);
	}
}

static bool is_cancelled(const struct s3_client *c)
{
	struct pollfd p = { .fd = c->cancel_fd };

	return c->cancel_fd >= 0 && poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP);
}

static int step(struct s3_client *c, struct err *e)
{
	struct curl_waitfd extra = { .fd = c->cancel_fd };
	int running;

	if (curl_multi_perform(c->multi, &running) != CURLM_OK)
		return err_say(e, -EIO, "libcurl gave up");
	collect(c);
	if (is_cancelled(c))
		return err_say(e, -ECANCELED, "nobody waits for it any more");
	/* Pauses end with the next round: it is never more than POLL_MS away. */
	(void)curl_multi_poll(c->multi, &extra, c->cancel_fd >= 0 ? 1 : 0, POLL_MS / 5, NULL);
	return 0;
}

/* What is to be tried again now. Return: how many are not over. */
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
		return err_say(e, call->stopped, "the answer could not be taken");
	if (call->code == CURLE_OK)
		return 0;
	return err_say(e, call->code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EHOSTUNREACH,
		       "%s can not be reached: %s", call->client->site.host,
		       call->error[0] ? call->error : curl_easy_strerror(call->code));
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
		drop(calls[i]);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = result(calls[i], e);
	return r;
}

void s3_call_free(struct s3_call *call)
{
	if (call->client)
		drop(call);
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
