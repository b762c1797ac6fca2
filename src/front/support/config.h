/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - The settings of `caisson serve`.
 *
 * One table describes every setting (option, kind, range, default, help); base/options.h describes
 * the rules. Each option has a variable (--max-body: CAISSON_MAX_BODY). Variables of other names
 * (MAX_EXECUTION_TIME, MAX_MEMORY_MB, BLOCKED_PACKAGES, LOG_LEVEL, MCP_SERVERS_CONFIG, and those of
 * buckets: AWS_REGION, COREASON_SANDBOX_S3_BUCKET and the like) count where neither the option nor
 * its variable is given. A wrong value stops the start with a line that names the option or
 * variable and the remedy.
 */
#ifndef CAISSON_FRONT_CONFIG_H
#define CAISSON_FRONT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "front/support/mounts.h"
#include "vault/index.h"

struct err;

#define CONFIG_LIST_MAX 32
#define CONFIG_BLOCKED_MAX 256

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

/* Lists end with NULL. */
struct config {
	const char *listen;             /* numeric "127.0.0.1:8001"; "none": no TCP */
	const char *socket;             /* unix socket; default STATE/caisson.sock; "none" */
	const char *state;              /* directory; default as for `caisson run` */
	const char *token_file;         /* NULL: no tokens */
	bool no_token;                  /* every caller who reaches --listen is served */
	const char *policy;             /* the operator's rules (policy/rules.h); NULL: none */
	const char *tls_cert, *tls_key; /* both or none */
	const char *egress_ca;          /* further CA certificates for the gate; NULL: none */
	/* Sources of secrets (vault/source.h); each may be NULL. */
	const char *secrets_file, *secrets_env, *secrets_command;
	const char *image;           /* host, dir:PATH, or a reference */
	const char *image_store;     /* directory of pulled images; NULL: the default place */
	const char *image_pull_when; /* missing, never; NULL: not given */
	bool image_pull;             /* pull images that the store lacks */
	uint64_t image_pull_ms;      /* longest time of a pull */
	const char *image_registries[CONFIG_LIST_MAX]; /* to pull from: patterns (image/ref.h) */
	const char *image_authfile, *image_ca;         /* of pulls; NULL: the default */
	const char *tools;           /* of MCP: default, all, or names, separated by commas */
	const char *mcp_auth_server; /* issuer of tokens for MCP clients; NULL: none is named */
	const char *mcp_url;         /* URL of /mcp for clients; NULL: the one they call */
	const char *mcp_user;        /* as root: user of MCP servers; NULL: of the first file */
	const char *mcp_configs[CONFIG_LIST_MAX];    /* files with mcpServers */
	const char *preload[CONFIG_LIST_MAX];        /* python modules, names checked */
	const char *egress_dns;                      /* resolver of the gate; NULL: resolv.conf's */
	const char *egress_private[CONFIG_LIST_MAX]; /* private ranges that egress may reach */
	const char *allow_hosts[CONFIG_LIST_MAX];    /* names, without a port */
	const char *allow_origins[CONFIG_LIST_MAX];  /* scheme://host[:port] */
	const char *blocked_packages[CONFIG_BLOCKED_MAX]; /* canonical names (PEP 503) */
	const char *allowed_packages[CONFIG_BLOCKED_MAX]; /* patterns; empty: all */
	const char *known_packages[CONFIG_BLOCKED_MAX];   /* patterns; not misspellings of others */
	const char *package_hosts[CONFIG_LIST_MAX];       /* where the index keeps its files */
	uint32_t without;                                 /* enum cell_without */
	const char *pip_index, *npm_registry;             /* URLs without credentials; NULL: none */
	const char *index_from[INDEX_KINDS];  /* where each of the two comes from; or NULL */
	const char *index_note[INDEX_KINDS];  /* a remark for the log; or NULL */
	const char *package_dir;              /* wheels and sdists; NULL: none */
	const char *package_pins;             /* file; NULL: none */
	const char *mounts[MOUNTS_MAX + 1];   /* SOURCE:PLACE[:MODE] */
	bool workspace_rw;                    /* sandboxes may write in place */
	bool package_wheels_only;             /* nothing is built */
	bool npm_scripts;                     /* npm's install scripts are run */
	uint64_t package_size;                /* bytes of a tree */
	uint64_t package_count, package_rate; /* of a closure; fetches per owner and hour */
	uint64_t package_timeout_ms, package_keep_ms;
	/* Buckets (docs/s3.md); NULL: not given. */
	const char *s3_bucket; /* for files that executions left: BUCKET, or s3://BUCKET/PREFIX */
	const char *s3_endpoint, *s3_region, *s3_style, *s3_ca;
	const char *s3_credentials, *s3_profile;
	uint64_t s3_link_ms;                            /* how long a link is valid */
	const char *workspace_buckets[CONFIG_LIST_MAX]; /* [OWNER/]NAME=s3://BUCKET/PREFIX */
	uint64_t package_store;                         /* bytes of all trees */
	uint64_t pool;             /* ready kernels to keep; never more than max_sandboxes */
	uint64_t max_sandboxes;    /* at once */
	uint64_t idle_ms;          /* a sandbox that was idle for that long is ended */
	uint64_t timeout_ms;       /* default of executions; never more than the next */
	uint64_t max_timeout_ms;   /* the most that a request may ask for */
	uint64_t memory_bytes;     /* per sandbox, as the next four */
	uint32_t cpu_milli;        /* 1000: one processor */
	uint64_t pids, disk_bytes; /* processes and threads; writable layer */
	uint64_t max_output;       /* characters returned per stream */
	uint64_t max_body;         /* bytes of a request body */
	uint64_t egress_connections, egress_rate, egress_bytes; /* of a sandbox; bytes 0: no end */
	uint64_t drain_ms; /* on SIGTERM: how long running executions may take to end */
	bool mcp_discover; /* also the files of other hosts */
	enum log_level log_level;
	bool log_json; /* default: unless stderr is a terminal */
	bool help, version;
	struct options parsed; /* where each value came from; strings, see config_free() */
};

/*
 * config_parse() - Defaults, then @env, then the arguments.
 * @argv: argv[0] is the verb and not looked at.
 * @env: like environ.
 * @tools: checks the value of --tools, and returns 0 or a negative errno; NULL: any value is good.
 *
 * Strings are borrowed from @argv and @env, or owned by @ret. With --help or --version the rest is
 * not looked at. Return: 0, or -EINVAL (-ENOMEM); @ret may be given to config_free() either way.
 */
typedef int config_check_fn(const char *v, struct err *e);
int config_parse(int argc, char **argv, char **env, config_check_fn *tools, struct config *ret,
		 struct err *e);

/* config_free() - Release what @c owns. A daemon keeps its configuration for ever. */
void config_free(struct config *c);

/* config_usage() - The options of `caisson serve --help`, and the variables. */
void config_usage(FILE *out);

#endif
