/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - Calls to the daemon, by libcurl.
 *
 * Each call runs in curl's multi interface, although there is never more than one, so that a signal
 * or another descriptor is noticed while the answer is awaited. A sink that blocks (a slow reader
 * of our stdout) stops the reading, the socket fills, and the daemon makes the program wait:
 * nothing grows here.
 *
 * A token is never taken from the command line (every user of the machine can read those) and never
 * printed, not even in a message about it.
 */
#include "remote/api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "client/program.h"
#include "remote/remote_options.h"

#define ROOTS_SOCKET "/run/caisson/caisson.sock" /* state_dir() of root, and the systemd unit's */
#define CONNECT_S 10L
#define POLL_MS 1000
#define TOKEN_FILE_MAX 65536

/* ---- socket and token ---------------------------------------------------------------------- */

/* Whether a daemon listens there that lets us in. */
static bool answers(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(to.sun_path))
		return false;
	memcpy(to.sun_path, path, strlen(path));
	return connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0;
}

int api_socket(const struct remote_options *o, char *path, size_t size, struct err *e)
{
	char state[4096];
	int n;

	if (o->socket && strcmp(o->socket, "none") == 0)
		return err_say(e, -EINVAL, "'none' cannot be reached: name a socket, or use --url");
	if (o->socket) {
		n = snprintf(path, size, "%s", o->socket);
	} else {
		int r = state_dir(o->state, getenv("XDG_RUNTIME_DIR"), state, sizeof(state), e);

		if (r < 0)
			return r;
		n = snprintf(path, size, "%s/caisson.sock", state);
		/* An ordinary user's own daemon comes first, then the machine's. */
		if (!o->state && geteuid() != 0 && !answers(path) && answers(ROOTS_SOCKET))
			n = snprintf(path, size, "%s", ROOTS_SOCKET);
	}
	return n < 0 || (size_t)n >= size ?
		       err_say(e, -ENAMETOOLONG,
			       "the path is longer than the %zu bytes of a socket", size - 1) :
		       0;
}

/* RFC 6750's b64token, which may follow "Bearer ". */
static bool token_valid(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > 4096)
		return false;
	return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") ==
	       len;
}

static int keep_token(const char *token, const char *from, char **ret, struct err *e)
{
	if (!token_valid(token))
		return err_say(e, -EINVAL,
			       "%s: holds no token (letters, digits and -._~+/= in one line)",
			       from);
	*ret = strdup(token);
	return *ret ? 0 : err_set(e, -ENOMEM, "keep the token");
}

static int token_of_file(const char *path, char **ret, struct err *e)
{
	char text[TOKEN_FILE_MAX];
	struct stat st;

	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "--token-file %s", path);
	if (S_ISREG(st.st_mode) && st.st_mode & 077)
		return err_say(e, -EPERM, "--token-file %s: others can read it: chmod 600 %s", path,
			       path);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return err_set(e, -errno, "--token-file %s", path);
	text[n] = '\0';
	char *line = text + strspn(text, " \t\r\n");

	/* Comments of a daemon's own file. */
	while (*line == '#') {
		line += strcspn(line, "\n");
		line += strspn(line, " \t\r\n");
	}
	line[strcspn(line, " \t\r\n")] = '\0';
	const char *colon = strchr(line, ':');
	int r = keep_token(colon ? colon + 1 : line, path, ret, e);

	explicit_bzero(text, sizeof(text));
	return r;
}

int api_token(const struct remote_options *o, char **ret, struct err *e)
{
	const char *direct = getenv("CAISSON_TOKEN");

	*ret = NULL;
	if (o->token_file)
		return token_of_file(o->token_file, ret, e);
	return direct && *direct ? keep_token(direct, "CAISSON_TOKEN", ret, e) : 0;
}

void api_wipe(char *token)
{
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
}

/* ---- the daemon ---------------------------------------------------------------------------- */

static int make_handles(struct api *a, struct problem *p)
{
	a->multi = http_call_multi();
	if (!a->multi)
		return problem_say(p, EXIT_OURS, "ENOMEM", "libcurl could not be started");
	return 0;
}

