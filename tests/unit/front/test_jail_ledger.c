/* SPDX-License-Identifier: Apache-2.0 */
/* test_jail_ledger.c - The ledger in the front's jail: it appends, rotates and survives a full
 * disk. */
#include "../ledger/ledger_kit.h"
#include "jail_kit.h"

#include <signal.h>
#include <sys/resource.h>

struct unit_fixture unit_fixture = { kit_setup, kit_teardown };

/* The directory belongs to whom the jail becomes, as the daemon arranges it. */
static void hand_over(const struct kit *k)
{
	uid_t uid;
	gid_t gid;

	CHILD_CHECK(jail_identity(&uid, &gid, NULL) == 0);
	CHILD_CHECK(fchown(k->dir, uid, gid) == 0);
}

static int report[2]; /* whether the jail lets the ledger rotate, as its process knows */

static void run_rotation(void *arg)
{
	struct kit *k = arg;

	hand_over(k);
	struct jail_report r = enter_jail_with(k->dir);

	for (int i = 0; i < 12; i++) {
		int appended = kit_append(k, i);

		if (appended < 0)
			(void)fprintf(stderr, "%s\n", k->e.msg);
		CHILD_CHECK(appended == 0);
	}
	CHILD_CHECK(ledger_sync(k->ledger, NULL) == 0);
	char rotates = r.landlock || !r.seccomp;

	CHILD_CHECK(write(report[1], &rotates, 1) == 1);
}

TEST(rotates)
{
	struct kit *k = *test_state;

	k->file_bytes = 800;
	char rotates = 0;

	kit_open(k);
	assert_int_equal(pipe(report), 0);
	child_run(run_rotation, k);
	assert_int_equal(read(report[0], &rotates, 1), 1);
	/* Where the jail has to refuse it, the file grows instead. */
	assert_int_equal(kit_find(k, "ledger-00000000000000000001.jsonl") != NULL, rotates);
	struct reader_report r = kit_verify(k);

	assert_false(r.damaged);
	assert_int_equal(r.lines, 12);
	/* If not inside, then at the next start. */
	kit_open(k);
	kit_fill(k, 1);
	assert_in_range(kit_verify(k).files, 2, 5);
	assert_non_null(kit_find(k, "ledger-00000000000000000001.jsonl"));
}

static void run_full(void *arg)
{
	struct kit *k = arg;
	struct rlimit limit = { 3000, 3000 };

	CHILD_CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	hand_over(k);
	(void)enter_jail_with(k->dir);
	for (int i = 0; i < 12; i++)
		CHILD_CHECK(kit_append(k, i) == 0);
	for (int i = 0; i < 3; i++)
		CHILD_CHECK(kit_append(k, i) == -ENOSPC);
}

TEST(full_disk)
{
	struct kit *k = *test_state;

	kit_open(k);
	child_run(run_full, k);
	struct reader_report r = kit_verify(k);

	assert_false(r.damaged);
	assert_int_equal(r.lines, 12);
}
