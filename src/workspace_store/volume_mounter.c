/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_mounter.c - Make, mount and remove file systems in files.
 *
 * A file must never be behind two loop devices: two file systems of the Linux kernel would write to
 * it without knowing of each other. A cell may still have a file system mounted that this mounter
 * or a killed one has unmounted. So the mounter first looks for a device that already has the file,
 * and mounts that again: the Linux kernel then joins both.
 *
 * A mounter that is killed is replaced by its parent, which has the same rights and reads nothing.
 * The mounter notes each request in shared memory before it takes it from the socket. So each
 * request is answered: by the mounter that served it, or by the next one, with -EPIPE.
 */
#include "workspace_store/volume_mounter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/supervise.h"
#include "cell/caps.h"
#include "tree_store/tree.h"
#include "wire/warden.h"

#define LOOPS_MAX 4096
#define INODE_BYTES 256u
#define SPARE_BYTES (8ull << 20) /* journal, tables, the tree's own directories */
#define SPARE_FILES 64u
#define DEATHS_MAX 100u
#define AGAIN_MS 100u
#define TRIES 3 /* of a request, when mounters are killed */

struct volume_msg {
	uint32_t op;
	int32_t code; /* of the answer */
	uint64_t seq; /* a former worker may have died before it read an answer */
	uint64_t bytes, files;
	char key[WORKSPACE_STORE_KEY_LEN + 8];
};

/* How large a file has to be for a quota. */
static uint64_t volume_size(uint64_t bytes, uint64_t files)
{
	uint64_t size = bytes + bytes / 16 + (files + SPARE_FILES) * INODE_BYTES + SPARE_BYTES;

	return (size + 0xfffff) & ~UINT64_C(0xfffff);
}

/* ---- loop devices -------------------------------------------------------------------------- */

static int open_loop(unsigned int n)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/dev/loop%u", n);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A device that has the file already. It stays while it is open. */
static int find_loop(const struct stat *st, unsigned int *ret_n)
{
	for (unsigned int n = 0; n < LOOPS_MAX; n++) {
		struct loop_info64 info;
		_fd_ int fd = open_loop(n);

		if (fd == -ENOENT)
			break;
		if (fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 &&
		    info.lo_inode == st->st_ino && info.lo_device == st->st_dev) {
			*ret_n = n;
			return TAKE_FD(fd);
		}
	}
	return -ENOENT;
}

static int new_loop(int file, unsigned int *ret_n)
{
	_fd_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	for (int tries = 0; control >= 0 && tries < 16; tries++) {
		const struct loop_config config = {
			.fd = (uint32_t)file,
			.info = { .lo_flags = LO_FLAGS_AUTOCLEAR },
		};
		int n = ioctl(control, LOOP_CTL_GET_FREE);
		_fd_ int fd = n < 0 ? -1 : open_loop((unsigned int)n);

		if (fd < 0)
			return n < 0 ? -errno : fd;
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
			*ret_n = (unsigned int)n;
			return TAKE_FD(fd);
		}
		if (errno != EBUSY) /* another process took it */
			return -errno;
	}
	return control < 0 ? -errno : -EBUSY;
}

/* ---- file systems -------------------------------------------------------------------------- */

