/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_bridge.c - Messages of servers, and configurations: slices of JSON against a real
 * parser, lines and events in pieces of any size, a configuration of any text. The first byte
 * chooses.
 */
#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "bridge/config.h"
#include "bridge/event_stream.h"
#include "client/lines.h"
#include "fuzz.h"
#include "mcp/slice.h"

static void slices(const char *text, size_t len)
{
	static const char *const keys[] = { "id", "result" };
	struct slice s[2];
	int r = slice_members(text, len, keys, 2, s);
	json_t *v = json_loadb(text, len, 0, NULL);

	/* The real parser takes all that we take, but for what it has no room for (NUL, lone
	 * surrogates, large numbers). */
	if (r == 0 && !v && !memchr(text, '\\', len) && !memchr(text, 'e', len) &&
	    !memchr(text, 'E', len) && len < 200)
		abort();
	if (r != 0 && json_is_object(v) && r != -40 /* ELOOP */) {
		/* ... and the other way round, but for keys that come twice. */
		json_t *strict = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

		require(!strict);
	}
	for (int i = 0; r == 0 && i < 2; i++)
		require(!s[i].at || (s[i].at >= text && s[i].at + s[i].len <= text + len));
	json_decref(v);
}

static int on_line(void *arg, char *text, size_t len)
{
	*(size_t *)arg += len;
	return memchr(text, '!', len) ? 1 : 0;
}

static int on_long(void *arg, const struct lines *l)
{
	*(size_t *)arg += lines_id(l) > 0;
	return 0;
}

static bool on_event(void *arg, const char *type, char *data, size_t len)
{
	*(size_t *)arg += len + strlen(type);
	return !memchr(data, '!', len);
}

static void streams(const char *text, size_t len, size_t piece)
{
	size_t n = 0;
	struct event_stream v;
	struct lines l;

	lines_init(&l, on_line, &n);
	lines_limit(&l, 64, on_long);
	event_stream_init(&v, 128);
	v.on_event = on_event;
	v.arg = &n;
	for (size_t at = 0; at < len; at += piece)
		if (lines_feed(&l, text + at, len - at < piece ? len - at : piece) != 0)
			break;
	for (size_t at = 0; at < len; at += piece)
		if (!event_stream_feed(&v, text + at, len - at < piece ? len - at : piece))
			break;
	lines_free(&l);
	event_stream_free(&v);
}

static const char *variable(const char *name)
{
	return strlen(name) % 2 ? "value" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	const char *const self[] = { "127.0.0.1:8001", NULL };
	struct bridge_config c = { .variable = variable, .self = self };
	struct err e = { 0 };

	if (size == 0)
		return 0;
	if (data[0] % 4 == 0)
		slices(text, size - 1);
	else if (data[0] % 4 == 1)
		streams(text, size - 1, 1 + data[0] / 4);
	else if (bridge_config_add(&c, "f", text, size - 1, data[0] % 4 == 2, &e) < 0 && !e.msg[0])
		abort();
	bridge_config_free(&c);
	return 0;
}
