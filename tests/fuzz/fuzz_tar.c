/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tar.c - Headers of archives: any block, any records.
 *
 * Checked: strings end inside their fields, sizes are those of a file, records lie inside their
 * data and the walk through them ends; headers of our writer are read back.
 */
#include <errno.h>

#include "archive/tar.h"
#include "fuzz.h"

static void try_head(const uint8_t *data, bool mend)
{
	uint8_t block[TAR_BLOCK];
	struct tar_head h, again;
	unsigned int sum = 0;

	memcpy(block, data, sizeof(block));
	if (mend) { /* hardly any input has the right sum */
		memset(block + 148, ' ', 8);
		for (size_t i = 0; i < sizeof(block); i++)
			sum += block[i];
		for (int i = 5; i >= 0; i--, sum >>= 3)
			block[148 + i] = (uint8_t)('0' + (sum & 7));
		block[154] = '\0';
	}
	int r = tar_parse(block, &h);

	require(r == 1 || r == 0 || r == -EBADMSG);
	if (r != 1)
		return;
	require(strnlen(h.name, sizeof(h.name)) < sizeof(h.name));
	require(strnlen(h.link, sizeof(h.link)) < sizeof(h.link));
	require(h.size <= INT64_MAX && h.mode <= 07777);
	if (strlen(h.name) > TAR_NAME_MAX || h.size > TAR_SIZE_MAX)
		return;
	tar_format(block, &(struct tar_entry){ .type = h.type,
					       .mode = h.mode,
					       .size = h.size,
					       .mtime = h.mtime,
					       .path = h.name,
					       .link = h.link });
	require(tar_parse(block, &again) == 1);
	require(strcmp(h.name, again.name) == 0 && strcmp(h.link, again.link) == 0);
	require(h.size == again.size && h.mode == again.mode && h.type == again.type);
}

static void try_records(const char *data, size_t size)
{
	struct tar_record r;
	size_t at = 0, before = 0;
	int n;

	while ((n = tar_record_next(data, size, &at, &r)) == 1) {
		int64_t number;

		require(at > before && at <= size);
		require(r.key >= data + before && r.key + r.key_len < r.value);
		require(r.value + r.value_len < data + at);
		before = at;
		(void)tar_record_number(&r, &number);
	}
	require(n == 0 ? at == size : n == -EBADMSG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= TAR_BLOCK) {
		try_head(data, false);
		try_head(data, true);
	}
	try_records((const char *)data, size);
	return 0;
}
