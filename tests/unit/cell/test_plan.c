/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan.c - The plan of a cell: the numbers for init, and mounts that are restricted and
 * shifted before any cell can see them. A plan that fails holds nothing.
 */
#include "base/err.h"
#include "base/fd.h"
#include "cell/plan.h"
#include "cell/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"

#define SLOT 77u

static char top[UNIT_DIR_MAX];
static struct plan plan;
static struct cell_spec spec;
static struct err err;

/* top/dir with a file in it, and top/file; readable by all, so that an ordinary user can open them.
 */
static int setup(void **state)
{
	char path[96];

	(void)state;
	if (!unit_dir_make(top, false) || chmod(top, 0755) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/dir", top);
	if (mkdir(path, 0755) < 0 || chmod(path, 0755) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/dir/inner", top);
	fd_close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	(void)snprintf(path, sizeof(path), "%s/file", top);
	fd_close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	spec_default(&spec);
	memset(&plan, 0xa5, sizeof(plan));
	err = (struct err){ 0 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unit_dir_remove(top);
}

struct unit_fixture unit_fixture = { setup, teardown };

static int open_path(const char *name)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	return open(path, O_PATH | O_CLOEXEC);
}

static void want_mount(const char *dst, uint32_t flags)
{
	struct cell_mount *m = &spec.mounts[spec.n_mounts++];

	(void)snprintf(m->dst, sizeof(m->dst), "%s", dst);
	m->flags = flags;
}

static int make(const int *fds, size_t n_fds)
{
	return plan_make(&spec, SLOT, "/usr/libexec/caisson/caisson-init", fds, n_fds, &plan, &err);
}

/* The writable layer leaves an eighth of the memory limit; without a limit it leaves nothing. */
TEST(layer_leaves_memory)
{
	spec.limits.memory_bytes = 512ull << 20;
	spec.limits.disk_bytes = 1ull << 30;
	assert_int_equal(make(NULL, 0), 0);
	assert_string_equal(plan.layer_size, "469762048");
	plan_free(&plan);
	spec.limits.memory_bytes = 16ull << 20;
	assert_int_equal(make(NULL, 0), 0);
	assert_string_equal(plan.layer_size, "8388608");
	plan_free(&plan);
	spec.without = CELL_WITHOUT_CGROUP;
	assert_int_equal(make(NULL, 0), 0);
	assert_string_equal(plan.layer_size, "1073741824");
	plan_free(&plan);
}

TEST(numbers)
{
	int before = open_fds();

	spec.limits.files = 77;
	spec.limits.disk_bytes = 12345678;
	spec.limits.inodes = 4321;
	spec.limits.pids = 33;
	assert_int_equal(make(NULL, 0), 0);
	assert_ptr_equal(plan.spec, &spec);
	assert_string_equal(plan.init_path, "/usr/libexec/caisson/caisson-init");
	assert_string_equal(plan.layer_size, "12345678");
	assert_string_equal(plan.layer_inodes, "4321");
	assert_int_equal(plan.ids.ranged, geteuid() == 0);
	assert_int_equal(plan.ids.base, IDMAP_BASE + SLOT * IDMAP_COUNT);
	assert_int_equal(plan.config.uid, CELL_UID);
	assert_int_equal(plan.config.gid, CELL_GID);
	assert_int_equal(plan.config.separate, geteuid() == 0);
	assert_int_equal(plan.config.files, 77);
	assert_int_equal(plan.config.disk_bytes, 12345678);
	/* A little above the cgroup's limit, which has to refuse first, because it counts. */
	assert_in_range(plan.config.pids, 34, 33 + 64);
	assert_int_equal(plan.config.without, 0);
	assert_int_equal(plan.config.memory_bytes, 0); /* the cgroup's business */
	assert_int_equal(plan.channel_fd, -1);
	assert_int_equal(plan.sync_fd, -1);
	assert_int_equal(plan.status_fd, -1);
	assert_int_equal(plan.layers[0].fd, -1);
	assert_int_equal(plan.n_mounts, 0);
	/* Its quota is its own, never root's, unless the caller chooses another. */
	assert_int_equal(plan.owner, geteuid() == 0 ? plan.ids.base : 0);
	assert_true(strtoul(plan.inotify_instances, NULL, 10) > 0);
	assert_false(plan.zygote);
	assert_int_equal(plan.config.kernels, 0);
	assert_int_equal(plan.enter.n, 0);
	plan_free(&plan);
	plan_free(&plan);
	assert_int_equal(open_fds(), before);
}

/* The layers that a cell gives up reach init, and the memory limit finds its other home. */
TEST(without)
{
	spec.without = CELL_WITHOUT_CGROUP | CELL_WITHOUT_SECCOMP;
	assert_int_equal(make(NULL, 0), 0);
	assert_int_equal(plan.config.without, CELL_WITHOUT_CGROUP | CELL_WITHOUT_SECCOMP);
	assert_int_equal(plan.config.memory_bytes, spec.limits.memory_bytes);
	assert_int_equal(plan.config.pids, spec.limits.pids);
	plan_free(&plan);
}

/* /bin, /lib, ... as this machine has them: a link stays the same link. */
TEST(top)
{
	bool usr_bin = false;

	assert_int_equal(make(NULL, 0), 0);
	assert_in_range(plan.n_top, 1, PLAN_TOP_MAX);
	for (size_t i = 0; i < plan.n_top; i++) {
		char path[32], link[64] = "";
		struct stat st;

		(void)snprintf(path, sizeof(path), "/%s", plan.top[i].name);
		assert_int_equal(lstat(path, &st), 0);
		assert_int_equal(S_ISLNK(st.st_mode), plan.top[i].link[0] != '\0');
		if (S_ISLNK(st.st_mode))
			assert_true(readlink(path, link, sizeof(link) - 1) > 0);
		assert_string_equal(plan.top[i].link, link);
		usr_bin |= strcmp(plan.top[i].name, "bin") == 0;
	}
	assert_true(usr_bin);
	plan_free(&plan);
	spec.image = CELL_IMAGE_DIR;
	_fd_ int dir = open_path("dir");

	if (make(&dir, 1) < 0)
		fail_msg("plan_make: %s", err.msg);
	assert_int_equal(plan.n_top, 0); /* the image brings its own */
	plan_free(&plan);
}

static unsigned long mount_flags(int fd)
{
	struct statvfs st;

	assert_int_equal(fstatvfs(fd, &st), 0);
	return st.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV);
}

static gid_t group(int dir, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dir, name, &st, AT_EMPTY_PATH), 0);
	return st.st_gid;
}

