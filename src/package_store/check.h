/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - Whether a tree on the disk still is what was stored.
 *
 * Its hash says so, and has to read all of it. Its seal is a hash of what the kernel notes of each
 * entry: name, mode, size, and when it was changed. Whoever writes to a file, or puts another in
 * its place, changes that time, and can not set it. So a seal that is the same means that nobody
 * wrote by way of the file system; one that is not is a reason to read: a copy of the directory has
 * other times and the same content.
 */
#ifndef CAISSON_PACKAGE_STORE_CHECK_H
#define CAISSON_PACKAGE_STORE_CHECK_H

struct err;

/* check_seal() - Of the tree at @root. 0 or -errno. */
int check_seal(int root, char ret_hex[65], struct err *e);
/* check_hash() - As intake.c had it when it unpacked this tree. 0 or -errno. */
int check_hash(int root, char ret_hex[65], struct err *e);

#endif
