/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.c - Keeps streams in memory first, and then in blocks of one file.
 *
 * Theory of operation: byte n of a stream is in s->memory if n < memory.len. The bytes after these
 * are in blocks, in the order of s->blocks: once a spool has a block, its memory does not grow any
 * more. So a stream has one border between memory and file, wherever the bank ran out of memory.
 * Bytes move at most once: a reserve exceeds SPOOL_MEMORY by whole blocks, and these become the
 * first blocks when the stream has ended.
 *
 * The file has no name and no structure of its own: only this process knows which block belongs to
 * which spool, and a read goes no further than the bytes that its spool has written. A block that
 * is given back becomes a hole, which returns its space to the disk. On a file system without holes
 * the space returns when no block is in use: then the file is truncated.
 *
 * Writes go to the page cache. The file is never synchronised, because no process reads it after
 * the daemon has ended.
 */
#include "front/output/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define FILE_NAME "spool.tmp" /* used for a moment, where O_TMPFILE is not supported */
#define WORD_BITS 64u

/* ---- the bank ------------------------------------------------------------------------------ */

static int open_file(int dirfd, struct err *e)
{
	if (unlinkat(dirfd, FILE_NAME, 0) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove the spool of an interrupted start");

	int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	fd = openat(dirfd, FILE_NAME, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "make a file for the output of executions");
	if (unlinkat(dirfd, FILE_NAME, 0) < 0) {
		int r = err_set(e, -errno, "unlink the file for the output of executions");

		fd_close(fd);
		return r;
	}
	return fd;
}

int spool_bank_open(struct spool_bank *b, int dirfd, uint64_t disk_max, uint64_t memory_max,
		    struct err *e)
{
	*b = (struct spool_bank){ .fd = -1, .memory_max = memory_max };
	if (dirfd < 0)
		return 0;
	b->blocks_max = disk_max / SPOOL_BLOCK;
	b->used = calloc(b->blocks_max / WORD_BITS + 1, sizeof(*b->used));
	if (!b->used)
		return err_set(e, -ENOMEM, "make a spool");
	b->fd = open_file(dirfd, e);
	if (b->fd >= 0)
		return 0;

	int r = b->fd;

	b->fd = -1;
	spool_bank_close(b);
	return r;
}

void spool_bank_close(struct spool_bank *b)
{
	free(b->used);
	b->used = NULL;
	b->fd = fd_close(b->fd);
}

static bool take_block(struct spool_bank *b, uint32_t *ret)
{
	if (b->fd < 0 || b->blocks >= b->blocks_max)
		return false;
	while (b->used[b->hint] == UINT64_MAX)
		b->hint++;

	unsigned int bit = (unsigned int)__builtin_ctzll(~b->used[b->hint]);

	b->used[b->hint] |= UINT64_C(1) << bit;
	b->blocks++;
	*ret = (uint32_t)(b->hint * WORD_BITS + bit);
	return true;
}

static void punch(const struct spool_bank *b, uint32_t first, uint32_t n)
{
	(void)fallocate(b->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)first * SPOOL_BLOCK, (off_t)n * SPOOL_BLOCK);
}

/* Give blocks back. Blocks that are neighbours in the file become a hole with one call. */
static void give_blocks(struct spool_bank *b, const uint32_t *blocks, size_t n)
{
	size_t run = 0;

	for (size_t i = 0; i < n; i++) {
		size_t word = blocks[i] / WORD_BITS;

		b->used[word] &= ~(UINT64_C(1) << blocks[i] % WORD_BITS);
		if (word < b->hint)
			b->hint = word;
		if (i + 1 < n && blocks[i + 1] == blocks[i] + 1)
			continue;
		punch(b, blocks[run], (uint32_t)(i + 1 - run));
		run = i + 1;
	}
	b->blocks -= n;
	if (n > 0 && b->blocks == 0)
		(void)!ftruncate(b->fd, 0);
}

/* ---- writing ------------------------------------------------------------------------------- */

void spool_init(struct spool *s, struct spool_bank *bank, uint64_t cap)
{
	*s = (struct spool){ .bank = bank, .cap = cap };
	buf_init(&s->memory, SPOOL_MEMORY);
}

void spool_free(struct spool *s)
{
	if (!s->bank)
		return;
	s->bank->memory -= s->memory.len;
	give_blocks(s->bank, s->blocks, s->n_blocks);
	free(s->blocks);
	buf_free(&s->memory);
	*s = (struct spool){ 0 };
}

void spool_reserve(struct spool *s, uint64_t bytes)
{
	if (bytes > SPOOL_MEMORY) {
		uint64_t blocks = (bytes - SPOOL_MEMORY + SPOOL_BLOCK - 1) / SPOOL_BLOCK;

		bytes = SPOOL_MEMORY + blocks * SPOOL_BLOCK;
		s->memory.max = (size_t)bytes;
	}
	s->reserve = bytes;
	if (s->cap < bytes)
		s->cap = bytes;
}

/* Append as much to the memory as the limits allow. Return: the number of bytes appended. */
static size_t to_memory(struct spool *s, const char *data, size_t len)
{
	const struct spool_bank *b = s->bank;
	uint64_t left = b->memory < b->memory_max ? b->memory_max - b->memory : 0;

	if (s->n_blocks > 0)
		return 0;
	if (s->memory.len < s->reserve && left < s->reserve - s->memory.len)
		left = s->reserve - s->memory.len;
	size_t n = buf_append_some(&s->memory, data, len < left ? len : (size_t)left);

	s->bank->memory += n;
	return n;
}

