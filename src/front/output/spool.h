/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - All that a stream said, for those who ask later: by offset and by pattern.
 *
 * A spool keeps the beginning of a stream: the first bytes in memory, the others in the bank's
 * file. In the jail no file can be opened, so there is one for all: unlinked, opened before, given
 * out in blocks. Appending never fails: beyond the spool's cap, the bank's budget or the disk,
 * bytes are counted and not kept, and `loss` says why. What is kept is always the beginning,
 * without a hole.
 */
#ifndef CAISSON_FRONT_SPOOL_H
#define CAISSON_FRONT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

#define SPOOL_CAP (UINT64_C(64) << 20)      /* of one stream */
#define SPOOL_MEMORY (64u << 10)            /* of that, at most so much in memory */
#define SPOOL_BLOCK (64u << 10)             /* the others come in these */
#define SPOOL_BANK_DISK (UINT64_C(1) << 30) /* all of the daemon */
#define SPOOL_BANK_MEMORY (UINT64_C(64) << 20)
#define SPOOL_LINE_MAX 4096u   /* of a line that matches: so much text */
#define SPOOL_PATTERN_MAX 256u /* bytes of a pattern */

/* What all spools share. Zero, but for fd -1 and the two limits, is one without a file. */
struct spool_bank {
	int fd; /* -1: what does not fit in memory is lost */
	uint64_t memory, memory_max;
	uint64_t blocks, blocks_max;
	uint64_t *used; /* a bit per block of the file */
	size_t hint;    /* no word before this one has a free bit */
};

/*
 * spool_bank_open() - Before the jail. @dirfd: the directory for the file; -1: none, memory only.
 * Leftovers in it, of a start that was cut off, are removed.
 */
int spool_bank_open(struct spool_bank *b, int dirfd, uint64_t disk_max, uint64_t memory_max,
		    struct err *e);
void spool_bank_close(struct spool_bank *b); /* when no spool is left */

enum spool_loss {
	SPOOL_WHOLE,  /* nothing is lost */
	SPOOL_OVER,   /* the cap of this spool */
	SPOOL_BUDGET, /* that of the daemon */
	SPOOL_DISK,   /* the disk is full, or fails */
};

struct spool {
	struct spool_bank *bank;
	struct buf memory;
	uint32_t *blocks;
	size_t n_blocks, cap_blocks;
	uint64_t cap;
	uint64_t reserve; /* the first bytes, which are in memory whatever the bank has */
	uint64_t bytes;   /* all that was appended */
	uint64_t kept;    /* the first of them that can be read */
	enum spool_loss loss;
};

/* spool_init() - Allocates nothing. @bank is borrowed and must outlive it. */
void spool_init(struct spool *s, struct spool_bank *bank, uint64_t cap);
void spool_free(struct spool *s); /* idempotent, also on a zeroed struct */

/*
 * spool_reserve() - Before the first byte: keep at least the first @bytes in memory until
 * spool_settle(), also when other spools have used up the bank. The result of an execution is made
 * from them, and must not depend on what others wrote.
 */
void spool_reserve(struct spool *s, uint64_t bytes);
/* spool_settle() - Nothing follows, and the reserve has served: it goes to the file as far as it is
 * more than SPOOL_MEMORY. */
void spool_settle(struct spool *s);

void spool_append(struct spool *s, const void *data, size_t len);

/*
 * spool_read() - Up to @len bytes from @offset. Return: how many; 0 at the end of what is kept;
 * -errno when the disk fails.
 */
int64_t spool_read(const struct spool *s, uint64_t offset, void *buf, size_t len);

/* What is searched for: parts that follow each other in a line, with anything in between. A text is
 * one part. */
struct spool_pattern {
	char bytes[SPOOL_PATTERN_MAX];
	bool any[SPOOL_PATTERN_MAX]; /* this byte may be any one but a newline */
	struct {
		size_t at, len;
		bool wild; /* has such bytes */
	} parts[SPOOL_PATTERN_MAX];
	size_t n_parts;
};

/*
 * spool_pattern_make() - @glob: `*` is any number of bytes of a line, `?` one, and a backslash
 * takes the next byte as it is; otherwise all of it is text. Pure. False: nothing is left to look
 * for, too long, or with a newline.
 */
bool spool_pattern_make(struct spool_pattern *p, const char *text, size_t len, bool glob);

/* Where a search is. Zero: at the beginning. */
struct spool_search {
	uint64_t from;   /* the caller's: nothing before it is reported, but lines are counted */
	uint64_t offset; /* of the next byte to look at */
	uint64_t line_start; /* of the line that it is in */
	uint64_t lines;      /* before that one */
	size_t part;         /* of the pattern: those before it were found in this line... */
	uint64_t first;      /* ...and the first of them here */
	bool matched;        /* that line is reported already */
};

/*
 * A line with the pattern in it: where the first match is, the line's number from 1, and its text;
 * of a line that is longer than SPOOL_LINE_MAX so much, with the match in it.
 */
typedef void spool_match_fn(void *arg, uint64_t offset, uint64_t line, const char *text,
			    size_t len);

/*
 * spool_search() - Lines that hold @pattern, each once. Looks at no more than @bytes of the stream,
 * rounded up to blocks, and stops after @matches lines (0: at the end of the line that it is in):
 * *@at says where to go on. The time is that of reading, times the length of a part where that has
 * a `?`, whatever the pattern and the output are. Return: 1 when there may be more, 0 at the end of
 * what is kept, -errno when the disk fails.
 */
int spool_search(const struct spool *s, struct spool_search *at,
		 const struct spool_pattern *pattern, size_t matches, uint64_t bytes,
		 spool_match_fn *fn, void *arg);

/* spool_loss_name() - A word for the client; NULL: nothing is lost. */
const char *spool_loss_name(enum spool_loss loss);

#endif
