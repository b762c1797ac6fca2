/* SPDX-License-Identifier: Apache-2.0 */
/* test_cgroup.c - The kernel's cgroup texts, as captured on machines of every kind. */
#include "base/err.h"
#include "cell/cgroup.h"
#include "cell/cgroup_ops.h"

#include <errno.h>
#include <string.h>

#include "../unit.h"

static struct cgroup_text text(const char *s)
{
	return (struct cgroup_text){ s, strlen(s) };
}

static enum cgroup_kind map(struct cgroup_map *m, const char *self, const char *mounts,
			    unsigned int *ret_missing)
{
	cgroup_map_self(m, text(self));
	cgroup_map_mounts(m, text(mounts));
	return cgroup_map_kind(m, ret_missing);
}

static void assert_at(const struct cgroup_map *m, enum cgroup_role role, const char *mount,
		      const char *pos)
{
	assert_true(m->at[role].usable);
	assert_string_equal(m->at[role].mount, mount);
	assert_string_equal(m->at[role].pos, pos);
}

/* Controllers each on a v1 mount of their own, a bare v2 tree beside them. */
TEST(hybrid)
{
	static const char self[] = "9:name=systemd:/\n"
				   "8:pids:/\n"
				   "7:blkio:/\n"
				   "4:memory:/outer/f28589f43ca16157cc68678fcf704505\n"
				   "3:cpuset:/\n"
				   "2:cpuacct:/\n"
				   "1:cpu:/\n"
				   "0::/\n";
	static const char mounts[] =
		"23 1 0:21 / /sys rw,relatime - sysfs sysfs rw\n"
		"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
		"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		"33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
		"34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
		"40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
	struct cgroup_map m;
	unsigned int missing;

	assert_int_equal(map(&m, self, mounts, &missing), CGROUP_HYBRID);
	assert_int_equal(missing, 0);
	assert_at(&m, CGROUP_MEMORY, "/sys/fs/cgroup/memory",
		  "/outer/f28589f43ca16157cc68678fcf704505");
	assert_at(&m, CGROUP_PIDS, "/sys/fs/cgroup/pids", "");
	assert_at(&m, CGROUP_CPU, "/sys/fs/cgroup/cpu", "");
	assert_at(&m, CGROUP_CPUACCT, "/sys/fs/cgroup/cpuacct", "");
	assert_at(&m, CGROUP_UNIFIED, "/sys/fs/cgroup/unified", "");

	/* The same in pieces, as a long mountinfo is read. */
	struct cgroup_map parts;

	cgroup_map_self(&parts, text(self));
	for (const char *p = mounts; *p;) {
		size_t n = strcspn(p, "\n") + 1;

		cgroup_map_mounts(&parts, (struct cgroup_text){ p, n });
		p += n;
	}
	assert_memory_equal(&m, &parts, sizeof(m));
}

static const char debian_mounts[] =
	"22 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw\n"
	"29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
	"rw,nsdelegate,memory_recursiveprot\n"
	"30 23 0:27 / /sys/fs/pstore rw,nosuid,nodev,noexec,relatime shared:10 - pstore pstore "
	"rw\n";

/* Debian 12: one v2 tree, root logged in over ssh. */
TEST(v2_systemd)
{
	struct cgroup_map m;
	unsigned int missing;

	assert_int_equal(map(&m, "0::/user.slice/user-0.slice/session-3.scope\n", debian_mounts,
			     &missing),
			 CGROUP_V2);
	assert_at(&m, CGROUP_UNIFIED, "/sys/fs/cgroup", "/user.slice/user-0.slice/session-3.scope");
	assert_false(m.at[CGROUP_MEMORY].known);
	assert_false(m.at[CGROUP_UNIFIED].read_only);
}

/* Ubuntu 24.04: a terminal of a user's desktop session; the scope's name holds colons. */
TEST(v2_user_session)
{
	static const char self[] =
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/"
		"app-org.gnome.Terminal.slice/dbus-:1.2-org.gnome.Terminal@0.service\n";
	static const char mounts[] =
		"35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 "
		"cgroup2 rw,nsdelegate,memory_recursiveprot\n"
		"2141 31 0:4 mnt:[4026533001] /run/snapd/ns/snapd-desktop.mnt rw - nsfs nsfs rw\n";
	struct cgroup_map m;
	unsigned int missing;

	assert_int_equal(map(&m, self, mounts, &missing), CGROUP_V2);
	assert_at(&m, CGROUP_UNIFIED, "/sys/fs/cgroup",
		  "/user.slice/user-1000.slice/user@1000.service/app.slice/"
		  "app-org.gnome.Terminal.slice/dbus-:1.2-org.gnome.Terminal@0.service");
}

