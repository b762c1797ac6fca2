/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec32.c - A 32-bit program without a library. It makes a file named "made-by-32" in
 * the working directory and exits with 7. Built with -m32 -nostdlib -static.
 */
static long call3(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return r;
}

void _start(void);
void _start(void)
{
	static const char name[] = "made-by-32";

	(void)call3(5, (long)name, 0101, 0644); /* open: O_CREAT | O_WRONLY */
	(void)call3(1, 7, 0, 0);                /* exit */
	for (;;)
		__asm__ volatile("hlt");
}
