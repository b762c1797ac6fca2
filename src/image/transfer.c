/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.c - One request after another until there is a final answer.
 *
 * A request ends in one of five ways: with the content; with 401 (get credentials, request again,
 * LOGINS_MAX times); with a redirect (request there, without credentials if it is another origin,
 * HOPS_MAX times); with a failure that may pass (network, 429, 5xx: wait, longer each time or as
 * long as the registry asks, and continue at the end of the file); or with a final refusal.
 */
#include "image/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "image/documents.h"
#include "image/image_store.h"

#define TRIES_MAX 6
#define HOPS_MAX 5
#define LOGINS_MAX 2
#define WAIT_FIRST_MS 400u
#define WAIT_MAX_MS 60000u
#define PROBLEM_MAX 4096u

#define ACCEPT                                                                                     \
	"Accept: " MEDIA_OCI_INDEX ", " MEDIA_DOCKER_LIST ", " MEDIA_OCI_MANIFEST                  \
	", " MEDIA_DOCKER_MANIFEST

bool transfer_over(const struct transfer *t)
{
	return t->state == TRANSFER_DONE || t->err.code;
}

/* ---- content ------------------------------------------------------------------------------- */

static int start_over(struct transfer *t)
{
	hash_begin(&t->sum);
	t->have = 0;
	buf_clear(&t->body);
	if (t->fd >= 0 && (ftruncate(t->fd, 0) < 0 || lseek(t->fd, 0, SEEK_SET) < 0))
		return -errno;
	return 0;
}

static uint64_t most(const struct transfer *t)
{
	return t->digest ? t->size : MANIFEST_BYTES_MAX;
}

static int on_body(void *arg, const char *data, size_t n)
{
	struct transfer *t = arg;
	int r, status = http_call_status(&t->http);

	if (status != 200 && status != 206) {
		(void)buf_append_some(&t->problem, data, n);
		return 0;
	}
	/* The whole content, although a part was requested. */
	if (status == 200 && t->from > 0) {
		t->from = 0;
		if ((r = start_over(t)) < 0)
			return err_set(&t->err, r, "write to the image store");
	}
	if (n > most(t) - t->have)
		return err_say(&t->err, -EFBIG, "%.80s is longer than announced", t->what);
	r = t->fd >= 0 ? fd_write_all(t->fd, data, n) : buf_append(&t->body, data, n);
	if (r < 0)
		return err_set(&t->err, r, "write to the image store");
	hash_add(&t->sum, data, n);
	t->have += n;
	return 0;
}

static void on_header(void *arg, const char *name, const char *value)
{
	struct transfer *t = arg;

	if (!name) { /* another answer begins: forget the one before */
		t->challenge = (struct challenge){ 0 };
		t->retry_after_ms = 0;
		t->type[0] = '\0';
	} else if (strcasecmp(name, "WWW-Authenticate") == 0) {
		challenge_parse(&t->challenge, value);
	} else if (strcasecmp(name, "Retry-After") == 0) {
		unsigned long s = strtoul(value, NULL, 10); /* a date gives 0: our own pauses */

		t->retry_after_ms = s < WAIT_MAX_MS / 1000 ? s * 1000 : WAIT_MAX_MS;
	} else if (strcasecmp(name, "Content-Type") == 0) {
		(void)snprintf(t->type, sizeof(t->type), "%.127s", value);
	}
}

/* ---- requests ------------------------------------------------------------------------------ */

static void fill_headers(struct transfer *t)
{
	if (strcmp(t->kind, "manifests") == 0)
		http_call_header(&t->http, ACCEPT);
	if (t->r->auth && http_origin_is(t->url, t->first_url))
		http_call_header(&t->http, "%s", t->r->auth);
	if (t->have > 0)
		http_call_header(&t->http, "Range: bytes=%llu-", (unsigned long long)t->have);
	t->from = t->have;
}

static void ask(struct transfer *t)
{
	/* A document in memory is small, and begun anew each time. */
	int r = t->fd < 0 ? start_over(t) : 0;

	buf_clear(&t->problem);
	registry_begin(t->r, &t->http, t->url);
	fill_headers(t);
	if (r < 0 || http_call_start(&t->http, t->r->multi) < 0)
		(void)err_set(&t->err, -ENOMEM, "send a request to the registry");
	t->state = TRANSFER_RUNS;
}