/* A v2 machine on which some program mounted one old controller that we do not need. */
TEST(v2_with_net_cls)
{
	static const char mounts[] =
		"29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		"99 23 0:55 / /sys/fs/cgroup/net_cls rw,relatime - cgroup net_cls rw,net_cls\n";
	struct cgroup_map m;
	unsigned int missing;

	assert_int_equal(map(&m, "2:net_cls:/\n0::/init.scope\n", mounts, &missing), CGROUP_V2);
	assert_at(&m, CGROUP_UNIFIED, "/sys/fs/cgroup", "/init.scope");
}

/* Docker on v1 shows a container its own part of each hierarchy, read-only. */
TEST(docker_v1)
{
	static const char self[] = "12:memory:/docker/0123abcd\n"
				   "8:pids:/docker/0123abcd\n"
				   "4:cpu,cpuacct:/docker/0123abcd\n"
				   "1:name=systemd:/docker/0123abcd\n"
				   "0::/system.slice/containerd.service\n";
	static const char mounts[] =
		"700 690 0:30 /docker/0123abcd /sys/fs/cgroup/memory ro,nosuid master:15 - cgroup "
		"cgroup rw,memory\n"
		"701 690 0:31 /docker/0123abcd /sys/fs/cgroup/pids ro,nosuid master:16 - cgroup "
		"cgroup rw,pids\n"
		"702 690 0:32 /docker/0123abcd /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:17 - "
		"cgroup cgroup rw,cpu,cpuacct\n";
	struct cgroup_map m;
	unsigned int missing;

	assert_int_equal(map(&m, self, mounts, &missing), CGROUP_V1);
	assert_at(&m, CGROUP_MEMORY, "/sys/fs/cgroup/memory", "");
	assert_true(m.at[CGROUP_MEMORY].read_only);
	assert_at(&m, CGROUP_CPU, "/sys/fs/cgroup/cpu,cpuacct", "");
	assert_at(&m, CGROUP_CPUACCT, "/sys/fs/cgroup/cpu,cpuacct", "");
	assert_true(m.at[CGROUP_UNIFIED].known);
	assert_false(m.at[CGROUP_UNIFIED].mounted);
}

/* systemd's legacy layout; one mount point with a space; we are deeper than the mount's root. */
TEST(comounted)
{
	static const char self[] = "11:pids:/system.slice/job.service\n"
				   "6:cpu,cpuacct:/system.slice/job.service/deep\n"
				   "3:memory:/system.slice/job.service\n";
	static const char mounts[] =
		"30 25 0:26 / /cg\\040x/cpu,cpuacct rw - cgroup cgroup rw,seclabel,cpu,cpuacct\n"
		"31 25 0:27 / /cg\\040x/memory rw - cgroup cgroup rw,memory\n"
		"33 25 0:28 / /cg\\040x/pids rw - cgroup cgroup rw,pids\n"
		"34 25 0:26 /system.slice /mnt/part rw - cgroup cgroup rw,cpu,cpuacct\n";
	struct cgroup_map m;
	unsigned int missing;

	assert_int_equal(map(&m, self, mounts, &missing), CGROUP_V1);
	assert_at(&m, CGROUP_CPU, "/cg x/cpu,cpuacct", "/system.slice/job.service/deep");
	assert_at(&m, CGROUP_CPUACCT, "/cg x/cpu,cpuacct", "/system.slice/job.service/deep");
	assert_at(&m, CGROUP_MEMORY, "/cg x/memory", "/system.slice/job.service");
}

