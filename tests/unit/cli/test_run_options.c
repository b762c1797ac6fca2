/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_run_options.c - Command lines that a person may type: each option by flag, by alias and by
 * its variable, the edges of each value, and one line that names the option for everything else.
 */
#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"
#include "cli/run_options.h"
#include "client/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"

#define MIB (UINT64_C(1) << 20)
#define ARGS_MAX 2200

static struct run_options o;
static struct err err;

static int setup(void **state)
{
	(void)state;
	memset(&o, 0xa5, sizeof(o));
	o.parsed.owned = NULL;
	err = (struct err){ 0 };
	return clearenv();
}

static int teardown(void **state)
{
	(void)state;
	options_free(&o.parsed);
	o.parsed.owned = NULL;
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Parse a NULL-terminated list; the strings have to live as long as the options. */
static int parse_list(enum run_verb verb, const char *const *args)
{
	static char *argv[ARGS_MAX];
	int argc = 0;

	options_free(&o.parsed);
	for (; args[argc]; argc++)
		argv[argc] = (char *)(uintptr_t)args[argc];
	argv[argc] = NULL;
	err = (struct err){ 0 };
	return run_options_parse(verb, argc, argv, &o, &err);
}

#define parse(verb, ...) parse_list(verb, (const char *const[]){ "verb", __VA_ARGS__, NULL })
#define run(...) parse(VERB_RUN, __VA_ARGS__)

#define assert_accepted(call)                                                                      \
	do {                                                                                       \
		if ((call) != 0)                                                                   \
			fail_msg("%s: %s", #call, err.msg);                                        \
	} while (0)

/* Refused with one line that names @word. */
#define assert_refused(call, word)                                                                 \
	do {                                                                                       \
		assert_int_equal(call, -EINVAL);                                                   \
		if (!strstr(err.msg, word))                                                        \
			fail_msg("%s: '%s' does not name %s", #call, err.msg, word);               \
		assert_null(strchr(err.msg, '\n'));                                                \
	} while (0)

TEST(defaults)
{
	struct cell_spec spec;

	spec_default(&spec);
	assert_accepted(parse_list(VERB_RUN, (const char *const[]){ "run", NULL }));
	assert_memory_equal(&o.spec, &spec, sizeof(spec));
	assert_int_equal(o.timeout_ms, 30000);
	assert_int_equal(o.capture_chars, 10000);
	assert_int_equal(o.max_output, 0);
	assert_int_equal(o.uid, 1000);
	assert_int_equal(o.gid, 1000);
	assert_false(o.json || o.receipt || o.tty);
	assert_null(o.lang);
	assert_null(o.workdir);
	assert_null(o.state);
	assert_null(o.code);
	assert_null(o.image_path);
	assert_int_equal(options_count(o.env), 0);
	assert_int_equal(o.parsed.end, 1);
}

/* The readme's example, whole. */
TEST(all_at_once)
{
	assert_accepted(run("--memory", "256M", "--cpus", "0.5", "--pids", "64", "--timeout", "10",
			    "--disk", "100M", "--env", "K=V", "--mount", "./data:/data:ro",
			    "--workdir", "/data", "--image", "host", "--json", "--receipt", "code",
			    "--memory", "arg"));
	assert_int_equal(o.spec.limits.memory_bytes, 256 * MIB);
	assert_int_equal(o.spec.limits.cpu_milli, 500);
	assert_int_equal(o.spec.limits.pids, 64);
	assert_int_equal(o.timeout_ms, 10000);
	assert_int_equal(o.spec.limits.disk_bytes, 100 * MIB);
	assert_int_equal(options_count(o.env), 1);
	assert_string_equal(o.env[0], "K=V");
	assert_int_equal(o.spec.n_mounts, 1);
	assert_string_equal(o.mount_src[0], "./data");
	assert_string_equal(o.spec.mounts[0].dst, "/data");
	assert_string_equal(o.workdir, "/data");
	assert_int_equal(o.spec.image, CELL_IMAGE_HOST);
	assert_true(o.json && o.receipt);
	assert_int_equal(o.parsed.end, 21); /* what follows the program is the program's */
}

TEST(numbers)
{
	static const struct {
		const char *option, *value;
		size_t offset; /* in struct run_options, 64 bits there */
		uint64_t want;
	} rows[] = {
#define LIMIT(field) offsetof(struct run_options, spec.limits.field)
		{ "--memory", "16M", LIMIT(memory_bytes), 16 * MIB },
		{ "--memory", "1T", LIMIT(memory_bytes), MIB * MIB },
		{ "-m", "1.5G", LIMIT(memory_bytes), 1536 * MIB },
		{ "--disk", "1048576", LIMIT(disk_bytes), MIB },
		{ "--inodes", "256", LIMIT(inodes), 256 },
		{ "--inodes", "4294967296", LIMIT(inodes), UINT64_C(1) << 32 },
		{ "--pids", "1", LIMIT(pids), 1 },
		{ "--pids", "32768", LIMIT(pids), 32768 },
		{ "--files", "16", LIMIT(files), 16 },
		{ "--files", "1048576", LIMIT(files), 1048576 },
		{ "--cpu-time", "10ms", LIMIT(cpu_time_ms), 10 },
		{ "--cpu-time", "24h", LIMIT(cpu_time_ms), 86400000 },
		{ "--timeout", "1ms", offsetof(struct run_options, timeout_ms), 1 },
		{ "-t", "2m", offsetof(struct run_options, timeout_ms), 120000 },
		{ "--timeout", "24h", offsetof(struct run_options, timeout_ms), 86400000 },
		{ "--max-output", "1", offsetof(struct run_options, max_output), 1 },
		{ "--max-output", "64K", offsetof(struct run_options, max_output), 65536 },
		{ "--capture", "0", offsetof(struct run_options, capture_chars), 0 },
		{ "--capture", "67108864", offsetof(struct run_options, capture_chars), 67108864 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t got;

		assert_accepted(run(rows[i].option, rows[i].value));
		memcpy(&got, (const char *)&o + rows[i].offset, sizeof(got));
		assert_int_equal(got, rows[i].want);
	}
	assert_accepted(run("--cpus", "0.01"));
	assert_int_equal(o.spec.limits.cpu_milli, 10);
	assert_accepted(run("--cpus", "1024"));
	assert_int_equal(o.spec.limits.cpu_milli, 1024000);
}

/* Negative, absurd, empty, or not a number: refused, and the option is named. */
TEST(bad_numbers)
{
	static const struct {
		const char *option, *values[8];
	} rows[] = {
		{ "--memory", { "0", "15M", "1025G", "2T", "99999999999999999999T" } },
		{ "--disk", { "0", "1048575", "2T", "100P" } },
		{ "--cpus", { "0", "0.009", "1024.001", "5000000", "99999999999999999999" } },
		{ "--pids", { "0", "32769", "64K", "1.5" } },
		{ "--inodes", { "0", "255", "4294967297" } },
		{ "--files", { "0", "15", "1048577" } },
		{ "--timeout", { "0", "0ms", "24.1h", "86400001ms", "25h", "1d" } },
		{ "--cpu-time", { "0", "9ms", "25h" } },
		{ "--max-output", { "0", "0K", "1X" } },
		{ "--capture", { "67108865", "10K", "1.0" } },
	};
	static const char *const never[] = { "",    " ",   "-1",  "+1",  "1 ",  " 1", "0x10",
					     "1e3", "nan", "inf", "abc", "1,5", "--", "\xff" };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(rows[i].values) && rows[i].values[k]; k++)
			assert_refused(run(rows[i].option, rows[i].values[k]), rows[i].option);
		for (size_t k = 0; k < ARRAY_SIZE(never); k++)
			assert_refused(run(rows[i].option, never[k]), rows[i].option);
	}
}

TEST(spellings)
{
	assert_accepted(run("--memory=64M"));
	assert_int_equal(o.spec.limits.memory_bytes, 64 * MIB);
	assert_accepted(run("--env=A=B=C"));
	assert_string_equal(o.env[0], "A=B=C");
	/* The last one counts. */
	assert_accepted(run("--pids", "5", "--pids", "6"));
	assert_int_equal(o.spec.limits.pids, 6);
	/* A value may look like an option. */
	assert_accepted(run("-c", "--json"));
	assert_string_equal(o.code, "--json");
	assert_false(o.json);
	assert_refused(run("--memory"), "--memory needs a value");
	assert_refused(run("-m"), "--memory needs a value");
	assert_refused(run("--json=1"), "--json takes no value");
	assert_refused(run("--mem", "64M"), "'--mem'");
	assert_refused(run("--memoryx", "64M"), "unknown option '--memoryx'");
	assert_refused(run("--MEMORY", "64M"), "unknown");
	assert_refused(run("-m64M"), "unknown");
	assert_refused(run("-m=64M"), "unknown");
	assert_refused(run("--=x"), "unknown");
	assert_refused(run("-jt"), "unknown");
	assert_refused(run("---"), "unknown");
}

TEST(where_options_end)
{
	static const struct {
		const char *args[5];
		int rest;
	} rows[] = {
		{ { "code" }, 1 },
		{ { "-" }, 1 },
		{ { "--", "--json" }, 2 },
		{ { "--json", "--", "x" }, 3 },
		{ { "--json", "x", "--tty" }, 2 },
		{ { "" }, 1 },
		{ { "--" }, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *args[7] = { "run" };

		memcpy(args + 1, rows[i].args, sizeof(rows[i].args));
		assert_accepted(parse_list(VERB_RUN, args));
		assert_int_equal(o.parsed.end, rows[i].rest);
		assert_false(o.tty);
	}
	assert_int_equal(run("--help"), 1);
	assert_int_equal(run("--json", "-h"), 1);
	assert_accepted(run("code", "--help"));
	assert_accepted(run("--", "--help"));
}

/* An option of one verb is unknown to another. */
TEST(verbs)
{
	static const char *const run_only[] = { "--lang", "--code" };
	static const char *const not_doctor[] = { "--timeout", "--cpu-time", "--max-output",
						  "--env",     "--mount",    "--workdir",
						  "--capture", "--user",     "--tty",
						  "--receipt" };

	for (size_t i = 0; i < ARRAY_SIZE(run_only); i++) {
		assert_refused(parse(VERB_EXEC, run_only[i], "x"), run_only[i]);
		assert_refused(parse(VERB_DOCTOR, run_only[i], "x"), run_only[i]);
		assert_accepted(run(run_only[i], "x"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(not_doctor); i++)
		assert_refused(parse(VERB_DOCTOR, not_doctor[i], "1"), not_doctor[i]);
	assert_accepted(parse(VERB_DOCTOR, "--json", "--memory", "64M", "--state", "/x"));
	assert_accepted(parse(VERB_EXEC, "--json", "--", "/usr/bin/env"));
	assert_int_equal(o.parsed.end, 3);
}

TEST(environment)
{
	static const char *const variables[][2] = {
		{ "CAISSON_MEMORY", "64M" },   { "CAISSON_CPUS", "2" },
		{ "CAISSON_PIDS", "7" },       { "CAISSON_TIMEOUT", "3" },
		{ "CAISSON_CPU_TIME", "4" },   { "CAISSON_DISK", "2M" },
		{ "CAISSON_INODES", "300" },   { "CAISSON_FILES", "20" },
		{ "CAISSON_MAX_OUTPUT", "9" }, { "CAISSON_CAPTURE", "8" },
		{ "CAISSON_WORKDIR", "/tmp" }, { "CAISSON_USER", "5:6" },
		{ "CAISSON_IMAGE", "dir:/i" }, { "CAISSON_JSON", "1" },
		{ "CAISSON_RECEIPT", "yes" },  { "CAISSON_WITHOUT", "seccomp" },
		{ "CAISSON_STATE", "/s" },     { "CAISSON_LANG", "bash" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		assert_int_equal(setenv(variables[i][0], variables[i][1], 1), 0);
	assert_accepted(run("code"));
	assert_int_equal(o.spec.limits.memory_bytes, 64 * MIB);
	assert_int_equal(o.spec.limits.cpu_milli, 2000);
	assert_int_equal(o.spec.limits.pids, 7);
	assert_int_equal(o.timeout_ms, 3000);
	assert_int_equal(o.spec.limits.cpu_time_ms, 4000);
	assert_int_equal(o.spec.limits.disk_bytes, 2 * MIB);
	assert_int_equal(o.spec.limits.inodes, 300);
	assert_int_equal(o.spec.limits.files, 20);
	assert_int_equal(o.max_output, 9);
	assert_int_equal(o.capture_chars, 8);
	assert_string_equal(o.workdir, "/tmp");
	assert_int_equal(o.uid, 5);
	assert_int_equal(o.gid, 6);
	assert_int_equal(o.spec.image, CELL_IMAGE_DIR);
	assert_string_equal(o.image_path, "/i");
	assert_true(o.json && o.receipt);
	assert_int_equal(o.spec.without, CELL_WITHOUT_SECCOMP);
	assert_string_equal(o.state, "/s");
	assert_string_equal(o.lang, "bash");
	/* The command line wins. */
	assert_accepted(run("--memory", "32M", "--image", "host", "--lang", "r", "code"));
	assert_int_equal(o.spec.limits.memory_bytes, 32 * MIB);
	assert_int_equal(o.spec.limits.pids, 7);
	assert_int_equal(o.spec.image, CELL_IMAGE_HOST);
	assert_null(o.image_path);
	assert_string_equal(o.lang, "r");
}

TEST(environment_off_and_wrong)
{
	assert_int_equal(setenv("CAISSON_JSON", "0", 1), 0);
	assert_int_equal(setenv("CAISSON_MEMORY", "", 1), 0);
	assert_int_equal(setenv("CAISSON_MEMORYX", "1", 1), 0);
	assert_accepted(run("code"));
	assert_false(o.json);
	assert_int_equal(o.spec.limits.memory_bytes, 512 * MIB);
	/* A bad variable is not ignored; the message has its name, for it was not typed. */
	assert_int_equal(setenv("CAISSON_MEMORY", "lots", 1), 0);
	assert_refused(run("code"), "CAISSON_MEMORY");
	/* A verb that has no such option does not look. */
	assert_int_equal(setenv("CAISSON_TIMEOUT", "never", 1), 0);
	assert_int_equal(unsetenv("CAISSON_MEMORY"), 0);
	assert_accepted(parse(VERB_DOCTOR, "--json"));
	assert_refused(run("code"), "CAISSON_TIMEOUT");
}

TEST(env_option)
{
	static const char *args[2 * RUN_ENV_MAX + 4] = { "run" };

	assert_accepted(run("-e", "A=1", "--env", "B=", "-e", "A=2"));
	assert_int_equal(options_count(o.env), 3);
	assert_string_equal(o.env[2], "A=2");
	assert_refused(run("--env", "A"), "--env: must be NAME=VALUE");
	assert_refused(run("--env", "=x"), "--env");
	assert_refused(run("--env", ""), "--env");
	/* As many as there is room for, and one more. */
	for (size_t i = 0; i <= RUN_ENV_MAX; i++) {
		args[1 + 2 * i] = "-e";
		args[2 + 2 * i] = i < RUN_ENV_MAX ? "A=1" : NULL;
	}
	args[1 + 2 * RUN_ENV_MAX] = NULL;
	assert_accepted(parse_list(VERB_RUN, args));
	assert_int_equal(options_count(o.env), RUN_ENV_MAX);
	args[1 + 2 * RUN_ENV_MAX] = "-e";
	args[2 + 2 * RUN_ENV_MAX] = "A=1";
	assert_refused(parse_list(VERB_RUN, args), "at most 1024");
}

TEST(mounts)
{
	static const struct {
		const char *text, *src, *dst;
		uint32_t flags;
	} good[] = {
		{ "a:/b", "a", "/b", 0 },
		{ "./data:/data:ro", "./data", "/data", 0 },
		{ "/x y:/z:rw", "/x y", "/z", CELL_MOUNT_RW },
		{ "c:\\odd:name:/d", "c:\\odd:name", "/d", 0 },
		{ "a:b:/c:rw", "a:b", "/c", CELL_MOUNT_RW },
		{ "a:/rw", "a", "/rw", 0 },
	};
	static const char *const bad[] = {
		"",         "a",       ":",       "a:",    ":/b",     "a:b",   "a:/",
		"a:/b/",    "a:rw",    ":rw",     "a::rw", "a:/b:rx", "a:/b:", "a:/../b",
		"a:/b/./c", "a:/b:RW", "a:ro:rw", ":::",   "a://b",
	};
	static const char *const ours[] = { "a:/proc", "a:/dev/x:rw", "a:/sys" };
	char text[CELL_DST_MAX + 16];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_accepted(run("--mount", good[i].text));
		assert_string_equal(o.mount_src[0], good[i].src);
		assert_string_equal(o.spec.mounts[0].dst, good[i].dst);
		assert_int_equal(o.spec.mounts[0].flags, good[i].flags);
		assert_int_equal(o.spec.n_mounts, 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(run("-v", "good:/good", "--mount", bad[i]), "--mount");
	assert_int_equal(run("--mount", "a:/b\n"), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		assert_refused(run("--mount", ours[i]), "nothing may be mounted in");
	/* A destination that just fits its field, and one that does not. */
	memset(text, 'd', sizeof(text));
	memcpy(text, "a:/", 3);
	text[2 + CELL_DST_MAX - 1] = '\0';
	assert_accepted(run("--mount", text));
	memcpy(text + 2 + CELL_DST_MAX - 1, "d", 2);
	assert_refused(run("--mount", text), "--mount");
}

TEST(most_mounts)
{
	const char *args[2 * CELL_MOUNTS_MAX + 4] = { "run" };

	for (size_t i = 0; i < CELL_MOUNTS_MAX; i++) {
		args[1 + 2 * i] = "--mount";
		args[2 + 2 * i] = "a:/b";
	}
	assert_accepted(parse_list(VERB_RUN, args));
	assert_int_equal(o.spec.n_mounts, CELL_MOUNTS_MAX);
	args[1 + 2 * CELL_MOUNTS_MAX] = "--mount";
	args[2 + 2 * CELL_MOUNTS_MAX] = "a:/b";
	assert_refused(parse_list(VERB_RUN, args), "at most 16 mounts");
}

TEST(without)
{
	static const struct {
		const char *text;
		uint32_t want;
	} good[] = {
		{ "seccomp", CELL_WITHOUT_SECCOMP },
		{ "landlock", CELL_WITHOUT_LANDLOCK },
		{ "cgroup", CELL_WITHOUT_CGROUP },
		{ "seccomp,cgroup", CELL_WITHOUT_SECCOMP | CELL_WITHOUT_CGROUP },
		{ "cgroup,cgroup", CELL_WITHOUT_CGROUP },
	};
	/* Layers that are not negotiable, and unknown ones, have the same answer. */
	static const char *const bad[] = {
		"namespaces",      "seccom",       "seccompx", "SECCOMP",        ",",   ",seccomp",
		"seccomp,,cgroup", "capabilities", "all",      "seccomp cgroup", "none"
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_accepted(run("--without", good[i].text));
		assert_int_equal(o.spec.without, good[i].want);
	}
	assert_accepted(run("--without", "seccomp", "--without", "landlock"));
	assert_int_equal(o.spec.without, CELL_WITHOUT_SECCOMP | CELL_WITHOUT_LANDLOCK);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(run("--without", bad[i]), "seccomp, landlock, cgroup");
}

TEST(user)
{
	static const char *const bad[] = {
		"",     "0",     "0:0",   "1:0",   "0:1", "65536",      "1:65536",
		"root", "1000:", ":1000", "1:2:3", "-1",  "1000:agent", "99999999999999999999",
		" 1",   "1 "
	};

	assert_accepted(run("--user", "1"));
	assert_true(o.uid == 1 && o.gid == 1);
	assert_accepted(run("-u", "65535:7"));
	assert_true(o.uid == 65535 && o.gid == 7);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(run("--user", bad[i]), "--user");
}

TEST(paths)
{
	static const char *const bad_workdirs[] = { "",
						    "x",
						    "./x",
						    "/x/",
						    "/x/../"
						    "y",
						    "//",
						    "/x\n" };

	assert_accepted(run("--workdir", "/", "--state", "/var/tmp/s"));
	assert_string_equal(o.workdir, "/");
	for (size_t i = 0; i < ARRAY_SIZE(bad_workdirs); i++)
		assert_refused(run("-w", bad_workdirs[i]), "--workdir");
	assert_refused(run("--state", "relative"), "--state");
	assert_refused(run("--state", ""), "--state");
	assert_accepted(run("--image", "dir:rel/ative"));
	assert_string_equal(o.image_path, "rel/ative");
	assert_refused(run("--image", "dir:"), "--image");
	assert_accepted(run("--image", "python:3.11-slim", "--image-store", "/i"));
	assert_string_equal(o.image_ref, "python:3.11-slim");
	assert_string_equal(o.image_store, "/i");
	assert_int_equal(o.spec.image, CELL_IMAGE_LAYERS);
	assert_refused(run("--image", "Python:3.11"), "--image");
	assert_refused(run("--image", ""), "--image");
}

TEST(combinations)
{
	assert_accepted(run("--tty"));
	assert_true(o.tty);
	assert_refused(run("--tty", "--json"), "--tty and --json");
	assert_int_equal(setenv("CAISSON_JSON", "1", 1), 0);
	assert_refused(run("--tty"), "--tty and --json");
}

/* Every option that is parsed is in the help of its verbs, one line each. */
TEST(help)
{
	static const struct {
		enum run_verb verb;
		const char *has[5], *has_not[3];
	} rows[] = {
		{ VERB_RUN, { "--lang LANG", "-m, --memory SIZE", "--json", "--tty" }, { NULL } },
		{ VERB_EXEC, { "--memory", "--env", "--mount" }, { "--lang", "--code" } },
		{ VERB_DOCTOR, { "--memory", "--json" }, { "--lang", "--mount", "--tty" } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *text = NULL;
		size_t size = 0;
		FILE *f = open_memstream(&text, &size);

		assert_non_null(f);
		run_options_help(rows[i].verb, f);
		(void)fclose(f);
		for (size_t k = 0; k < 5 && rows[i].has[k]; k++)
			assert_non_null(strstr(text, rows[i].has[k]));
		for (size_t k = 0; k < 3 && rows[i].has_not[k]; k++)
			assert_null(strstr(text, rows[i].has_not[k]));
		free(text);
	}
}

TEST(state_dir)
{
	char path[64], want[64], *tiny = path;

	assert_accepted(run("--state", "/var/tmp/s"));
	assert_int_equal(state_dir(o.state, getenv("XDG_RUNTIME_DIR"), path, sizeof(path), &err),
			 0);
	assert_string_equal(path, "/var/tmp/s");
	assert_int_equal(state_dir(o.state, getenv("XDG_RUNTIME_DIR"), tiny, 10, &err),
			 -ENAMETOOLONG);
	assert_int_equal(state_dir(o.state, getenv("XDG_RUNTIME_DIR"), tiny, 11, &err), 0);

	assert_accepted(run("code"));
	assert_int_equal(setenv("XDG_RUNTIME_DIR", "/run/user/1", 1), 0);
	assert_int_equal(state_dir(o.state, getenv("XDG_RUNTIME_DIR"), path, sizeof(path), &err),
			 0);
	assert_string_equal(path, geteuid() == 0 ? "/run/caisson" : "/run/user/1/caisson");
	/* Not an absolute path: not believed. */
	assert_int_equal(setenv("XDG_RUNTIME_DIR", "run", 1), 0);
	assert_int_equal(state_dir(o.state, getenv("XDG_RUNTIME_DIR"), path, sizeof(path), &err),
			 0);
	(void)snprintf(want, sizeof(want), "/tmp/caisson-%u", (unsigned)geteuid());
	assert_string_equal(path, geteuid() == 0 ? "/run/caisson" : want);
}
