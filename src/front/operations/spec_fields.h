/* SPDX-License-Identifier: Apache-2.0 */
/* spec_fields.h - A SandboxSpec without its name, for the operations that make a sandbox. */
#ifndef CAISSON_FRONT_SPEC_FIELDS_H
#define CAISSON_FRONT_SPEC_FIELDS_H

#include "front/operations/operations.h"
#include "front/spec/code_spec.h"

/* A list of words, up to @max_ of them. */
#define WORDS_FIELD(in_, name_, max_, example_, text_)                                             \
	FIELD(in_, STRING_LIST, name_, 0, max_, text_, .example = (example_))

#define SERVERS_FIELD(in_)                                                                         \
	WORDS_FIELD(                                                                               \
		in_, "servers", CODE_SERVERS_MAX, "[\"github\"]",                                  \
		"MCP servers of the daemon's configuration whose tools its code may call. With "   \
		"an empty list code has memory and saved tools, and no server's tools.")

#define SPEC_FIELDS(in_)                                                                           \
	FIELD(in_, STRING, "image", 1, 512,                                                        \
	      "Image that it is made from: a pulled one, or the daemon's own.",                    \
	      .example = "\"python:3.11-slim\""),                                                  \
		FIELD(in_, INTEGER, "memory_mib", 16, 1048576,                                     \
		      "Memory of everything in it together.", .example = "512"),                   \
		FIELD(in_, NUMBER, "cpus", 0.01, 1024, "Processors, also a part of one.",          \
		      .example = "1"),                                                             \
		FIELD(in_, INTEGER, "pids", 1, 32768, "Processes and threads.", .example = "128"), \
		FIELD(in_, INTEGER, "disk_mib", 1, 1048576, "Size of what can be written.",        \
		      .example = "1024"),                                                          \
		FIELD(in_, STRING, "oom", 1, 16,                                                   \
		      "When its memory is used up, this ends: `process` (default), the largest "   \
		      "process, and files stay; `sandbox`, everything in it, files too.",          \
		      .example = "\"process\""),                                                   \
		FIELD(in_, STRING_MAP, "env", 0, 256,                                              \
		      "Variables for everything that runs in it. Their values are shown nowhere.", \
		      .example = "{\"MODE\": \"test\"}"),                                          \
		FIELD(in_, STRING_MAP, "labels", 0, 64, "Words of your own, to find it by.",       \
		      .example = "{\"team\": \"red\"}"),                                           \
		FIELD(in_, INTEGER, "timeout_seconds", 1, YEAR_S,                                  \
		      "When it is removed, whatever runs in it. Without it: never; "               \
		      "see `extend`.",                                                             \
		      .example = "3600"),                                                          \
		FIELD(in_, INTEGER, "idle_seconds", 1, YEAR_S,                                     \
		      "It is removed when it was idle for this time. Default: the daemon's "       \
		      "--idle-timeout.",                                                           \
		      .example = "300"),                                                           \
		SERVERS_FIELD(in_),                                                                \
		FIELD(in_, OBJECT, "tools", 0, 0,                                                  \
		      "Rules that take away from what the operator allows: `allow`, `deny` and "   \
		      "`approve` are lists of patterns of server.tool; `budget` (calls in all) "   \
		      "and `rate` (calls in a minute) are numbers, or objects of numbers by "      \
		      "pattern; `max_argument_bytes`, `max_result_bytes`, `call_seconds`, "        \
		      "`approve_seconds`.",                                                        \
		      .example = "{\"allow\": [\"github.get_*\"], \"budget\": 20}"),               \
		FIELD(in_, STRING, "project", 0, 64,                                               \
		      "Memory and saved functions of its code are shared by your sandboxes "       \
		      "of the same project. Letters, digits, _ . and -; without it: default.",     \
		      .example = "\"billing\""),                                                   \
		FIELD(in_, TEXT_OR_OBJECT, "workspace", 0, 512,                                    \
		      "A workspace of yours, at /workspace: `notes`, `notes:ro`, or an object "    \
		      "with `name`, `mode` (`cow`: a copy on write, the default; `ro`; `rw`), "    \
		      "`allow` and `deny` (patterns of paths) and `write` (directories that stay " \
		      "writable).",                                                                \
		      .example = "{\"name\": \"notes\", \"deny\": [\"*.pem\"]}"),                  \
		WORDS_FIELD(in_, "mounts", 16, "[\"/data\", \"/models:ro\"]",                      \
			    "Which of the operator's mounts it has, by their places: `/data`, "    \
			    "`/data:ro`, `/data:rw`. Empty: none. Absent: all that the policy "    \
			    "lets you have."),                                                     \
		WORDS_FIELD(                                                                       \
			in_, "secrets", 64, "[\"OPENAI_API_KEY\"]",                                \
			"Secrets of the operator, by name: `NAME` is a variable with its value; "  \
			"`NAME@host` one with a placeholder, for which the value is put into "     \
			"headers of requests to that host alone."),                                \
		WORDS_FIELD(                                                                       \
			in_, "egress", 256, "[\"pypi.org\", \"*.example.org\"]",                   \
			"Hosts that it may reach, by name: `api.example.com` (ports 80 and 443), " \
			"`git.example.net:22`, `*.example.org`. Empty or absent: nothing.")

#endif
