/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.c - libcurl's multi interface, driven by our loop.
 *
 * libcurl says which sockets it waits for and for how long; we say what happened to them. Its own callbacks only
 * copy: what they got is handed on by deferred work. A receiver that is slow pauses its transfer.
 */
#include "bridge/fetch.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"

#define CONNECT_S 15L
#define WAITING_MAX (4u << 20)

/* ---- sockets and time ------------------------------------------------------------------------- */

static void collect(struct fetcher *all)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(all->multi, &left))) {
		struct fetch *f = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&f);
		f->ended = true;
		f->code = m->data.result;
		loop_defer(all->loop, &f->pump);
	}
}

static void on_socket(struct watch *w, uint32_t events)
{
	struct fetcher *all = w->arg;
	int running, what = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			    (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			    (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

	/* The watch may be gone behind this. */
	(void)curl_multi_socket_action(all->multi, w->fd, what, &running);
	collect(all);
}

static int socket_callback(CURL *easy, curl_socket_t fd, int what, void *arg, void *ours)
{
	struct fetcher *all = arg;
	struct watch *w = ours;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w) {
			loop_del(w);
			free(w);
			(void)curl_multi_assign(all->multi, fd, NULL);
		}
		return 0;
	}
	if (w) {
		loop_mod(w, events);
		return 0;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return -1;
	*w = (struct watch){ .fd = fd, .events = events, .fn = on_socket, .arg = all };
	if (loop_add(all->loop, w, NULL) < 0) {
		free(w);
		return -1;
	}
	(void)curl_multi_assign(all->multi, fd, w);
	return 0;
}

static void on_timer(struct timer *t)
{
	struct fetcher *all = t->arg;
	int running;

	(void)curl_multi_socket_action(all->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(all);
}

static int timer_callback(CURLM *multi, long ms, void *arg)
{
	struct fetcher *all = arg;

	(void)multi;
	if (ms < 0)
		timer_cancel(&all->timer);
	else
		timer_set(all->loop, &all->timer, clock_now_ns() + (uint64_t)ms * CLOCK_NS_PER_MS);
	return 0;
}

int fetcher_init(struct fetcher *all, struct loop *loop, struct err *e)
{
	*all = (struct fetcher){ .loop = loop, .timer = { .fn = on_timer } };
	all->timer.arg = all;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(all->multi = curl_multi_init()))
		return err_say(e, -ENOMEM, "libcurl does not start");
	(void)curl_multi_setopt(all->multi, CURLMOPT_SOCKETFUNCTION, socket_callback);
	(void)curl_multi_setopt(all->multi, CURLMOPT_SOCKETDATA, all);
	(void)curl_multi_setopt(all->multi, CURLMOPT_TIMERFUNCTION, timer_callback);
	(void)curl_multi_setopt(all->multi, CURLMOPT_TIMERDATA, all);
	return 0;
}

void fetcher_free(struct fetcher *all)
{
	timer_cancel(&all->timer);
	(void)curl_multi_cleanup(all->multi);
	all->multi = NULL;
}

/* ---- one request ------------------------------------------------------------------------------ */

static void copy_value(const char *from, size_t len, char *to, size_t size)
{
	while (len > 0 && (*from == ' ' || *from == '\t')) {
		from++;
		len--;
	}
	while (len > 0 && strchr(" \t\r\n", from[len - 1]))
		len--;
	if (len >= size)
		len = 0; /* not what we could use */
	memcpy(to, from, len);
	to[len] = '\0';
}

static size_t header_callback(char *data, size_t size, size_t n, void *arg)
{
	static const char type[] = "content-type:", session[] = "mcp-session-id:";
	struct fetch *f = arg;

	(void)size;
	if (n > 5 && strncasecmp(data, "HTTP/", 5) == 0) {
		f->type[0] = f->session[0] = '\0'; /* of another answer, as 100 */
	} else if (n >= sizeof(type) - 1 && strncasecmp(data, type, sizeof(type) - 1) == 0) {
		copy_value(data + sizeof(type) - 1, n - (sizeof(type) - 1), f->type,
			   sizeof(f->type));
		f->type[strcspn(f->type, "; ")] = '\0';
		for (char *p = f->type; *p; p++)
			*p = (char)tolower((unsigned char)*p);
	} else if (n >= sizeof(session) - 1 &&
		   strncasecmp(data, session, sizeof(session) - 1) == 0) {
		copy_value(data + sizeof(session) - 1, n - (sizeof(session) - 1), f->session,
			   sizeof(f->session));
	} else if (n <= 2) {
		long status = 0;

		(void)curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
		if (status >= 200) {
			f->status = (int)status;
			loop_defer(f->all->loop, &f->pump);
		}
	}
	return n;
}

static size_t write_callback(char *data, size_t size, size_t n, void *arg)
{
	struct fetch *f = arg;

	(void)size;
	if (f->in.len > 0 && f->in.len + n > WAITING_MAX) {
		f->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (buf_append(&f->in, data, n) < 0)
		return 0;
	loop_defer(f->all->loop, &f->pump);
	return n;
}

static void free_fetch(struct fetch *f)
{
	struct fetcher *all = f->all;
	bool last = f->begun && --all->live == 0;

	curl_slist_free_all(f->headers);
	if (f->easy)
		curl_easy_cleanup(f->easy);
	buf_free(&f->out);
	buf_free(&f->in);
	free(f);
	if (last && all->on_none)
		all->on_none(all);
}

/* Without the details, which may have names of machines in them; f->error has those. */
static const char *why(const struct fetch *f)
{
	return f->code == CURLE_OK ? NULL : curl_easy_strerror(f->code);
}

static void pump(struct deferred *d)
{
	struct fetch *f = d->arg;

	if (!f->stopped && f->status && !f->head_told) {
		f->head_told = true;
		if (f->on_head)
			f->on_head(f);
	}
	if (!f->stopped && f->in.len > 0) {
		if (f->on_data)
			f->on_data(f, f->in.data, f->in.len);
		buf_clear(&f->in);
	}
	if (!f->stopped && f->paused) {
		f->paused = false;
		(void)curl_easy_pause(f->easy, CURLPAUSE_CONT);
		collect(f->all);
		loop_defer(f->all->loop, &f->pump);
	} else if (!f->stopped && f->ended && f->in.len == 0) {
		if (f->on_end)
			f->on_end(f, why(f));
		else
			fetch_stop(f);
	}
	if (f->stopped) {
		loop_undefer(f->all->loop, &f->pump);
		free_fetch(f);
	}
}

struct fetch *fetch_new(struct fetcher *all, const char *method, const char *url)
{
	struct fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->all = all;
	f->easy = curl_easy_init();
	f->pump = (struct deferred){ .fn = pump, .arg = f };
	buf_init(&f->in, WAITING_MAX + CURL_MAX_WRITE_SIZE);
	buf_init(&f->out, SIZE_MAX / 2);
	if (!f->easy) {
		free_fetch(f);
		return NULL;
	}
	(void)curl_easy_setopt(f->easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(f->easy, CURLOPT_PRIVATE, f);
	(void)curl_easy_setopt(f->easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(f->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(f->easy, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(f->easy, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	(void)curl_easy_setopt(f->easy, CURLOPT_ERRORBUFFER, f->error);
	(void)curl_easy_setopt(f->easy, CURLOPT_HEADERFUNCTION, header_callback);
	(void)curl_easy_setopt(f->easy, CURLOPT_HEADERDATA, f);
	(void)curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, write_callback);
	(void)curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
	(void)curl_easy_setopt(f->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(f->easy, CURLOPT_USERAGENT, "caisson/" CAISSON_VERSION);
	if (strcmp(method, "GET") != 0)
		(void)curl_easy_setopt(f->easy, CURLOPT_CUSTOMREQUEST, method);
	return f;
}

bool fetch_header(struct fetch *f, const char *line)
{
	size_t name = strcspn(line, ":");
	char empty[256];
	struct curl_slist *more;

	/* libcurl takes "Name:" for: leave it out. */
	if (strspn(line + name, ": ") == strlen(line + name) && name < sizeof(empty) - 2) {
		memcpy(empty, line, name);
		memcpy(empty + name, ";", 2);
		line = empty;
	}
	more = curl_slist_append(f->headers, line);
	if (more)
		f->headers = more;
	return more;
}

int fetch_go(struct fetch *f, const char *body, size_t len)
{
	struct curl_slist *more = curl_slist_append(f->headers, "Expect:");

	if (more)
		f->headers = more;
	if (!more || (body && buf_append(&f->out, body, len) < 0)) {
		free_fetch(f);
		return -ENOMEM;
	}
	(void)curl_easy_setopt(f->easy, CURLOPT_HTTPHEADER, f->headers);
	if (body) {
		(void)curl_easy_setopt(f->easy, CURLOPT_POST, 1L);
		(void)curl_easy_setopt(f->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
		(void)curl_easy_setopt(f->easy, CURLOPT_POSTFIELDS, buf_str(&f->out));
	}
	if (curl_multi_add_handle(f->all->multi, f->easy) != CURLM_OK) {
		free_fetch(f);
		return -ENOMEM;
	}
	f->begun = true;
	f->all->live++;
	return 0;
}

void fetch_limit(struct fetch *f, long ms)
{
	(void)curl_easy_setopt(f->easy, CURLOPT_TIMEOUT_MS, ms);
}

void fetch_stop(struct fetch *f)
{
	if (f->stopped)
		return;
	f->stopped = true;
	(void)curl_multi_remove_handle(f->all->multi, f->easy);
	/* It may be its own function that stops it. */
	loop_defer(f->all->loop, &f->pump);
}
