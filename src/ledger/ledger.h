/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - The audit log: append-only, each line tied to the one before by its hash.
 *
 * In its directory, `ledger.jsonl` is written; when it has reached its size it becomes
 * `ledger-<number of its first line, 20 digits>.jsonl` and the next line, in a new file, carries
 * the hash on. A last line that a crash cut off is moved to `ledger.torn-<time>`, never deleted.
 * The lines are described in chain.h, reading them in ledger_reader.h.
 *
 * For one thread of one process. Nothing here waits but for the disk. Memory is taken at open and
 * does not grow. After ledger_open() only these system calls are made, so that a jail can hold it:
 * fstat, write, pread, ftruncate, fdatasync, fsync, close, renameat2 (RENAME_NOREPLACE) and openat
 * (O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC), the last two in the ledger's directory.
 */
#ifndef CAISSON_LEDGER_LEDGER_H
#define CAISSON_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/chain.h"

struct err;
struct ledger;

#define LEDGER_CURRENT "ledger.jsonl"
#define LEDGER_FILE_BYTES (UINT64_C(64) << 20)

struct ledger_config {
	uint64_t file_bytes;      /* a file that would become larger is rotated; 0: the default */
	uint64_t (*now_ns)(void); /* CLOCK_REALTIME; NULL: the clock. For tests */
	/* Called for each line of the current file, without its newline, while it is opened; or
	 * NULL. */
	void (*line)(const char *text, size_t len, void *arg);
	void *arg;
};

/*
 * ledger_open() - Check what is there and be ready to append.
 * @dirfd: the ledger's directory, open for reading (not O_PATH). Borrowed until ledger_close(), and
 *         used under this number, which a jail may know
 * @config: NULL for the defaults
 *
 * The current file is checked whole, and against the last line of the newest rotated file. A
 * cut-off last line is set aside, and the event `recovered` written. Older files are for `caisson
 * audit verify`; that they were moved to an archive is no error.
 *
 * Only one process may have a ledger open: the one that holds the lock of the state directory.
 *
 * Return: 0; -EBADMSG when a line is damaged or missing, with file, line, reason and the fix in @e;
 * another -errno when a file cannot be read, made or written. A disk that is too full to set the
 * cut-off line aside is no error here: each append tries again.
 */
int ledger_open(int dirfd, const struct ledger_config *config, struct ledger **ret, struct err *e);

/* ledger_close() - Without a sync. NULL is allowed. */
void ledger_close(struct ledger *l);

/*
 * ledger_append() - Write one line with one write(2): all of it, or nothing.
 *
 * The line is in the page cache when this returns: it survives the end of this process, and with
 * ledger_sync() that of the machine. On failure the file is as it was, or is made so before the
 * next line; the caller refuses what it was about to do. The next call tries again.
 *
 * Return: 0 or -errno (-ENOSPC: disk full; -EINVAL: a mistake in @event; -ESTALE: somebody else
 * removed or changed the file).
 */
int ledger_append(struct ledger *l, const struct ledger_event *event, struct err *e);

/* ledger_sync() - Bring everything appended to the disk. The caller decides when. 0 or -errno. */
int ledger_sync(struct ledger *l, struct err *e);

/* ledger_dirfd() - The descriptor by which its next files are made; for a jail that allows just
 * that. */
int ledger_dirfd(const struct ledger *l);

/* ledger_record() - Append with the fields in place; at least one. */
#define ledger_record(l, e, event_, owner_, sandbox_, ...)                                         \
	({                                                                                         \
		const struct ledger_field f_[] = { __VA_ARGS__ };                                  \
		ledger_append((l),                                                                 \
			      &(struct ledger_event){ .event = (event_),                           \
						      .owner = (owner_),                           \
						      .sandbox = (sandbox_),                       \
						      .fields = f_,                                \
						      .n = sizeof(f_) / sizeof(f_[0]) },           \
			      (e));                                                                \
	})

#endif
