/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - Keeps the output of a stream, which clients can read later by offset or search by
 * pattern.
 *
 * A spool keeps the beginning of a stream: the first bytes in memory, the rest in the file of the
 * bank, which all spools of the daemon share. The process cannot open files in the jail, so the
 * bank opens one unlinked file before, and gives it out in blocks. Appending never fails: bytes
 * beyond the spool's cap, the bank's budget or the space on the disk are counted but not kept, and
 * `loss` has the reason. The kept bytes are always the beginning of the stream, without a gap.
 */
#ifndef CAISSON_FRONT_SPOOL_H
#define CAISSON_FRONT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

#define SPOOL_CAP (UINT64_C(64) << 20)      /* bytes that are kept of one stream */
#define SPOOL_MEMORY (64u << 10)            /* of these, in memory; a reserve may be larger */
#define SPOOL_BLOCK (64u << 10)             /* the rest goes to the file in blocks of this size */
#define SPOOL_BANK_DISK (UINT64_C(1) << 30) /* bytes in the file, for the whole daemon */
#define SPOOL_BANK_MEMORY (UINT64_C(64) << 20)
#define SPOOL_LINE_MAX 4096u   /* bytes that are reported of a line that matches */
#define SPOOL_PATTERN_MAX 256u /* bytes of a pattern */

/*
 * The file and the budget that all spools share. A bank without a file has fd -1, the two limits,
 * and zero in the other members.
 */
struct spool_bank {
	int fd; /* -1: bytes that do not fit in memory are lost */
	uint64_t memory, memory_max;
	uint64_t blocks, blocks_max;
	uint64_t *used; /* a bit per block of the file */
	size_t hint;    /* index in used: no word before it has a free bit */
};

/*
 * spool_bank_open() - Open the bank, before the process enters the jail. @dirfd: the directory for
 * the file; -1: no file, memory only. Removes the file of a start that was interrupted. Return: 0,
 * or -errno with @e: then there is nothing to close.
 */
int spool_bank_open(struct spool_bank *b, int dirfd, uint64_t disk_max, uint64_t memory_max,
		    struct err *e);
void spool_bank_close(struct spool_bank *b); /* after the last spool is freed */

enum spool_loss {
	SPOOL_WHOLE,  /* nothing is lost */
	SPOOL_OVER,   /* the stream is longer than the cap of this spool */
	SPOOL_BUDGET, /* the budget of the daemon is used up */
	SPOOL_DISK,   /* the disk is full, or fails */
};

struct spool {
	struct spool_bank *bank;
	struct buf memory;
	uint32_t *blocks;
	size_t n_blocks, cap_blocks;
	uint64_t cap;
	/* So many first bytes go to memory, even if the bank's memory is used up. */
	uint64_t reserve;
	uint64_t bytes; /* appended in all */
	uint64_t kept;  /* the first so many of these can be read */
	enum spool_loss loss;
};

/* spool_init() - Make an empty spool; allocates nothing. @bank is borrowed and must outlive it. */
void spool_init(struct spool *s, struct spool_bank *bank, uint64_t cap);
void spool_free(struct spool *s); /* idempotent, also on a zeroed struct */

/*
 * spool_reserve() - Keep at least the first @bytes in memory until spool_settle(), even if other
 * spools have used up the bank: the result of an execution is made from them, and must not depend
 * on the output of others. Called before the first byte. A smaller cap is raised to @bytes.
 */
void spool_reserve(struct spool *s, uint64_t bytes);
/*
 * spool_settle() - The stream has ended, and the reserve is no longer needed: move its bytes beyond
 * SPOOL_MEMORY to the file. Bytes that cannot be moved are lost, and `loss` has the reason.
 */
void spool_settle(struct spool *s);

/* spool_append() - Append bytes; those beyond the limits are only counted. */
void spool_append(struct spool *s, const void *data, size_t len);

/*
 * spool_read() - Read up to @len bytes from @offset. Return: the number of bytes; 0 at the end of
 * the kept bytes; -errno when the disk fails.
 */
int64_t spool_read(const struct spool *s, uint64_t offset, void *buf, size_t len);

/*
 * A pattern to search for: parts that follow each other in one line, with any bytes between them. A
 * plain text has one part.
 */
struct spool_pattern {
	char bytes[SPOOL_PATTERN_MAX];
	bool any[SPOOL_PATTERN_MAX]; /* this byte matches any byte but a newline */
	struct {
		size_t at, len;
		bool wild; /* it has such bytes */
	} parts[SPOOL_PATTERN_MAX];
	size_t n_parts;
};

/*
 * spool_pattern_make() - Parse a pattern. @glob: `*` stands for any number of bytes of a line, `?`
 * for one, and a backslash takes the next byte as it is; without @glob the whole text is taken as
 * it is. Pure. False: the text is too long, has a newline, or leaves nothing to search for.
 */
bool spool_pattern_make(struct spool_pattern *p, const char *text, size_t len, bool glob);

/* The position of a search. All zero: the beginning of the stream. */
struct spool_search {
	uint64_t from;       /* set by the caller: before it, lines are counted but not reported */
	uint64_t offset;     /* of the next byte to search */
	uint64_t line_start; /* where the line of that byte begins */
	uint64_t lines;      /* number of lines before that line */
	size_t part;         /* next part to search for; this line has the parts before it */
	uint64_t first;      /* where the first of these parts begins */
	bool matched;        /* this line was reported already */
};

/*
 * Called for a line that matches. @offset: where the first match begins. @line: the number of the
 * line, from 1. @text: the line; of one that is longer than SPOOL_LINE_MAX, so many bytes with the
 * match among them.
 */
typedef void spool_match_fn(void *arg, uint64_t offset, uint64_t line, const char *text,
			    size_t len);

/*
 * spool_search() - Report each line that matches @pattern, once. Searches at most @bytes of the
 * stream, rounded up to blocks, and stops after @matches lines (0: at the end of the current line);
 * *@at is where the next call goes on. The time is that of reading the bytes, times the length of a
 * part if that has a `?`, whatever the pattern and the output are. Return: 1 if there may be more,
 * 0 at the end of the kept bytes, -errno when the disk fails.
 */
int spool_search(const struct spool *s, struct spool_search *at,
		 const struct spool_pattern *pattern, size_t matches, uint64_t bytes,
		 spool_match_fn *fn, void *arg);

/* spool_loss_name() - The reason of a loss as a word for clients; NULL: nothing is lost. */
const char *spool_loss_name(enum spool_loss loss);

#endif
