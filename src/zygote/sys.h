/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys.h - System calls without a C library, for the object that any interpreter can load.
 */
#ifndef CAISSON_ZYGOTE_SYS_H
#define CAISSON_ZYGOTE_SYS_H

#if defined(__x86_64__)
static inline long sys(long nr, long a, long b, long c, long d, long e)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long sys(long nr, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
}
#else
#error "sys.h: system calls of this architecture are not written down yet"
#endif

static inline _Noreturn void sys_exit(int status)
{
	for (;;)
		(void)sys(__NR_exit_group, status, 0, 0, 0, 0);
}

#endif
