/* SPDX-License-Identifier: Apache-2.0 */
/* port.c - `caisson port`: ways to the services of a sandbox. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "remote/forward.h"
#include "remote/list.h"
#include "remote/place.h"
#include "remote/session.h"
#include "remote/verbs.h"

/* A daemon that listens on no address says paths alone. */
static void print_url(const struct session *s, const json_t *port)
{
	const char *url = list_text(port, "url");

	(void)printf("%s%s\n", url[0] == '/' ? s->api.url.base : "", url);
}

static void print_all(const struct session *s, const json_t *list)
{
	size_t i;
	json_t *port;

	json_array_foreach(json_object_get(list, "ports"), i, port)
	{
		(void)printf("%lld ", (long long)json_integer_value(json_object_get(port, "port")));
		print_url(s, port);
	}
}

static int check(const struct remote_options *o, uint64_t *port, struct err *e)
{
	int r = place_check_name(o->rest[0], e);

	if (r == 0 && (o->close || o->listen) && o->n_rest < 2)
		r = err_say(e, -EINVAL, "--%s: say which PORT", o->close ? "close" : "listen");
	if (r == 0 && o->close && o->listen)
		r = err_say(e, -EINVAL, "--close and --listen do not go together");
	if (r == 0 && o->n_rest == 2 && (r = num_parse_u64(o->rest[1], 1, 65535, port, e)) < 0)
		r = err_wrap(e, "PORT");
	return r;
}

static void close_port(struct session *s, const char *path)
{
	const struct api_call call = { .method = "DELETE", .path = path };
	struct api_answer a = { 0 };

	if (api_call(&s->api, &call, &a, &s->problem) < 0)
		session_fail(s);
	api_answer_free(&a);
}

/* The daemon's end of it is the port's own path. */
static void listen_here(struct session *s, struct buf *path)
{
	json_t *v = api_json(&s->api, "POST", buf_str(path), NULL, &s->problem);

	(void)buf_puts(path, "/");
	if (v)
		forward_run(s, buf_str(path));
	else
		session_fail(s);
	json_decref(v);
}

static void say(struct session *s, const char *method, const char *path,
		void (*print)(const struct session *s, const json_t *v))
{
	json_t *v = api_json(&s->api, method, path, NULL, &s->problem);

	if (!v)
		session_fail(s);
	else if (s->o.json)
		session_json(v);
	else
		print(s, v);
	json_decref(v);
}

int verb_port(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_PORT,
		.usage = "port NAME [PORT] [--listen [ADDRESS:]PORT | --close]",
		.text = "Opens a port of the sandbox and prints the URL under which its service is reached through the\n"
			"daemon, by anybody who has the URL; or, with --listen, makes a port of this machine be that port, for any\n"
			"TCP. Without PORT: the ports that are open.\n",
		.min = 1,
		.max = 2,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		_buf_ struct buf path = BUF_INIT(1024);
		struct err e = { 0 };
		uint64_t port = 0;

		if (check(&s.o, &port, &e) < 0) {
			session_fail_err(&s, &e);
		} else {
			url_sandbox(&path, s.o.rest[0], "/ports");
			if (port)
				(void)buf_printf(&path, "/%u", (unsigned int)port);
			if (s.o.close)
				close_port(&s, buf_str(&path));
			else if (s.o.listen)
				listen_here(&s, &path);
			else if (port)
				say(&s, "POST", buf_str(&path), print_url);
			else
				say(&s, "GET", buf_str(&path), print_all);
		}
	}
	return session_end(&s);
}
