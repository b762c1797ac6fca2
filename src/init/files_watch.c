/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_watch.c - Reporting changes below a directory, until the host hangs up.
 *
 * inotify watches directories, not trees: a tree is a table of them, up to a bound. A directory
 * that appears is added, and the files in it are reported as created, because they may have come
 * before the watch did. Events are gathered for a moment; of equal events of one name in that time
 * one is reported. When the Linux kernel lost some, that is reported, and the table is made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/files.h"

#define GATHER_NS 20000000
#define RECENT 256u
#define EVENTS                                                                                     \
	(IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |        \
	 IN_MOVE_SELF)

struct dir {
	int wd;
	char *path; /* from the root, "" for itself */
};

/* Events of this moment, by a hash of the name. */
struct news {
	uint64_t name;
	enum files_event_kind kind;
};

struct watcher {
	struct files_io *io;
	int fd, root;
	char base[FILES_PATH_MAX]; /* absolute. Held open, its deletion would not be reported */
	bool recursive, over;
	struct dir dirs[FILES_WATCHES_MAX];
	size_t n;
	struct news recent[RECENT];
	size_t n_recent;
	/* The first half of a move, until its second half comes or something else does. */
	uint32_t cookie;
	bool move_dir;
	char move_from[FILES_PATH_MAX];
};

/* ---- reports --------------------------------------------------------------------------------- */

static uint64_t hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3;
	return h;
}

static void forget_news(struct watcher *w, const char *path)
{
	uint64_t name = hash(path);

	for (size_t i = 0; i < w->n_recent; i++)
		if (w->recent[i].name == name)
			w->recent[i].name = 0;
}

/* A draft of files_write.c is not reported. */
static bool is_draft(const char *path)
{
	return strncmp(basename(path), FILES_DRAFT, strlen(FILES_DRAFT)) == 0;
}

static bool join(char *to, const char *dir, const char *name)
{
	int n = snprintf(to, FILES_PATH_MAX, "%s%s%s", dir, dir[0] && name[0] ? "/" : "", name);

	return n >= 0 && (size_t)n < FILES_PATH_MAX;
}

/* inotify names a file without a name "#" and its number. If no such name exists, it is one. */
static bool is_nameless(const struct watcher *w, const char *path)
{
	const char *name = basename(path);
	char full[FILES_PATH_MAX];

	return name[0] == '#' && name[1] && name[1 + strspn(name + 1, "0123456789")] == '\0' &&
	       join(full, w->base, path) &&
	       faccessat(AT_FDCWD, full, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

/* Created or modified: reported once in a while, and a new file is not also modified. */
static void report(struct watcher *w, enum files_event_kind kind, bool is_dir, const char *path)
{
	uint64_t name = hash(path);

	if (is_draft(path) || (kind == FILES_E_MODIFIED && is_nameless(w, path)))
		return;
	for (size_t i = 0; i < w->n_recent; i++)
		if (w->recent[i].name == name && w->recent[i].kind <= kind)
			return;
	w->recent[w->n_recent++ % RECENT] = (struct news){ .name = name, .kind = kind };
	if (w->n_recent > RECENT)
		w->n_recent = RECENT;
	io_event(w->io, kind, is_dir, path, NULL);
}

static void report_deleted(struct watcher *w, bool is_dir, const char *path)
{
	forget_news(w, path);
	if (!is_draft(path))
		io_event(w->io, FILES_E_DELETED, is_dir, path, NULL);
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct dir *find(struct watcher *w, int wd)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->dirs[i].wd == wd)
			return &w->dirs[i];
	return NULL;
}

static void drop(struct watcher *w, struct dir *d)
{
	free(d->path);
	*d = w->dirs[--w->n];
}

/* A directory that vanished, or is not a directory any more, needs no watch. */
static void add_dir(struct watcher *w, const char *path)
{
	char full[FILES_PATH_MAX];

	if (w->n == FILES_WATCHES_MAX || !join(full, w->base, path)) {
		w->io->end.flags |= FILES_CUT;
		return;
	}
	int wd = inotify_add_watch(w->fd, full, EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW);

	if (wd < 0) {
		w->io->end.flags |= errno == ENOENT || errno == ENOTDIR ? 0u : FILES_CUT;
		return;
	}
	struct dir *d = find(w, wd);
	char *copy = strdup(path);

	if (!copy) {
		w->io->end.flags |= FILES_CUT;
		return;
	}
	if (d)
		free(d->path);
	else
		d = &w->dirs[w->n++];
	*d = (struct dir){ .wd = wd, .path = copy };
}

static bool is_dir(int dirfd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Add the directories in this one to the table; @announce: report entries as created. */
static void scan(struct watcher *w, const char *dir, bool announce)
{
	char path[FILES_PATH_MAX];
	const struct dirent *entry;
	int fd = join(path, w->base, dir) ?
			 open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) :
			 -1;
	_dir_ DIR *d = dir_list(fd);

	while (d && (entry = readdir(d))) {
		bool sub = is_dir(fd, entry);

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    !join(path, dir, entry->d_name))
			continue;
		if (announce)
			report(w, FILES_E_CREATED, sub, path);
		if (sub)
			add_dir(w, path);
	}
}

static void add_tree(struct watcher *w, const char *path, bool announce)
{
	size_t first = w->n;

	add_dir(w, path);
	for (size_t i = first; i < w->n && w->recursive; i++)
		scan(w, w->dirs[i].path, announce);
}