int api_open(struct api *a, const struct remote_options *o, struct problem *p)
{
	struct err e = { 0 };
	int r;

	*a = (struct api){ .ca_file = o->ca_file };
	r = o->url ? url_parse(o->url, &a->url, &e) :
		     api_socket(o, a->socket, sizeof(a->socket), &e);
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
	if (api_token(o, &a->token, &e) < 0)
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
	a->http = (struct http_call){ 0 };
	a->multi = NULL;
	a->token = other->token ? strdup(other->token) : NULL;
	if (other->token && !a->token)
		return problem_no_memory(p);
	return make_handles(a, p);
}

void api_close(struct api *a)
{
	http_call_free(&a->http);
	if (a->multi)
		(void)curl_multi_cleanup(a->multi);
	api_wipe(a->token);
	*a = (struct api){ 0 };
}

void api_begin(const struct api *a, struct http_call *q, const char *method, const char *path)
{
	const struct http_call_options o = {
		.ca_file = a->ca_file,
		.socket = a->socket[0] ? a->socket : NULL,
		/* A proxy is of no use for a daemon on this machine. */
		.direct = a->socket[0] || a->url.loopback,
		.http1 = true,
		.connect_s = CONNECT_S,
		.buffer = 256L << 10,
	};
	_buf_ struct buf url = BUF_INIT(64u << 10);

	(void)buf_printf(&url, "%s%s", a->url.base, path);
	http_call_begin(q, &o, method, buf_str(&url));
}

int api_explain(const struct api *a, CURLcode code, const struct http_call *q, struct problem *p)
{
	const char *detail = http_call_why(q, code);
	long number = 0;

	(void)curl_easy_getinfo(q->easy, CURLINFO_OS_ERRNO, &number);
	switch (code) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
		(void)problem_say(p, EXIT_NO_DAEMON, "no_daemon", "no daemon answers %s: %s",
				  a->where, number ? strerror((int)number) : detail);
		if (number == EACCES || number == EPERM)
			problem_hint(p, "only the user who started it may open it; "
					"others need --url and a token");
		else
			problem_hint(p, "start one with 'caisson serve', or name it: "
					"--socket PATH or --url URL");
		break;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		(void)problem_say(p, EXIT_NO_DAEMON, "tls_failed",
				  "no safe connection to the daemon %s: %s", a->where, detail);
		problem_hint(p,
			     strstr(detail, "wrong version number") ?
				     "is it a port without TLS? Then the URL begins with http://" :
				     "--ca-file FILE names the certificates to trust");
		break;
	case CURLE_OPERATION_TIMEDOUT:
		(void)problem_say(p, EXIT_NO_DAEMON, "no_answer",
				  "the daemon %s does not answer in time", a->where);
		break;
	default:
		(void)problem_say(p, EXIT_NO_DAEMON, "connection_broken",
				  "the connection to the daemon %s broke: %s", a->where, detail);
		problem_hint(p, "if the daemon closed it, the daemon's log says why");
	}
	return -1;
}

/* ---- one call ------------------------------------------------------------------------------ */

struct transfer {
	const struct api_call *call;
	struct api_answer *answer;
	struct http_call *http;
	char *body; /* of a call with JSON, from jansson */
	CURLcode code;
	bool over;
};

static int on_body(void *arg, const char *data, size_t len)
{
	struct transfer *t = arg;
	int status = http_call_status(t->http);

	if (!t->call->sink || status < 200 || status >= 300)
		return buf_append(&t->answer->body, data, len);
	t->answer->gave_up = t->call->sink(t->call->arg, data, len) != 0;
	return t->answer->gave_up ? -ECANCELED : 0;
}

static void on_header(void *arg, const char *name, const char *value)
{
	struct transfer *t = arg;

	if (name && t->call->header && strcasecmp(name, t->call->header) == 0)
		(void)snprintf(t->answer->header, sizeof(t->answer->header), "%s", value);
}

static int64_t on_upload(void *arg, char *data, size_t size)
{
	struct transfer *t = arg;
	int64_t n = t->call->source(t->call->arg, data, size);

	if (n < 0)
		t->answer->gave_up = true;
	return n;
}

static void on_end(void *arg, CURLcode code)
{
	struct transfer *t = arg;

	t->over = true;
	t->code = code;
}

static void set_body(struct transfer *t)
{
	const struct api_call *c = t->call;

	if (c->source) {
		http_call_upload(t->http, c->source_size);
		http_call_header(t->http, "Content-Type: application/octet-stream");
	} else if (c->json || strcmp(c->method, "POST") == 0) {
		t->body = c->json ? json_dumps(c->json, JSON_COMPACT) : strdup("{}");
		http_call_body(t->http, t->body ? t->body : "", t->body ? strlen(t->body) : 0);
		http_call_header(t->http, "Content-Type: application/json");
	}
}

