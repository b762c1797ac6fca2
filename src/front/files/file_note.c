/* SPDX-License-Identifier: Apache-2.0 */
/* file_note.c - Two lines in the ledger for each file call that is recorded. */
#include "front/files/file_note.h"

#include <stdio.h>

#include "front/files/files.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/name.h"

static const char *op_name(enum files_op op)
{
	switch (op) {
	case FILES_READ:
		return "read";
	case FILES_TAR_OUT:
		return "pack";
	case FILES_WRITE:
		return "write";
	case FILES_TAR_IN:
		return "unpack";
	case FILES_DELETE:
		return "delete";
	case FILES_MOVE:
		return "move";
	case FILES_MKDIR:
		return "mkdir";
	default:
		return NULL; /* only asks about names: not recorded */
	}
}

static struct audit_file line_of(const struct file_note *n)
{
	return (struct audit_file){ .ledger = n->ledger,
				    .owner = n->owner,
				    .sandbox = n->sandbox,
				    .id = n->id,
				    .op = n->op };
}

int file_note_begin(struct file_note *n, const struct sandbox *s, const struct file_call *c,
		    struct refusal *ret)
{
	n->op = op_name(c->q.op);
	if (!n->op)
		return 0;
	(void)snprintf(n->owner, sizeof(n->owner), "%s", s->owner);
	(void)snprintf(n->sandbox, sizeof(n->sandbox), "%s", s->name);
	random_id(n->id);
	if (c->ops->feed) {
		hash_begin(&n->hash);
		n->hashed = true;
		if (n->hash.failed) {
			hash_close(&n->hash);
			return refusal_no_memory(ret);
		}
	}
	n->ledger = s->sandboxes->daemon->ledger;
	struct audit_file line = line_of(n);

	if (audit_file_begin(&line, c->path, c->to[0] ? c->to : NULL, ret) == 0)
		return 0;
	n->ledger = NULL;
	hash_close(&n->hash);
	return -1;
}

void file_note_data(struct file_note *n, const void *data, size_t len)
{
	n->bytes += len;
	if (n->hashed)
		hash_add(&n->hash, data, len);
}

void file_note_end(struct file_note *n, const char *error)
{
	char hex[HASH_HEX + 1];

	if (!n->ledger)
		return;
	struct audit_file line = line_of(n);
	bool good = n->hashed && hash_end(&n->hash, hex); /* no hash is better than a wrong one */

	audit_file_end(&line, error ? error : "done", n->bytes, good ? hex : NULL);
	hash_close(&n->hash);
	n->ledger = NULL;
}
