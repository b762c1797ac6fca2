/* SPDX-License-Identifier: Apache-2.0 */
/* files_client.c - Packing a file call, and taking its frames apart. */
#include "client/files_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "wire/init.h"

int files_ask(int channel, const struct files_request *q, struct err *e)
{
	char blob[2 * FILES_PATH_MAX];
	const char *to = q->to ? q->to : "";
	size_t path_len = strlen(q->path) + 1, to_len = strlen(to) + 1;
	struct init_msg m;

	if (path_len > FILES_PATH_MAX || to_len > FILES_PATH_MAX)
		return err_say(e, -ENAMETOOLONG, "a path has at most %u bytes", FILES_PATH_MAX - 1);
	memcpy(blob, q->path, path_len);
	memcpy(blob + path_len, to, to_len);
	memset(&m, 0, sizeof(m));
	m.type = INIT_FILES;
	m.id = q->id;
	m.u.files = (struct init_files){
		.op = q->op,
		.flags = q->flags,
		.mode = q->mode,
		.depth = q->depth,
		.blob_len = (uint32_t)(path_len + to_len),
		.uid = q->uid,
		.gid = q->gid,
		.offset = q->offset,
		.length = q->length,
		.limit = q->limit,
	};
	_fd_ int fd = fd_memfd("caisson-files", blob, path_len + to_len);

	if (fd < 0)
		return err_set(e, fd, "pack the request");
	int r = fd_send(channel, &m, sizeof(m), &fd, 1);

	return r < 0 ? err_set(e, r, "ask the cell for a file call") : 0;
}

char *files_text_copy(struct files_text t)
{
	return strndup(t.data, t.len); /* the parser accepts no NUL */
}

struct files_frame files_head(size_t len)
{
	return (struct files_frame){ .type = len ? FILES_F_DATA : FILES_F_END,
				     .len = (uint32_t)len };
}

/* ---- the parser ------------------------------------------------------------------------------ */

void files_parser_free(struct files_parser *p)
{
	free(p->text);
	*p = (struct files_parser){ 0 };
}

static const size_t fixed[FILES_F_MAX_] = {
	[FILES_F_STAT] = sizeof(struct files_stat),
	[FILES_F_EVENT] = sizeof(struct files_event),
	[FILES_F_END] = sizeof(struct files_end),
};

static bool head_is_right(const struct files_frame *h)
{
	if (h->type == FILES_F_DATA)
		return h->len > 0 && h->len <= FILES_FRAME_MAX;
	return h->type > 0 && h->type < FILES_F_MAX_ && h->len >= fixed[h->type] &&
	       h->len <= FILES_TEXT_MAX;
}

/* Two texts of these lengths must be all that is left, and hold no NUL. */
static bool split(const char *text, size_t left, size_t first, size_t second,
		  struct files_text ret[2])
{
	if (first > left || left - first != second || memchr(text, '\0', left))
		return false;
	ret[0] = (struct files_text){ .data = text, .len = first };
	ret[1] = (struct files_text){ .data = text + first, .len = second };
	return true;
}

static int take_stat(const struct files_parser *p, const struct files_sink *sink, void *arg)
{
	struct files_stat st;
	struct files_text t[2];

	memcpy(&st, p->text, sizeof(st));
	if (st.type >= FILES_T_MAX_ || st.mode > 07777 ||
	    !split(p->text + sizeof(st), p->head.len - sizeof(st), st.name_len, st.target_len, t))
		return -EPROTO;
	return sink->stat ? sink->stat(arg, &st, t[0], t[1]) : -EPROTO;
}

static int take_event(const struct files_parser *p, const struct files_sink *sink, void *arg)
{
	struct files_event ev;
	struct files_text t[2];

	memcpy(&ev, p->text, sizeof(ev));
	if (ev.kind == 0 || ev.kind >= FILES_E_MAX_ || ev.is_dir > 1 ||
	    !split(p->text + sizeof(ev), p->head.len - sizeof(ev), ev.name_len, ev.from_len, t))
		return -EPROTO;
	return sink->event ? sink->event(arg, &ev, t[0], t[1]) : -EPROTO;
}

static int take_end(struct files_parser *p, const struct files_sink *sink, void *arg)
{
	struct files_end end;
	struct files_text t[2];
	size_t left = p->head.len - sizeof(end);

	memcpy(&end, p->text, sizeof(end));
	if (end.error < 0 || end.error > 4095 || !split(p->text + sizeof(end), left, left, 0, t))
		return -EPROTO;
	p->ended = true;
	return sink->end(arg, &end, t[0]);
}

static int take_frame(struct files_parser *p, const struct files_sink *sink, void *arg)
{
	switch (p->head.type) {
	case FILES_F_STAT:
		return take_stat(p, sink, arg);
	case FILES_F_EVENT:
		return take_event(p, sink, arg);
	default:
		return take_end(p, sink, arg);
	}
}

/* Takes some bytes, at least one. Return: how many, or a negative errno. */
static ssize_t feed_head(struct files_parser *p, const char *data, size_t len)
{
	size_t n = sizeof(p->head) - p->have < len ? sizeof(p->head) - p->have : len;

	if (p->ended)
		return -EPROTO;
	memcpy((char *)&p->head + p->have, data, n);
	p->have += n;
	if (p->have < sizeof(p->head))
		return (ssize_t)n;
	if (!head_is_right(&p->head))
		return -EPROTO;
	if (p->head.type != FILES_F_DATA && !p->text && !(p->text = malloc(FILES_TEXT_MAX)))
		return -ENOMEM;
	p->in_payload = true;
	p->have = 0;
	return (ssize_t)n;
}

static ssize_t feed_payload(struct files_parser *p, const struct files_sink *sink, void *arg,
			    const char *data, size_t len)
{
	size_t n = p->head.len - p->have < len ? p->head.len - p->have : len;
	int r = 0;

	if (p->head.type != FILES_F_DATA)
		memcpy(p->text + p->have, data, n);
	p->have += n;
	bool whole = p->have == p->head.len;

	if (whole) {
		p->in_payload = false;
		p->have = 0;
	}
	if (p->head.type == FILES_F_DATA)
		r = sink->data(arg, data, n);
	else if (whole)
		r = take_frame(p, sink, arg);
	return r ? r : (ssize_t)n;
}

int files_feed(struct files_parser *p, const struct files_sink *sink, void *arg, const void *data,
	       size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = p->in_payload ? feed_payload(p, sink, arg, at, len) :
					    feed_head(p, at, len);

		if (n < 0)
			return (int)n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}
