/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxes.h - All sandboxes, and what their executions share. */
#ifndef CAISSON_FRONT_SANDBOX_SANDBOXES_H
#define CAISSON_FRONT_SANDBOX_SANDBOXES_H

#include <stddef.h>

#include "front/spec/admission.h"

#define SANDBOXES_QUEUE_MAX 512u /* executions that wait for a sandbox */
#define SANDBOXES_RETRY_S 1u     /* when all are busy */

struct sandboxes {
	struct daemon *daemon;
	struct loop *loop; /* the daemon's */
	struct cells *cells;
	struct admission *admission;
	const struct sandbox_hooks *hooks;       /* of the parts above */
	struct adopt *adopt;                     /* sandboxes of a front that was killed */
	struct open_executions *open_executions; /* began, and did not end before a restart */
	struct spool_bank *spools;               /* output beyond what answers return */
	struct stream_bank *streams;             /* events of streamed executions */
	struct sandbox *first;                   /* named and anonymous, all that live */
	size_t n;                                /* that run */
	size_t n_queued;                         /* executions that wait or run */
	size_t n_busy;                           /* those that run */
	struct timer forget_timer;               /* old idempotency keys */
};

#endif
