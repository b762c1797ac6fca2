/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cgroup_kernel.c - Cgroups on the present Linux kernel: limits bind, counters count, nothing
 * stays.
 *
 * Runs with the site that the machine offers and prints it; without one (an ordinary user without
 * delegation) every test is skipped with the reason. CAISSON_TEST_CGROUP=v2|v1|hybrid demands that
 * kind and turns a skip into a failure. Hostile children are bounded by the limits under test and
 * by counts and alarms of their own.
 */
#include "cgroup_kit.h"

TEST(life)
{
	const struct cgroup_limits want = { 64 * MIB + 100, 16, 500, 200 };
	struct cgroup_limits now;
	struct cgroup_usage u;
	struct cgroup c;
	int fds = count_fds();

	need_site();
	plan(&site, "life", &c);
	assert_gone(&c);
	assert_done(cgroup_create(&c, &want, &err));
	assert_int_equal(c.limits.memory_bytes, 64 * MIB);
	assert_done(cgroup_limits_read(&c, &now, &err));
	assert_memory_equal(&now, &c.limits, sizeof(now));

	pid_t pid = start(&c, idle, 0);

	assert_member(&c, pid);
	assert_done(cgroup_usage(&c, &u, &err));
	assert_int_equal(u.pids, 1);
	assert_int_equal(u.oom_kills, 0);
	assert_int_equal(u.pids_denied, 0);

	/* Other limits, each on directories of its own. */
	static const struct cgroup_limits change[] = {
		{ 128 * MIB, 32, 1500, 0 },
		{ 32 * MIB, 8, 5, 10000 },
		{ 0, 0, 0, 1 },
		{ 48 * MIB, 16, 1000, 100 },
	};

	for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
		struct cgroup other;

		plan(&site, "limits", &other);
		assert_done(cgroup_create(&other, &change[i], &err));
		assert_done(cgroup_limits_read(&other, &now, &err));
		if (change[i].cpu_weight == 0)
			now.cpu_weight = now.cpu_weight == 100 ? 0 : now.cpu_weight;
		assert_memory_equal(&now, &change[i], sizeof(now));
		assert_done(cgroup_remove(&other, REMOVE_MS, &err));
	}

	/* Its directory exists: it is refused, and neither adopted nor removed. */
	struct cgroup again;

	plan(&site, "life", &again);
	assert_int_equal(cgroup_create(&again, &want, &err), -EEXIST);
	assert_member(&c, pid);

	assert_int_equal(cgroup_try_remove(&c, &err), -EBUSY);
	assert_int_equal(reap(pid), SIGKILL);
	assert_done(cgroup_remove(&c, REMOVE_MS, &err));
	assert_gone(&c);
	assert_done(cgroup_remove(&c, REMOVE_MS, &err));
	assert_int_equal(count_fds(), fds);
}

TEST(limits_refused)
{
	static const struct cgroup_limits bad[] = {
		{ 1, 0, 0, 0 },          { UINT64_MAX, 0, 0, 0 }, { 0, 5000000, 0, 0 },
		{ 0, 0, UINT32_MAX, 0 }, { 0, 0, 0, 10001 },
	};
	struct cgroup c;

	need_site();
	plan(&site, "bad", &c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(cgroup_create(&c, &bad[i], &err), -ERANGE);
		assert_gone(&c);
	}
}

TEST(pids)
{
	struct cgroup_usage u;
	struct cgroup c;

	need_site();
	plan(&site, "pids", &c);
	assert_done(cgroup_create(&c, &(struct cgroup_limits){ .pids = 5 }, &err));

	int status = reap(start(&c, fork_many, 9));

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 9 - 4);
	assert_done(cgroup_usage(&c, &u, &err));
	assert_int_equal(u.pids, 4);
	if (u.pids_denied == 0 || u.pids_peak == 0)
		printf("# kernel without pids.%s\n", u.pids_denied ? "peak" : "events");
	assert_true(u.pids_denied == 0 || u.pids_denied >= 5);
	assert_true(u.pids_peak == 0 || u.pids_peak == 5);
	/* They are left to pid 1, or to a subreaper; the removal has to wait for them. */
	assert_done(cgroup_remove(&c, REMOVE_MS, &err));
	assert_gone(&c);
}

