/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.c - A request after the other until there is an answer that settles it.
 *
 * One request ends in one of five ways: it is what was asked for; the registry wants to see something first (401:
 * get it, ask again, twice at most); it is elsewhere (3xx: ask there, without credentials if that is another
 * origin, five times at most); it did not work this time (network, 429, 5xx: wait, longer each time or
 * as long as the registry says, and go on where the file ends); or it is no use (anything else).
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
#include "image/digest.h"
#include "image/document.h"
#include "image/manifest.h"
#include "image/registry.h"

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
	return t->state == TRANSFER_DONE || t->state == TRANSFER_FAILED;
}

static void fail(struct transfer *t)
{
	t->state = TRANSFER_FAILED;
}

/* ---- what arrives --------------------------------------------------------------------------------------- */

static int start_over(struct transfer *t)
{
	digest_free(t->sum);
	t->sum = digest_new();
	t->have = 0;
	buf_clear(&t->body);
	if (!t->sum)
		return -ENOMEM;
	if (t->fd >= 0 && (ftruncate(t->fd, 0) < 0 || lseek(t->fd, 0, SEEK_SET) < 0))
		return -errno;
	return 0;
}

static uint64_t most(const struct transfer *t)
{
	return t->digest ? t->size : MANIFEST_BYTES_MAX;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	long status = 0;
	int r;

	(void)size;
	(void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200 && status != 206) {
		(void)buf_append_some(&t->problem, data, n);
		return n;
	}
	/* The whole thing again although a part was asked for. */
	if (status == 200 && t->from > 0) {
		t->from = 0;
		if ((r = start_over(t)) < 0) {
			(void)err_set(&t->err, r, "write to the image store");
			return 0;
		}
	}
	if (n > most(t) - t->have) {
		(void)err_say(&t->err, -EFBIG, "%.80s has more bytes than it should", t->what);
		return 0;
	}
	r = t->fd >= 0 ? fd_write_all(t->fd, data, n) : buf_append(&t->body, data, n);
	if (r == 0)
		r = digest_add(t->sum, data, n);
	if (r < 0) {
		(void)err_set(&t->err, r, "write to the image store");
		return 0;
	}
	t->have += n;
	return n;
}

static bool header_is(const char *line, size_t len, const char *name, const char **value)
{
	size_t n = strlen(name);

	if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
		return false;
	*value = line + n + 1 + strspn(line + n + 1, " \t");
	return true;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	const char *value;
	char line[4096];

	(void)size;
	if (n >= sizeof(line))
		return n;
	memcpy(line, data, n);
	line[n] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (strncmp(line, "HTTP/", 5) ==
	    0) { /* of an answer that another follows, nothing is left */
		t->challenge = (struct challenge){ 0 };
		t->retry_after_ms = 0;
		t->type[0] = '\0';
	} else if (header_is(line, n, "WWW-Authenticate", &value)) {
		challenge_parse(&t->challenge, value);
	} else if (header_is(line, n, "Retry-After", &value)) {
		unsigned long s = strtoul(value, NULL, 10); /* a date gives 0: our own pace */

		t->retry_after_ms = s < WAIT_MAX_MS / 1000 ? s * 1000 : WAIT_MAX_MS;
	} else if (header_is(line, n, "Content-Type", &value)) {
		(void)snprintf(t->type, sizeof(t->type), "%.127s", value);
	}
	return n;
}

/* ---- asking --------------------------------------------------------------------------------------------- */

static int add_header(struct transfer *t, const char *line)
{
	struct curl_slist *more = curl_slist_append(t->headers, line);

	if (!more)
		return -ENOMEM;
	t->headers = more;
	return 0;
}

static int fill_headers(struct transfer *t)
{
	char range[64];
	int r = 0;

	curl_slist_free_all(t->headers);
	t->headers = NULL;
	if (strcmp(t->kind, "manifests") == 0)
		r = add_header(t, ACCEPT);
	if (r == 0 && t->r->auth && registry_same_origin(t->url, t->first_url))
		r = add_header(t, t->r->auth);
	if (r == 0 && t->have > 0) {
		(void)snprintf(range, sizeof(range), "Range: bytes=%llu-",
			       (unsigned long long)t->have);
		r = add_header(t, range);
	}
	t->from = t->have;
	return r;
}