static uid_t owner(int dir, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dir, name, &st, AT_EMPTY_PATH), 0);
	return st.st_uid;
}

TEST(detached_mounts)
{
	int before = open_fds();

	need_root("cloning mounts");
	int fds[] = { open_path("dir"), open_path("file"), open_path("dir") };

	want_mount("/data", 0);
	want_mount("/etc/conf", 0);
	want_mount("/work", CELL_MOUNT_RW);
	if (make(fds, 3) < 0)
		fail_msg("plan_make: %s", err.msg);
	assert_int_equal(plan.n_mounts, 3);
	assert_string_equal(plan.mounts[0].dst, "data");
	assert_string_equal(plan.mounts[1].dst, "etc/conf");
	assert_true(plan.mounts[0].is_dir && !plan.mounts[1].is_dir && plan.mounts[2].is_dir);
	assert_true(!plan.mounts[0].rw && !plan.mounts[1].rw && plan.mounts[2].rw);
	for (size_t i = 0; i < 3; i++) {
		assert_true(plan.mounts[i].fd >= 0);
		assert_int_equal(fcntl(plan.mounts[i].fd, F_GETFD), FD_CLOEXEC);
		assert_int_not_equal(plan.mounts[i].fd, fds[i]);
	}
	assert_int_equal(mount_flags(plan.mounts[0].fd), ST_RDONLY | ST_NOSUID | ST_NODEV);
	assert_int_equal(mount_flags(plan.mounts[1].fd), ST_RDONLY | ST_NOSUID | ST_NODEV);
	assert_int_equal(mount_flags(plan.mounts[2].fd), ST_NOSUID | ST_NODEV);
	/* The caller's own files are the agent's of this cell, and only here. */
	uid_t agent = IDMAP_BASE + SLOT * IDMAP_COUNT + CELL_UID;

	assert_int_equal(owner(plan.mounts[0].fd, "inner"), agent);
	assert_int_equal(owner(plan.mounts[2].fd, "inner"), agent);
	assert_int_equal(group(plan.mounts[2].fd, "inner"), agent);
	/* A read-only mount has no group, by which the kernel refuses to write to sockets as
	 * well. */
	assert_int_not_equal(group(plan.mounts[0].fd, "inner"), agent);
	assert_false(plan.mounts[0].apart || plan.mounts[1].apart || plan.mounts[2].apart);
	assert_int_equal(owner(fds[0], "inner"), 0);
	assert_int_equal(faccessat(plan.mounts[0].fd, "inner", W_OK, 0), -1);
	assert_true(errno == EROFS || errno == EACCES);
	plan_free(&plan);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_true(fcntl(fds[i], F_GETFD) >= 0); /* borrowed: still the caller's */
		fd_close(fds[i]);
	}
	assert_int_equal(open_fds(), before);
}

TEST(image)
{
	int before = open_fds();

	need_root("cloning mounts");
	_fd_ int dir = open_path("dir");
	_fd_ int file = open_path("file");

	spec.image = CELL_IMAGE_DIR;
	want_mount("/data", 0);
	/* The image comes first, then the mounts. */
	assert_int_equal(make((const int[]){ dir, file }, 2), 0);
	assert_true(plan.layers[0].fd >= 0 && plan.layers[0].is_dir && !plan.layers[0].rw);
	assert_false(plan.mounts[0].is_dir);
	assert_int_equal(mount_flags(plan.layers[0].fd), ST_RDONLY | ST_NOSUID | ST_NODEV);
	assert_int_equal(owner(plan.layers[0].fd, "inner"), IDMAP_BASE + SLOT * IDMAP_COUNT);
	plan_free(&plan);

	assert_int_equal(make((const int[]){ file, dir }, 2), -ENOTDIR);
	assert_non_null(strstr(err.msg, "--image"));
	assert_int_equal(plan.layers[0].fd, -1);
	assert_int_equal(open_fds(), before + 2);
}

