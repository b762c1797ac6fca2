/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_jupyter_frame.c - Frames of strangers: every part lies within the message; a message of five
 * parts is the same when they are joined. */
#include "base/buf.h"
#include "fuzz.h"
#include "jupyter/frame.h"

static void inside(struct frame_part p, const uint8_t *data, size_t size)
{
	const uint8_t *at = (const uint8_t *)p.data;

	require(p.len == 0 || (at >= data && p.len <= size && (size_t)(at - data) <= size - p.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame f, again;

	for (int kind = FRAME_JSON; kind <= FRAME_V1; kind++)
		for (int text = 0; text < 2; text++) {
			if (frame_split((enum frame_kind)kind, text, (const char *)data, size, &f))
				continue;
			inside(f.whole, data, size);
			inside(f.channel, data, size);
			inside(f.header, data, size);
			inside(f.parent, data, size);
			inside(f.metadata, data, size);
			inside(f.content, data, size);
			if (kind != FRAME_V1)
				continue;
			_buf_ struct buf b = BUF_INIT(size + 256);
			struct frame_message m = { .channel = "shell",
						   .type = "t",
						   .id = "i",
						   .header = f.header,
						   .parent = f.parent,
						   .metadata = f.metadata,
						   .content = f.content };

			require(frame_join(FRAME_V1, &m, &b) >= 0 &&
				!frame_split(FRAME_V1, false, buf_str(&b), b.len, &again) &&
				again.content.len == f.content.len);
		}
	return 0;
}