static void ask(struct transfer *t)
{
	buf_clear(&t->problem);
	t->detail[0] = '\0';
	/* What goes to memory is small, and begun anew each time. */
	if ((t->fd < 0 && start_over(t) < 0) || fill_headers(t) < 0) {
		(void)err_set(&t->err, -ENOMEM, "ask the registry");
		fail(t);
		return;
	}
	curl_easy_reset(t->curl);
	registry_prepare(t->r, t->curl);
	(void)curl_easy_setopt(t->curl, CURLOPT_URL, t->url);
	(void)curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, t->headers);
	(void)curl_easy_setopt(t->curl, CURLOPT_ERRORBUFFER, t->detail);
	(void)curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
	(void)curl_easy_setopt(t->curl, CURLOPT_HEADERFUNCTION, on_header);
	(void)curl_easy_setopt(t->curl, CURLOPT_HEADERDATA, t);
	(void)curl_easy_setopt(t->curl, CURLOPT_PRIVATE, t);
	if (curl_multi_add_handle(t->r->multi, t->curl) != CURLM_OK) {
		(void)err_set(&t->err, -ENOMEM, "ask the registry");
		fail(t);
		return;
	}
	t->state = TRANSFER_RUNS;
}

static void ask_first(struct transfer *t)
{
	if (registry_url(t->r, t->kind, t->what, t->url, sizeof(t->url)) < 0) {
		(void)err_say(&t->err, -ENAMETOOLONG, "the registry's address is too long");
		fail(t);
		return;
	}
	memcpy(t->first_url, t->url, sizeof(t->url));
	ask(t);
}

/* ---- answers -------------------------------------------------------------------------------------------- */

/* All of it is here: is it what it should be? */
static void check(struct transfer *t)
{
	struct digest *sum = t->sum;

	t->sum = NULL;
	if (digest_end(sum, t->got) < 0)
		(void)err_set(&t->err, -EIO, "hash %.80s", t->what);
	else if (t->digest && strcmp(t->got, t->digest) != 0 && t->resumed && start_over(t) == 0) {
		t->resumed = false; /* perhaps it was the part that lay here */
		ask_first(t);
		return;
	} else if (t->digest && strcmp(t->got, t->digest) != 0)
		(void)err_say(&t->err, -EBADMSG,
			      "the registry's %s is %s: it is damaged or not what was asked for",
			      t->digest, t->got);
	else {
		t->state = TRANSFER_DONE;
		return;
	}
	if (t->fd >= 0)
		(void)!ftruncate(t->fd, 0); /* not to be resumed */
	fail(t);
}

static void try_later(struct transfer *t, const char *why)
{
	/* As long as it gets further it may be cut as often as it likes. */
	if (t->fd >= 0 && t->have > t->from)
		t->tries = 0;
	uint64_t ms = (uint64_t)WAIT_FIRST_MS << t->tries;

	if (++t->tries >= TRIES_MAX) {
		(void)err_say(&t->err, -EIO, "%.80s: %.250s (tried %u times)", t->r->ref.host, why,
			      t->tries);
		fail(t);
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

	(void)curl_easy_getinfo(t->curl, CURLINFO_REDIRECT_URL, &to);
	if (!to || strlen(to) >= sizeof(t->url) || !registry_url_ok(t->r, to)) {
		(void)err_say(&t->err, -EPROTO,
			      "the registry redirects to '%.100s', which is not followed",
			      to ? to : "");
		fail(t);
	} else if (++t->hops > HOPS_MAX) {
		(void)err_say(&t->err, -ELOOP, "the registry redirects without end");
		fail(t);
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
			"the registry refuses what it asked for: wrong credentials, or no right to %s",
			t->r->ref.name);
		fail(t);
	} else if (registry_authorize(t->r, &t->challenge, &t->err) < 0) {
		fail(t);
	} else {
		ask_first(t);
	}
}

/* A registry's own words: {"errors":[{"code","message"}]}. */
static void say_refused(struct transfer *t, long status)
{
	json_t *doc = json_loadb(buf_str(&t->problem), t->problem.len, 0, NULL);
	const json_t *first = json_array_get(json_object_get(doc, "errors"), 0);
	const char *words = document_text(first, "message");
	int code = status == 404 ? -ENOENT : status == 401 || status == 403 ? -EACCES : -EPROTO;

	if (status == 404 && strcmp(t->kind, "manifests") == 0)
		(void)err_say(&t->err, code, "%.80s has no image %.150s with %.80s%s%.80s",
			      t->r->ref.host, t->r->ref.name, t->what, *words ? ": " : "", words);
	else
		(void)err_say(&t->err, code, "%.80s answers HTTP %ld for %.80s%s%.80s",
			      t->r->ref.host, status, t->what, *words ? ": " : "", words);
	json_decref(doc);
	fail(t);
}