static void prepare(struct api *a, struct transfer *t)
{
	const struct api_call *c = t->call;
	uint64_t timeout = c->timeout_ms ? c->timeout_ms : API_TIMEOUT_MS;

	a->http.on_header = on_header;
	a->http.on_body = on_body;
	a->http.source = on_upload;
	a->http.on_end = on_end;
	a->http.arg = t;
	api_begin(a, &a->http, c->method, c->path); /* the connection stays */
	set_body(t);
	http_call_header(&a->http, "Accept: %s", c->accept ? c->accept : "application/json");
	if (a->token)
		http_call_header(&a->http, "Authorization: Bearer %s", a->token);
	if (timeout != API_ENDLESS)
		http_call_timeout(&a->http, (long)timeout);
}

/* Until it is over, one way or the other. */
static void perform(struct api *a, struct transfer *t)
{
	const struct api_call *c = t->call;

	t->code = CURLE_OUT_OF_MEMORY;
	if (http_call_start(t->http, a->multi) < 0)
		return;
	while (http_call_step(a->multi) && !t->over) {
		struct curl_waitfd extra = { .fd = c->watch_fd, .events = CURL_WAIT_POLLIN };

		if (curl_multi_poll(a->multi, &extra, c->on_watch ? 1 : 0, POLL_MS, NULL) !=
		    CURLM_OK)
			break;
		if (c->on_watch && extra.revents && c->on_watch(c->arg) != 0) {
			t->answer->gave_up = true;
			t->code = CURLE_ABORTED_BY_CALLBACK;
			break;
		}
	}
	http_call_stop(t->http);
}

int api_call(struct api *a, const struct api_call *c, struct api_answer *ret, struct problem *p)
{
	struct transfer t = { .call = c, .answer = ret, .http = &a->http };
	curl_off_t retry = 0;

	api_answer_free(ret);
	buf_init(&ret->body, API_BODY_MAX);
	prepare(a, &t);
	perform(a, &t);
	(void)curl_easy_getinfo(a->http.easy, CURLINFO_RETRY_AFTER, &retry);
	free(t.body);
	int status = http_call_status(&a->http);
	CURLcode code = t.code;

	ret->status = (unsigned int)status;
	/* A daemon that refuses an upload need not read it to its end. */
	if (status >= 300 && (code == CURLE_OK || c->source))
		return problem_answer(p, ret->status, buf_str(&ret->body), ret->body.len,
				      retry > 0 ? (unsigned int)retry : 0);
	if (code == CURLE_OK)
		return 0;
	if (ret->gave_up)
		return problem_say(p, EXIT_OURS, "ECANCELED", "cancelled");
	return api_explain(a, code, &a->http, p);
}

void api_answer_free(struct api_answer *x)
{
	buf_free(&x->body);
	*x = (struct api_answer){ 0 };
}

json_t *api_json_ms(struct api *a, const char *method, const char *path, json_t *body,
		    uint64_t timeout_ms, struct problem *p)
{
	_answer_ struct api_answer answer = { 0 };
	const struct api_call call = {
		.method = method, .path = path, .json = body, .timeout_ms = timeout_ms
	};
	int r = api_call(a, &call, &answer, p);

	json_decref(body);
	if (r < 0)
		return NULL;
	if (answer.status == 204)
		return json_object();
	json_auto_t *root = json_loadb(buf_str(&answer.body), answer.body.len, 0, NULL);

	if (json_is_object(root))
		return json_incref(root);
	(void)problem_say(p, EXIT_OTHER, "bad_answer",
			  "the answer %s is not that of a caisson daemon", a->where);
	return NULL;
}

json_t *api_json(struct api *a, const char *method, const char *path, json_t *body,
		 struct problem *p)
{
	return api_json_ms(a, method, path, body, 0, p);
}

json_t *api_sandbox(struct api *a, const char *method, const char *name, const char *rest,
		    json_t *body, struct problem *p)
{
	_buf_ struct buf path = BUF_INIT(64u << 10);

	url_sandbox(&path, name, rest);
	return api_json(a, method, buf_str(&path), body, p);
}