TEST(memory)
{
	struct cgroup_usage u;
	struct cgroup c;
	uint64_t kills;

	need_site();
	plan(&site, "memory", &c);
	assert_done(cgroup_create(
		&c, &(struct cgroup_limits){ .memory_bytes = 32 * MIB, .oom_group = true }, &err));
	assert_true(c.oom_fd >= 0);

	struct pollfd p = { .fd = c.oom_fd, .events = POLLIN | POLLPRI };

	/* Within the limit nothing happens. */
	assert_int_equal(reap(start(&c, eat, 8)), 0);
	assert_done(cgroup_oom_kills(&c, &kills, &err));
	assert_int_equal(kills, 0);
	p.events = site.kind == CGROUP_V2 ? POLLPRI : POLLIN;
	assert_int_equal(poll(&p, 1, 0), 0);

	pid_t other = start(&c, idle, 0), pid = start(&c, eat, 64);

	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(reap(pid), SIGKILL);
	if (site.kind == CGROUP_V2) /* memory.oom.group: all die as one */
		assert_int_equal(reap(other), SIGKILL);
	assert_done(cgroup_oom_kills(&c, &kills, &err));
	assert_true(kills >= 1);
	assert_done(cgroup_usage(&c, &u, &err));
	assert_int_equal(u.oom_kills, kills);
	assert_true(u.memory_peak == 0 || u.memory_peak > 28 * MIB);
	assert_true(u.memory_peak <= 32 * MIB);
	assert_done(cgroup_remove(&c, REMOVE_MS, &err));
	if (site.kind != CGROUP_V2)
		assert_int_equal(reap(other), SIGKILL);
	assert_gone(&c);
}

/* Data that is written to a tmpfs counts as memory and shows as files. */
static int fill_shared(int mib)
{
	int fd = memfd_create("x", MFD_CLOEXEC);
	char block[4096] = { 1 };

	for (int i = 0; i < mib * 256; i++)
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return 1;
	return pause();
}

TEST(files)
{
	struct cgroup_usage u;
	struct cgroup c;

	need_site();
	plan(&site, "files", &c);
	assert_done(cgroup_create(&c, &(struct cgroup_limits){ .memory_bytes = 64 * MIB }, &err));

	pid_t pid = start(&c, fill_shared, 8);

	for (int i = 0; i < 1000; i++) {
		assert_done(cgroup_usage(&c, &u, &err));
		if (u.memory_files >= 8 * MIB)
			break;
		(void)usleep(50000);
	}
	assert_in_range(u.memory_files, 8 * MIB, 10 * MIB);
	assert_true(u.memory_bytes >= u.memory_files);
	assert_done(cgroup_remove(&c, REMOVE_MS, &err));
	assert_int_equal(reap(pid), SIGKILL);
}

TEST(cpu)
{
	struct cgroup_usage u;
	struct cgroup c;

	need_site();
	plan(&site, "cpu", &c);
	assert_done(cgroup_create(&c, &(struct cgroup_limits){ .cpu_milli = 50 }, &err));
	assert_int_equal(reap(start(&c, burn, 600)), 0);
	assert_done(cgroup_usage(&c, &u, &err));
	printf("# 600 ms at 5%%: cpu %llu ms, throttled %llu ms\n",
	       (unsigned long long)(u.cpu_ns / CLOCK_NS_PER_MS),
	       (unsigned long long)(u.throttled_ns / CLOCK_NS_PER_MS));
	/* So little is to be had on a busy machine, too. */
	assert_in_range(u.cpu_ns, 5 * CLOCK_NS_PER_MS, 250 * CLOCK_NS_PER_MS);
	assert_true(u.throttled_ns > 0);
	assert_done(cgroup_remove(&c, REMOVE_MS, &err));
}