static void ask_first(struct transfer *t)
{
	if (registry_url(t->r, t->kind, t->what, t->url, sizeof(t->url)) < 0) {
		(void)err_say(&t->err, -ENAMETOOLONG, "the registry's address is too long");
		return;
	}
	memcpy(t->first_url, t->url, sizeof(t->url));
	ask(t);
}

/* ---- answers ------------------------------------------------------------------------------- */

/* The content is complete: check its digest. */
static void check(struct transfer *t)
{
	if (digest_end(&t->sum, t->got) < 0) {
		(void)err_set(&t->err, -EIO, "hash %.80s", t->what);
	} else if (!t->digest || strcmp(t->got, t->digest) == 0) {
		t->state = TRANSFER_DONE;
	} else if (t->resumed && start_over(t) == 0) {
		t->resumed = false; /* perhaps the part in the file was wrong */
		ask_first(t);
	} else {
		(void)err_say(&t->err, -EBADMSG,
			      "the registry's %s is %s: it is damaged, or another one", t->digest,
			      t->got);
	}
	if (t->err.code && t->fd >= 0)
		(void)!ftruncate(t->fd, 0); /* not to be resumed */
}

static void try_later(struct transfer *t, const char *why)
{
	/* A transfer that gets further each time may be cut any number of times. */
	if (t->fd >= 0 && t->have > t->from)
		t->tries = 0;
	uint64_t ms = (uint64_t)WAIT_FIRST_MS << t->tries;

	if (++t->tries >= TRIES_MAX) {
		(void)err_say(&t->err, -EHOSTUNREACH, "%.80s: %.250s (tried %u times)",
			      t->r->ref.host, why, t->tries);
		return;
	}
	if (t->retry_after_ms > ms)
		ms = t->retry_after_ms;
	t->at_ns = clock_now_ns() + (ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS) * CLOCK_NS_PER_MS;
	t->state = TRANSFER_WAITS;
}

static void follow(struct transfer *t)
{
	char *to = NULL;

	(void)curl_easy_getinfo(t->http.easy, CURLINFO_REDIRECT_URL, &to);
	if (!to || strlen(to) >= sizeof(t->url) || !registry_url_ok(t->r, to)) {
		(void)err_say(&t->err, -EPROTO,
			      "the registry redirects to '%.100s', which is not allowed",
			      to ? to : "");
	} else if (++t->hops > HOPS_MAX) {
		(void)err_say(&t->err, -ELOOP, "the registry redirects too often");
	} else {
		memcpy(t->url, to, strlen(to) + 1);
		ask(t);
	}
}

static void log_in(struct transfer *t)
{
	if (++t->logins > LOGINS_MAX) {
		(void)err_say(
			&t->err, -EACCES,
			"the registry refuses the credentials: they are wrong, or have no access "
			"to %s",
			t->r->ref.name);
	} else if (registry_authorize(t->r, &t->challenge, &t->err) == 0) {
		ask_first(t);
	}
}

/* With the registry's own message: {"errors":[{"code","message"}]}. */
static void set_refused(struct transfer *t, int status)
{
	json_auto_t *doc = json_loadb(buf_str(&t->problem), t->problem.len, 0, NULL);
	const json_t *first = json_array_get(json_object_get(doc, "errors"), 0);
	const char *words = document_text(first, "message");
	int code = status == 404 ? -ENOENT : status == 401 || status == 403 ? -EACCES : -EPROTO;

	if (status == 404 && strcmp(t->kind, "manifests") == 0)
		(void)err_say(&t->err, code, "%.80s has no image %.150s with %.80s%s%.80s",
			      t->r->ref.host, t->r->ref.name, t->what, *words ? ": " : "", words);
	else
		(void)err_say(&t->err, code, "%.80s answers HTTP %d for %.80s%s%.80s",
			      t->r->ref.host, status, t->what, *words ? ": " : "", words);
}

/* A server without TLS fails at once: then, and only where it is allowed, plain HTTP is tried. */
static bool try_plain(struct transfer *t, CURLcode code)
{
	if (t->r->answered || t->r->plain || !t->r->http_ok ||
	    (code != CURLE_SSL_CONNECT_ERROR && code != CURLE_RECV_ERROR &&
	     code != CURLE_SEND_ERROR))
		return false;
	t->r->plain = true;
	ask_first(t);
	return true;
}

