/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_receipt.c - From made-up evidence to a receipt: every layer that is not in force is named,
 * every broken frame is refused, and nothing a guest could have written changes the verdict.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "cell/seccomp.h"
#include "cell/spec.h"
#include "client/receipt.h"
#include "wire/evidence.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit.h"

#define INIT 100u
#define COMMAND 101u

#define HOST_NS "user:[1]\npid:[2]\nmnt:[3]\nnet:[4]\nipc:[5]\nuts:[6]\ncgroup:[7]\n"
#define CELL_NS "user:[11]\npid:[12]\nmnt:[13]\nnet:[14]\nipc:[15]\nuts:[16]\ncgroup:[17]\n"
#define STATUS(caps, nnp, seccomp)                                                                 \
	"Name:\tx\nCapInh:\t" caps "\nCapPrm:\t" caps "\nCapEff:\t" caps "\nCapBnd:\t" caps        \
	"\nCapAmb:\t" caps "\nNoNewPrivs:\t" nnp "\nSeccomp:\t" seccomp "\nSeccomp_filters:\t1\n"
#define NO_CAPS "0000000000000000"
#define SEALED STATUS(NO_CAPS, "1", "2")
#define INIT_SEALED STATUS("00000000000001e0", "1", "2")
#define CGROUP "memory 536870912\npids 129\ncpu_milli 1000\n"

/* One part of the good evidence; a test may replace its text, or leave it out (""). */
enum part {
	P_HOST,
	P_CGROUP,
	P_STATUS_I,
	P_NS_I,
	P_STATUS_C,
	P_NS_C,
	P_LIMITS,
	P_FD,
	P_MOUNTS,
	PARTS
};

static const struct {
	uint32_t kind, pid, is_init;
	const char *text;
} parts[PARTS] = {
	[P_HOST] = { EVIDENCE_HOST_NS, 0, 0, HOST_NS },
	[P_CGROUP] = { EVIDENCE_CGROUP, 0, 0, CGROUP },
	[P_STATUS_I] = { EVIDENCE_STATUS, INIT, 1, INIT_SEALED },
	[P_NS_I] = { EVIDENCE_NS, INIT, 1, CELL_NS },
	[P_STATUS_C] = { EVIDENCE_STATUS, COMMAND, 0, SEALED },
	[P_NS_C] = { EVIDENCE_NS, COMMAND, 0, CELL_NS },
	[P_LIMITS] = { EVIDENCE_LIMITS, COMMAND, 0, "Max open files 1024\nMax core 0\n" },
	[P_FD] = { EVIDENCE_FD, COMMAND, 0, "0 pipe:[77]" },
	[P_MOUNTS] = { EVIDENCE_MOUNTINFO, INIT, 1, "22 1 0:1 / / rw - tmpfs\n" },
};

static struct cell_spec spec;
static struct init_ready ready;
static struct buf evidence = BUF_INIT(EVIDENCE_MAX);
static struct buf out = BUF_INIT(1 << 20);
static struct err err;

