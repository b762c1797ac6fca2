/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_metrics.c - The counts are those that were added, in a text that a strict reader of the
 * format accepts: every sample belongs to a declared metric, no series occurs twice, buckets add
 * up. (`promtool check metrics` checks the same on the running daemon.)
 */
#include "base/buf.h"
#include "base/fd.h"
#include "front/support/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static struct buf text = BUF_INIT(1 << 20);

static int reset(void **state)
{
	(void)state;
	metrics_reset();
	return 0;
}

struct unit_fixture unit_fixture = { reset, NULL };

static void write_all(void)
{
	buf_clear(&text);
	metrics_write(&text);
	assert_int_equal(text.err, 0);
}

/* The value of the series, which must be there exactly once. */
static double value(const char *series)
{
	char line[256];
	size_t n = (size_t)snprintf(line, sizeof(line), "\n%s ", series);
	const char *at = strstr(buf_str(&text), line);

	if (!at)
		fail_msg("%s is not there", series);
	assert_null(strstr(at + 1, line));
	return strtod(at + n, NULL);
}

#define assert_value(series, want) assert_true(value(series) == (want))

TEST(format)
{
	char *copy, *save = NULL, metric[128] = "", type[32] = "";
	size_t metrics = 0;

	metrics_setup();
	metric_execution("python", "ok", 1000);
	metric_http("/execute", 200, 1000);
	write_all();
	assert_int_equal(text.data[text.len - 1], '\n');
	copy = strdup(text.data);
	assert_non_null(copy);
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char name[128], kind[32];

		if (strncmp(line, "# HELP ", 7) == 0) {
			assert_int_equal(sscanf(line, "# HELP %127s", metric), 1);
			type[0] = '\0';
			assert_true(strlen(line) > 8 + strlen(metric));
			metrics++;
		} else if (line[0] == '#') {
			assert_int_equal(sscanf(line, "# TYPE %127s %31s", name, kind), 2);
			assert_string_equal(name, metric);
			(void)snprintf(type, sizeof(type), "%s", kind);
			/* Counters end in _total, and nothing else does. */
			const char *end = strlen(name) > 6 ? name + strlen(name) - 6 : "";

			assert_int_equal(strcmp(type, "counter") == 0, strcmp(end, "_total") == 0);
		} else {
			assert_true(type[0] != '\0');
			assert_memory_equal(line, metric, strlen(metric));
			assert_non_null(strchr("{ _", line[strlen(metric)]));
			assert_non_null(strrchr(line, ' '));
		}
	}
	free(copy);
	assert_in_range(metrics, 25, 80);
	/* The names of the service before this one. */
	(void)value("sandbox_executions_total{language=\"python\",status=\"ok\"}");
	(void)value("sandbox_execution_duration_seconds_count");
	(void)value("sandbox_package_installs_total{outcome=\"installed\"}");
	(void)value("sandbox_errors_total{type=\"exception\"}");
	assert_true(value("process_resident_memory_bytes") > 100000);
	assert_true(value("process_open_fds") > 3);
	assert_true(value("process_start_time_seconds") > 1.6e9);
	assert_value("caisson_build_info{version=\"" CAISSON_VERSION "\"}", 1);
}

TEST(counts)
{
	metric_add(M_POOL_HITS, 2);
	metric_add(M_POOL_HITS, 3);
	metric_add(M_OUTPUT_BYTES, UINT64_C(1) << 40);
	metric_set(G_SANDBOXES, 7);
	metric_set(G_SANDBOXES, 4);
	metric_package("blocked");
	metric_error("wrong_type");
	metric_error("no such type");
	metric_error(NULL);
	write_all();
	assert_value("caisson_pool_hits_total", 5);
	assert_value("caisson_pool_misses_total", 0);
	assert_value("caisson_output_bytes_total", 1099511627776.0);
	assert_value("caisson_sandboxes", 4);
	assert_value("sandbox_package_installs_total{outcome=\"blocked\"}", 1);
	assert_value("sandbox_errors_total{type=\"wrong_type\"}", 1);
	assert_value("sandbox_errors_total{type=\"other\"}", 2);
}

TEST(executions)
{
	metric_execution("python", "ok", 1000000);
	metric_execution("python", "timeout", 30000000001);
	metric_execution("bash", "ok", 0);
	metric_execution("cobol\"\n", "ok", 1000001);
	metric_execution("r", NULL, UINT64_C(1) << 60);
	write_all();
	assert_value("sandbox_executions_total{language=\"python\",status=\"ok\"}", 1);
	assert_value("sandbox_executions_total{language=\"python\",status=\"timeout\"}", 1);
	assert_value("sandbox_executions_total{language=\"other\",status=\"ok\"}", 1);
	assert_value("sandbox_executions_total{language=\"r\",status=\"other\"}", 1);
	/* A bound belongs to its own bucket; buckets are cumulative. */
	assert_value("sandbox_execution_duration_seconds_bucket{le=\"0.0001\"}", 1);
	assert_value("sandbox_execution_duration_seconds_bucket{le=\"0.001\"}", 2);
	assert_value("sandbox_execution_duration_seconds_bucket{le=\"0.0025\"}", 3);
	assert_value("sandbox_execution_duration_seconds_bucket{le=\"30\"}", 3);
	assert_value("sandbox_execution_duration_seconds_bucket{le=\"60\"}", 4);
	assert_value("sandbox_execution_duration_seconds_bucket{le=\"120\"}", 4);
	assert_value("sandbox_execution_duration_seconds_bucket{le=\"+Inf\"}", 5);
	assert_value("sandbox_execution_duration_seconds_count", 5);
	assert_true(value("sandbox_execution_duration_seconds_sum") > 1.15e9);
}

TEST(http)
{
	static char paths[400][16];

	metric_http("/execute", 200, 1);
	metric_http("/execute", 204, 1);
	metric_http("/execute", 422, 1);
	metric_http(NULL, 404, 1);
	metric_http("/health", 0, 1); /* the client left before an answer */
	write_all();
	assert_value("caisson_http_requests_total{route=\"/execute\",code=\"2xx\"}", 2);
	assert_value("caisson_http_requests_total{route=\"/execute\",code=\"4xx\"}", 1);
	assert_value("caisson_http_requests_total{route=\"none\",code=\"4xx\"}", 1);
	assert_value("caisson_http_request_duration_seconds_count", 5);
	/* More routes than there is room for: counted, and nothing grows. */
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "/p%zu", i);
		metric_http(paths[i], 200, 1);
	}
	write_all();
	assert_value("caisson_http_requests_total{route=\"/p0\",code=\"2xx\"}", 1);
	assert_true(value("caisson_http_requests_total{route=\"none\",code=\"2xx\"}") > 100);
	assert_value("caisson_http_request_duration_seconds_count", 405);
}

int main(int argc, char **argv)
{
	int r = 0;

	/* For promtool: a text with something of everything. */
	if (argc > 1 && strcmp(argv[1], "--print") == 0) {
		metrics_setup();
		metric_execution("python", "ok", 1000000);
		metric_http("/execute", 200, 1000000);
		metric_http("/sessions/{session_id}", 404, 1000);
		write_all();
		(void)fputs(buf_str(&text), stdout);
	} else {
		r = unit_run();
	}
	buf_free(&text);
	return r;
}