/* Whoever speaks no TLS says so at once; only then, and only where it is allowed, without. */
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

static void answer(struct transfer *t, CURLcode code)
{
	long status = 0;

	(void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_multi_remove_handle(t->r->multi, t->curl);
	t->r->answered = t->r->answered || status != 0;
	if (t->err.code) {
		fail(t);
	} else if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
		(void)err_say(&t->err, -EPROTO, "%.80s: %.250s (--ca FILE names another authority)",
			      t->r->ref.host, t->detail[0] ? t->detail : curl_easy_strerror(code));
		fail(t);
	} else if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT) {
		(void)err_say(&t->err, -EHOSTUNREACH, "%.80s can not be reached: %.250s",
			      t->r->ref.host, t->detail[0] ? t->detail : curl_easy_strerror(code));
		fail(t);
	} else if (code != CURLE_OK) {
		if (!try_plain(t, code))
			try_later(t, t->detail[0] ? t->detail : curl_easy_strerror(code));
	} else if (status == 200 || status == 206) {
		if (t->digest && t->have < t->size)
			try_later(t, "the answer was cut");
		else
			check(t);
	} else if (status == 416 && t->from > 0) { /* what is here can not be gone on with */
		if (start_over(t) < 0) {
			(void)err_set(&t->err, -EIO, "write to the image store");
			fail(t);
		} else {
			try_later(t, "it can not be resumed");
		}
	} else if (status == 401 && registry_same_origin(t->url, t->first_url)) {
		log_in(t);
	} else if (status == 301 || status == 302 || status == 303 || status == 307 ||
		   status == 308) {
		follow(t);
	} else if (status == 429 || status >= 500) {
		char text[32];

		(void)snprintf(text, sizeof(text), "HTTP %ld", status);
		memcpy(t->url, t->first_url, sizeof(t->url));
		try_later(t, text);
	} else {
		say_refused(t, status);
	}
}

/* ---- life ----------------------------------------------------------------------------------------------- */

/* What an earlier pull left in the file, hashed; more than it should be is nothing. */
static int take_file(struct transfer *t)
{
	char *chunk = malloc(1 << 20);
	ssize_t n = 1;
	int r = chunk ? 0 : -ENOMEM;

	if (r == 0 && lseek(t->fd, 0, SEEK_SET) < 0)
		r = -errno;
	while (r == 0 && n > 0) {
		n = read(t->fd, chunk, 1 << 20);
		if (n < 0)
			r = -errno;
		else if (n > 0 && (uint64_t)n > t->size - t->have) {
			r = start_over(t);
			break;
		} else if (n > 0) {
			r = digest_add(t->sum, chunk, (size_t)n);
			t->have += (uint64_t)n;
		}
	}
	t->resumed = t->have > 0;
	free(chunk);
	return r;
}

void transfer_begin(struct transfer *t, struct registry *r)
{
	int code = 0;

	t->r = r;
	buf_init(&t->body, MANIFEST_BYTES_MAX + 1);
	buf_init(&t->problem, PROBLEM_MAX);
	t->curl = curl_easy_init();
	t->sum = digest_new();
	if (!t->curl || !t->sum)
		code = -ENOMEM;
	else if (t->fd >= 0)
		code = take_file(t);
	if (code < 0) {
		(void)err_set(&t->err, code, "begin a transfer");
		fail(t);
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
	int running, left;
	CURLMsg *msg;

	ms = next_wait(list, n, ms);
	(void)curl_multi_perform(r->multi, &running);
	while ((msg = curl_multi_info_read(r->multi, &left))) {
		struct transfer *t = NULL;

		if (msg->msg != CURLMSG_DONE)
			continue;
		CURLcode code = msg->data.result;

		(void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
		answer(t, code);
		ms = 0;
	}
	(void)curl_multi_poll(r->multi, fds, n_fds, ms, NULL);
}

void transfer_end(struct transfer *t)
{
	if (t->curl && t->state == TRANSFER_RUNS)
		(void)curl_multi_remove_handle(t->r->multi, t->curl);
	curl_easy_cleanup(t->curl);
	curl_slist_free_all(t->headers);
	digest_free(t->sum);
	buf_free(&t->body);
	buf_free(&t->problem);
	t->curl = NULL;
	t->headers = NULL;
	t->sum = NULL;
}

int transfer_wait(struct transfer *t)
{
	while (!transfer_over(t))
		transfers_step(t->r, &t, 1, NULL, 0, 1000);
	return t->state == TRANSFER_DONE ? 0 : t->err.code;
}