/* Without the v2 tree: the kill loop, and no clone-into. */
static bool without_unified(struct cgroup_site *s)
{
	*s = site;
	if (site.kind != CGROUP_HYBRID)
		return false;
	int gone = s->dir_of[CGROUP_UNIFIED];

	assert_in_range(gone, 0, s->n_dirs - 1);
	s->n_dirs--;
	memmove(s->prefix[gone], s->prefix[gone + 1],
		(s->n_dirs - (size_t)gone) * sizeof(s->prefix[0]));
	for (size_t i = 0; i < CGROUP_ROLES_; i++)
		if (s->dir_of[i] > gone)
			s->dir_of[i]--;
	s->dir_of[CGROUP_UNIFIED] = -1;
	s->kind = CGROUP_V1;
	return true;
}

static void kill_crowd(const struct cgroup_site *s)
{
	struct cgroup_usage u;
	struct cgroup c;

	plan(s, "kill", &c);
	assert_done(cgroup_create(&c, &(struct cgroup_limits){ .pids = 200 }, &err));

	pid_t pid = start(&c, fork_and_stay, 150);

	assert_int_equal(cgroup_try_remove(&c, &err), -EBUSY);
	assert_int_equal(reap(pid), SIGKILL);
	for (int i = 0; i < 1000; i++) {
		assert_done(cgroup_usage(&c, &u, &err));
		if (u.pids == 0)
			break;
		(void)usleep(20000);
	}
	assert_int_equal(u.pids, 0);
	assert_done(cgroup_remove(&c, REMOVE_MS, &err));
	assert_gone(&c);
}

TEST(kill)
{
	struct cgroup_site s;

	need_site();
	kill_crowd(&site);
	if (without_unified(&s))
		kill_crowd(&s);
}

/* The leftovers of a crash: processes, directories, and a journal with the paths. */
TEST(recovery)
{
	struct cgroup c;

	need_site();
	plan(&site, "crash", &c);
	assert_done(cgroup_create(&c, &(struct cgroup_limits){ .pids = 50 }, &err));

	pid_t pid = start(&c, fork_and_stay, 10);

	cgroup_close(&c);
	/* From the last to the first: no order is needed. */
	for (size_t i = c.n_dirs; i-- > 0;)
		assert_done(cgroup_remove_path(c.path[i], REMOVE_MS, &err));
	assert_int_equal(reap(pid), SIGKILL);
	assert_gone(&c);
	for (size_t i = 0; i < c.n_dirs; i++)
		assert_done(cgroup_remove_path(c.path[i], REMOVE_MS, &err));

	/* A stale record may name anything: only a cell's cgroup is ever touched. */
	char dir[] = "/tmp/caisson-test-XXXXXX", path[64];

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/caisson", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/caisson/x", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(cgroup_remove_path(path, 100, &err), -EINVAL);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(cgroup_remove_path(path, 100, &err), -EINVAL);
	(void)snprintf(path, sizeof(path), "%s/caisson", dir);
	assert_int_equal(cgroup_remove_path(path, 100, &err), -EINVAL);
	assert_int_equal(rmdir(path), 0);
	(void)snprintf(path, sizeof(path), "%s/caisson/x", dir);
	assert_done(cgroup_remove_path(path, 100, &err));
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(cgroup_remove_path(site.prefix[0], 100, &err), -EINVAL);
	assert_done(cgroup_remove_path("/nowhere/caisson/x", 100, &err));
}

/* A deadline is kept when something cannot be removed. */
TEST(deadline)
{
	struct cgroup c;
	char nested[CGROUP_PATH_MAX + 8];

	need_site();
	plan(&site, "late", &c);
	assert_done(cgroup_create(&c, &(struct cgroup_limits){ .pids = 5 }, &err));
	(void)snprintf(nested, sizeof(nested), "%s/in", c.path[0]);
	assert_int_equal(mkdir(nested, 0755), 0);

	uint64_t t = clock_now_ns();

	assert_int_equal(cgroup_remove(&c, 50, &err), -EBUSY);
	t = clock_now_ns() - t;
	assert_in_range(t, 45 * CLOCK_NS_PER_MS, 60000 * CLOCK_NS_PER_MS);
	assert_int_equal(rmdir(nested), 0);
	for (size_t i = 0; i < c.n_dirs; i++)
		assert_done(cgroup_remove_path(c.path[i], REMOVE_MS, &err));
	assert_gone(&c);
}