static void answer(void *arg, CURLcode code)
{
	struct transfer *t = arg;
	int status = http_call_status(&t->http);

	t->r->answers++;
	t->r->answered = t->r->answered || status != 0;
	if (t->err.code)
		return;
	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
		(void)err_say(&t->err, -EHOSTUNREACH,
			      "%.80s: %.250s (--ca FILE names another authority)", t->r->ref.host,
			      http_call_why(&t->http, code));
	} else if (code == CURLE_COULDNT_CONNECT && t->r->barred &&
		   !http_origin_is(t->url, t->first_url)) {
		(void)err_say(&t->err, -EPROTO, "the registry redirects to '%.100s', which is %s",
			      t->url, t->r->barred);
	} else if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT) {
		(void)err_say(&t->err, -EHOSTUNREACH, "%.80s cannot be reached: %.250s",
			      t->r->ref.host, http_call_why(&t->http, code));
	} else if (code != CURLE_OK) {
		if (!try_plain(t, code))
			try_later(t, http_call_why(&t->http, code));
	} else if (status == 200 || status == 206) {
		if (t->digest && t->have < t->size)
			try_later(t, "the answer was cut");
		else
			check(t);
	} else if (status == 416 && t->from > 0) { /* the part in the file cannot be continued */
		if (start_over(t) < 0)
			(void)err_set(&t->err, -EIO, "write to the image store");
		else
			try_later(t, "it cannot be resumed");
	} else if (status == 401 && http_origin_is(t->url, t->first_url)) {
		log_in(t);
	} else if (status == 301 || status == 302 || status == 303 || status == 307 ||
		   status == 308) {
		follow(t);
	} else if (status == 429 || status >= 500) {
		char text[32];

		(void)snprintf(text, sizeof(text), "HTTP %d", status);
		memcpy(t->url, t->first_url, sizeof(t->url));
		try_later(t, text);
	} else {
		set_refused(t, status);
	}
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Hash what an earlier pull left in the file; if that is too long, begin anew. */
static int take_file(struct transfer *t)
{
	static char chunk[256u << 10];
	ssize_t n;

	if (lseek(t->fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = read(t->fd, chunk, sizeof(chunk))) > 0) {
		if ((uint64_t)n > t->size - t->have)
			return start_over(t);
		hash_add(&t->sum, chunk, (size_t)n);
		t->have += (uint64_t)n;
	}
	t->resumed = t->have > 0;
	return n < 0 ? -errno : 0;
}

void transfer_begin(struct transfer *t, struct registry *r)
{
	int code = 0;

	t->r = r;
	buf_init(&t->body, MANIFEST_BYTES_MAX + 1);
	buf_init(&t->problem, PROBLEM_MAX);
	t->http = (struct http_call){
		.on_header = on_header, .on_body = on_body, .on_end = answer, .arg = t
	};
	hash_begin(&t->sum);
	if (t->fd >= 0)
		code = take_file(t);
	if (code < 0) {
		(void)err_set(&t->err, code, "begin a transfer");
	} else if (t->digest && t->have == t->size && t->fd >= 0) {
		check(t);
	} else {
		ask_first(t);
	}
}

static int next_wait(struct transfer **list, size_t n, int ms)
{
	uint64_t now = clock_now_ns();

	for (size_t i = 0; i < n; i++) {
		if (list[i]->state != TRANSFER_WAITS)
			continue;
		if (list[i]->at_ns <= now) {
			ask_first(list[i]);
			ms = 0;
		} else if ((list[i]->at_ns - now) / CLOCK_NS_PER_MS < (uint64_t)ms) {
			ms = (int)((list[i]->at_ns - now) / CLOCK_NS_PER_MS) + 1;
		}
	}
	return ms;
}

void transfers_step(struct registry *r, struct transfer **list, size_t n, struct curl_waitfd *fds,
		    unsigned int n_fds, int ms)
{
	unsigned int answers = r->answers;

	ms = next_wait(list, n, ms);
	(void)http_call_step(r->multi);
	(void)curl_multi_poll(r->multi, fds, n_fds, r->answers == answers ? ms : 0, NULL);
}

void transfer_end(struct transfer *t)
{
	http_call_free(&t->http);
	hash_close(&t->sum);
	buf_free(&t->body);
	buf_free(&t->problem);
}

int transfer_wait(struct transfer *t)
{
	while (!transfer_over(t))
		transfers_step(t->r, &t, 1, NULL, 0, 1000);
	return t->err.code;
}
