/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wording.c - Errors and hints of the daemon in the words of the command.
 *
 * The daemon answers every client in the same words, and these name requests: "make it first: POST
 * /v1/workspaces". A person who typed a command has another way to do that. Each row is a phrase of
 * the daemon; longer ones come before their parts.
 */
#include "remote/wording.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h" /* ARRAY_SIZE */

#define TEXT_MAX 4096u

static const struct {
	const char *api, *command;
} phrases[] = {
	{ "(POST /v1/sandboxes, PUT /v1/sandboxes/NAME/egress, or create_sandbox if it is offered)",
	  "('caisson create NAME --egress HOST', 'caisson net NAME --egress HOST')" },
	{ "(POST /v1/sandboxes, or create_sandbox if it is offered)", "('caisson create')" },
	{ "see GET /v1/sandboxes/{name}/executions; ", "" },
	{ "see GET /v1/sandboxes/{name}/processes; ", "" },
	{ "see GET /v1/sandboxes", "'caisson ps -a' lists them" },
	{ "see GET /sessions", "'caisson ps -a' lists them" },
	{ "see GET /v1/workspaces", "'caisson workspace ls' lists them" },
	{ "POST /v1/workspaces", "caisson workspace create NAME" },
	{ "make the sandbox with {\"workspace\": {\"name\": ..., \"mode\": \"cow\"}}",
	  "'caisson create NAME --workspace WORKSPACE' makes one with a copy" },
	{ "GET /v1/workspaces/{name} says", "'caisson workspace ls' says" },
	{ "GET /v1/approvals lists them", "'caisson approve' lists them" },
	{ "GET /v1/approvals", "caisson approve" },
	{ "POST /v1/sandboxes/{name}/ports/{port} opens", "'caisson port NAME PORT' opens" },
	{ "(DELETE /v1/sandboxes/{name})", "('caisson rm NAME')" },
	{ "GET /v1/policy has your ceilings", "the operator's policy sets your ceilings" },
	{ "timeout_seconds when it is made, or POST /v1/sandboxes/{name}/extend before its expires_at",
	  "--timeout of 'caisson create'" },
	{ "PUT /v1/sandboxes/{name}/files", "caisson cp" },
	{ "parents=true makes the missing directories above it",
	  "'caisson exec --name NAME -- mkdir -p DIRECTORY' makes the missing directory" },
	{ "'memory_mib'", "--memory in MiB" },
	{ "'disk_mib'", "--disk in MiB" },
	{ "'timeout_seconds'", "--timeout in seconds" },
	{ "'idle_seconds'", "--idle in seconds" },
	{ " memory_mib", " --memory" },
	{ " disk_mib", " --disk" },
	{ " timeout_seconds", " --timeout" },
	{ " idle_seconds", " --idle" },
};

void wording(const char *text, char *out, size_t size)
{
	_buf_ struct buf b = BUF_INIT(TEXT_MAX);

	while (*text && !b.err) {
		size_t i = 0;

		while (i < ARRAY_SIZE(phrases) &&
		       strncmp(text, phrases[i].api, strlen(phrases[i].api)) != 0)
			i++;
		if (i < ARRAY_SIZE(phrases)) {
			(void)buf_puts(&b, phrases[i].command);
			text += strlen(phrases[i].api);
		} else {
			(void)buf_append(&b, text++, 1);
		}
	}
	(void)snprintf(out, size, "%s", buf_str(&b));
}
