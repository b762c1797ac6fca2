/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_cgroup_parse.c - The readers of the kernel's cgroup texts, on any bytes.
 *
 * Input: the text of /proc/self/cgroup, an empty line, the text of /proc/self/mountinfo. The other
 * readers get the whole. Beyond not crashing, a place that is called usable must be one that
 * privileged code can use: absolute, without "..", terminated.
 */
#include "cell/cgroup_ops.h"
#include "fuzz.h"

static void check_place(const struct cgroup_place *at)
{
	char dir[CGROUP_PATH_MAX];

	require(memchr(at->self, '\0', sizeof(at->self)));
	require(memchr(at->mount, '\0', sizeof(at->mount)));
	require(memchr(at->pos, '\0', sizeof(at->pos)));
	if (!at->usable)
		return;
	require(at->known && at->mounted);
	require(at->mount[0] == '/' || at->mount[0] == '\0');
	require(at->pos[0] == '/' || at->pos[0] == '\0');
	for (const char *p = at->pos; (p = strstr(p, "/..")); p++)
		require(p[3] != '/' && p[3] != '\0');
	if (cgroup_join(dir, at->mount, at->pos))
		require(strlen(dir) < sizeof(dir));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cgroup_text all = { (const char *)data, size }, self = all, mounts = { NULL, 0 };
	const char *gap = size ? memmem(data, size, "\n\n", 2) : NULL;
	char path[CGROUP_PATH_MAX + 16], names[64];
	struct cgroup_map m;
	unsigned int missing;
	pid_t pids[16];
	uint64_t v;

	if (gap) {
		self.n = (size_t)(gap - self.p) + 1;
		mounts = (struct cgroup_text){ gap + 2, size - self.n - 1 };
	}
	cgroup_map_self(&m, self);
	cgroup_map_mounts(&m, mounts);
	for (int r = 0; r < CGROUP_ROLES_; r++)
		check_place(&m.at[r]);
	if (cgroup_map_kind(&m, &missing) == CGROUP_NONE)
		require(missing != 0);
	(void)cgroup_mask_str(missing, names, sizeof(names));

	(void)cgroup_text_mask(all);
	(void)cgroup_text_u64(all, &v);
	(void)cgroup_text_key(all, "oom_kill", &v);
	require(cgroup_text_pids(all, pids, 16) <= 16);
	require(cgroup_text_ppid(all) >= 0);
	if (size < sizeof(path)) {
		if (size)
			(void)memcpy(path, data, size);
		path[size] = '\0';
		if (cgroup_path_removable(path))
			require(path[0] == '/' && strlen(path) < CGROUP_PATH_MAX &&
				!strstr(path, "/../"));
	}
	return 0;
}