/* First what is only held, then the layers from above; on disk their files have the ids of the
 * store. */
TEST(layers)
{
	int before = open_fds();

	need_root("cloning mounts");
	_fd_ int dir = open_path("dir");
	_fd_ int file = open_path("file");

	assert_int_equal(fchownat(dir, "inner", CELL_LAYER_IDS + 7, CELL_LAYER_IDS + 7,
				  AT_SYMLINK_NOFOLLOW),
			 0);
	spec.image = CELL_IMAGE_LAYERS;
	spec.n_layers = 2;
	want_mount("/data", 0);
	assert_int_equal(make((const int[]){ file, dir, dir, file }, 4), 0);
	assert_true(plan.lease_fd >= 0 && plan.lease_fd != file);
	assert_int_equal(plan.n_layers, 2);
	assert_string_equal(plan.lowers, "aa:ab");
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(mount_flags(plan.layers[i].fd), ST_RDONLY | ST_NOSUID | ST_NODEV);
		assert_int_equal(owner(plan.layers[i].fd, "inner"),
				 IDMAP_BASE + SLOT * IDMAP_COUNT + 7);
	}
	assert_false(plan.mounts[0].is_dir);
	plan_free(&plan);
	assert_int_equal(make((const int[]){ dir, file, dir, file }, 4), -ENOTDIR);
	assert_int_equal(make((const int[]){ dir, dir, file }, 3), -EINVAL);
	assert_int_equal(open_fds(), before + 2);
	assert_int_equal(fchownat(dir, "inner", 0, 0, AT_SYMLINK_NOFOLLOW), 0);
}

/* One descriptor too many or too few is a broken client, whatever else is in the request. */
TEST(number_of_descriptors)
{
	int before = open_fds();

	_fd_ int dir = open_path("dir");
	const int fds[] = { dir, dir, dir };

	assert_int_equal(make(fds, 1), -EINVAL);
	want_mount("/a", 0);
	assert_int_equal(make(fds, 0), -EINVAL);
	assert_int_equal(make(fds, 2), -EINVAL);
	spec.image = CELL_IMAGE_DIR;
	assert_int_equal(make(fds, 1), -EINVAL);
	assert_int_equal(make(fds, 3), -EINVAL);
	assert_non_null(strstr(err.msg, "3 descriptors"));
	assert_non_null(strstr(err.msg, "needs 2"));
	assert_int_equal(open_fds(), before + 1);
}

/* Only what has a place in a file tree: no sockets, pipes, devices or dead numbers. */
TEST(things_that_cannot_be_mounted)
{
	int before = open_fds();
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	_fd_ int dir = open_path("dir");
	_fd_ int null = open("/dev/null", O_PATH | O_CLOEXEC);
	const int bad[] = { ends[0], null, 9999, -1 };

	want_mount("/good", 0);
	want_mount("/bad", 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const int fds[] = { dir, bad[i] };

		assert_true(make(fds, 2) < 0);
		assert_non_null(strstr(err.msg, "--mount /bad"));
		/* The good one before it was let go again. */
		assert_int_equal(plan.mounts[0].fd, -1);
		assert_int_equal(open_fds(), before + 4);
	}
	fd_close(ends[0]);
	fd_close(ends[1]);
}

/* Without privilege the child has to find the object again: path, device and inode are kept. */
CHILD_TEST(remembered_mounts)
{
	char want[96];
	struct stat st;

	child_become_nobody();
	int before = open_fds();
	_fd_ int dir = open_path("dir");
	_fd_ int file = open_path("file");

	want_mount("/data", CELL_MOUNT_RW);
	want_mount("/conf", 0);
	want_mount("/read", 0);
	CHILD_CHECK(make((const int[]){ dir, file, dir }, 3) == 0);
	CHILD_CHECK(!plan.mounts[0].apart && !plan.mounts[1].apart && plan.mounts[2].apart);
	CHILD_CHECK(!plan.ids.ranged && !plan.config.separate);
	CHILD_CHECK(plan.mounts[0].fd == -1 && plan.mounts[1].fd == -1);
	(void)snprintf(want, sizeof(want), "%s/dir", top);
	CHILD_CHECK(strcmp(plan.mounts[0].src, want) == 0);
	CHILD_CHECK(stat(want, &st) == 0);
	CHILD_CHECK(plan.mounts[0].dev == st.st_dev && plan.mounts[0].ino == st.st_ino);
	CHILD_CHECK(plan.mounts[0].rw && plan.mounts[0].is_dir);
	CHILD_CHECK(!plan.mounts[1].rw && !plan.mounts[1].is_dir);
	plan_free(&plan);
	CHILD_CHECK(open_fds() == before + 2);
}
