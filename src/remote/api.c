/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - Calls to the daemon, by libcurl.
 *
 * Each call runs in curl's multi interface, although there is never more than one: so a signal or another
 * descriptor can be heard while the answer is awaited. A sink that blocks (a slow reader of our stdout)
 * blocks the reading, the socket fills, and the daemon makes the program wait: nothing grows here.
 */
#include "remote/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "remote/access.h"
#include "remote/options.h"

#define CONNECT_TIMEOUT_MS 10000L
#define POLL_MS 1000

/* ---- the daemon ---------------------------------------------------------------------------------- */

static int make_handles(struct api *a, struct problem *p)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || !(a->curl = curl_easy_init()) ||
	    !(a->multi = curl_multi_init()))
		return problem_say(p, EXIT_OURS, "ENOMEM", "libcurl could not be started");
	return 0;
}

int api_open(struct api *a, const struct remote_options *o, struct problem *p)
{
	struct err e = { 0 };
	int r;

	*a = (struct api){ .ca_file = o->ca_file };
	r = o->url ? url_parse(o->url, &a->url, &e) :
		     access_socket(o, a->socket, sizeof(a->socket), &e);
	if (r < 0) {
		(void)err_wrap(&e, o->url ? "--url" : "--socket");
		return problem_ours(p, &e);
	}
	if (o->url)
		(void)snprintf(a->where, sizeof(a->where), "at %s", a->url.base);
	else
		(void)snprintf(a->where, sizeof(a->where), "on %s", a->socket);
	if (!o->url)
		(void)snprintf(a->url.base, sizeof(a->url.base), "http://localhost");
	if (access_token(o, &a->token, &e) < 0)
		return problem_ours(p, &e);
	if (a->token && o->url && !a->url.tls && !a->url.loopback)
		(void)fprintf(stderr,
			      "caisson: warning: the token goes to %s unencrypted; https:// "
			      "would hide it\n",
			      a->url.host);
	return make_handles(a, p);
}

int api_again(struct api *a, const struct api *other, struct problem *p)
{
	*a = *other;
	a->curl = NULL;
	a->multi = NULL;
	a->token = other->token ? strdup(other->token) : NULL;
	if (other->token && !a->token)
		return problem_say(p, EXIT_OURS, "ENOMEM", "no memory");
	return make_handles(a, p);
}

void api_close(struct api *a)
{
	if (a->curl)
		curl_easy_cleanup(a->curl);
	if (a->multi)
		(void)curl_multi_cleanup(a->multi);
	access_wipe(a->token);
	*a = (struct api){ 0 };
}

static void set_address(const struct api *a, CURL *curl, const char *path)
{
	_buf_ struct buf url = BUF_INIT(64u << 10);

	(void)buf_printf(&url, "%s%s", a->url.base, path);
	(void)curl_easy_setopt(curl, CURLOPT_URL, buf_str(&url));
	if (a->socket[0])
		(void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, a->socket);
	/* What is on this machine is not asked for elsewhere. */
	if (a->socket[0] || a->url.loopback)
		(void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
#if LIBCURL_VERSION_NUM >= 0x075500
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
	(void)curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "caisson/" CAISSON_VERSION);
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	if (a->ca_file)
		(void)curl_easy_setopt(curl, CURLOPT_CAINFO, a->ca_file);
}

CURL *api_easy(const struct api *a, const char *path, struct problem *p)
{
	CURL *curl = curl_easy_init();

	if (!curl)
		(void)problem_say(p, EXIT_OURS, "ENOMEM", "libcurl could not be started");
	else
		set_address(a, curl, path);
	return curl;
}

int api_explain(const struct api *a, CURLcode code, CURL *curl, const char *detail,
		struct problem *p)
{
	long number = 0;

