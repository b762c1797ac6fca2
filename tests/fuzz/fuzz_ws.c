/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ws.c - Any bytes from a WebSocket peer.
 *
 * The first byte is a mode, the second chooses how the bytes are cut. Either the rest is the raw
 * stream, or it describes frames that are put together with a mask, so that most of them get past
 * the header. Every input runs twice, in one piece and cut: the same messages, the same frames
 * back, the same close code. The answer is a sequence of whole, unmasked frames of which a close
 * frame is the last.
 */
#include "base/utf8.h"
#include "fake_conn.h"
#include "fuzz.h"
#include "net/ws.h"

#define MODE_FRAMES 1
#define MODE_ECHO 2
#define MODE_EOF 4
#define MODE_CLOSE 8

#define MESSAGE_MAX 1000

struct run {
	unsigned int mode;
	struct buf log;
	int closes, code;
};

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
	struct run *r = ws_user(w);

	require(len <= MESSAGE_MAX && data[len] == '\0' && (!text || utf8_valid(data, len)));
	(void)buf_printf(&r->log, "%s %zu:", text ? "text" : "binary", len);
	(void)buf_append(&r->log, data, len);
	if (r->mode & MODE_ECHO)
		(void)ws_send(w, text, data, len);
	if (r->mode & MODE_CLOSE && len == 3) {
		ws_close(w, 4000, "three bytes");
		require(ws_send(w, text, data, len) == -EPIPE);
	}
}

static void on_close(struct ws *w, int code)
{
	struct run *r = ws_user(w);

	r->closes++;
	r->code = code;
}

static const struct ws_ops ops = { .on_message = on_message, .on_close = on_close };

/* [first byte][length][payload]... as masked frames. */
static void put_frames(struct buf *out, const uint8_t *data, size_t size)
{
	static const char mask[4] = { 0x11, 0x22, 0x33, 0x44 };

	for (size_t i = 0; i + 2 <= size;) {
		size_t len = data[i + 1];
		char head[4] = { (char)data[i], (char)(0x80 | (len < 126 ? len : 126)), 0,
				 (char)len };

		i += 2;
		if (len > size - i)
			break;
		(void)buf_append(out, head, len < 126 ? 2 : 4);
		(void)buf_append(out, mask, 4);
		for (size_t j = 0; j < len; j++, i++) {
			char c = (char)(data[i] ^ mask[j % 4]);

			(void)buf_append(out, &c, 1);
		}
	}
}

static void check_output(const uint8_t *p, size_t len)
{
	bool closed = false;

	for (size_t i = 0; i < len;) {
		require(!closed && len - i >= 2 && (p[i] & 0xf0) == 0x80 && p[i + 1] < 0x80);

		size_t n = p[i + 1], head = 2;

		closed = (p[i] & 0x0f) == 0x8;
		if (n == 126) {
			require(len - i >= 4);
			n = (size_t)(p[i + 2] << 8 | p[i + 3]);
			head = 4;
		}
		require(n < 127 || head == 4);
		require(len - i - head >= n);
		i += head + n;
	}
}

static void run_once(struct run *r, const char *data, size_t size, size_t step)
{
	struct buf early = BUF_INIT(4096);
	struct conn c;

	buf_init(&r->log, SIZE_MAX / 2);
	fake_init(&c);

	struct ws *w = ws_new(&c, &ops, r, MESSAGE_MAX);

	require(w);
	/* The first piece has come behind the handshake. */
	size_t first = size < step ? size : step;

	require(buf_append(&early, data, first < 4096 ? first : 0) == 0);
	ws_start(w, &early);
	fake_deferred(&c);
	for (size_t at = first < 4096 ? first : 0; at < size; at += step)
		require(fake_deliver(&c, data + at, size - at < step ? size - at : step));
	if (r->mode & MODE_EOF)
		fake_eof(&c);
	check_output((const uint8_t *)buf_str(&c.out), c.out.len);
	(void)buf_append(&r->log, c.out.data, c.out.len);
	fake_end(&c);
	require(r->closes == 1 && r->code >= 1000 && r->code < 5000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;

	_buf_ struct buf frames = BUF_INIT(SIZE_MAX / 2);
	struct run whole = { .mode = data[0] }, cut = { .mode = data[0] };
	size_t step = data[1] ? data[1] : 1;

	if (whole.mode & MODE_FRAMES)
		put_frames(&frames, data + 2, size - 2);
	else
		(void)buf_append(&frames, data + 2, size - 2);
	run_once(&whole, buf_str(&frames), frames.len, frames.len + 1);
	run_once(&cut, buf_str(&frames), frames.len, step);
	require(whole.code == cut.code && whole.log.len == cut.log.len &&
		memcmp(buf_str(&whole.log), buf_str(&cut.log), cut.log.len) == 0);
	buf_free(&whole.log);
	buf_free(&cut.log);
	return 0;
}
