/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - The numbers, their names, and the text that Prometheus reads.
 *
 * Everything is a fixed array. A histogram keeps one count per bucket and adds them up when it is
 * written, so that an observation is one search and three additions. Labelled counters that are
 * still zero are left out, except the first of each set: a metric must exist before it first moves,
 * or rate() misses the first event.
 */
#include "front/support/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "front/support/log.h"

struct metric_name {
	const char *name, *help;
};

static const struct metric_name counter_names[] = {
	[M_HTTP_CONNECTIONS] = { "caisson_http_connections_total", "Connections accepted." },
	[M_HTTP_REFUSED] = { "caisson_http_connections_refused_total",
			     "Connections closed at once because there were too many." },
	[M_AUTH_FAILURES] = { "caisson_auth_failures_total",
			      "Requests refused for a token that was missing or wrong." },
	[M_CELLS_CREATED] = { "caisson_cells_created_total", "Cells made." },
	[M_CELLS_FAILED] = { "caisson_cells_failed_total", "Cells that could not be made." },
	[M_CELLS_DESTROYED] = { "caisson_cells_destroyed_total", "Cells ended and removed." },
	[M_KERNELS_STARTED] = { "caisson_kernels_started_total", "Interpreters started." },
	[M_KERNELS_DIED] = { "caisson_kernels_died_total",
			     "Interpreters that ended without being asked to." },
	[M_ZYGOTE_RESTARTS] = { "caisson_zygote_restarts_total", "Zygotes replaced." },
	[M_OUTPUT_BYTES] = { "caisson_output_bytes_total",
			     "Bytes that executions wrote, returned or not." },
	[M_REAPED_IDLE] = { "caisson_sessions_reaped_total", "Sessions ended for being idle." },
	[M_REJECTED_BUSY] = { "caisson_rejected_busy_total",
			      "Requests answered with 429 for lack of room." },
	[M_POOL_HITS] = { "caisson_pool_hits_total", "Sandboxes that were ready when asked for." },
	[M_POOL_MISSES] = { "caisson_pool_misses_total", "Sandboxes that had to be made first." },
	[M_PORT_REQUESTS] = { "caisson_port_requests_total",
			      "Requests passed to services in sandboxes." },
	[M_PORT_BYTES] = { "caisson_port_bytes_total",
			   "Bytes to and from services in sandboxes, counted at their end." },
	[M_EGRESS_OPENED] = { "caisson_egress_connections_total", "Connections out of sandboxes." },
	[M_EGRESS_REFUSED] = { "caisson_egress_refused_total",
			       "Connections and names that a rule, an address or a limit "
			       "forbade." },
	[M_EGRESS_FAILED] = { "caisson_egress_failed_total",
			      "Connections that were allowed and came to nothing." },
	[M_EGRESS_UNTOLD] = { "caisson_egress_untold_total",
			      "Events of floods, which are counted and not reported one by one." },
	[M_EGRESS_BYTES] = { "caisson_egress_bytes_total",
			     "Bytes out of and into sandboxes, counted at a connection's end." },
	[M_GATE_RESTARTS] = { "caisson_gate_restarts_total",
			      "Times that the gate died and another one was started." },
	[M_FRONT_RESTARTS] = { "caisson_front_restarts_total",
			       "Times that the front was killed and started again." },
	[M_SANDBOXES_ADOPTED] = { "caisson_sandboxes_adopted_total",
				  "Sandboxes that were taken over from a front that was killed." },
	[M_TOOL_CALLS] = { "caisson_tool_calls_total",
			   "Calls of other servers' tools by code in sandboxes." },
	[M_TOOLS_REFUSED] = { "caisson_tool_calls_refused_total",
			      "Calls of other servers' tools that a rule refused." },
	[M_POLICY_REFUSALS] = { "caisson_policy_refusals_total",
				"Requests that the operator's policy did not allow." },
	[M_POLICY_RELOADS] = { "caisson_policy_reloads_total",
			       "Times that the policy was read again." },
	[M_POLICY_REJECTED] = { "caisson_policy_rejected_total",
				"Policies that were refused; the one before stays in force." },
	[M_SECRETS_RELOADS] = { "caisson_secrets_reloads_total",
				"Times that secrets were read again." },
	[M_SECRETS_REJECTED] = { "caisson_secrets_rejected_total",
				 "Secrets that were refused; those before stay in force." },
};
_Static_assert(ARRAY_SIZE(counter_names) == M_COUNTER_MAX_, "counter_names[]");