	(void)curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &number);
	switch (code) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
		(void)problem_say(p, EXIT_NO_DAEMON, "no_daemon", "no daemon answers %s: %s",
				  a->where, number ? strerror((int)number) : detail);
		if (number == EACCES || number == EPERM)
			problem_hint(
				p, "who started it may open it; --url and a token work for others");
		else
			problem_hint(p, "start one with 'caisson serve', or say where it is: "
					"--socket PATH or --url URL");
		break;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		(void)problem_say(p, EXIT_NO_DAEMON, "tls_failed",
				  "no safe connection to the daemon %s: %s", a->where, detail);
		problem_hint(p, "--ca-file FILE names the certificate that it is to be known by");
		break;
	case CURLE_OPERATION_TIMEDOUT:
		(void)problem_say(p, EXIT_NO_DAEMON, "no_answer",
				  "the daemon %s does not answer in time", a->where);
		break;
	default:
		(void)problem_say(p, EXIT_NO_DAEMON, "connection_broken",
				  "the connection to the daemon %s broke: %s", a->where, detail);
		problem_hint(p, "its log says why, if it was the daemon");
	}
	return -1;
}

/* ---- one call ------------------------------------------------------------------------------------- */

struct transfer {
	const struct api_call *call;
	struct api_answer *answer;
	CURL *curl;
	struct curl_slist *headers;
	char *body; /* of a call with JSON, from jansson */
	char detail[CURL_ERROR_SIZE];
};

static bool is_good(const struct transfer *t)
{
	long status = 0;

	(void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	return status >= 200 && status < 300;
}

static size_t on_body(char *data, size_t one, size_t len, void *arg)
{
	struct transfer *t = arg;

	(void)one;
	if (t->call->sink && is_good(t)) {
		t->answer->gave_up = t->call->sink(t->call->arg, data, len) != 0;
		return t->answer->gave_up ? len + 1 : len;
	}
	return buf_append(&t->answer->body, data, len) < 0 ? len + 1 : len;
}

static size_t on_header(char *line, size_t one, size_t len, void *arg)
{
	struct transfer *t = arg;
	size_t n = strlen(t->call->header);

	(void)one;
	if (len > n && strncasecmp(line, t->call->header, n) == 0 && line[n] == ':') {
		const char *v = line + n + 1;
		size_t left = len - n - 1;

		while (left > 0 && (*v == ' ' || *v == '\t')) {
			v++;
			left--;
		}
		while (left > 0 && (v[left - 1] == '\r' || v[left - 1] == '\n'))
			left--;
		(void)snprintf(t->answer->header, sizeof(t->answer->header), "%.*s", (int)left, v);
	}
	return len;
}

static size_t on_upload(char *data, size_t one, size_t len, void *arg)
{
	struct transfer *t = arg;
	int64_t n = t->call->source(t->call->arg, data, one * len);

	if (n < 0)
		t->answer->gave_up = true;
	return n < 0 ? CURL_READFUNC_ABORT : (size_t)n;
}

static void add_header(struct transfer *t, const char *name, const char *value)
{
	_buf_ struct buf b = BUF_INIT(16u << 10);

	(void)buf_printf(&b, "%s: %s", name, value);
	struct curl_slist *more = b.err ? NULL : curl_slist_append(t->headers, buf_str(&b));

	t->headers = more ? more : t->headers;
	if (b.data)
		explicit_bzero(b.data, b.len);
}

static void set_body(struct transfer *t, CURL *curl)
{
	const struct api_call *c = t->call;

	if (c->source) {
		(void)curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		(void)curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_upload);
		(void)curl_easy_setopt(curl, CURLOPT_READDATA, t);
		(void)curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
		if (c->source_size >= 0)
			(void)curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE,
					       (curl_off_t)c->source_size);
		add_header(t, "Content-Type", "application/octet-stream");
	} else if (c->json || strcmp(c->method, "POST") == 0) {
		t->body = c->json ? json_dumps(c->json, JSON_COMPACT) : strdup("{}");
		(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
				       (curl_off_t)(t->body ? strlen(t->body) : 0));
		(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, t->body ? t->body : "");
		add_header(t, "Content-Type", "application/json");
	}
	(void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, c->method);
}

