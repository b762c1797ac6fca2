/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_job.h - Run one command in a fresh cell, which is made for it and removed after it.
 */
#ifndef CAISSON_CLI_CELL_JOB_H
#define CAISSON_CLI_CELL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "client/init_client.h"
#include "client/result.h"
#include "wire/warden.h"

struct err;

struct job {
	const char *state; /* the journal's directory */
	const struct cell_spec *spec;
	const int *fds; /* image, mounts */
	size_t n_fds;
	struct exec_request exec; /* stdio is filled in here */
	uint64_t timeout_ms;
	uint64_t max_output;  /* 0 = none */
	bool capture;         /* do not pass the streams through */
	size_t capture_bytes; /* how much of the beginning of each is kept */
	bool receipt;
	/* filled: */
	struct buf out, err;     /* the beginning of each stream */
	struct buf receipt_json; /* with receipt */
	struct init_ready ready;
	int start_code; /* when the command could not be started: the shell's exit code for it */
};

void job_free(struct job *j);

/*
 * job_run() - Make the cell, run the command to its end, end the cell.
 *
 * Return: 0 when the command was started (@ret says how it ended); negative errno with a message
 * when it never was. Either way nothing of the cell is left when it returns.
 */
int job_run(struct job *j, struct outcome *ret, struct err *e);

#endif
