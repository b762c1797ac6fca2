/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_spec.c - Any request for a cell: a spec of any bytes, any path, any command line.
 *
 * The first byte chooses the kind. Each answer is compared with one that is computed differently
 * here: a spec limit by limit, a path component by component; and an accepted command line gives a
 * spec that the warden would accept.
 */
#include <errno.h>

#include "base/err.h"
#include "cell/spec.h"
#include "cli/run_options.h"
#include "fuzz.h"

#define ARGS_MAX 64

static bool between(uint64_t v, uint64_t min, uint64_t max)
{
	return v >= min && v <= max;
}

static bool limits_good(const struct cell_limits *l)
{
	const uint64_t mib = 1u << 20, day = 86400000;

	return between(l->memory_bytes, 16 * mib, mib * mib) &&
	       between(l->disk_bytes, mib, mib * mib) &&
	       between(l->inodes, 256, UINT64_C(1) << 32) && between(l->pids, 1, 32768) &&
	       between(l->files, 16, mib) && between(l->cpu_milli, 10, 1024000) &&
	       (!l->cpu_time_ms || between(l->cpu_time_ms, 10, day)) &&
	       (!l->wall_ms || between(l->wall_ms, 1, 2 * day)) && l->oom <= CELL_OOM_CELL;
}

/* The same question as spec_path_normal(), asked of a copy that is taken apart. */
static bool path_good(const char *path, size_t max)
{
	size_t len = strnlen(path, max);

	if (len == max || path[0] != '/')
		return false;
	for (size_t at = 0; at < len;) {
		char part[256];
		size_t n = 0;

		for (at++; at < len && path[at] != '/'; at++) {
			unsigned char c = (unsigned char)path[at];

			if (c < ' ' || c == 0x7f || n == sizeof(part) - 1)
				return false;
			part[n++] = path[at];
		}
		part[n] = '\0';
		if (n == 0 || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
			return false;
	}
	return true;
}

static bool mount_good(const struct cell_mount *m)
{
	static const char *const ours[] = { "/proc/", "/dev/", "/sys/" };
	char dst[CELL_DST_MAX + 2];

	if (!path_good(m->dst, CELL_DST_MAX) || m->flags > CELL_MOUNT_RW)
		return false;
	(void)snprintf(dst, sizeof(dst), "%s/", m->dst);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strncmp(dst, ours[i], strlen(ours[i])) == 0)
			return false;
	return true;
}

static bool spec_good(const struct cell_spec *s)
{
	bool good = limits_good(&s->limits) && between(s->image, CELL_IMAGE_HOST, CELL_IMAGE_DIR) &&
		    s->without <= CELL_WITHOUT_ALL_ && s->n_mounts <= CELL_MOUNTS_MAX &&
		    !(s->without & CELL_WITHOUT_CGROUP &&
		      (s->limits.cpu_time_ms || s->limits.oom == CELL_OOM_CELL));

	for (uint32_t i = 0; good && i < s->n_mounts; i++)
		good = mount_good(&s->mounts[i]);
	return good;
}

static void check_answer(int r, const struct err *e)
{
	require(r == 0 || r == -EINVAL);
	/* The code may be more precise than -EINVAL: a number is out of range. */
	require((e->code < 0) == (r < 0) && (e->msg[0] != '\0') == (r < 0));
	require(memchr(e->msg, '\0', sizeof(e->msg)) != NULL);
}

static void try_spec(const uint8_t *data, size_t size, bool from_default)
{
	/* On the heap, so that the sanitizer sees a read past its end. */
	struct cell_spec *s = calloc(1, sizeof(*s));
	struct err e = { 0 };
	size_t off = 0;

	require(s != NULL);
	if (from_default && size >= 2) {
		spec_default(s);
		off = (size_t)(data[0] | data[1] << 8) % sizeof(*s);
		data += 2;
		size -= 2;
	}
	if (size)
		memcpy((char *)s + off, data, size < sizeof(*s) - off ? size : sizeof(*s) - off);
	int r = spec_check(s, &e);

	check_answer(r, &e);
	require((r == 0) == spec_good(s));
	free(s);
}

static void try_path(const uint8_t *data, size_t size)
{
	/* A field that is full has no NUL; the last byte of a larger one is. */
	char *field = fuzz_text(data, size);

	require(spec_path_normal(field, (uint32_t)size + 1) == path_good(field, size + 1));
	char *full = malloc(size ? size : 1);

	require(full != NULL);
	if (size) {
		memcpy(full, data, size);
		require(spec_path_normal(full, (uint32_t)size) == path_good(full, size));
	}
	free(full);
	free(field);
}

/* The words of a command line are separated by line ends. */
static void try_options(enum run_verb verb, const uint8_t *data, size_t size)
{
	static struct run_options o;
	char *text = fuzz_text(data, size), *argv[ARGS_MAX + 2] = { NULL };
	char name[] = "run";
	struct err e = { 0 };
	int argc = 1;

	argv[0] = name;
	for (char *at = text; at && argc <= ARGS_MAX;)
		argv[argc++] = strsep(&at, "\n");
	argv[argc] = NULL;
	int r = run_options_parse(verb, argc, argv, &o, &e);

	if (r != 1)
		check_answer(r, &e);
	if (r == 0) {
		require(spec_good(&o.spec) && spec_check(&o.spec, NULL) == 0);
		require(o.parsed.end >= 1 && o.parsed.end <= argc);
		require(between(o.timeout_ms, 1, 86400000));
		require(between(o.uid, 1, 65535) && between(o.gid, 1, 65535));
		require(o.capture_chars <= 64u << 20 && options_count(o.env) <= RUN_ENV_MAX);
		require((o.spec.image == CELL_IMAGE_DIR) == (o.image_path != NULL));
		for (uint32_t i = 0; i < o.spec.n_mounts; i++)
			require(o.mount_src[i] && o.mount_src[i][0]);
		for (size_t i = 0; o.env[i]; i++)
			require(strchr(o.env[i], '=') > o.env[i]);
		require(!(o.tty && o.json));
	}
	options_free(&o.parsed);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	(void)clearenv(); /* the variables of the caller are not part of the input */
	switch (data[0]) {
	case 's':
		try_spec(data + 1, size - 1, false);
		break;
	case 'd':
		try_spec(data + 1, size - 1, true);
		break;
	case 'p':
		try_path(data + 1, size - 1);
		break;
	case 'r':
		try_options(VERB_RUN, data + 1, size - 1);
		break;
	case 'x':
		try_options(VERB_EXEC, data + 1, size - 1);
		break;
	case 'o':
		try_options(VERB_DOCTOR, data + 1, size - 1);
		break;
	default:
		break;
	}
	return 0;
}