static void prepare(struct api *a, struct transfer *t)
{
	const struct api_call *c = t->call;
	CURL *curl = t->curl;
	uint64_t timeout = c->timeout_ms ? c->timeout_ms : API_TIMEOUT_MS;

	curl_easy_reset(curl); /* the connection stays */
	set_address(a, curl, c->path);
	set_body(t, curl);
	add_header(t, "Expect", ""); /* a round trip for nothing */
	add_header(t, "Accept", c->accept ? c->accept : "application/json");
	if (a->token) {
		_buf_ struct buf bearer = BUF_INIT(8192);

		(void)buf_printf(&bearer, "Bearer %s", a->token);
		add_header(t, "Authorization", buf_str(&bearer));
		explicit_bzero(bearer.data, bearer.len);
	}
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, t->headers);
	(void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->detail);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
	if (c->header) {
		(void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
		(void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
	}
	(void)curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L << 10);
	if (timeout != API_ENDLESS)
		(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout);
}

/* Until it is over, one way or the other. */
static CURLcode perform(struct api *a, struct transfer *t)
{
	const struct api_call *c = t->call;
	CURLcode result = CURLE_OUT_OF_MEMORY;
	int running = 1;

	if (curl_multi_add_handle(a->multi, t->curl) != CURLM_OK)
		return result;
	while (curl_multi_perform(a->multi, &running) == CURLM_OK && running) {
		struct curl_waitfd extra = { .fd = c->watch_fd, .events = CURL_WAIT_POLLIN };

		if (curl_multi_poll(a->multi, &extra, c->on_watch ? 1 : 0, POLL_MS, NULL) !=
		    CURLM_OK)
			break;
		if (c->on_watch && extra.revents && c->on_watch(c->arg) != 0) {
			t->answer->gave_up = true;
			result = CURLE_ABORTED_BY_CALLBACK;
			break;
		}
	}
	for (int left = 1; left > 0;) {
		const CURLMsg *m = curl_multi_info_read(a->multi, &left);

		if (m && m->msg == CURLMSG_DONE)
			result = m->data.result;
	}
	(void)curl_multi_remove_handle(a->multi, t->curl);
	return result;
}

int api_call(struct api *a, const struct api_call *c, struct api_answer *ret, struct problem *p)
{
	struct transfer t = { .call = c, .answer = ret, .curl = a->curl };
	long status = 0;
	curl_off_t retry = 0;

	api_answer_free(ret);
	buf_init(&ret->body, API_BODY_MAX);
	prepare(a, &t);
	CURLcode code = perform(a, &t);

	(void)curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(t.curl, CURLINFO_RETRY_AFTER, &retry);
	/* No later call may see what this one pointed to. */
	(void)curl_easy_setopt(t.curl, CURLOPT_HTTPHEADER, NULL);
	(void)curl_easy_setopt(t.curl, CURLOPT_ERRORBUFFER, NULL);
	for (const struct curl_slist *h = t.headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(t.headers);
	free(t.body);
	ret->status = (unsigned int)status;
	/* A daemon that refuses an upload need not read it to its end. */
	if (status >= 300 && (code == CURLE_OK || c->source))
		return problem_answer(p, ret->status, buf_str(&ret->body), ret->body.len,
				      retry > 0 ? (unsigned int)retry : 0);
	if (code == CURLE_OK)
		return 0;
	if (ret->gave_up)
		return problem_say(p, EXIT_OURS, "ECANCELED", "given up");
	return api_explain(a, code, t.curl, t.detail[0] ? t.detail : curl_easy_strerror(code), p);
}

void api_answer_free(struct api_answer *x)
{
	buf_free(&x->body);
	*x = (struct api_answer){ 0 };
}

json_t *api_json(struct api *a, const char *method, const char *path, json_t *body,
		 struct problem *p)
{
	struct api_answer answer = { 0 };
	struct api_call call = { .method = method, .path = path, .json = body };
	json_t *root = NULL;

	if (api_call(a, &call, &answer, p) == 0) {
		root = json_loadb(buf_str(&answer.body), answer.body.len, 0, NULL);
		if (!json_is_object(root)) {
			json_decref(root);
			root = NULL;
			(void)problem_say(p, EXIT_OTHER, "bad_answer",
					  "the answer %s is not what a caisson daemon says",
					  a->where);
		}
	}
	api_answer_free(&answer);
	return root;
}