/* Several callers make and remove the shared base under each other's feet. */
TEST(together)
{
	pid_t worker[4];

	need_site();
	(void)fflush(NULL);
	for (size_t i = 0; i < 4; i++) {
		worker[i] = fork();
		assert_true(worker[i] >= 0);
		if (worker[i] > 0)
			continue;
		for (int k = 0; k < 40; k++) {
			struct cgroup_limits l = { 32 * MIB, 10, 500, 0 };
			struct cgroup c;
			char name[CGROUP_NAME_MAX];

			(void)snprintf(name, sizeof(name), "t-par-%d-%d", (int)getpid(), k);
			if (cgroup_plan(&site, name, &c, &err) < 0 ||
			    cgroup_create(&c, &l, &err) < 0 ||
			    cgroup_remove(&c, REMOVE_MS, &err) < 0) {
				printf("# worker %zu, round %d: %s\n", i, k, err.msg);
				(void)fflush(NULL);
				_exit(1);
			}
		}
		_exit(0);
	}
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(reap(worker[i]), 0);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

TEST(cost)
{
	enum { ROUNDS = 60, STEPS = 5 };
	static const char *const step[STEPS] = { "create", "attach", "usage", "remove", "all" };
	uint64_t ns[STEPS][ROUNDS], find = clock_now_ns();
	struct cgroup_site again;

	need_site();
	find = clock_now_ns();
	assert_done(cgroup_site_find(&again, &err));
	find = clock_now_ns() - find;
	assert_int_equal(again.vacate[0], '\0');
	for (int i = 0; i < ROUNDS; i++) {
		struct cgroup_limits l = { 64 * MIB, 64, 500, 0 };
		struct cgroup_usage u;
		struct cgroup c;
		uint64_t t[8];

		plan(&site, "cost", &c);
		t[0] = clock_now_ns();
		assert_done(cgroup_create(&c, &l, &err));
		t[1] = clock_now_ns();

		struct clone_args args = { .exit_signal = SIGCHLD };
		struct cgroup_enter enter;
		int into = cgroup_clone_fd(&c);

		t[2] = clock_now_ns();
		assert_done(cgroup_enter_open(&c, &enter, &err));
		t[3] = clock_now_ns();

		if (into >= 0) {
			args.flags = CLONE_INTO_CGROUP;
			args.cgroup = (unsigned int)into;
		}

		pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

		assert_true(pid >= 0);
		if (pid == 0) {
			(void)cgroup_enter_self(&enter);
			_exit(pause());
		}
		cgroup_enter_close(&enter);
		assert_int_equal(kill(pid, SIGKILL), 0);
		(void)reap(pid);
		t[4] = clock_now_ns();
		assert_done(cgroup_usage(&c, &u, &err));
		t[5] = clock_now_ns();
		assert_done(cgroup_remove(&c, REMOVE_MS, &err));
		t[6] = clock_now_ns();
		ns[0][i] = t[1] - t[0];
		ns[1][i] = t[3] - t[2];
		ns[2][i] = t[5] - t[4];
		ns[3][i] = t[6] - t[5];
		ns[4][i] = ns[0][i] + ns[1][i] + ns[2][i] + ns[3][i];
	}
	printf("# cost in us, median: find %llu", (unsigned long long)find / 1000);
	for (int s = 0; s < STEPS; s++) {
		qsort(ns[s], ROUNDS, sizeof(ns[s][0]), by_value);
		printf(", %s %llu", step[s], (unsigned long long)ns[s][ROUNDS / 2] / 1000);
	}
	printf(" (p95 %llu)\n", (unsigned long long)ns[4][ROUNDS * 95 / 100] / 1000);
}

/* The error for an ordinary user without delegation names the missing part and the remedy. */
TEST(refusal)
{
	need_site();
	if (geteuid() != 0) {
		printf("# skipped: only root can become someone else\n");
		skip();
	}
	(void)fflush(NULL);

	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct cgroup_site s;

		drop_to(65534);
		if (cgroup_site_find(&s, &err) >= 0 || s.kind != CGROUP_NONE)
			_exit(1);
		printf("# %s\n", err.msg);
		(void)fflush(NULL);
		_exit(!(strstr(err.msg, "memory, pids, cpu") &&
			strstr(err.msg, "--without cgroup") && strstr(err.msg, "run as root") &&
			(site.kind != CGROUP_V2 || strstr(err.msg, "systemd-run --user --scope"))));
	}
	assert_int_equal(reap(pid), 0);
}