static const struct metric_name gauge_names[] = {
	[G_SANDBOXES] = { "caisson_sandboxes", "Sandboxes alive." },
	[G_SANDBOXES_BUSY] = { "caisson_sandboxes_busy", "Sandboxes that execute something." },
	[G_CELLS] = { "caisson_cells", "Cells alive, pooled ones too." },
	[G_POOL_CELLS] = { "caisson_pool_cells", "Prepared cells without an interpreter." },
	[G_POOL_KERNELS] = { "caisson_pool_kernels", "Interpreters ready for a first call." },
	[G_QUEUED] = { "caisson_executions_queued", "Executions that wait for their turn." },
	[G_EXECUTIONS] = { "caisson_executions_running", "Executions that run." },
	[G_PORT_CONNECTIONS] = { "caisson_port_connections",
				 "Requests and connections that go through ports of sandboxes." },
	[G_POLICY_STALE] = { "caisson_policy_stale",
			     "1 when the policy's file was refused and an older policy is in "
			     "force." },
};
_Static_assert(ARRAY_SIZE(gauge_names) == G_GAUGE_MAX_, "gauge_names[]");

static const struct metric_name histogram_names[] = {
	[H_EXECUTION] = { "sandbox_execution_duration_seconds", "Wall time of executions." },
	[H_CELL_CREATE] = { "caisson_cell_create_duration_seconds", "Time to make a cell." },
	[H_KERNEL_START] = { "caisson_kernel_start_duration_seconds",
			     "Time to start an interpreter in a cell." },
	[H_HTTP] = { "caisson_http_request_duration_seconds",
		     "Time from a request's first byte to its answer's last." },
};
_Static_assert(ARRAY_SIZE(histogram_names) == H_HISTOGRAM_MAX_, "histogram_names[]");

/* Upper bounds. From a fork (0.1 ms) to the longest execution that is allowed by default. */
static const struct {
	uint64_t ns;
	const char *le;
} buckets[] = {
	{ 100000, "0.0001" },    { 250000, "0.00025" }, { 500000, "0.0005" },
	{ 1000000, "0.001" },    { 2500000, "0.0025" }, { 5000000, "0.005" },
	{ 10000000, "0.01" },    { 25000000, "0.025" }, { 50000000, "0.05" },
	{ 100000000, "0.1" },    { 250000000, "0.25" }, { 500000000, "0.5" },
	{ 1000000000, "1" },     { 2500000000, "2.5" }, { 5000000000, "5" },
	{ 10000000000, "10" },   { 30000000000, "30" }, { 60000000000, "60" },
	{ 120000000000, "120" },
};

struct histogram {
	uint64_t counts[ARRAY_SIZE(buckets) + 1]; /* the last: over every bound */
	uint64_t sum_ns;
};

/* Sets of label values. "other" is the last of each, and takes what is not in the set. */
static const char *const languages[] = { "python", "bash", "javascript", "r", "other" };
static const char *const statuses[] = { "ok",    "error",       "signal", "timeout",
					"limit", "interrupted", "failed", "other" };
static const char *const outcomes[] = { "installed", "failed", "blocked", "unsupported", "other" };
static const char *const types[] = {
	/* causes of the end of an execution */
	"exception",
	"wall",
	"memory",
	"cpu",
	"pids",
	"disk",
	"inodes",
	"output",
	"signal",
	"interrupt",
	"init",
	"protocol",
	"result_too_large",
	/* errors of a request */
	"bad_request",
	"malformed_json",
	"duplicate_key",
	"too_deep",
	"too_many_values",
	"not_an_object",
	"missing_field",
	"unknown_field",
	"wrong_type",
	"out_of_range",
	"invalid_value",
	"unknown_parameter",
	"no_such_port",
	"port_closed",
	"port_busy",
	"port_timeout",
	"bad_answer",
	"too_many_ports",
	"service_worker",
	"body_not_allowed",
	"unsupported_media_type",
	"payload_too_large",
	"uri_too_long",
	"headers_too_large",
	"request_timeout",
	"upgrade_required",
	"not_found",
	"method_not_allowed",
	"unknown_language",
	"language_unavailable",
	"package_blocked",
	"package_not_allowed",
	"package_lookalike",
	"package_not_pinned",
	"too_many_packages",
	"package_too_big",
	"package_not_found",
	"version_not_found",
	"package_conflict",
	"invalid_package",
	"invalid_requirement",
	"hash_mismatch",
	"build_failed",
	"index_unavailable",
	"index_timeout",
	"install_failed",
	"no_installer",
	"package_rate",
	"packages_busy",
	"unsupported_language",
	"not_configured",
	"image_not_found",
	"registry_unavailable",
	"image_pull_denied",
	"image_pull_failed",
	"image_pull_timeout",
	"image_pulls_busy",
	"policy_refused",
	"policy_busy",
	"no_such_session",
	"nothing_runs",
	"session_ended",
	"unauthorized",
	"forbidden_host",
	"forbidden_origin",
	"token_in_url",
	"rate_limited",
	/* errors of the daemon */
	"busy",
	"session_busy",
	"draining",
	"kernel_failed",
	"sandbox_failed",
	"out_of_memory",
	"unavailable",
	"not_implemented",
	"internal",
	"other",
};
static const char *const classes[] = { "1xx", "2xx", "3xx", "4xx", "5xx" };

