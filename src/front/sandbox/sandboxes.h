/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxes.h - All sandboxes, and the parts that they share. */
#ifndef CAISSON_FRONT_SANDBOX_SANDBOXES_H
#define CAISSON_FRONT_SANDBOX_SANDBOXES_H

#include <stddef.h>

#include "front/spec/admission.h"

#define SANDBOXES_QUEUE_MAX 512u /* executions that wait or run, in all sandboxes */
#define SANDBOXES_RETRY_S 1u     /* after which a client may try again */

struct sandboxes {
	struct daemon *daemon;
	struct loop *loop; /* the daemon's */
	struct cells *cells;
	struct admission *admission;
	const struct sandbox_hooks *hooks;       /* of the parts above */
	struct adopt *adopt;                     /* sandboxes of a front that was killed */
	struct open_executions *open_executions; /* that began, and did not end before a restart */
	struct spool_bank *spools;               /* output, also the part that answers leave out */
	struct stream_bank *streams;             /* events of streamed executions */
	struct sandbox *first;                   /* with and without a name */
	size_t n;                                /* sandboxes that run */
	size_t n_queued;                         /* executions that wait or run */
	size_t n_busy;                           /* executions that run */
	struct timer forget_timer;               /* removes old idempotency keys */
};

#endif
