/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_call.c - An easy handle of libcurl: its options, its callbacks, its end.
 *
 * The callbacks of libcurl are here, once: they cut header lines into names and values, and
 * translate the results of our functions. http_call_header() and the others note a failure to
 * allocate in q->failed instead of returning it, so a caller describes a request without branches.
 */
#include "http_client/http_call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

#define CONNECT_S 15L
#define LINE_MAX_BYTES (1u << 20) /* of a header that is sent: tokens may be long */
#define ANSWER_LINE_MAX 4096u     /* of one that is looked at */
#define UPLOAD_BUFFER (256L << 10)

/* ---- answers ------------------------------------------------------------------------------- */

static size_t header_callback(char *data, size_t one, size_t n, void *arg)
{
	struct http_call *q = arg;
	char line[ANSWER_LINE_MAX], *value;
	size_t len = n;

	(void)one;
	while (len > 0 && strchr(" \t\r\n", data[len - 1]))
		len--;
	if (!q->on_header || len >= sizeof(line))
		return n; /* not one that we could use */
	memcpy(line, data, len);
	line[len] = '\0';
	value = strchr(line, ':');
	if (strncasecmp(line, "HTTP/", 5) == 0) {
		q->on_header(q->arg, NULL, line);
	} else if (len == 0) {
		q->on_header(q->arg, "", "");
	} else if (value) {
		*value++ = '\0';
		q->on_header(q->arg, line, value + strspn(value, " \t"));
	}
	return n;
}

static size_t body_callback(char *data, size_t one, size_t n, void *arg)
{
	struct http_call *q = arg;
	int r = q->on_body ? q->on_body(q->arg, data, n) : 0;

	(void)one;
	if (r == HTTP_PAUSE)
		return CURL_WRITEFUNC_PAUSE;
	return r == 0 ? n : n + 1; /* any other number than n gives up */
}

static size_t upload_callback(char *data, size_t one, size_t n, void *arg)
{
	struct http_call *q = arg;
	int64_t r = q->source(q->arg, data, one * n);

	return r < 0 ? CURL_READFUNC_ABORT : (size_t)r;
}

/* ---- requests ------------------------------------------------------------------------------ */

static void drop_headers(struct http_call *q)
{
	if (q->easy)
		(void)curl_easy_setopt(q->easy, CURLOPT_HTTPHEADER, NULL);
	for (const struct curl_slist *h = q->headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(q->headers);
	q->headers = NULL;
}

static void set_server(CURL *h, const struct http_call_options *o)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	(void)curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	(void)curl_easy_setopt(h, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
	(void)curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, o->connect_s ? o->connect_s : CONNECT_S);
	if (o->socket)
		(void)curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, o->socket);
	if (o->direct)
		(void)curl_easy_setopt(h, CURLOPT_PROXY, "");
	if (o->ca_file)
		(void)curl_easy_setopt(h, CURLOPT_CAINFO, o->ca_file);
	if (o->ca) {
		struct curl_blob ca = { o->ca->data, o->ca->len, CURL_BLOB_NOCOPY };

		(void)curl_easy_setopt(h, CURLOPT_CAINFO_BLOB, &ca);
	}
	if (o->insecure) {
		(void)curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 0L);
		(void)curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (o->http1)
		(void)curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	if (o->path_as_is)
		(void)curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
	if (o->keepalive)
		(void)curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
	if (o->silent_s) {
		(void)curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
		(void)curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, o->silent_s);
	}
	if (o->buffer)
		(void)curl_easy_setopt(h, CURLOPT_BUFFERSIZE, o->buffer);
}

