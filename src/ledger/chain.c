/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.c - Write, take apart and check one line.
 *
 * The tail of a line has a fixed length, so that the bytes under the hash are found by counting
 * from the end, whatever the members in the middle hold: no JSON parser is needed to check a
 * ledger, and none can disagree with another about it.
 */
#include "ledger/chain.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"
#include "base/utf8.h"

#define NAME_MAX_LEN 64
static const char head_seq[] = "{\"seq\":";
static const char head_time[] = ",\"time\":\"";
static const char head_event[] = "\",\"event\":\"";
static const char tail_prev[] = ",\"prev\":\"";
static const char tail_hash[] = "\",\"hash\":\"";
static const char tail_end[] = "\"}";
static const char tail_cut[] = ",\"cut\":true";

#define LEN(s) (sizeof(s) - 1)
/* From `,"prev"` to the end, and from the quote that closes prev to the end. */
#define TAIL_LEN (LEN(tail_prev) + CHAIN_HEX + LEN(tail_hash) + CHAIN_HEX + LEN(tail_end))
#define HASH_LEN (LEN(tail_hash) - 1 + CHAIN_HEX + LEN(tail_end))

int chain_open(struct chain *c, struct err *e)
{
	buf_init(&c->item, CHAIN_LINE_MAX);
	if (hash_open(&c->hash) < 0)
		return err_say(e, -EIO, "OpenSSL has no SHA-256: check openssl.cnf");
	return buf_reserve(&c->item, CHAIN_LINE_MAX) ? 0 : err_set(e, -ENOMEM, "make a ledger");
}

void chain_close(struct chain *c)
{
	hash_close(&c->hash);
	buf_free(&c->item);
}

void chain_start(struct chain_link *link)
{
	*link = (struct chain_link){ .known = true };
	memset(link->hash, '0', CHAIN_HEX);
}

/* The hash of @a followed by @b. 0 or -EIO. */
static int sha256(struct chain *c, const void *a, size_t a_len, const void *b, size_t b_len,
		  char hex[CHAIN_HEX + 1])
{
	hash_begin(&c->hash);
	hash_add(&c->hash, a, a_len);
	hash_add(&c->hash, b, b_len);
	return hash_end(&c->hash, hex) ? 0 : -EIO;
}

/* ---- write --------------------------------------------------------------------------------- */

static bool is_name(const char *s, bool dots)
{
	size_t n = 0;

	for (; s[n]; n++)
		if (!((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= '0' && s[n] <= '9') || s[n] == '_' ||
		      (dots && s[n] == '.')))
			return false;
	return n > 0 && n <= NAME_MAX_LEN;
}