static bool add_block(struct spool *s)
{
	if (s->n_blocks == s->cap_blocks) {
		size_t cap = s->cap_blocks ? s->cap_blocks * 2 : 4;
		uint32_t *blocks = reallocarray(s->blocks, cap, sizeof(*blocks));

		if (!blocks)
			return false;
		s->blocks = blocks;
		s->cap_blocks = cap;
	}
	if (!take_block(s->bank, &s->blocks[s->n_blocks]))
		return false;
	s->n_blocks++;
	return true;
}

/*
 * The position in the file of byte @at of the stream. *@left: bytes from there to the end of its
 * block.
 */
static off_t place(const struct spool *s, uint64_t at, size_t *left)
{
	uint64_t in = at - s->memory.len;

	*left = SPOOL_BLOCK - in % SPOOL_BLOCK;
	return (off_t)s->blocks[in / SPOOL_BLOCK] * SPOOL_BLOCK + (off_t)(in % SPOOL_BLOCK);
}

static void to_file(struct spool *s, const char *data, size_t len)
{
	while (len > 0) {
		size_t left;

		if (s->kept - s->memory.len == (uint64_t)s->n_blocks * SPOOL_BLOCK &&
		    !add_block(s)) {
			s->loss = SPOOL_BUDGET;
			return;
		}
		off_t at = place(s, s->kept, &left);
		ssize_t n = pwrite(s->bank->fd, data, len < left ? len : left, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			s->loss = SPOOL_DISK;
			return;
		}
		s->kept += (uint64_t)n;
		data += n;
		len -= (size_t)n;
	}
}

void spool_append(struct spool *s, const void *data, size_t len)
{
	s->bytes += len;
	if (s->loss != SPOOL_WHOLE || len == 0)
		return;
	uint64_t room = s->cap - s->kept;
	size_t take = len < room ? len : (size_t)room;
	size_t n = to_memory(s, data, take);

	s->kept += n;
	to_file(s, (const char *)data + n, take - n);
	if (s->loss == SPOOL_WHOLE && take < len)
		s->loss = SPOOL_OVER;
}

/* Add up to @n blocks before the existing ones. Return: the number of blocks added. */
static size_t add_first_blocks(struct spool *s, size_t n)
{
	size_t had = s->n_blocks, got = 0;

	while (got < n && add_block(s))
		got++;
	if (got == 0)
		return 0;
	uint32_t *fresh = reallocarray(NULL, got, sizeof(*fresh));

	if (!fresh) {
		give_blocks(s->bank, s->blocks + had, got);
		s->n_blocks = had;
		return 0;
	}
	memcpy(fresh, s->blocks + had, got * sizeof(*fresh));
	memmove(s->blocks + got, s->blocks, had * sizeof(*fresh));
	memcpy(s->blocks, fresh, got * sizeof(*fresh));
	free(fresh);
	return got;
}

/* Keep only the first @kept bytes, which begin in memory, and give back the blocks after them. */
static void cut(struct spool *s, uint64_t kept, enum spool_loss loss)
{
	size_t blocks = (size_t)((kept - s->memory.len + SPOOL_BLOCK - 1) / SPOOL_BLOCK);

	give_blocks(s->bank, s->blocks + blocks, s->n_blocks - blocks);
	s->n_blocks = blocks;
	s->kept = kept;
	s->loss = loss;
}

void spool_settle(struct spool *s)
{
	size_t excess = s->memory.len > SPOOL_MEMORY ? s->memory.len - SPOOL_MEMORY : 0;

	/* If an allocation failed, the reserve may have ended within a block: then it stays in
	 * memory. */
	if (excess == 0 || (s->n_blocks > 0 && excess % SPOOL_BLOCK != 0))
		return;
	size_t want = (excess + SPOOL_BLOCK - 1) / SPOOL_BLOCK, got = add_first_blocks(s, want);
	char *data = s->memory.data + SPOOL_MEMORY;
	size_t moved = 0;

	s->memory.len = SPOOL_MEMORY;
	while (moved < excess && moved < got * SPOOL_BLOCK) {
		size_t left, size = excess - moved;
		off_t at = place(s, SPOOL_MEMORY + moved, &left);
		ssize_t n = pwrite(s->bank->fd, data + moved, size < left ? size : left, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		moved += (size_t)n;
	}
	s->bank->memory -= excess;
	if (moved < excess)
		cut(s, SPOOL_MEMORY + moved, got < want ? SPOOL_BUDGET : SPOOL_DISK);
	s->memory.data[s->memory.len] = '\0';
	buf_trim(&s->memory);
}

const char *spool_loss_name(enum spool_loss loss)
{
	static const char *const names[] = { NULL, "stream_limit", "daemon_limit", "disk" };

	return names[loss];
}

/* ---- reading ------------------------------------------------------------------------------- */

int64_t spool_read(const struct spool *s, uint64_t offset, void *buf, size_t len)
{
	size_t done = 0;

	if (offset >= s->kept)
		return 0;
	if (len > s->kept - offset)
		len = (size_t)(s->kept - offset);
	if (offset < s->memory.len) {
		done = s->memory.len - (size_t)offset;
		done = done < len ? done : len;
		memcpy(buf, s->memory.data + offset, done);
	}
	while (done < len) {
		size_t left;
		off_t at = place(s, offset + done, &left);
		ssize_t n = pread(s->bank->fd, (char *)buf + done,
				  len - done < left ? len - done : left, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return (int64_t)done;
}