void http_call_begin(struct http_call *q, const struct http_call_options *o, const char *method,
		     const char *url)
{
	http_call_stop(q);
	q->error[0] = '\0';
	if (q->easy)
		curl_easy_reset(q->easy);
	else
		q->easy = curl_easy_init();
	q->failed = !q->easy;
	if (q->failed)
		return;
	q->failed = curl_easy_setopt(q->easy, CURLOPT_URL, url) != CURLE_OK;
	(void)curl_easy_setopt(q->easy, CURLOPT_PRIVATE, q);
	(void)curl_easy_setopt(q->easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(q->easy, CURLOPT_USERAGENT, "caisson/" CAISSON_VERSION);
	(void)curl_easy_setopt(q->easy, CURLOPT_ERRORBUFFER, q->error);
	(void)curl_easy_setopt(q->easy, CURLOPT_HEADERFUNCTION, header_callback);
	(void)curl_easy_setopt(q->easy, CURLOPT_HEADERDATA, q);
	(void)curl_easy_setopt(q->easy, CURLOPT_WRITEFUNCTION, body_callback);
	(void)curl_easy_setopt(q->easy, CURLOPT_WRITEDATA, q);
	set_server(q->easy, o);
	if (strcmp(method, "HEAD") == 0)
		(void)curl_easy_setopt(q->easy, CURLOPT_NOBODY, 1L);
	else
		(void)curl_easy_setopt(q->easy, CURLOPT_CUSTOMREQUEST, method);
	/* Without it libcurl waits for leave to send a body: a round trip for nothing. */
	q->headers = curl_slist_append(NULL, "Expect:");
	q->failed = q->failed || !q->headers;
}

void http_call_header(struct http_call *q, const char *fmt, ...)
{
	_secret_ struct buf line = BUF_INIT(LINE_MAX_BYTES);
	struct curl_slist *more = NULL;
	va_list ap;

	va_start(ap, fmt);
	(void)buf_vprintf(&line, fmt, ap);
	va_end(ap);
	if (!line.err) {
		size_t name = strcspn(line.data, ":");

		/* libcurl takes "Name:" for: leave it out, and "Name;" for an empty value. */
		if (line.data[name] &&
		    line.data[name + 1 + strspn(line.data + name + 1, " ")] == '\0')
			memcpy(line.data + name, ";", 2);
		more = curl_slist_append(q->headers, line.data);
	}
	if (more)
		q->headers = more;
	else
		q->failed = true;
}

void http_call_body(struct http_call *q, const void *data, size_t len)
{
	if (q->failed)
		return;
	(void)curl_easy_setopt(q->easy, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(q->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	(void)curl_easy_setopt(q->easy, CURLOPT_POSTFIELDS, data);
}

void http_call_upload(struct http_call *q, int64_t size)
{
	if (q->failed)
		return;
	(void)curl_easy_setopt(q->easy, CURLOPT_UPLOAD, 1L);
	(void)curl_easy_setopt(q->easy, CURLOPT_READFUNCTION, upload_callback);
	(void)curl_easy_setopt(q->easy, CURLOPT_READDATA, q);
	(void)curl_easy_setopt(q->easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
	if (size >= 0)
		(void)curl_easy_setopt(q->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
}

void http_call_timeout(struct http_call *q, long ms)
{
	if (!q->failed)
		(void)curl_easy_setopt(q->easy, CURLOPT_TIMEOUT_MS, ms);
}

/* ---- running --------------------------------------------------------------------------------- */

CURLM *http_call_multi(void)
{
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
}

static bool ready(struct http_call *q)
{
	return !q->failed && curl_easy_setopt(q->easy, CURLOPT_HTTPHEADER, q->headers) == CURLE_OK;
}

int http_call_start(struct http_call *q, CURLM *multi)
{
	if (!ready(q) || curl_multi_add_handle(multi, q->easy) != CURLM_OK)
		return -ENOMEM;
	q->multi = multi;
	return 0;
}

CURLcode http_call_perform(struct http_call *q)
{
	CURLcode code = ready(q) ? curl_easy_perform(q->easy) : CURLE_OUT_OF_MEMORY;

	drop_headers(q);
	return code;
}

CURLcode http_call_connect(struct http_call *q, curl_socket_t *ret)
{
	CURLcode code = ready(q) ? CURLE_OK : CURLE_OUT_OF_MEMORY;

	if (code == CURLE_OK) {
		(void)curl_easy_setopt(q->easy, CURLOPT_CONNECT_ONLY, 1L);
		(void)curl_easy_setopt(q->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
		code = http_call_perform(q);
	}
	return code == CURLE_OK ? curl_easy_getinfo(q->easy, CURLINFO_ACTIVESOCKET, ret) : code;
}

void http_call_stop(struct http_call *q)
{
	if (q->multi)
		(void)curl_multi_remove_handle(q->multi, q->easy);
	q->multi = NULL;
	drop_headers(q);
}

void http_call_free(struct http_call *q)
{
	http_call_stop(q);
	if (q->easy)
		curl_easy_cleanup(q->easy);
	q->easy = NULL;
}

void http_call_collect(CURLM *multi)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(multi, &left))) {
		struct http_call *q = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		CURLcode code = m->data.result;

		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&q);
		http_call_stop(q);
		if (q->on_end)
			q->on_end(q->arg, code);
	}
}

bool http_call_step(CURLM *multi)
{
	int running;
	bool ok = curl_multi_perform(multi, &running) == CURLM_OK;

	http_call_collect(multi);
	return ok;
}

int http_call_status(const struct http_call *q)
{
	long status = 0;

	(void)curl_easy_getinfo(q->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

const char *http_call_why(const struct http_call *q, CURLcode code)
{
	return q->error[0] ? q->error : curl_easy_strerror(code);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Scheme, host and port, in one form; "" for what is no URL. */
static void origin(const char *url, char *ret, size_t size)
{
	CURLU *u = curl_url();
	char *scheme = NULL, *host = NULL, *port = NULL;
	int n = 0;

	ret[0] = '\0';
	if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK)
		n = snprintf(ret, size, "%s://%s:%s", scheme, host, port);
	if (n < 0 || (size_t)n >= size)
		ret[0] = '\0'; /* a part of it could be equal */
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(u);
}

bool http_origin_is(const char *a, const char *b)
{
	char one[600], other[600];

	origin(a, one, sizeof(one));
	origin(b, other, sizeof(other));
	return one[0] && strcasecmp(one, other) == 0;
}