static bool is_reserved(const char *key)
{
	static const char *const own[] = { "seq",     "time", "event", "owner",
					   "sandbox", "cut",  "prev",  "hash" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (strcmp(key, own[i]) == 0)
			return true;
	return false;
}

/* Cut at a character's end, with a mark. */
static void put_string(struct buf *out, const char *s, size_t len, size_t most)
{
	char cut[CHAIN_PATH_MAX + 3];
	struct json j;

	json_init(&j, out);
	if (!s) {
		json_none(&j);
		return;
	}
	if (len > most) {
		len = utf8_fit(s, len, most);
		memcpy(cut, s, len);
		memcpy(cut + len, "\xe2\x80\xa6", 3); /* U+2026 */
		s = cut;
		len += 3;
	}
	(void)json_strn(&j, s, len);
}

static int put_value(struct chain *c, struct buf *out, const struct ledger_field *f)
{
	char hex[CHAIN_HEX + 1];

	switch (f->kind) {
	case LEDGER_STR:
		put_string(out, f->v.s, f->v.s ? strlen(f->v.s) : 0, CHAIN_VALUE_MAX);
		return 0;
	case LEDGER_PATH:
		put_string(out, f->v.s, f->v.s ? strlen(f->v.s) : 0, CHAIN_PATH_MAX);
		return 0;
	case LEDGER_STRN:
		put_string(out, f->v.s, f->len, CHAIN_VALUE_MAX);
		return 0;
	case LEDGER_INT:
		return buf_printf(out, "%" PRId64, f->v.i);
	case LEDGER_UINT:
		return buf_printf(out, "%" PRIu64, f->v.u);
	case LEDGER_BOOL:
		return buf_puts(out, f->v.b ? "true" : "false");
	case LEDGER_SHA256:
		if (sha256(c, f->v.s, f->len, NULL, 0, hex) < 0)
			return -EIO;
		return buf_printf(out, "\"%s\"", hex);
	case LEDGER_OBJECT:
	case LEDGER_END:
		break;
	}
	return -EINVAL;
}

/*
 * One member of the line into c->item: a field, or an object with its fields.
 * Return: how many fields that was, or -errno. Too long for any line shows in c->item.err.
 */
static ssize_t put_item(struct chain *c, const struct ledger_field *f, size_t n)
{
	struct buf *out = &c->item;
	size_t i = 0;
	int r;

	buf_clear(out);
	if (!is_name(f->key, false) || is_reserved(f->key))
		return -EINVAL;
	(void)buf_printf(out, ",\"%s\":", f->key);
	if (f->kind != LEDGER_OBJECT) {
		r = put_value(c, out, f);
		return r < 0 && r != out->err ? r : 1;
	}
	(void)buf_puts(out, "{");
	for (i = 1; i < n && f[i].kind != LEDGER_END; i++) {
		if (!is_name(f[i].key, false))
			return -EINVAL;
		(void)buf_printf(out, "%s\"%s\":", i > 1 ? "," : "", f[i].key);
		r = put_value(c, out, &f[i]);
		if (r < 0 && r != out->err)
			return r;
	}
	(void)buf_puts(out, "}");
	return i < n ? (ssize_t)i + 1 : -EINVAL;
}

static int put_members(struct chain *c, struct buf *out, const struct ledger_event *event)
{
	bool cut = false;

	for (size_t i = 0; i < event->n;) {
		ssize_t n = put_item(c, event->fields + i, event->n - i);

		if (n < 0)
			return (int)n;
		if (c->item.err ||
		    out->len + c->item.len + LEN(tail_cut) + TAIL_LEN + 1 > CHAIN_LINE_MAX)
			cut = true;
		else
			(void)buf_append(out, c->item.data, c->item.len);
		i += (size_t)n;
	}
	return cut ? buf_puts(out, tail_cut) : out->err;
}

static void put_head(struct buf *out, uint64_t seq, uint64_t time_ns,
		     const struct ledger_event *event)
{
	time_t seconds = (time_t)(time_ns / CLOCK_NS_PER_S);
	struct tm tm = { 0 };
	char when[40] = "";

	(void)gmtime_r(&seconds, &tm);
	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)buf_printf(out, "%s%" PRIu64 "%s%s.%03uZ%s%s\",\"owner\":", head_seq, seq, head_time,
			 when, (unsigned int)(time_ns / CLOCK_NS_PER_MS % 1000), head_event,
			 event->event);
	put_string(out, event->owner, event->owner ? strlen(event->owner) : 0, CHAIN_VALUE_MAX);
	(void)buf_puts(out, ",\"sandbox\":");
	put_string(out, event->sandbox, event->sandbox ? strlen(event->sandbox) : 0,
		   CHAIN_VALUE_MAX);
}

int chain_format(struct chain *c, struct buf *out, const struct chain_link *link, uint64_t time_ns,
		 const struct ledger_event *event, struct chain_link *next)
{
	struct chain_link made = { .known = true, .seq = link->seq + 1 };
	int r;

	buf_clear(out);
	if (!is_name(event->event, true))
		return -EINVAL;
	put_head(out, made.seq, time_ns, event);
	r = put_members(c, out, event);
	if (r < 0)
		return r;
	(void)buf_printf(out, "%s%s\"", tail_prev, link->hash);
	if (sha256(c, buf_str(out), out->len, "}", 1, made.hash) < 0)
		return -EIO;
	(void)buf_printf(out, "%s%s%s\n", tail_hash + 1, made.hash, tail_end);
	if (out->err)
		return out->err;
	*next = made;
	return 0;
}

/* ---- read ---------------------------------------------------------------------------------- */

/* Step over @what. */
static bool eat(const char **p, const char *end, const char *what, size_t len)
{
	if ((size_t)(end - *p) < len || memcmp(*p, what, len) != 0)
		return false;
	*p += len;
	return true;
}

