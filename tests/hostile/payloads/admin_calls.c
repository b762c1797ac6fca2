/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin_calls.c - The administrator's calls, in forms that change nothing when they succeed, or
 * only what the program puts back.
 *
 *   admin_calls DIR   DIR: where scratch files may be made
 */
#include <asm/ldt.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdlib.h>
#include <sys/io.h>
#include <sys/klog.h>
#include <sys/personality.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

int main(int argc, char **argv)
{
	char file[600], text[64];
	struct user_desc segment = { .limit = 1, .seg_32bit = 1 };

	if (argc != 2)
		return 2;
	(void)snprintf(file, sizeof(file), "%s/scratch", argv[1]);
	(void)close(open(file, O_RDWR | O_CREAT, 0600));
	(void)truncate(file, 65536);

	/* Not an image: a kernel that may load modules says ENOEXEC, one that may not says EPERM.
	 */
	say("init_module", syscall(SYS_init_module, "nothing", 7ul, ""));
	say("finit_module", syscall(SYS_finit_module, open(file, O_RDONLY), "", 0));
	say("delete_module", syscall(SYS_delete_module, "no_such_module", O_NONBLOCK));
	/* No segments: forget a kernel that was never loaded. */
	say("kexec_load", syscall(SYS_kexec_load, 0ul, 0ul, NULL, 0ul));
	say("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0ul, "", 0ul));
	say("reboot", syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
			      LINUX_REBOOT_CMD_CAD_OFF, NULL));
	/* No swap header: EINVAL for a process that may. */
	say("swapon", swapon(file, 0));
	say("swapoff", swapoff(file));
	say("acct", acct(file));
	say("acct-off", acct(NULL));
	say("quotactl", quotactl(QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL));
	say("syslog-read", klogctl(3, text, sizeof(text)));
	say("syslog-size", klogctl(10, NULL, 0));
	say("vhangup", vhangup());
	say("iopl", iopl(0));
	say("ioperm", ioperm(0x80, 1, 0));
	say("modify_ldt", syscall(SYS_modify_ldt, 1, &segment, sizeof(segment)));
	say("personality", personality(ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC));
	say("sethostname", sethostname("d-admin", 7));
	say("setdomainname", setdomainname("d-admin", 7));
	say("setpriority", setpriority(PRIO_PROCESS, 0, -5));
	say("nice-rlimit", setrlimit(RLIMIT_NICE, &(struct rlimit){ 40, 40 }));
	return 0;
}