/* v1 refuses a quota above an outer one: the outer one then is the limit, which is reported. */
TEST(outer_quota)
{
	char outer[CGROUP_PATH_MAX];

	need_site();
	if (geteuid() != 0 || site.kind == CGROUP_V2) {
		printf("# skipped: needs root and v1\n");
		skip();
	}
	beside(site.prefix[site.dir_of[CGROUP_CPU]], "outer", outer);
	assert_int_equal(mkdir(outer, 0755), 0);
	assert_int_equal(put_file(outer, "cpu.cfs_quota_us", "20000"), 0);
	(void)fflush(NULL);

	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct cgroup_limits l = { .cpu_milli = 1000 }, small = { .cpu_milli = 100 }, now;
		struct cgroup_site s;
		struct cgroup c;
		int bad = put_file(outer, "cgroup.procs", "0") < 0 ||
			  cgroup_site_find(&s, &err) < 0 ||
			  strncmp(s.prefix[s.dir_of[CGROUP_CPU]], outer, strlen(outer)) != 0 ||
			  cgroup_plan(&s, "t-outer", &c, &err) < 0 ||
			  cgroup_create(&c, &l, &err) < 0 ||
			  cgroup_limits_read(&c, &now, &err) < 0 || now.cpu_milli != 200 ||
			  cgroup_remove(&c, REMOVE_MS, &err) < 0 ||
			  cgroup_plan(&s, "t-outer", &c, &err) < 0 ||
			  cgroup_create(&c, &small, &err) < 0 ||
			  cgroup_limits_read(&c, &now, &err) < 0 || now.cpu_milli != 100;

		if (bad)
			printf("# %s (%u)\n", err.msg, now.cpu_milli);
		(void)fflush(NULL);
		_exit(cgroup_remove(&c, REMOVE_MS, &err) < 0 || bad);
	}
	assert_int_equal(reap(pid), 0);
	assert_int_equal(rmdir(outer), 0);
}

/* From finding to removing, in a cgroup @given that holds us and must be vacated. */
static int live_in(const char *given)
{
	struct cgroup_limits l = { 32 * MIB, 10, 500, 0, true };
	struct cgroup c;
	uint64_t kills;

	if (cgroup_site_find(&site, &err) < 0 || strcmp(site.vacate, given) != 0)
		return 2;
	if (cgroup_site_prepare(&site, &err) < 0 || site.vacate[0] != '\0')
		return 3;
	/* Now we live in the leaf, and need no preparation any more. */
	if (cgroup_site_find(&site, &err) < 0 || site.vacate[0] != '\0' ||
	    strncmp(site.prefix[0], given, strlen(given)) != 0)
		return 4;
	if (cgroup_plan(&site, "t-user", &c, &err) < 0 || cgroup_create(&c, &l, &err) < 0)
		return 5;
	if (reap(start(&c, eat, 64)) != SIGKILL || cgroup_oom_kills(&c, &kills, &err) < 0 || !kills)
		return 6;
	if (WEXITSTATUS(reap(start(&c, fork_many, 20))) != 11)
		return 7;
	return cgroup_remove(&c, REMOVE_MS, &err) < 0 ? 8 : 0;
}