#define ROUTES_MAX 160

static struct {
	uint64_t counters[M_COUNTER_MAX_];
	uint64_t gauges[G_GAUGE_MAX_];
	struct histogram histograms[H_HISTOGRAM_MAX_];
	uint64_t executions[ARRAY_SIZE(languages)][ARRAY_SIZE(statuses)];
	uint64_t packages[ARRAY_SIZE(outcomes)];
	uint64_t errors[ARRAY_SIZE(types)];
	const char *routes[ROUTES_MAX]; /* the first is NULL: no route */
	size_t n_routes;
	uint64_t requests[ROUTES_MAX][ARRAY_SIZE(classes)];
} m = { .n_routes = 1 };

static struct {
	time_t start;
	int statm;
	DIR *fds;
} process = { .statm = -1 };

void metrics_setup(void)
{
	process.start = time(NULL);
	fd_close(process.statm);
	process.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (process.fds)
		(void)closedir(process.fds);
	process.fds = opendir("/proc/self/fd");
}

void metrics_reset(void)
{
	memset(&m, 0, sizeof(m));
	m.n_routes = 1;
}

void metric_add(enum metric_counter c, uint64_t n)
{
	m.counters[c] += n;
}

void metric_set(enum metric_gauge g, uint64_t v)
{
	m.gauges[g] = v;
}

void metric_observe(enum metric_histogram h, uint64_t ns)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(buckets) && ns > buckets[i].ns)
		i++;
	m.histograms[h].counts[i]++;
	m.histograms[h].sum_ns += ns;
}

static size_t find(const char *const *set, size_t n, const char *value)
{
	for (size_t i = 0; value && i + 1 < n; i++)
		if (strcmp(set[i], value) == 0)
			return i;
	return n - 1;
}
#define FIND(set, value) find(set, ARRAY_SIZE(set), value)

void metric_execution(const char *language, const char *status, uint64_t ns)
{
	m.executions[FIND(languages, language)][FIND(statuses, status)]++;
	metric_observe(H_EXECUTION, ns);
}

void metric_error(const char *type)
{
	m.errors[FIND(types, type)]++;
}

void metric_package(const char *outcome)
{
	m.packages[FIND(outcomes, outcome)]++;
}