TEST(cgroup_namespace)
{
	struct cgroup_map m;
	unsigned int missing;

	/* Mounted inside: both positions start at the namespace's root. */
	assert_int_equal(map(&m, "0::/\n", "40 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			     &missing),
			 CGROUP_V2);
	assert_at(&m, CGROUP_UNIFIED, "/sys/fs/cgroup", "");

	/* Mounted outside: the names in between are lost, so the mount cannot be used. */
	assert_int_equal(map(&m, "0::/\n",
			     "40 1 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n", &missing),
			 CGROUP_NONE);
	assert_true(m.at[CGROUP_UNIFIED].mounted);
	assert_int_equal(missing, CGROUP_NEED);

	/* We were moved out of the namespace's root; the outer mount still shows us. */
	assert_int_equal(map(&m, "0::/../b/c\n",
			     "40 1 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n", &missing),
			 CGROUP_V2);
	assert_at(&m, CGROUP_UNIFIED, "/sys/fs/cgroup", "/b/c");

	/* The inner one does not, and "/.." must never be walked. */
	assert_int_equal(map(&m, "0::/../b\n", "40 1 0:26 / /cg rw - cgroup2 cgroup rw\n",
			     &missing),
			 CGROUP_NONE);
	assert_int_equal(map(&m, "0::/../../b\n", "40 1 0:26 /.. /cg rw - cgroup2 c rw\n",
			     &missing),
			 CGROUP_NONE);
}

TEST(choice_of_mounts)
{
	struct cgroup_map m;
	unsigned int missing;

	/* A read-only one gives way to a writable one, a writable one stays. */
	(void)map(&m, "0::/a\n",
		  "1 0 0:1 / /ro ro,nosuid - cgroup2 c rw\n2 0 0:1 / /rw rw - cgroup2 c rw\n"
		  "3 0 0:1 / /rw2 rw - cgroup2 c rw\n",
		  &missing);
	assert_at(&m, CGROUP_UNIFIED, "/rw", "/a");
	/* The later one on the same point is what is seen there. */
	(void)map(&m, "0::/a/b\n",
		  "1 0 0:1 / /cg rw - cgroup2 c rw\n2 0 0:1 /a /cg rw - cgroup2 c rw\n", &missing);
	assert_at(&m, CGROUP_UNIFIED, "/cg", "/b");
	/* A neighbour whose name only starts the same shows nothing of us. */
	assert_int_equal(map(&m, "0::/abc\n", "1 0 0:1 /ab /cg rw - cgroup2 c rw\n", &missing),
			 CGROUP_NONE);
	/* A removed cgroup cannot be entered. */
	assert_int_equal(map(&m, "0::/a (deleted)\n", "1 0 0:1 / /cg rw - cgroup2 c rw\n",
			     &missing),
			 CGROUP_NONE);
}

TEST(missing)
{
	struct cgroup_map m;
	unsigned int missing;
	char buf[64], huge[1024];

	/* The pids controller is bound to v1 but mounted nowhere. */
	assert_int_equal(
		map(&m, "3:pids:/\n2:memory:/\n1:cpu:/\n",
		    "1 0 0:1 / /m rw - cgroup c rw,memory\n2 0 0:2 / /c rw - cgroup c rw,cpu\n",
		    &missing),
		CGROUP_NONE);
	assert_int_equal(missing, CGROUP_BIT(CGROUP_PIDS));
	assert_string_equal(cgroup_mask_str(missing, buf, sizeof(buf)), "pids");
	assert_string_equal(cgroup_mask_str(CGROUP_NEED, buf, sizeof(buf)), "memory, pids, cpu");
	assert_string_equal(cgroup_mask_str(CGROUP_NEED, buf, 13), "memory, pids");
	assert_int_equal(map(&m, "", "", &missing), CGROUP_NONE);
	assert_int_equal(missing, CGROUP_NEED);

	/* Too long is unusable, not cut. */
	(void)memset(huge, 'x', sizeof(huge));
	(void)memcpy(huge, "0::/", 4);
	cgroup_map_self(&m, (struct cgroup_text){ huge, sizeof(huge) });
	cgroup_map_mounts(&m, text("1 0 0:1 / /cg rw - cgroup2 c rw\n"));
	assert_true(m.at[CGROUP_UNIFIED].known);
	assert_false(m.at[CGROUP_UNIFIED].usable);

	/* Lines that are cut or not what they should be are not there. */
	static const char *const bad[] = {
		"",
		"1 0 0:1 / /cg",
		"1 0 0:1 / /cg rw -",
		"1 0 0:1 / /cg rw - cgroup2 c",
		"\n\n",
		"1 0 0:1 / cg rw - cgroup2 c rw",
		"1 0 0:1 / /c\\04 rw - cgroup2 c rw",
		"1 0 0:1 / /c\\000 rw - cgroup2 c rw",
		"1 0 0:1 / /cg rw - cgroup c rw,xattr",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(map(&m, "0::/\n", bad[i], &missing), CGROUP_NONE);
}

TEST(numbers)
{
	uint64_t v = 7;

	assert_true(cgroup_text_u64(text("4096\n"), &v));
	assert_int_equal(v, 4096);
	assert_true(cgroup_text_u64(text("max\n"), &v));
	assert_true(v == UINT64_MAX);
	assert_true(cgroup_text_u64(text("18446744073709551615"), &v));
	v = 7;
	assert_false(cgroup_text_u64(text("18446744073709551616"), &v));
	assert_false(cgroup_text_u64(text("-1\n"), &v));
	assert_false(cgroup_text_u64(text(""), &v));
	assert_false(cgroup_text_u64(text("\n"), &v));
	assert_false(cgroup_text_u64(text("1 2"), &v));
	assert_int_equal(v, 7);

	static const char events[] = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";

	assert_true(cgroup_text_key(text(events), "oom_kill", &v));
	assert_int_equal(v, 2);
	assert_true(cgroup_text_key(text(events), "oom", &v));
	assert_int_equal(v, 3);
	assert_false(cgroup_text_key(text(events), "oom_ki", &v));
	assert_false(cgroup_text_key(text("oom_kill\n"), "oom_kill", &v));

	assert_int_equal(cgroup_text_mask(text("cpuset cpu io memory hugetlb pids rdma misc\n")),
			 CGROUP_NEED);
	assert_int_equal(cgroup_text_mask(text("cpuset io\n")), 0);
	assert_int_equal(cgroup_text_mask(text("")), 0);

	pid_t pids[3] = { -1, -1, -1 };

	assert_int_equal(cgroup_text_pids(text("12\n0\nx\n99\n100\n"), pids, 3), 3);
	assert_int_equal(pids[0], 12);
	assert_int_equal(pids[1], 0);
	assert_int_equal(pids[2], 99);
	assert_int_equal(cgroup_text_pids(text("4294967297\n"), pids, 3), 0);

	assert_int_equal(cgroup_text_ppid(text("42 (a) b) c) S 17 42 42 0")), 17);
	assert_int_equal(cgroup_text_ppid(text("42 (sh) S")), 0);
	assert_int_equal(cgroup_text_ppid(text("nonsense")), 0);
}

TEST(quota)
{
	uint64_t quota, period;

	/* Every share there is must be one the kernel takes, and come back as itself. */
	for (uint32_t milli = 1; milli <= 10000000; milli = milli < 4000 ? milli + 1 : milli * 3) {
		cgroup_quota(milli, &quota, &period);
		assert_in_range(quota, 1000, UINT64_C(1) << 43);
		assert_in_range(period, 1000, 1000000);
		assert_int_equal(cgroup_quota_milli(quota, period), milli);
	}
	assert_int_equal(cgroup_quota_milli(5, 0), 0);
	assert_int_equal(cgroup_quota_milli(UINT64_MAX, 1), 0);
}

TEST(names)
{
	static const char *const good[] = {
		"a", "0", "cell-0001", "-",
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz01234567890"
	};
	static const char *const bad[] = {
		"",
		"A",
		"a/b",
		"..",
		".",
		"a.b",
		"a b",
		"a\n",
		"caisson.self",
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz012345678901"
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(cgroup_name_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(cgroup_name_valid(bad[i]));
}

TEST(removable)
{
	static const char *const bad[] = {
		"",
		"/",
		"caisson/x",
		"/x",
		"/caisson",
		"/caisson/",
		"/a/caisson/x/",
		"/a//caisson/x",
		"/a/../caisson/x",
		"/a/./caisson/x",
		"/a/caisson/..",
		"/a/caisson/x/y",
		"/a/caissons/x",
		"/a/caisson/X",
		"/a/caisson/caisson.self",
		"/caisson/../x",
		"/a/caisson-",
		"/caisson-x",
		"/a/caisson-X",
		"/a/caisson-x/y",
	};
	char huge[CGROUP_PATH_MAX + 32];

	assert_true(cgroup_path_removable("/sys/fs/cgroup/caisson/cell-1"));
	assert_true(cgroup_path_removable("/caisson/x"));
	assert_true(cgroup_path_removable("/sys/fs/cgroup/cpu/a/caisson-cell-1"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(cgroup_path_removable(bad[i]));
	(void)memset(huge, 'a', sizeof(huge));
	huge[0] = '/';
	(void)memcpy(huge + sizeof(huge) - 11, "/caisson/x", 11);
	assert_false(cgroup_path_removable(huge));
}

TEST(plan)
{
	struct cgroup_site s = { .kind = CGROUP_V1,
				 .n_dirs = 2,
				 .prefix = { "/cg/memory/a/caisson-", "/cg/cpu/caisson/" },
				 .dir_of = { 0, 0, 1, -1, -1 } };
	struct cgroup c;
	struct err e = { 0 };

	assert_int_equal(cgroup_plan(&s, "cell-7", &c, &e), 0);
	assert_int_equal(c.n_dirs, 2);
	assert_string_equal(c.path[0], "/cg/memory/a/caisson-cell-7");
	assert_string_equal(c.path[1], "/cg/cpu/caisson/cell-7");
	assert_true(cgroup_path_removable(c.path[0]));
	assert_int_equal(cgroup_clone_fd(&c), -1);
	assert_int_equal(c.oom_fd, -1);

	assert_int_equal(cgroup_plan(&s, "../x", &c, &e), -EINVAL);
	(void)memset(s.prefix[1], 'x', CGROUP_PATH_MAX - 4);
	assert_int_equal(cgroup_plan(&s, "cell-7", &c, &e), -ENAMETOOLONG);
	s.kind = CGROUP_NONE;
	assert_int_equal(cgroup_plan(&s, "cell-7", &c, &e), -EINVAL);
}