static int as_user(const char *given)
{
	if (put_file(given, "cgroup.procs", "0") < 0)
		return 1;
	drop_to(1000);
	return live_in(given);
}

/* A container: a cgroup namespace, and the v2 tree mounted from inside of it. */
static int as_container(const char *given)
{
	char dir[] = "/tmp/caisson-test-XXXXXX";
	struct cgroup_site s;

	if (put_file(given, "cgroup.procs", "0") < 0 || unshare(CLONE_NEWCGROUP | CLONE_NEWNS) < 0)
		return 1;
	/* With the outer mounts only, our position in them has no name any more. */
	if (cgroup_site_find(&s, &err) >= 0 || !strstr(err.msg, "cgroup namespace"))
		return 1;
	printf("# %s\n", err.msg);
	if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 || !mkdtemp(dir) ||
	    mount("cgroup2", dir, "cgroup2", 0, NULL) < 0)
		return 1;

	int r = live_in(dir);

	(void)umount2(dir, MNT_DETACH);
	return rmdir(dir) < 0 ? 9 : r;
}

/* Root in an undelegated scope (a login over ssh): the nearest ancestor, nothing moved. */
static int as_session(const char *given)
{
	struct cgroup_site s;

	if (chown(given, 0, 0) < 0 || put_file(given, "cgroup.procs", "0") < 0)
		return 1;
	if (cgroup_site_find(&s, &err) < 0 || s.vacate[0] != '\0')
		return 2;
	return strcmp(s.prefix[0], site.prefix[0]) == 0 ? 0 : 3;
}

/* Run fn in a new cgroup that is user 1000's, and clean up after it. */
static void in_given(int (*fn)(const char *))
{
	static const char *const give[] = { ".", "cgroup.procs", "cgroup.subtree_control",
					    "cgroup.threads" };
	char given[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX + 64];
	struct cgroup c;

	need_site();
	if (geteuid() != 0 || site.kind != CGROUP_V2) {
		printf("# skipped: needs root and v2\n");
		skip();
	}
	/* Making a first cell hands the controllers out. */
	plan(&site, "first", &c);
	assert_done(cgroup_create(&c, &(struct cgroup_limits){ 0 }, &err));
	assert_done(cgroup_remove(&c, REMOVE_MS, &err));
	beside(site.prefix[0], "given", given);
	assert_int_equal(mkdir(given, 0755), 0);
	for (size_t i = 0; i < sizeof(give) / sizeof(give[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", given, give[i]);
		assert_int_equal(chown(path, 1000, 1000), 0);
	}
	(void)fflush(NULL);

	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int r = fn(given);

		if (r)
			printf("# step %d: %s (vacate '%s')\n", r, err.msg, site.vacate);
		(void)fflush(NULL);
		_exit(r);
	}
	assert_int_equal(reap(pid), 0);
	(void)snprintf(path, sizeof(path), "%s/caisson.self", given);
	assert_true(rmdir(path) == 0 || errno == ENOENT);
	assert_int_equal(rmdir(given), 0);
}

/* An ordinary user in a cgroup of their own, as systemd delegates one. */
TEST(delegated)
{
	in_given(as_user);
}

TEST(session)
{
	in_given(as_session);
}

TEST(container)
{
	in_given(as_container);
}

TEST(nothing_left)
{
	char dir[CGROUP_PATH_MAX], mine[32];

	need_site();
	(void)snprintf(mine, sizeof(mine), "-%d", (int)getpid());
	for (size_t i = 0; i < site.n_dirs; i++) {
		(void)snprintf(dir, sizeof(dir), "%.*s",
			       (int)(strrchr(site.prefix[i], '/') - site.prefix[i]),
			       site.prefix[i]);

		DIR *d = opendir(dir);

		if (!d)
			continue; /* the last cell took the base away with it */
		for (struct dirent *de; (de = readdir(d));)
			if (de->d_type == DT_DIR && strstr(de->d_name, "t-"))
				assert_null(strstr(de->d_name, mine));
		(void)closedir(d);
	}
}

struct unit_fixture unit_group = { setup, NULL };