static int setup(void **state)
{
	(void)state;
	spec_default(&spec);
	ready = (struct init_ready){ .landlock_abi = 7, .landlock_on = 1, .seccomp_on = 1 };
	buf_clear(&evidence);
	buf_clear(&out);
	err = (struct err){ 0 };
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

static int end(void **state)
{
	(void)state;
	buf_free(&evidence);
	buf_free(&out);
	return 0;
}

struct unit_fixture unit_group = { NULL, end };

static void add(uint32_t kind, uint32_t pid, uint32_t is_init, const void *text, size_t len)
{
	struct evidence_item item = { kind, pid, is_init, (uint32_t)len };

	(void)buf_append(&evidence, &item, sizeof(item));
	(void)buf_append(&evidence, text, len);
	assert_int_equal(buf_append(&evidence, "\0\0\0\0\0\0\0", (8 - len % 8) % 8), 0);
}

static void add_text(uint32_t kind, uint32_t pid, uint32_t is_init, const char *text)
{
	add(kind, pid, is_init, text, strlen(text));
}

/* The good evidence with one part replaced, or (text NULL) left out. PARTS: all of it. */
static void fill(enum part changed, const char *text)
{
	buf_clear(&evidence);
	for (int i = 0; i < PARTS; i++) {
		const char *t = i == (int)changed ? text : parts[i].text;

		if (t)
			add_text(parts[i].kind, parts[i].pid, parts[i].is_init, t);
	}
}

/* An allocation of the exact size lets the sanitizer see a read past the end. */
static int judge_bytes(const void *data, size_t len)
{
	void *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	if (len)
		memcpy(copy, data, len);
	buf_clear(&out);
	int r = receipt_from(copy, len, &spec, &ready, true, &out, &err);

	free(copy);
	return r;
}

static int judge(void)
{
	return judge_bytes(evidence.data, evidence.len);
}

#define assert_enforced()                                                                          \
	do {                                                                                       \
		if (judge() < 0)                                                                   \
			fail_msg("%s", err.msg);                                                   \
		assert_non_null(strstr(buf_str(&out), "{\"enforced\":true,\"missing\":[],"));      \
	} while (0)

/* Refused; @layer is in the receipt that is written all the same, the first one in the message. */
static void expect_missing(const char *layer)
{
	char quoted[64], first[64];

	(void)snprintf(quoted, sizeof(quoted), "\"%s\"", layer);
	assert_int_equal(judge(), -EPERM);
	assert_int_equal(
		sscanf(buf_str(&out), "{\"enforced\":false,\"missing\":[\"%63[^\"]", first), 1);
	assert_non_null(strstr(err.msg, first));
	const char *found = strstr(buf_str(&out), quoted);

	assert_true(found && found < strchr(buf_str(&out), ']'));
}

/* ---- what is in force ------------------------------------------------------------------------ */

TEST(good)
{
	fill(PARTS, NULL);
	assert_enforced();
	const char *text = buf_str(&out);

	assert_non_null(strstr(text, "\"weakened\":[]"));
	assert_non_null(strstr(text, "\"user\":{\"cell\":11,\"host\":1}"));
	assert_non_null(strstr(text, "\"cgroup\":{\"cell\":17,\"host\":7}"));
	assert_non_null(strstr(text, "\"commands\":{\"threads\":1,\"capabilities\":{"
				     "\"inheritable\":\"0000000000000000\","));
	assert_non_null(strstr(text, "\"init\":{\"threads\":1,\"capabilities\":{"
				     "\"inheritable\":\"00000000000001e0\","));
	assert_non_null(strstr(text, "\"no_new_privs\":true,\"seccomp\":\"filter\","));
	assert_non_null(strstr(text, seccomp_policy_id()));
	assert_non_null(strstr(text, "\"landlock\":{\"abi\":7,\"scoped\":true}"));
	assert_non_null(strstr(text, "\"cgroup\":{\"memory\":536870912,\"pids\":129,"
				     "\"cpu_milli\":1000}"));
	assert_non_null(strstr(text, "\"rlimits\":[\"Max open files 1024\",\"Max core 0\"]"));
	assert_non_null(strstr(text, "\"descriptors\":[\"0 pipe:[77]\"]"));
	assert_non_null(strstr(text, "\"mounts\":[\"22 1 0:1 / / rw - tmpfs\"]"));
	assert_non_null(strstr(text, "\"unreadable\":[]}"));
}

/* Each namespace: the same as the host's, another for the command, or not known at all. */
TEST(namespaces)
{
	static const char *const keys[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup" };
	static const char *const layers[] = { "user namespace",  "pid namespace",
					      "mount namespace", "network namespace",
					      "ipc namespace",   "uts namespace",
					      "cgroup namespace" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		char host[160] = "", other[160] = "", zero[160] = "", without[160] = "";

		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			size_t n = strlen(host), o = strlen(other), z = strlen(zero);
			size_t w = strlen(without);

			(void)snprintf(host + n, sizeof(host) - n, "%s:[%zu]\n", keys[k],
				       k == i ? k + 1 : k + 11);
			(void)snprintf(other + o, sizeof(other) - o, "%s:[%zu]\n", keys[k],
				       k == i ? k + 91 : k + 11);
			(void)snprintf(zero + z, sizeof(zero) - z, "%s:[%zu]\n", keys[k],
				       k == i ? 0 : k + 11);
			if (k != i)
				(void)snprintf(without + w, sizeof(without) - w, "%s:[%zu]\n",
					       keys[k], k + 11);
		}
		fill(P_NS_I, host);
		expect_missing(layers[i]);
		fill(P_NS_C, other);
		expect_missing(layers[i]);
		fill(P_NS_I, zero);
		expect_missing(layers[i]);
		fill(P_NS_I, without);
		expect_missing(layers[i]);
		fill(P_HOST, without);
		expect_missing(layers[i]);
		/* A second process of the cell that is elsewhere. */
		fill(PARTS, NULL);
		add_text(EVIDENCE_NS, COMMAND + 1, 0, other);
		expect_missing(layers[i]);
	}
	fill(P_HOST, NULL);
	expect_missing("user namespace");
	fill(P_NS_I, NULL);
	expect_missing("cgroup namespace");
}

/* One set of one thread with one capability is one too many. */
TEST(capabilities)
{
	static const char *const keys[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		/* The last digit of that line. */
		(void)snprintf(text, sizeof(text), "%s", SEALED);
		strchr(strstr(text, keys[i]), '\n')[-1] = '1';
		fill(P_STATUS_C, text);
		expect_missing("zero capabilities");
		/* A second thread of an otherwise good process. */
		fill(PARTS, NULL);
		add_text(EVIDENCE_STATUS, COMMAND, 0, text);
		expect_missing("zero capabilities");
		/* The line is not there: not known is not zero. */
		strstr(text, keys[i])[0] = 'x';
		fill(P_STATUS_C, text);
		expect_missing("zero capabilities");
		/* Init has four, and no fifth. */
		(void)snprintf(text, sizeof(text), "%s", INIT_SEALED);
		strchr(strstr(text, keys[i]), '\n')[-6] = '2';
		fill(P_STATUS_I, text);
		expect_missing("zero capabilities");
	}
	fill(P_STATUS_C, STATUS("000001ffffffffff", "1", "2"));
	expect_missing("zero capabilities");
	/* A command may not have the capabilities that init may have. */
	fill(P_STATUS_C, INIT_SEALED);
	expect_missing("zero capabilities");
	fill(P_STATUS_I, SEALED);
	assert_enforced();
}

TEST(no_new_privileges)
{
	fill(P_STATUS_C, STATUS(NO_CAPS, "0", "2"));
	expect_missing("no-new-privileges");
	fill(P_STATUS_I, STATUS(NO_CAPS, "0", "2"));
	expect_missing("no-new-privileges");
	fill(P_STATUS_I, NULL);
	expect_missing("no-new-privileges");
	fill(PARTS, NULL);
	add_text(EVIDENCE_STATUS, COMMAND, 0, STATUS(NO_CAPS, "0", "2"));
	expect_missing("no-new-privileges");
	/* The order of threads is not what decides. */
	fill(P_STATUS_C, STATUS(NO_CAPS, "0", "2"));
	add_text(EVIDENCE_STATUS, COMMAND, 0, SEALED);
	expect_missing("no-new-privileges");
}

TEST(seccomp)
{
	static const char cut[] = "CapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\t0\nCapAmb:\t0\n"
				  "NoNewPrivs:\t1\n";
	static const char *const weak[] = { STATUS(NO_CAPS, "1", "0"), STATUS(NO_CAPS, "1", "1"),
					    STATUS(NO_CAPS, "1", ""), cut };

	for (size_t i = 0; i < ARRAY_SIZE(weak); i++) {
		fill(P_STATUS_C, weak[i]);
		expect_missing("seccomp");
		fill(P_STATUS_I, weak[i]);
		expect_missing("seccomp");
		fill(PARTS, NULL);
		add_text(EVIDENCE_STATUS, COMMAND + 5, 0, weak[i]);
		expect_missing("seccomp");
	}
	fill(PARTS, NULL);
	ready.seccomp_on = 0;
	expect_missing("seccomp");
	assert_non_null(strstr(buf_str(&out), "\"seccomp_policy\":\"\""));
	/* Given up by explicit choice: not required, and reported. */
	spec.without = CELL_WITHOUT_SECCOMP;
	fill(P_STATUS_C, weak[0]);
	assert_enforced();
	assert_non_null(strstr(buf_str(&out), "\"weakened\":[\"seccomp\"]"));
	assert_non_null(strstr(buf_str(&out), "\"seccomp\":\"none\""));
}

TEST(landlock)
{
	fill(PARTS, NULL);
	ready.landlock_on = 0;
	expect_missing("landlock");
	ready.landlock_abi = 6;
	expect_missing("landlock");
	/* A kernel without scopes cannot be asked for them. */
	ready.landlock_abi = 5;
	assert_enforced();
	assert_non_null(strstr(buf_str(&out), "\"landlock\":{\"abi\":5,\"scoped\":false}"));
	ready.landlock_abi = 7;
	spec.without = CELL_WITHOUT_LANDLOCK;
	assert_enforced();
	assert_non_null(strstr(buf_str(&out), "\"weakened\":[\"landlock\"]"));
}

TEST(cgroup)
{
	static const struct {
		const char *text, *layer;
	} rows[] = {
		{ NULL, "memory limit" },
		{ "", "memory limit" },
		{ "memory 0\npids 129\ncpu_milli 1000\n", "memory limit" },
		{ "memory 536870913\npids 129\ncpu_milli 1000\n", "memory limit" },
		{ "pids 129\ncpu_milli 1000\n", "memory limit" },
		{ "memory 536870912\npids 0\ncpu_milli 1000\n", "pids limit" },
		{ "memory 536870912\npids 128\ncpu_milli 1000\n", "pids limit" },
		{ "memory 536870912\npids 130\ncpu_milli 1000\n", "pids limit" },
		{ "memory 536870912\ncpu_milli 1000\n", "pids limit" },
		{ "memory 536870912\npids 129\ncpu_milli 0\n", "cpu limit" },
		{ "memory 536870912\npids 129\ncpu_milli 1001\n", "cpu limit" },
		{ "memory 536870912\npids 129\n", "cpu limit" },
		{ NULL, "pids limit" },
		{ NULL, "cpu limit" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fill(P_CGROUP, rows[i].text);
		assert_int_equal(judge(), -EPERM);
		assert_non_null(strstr(buf_str(&out), rows[i].layer));
	}
	/* Rounded down to a page is still a limit. */
	fill(P_CGROUP, "memory 536866816\npids 129\ncpu_milli 1000\n");
	assert_enforced();
	spec.without = CELL_WITHOUT_CGROUP;
	fill(P_CGROUP, NULL);
	assert_enforced();
	assert_non_null(strstr(buf_str(&out), "\"weakened\":[\"cgroup\"]"));
	assert_non_null(strstr(buf_str(&out), "\"cgroup\":null"));
}

/* With nothing to look at, everything is missing: all of it fits, and the first is in the message.
 */
TEST(nothing)
{
	static const char *const layers[] = {
		"user namespace", "pid namespace", "mount namespace",  "network namespace",
		"ipc namespace",  "uts namespace", "cgroup namespace", "no-new-privileges",
		"seccomp",        "landlock",      "memory limit",     "pids limit",
		"cpu limit",
	};

	ready.landlock_on = 0;
	assert_int_equal(judge_bytes("", 0), -EPERM);
	assert_non_null(strstr(err.msg, "user namespace"));
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		assert_non_null(strstr(buf_str(&out), layers[i]));
}

/* ---- what a guest can write ------------------------------------------------------------------ */

/* Texts that look like evidence, in frames of another kind, are only ever strings. */
TEST(lookalikes)
{
	static const char lie[] = "3 /tmp/x\"\n" SEALED CGROUP CELL_NS;

	fill(P_STATUS_C, STATUS("0000000000000400", "0", "0"));
	add_text(EVIDENCE_FD, COMMAND, 0, lie);
	add_text(EVIDENCE_LIMITS, COMMAND, 0, lie);
	add_text(EVIDENCE_MOUNTINFO, INIT, 1, lie);
	add_text(0, COMMAND, 0, lie);
	add_text(4711, COMMAND, 0, lie);
	add_text(UINT32_MAX, INIT, 1, lie);
	expect_missing("zero capabilities");
	assert_non_null(strstr(buf_str(&out), "\"no-new-privileges\",\"seccomp\"],"));
	/* A descriptor is one string, line ends and quotes escaped. */
	assert_non_null(strstr(buf_str(&out), "\"3 /tmp/x\\\"\\nName:\\tx\\nCapInh:"));

	fill(P_CGROUP, NULL);
	add_text(EVIDENCE_FD, INIT, 1, CGROUP);
	expect_missing("memory limit");
}

TEST(any_bytes)
{
	char bytes[256];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)i;
	fill(PARTS, NULL);
	for (uint32_t kind = EVIDENCE_LIMITS; kind <= EVIDENCE_LOST + 1; kind++)
		if (kind != EVIDENCE_CGROUP)
			add(kind, COMMAND, 0, bytes, sizeof(bytes));
	(void)judge();
	assert_true(utf8_valid(buf_str(&out), out.len));
	for (size_t i = 0; i < out.len; i++)
		assert_true((unsigned char)out.data[i] >= 0x20);
}

/* A key counts at the start of a line, and a number without end is cut, not copied. */
TEST(lines)
{
	char text[700];

	fill(P_CGROUP, "xmemory 1\nmemory 536870912\npids 129\ncpu_milli 1000\nmemory 1\n");
	assert_enforced();
	assert_non_null(strstr(buf_str(&out), "\"memory\":536870912"));
	/* Without a line end after the last. */
	fill(P_CGROUP, "memory 536870912\npids 129\ncpu_milli 1000");
	assert_enforced();
	fill(P_CGROUP, "memory \npids 129\ncpu_milli 1000");
	expect_missing("memory limit");
	memset(text, '9', sizeof(text));
	memcpy(text, "memory ", 7);
	text[sizeof(text) - 1] = '\0';
	fill(P_CGROUP, text);
	expect_missing("memory limit");
}

/* Lists follow the first process that is not init; a cell in which nothing runs has none. */
TEST(main_process)
{
	fill(PARTS, NULL);
	add_text(EVIDENCE_FD, COMMAND + 1, 0, "9 second");
	add_text(EVIDENCE_FD, COMMAND, 0, "1 first");
	assert_enforced();
	assert_non_null(strstr(buf_str(&out), "\"descriptors\":[\"0 pipe:[77]\",\"1 first\"]"));
	add_text(EVIDENCE_LOST, COMMAND, 0, "fd: Permission denied");
	(void)judge();
	assert_non_null(strstr(buf_str(&out), "\"unreadable\":[\"fd: Permission denied\"]"));
}

/* Where nothing runs, nothing has to be shown of it; where something does, it must. */
TEST(nothing_runs)
{
	buf_clear(&evidence);
	for (int i = 0; i < PARTS; i++)
		if (parts[i].pid != COMMAND && parts[i].text)
			add_text(parts[i].kind, parts[i].pid, parts[i].is_init, parts[i].text);
	expect_missing("complete evidence");
	buf_clear(&out);
	assert_int_equal(
		receipt_from(evidence.data, evidence.len, &spec, &ready, false, &out, &err), 0);
	assert_non_null(strstr(buf_str(&out), "\"running\":false,\"commands\":null"));
	add_text(EVIDENCE_LOST, INIT, 1, "1/children: Permission denied");
	buf_clear(&out);
	assert_int_equal(receipt_from(evidence.data, evidence.len, &spec, &ready, false, &out,
				      &err),
			 -EPERM);
}

/* Evidence that could not be read vouches for nothing; only pid 1's descriptors may stay hidden. */
TEST(lost)
{
	fill(PARTS, NULL);
	add_text(EVIDENCE_LOST, INIT, 1, "fd: Permission denied");
	assert_enforced();
	fill(PARTS, NULL);
	add_text(EVIDENCE_LOST, COMMAND, 0, "7/status: Permission denied");
	expect_missing("complete evidence");
	fill(PARTS, NULL);
	add_text(EVIDENCE_NS, COMMAND + 1, 0, "not a list of namespaces");
	expect_missing("user namespace");
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* A cut in the middle of a frame is damage; between two frames it only takes evidence away. */
TEST(every_prefix)
{
	size_t at = 0, boundaries = 0;

	fill(PARTS, NULL);
	for (size_t len = 0; len < evidence.len; len++) {
		bool boundary = len == at;
		int r = judge_bytes(evidence.data, len);

		if (boundary) {
			struct evidence_item item;

			memcpy(&item, evidence.data + at, sizeof(item));
			at += sizeof(item) + ((size_t)item.len + 7) / 8 * 8;
			boundaries++;
			/* Without init or the cgroup it is never enough. */
			assert_true(r == -EPERM || (r == 0 && boundaries > P_NS_I + 1));
		} else {
			assert_int_equal(r, -EBADMSG);
			assert_int_equal(out.len, 0);
			assert_non_null(strstr(err.msg, "damaged"));
		}
	}
	assert_int_equal(boundaries, PARTS);
}

TEST(lengths)
{
	static const uint32_t bad[] = {
		1u << 31, UINT32_MAX, UINT32_MAX - 6, EVIDENCE_ITEM_MAX + 1, EVIDENCE_ITEM_MAX,
		65,       17
	};
	static char large[EVIDENCE_ITEM_MAX + 8];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct evidence_item item = { EVIDENCE_FD, COMMAND, 0, bad[i] };

		fill(PARTS, NULL);
		(void)buf_append(&evidence, &item, sizeof(item));
		assert_int_equal(buf_append(&evidence, "0123456789abcdef", 16), 0);
		assert_int_equal(judge(), -EBADMSG);
	}
	/* The largest item, and one byte more although all of it is there. */
	memset(large, 'l', sizeof(large));
	fill(PARTS, NULL);
	add(EVIDENCE_FD, COMMAND, 0, large, EVIDENCE_ITEM_MAX);
	assert_enforced();
	add(EVIDENCE_FD, COMMAND, 0, large, EVIDENCE_ITEM_MAX + 1);
	assert_int_equal(judge(), -EBADMSG);
	/* Empty texts are texts. */
	fill(PARTS, NULL);
	for (uint32_t kind = EVIDENCE_LIMITS; kind <= EVIDENCE_MOUNTINFO; kind++)
		add(kind, COMMAND, 0, "", 0);
	assert_enforced();
}

/* A receipt that does not fit is an error, never half a receipt that is believed. */
TEST(no_room)
{
	_buf_ struct buf small = BUF_INIT(64);

	fill(PARTS, NULL);
	assert_int_equal(receipt_from(evidence.data, evidence.len, &spec, &ready, true, &small,
				      &err),
			 -EMSGSIZE);
	assert_true(err.msg[0]);
}

TEST(from_descriptor)
{
	int ends[2];

	fill(PARTS, NULL);
	_fd_ int good = fd_memfd("evidence", evidence.data, evidence.len);
	_fd_ int empty = fd_memfd("evidence", "", 0);
	_fd_ int cut = fd_memfd("evidence", evidence.data, evidence.len - 8);
	_fd_ int huge = memfd_create("evidence", MFD_CLOEXEC);

	assert_int_equal(ftruncate(huge, (off_t)EVIDENCE_MAX + 1), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(receipt_write(good, &spec, &ready, true, &out, &err), 0);
	assert_int_equal(receipt_write(empty, &spec, &ready, true, &out, &err), -EBADMSG);
	assert_int_equal(receipt_write(cut, &spec, &ready, true, &out, &err), -EBADMSG);
	assert_int_equal(receipt_write(huge, &spec, &ready, true, &out, &err), -EBADMSG);
	assert_int_equal(receipt_write(ends[0], &spec, &ready, true, &out, &err), -EBADMSG);
	assert_int_equal(receipt_write(-1, &spec, &ready, true, &out, &err), -EBADMSG);
	fd_close(ends[0]);
	fd_close(ends[1]);
}
