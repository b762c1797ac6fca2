/* SPDX-License-Identifier: Apache-2.0 */
/* spec.c - The range of every limit, in one table, and the check of a whole spec. */
#include "cell/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"

#define MIB (1024ull * 1024)
#define GIB (1024ull * MIB)
#define DEFAULT_MEMORY (512 * MIB)
#define DAY_MS (24ull * 3600 * 1000)

static const struct limit_row {
	const char *option; /* as the person wrote it, for the message */
	size_t offset;
	uint64_t min, max;
	bool zero_is_none;
	uint64_t initial;
} limit_rows[] = {
	/* Below 16 MiB not even the interpreter's loader fits: refuse it here. */
	{ "--memory", offsetof(struct cell_limits, memory_bytes), 16 * MIB, 1024 * GIB, false,
	  DEFAULT_MEMORY },
	{ "--disk", offsetof(struct cell_limits, disk_bytes), 1 * MIB, 1024 * GIB, false, 1 * GIB },
	{ "--inodes", offsetof(struct cell_limits, inodes), 256, 1ull << 32, false, 262144 },
	{ "--pids", offsetof(struct cell_limits, pids), 1, 32768, false, 128 },
	{ "--files", offsetof(struct cell_limits, files), 16, 1048576, false, 1024 },
	{ "--cpu-time", offsetof(struct cell_limits, cpu_time_ms), 10, DAY_MS, true, 0 },
	{ "--timeout", offsetof(struct cell_limits, wall_ms), 1, 2 * DAY_MS, true, 0 },
};

#define CPU_MILLI_MIN 10u
#define CPU_MILLI_MAX 1024000u

void spec_default(struct cell_spec *s)
{
	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < ARRAY_SIZE(limit_rows); i++)
		memcpy((char *)&s->limits + limit_rows[i].offset, &limit_rows[i].initial,
		       sizeof(uint64_t));
	s->limits.cpu_milli = 1000;
	s->image = CELL_IMAGE_HOST;
}

bool spec_path_normal(const char *path, uint32_t max)
{
	size_t len = strnlen(path, max);

	if (len < 2 || len >= max || path[0] != '/' || path[len - 1] == '/')
		return false;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)path[i] < 0x20 || path[i] == 0x7f)
			return false;
		if (path[i] != '/')
			continue;
		const char *part = path + i + 1;
		size_t n = strcspn(part, "/");

		if (n == 0 || n > 255 || (n == 1 && part[0] == '.') ||
		    (n == 2 && part[0] == '.' && part[1] == '.'))
			return false;
	}
	return true;
}

/* A part is below the nearest mount before it that is not one; that mount is writable. */
static bool part_ok(const struct cell_spec *s, uint32_t i)
{
	uint32_t of = i;

	while (of > 0 && s->mounts[of].flags & CELL_MOUNT_PART)
		of--;
	size_t n = strlen(s->mounts[of].dst);

	return !(s->mounts[of].flags & CELL_MOUNT_PART) &&
	       s->mounts[of].flags & (CELL_MOUNT_RW | CELL_MOUNT_COW) &&
	       strncmp(s->mounts[i].dst, s->mounts[of].dst, n) == 0 && s->mounts[i].dst[n] == '/';
}

static bool flags_ok(const struct cell_spec *s, uint32_t i)
{
	switch (s->mounts[i].flags) {
	case 0:
	case CELL_MOUNT_RW:
	case CELL_MOUNT_RW | CELL_MOUNT_PROTECT:
	case CELL_MOUNT_PLAIN:
	case CELL_MOUNT_WORKSPACE:
	case CELL_MOUNT_WORKSPACE | CELL_MOUNT_RW:
	case CELL_MOUNT_WORKSPACE | CELL_MOUNT_COW:
		return true;
	case CELL_MOUNT_PART:
		return part_ok(s, i);
	default:
		return false;
	}
}

