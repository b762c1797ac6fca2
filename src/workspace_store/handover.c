/* SPDX-License-Identifier: Apache-2.0 */
/* handover.c - Promises of jobs in shared memory, and whether they were kept. */
#include "workspace_store/handover.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "tree_store/tree.h"
#include "workspace_store/workspace_dir.h"

struct handover *handover_new(void)
{
	void *p = mmap(NULL, sizeof(struct handover), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void promise_make(struct promise *p, const struct workspace_store_reply *r, const char *key,
		  uint64_t generation, int tree)
{
	const uint64_t seq = r->seq;
	struct stat st;

	promise_drop(p);
	if (fstat(tree, &st) < 0)
		return;
	p->reply = *r;
	p->reply.seq = 0;
	p->reply.generation = generation;
	p->reply.cut = 1; /* the list of changes dies with the job */
	(void)snprintf(p->reply.key, sizeof(p->reply.key), "%.32s", key);
	p->inode = st.st_ino;
	/* Last: a reader that finds no number finds no promise. */
	__atomic_store_n(&p->reply.seq, seq, __ATOMIC_RELEASE);
}

void promise_drop(struct promise *p)
{
	__atomic_store_n(&p->reply.seq, UINT64_C(0), __ATOMIC_RELEASE);
}

bool promise_is_kept(const struct promise *p, int store_dir)
{
	char tree[WORKSPACE_STORE_TREE_MAX];
	struct stat st;

	if (!p->reply.seq || !tree_key_ok(p->reply.key))
		return false;
	_fd_ int dir =
		openat(store_dir, p->reply.key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	workspace_dir_generation(tree, p->reply.generation);
	return dir >= 0 && fstatat(dir, tree, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == p->inode;
}
