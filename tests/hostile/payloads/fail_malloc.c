// SPDX-License-Identifier: Apache-2.0
/*
 * fail_malloc.c - To be preloaded: counts the calls of malloc, and refuses those that the test
 * chooses by number.
 *
 * The numbers are in a file that both sides map ($L_MALLOC), so that a test can arrange a failure
 * for the next request while the daemon runs, in a jail in which it can open nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct control {
	uint64_t count;   /* calls so far */
	uint64_t fail_at; /* the first that fails; 0: none */
	uint64_t fail_n;  /* how many from there on */
	uint64_t failed;  /* how many did */
};

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);

/* Those of AddressSanitizer, in a program that has it: free() asks it, too. */
__attribute__((weak)) void *__interceptor_malloc(size_t n);
__attribute__((weak)) void *__interceptor_calloc(size_t n, size_t each);
__attribute__((weak)) void *__interceptor_realloc(void *p, size_t n);

static struct control *control;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("L_MALLOC");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED :
			    mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		control = at;
	if (fd >= 0)
		(void)close(fd);
}

static int refused(void)
{
	if (!control)
		return 0;
	uint64_t n = ++control->count;

	if (!control->fail_at || n < control->fail_at || n >= control->fail_at + control->fail_n)
		return 0;
	control->failed++;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t n)
{
	if (refused())
		return NULL;
	return __interceptor_malloc ? __interceptor_malloc(n) : __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
	if (refused())
		return NULL;
	return __interceptor_calloc ? __interceptor_calloc(n, each) : __libc_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
	if (refused())
		return NULL;
	return __interceptor_realloc ? __interceptor_realloc(p, n) : __libc_realloc(p, n);
}
