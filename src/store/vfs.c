/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfs.c - SQLite's way to the disk: a file system of two open files, and nothing else.
 *
 * SQLite opens files by path, makes journals and temporary files beside them, asks for locks and
 * maps memory. In the jail there are no paths. So it gets a file system with two files that are
 * open already, the database and its write-ahead log; opening any other file fails. That works
 * because of three settings that store.c makes: locking_mode EXCLUSIVE (the log's index is in
 * memory, not in a third, shared file), journal_mode WAL reached through MEMORY (no rollback
 * journal), and temp_store MEMORY. The system calls that remain: pread64, pwrite64, ftruncate,
 * fdatasync, fstat.
 *
 * Locks are no-ops here: store_lock() keeps other daemons out, store_files_open() other programs.
 *
 * Each function has the meaning that SQLite gives it (https://sqlite.org/c3ref/vfs.html). The
 * number of the last failed system call is kept, so that a message can tell a full disk from a
 * broken one.
 */
#include "store/store_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_MAX_ 64
#define UNIX_EPOCH_JULIAN_MS INT64_C(210866760000000)

struct file {
	sqlite3_file base;
	struct store_vfs *v;
	int fd;
};

static struct file *file_of(sqlite3_file *f)
{
	return (struct file *)f;
}

static int failed(struct file *f, int rc)
{
	f->v->last_errno = errno;
	return rc;
}

/* ---- a file -------------------------------------------------------------------------------- */

/* The descriptor belongs to the store, and outlives this. */
static int file_close(sqlite3_file *f)
{
	(void)f;
	return SQLITE_OK;
}

static int file_read(sqlite3_file *f, void *data, int len, sqlite3_int64 at)
{
	size_t got = 0, want = (size_t)len;

	while (got < want) {
		ssize_t n = TEMP_FAILURE_RETRY(
			pread(file_of(f)->fd, (char *)data + got, want - got, at + (off_t)got));

		if (n < 0)
			return failed(file_of(f), SQLITE_IOERR_READ);
		if (n == 0)
			break;
		got += (size_t)n;
	}
	if (got == want)
		return SQLITE_OK;
	/* SQLite wants the rest to be zero, and knows what it means. */
	memset((char *)data + got, 0, want - got);
	return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *f, const void *data, int len, sqlite3_int64 at)
{
	size_t done = 0, want = (size_t)len;

	while (done < want) {
		ssize_t n = TEMP_FAILURE_RETRY(pwrite(file_of(f)->fd, (const char *)data + done,
						      want - done, at + (off_t)done));

		if (n == 0)
			errno = ENOSPC;
		if (n <= 0)
			return failed(file_of(f), errno == ENOSPC || errno == EDQUOT ?
							  SQLITE_FULL :
							  SQLITE_IOERR_WRITE);
		done += (size_t)n;
	}
	return SQLITE_OK;
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return ftruncate(file_of(f)->fd, size) < 0 ? failed(file_of(f), SQLITE_IOERR_TRUNCATE) :
						     SQLITE_OK;
}

static int file_sync(sqlite3_file *f, int flags)
{
	(void)flags;
	return fdatasync(file_of(f)->fd) < 0 ? failed(file_of(f), SQLITE_IOERR_FSYNC) : SQLITE_OK;
}

static int file_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	struct stat st;

	if (fstat(file_of(f)->fd, &st) < 0)
		return failed(file_of(f), SQLITE_IOERR_FSTAT);
	*ret = st.st_size;
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *f, int level)
{
	(void)f;
	(void)level;
	return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *f, int *ret)
{
	(void)f;
	*ret = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *f, int op, void *arg)
{
	(void)f;
	if (op != SQLITE_FCNTL_PERSIST_WAL)
		return SQLITE_NOTFOUND;
	*(int *)arg = 1; /* the log cannot be removed: it could not be made again */
	return SQLITE_OK;
}

static int file_sector_size(sqlite3_file *f)
{
	(void)f;
	return 4096;
}

static int file_characteristics(sqlite3_file *f)
{
	(void)f;
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN;
}

/* Version 1: neither shared memory nor mapped files. */
static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_is_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector_size,
	.xDeviceCharacteristics = file_characteristics,
};

/* ---- the file system ----------------------------------------------------------------------- */

static struct store_vfs *of(sqlite3_vfs *vfs)
{
	return vfs->pAppData;
}

static int fs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *ret, int flags, int *ret_flags)
{
	struct file *f = file_of(ret);

	(void)name;
	*f = (struct file){ .v = of(vfs), .fd = -1 };
	if (flags & SQLITE_OPEN_MAIN_DB)
		f->fd = f->v->files.db;
	else if (flags & SQLITE_OPEN_WAL)
		f->fd = f->v->files.wal;
	if (f->fd < 0) {
		errno = EACCES;
		return failed(f, SQLITE_CANTOPEN);
	}
	f->base.pMethods = &methods;
	if (ret_flags)
		*ret_flags = flags;
	return SQLITE_OK;
}

static bool is_wal(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && strcmp(name + len - 4, "-wal") == 0;
}

/* SQLite removes the log of an empty database. */
static int fs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)sync;
	if (!is_wal(name))
		return SQLITE_IOERR_DELETE_NOENT;
	if (ftruncate(of(vfs)->files.wal, 0) == 0)
		return SQLITE_OK;
	of(vfs)->last_errno = errno;
	return SQLITE_IOERR_DELETE;
}

static int fs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	struct stat st;

	(void)flags;
	*ret = is_wal(name) && fstat(of(vfs)->files.wal, &st) == 0 && st.st_size > 0;
	return SQLITE_OK;
}

static int fs_full_name(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
	(void)vfs;
	return snprintf(ret, (size_t)size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int fs_random(sqlite3_vfs *vfs, int len, char *ret)
{
	(void)vfs;
	return (int)getrandom(ret, (size_t)len, 0);
}

static int fs_sleep(sqlite3_vfs *vfs, int us)
{
	(void)vfs;
	(void)us;
	return 0; /* nobody else has the store, so there is nothing to wait for */
}

static int fs_time(sqlite3_vfs *vfs, sqlite3_int64 *ret_ms)
{
	struct timespec ts;

	(void)vfs;
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	*ret_ms = UNIX_EPOCH_JULIAN_MS + (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
	return SQLITE_OK;
}

static int fs_last_error(sqlite3_vfs *vfs, int len, char *ret)
{
	(void)len;
	(void)ret;
	return of(vfs)->last_errno;
}

int store_vfs_add(struct store_vfs *v, const struct store_files *f)
{
	*v = (struct store_vfs){ .files = *f };
	(void)snprintf(v->name, sizeof(v->name), "caisson-%d-%d", f->db, f->wal);
	v->vfs = (sqlite3_vfs){
		.iVersion = 2,
		.szOsFile = sizeof(struct file),
		.mxPathname = NAME_MAX_,
		.zName = v->name,
		.pAppData = v,
		.xOpen = fs_open,
		.xDelete = fs_delete,
		.xAccess = fs_access,
		.xFullPathname = fs_full_name,
		.xRandomness = fs_random,
		.xSleep = fs_sleep,
		.xGetLastError = fs_last_error,
		.xCurrentTimeInt64 = fs_time,
	};
	return sqlite3_vfs_register(&v->vfs, 0) == SQLITE_OK ? 0 : -ENOMEM;
}

void store_vfs_remove(struct store_vfs *v)
{
	(void)sqlite3_vfs_unregister(&v->vfs);
}
