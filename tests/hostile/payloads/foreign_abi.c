/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_abi.c - Make a file through an entry to the kernel that a filter may have forgotten.
 *
 *   foreign_abi DIR   makes DIR/int80, DIR/x32 and DIR/uring; DIR/plain shows that DIR can be
 * written
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

static long int80(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return r;
}

/* The i386 entry takes pointers of 32 bits. */
static char *low_copy(const char *text)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		       -1, 0);

	if (p != MAP_FAILED)
		(void)snprintf(p, 4096, "%s", text);
	return p;
}

static void uring_open(const char *path)
{
	struct io_uring_params p = { 0 };
	int ring = (int)say("io_uring_setup", syscall(SYS_io_uring_setup, 2, &p));

	if (ring < 0)
		return;
	char *sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned),
			PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE,
					MAP_SHARED, ring, IORING_OFF_SQES);

	if (sq == MAP_FAILED || (void *)sqe == MAP_FAILED)
		return;
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_OPENAT;
	sqe->fd = AT_FDCWD;
	sqe->addr = (unsigned long)path;
	sqe->open_flags = O_CREAT | O_WRONLY;
	sqe->len = 0644;
	((unsigned *)(void *)(sq + p.sq_off.array))[0] = 0;
	__atomic_store_n((unsigned *)(void *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	say("io_uring_enter",
	    syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0ul));
}

int main(int argc, char **argv)
{
	char path[4][600];
	static const char *const names[] = { "plain", "int80", "x32", "uring" };

	if (argc != 2)
		return 2;
	for (int i = 0; i < 4; i++)
		(void)snprintf(path[i], sizeof(path[i]), "%s/%s", argv[1], names[i]);
	say("plain", open(path[0], O_CREAT | O_WRONLY, 0644));
	long r = int80(5, (long)low_copy(path[1]), O_CREAT | O_WRONLY, 0644);

	errno = r < 0 ? (int)-r : 0;
	say("int80-open", r < 0 ? -1 : r);
	say("x32-open", syscall(0x40000000 + SYS_open, path[2], O_CREAT | O_WRONLY, 0644));
	uring_open(path[3]);
	return 0;
}
