/* SPDX-License-Identifier: Apache-2.0 */
/* test_container.c - From what the engine of a container gives to the options that are missing. The
 * looking itself is tested by tests/integ/test_container.py, and with Docker by tests/container. */
#include "cell/container.h"

#include "cell/caps.h"
#include "cell/plan.h"
#include "cell/stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

#define CAP(name) (1ull << CAP_##name)
/* Docker's fourteen. */
#define DEFAULTS                                                                                   \
	(CAP(CHOWN) | CAP(DAC_OVERRIDE) | CAP(FSETID) | CAP(FOWNER) | CAP(MKNOD) | CAP(NET_RAW) |  \
	 CAP(SETGID) | CAP(SETUID) | CAP(SETFCAP) | CAP(SETPCAP) | CAP(NET_BIND_SERVICE) |         \
	 CAP(SYS_CHROOT) | CAP(KILL) | CAP(AUDIT_WRITE))
#define ADDED "--cap-add DAC_READ_SEARCH --cap-add SYS_PTRACE --cap-add SYS_ADMIN " CONTAINER_FILTER
#define ENOUGH (DEFAULTS | CAP(DAC_READ_SEARCH) | CAP(SYS_PTRACE) | CAP(SYS_ADMIN))
#define ROOT .root = true, .whole_ids = true

TEST(options)
{
	static const struct {
		struct container c;
		const char *options;
	} rows[] = {
		/* docker run, on machines without and with AppArmor. */
		{ { ROOT, .caps = DEFAULTS, .call_denied = true, .proc_covered = true }, ADDED },
		{ { ROOT, .caps = DEFAULTS, .call_denied = true, .proc_covered = true,
		    .mount_denied = true, .label = "docker-default (enforce)" },
		  ADDED " --security-opt apparmor=unconfined" },
		{ { ROOT, .caps = DEFAULTS, .call_denied = true, .mount_denied = true,
		    .label = "system_u:system_r:container_t:s0:c1,c2" },
		  ADDED " --security-opt label=disable" },
		/* With these options. Root mounts a whole /proc for itself. */
		{ { ROOT, .caps = ENOUGH, .proc_covered = true }, "" },
		{ { ROOT, .caps = ENOUGH, .label = "docker-default (enforce)" }, "" },
		/* Each by itself. */
		{ { ROOT, .caps = ENOUGH & ~CAP(SYS_PTRACE) }, "--cap-add SYS_PTRACE" },
		{ { ROOT, .caps = ENOUGH & ~CAP(SYS_CHROOT) }, "--cap-add SYS_CHROOT" },
		{ { ROOT, .caps = ENOUGH, .call_denied = true }, CONTAINER_FILTER },
		{ { ROOT, .caps = ENOUGH, .cgroup_of_machine = true }, "--cgroupns=private" },
		/* In a user namespace: a rootless engine. */
		{ { .root = true, .caps = ENOUGH & ~CAP(SETFCAP) }, "--cap-add SETFCAP" },
		{ { .root = true, .caps = ENOUGH, .proc_covered = true },
		  "--security-opt systempaths=unconfined" },
		{ { .engine = "podman", .root = true, .caps = ENOUGH, .proc_covered = true },
		  "--security-opt unmask=ALL" },
		/* An ordinary user has no use for capabilities. */
		{ { .whole_ids = true, .call_denied = true, .proc_covered = true },
		  CONTAINER_FILTER " --security-opt systempaths=unconfined" },
	};
	char text[CONTAINER_OPTIONS_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct container c = rows[i].c;

		c.engine = c.engine ? c.engine : "docker";
		assert_string_equal(container_options(&c, text, sizeof(text)), rows[i].options);
	}
	/* All of them fit, and a small buffer is not overrun. */
	struct container all = { .engine = "docker",
				 .root = true,
				 .call_denied = true,
				 .mount_denied = true,
				 .proc_covered = true,
				 .cgroup_of_machine = true };

	assert_true(strlen(container_options(&all, text, sizeof(text))) < sizeof(text) - 1);
	assert_non_null(strstr(text, "--cgroupns=private"));
	memset(text, 'x', sizeof(text));
	assert_int_equal(strlen(container_options(&all, text, 10)), 8);
	assert_int_equal(text[10], 'x');
}

/* Where nothing shows that this is a container, the step that failed names the option. */
TEST(steps)
{
	static const struct {
		struct stage_report report;
		const char *option;
	} rows[] = {
		{ { .stage = STAGE_PIVOT, .error = EPERM }, CONTAINER_FILTER },
		{ { .stage = STAGE_PRIVATE, .error = EACCES }, CONTAINER_UNCONFINED },
		{ { .stage = STAGE_PROC, .error = EPERM }, "systempaths=unconfined" },
	};
	static struct plan plan;
	char text[512];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		stage_describe(&rows[i].report, &plan, text, sizeof(text));
		assert_non_null(strstr(text, rows[i].option));
	}
}

TEST(engine)
{
	assert_int_equal(unsetenv("container"), 0);
	const char *outside = container_engine();

	assert_int_equal(setenv("container", "", 1), 0);
	assert_true(container_engine() == outside);
	assert_int_equal(setenv("container", "oci", 1), 0);
	assert_string_equal(container_engine(), outside ? outside : "container");
	assert_int_equal(unsetenv("container"), 0);
}
