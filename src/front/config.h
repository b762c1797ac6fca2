/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - What `caisson serve` was asked for: flags first, then environment, then defaults.
 *
 * One table describes every setting (flag, kind, range, default, help); the name of its environment
 * variable follows from the flag (--max-body: CAISSON_MAX_BODY), and parser and --help both read
 * it. Four variables of other names (MAX_EXECUTION_TIME, MAX_MEMORY_MB, BLOCKED_PACKAGES, LOG_LEVEL)
 * come after the CAISSON_ ones. A variable that is empty counts as not set. A value that is wrong
 * stops the start with a line that names the flag or variable and the fix.
 */
#ifndef CAISSON_FRONT_CONFIG_H
#define CAISSON_FRONT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define CONFIG_LIST_MAX 32
#define CONFIG_BLOCKED_MAX 256

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

/* Lists end with NULL. */
struct config {
	const char *listen;                   /* numeric "127.0.0.1:8001"; "none": no TCP */
	const char *socket;                   /* unix socket; default STATE/caisson.sock; "none" */
	const char *state;                    /* directory; default as for `caisson run` */
	const char *token_file;               /* NULL: no tokens */
	const char *tls_cert, *tls_key;       /* both or none */
	const char *image;                    /* host or dir:PATH */
	const char *preload[CONFIG_LIST_MAX]; /* python modules, names checked */
	const char *allow_hosts[CONFIG_LIST_MAX];         /* names, without a port */
	const char *allow_origins[CONFIG_LIST_MAX];       /* scheme://host[:port] */
	const char *blocked_packages[CONFIG_BLOCKED_MAX]; /* canonical names (PEP 503) */
	uint64_t pool;             /* ready kernels to keep; never more than max_sandboxes */
	uint64_t max_sandboxes;    /* at once */
	uint64_t idle_ms;          /* a sandbox that nobody used for so long is ended */
	uint64_t timeout_ms;       /* of an execution that names none; never more than the next */
	uint64_t max_timeout_ms;   /* what a request may ask for */
	uint64_t memory_bytes;     /* per sandbox, as the next four */
	uint32_t cpu_milli;        /* 1000: one processor */
	uint64_t pids, disk_bytes; /* processes and threads; writable layer */
	uint64_t max_output;       /* characters returned per stream */
	uint64_t max_body;         /* bytes of a request body */
	uint64_t drain_ms;         /* on SIGTERM: how long running executions may take to end */
	enum log_level log_level;
	bool log_json; /* default: unless stderr is a terminal */
	bool help, version;
	void *owned; /* strings made here, see config_free() */
};

/*
 * config_parse() - Defaults, then @env, then the arguments.
 * @argv: argv[0] is the verb and not looked at.
 * @env: like environ.
 *
 * Strings are borrowed from @argv and @env, or owned by @ret. With --help or --version the rest is
 * not looked at. Return: 0, or -EINVAL (-ENOMEM); @ret may be given to config_free() either way.
 */
int config_parse(int argc, char **argv, char **env, struct config *ret, struct err *e);

/* config_free() - Release what @c owns. A daemon keeps its configuration for ever. */
void config_free(struct config *c);

/* config_usage() - The option lines of `caisson serve --help`, one call per line. */
void config_usage(void (*put)(const char *line, void *arg), void *arg);

#endif