/* A directory that moved: its watches have old paths. */
static void drop_tree(struct watcher *w, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < w->n;) {
		const char *p = w->dirs[i].path;

		if (strncmp(p, path, len) == 0 && (p[len] == '/' || p[len] == '\0')) {
			(void)inotify_rm_watch(w->fd, w->dirs[i].wd);
			drop(w, &w->dirs[i]);
		} else {
			i++;
		}
	}
}

static void start_over(struct watcher *w)
{
	while (w->n > 0) {
		if (w->dirs[w->n - 1].wd != w->root)
			(void)inotify_rm_watch(w->fd, w->dirs[w->n - 1].wd);
		drop(w, &w->dirs[w->n - 1]);
	}
	add_tree(w, "", false);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* A move out of the watched tree is reported as a deletion. */
static void settle_move(struct watcher *w)
{
	if (w->cookie)
		report_deleted(w, w->move_dir, w->move_from);
	w->cookie = 0;
}

static void on_moved_to(struct watcher *w, const struct inotify_event *e, bool dir,
			const char *path)
{
	if (w->cookie == 0 || w->cookie != e->cookie) {
		settle_move(w);
		forget_news(w, path);
		report(w, FILES_E_CREATED, dir, path);
	} else if (is_draft(w->move_from)) {
		report(w, FILES_E_MODIFIED, dir, path);
	} else {
		forget_news(w, w->move_from);
		forget_news(w, path);
		io_event(w->io, FILES_E_MOVED, dir, path, w->move_from);
	}
	if (dir && w->recursive)
		add_tree(w, path, w->cookie == 0);
	w->cookie = 0;
}

static void on_name(struct watcher *w, const struct inotify_event *e, const char *path)
{
	bool dir = e->mask & IN_ISDIR;

	if (e->mask & IN_MOVED_TO) {
		on_moved_to(w, e, dir, path);
		return;
	}
	settle_move(w);
	if (e->mask & IN_CREATE) {
		report(w, FILES_E_CREATED, dir, path);
		if (dir && w->recursive)
			add_tree(w, path, true);
	} else if (e->mask & IN_MODIFY) {
		report(w, FILES_E_MODIFIED, dir, path);
	} else if (e->mask & IN_DELETE) {
		report_deleted(w, dir, path);
	} else if (e->mask & IN_MOVED_FROM) {
		w->cookie = e->cookie;
		w->move_dir = dir;
		(void)snprintf(w->move_from, sizeof(w->move_from), "%s", path);
		if (dir)
			drop_tree(w, path);
	}
}

static void on_event(struct watcher *w, const struct inotify_event *e)
{
	char path[FILES_PATH_MAX];
	struct dir *d = find(w, e->wd);

	if (e->mask & IN_Q_OVERFLOW) {
		settle_move(w);
		io_event(w->io, FILES_E_OVERFLOW, false, "", NULL);
		start_over(w);
		return;
	}
	if (!d)
		return;
	if (e->wd == w->root &&
	    e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) {
		report_deleted(w, true, "");
		w->over = true;
		return;
	}
	if (e->mask & IN_IGNORED) {
		drop(w, d);
		return;
	}
	if (join(path, d->path, e->len ? e->name : ""))
		on_name(w, e, path);
}

/*
 * One buffer of events, reported before more is read: code can make events faster than they are
 * reported, and a worker that reads until the last one would neither report nor notice that the
 * host hung up. 1: there may be more, 0: none for now, else -errno.
 */
static int read_events(struct watcher *w)
{
	static _Alignas(struct inotify_event) char data[64 << 10];
	ssize_t n = read(w->fd, data, sizeof(data));
	int r = n > (ssize_t)sizeof(data) / 2;

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	for (ssize_t at = 0; at < n && !w->over;) {
		const struct inotify_event *e = (const void *)(data + at);

		on_event(w, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	if (r == 0) /* else the other half of a move may be in the next buffer */
		settle_move(w);
	io_flush(w->io);
	w->n_recent = 0;
	return r;
}

static int wait_for_events(struct watcher *w)
{
	const struct timespec gather = { .tv_nsec = GATHER_NS };
	int r = 0;

	while (r >= 0 && !w->over && !w->io->broken) {
		/* On the write end of a pipe, POLLERR comes when the read end is closed. */
		struct pollfd fds[] = { { .fd = w->fd, .events = POLLIN }, { .fd = FILES_OUT } };

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return errno;
		if (fds[1].revents)
			return ECANCELED;
		if (r == 0)
			(void)nanosleep(&gather, NULL);
		r = read_events(w);
	}
	return r < 0 ? -r : 0;
}

/* Links on the way are followed once, now. */
static int find_base(struct watcher *w, const char *path)
{
	char self[40];

	_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return link_read(AT_FDCWD, self, w->base) ? 0 : errno;
}

int files_watch(const struct files_call *c, struct files_io *io)
{
	static struct watcher w;
	struct stat st;

	w = (struct watcher){ .io = io, .recursive = c->q.flags & FILES_RECURSIVE };
	w.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w.fd < 0 || stat(c->path, &st) < 0)
		return errno;
	int r = find_base(&w, c->path);

	if (r)
		return r;
	if (S_ISDIR(st.st_mode)) {
		w.root = inotify_add_watch(w.fd, w.base, EVENTS | IN_ONLYDIR);
		add_tree(&w, "", false);
	} else {
		w.root = inotify_add_watch(w.fd, w.base, EVENTS);
		w.dirs[w.n++] = (struct dir){ .wd = w.root, .path = strdup("") };
	}
	if (w.root < 0 || w.n == 0 || !w.dirs[0].path)
		return errno ? errno : ENOENT;
	io_stat(io, &st, "", NULL);
	io_flush(io);
	return wait_for_events(&w);
}
