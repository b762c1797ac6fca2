/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.c - libcurl's multi interface, driven by our loop.
 *
 * libcurl names the sockets that it waits for, and for how long; we report events on them. Its own
 * callbacks only copy; deferred work passes the bytes on. A slow receiver pauses its transfer.
 */
#include "bridge/fetch.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"

#define WAITING_MAX (4u << 20)

/* ---- sockets and time ---------------------------------------------------------------------- */

static void on_socket(struct watch *w, uint32_t events)
{
	struct fetcher *all = w->arg;
	int running, what = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			    (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			    (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

	/* The watch may be gone after this. */
	(void)curl_multi_socket_action(all->multi, w->fd, what, &running);
	http_call_collect(all->multi);
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
	http_call_collect(all->multi);
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
	all->multi = http_call_multi();
	if (!all->multi)
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

/* ---- one request --------------------------------------------------------------------------- */

static void copy_value(const char *value, char *to, size_t size)
{
	/* A longer value is of no use. */
	(void)snprintf(to, size, "%s", strlen(value) < size ? value : "");
}

static void on_header(void *arg, const char *name, const char *value)
{
	struct fetch *f = arg;

	if (!name) {
		f->type[0] = f->session[0] = '\0'; /* of another answer, as 100 */
	} else if (strcasecmp(name, "content-type") == 0) {
		copy_value(value, f->type, sizeof(f->type));
		f->type[strcspn(f->type, "; ")] = '\0';
		for (char *p = f->type; *p; p++)
			*p = (char)tolower((unsigned char)*p);
	} else if (strcasecmp(name, "mcp-session-id") == 0) {
		copy_value(value, f->session, sizeof(f->session));
	} else if (!name[0] && http_call_status(&f->http) >= 200) {
		f->status = http_call_status(&f->http);
		loop_defer(f->all->loop, &f->pump);
	}
}

static int on_body(void *arg, const char *data, size_t len)
{
	struct fetch *f = arg;

	if (f->in.len > 0 && f->in.len + len > WAITING_MAX) {
		f->paused = true;
		return HTTP_PAUSE;
	}
	if (buf_append(&f->in, data, len) < 0)
		return -ENOMEM;
	loop_defer(f->all->loop, &f->pump);
	return 0;
}

static void on_over(void *arg, CURLcode code)
{
	struct fetch *f = arg;

	f->ended = true;
	f->code = code;
	loop_defer(f->all->loop, &f->pump);
}

static void free_fetch(struct fetch *f)
{
	struct fetcher *all = f->all;
	bool last = f->begun && --all->live == 0;

	http_call_free(&f->http);
	buf_free(&f->out);
	buf_free(&f->in);
	free(f);
	if (last)
		all->on_none(all->arg);
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
		(void)curl_easy_pause(f->http.easy, CURLPAUSE_CONT);
		http_call_collect(f->all->multi);
		loop_defer(f->all->loop, &f->pump);
	} else if (!f->stopped && f->ended && f->in.len == 0) {
		/* Without the details, which may name machines; f->http.error has those. */
		if (f->on_end)
			f->on_end(f, f->code == CURLE_OK ? NULL : curl_easy_strerror(f->code));
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
	static const struct http_call_options options = { .keepalive = true };
	struct fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->all = all;
	f->pump = (struct deferred){ .fn = pump, .arg = f };
	f->http = (struct http_call){
		.on_header = on_header, .on_body = on_body, .on_end = on_over, .arg = f
	};
	buf_init(&f->in, WAITING_MAX + CURL_MAX_WRITE_SIZE);
	buf_init(&f->out, SIZE_MAX / 2);
	http_call_begin(&f->http, &options, method, url);
	return f;
}

int fetch_go(struct fetch *f, const char *body, size_t len)
{
	bool good = !body || buf_append(&f->out, body, len) == 0;

	if (good && body)
		http_call_body(&f->http, buf_str(&f->out), len);
	if (!good || http_call_start(&f->http, f->all->multi) < 0) {
		free_fetch(f);
		return -ENOMEM;
	}
	f->begun = true;
	f->all->live++;
	return 0;
}

void fetch_stop(struct fetch *f)
{
	if (f->stopped)
		return;
	f->stopped = true;
	http_call_stop(&f->http);
	/* It may be stopped from one of its own functions. */
	loop_defer(f->all->loop, &f->pump);
}
