/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - The findings of `caisson doctor` about a daemon, for cli/doctor_daemon.c.
 *
 * A line for each finding: grade, name, finding and remedy, with tabs between them. Without a
 * daemon there is nothing to report.
 */
#include <stdio.h>
#include <string.h>

#include "remote/list.h"
#include "remote/table.h"
#include "remote/verb.h"

static void put(const char *grade, const char *name, const char *found, const char *fix)
{
	const char *const parts[] = { name, found, fix };
	_buf_ struct buf line = BUF_INIT(8192);

	(void)buf_puts(&line, grade);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		(void)buf_puts(&line, "\t");
		text_escape(&line, parts[i], strlen(parts[i]));
	}
	(void)printf("%s\n", buf_str(&line));
}

static void put_daemon(const struct session *s, const json_t *health)
{
	bool full = strcmp(list_text(json_object_get(health, "isolation"), "level"), "full") == 0;
	_buf_ struct buf found = BUF_INIT(1024);

	(void)buf_printf(&found, "version %s answers %s%s", list_text(health, "version"),
			 s->api.where, full ? "" : ", with weaker isolation");
	put(full ? "ok" : "weak", "daemon", buf_str(&found),
	    full ? "" : "start it without --without");
}

/* Tools are known once code has used the server. */
static void put_server(const json_t *server)
{
	uint64_t tools = list_uint(server, "tools"), refused = list_uint(server, "refused");
	bool failed = strcmp(list_text(server, "state"), "failed") == 0;
	_buf_ struct buf name = BUF_INIT(256), found = BUF_INIT(256);

	(void)buf_printf(&name, "mcp %.64s", list_text(server, "name"));
	(void)buf_printf(&found, "%s", list_text(server, "state"));
	if (json_object_get(server, "tools"))
		(void)buf_printf(&found, ", code may call %llu of %llu tools",
				 (unsigned long long)(tools - refused), (unsigned long long)tools);
	else
		(void)buf_puts(&found, ", no code has used it yet");
	put(refused || failed ? "weak" : "ok", buf_str(&name), buf_str(&found),
	    refused ? list_text(server, "note") :
	    failed  ? "the daemon's log has the reason" :
		      "");
}

int remote_report(struct session *s)
{
	struct problem none;
	json_auto_t *health = api_json(&s->api, "GET", "/health", NULL, &none);
	const json_t *one;
	size_t i;

	if (!health)
		return 0;
	put_daemon(s, health);
	json_auto_t *servers = api_json(&s->api, "GET", "/v1/servers", NULL, &none);

	json_array_foreach(json_object_get(servers, "servers"), i, one) put_server(one);
	return 0;
}
