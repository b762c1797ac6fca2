/* SPDX-License-Identifier: Apache-2.0 */
/* caps.c - All five capability sets, the effective user, and limits and signals of a process. */
#include "cell/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/init.h"

const char *caps_name(int cap)
{
	static const char *const names[] = {
		[CAP_CHOWN] = "CHOWN",           [CAP_DAC_OVERRIDE] = "DAC_OVERRIDE",
		[CAP_FOWNER] = "FOWNER",         [CAP_KILL] = "KILL",
		[CAP_SETGID] = "SETGID",         [CAP_SETUID] = "SETUID",
		[CAP_SETPCAP] = "SETPCAP",       [CAP_SYS_CHROOT] = "SYS_CHROOT",
		[CAP_SYS_PTRACE] = "SYS_PTRACE", [CAP_SYS_ADMIN] = "SYS_ADMIN",
		[CAP_SETFCAP] = "SETFCAP",       [CAP_DAC_READ_SEARCH] = "DAC_READ_SEARCH",
	};

	return cap >= 0 && (size_t)cap < ARRAY_SIZE(names) && names[cap] ? names[cap] : "?";
}

int caps_permitted(uint64_t *ret)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	*ret = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	return 0;
}

int caps_bound(uint64_t mask)
{
	for (int cap = 0; cap < 64; cap++) {
		if (mask & 1ull << cap)
			continue;
		int have = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (have < 0)
			return 0; /* past the last capability this kernel knows */
		if (have == 1 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

int caps_limit(uint64_t mask, int ambient)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		data[i].permitted = data[i].effective = (uint32_t)(mask >> (32 * i));
		data[i].inheritable = ambient ? data[i].permitted : 0;
	}
	if (syscall(SYS_capset, &header, data) < 0)
		return -errno;
	for (int cap = 0; ambient && cap < 64; cap++)
		if (mask & 1ull << cap &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -errno;
	return 0;
}

int caps_keep(uint64_t mask, int ambient)
{
	int r = caps_bound(mask);

	return r < 0 ? r : caps_limit(mask, ambient);
}

int caps_drop(void)
{
	return caps_limit(0, 0);
}

int as_user_begin(uid_t uid)
{
	if (uid == 0)
		return 0;
	if (setresuid((uid_t)-1, uid, (uid_t)-1) < 0)
		return -errno;
	(void)setfsuid(0);
	return 0;
}

void as_user_end(uid_t uid)
{
	int saved = errno;

	/* Root's next step must not be done as somebody else: the process ends here. */
	if (uid != 0 && setresuid((uid_t)-1, 0, (uid_t)-1) < 0) {
		(void)fprintf(stderr, "caisson: become root again: %s\n", strerror(errno));
		_exit(EXIT_FAILURE);
	}
	errno = saved;
}

/* ---- limits and signals --------------------------------------------------------------------- */

static int lower(int resource, rlim_t want)
{
	struct rlimit now;

	if (getrlimit(resource, &now) < 0)
		return -errno;
	if (now.rlim_max < want)
		want = now.rlim_max;

	struct rlimit set = { .rlim_cur = want, .rlim_max = want };

	return setrlimit(resource, &set) < 0 ? -errno : 0;
}

int process_limit(const struct init_config *c)
{
	const struct init_limit rows[] = INIT_LIMITS(c);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = lower(rows[i].resource, rows[i].value);

		if (r < 0)
			return r;
	}
	return 0;
}

/* By the system call itself: the C library hides two signals that an ancestor may have ignored. */
void process_reset_signals(void)
{
	const struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} dfl = { 0 };

	for (int sig = 1; sig <= 64; sig++)
		(void)syscall(SYS_rt_sigaction, sig, &dfl, NULL, sizeof(dfl.mask));
}