static bool eat_seq(const char **p, const char *end, uint64_t *ret)
{
	const char *begin = *p;

	while (*p < end && **p >= '0' && **p <= '9')
		++*p;
	return num_digits(begin, (size_t)(*p - begin), ret) && *begin != '0';
}

static bool eat_time(const char **p, const char *end)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ";

	if ((size_t)(end - *p) < LEN(shape))
		return false;
	for (size_t i = 0; i < LEN(shape); i++, ++*p)
		if (shape[i] == 'd' ? **p < '0' || **p > '9' : **p != shape[i])
			return false;
	return true;
}

static bool is_hex(const char *s)
{
	for (size_t i = 0; i < CHAIN_HEX; i++)
		if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
			return false;
	return true;
}

const char *chain_parse(const char *line, size_t len, struct chain_line *ret)
{
	const char *p = line, *end = line + len, *tail;

	if (len >= CHAIN_LINE_MAX)
		return "is longer than a line can be";
	if (memchr(line, '\n', len) || !utf8_valid(line, len))
		return "is not text";
	if (len < TAIL_LEN)
		return "is too short to be one of the ledger";
	tail = end - TAIL_LEN;
	if (!eat(&p, tail, head_seq, LEN(head_seq)) || !eat_seq(&p, tail, &ret->seq) ||
	    !eat(&p, tail, head_time, LEN(head_time)) || !eat_time(&p, tail) ||
	    !eat(&p, tail, head_event, LEN(head_event)))
		return "does not begin with seq, time and event";
	p = tail;
	(void)eat(&p, end, tail_prev, LEN(tail_prev));
	ret->prev = tail + LEN(tail_prev);
	ret->hash = ret->prev + CHAIN_HEX + LEN(tail_hash);
	if (p != ret->prev || memcmp(ret->prev + CHAIN_HEX, tail_hash, LEN(tail_hash)) != 0 ||
	    memcmp(ret->hash + CHAIN_HEX, tail_end, LEN(tail_end)) != 0 || !is_hex(ret->prev) ||
	    !is_hex(ret->hash))
		return "does not end with prev and hash";
	ret->body_len = len - HASH_LEN;
	return NULL;
}

/* The line is what was written; does it follow? */
static int check_place(const struct chain_line *l, const struct chain_link *link, struct err *e)
{
	struct chain_link start;

	if (!link->known) {
		chain_start(&start);
		if ((l->seq == 1) == (memcmp(l->prev, start.hash, CHAIN_HEX) == 0))
			return 0;
		return err_say(e, -EBADMSG, "the line has number %" PRIu64 " and %s line before it",
			       l->seq, l->seq == 1 ? "still a" : "no");
	}
	if (l->seq == link->seq + 2)
		return err_say(e, -EBADMSG, "line number %" PRIu64 " is missing before this one",
			       link->seq + 1);
	if (l->seq > link->seq + 1)
		return err_say(e, -EBADMSG,
			       "line numbers %" PRIu64 " to %" PRIu64
			       " are missing before this one",
			       link->seq + 1, l->seq - 1);
	if (l->seq <= link->seq)
		return err_say(e, -EBADMSG,
			       "the line has number %" PRIu64 ", but number %" PRIu64
			       " is due: lines were swapped, repeated or put in",
			       l->seq, link->seq + 1);
	if (memcmp(l->prev, link->hash, CHAIN_HEX) != 0)
		return err_say(e, -EBADMSG,
			       "the line does not follow the one before: that one was replaced, or "
			       "this one comes from another ledger");
	return 0;
}

int chain_check(struct chain *c, const char *line, size_t len, struct chain_link *link,
		struct err *e)
{
	struct chain_line l;
	char hex[CHAIN_HEX + 1];
	const char *why = chain_parse(line, len, &l);
	int r;

	if (why)
		return err_say(e, -EBADMSG, "the line %s", why);
	if (sha256(c, line, l.body_len, "}", 1, hex) < 0)
		return err_say(e, -EIO, "OpenSSL failed to hash a line");
	if (memcmp(hex, l.hash, CHAIN_HEX) != 0)
		return err_say(e, -EBADMSG,
			       "the line was changed: its hash is not that of its bytes");
	r = check_place(&l, link, e);
	if (r < 0)
		return r;
	*link = (struct chain_link){ .known = true, .seq = l.seq };
	memcpy(link->hash, l.hash, CHAIN_HEX);
	return 0;
}
