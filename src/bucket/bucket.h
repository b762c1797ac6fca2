/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.h - The configuration of caisson-bucket, and the state of one of its jobs. */
#ifndef CAISSON_BUCKET_BUCKET_H
#define CAISSON_BUCKET_BUCKET_H

#include <stddef.h>

#include "base/buf.h"
#include "s3/client.h"
#include "wire/bucket.h"

struct err;

#define PLACES_MAX 64u

struct bucket_config {
	struct s3_site site;
	struct s3_creds creds;
	struct buf ca; /* PEM; empty: the machine's */
	struct {
		char name[BUCKET_PLACE_MAX + 1];
		struct s3_place place;
	} places[PLACES_MAX];
	size_t n_places;
};

/*
 * bucket_config_parse() - The options that the front gives: --endpoint, --region, --style (path,
 * virtual), --ca and --credentials (files), --keys (a descriptor), --profile, --place
 * (NAME=s3://BUCKET/PREFIX, repeated). It reads the files.
 */
int bucket_config_parse(int argc, char **argv, struct bucket_config *ret, struct err *e);
const struct s3_place *bucket_place(const struct bucket_config *c, const char *name);

struct job {
	const struct bucket_req *q;
	const struct s3_place *place;
	struct s3_client client;
	int answer; /* pipe */
	int fds[2]; /* as the op says; -1 */
	int dir;    /* of manifests */
	struct bucket_reply r;
	uint64_t told_ns; /* when progress was told last */
};

/* job_run() - Blocking, to its end; fills j->r. 0 or a negative errno with a message. */
int job_run(struct job *j, struct err *e);

/* job_moved() - Tells how far it is, not more often than a few times a second. */
void job_moved(struct job *j);

/* The ops: job_pull.c, job_push.c. */
int job_look(struct job *j, struct err *e);
int job_pull(struct job *j, struct err *e);
int job_push(struct job *j, struct err *e);

#endif