/* The distribution's program, in a process whose only right is the file that it is given. */
static _Noreturn void become_mke2fs(int file, uint64_t files)
{
	static const char *const paths[] = { "/usr/sbin/mke2fs", "/sbin/mke2fs" };
	char inodes[32], owner[64], target[] = "/proc/self/fd/0";
	char *argv[] = { "mke2fs", "-q", "-F",   "-t", "ext4", "-m",   "0", "-I",
			 "256",    "-N", inodes, "-E", owner,  target, NULL },
	     *envp[] = { NULL };

	(void)snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)(files + SPARE_FILES));
	(void)snprintf(owner, sizeof(owner), "root_owner=%u:%u,nodiscard", CELL_WORKSPACE_ID,
		       CELL_WORKSPACE_ID);
	/* Without the last step, executing would give root its capabilities back. */
	if (dup2(file, 0) < 0 || caps_drop() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(1);
	(void)close_range(3, ~0u, 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		(void)execve(paths[i], argv, envp);
	_exit(127);
}

static int make(const struct volume_msg *m)
{
	int status;
	_fd_ int file = openat(VOLUME_DIR_FD, m->key, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (file < 0)
		return -errno;
	pid_t pid = ftruncate(file, (off_t)volume_size(m->bytes, m->files)) < 0 ? -1 : fork();

	if (pid == 0)
		become_mke2fs(file, m->files);
	int r = pid < 0 ? -errno : 0;

	if (pid > 0)
		(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	if (r == 0 && status != 0)
		r = WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -EOPNOTSUPP : -EIO;
	if (r < 0)
		(void)unlinkat(VOLUME_DIR_FD, m->key, 0);
	return r;
}

/* Unmount everything there, of this mounter or of a former one. */
static void let_go(const char *key)
{
	struct stat top, at;
	char path[64];

	for (int i = 0; i < 8; i++) {
		_fd_ int dir = openat(WORKSPACE_STORE_DIR_FD, key,
				      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (dir < 0 || fstat(dir, &at) < 0 || fstat(WORKSPACE_STORE_DIR_FD, &top) < 0 ||
		    at.st_dev == top.st_dev)
			return;
		/* The path of the descriptor: no name is looked up, and it leads to the topmost
		 * mount. */
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
		(void)umount2(path, MNT_DETACH);
	}
}

static int place(unsigned int loop, const char *key)
{
	char source[32];
	_fd_ int fs = fsopen("ext4", FSOPEN_CLOEXEC);

	(void)snprintf(source, sizeof(source), "/dev/loop%u", loop);
	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", source, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "errors", "remount-ro", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	_fd_ int mount = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	_fd_ int dir =
		openat(WORKSPACE_STORE_DIR_FD, key, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (mount < 0 || dir < 0)
		return -errno;
	return move_mount(mount, "", dir, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
			       0 ?
		       -errno :
		       0;
}

static int mount_one(const char *key)
{
	struct stat st;
	unsigned int n = 0;
	_fd_ int file = openat(VOLUME_DIR_FD, key, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (file < 0 || fstat(file, &st) < 0)
		return -errno;
	let_go(key);
	_fd_ int loop = find_loop(&st, &n);

	if (loop < 0)
		loop = new_loop(file, &n);
	return loop < 0 ? loop : place(n, key);
}

/* ---- the process --------------------------------------------------------------------------- */

static int serve(const struct volume_msg *m)
{
	if (strnlen(m->key, sizeof(m->key)) != WORKSPACE_STORE_KEY_LEN || !tree_key_ok(m->key))
		return -EINVAL;
	switch (m->op) {
	case VOLUME_MAKE:
		return m->files > WORKSPACE_STORE_FILES_MAX || m->bytes >> 50 ? -EINVAL : make(m);
	case VOLUME_MOUNT:
		return mount_one(m->key);
	case VOLUME_REMOVE:
		let_go(m->key);
		return unlinkat(VOLUME_DIR_FD, m->key, 0) < 0 ? -errno : 0;
	default:
		return -EINVAL;
	}
}

/* Shared memory of successive mounters. */
struct notes {
	struct volume_msg doing; /* seq 0: nothing */
	size_t n;
	char keys[LOOPS_MAX][WORKSPACE_STORE_KEY_LEN + 1]; /* that are mounted */
};

/* Note the request, then take it. False: the workspace store is gone. */
static bool take(int sock, struct notes *notes, struct volume_msg *m)
{
	ssize_t n = TEMP_FAILURE_RETRY(recv(sock, m, sizeof(*m), MSG_PEEK));

	if (n != (ssize_t)sizeof(*m))
		return false;
	notes->doing = *m;
	return fd_recv(sock, m, sizeof(*m), NULL, NULL) == (ssize_t)sizeof(*m);
}

static bool reply(int sock, struct notes *notes, const struct volume_msg *m)
{
	bool sent = fd_send(sock, m, sizeof(*m), NULL, 0) == 0;

	notes->doing.seq = 0;
	return sent;
}

/* Answer the request that the former mounter was serving, and remove a file that it half made. */
static void give_up(int sock, struct notes *notes)
{
	struct volume_msg m = notes->doing, next = { 0 };

	/* Noted and not taken: it is still in the socket. */
	(void)recv(sock, &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT);
	if (!m.seq || next.seq == m.seq)
		return;
	if (m.op == VOLUME_MAKE)
		(void)unlinkat(VOLUME_DIR_FD, m.key, 0);
	m.code = -EPIPE;
	(void)reply(sock, notes, &m);
}

struct mounter {
	int sock;
	struct notes *notes;
};

static int run(void *arg, uint32_t life)
{
	const struct mounter *own = arg;
	struct notes *notes = own->notes;
	const int sock = own->sock;
	struct volume_msg m;

	(void)life;

	give_up(sock, notes);
	while (take(sock, notes, &m)) {
		m.code = serve(&m);
		if (m.op == VOLUME_MOUNT && m.code == 0 && notes->n < LOOPS_MAX) {
			memcpy(notes->keys[notes->n], m.key, WORKSPACE_STORE_KEY_LEN);
			notes->n++;
		}
		if (!reply(sock, notes, &m))
			break;
	}
	while (notes->n > 0)
		let_go(notes->keys[--notes->n]);
	return 0;
}

/* Waits for mounters only: the workspace store is a child, too. */
static _Noreturn void watch(int sock)
{
	struct mounter m = { .sock = sock };
	const struct supervise mounters = {
		.work = run, .arg = &m, .lives_max = DEATHS_MAX, .failed = 1, .pause_ms = AGAIN_MS
	};

	m.notes = mmap(NULL, sizeof(*m.notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	_exit(m.notes == MAP_FAILED ? 1 : supervise(&mounters));
}

int volume_start(struct err *e)
{
	int pair[2];
	pid_t pid;

	if (fcntl(VOLUME_DIR_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "socketpair");
	pid = fork();
	if (pid < 0)
		return err_set(e, -errno, "fork");
	if (pid == 0) {
		fd_close(pair[1]);
		fd_close(VOLUME_DIR_FD);
		return pair[0];
	}
	fd_close(pair[0]);
	fd_close(WORKSPACE_STORE_FD);
	(void)signal(SIGCHLD, SIG_DFL);
	if (caps_keep(UINT64_C(1) << CAP_SYS_ADMIN, 0) < 0)
		_exit(1);
	watch(pair[1]);
}

static int ask_once(int sock, struct volume_msg *m)
{
	static uint64_t asked;
	const uint64_t seq = (uint64_t)getpid() << 32 | ++asked;

	m->seq = seq;
	int r = fd_send(sock, m, sizeof(*m), NULL, 0);

	for (m->seq = 0; r == 0 && m->seq != seq;)
		if (fd_recv(sock, m, sizeof(*m), NULL, NULL) != (ssize_t)sizeof(*m))
			return -EPIPE;
	return r < 0 ? r : m->code;
}

int volume_ask(int sock, enum volume_op op, const char *key, uint64_t bytes, uint64_t files)
{
	struct volume_msg m;
	int r = sock < 0 ? -ENOENT : -EPIPE;

	for (int tries = 0; r == -EPIPE && tries < TRIES; tries++) {
		m = (struct volume_msg){ .op = op, .bytes = bytes, .files = files };
		(void)snprintf(m.key, sizeof(m.key), "%.32s", key);
		r = ask_once(sock, &m);
	}
	return r;
}