void metric_http(const char *route, int status, uint64_t ns)
{
	size_t i = route ? 1 : 0;

	while (route && i < m.n_routes && strcmp(m.routes[i], route) != 0)
		i++;
	if (i == m.n_routes && i < ROUTES_MAX)
		m.routes[m.n_routes++] = route;
	if (i == ROUTES_MAX)
		i = 0;
	if (status >= 100 && status < 600)
		m.requests[i][status / 100 - 1]++;
	metric_observe(H_HTTP, ns);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void head(struct buf *out, const char *name, const char *help, const char *type)
{
	(void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void single(struct buf *out, const struct metric_name *n, const char *type, uint64_t v)
{
	head(out, n->name, n->help, type);
	(void)buf_printf(out, "%s %" PRIu64 "\n", n->name, v);
}

static void seconds(struct buf *out, const char *name, uint64_t ns)
{
	(void)buf_printf(out, "%s %" PRIu64 ".%09" PRIu64 "\n", name, ns / CLOCK_NS_PER_S,
			 ns % CLOCK_NS_PER_S);
}

static void write_histogram(struct buf *out, const struct metric_name *n, const struct histogram *h)
{
	uint64_t total = 0;
	char name[80];

	head(out, n->name, n->help, "histogram");
	for (size_t i = 0; i <= ARRAY_SIZE(buckets); i++) {
		total += h->counts[i];
		(void)buf_printf(out, "%s_bucket{le=\"%s\"} %" PRIu64 "\n", n->name,
				 i < ARRAY_SIZE(buckets) ? buckets[i].le : "+Inf", total);
	}
	(void)snprintf(name, sizeof(name), "%s_sum", n->name);
	seconds(out, name, h->sum_ns);
	(void)buf_printf(out, "%s_count %" PRIu64 "\n", n->name, total);
}

static void write_set(struct buf *out, const char *name, const char *help, const char *label,
		      const char *const *values, const uint64_t *counts, size_t n)
{
	head(out, name, help, "counter");
	for (size_t i = 0; i < n; i++)
		if (counts[i] > 0 || i == 0)
			(void)buf_printf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, values[i],
					 counts[i]);
}

static void write_executions(struct buf *out)
{
	static const char name[] = "sandbox_executions_total";

	head(out, name, "Executions by language and status.", "counter");
	for (size_t l = 0; l < ARRAY_SIZE(languages); l++)
		for (size_t s = 0; s < ARRAY_SIZE(statuses); s++)
			if (m.executions[l][s] > 0 || (l == 0 && s == 0))
				(void)buf_printf(out,
						 "%s{language=\"%s\",status=\"%s\"} %" PRIu64 "\n",
						 name, languages[l], statuses[s],
						 m.executions[l][s]);
}

static void write_requests(struct buf *out)
{
	static const char name[] = "caisson_http_requests_total";

	head(out, name, "Requests by route and class of status.", "counter");
	for (size_t r = 0; r < m.n_routes; r++)
		for (size_t c = 0; c < ARRAY_SIZE(classes); c++)
			if (m.requests[r][c] > 0 || (r == 0 && c == 3))
				(void)buf_printf(out, "%s{route=\"%s\",code=\"%s\"} %" PRIu64 "\n",
						 name, r ? m.routes[r] : "none", classes[c],
						 m.requests[r][c]);
}

/* Linux 6.2 tells the number as the size of the directory; before, it is counted. 0: unknown. */
static uint64_t open_descriptors(void)
{
	struct stat st;
	uint64_t n = 0;

	if (fstat(dirfd(process.fds), &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	rewinddir(process.fds);
	for (const struct dirent *d; (d = readdir(process.fds));)
		n += d->d_name[0] != '.';
	return n;
}

/* The second number of /proc/self/statm, in bytes. 0: unknown. */
static uint64_t resident_bytes(void)
{
	char text[128], *field = NULL, *rest = text;
	uint64_t pages;
	ssize_t n = process.statm < 0 ? -1 : pread(process.statm, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	for (int i = 0; i < 2 && rest; i++)
		field = strsep(&rest, " ");
	if (!field || num_parse_u64(field, 0, UINT64_MAX / 65536, &pages, NULL) < 0)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_process(struct buf *out)
{
	struct rusage u;
	uint64_t resident = resident_bytes();

	if (resident > 0)
		single(out,
		       &(struct metric_name){ "process_resident_memory_bytes",
					      "Memory of this process." },
		       "gauge", resident);

	uint64_t fds = process.fds ? open_descriptors() : 0;

	if (fds > 0)
		single(out, &(struct metric_name){ "process_open_fds", "Open descriptors." },
		       "gauge", fds);
	if (process.start)
		single(out,
		       &(struct metric_name){ "process_start_time_seconds",
					      "When this process started, in Unix time." },
		       "gauge", (uint64_t)process.start);
	if (getrusage(RUSAGE_SELF, &u) == 0) {
		static const char name[] = "process_cpu_seconds_total";
		uint64_t us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
			      (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);

		head(out, name, "Processor time of this process.", "counter");
		seconds(out, name, us * 1000);
	}
}

void metrics_write(struct buf *out)
{
	write_executions(out);
	write_histogram(out, &histogram_names[H_EXECUTION], &m.histograms[H_EXECUTION]);
	write_set(out, "sandbox_package_installs_total", "Package installations by outcome.",
		  "outcome", outcomes, m.packages, ARRAY_SIZE(outcomes));
	write_set(out, "sandbox_errors_total", "Errors by type.", "type", types, m.errors,
		  ARRAY_SIZE(types));
	write_requests(out);
	for (size_t i = 0; i < M_COUNTER_MAX_; i++)
		single(out, &counter_names[i], "counter", m.counters[i]);
	for (size_t i = 0; i < G_GAUGE_MAX_; i++)
		single(out, &gauge_names[i], "gauge", m.gauges[i]);
	for (size_t i = H_EXECUTION + 1; i < H_HISTOGRAM_MAX_; i++)
		write_histogram(out, &histogram_names[i], &m.histograms[i]);
	single(out,
	       &(struct metric_name){ "caisson_log_lines_lost_total",
				      "Log lines that stderr did not take." },
	       "counter", log_lost());
	write_process(out);
	head(out, "caisson_build_info", "The version that runs.", "gauge");
	(void)buf_printf(out, "caisson_build_info{version=\"%s\"} 1\n", CAISSON_VERSION);
}