static int check_mounts(const struct cell_spec *s, struct err *e)
{
	if (s->n_mounts > CELL_MOUNTS_MAX)
		return err_say(e, -EINVAL, "--mount: at most %d mounts", CELL_MOUNTS_MAX);
	for (uint32_t i = 0; i < s->n_mounts; i++) {
		if (!spec_path_normal(s->mounts[i].dst, CELL_DST_MAX))
			return err_say(
				e, -EINVAL,
				"--mount: the place in the cell must be an absolute path without "
				"'.', '..' or a trailing slash, shorter than %d bytes",
				CELL_DST_MAX);
		/* These are built by us; a mount there would replace a mask or a device. */
		static const char *const ours[] = { "/proc", "/dev", "/sys" };

		for (size_t k = 0; k < ARRAY_SIZE(ours); k++) {
			size_t n = strlen(ours[k]);

			if (strncmp(s->mounts[i].dst, ours[k], n) == 0 &&
			    (s->mounts[i].dst[n] == '\0' || s->mounts[i].dst[n] == '/'))
				return err_say(e, -EINVAL, "--mount: nothing may be mounted in %s",
					       ours[k]);
		}
		if (!flags_ok(s, i))
			return err_say(e, -EINVAL, "--mount: unknown flags");
	}
	return 0;
}

int spec_without(const char *words, uint32_t *ret, struct err *e)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} layers[] = {
		{ "seccomp", CELL_WITHOUT_SECCOMP },
		{ "landlock", CELL_WITHOUT_LANDLOCK },
		{ "cgroup", CELL_WITHOUT_CGROUP },
	};

	while (*words) {
		size_t n = strcspn(words, ","), i = 0;

		while (i < ARRAY_SIZE(layers) &&
		       (strlen(layers[i].name) != n || strncmp(layers[i].name, words, n) != 0))
			i++;
		if (i == ARRAY_SIZE(layers))
			return err_say(
				e, -EINVAL,
				"'%.*s' is not a layer; the layers are: seccomp, landlock, cgroup",
				(int)n, words);
		*ret |= layers[i].bit;
		words += n + (words[n] == ',');
	}
	return 0;
}

uint64_t spec_machine_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}

int spec_check_memory(uint64_t bytes, struct err *e)
{
	char want[NUM_FORMAT_MAX], have[NUM_FORMAT_MAX];
	uint64_t most = spec_machine_memory();

	if (bytes <= most || bytes == DEFAULT_MEMORY)
		return 0;
	return err_say(e, -EINVAL, "--memory: %s is more than the %s that this machine has",
		       num_format_size(bytes, want, sizeof(want)),
		       num_format_size(most, have, sizeof(have)));
}

int spec_check(const struct cell_spec *s, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(limit_rows); i++) {
		const struct limit_row *row = &limit_rows[i];
		uint64_t v;

		memcpy(&v, (const char *)&s->limits + row->offset, sizeof(v));
		if (v == 0 && row->zero_is_none)
			continue;
		if (v < row->min || v > row->max)
			return err_say(e, -EINVAL,
				       "%s: %" PRIu64 " is outside %" PRIu64 "..%" PRIu64,
				       row->option, v, row->min, row->max);
	}
	if (s->limits.cpu_milli < CPU_MILLI_MIN || s->limits.cpu_milli > CPU_MILLI_MAX)
		return err_say(e, -EINVAL, "--cpus: must be between 0.01 and 1024");
	if (s->limits.oom > CELL_OOM_CELL)
		return err_say(e, -EINVAL, "--oom: unknown value");
	if (s->image < CELL_IMAGE_HOST || s->image > CELL_IMAGE_LAYERS)
		return err_say(e, -EINVAL, "--image: unknown kind of image");
	if (s->image == CELL_IMAGE_LAYERS ? s->n_layers < 1 || s->n_layers > CELL_LAYERS_MAX :
					    s->n_layers != 0)
		return err_say(e, -EINVAL, "--image: an image has from 1 to %d layers",
			       CELL_LAYERS_MAX);
	if (s->without & CELL_WITHOUT_CGROUP && s->limits.cpu_time_ms)
		return err_say(e, -EINVAL, "--cpu-time: cannot be enforced with --without cgroup");
	if (s->without & CELL_WITHOUT_CGROUP && s->limits.oom == CELL_OOM_CELL)
		return err_say(e, -EINVAL,
			       "--oom sandbox: cannot be enforced with --without cgroup");
	if (s->without & ~(uint32_t)CELL_WITHOUT_ALL_)
		return err_say(e, -EINVAL, "--without: unknown layer");
	return check_mounts(s, e);
}
