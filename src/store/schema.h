/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - The tables, and the way to them from every earlier version. */
#ifndef CAISSON_STORE_SCHEMA_H
#define CAISSON_STORE_SCHEMA_H

#include <sqlite3.h>

struct err;

#define SCHEMA_APPLICATION_ID 0x43616973 /* "Cais" */

/* schema_version() - The version that this program makes. */
int schema_version(void);

/*
 * schema_look() - Whose database it is, without a change to it.
 * Return: SQLITE_OK, for a new one too; SQLITE_NOTADB, with the reason in @e, when it is of a newer
 * version or another program's; or SQLite's code without a message.
 */
int schema_look(sqlite3 *db, int *ret_version, struct err *e);

/*
 * schema_apply() - Bring @db from @version to schema_version(), each step in a transaction.
 * Return: as schema_look(); also for other tables than this version has.
 */
int schema_apply(sqlite3 *db, int version, struct err *e);

#endif
