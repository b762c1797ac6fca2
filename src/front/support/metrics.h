/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - Counters, gauges and histograms, and their Prometheus text form (0.0.4).
 *
 * The four of the service that this one replaces keep their names (sandbox_...); the others are
 * caisson_..., and process_... where Prometheus has a customary name. Label values come from fixed
 * sets, so that no client can make the daemon or its scraper grow. One thread: nothing is atomic.
 */
#ifndef CAISSON_FRONT_METRICS_H
#define CAISSON_FRONT_METRICS_H

#include <stdint.h>

struct buf;

/* The names and help lines are in metrics.c, tied to these by static assertions. */
enum metric_counter {
	M_HTTP_CONNECTIONS,
	M_HTTP_REFUSED,
	M_AUTH_FAILURES,
	M_CELLS_CREATED,
	M_CELLS_FAILED,
	M_CELLS_DESTROYED,
	M_KERNELS_STARTED,
	M_KERNELS_DIED,
	M_ZYGOTE_RESTARTS,
	M_OUTPUT_BYTES,
	M_REAPED_IDLE,
	M_REJECTED_BUSY,
	M_POOL_HITS,
	M_POOL_MISSES,
	M_PORT_REQUESTS,
	M_PORT_BYTES,
	M_EGRESS_OPENED,
	M_EGRESS_REFUSED,
	M_EGRESS_FAILED,
	M_EGRESS_UNTOLD,
	M_EGRESS_BYTES,
	M_GATE_RESTARTS,
	M_FRONT_RESTARTS,
	M_SANDBOXES_ADOPTED,
	M_TOOL_CALLS,
	M_TOOLS_REFUSED,
	M_POLICY_REFUSALS,
	M_POLICY_RELOADS,
	M_POLICY_REJECTED,
	M_SECRETS_RELOADS,
	M_SECRETS_REJECTED,
	M_COUNTER_MAX_,
};
enum metric_gauge {
	G_SANDBOXES,
	G_SANDBOXES_BUSY,
	G_CELLS,
	G_POOL_CELLS,
	G_POOL_KERNELS,
	G_QUEUED,
	G_EXECUTIONS,
	G_PORT_CONNECTIONS,
	G_POLICY_STALE,
	G_GAUGE_MAX_,
};
enum metric_histogram { H_EXECUTION, H_CELL_CREATE, H_KERNEL_START, H_HTTP, H_HISTOGRAM_MAX_ };

/*
 * metrics_setup() - Before the jail: remembers the start, and holds /proc/self open for what the
 * process uses. Without it, or without /proc, those few are left out.
 */
void metrics_setup(void);

void metric_add(enum metric_counter c, uint64_t n);
void metric_set(enum metric_gauge g, uint64_t v);
void metric_observe(enum metric_histogram h, uint64_t ns);

/* Labelled ones: what is not in the set of values (metrics.c) is counted as "other". */

/* metric_execution() - Also observes H_EXECUTION. @status: as in the result object. */
void metric_execution(const char *language, const char *status, uint64_t ns);

/* metric_error() - @type: an error code of the API (reply_error() counts those) or a cause. */
void metric_error(const char *type);

/*
 * metric_http() - Also observes H_HTTP. @route: the pattern of the table, not the path; it is kept
 * by address and must live for ever. NULL: no route matched.
 */
void metric_http(const char *route, int status, uint64_t ns);

/* metric_package() - @outcome: installed, failed, blocked, unsupported. */
void metric_package(const char *outcome);

/* metrics_write() - All of them, appended to @out. */
void metrics_write(struct buf *out);

/* metrics_reset() - Back to zero, for tests. */
void metrics_reset(void);

#endif
