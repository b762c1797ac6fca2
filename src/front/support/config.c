/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - The settings of `caisson serve`, and how they are collected.
 *
 * The table below is read by base/options.c, in four passes, each overriding the one before:
 * defaults, the variables of the older service, CAISSON_ variables, options. At the end the
 * settings are compared with each other: two that were given and contradict each other are refused;
 * a default that contradicts a given one is adapted.
 */
#include "front/support/config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"
#include "client/program.h"
#include "front/support/config_check.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define HOUR_MS UINT64_C(3600000)
#define LIST_ITEMS (CONFIG_LIST_MAX - 1)

#define AT(member) offsetof(struct config, member)

static int set_level(void *target, const char *v, struct err *e)
{
	struct config *c = target;
	static const struct {
		const char *name;
		enum log_level level;
	} names[] = {
		{ "debug", LOG_LEVEL_DEBUG },     { "info", LOG_LEVEL_INFO },
		{ "warning", LOG_LEVEL_WARNING }, { "warn", LOG_LEVEL_WARNING },
		{ "error", LOG_LEVEL_ERROR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(v, names[i].name) == 0) {
			c->log_level = names[i].level;
			return 0;
		}
	return err_say(e, -EINVAL,
		       "'%.64s' is not a level; the levels are: debug, info, warning, error", v);
}

static int set_format(void *target, const char *v, struct err *e)
{
	struct config *c = target;
	bool json = strcmp(v, "json") == 0;

	if (!json && strcmp(v, "text") != 0)
		return err_say(e, -EINVAL, "'%.64s' is not a format; the formats are: text, json",
			       v);
	c->log_json = json;
	return 0;
}

/* The others protect the machine and the other owners from code; this one bounds what code uses. */
static int set_without(void *target, const char *v, struct err *e)
{
	struct config *c = target;

	if (spec_without(v, &c->without, e) < 0)
		return -EINVAL;
	return c->without & ~(uint32_t)CELL_WITHOUT_CGROUP ?
		       err_say(e, -EINVAL, "a daemon can only be without cgroup") :
		       0;
}

static int check_pull(const char *v, struct err *e)
{
	return strcmp(v, "missing") == 0 || strcmp(v, "never") == 0 ?
		       0 :
		       err_say(e, -EINVAL, "'%.64s' is not one of: missing, never", v);
}

/* Layers above know the names of tools: see config_parse(). */
static config_check_fn *tools_checker;

static int check_tools(const char *v, struct err *e)
{
	return tools_checker ? tools_checker(v, e) : 0;
}

static const struct option_row rows[] = {
	{ "--listen", NULL, "ADDR:PORT", OPTION_TEXT, AT(listen), .check = config_check_address,
	  .initial = "127.0.0.1:8001", .help = "address to serve HTTP on, or none" },
	{ "--socket", NULL, "PATH", OPTION_TEXT, AT(socket), .check = config_check_socket,
	  .help = "unix socket to serve HTTP on, or none (caisson.sock in the state directory)" },
	{ "--state", NULL, "DIR", OPTION_PATH, AT(state),
	  .help = "directory of the journal, database, audit log and socket (as for caisson run)" },
	{ "--token-file", NULL, "FILE", OPTION_TEXT, AT(token_file),
	  .help = "tokens of clients, one NAME:TOKEN per line, mode 600 (without it: only you "
		  "and root)" },
	{ "--no-token", NULL, NULL, OPTION_SWITCH, AT(no_token),
	  .help = "serve every caller who reaches --listen, and ask none for a token" },
	{ "--policy", NULL, "FILE", OPTION_TEXT, AT(policy),
	  .help = "ceilings for all callers and for each, see caisson-policy(5); read again on "
		  "SIGHUP" },
	{ "--tls-cert", NULL, "FILE", OPTION_TEXT, AT(tls_cert),
	  .help = "certificate chain in PEM: serve HTTPS on --listen" },
	{ "--tls-key", NULL, "FILE", OPTION_TEXT, AT(tls_key),
	  .help = "the certificate's private key in PEM" },
	{ "--allow-host", NULL, "NAME", OPTION_COMMAS, AT(allow_hosts), .check = config_check_host,
	  .max = LIST_ITEMS,
	  .help = "additional name by which clients may call the daemon; may be repeated" },
	{ "--allow-origin", NULL, "URL", OPTION_COMMAS, AT(allow_origins),
	  .check = config_check_origin, .max = LIST_ITEMS,
	  .help = "additional web origin whose pages may call the daemon; may be repeated" },
	{ "--image", NULL, "IMAGE", OPTION_TEXT, AT(image), .check = config_check_image,
	  .initial = "host",
	  .help = "default image of sandboxes: host, dir:PATH, or a pulled image" },
	{ "--image-store", NULL, "DIR", OPTION_PATH, AT(image_store),
	  .help = "directory of pulled images (as for caisson image)" },
	{ "--image-pull", NULL, "WHEN", OPTION_TEXT, AT(image_pull_when), .check = check_pull,
	  .help = "pull images that callers name: missing or never (missing, if none but you may call)" },
	{ "--image-registry", NULL, "HOST[:PORT]", OPTION_COMMAS, AT(image_registries),
	  .check = config_check_registry, .max = LIST_ITEMS, .initial = "docker.io",
	  .help = "registries to pull from, as in ghcr.io or *.example.com; may be repeated" },
	{ "--image-authfile", NULL, "FILE", OPTION_PATH, AT(image_authfile),
	  .help = "credentials for these registries (as for caisson image pull)" },
	{ "--image-ca", NULL, "FILE", OPTION_PATH, AT(image_ca),
	  .help = "CA certificates for these registries, in PEM (those of this machine)" },
	{ "--image-pull-timeout", NULL, "TIME", OPTION_DURATION, AT(image_pull_ms), .min = 1000,
	  .max = 24 * HOUR_MS, .initial = "600s", .help = "longest time of one pull" },
	{ "--preload", NULL, "MODULES", OPTION_COMMAS, AT(preload), .check = config_check_module,
	  .max = LIST_ITEMS, .help = "python modules to import in advance, as in numpy,pandas" },
	{ "--pool", NULL, "N", OPTION_NUMBER, AT(pool), .max = 1000, .initial = "4",
	  .help = "interpreters to keep ready, each in a cell of its own" },
	{ "--max-sandboxes", NULL, "N", OPTION_NUMBER, AT(max_sandboxes), .min = 1, .max = 4000,
	  .initial = "1000", .help = "sandboxes at once; further requests get 429" },
	{ "--idle-timeout", NULL, "TIME", OPTION_DURATION, AT(idle_ms), .min = 1000,
	  .max = 168 * HOUR_MS, .initial = "300s", .help = "end a session that was idle for TIME" },
	{ "--timeout", NULL, "TIME", OPTION_DURATION, AT(timeout_ms), .min = 1, .max = 24 * HOUR_MS,
	  .initial = "30s", .help = "wall time of an execution without a timeout of its own" },
	{ "--max-timeout", NULL, "TIME", OPTION_DURATION, AT(max_timeout_ms), .min = 1000,
	  .max = 24 * HOUR_MS, .initial = "120s",
	  .help = "longest wall time that a request may ask for" },
	{ "--memory", NULL, "SIZE", OPTION_SIZE, AT(memory_bytes), .min = 16 * MIB,
	  .max = 1024 * GIB, .initial = "512M", .help = "memory of a sandbox" },
	{ "--cpus", NULL, "N", OPTION_CPUS, AT(cpu_milli), .min = 10, .max = 1024000,
	  .initial = "1", .help = "processors that a sandbox may use, as in 0.5" },
	{ "--pids", NULL, "N", OPTION_NUMBER, AT(pids), .min = 1, .max = 32768, .initial = "128",
	  .help = "processes and threads of a sandbox" },
	{ "--disk", NULL, "SIZE", OPTION_SIZE, AT(disk_bytes), .min = MIB, .max = 1024 * GIB,
	  .initial = "1G", .help = "size of a sandbox's writable layer, which is kept in memory" },
	{ "--without", NULL, "LAYER", OPTION_CUSTOM, 0, .set = set_without,
	  .help = "run without a layer: cgroup, which bounds sandboxes as a whole; for users who "
		  "have none" },
	{ "--max-output", NULL, "CHARS", OPTION_NUMBER, AT(max_output), .min = 1, .max = 64 * MIB,
	  .initial = "10000", .help = "characters returned of each stream" },
	{ "--max-body", NULL, "SIZE", OPTION_SIZE, AT(max_body), .min = KIB, .max = GIB,
	  .initial = "8M", .help = "largest size of a request's body" },
	{ "--blocked-packages", NULL, "NAMES", OPTION_COMMAS, AT(blocked_packages),
	  .check = config_check_package, .max = CONFIG_BLOCKED_MAX - 1,
	  .initial = "os,subprocess,sys,importlib,ctypes,multiprocessing,threading",
	  .help = "packages that pip_install refuses, or none" },
	{ "--pip-index", NULL, "URL", OPTION_TEXT, AT(pip_index), .check = config_check_index,
	  .help = "index of python packages, or none (that of this machine's pip, else pypi.org)" },
	{ "--npm-registry", NULL, "URL", OPTION_TEXT, AT(npm_registry), .check = config_check_index,
	  .help = "registry of javascript packages, or none (that of this machine's npm, else "
		  "npmjs.org)" },
	{ "--package-host", NULL, "NAME[:PORT]", OPTION_COMMAS, AT(package_hosts),
	  .check = config_check_server, .max = LIST_ITEMS,
	  .help = "additional host that serves files of the index; may be repeated" },
	{ "--package-dir", NULL, "DIR", OPTION_PATH, AT(package_dir),
	  .help = "directory of wheels and sdists, in addition to the index or instead of it" },
	{ "--allowed-packages", NULL, "NAMES", OPTION_COMMAS, AT(allowed_packages),
	  .check = config_check_pattern, .max = CONFIG_BLOCKED_MAX - 1,
	  .help = "the only packages that may be installed, as in numpy,types-*" },
	{ "--known-packages", NULL, "NAMES", OPTION_COMMAS, AT(known_packages),
	  .check = config_check_pattern, .max = CONFIG_BLOCKED_MAX - 1,
	  .help = "packages to allow although their names look like misspellings of others" },
	{ "--package-pins", NULL, "FILE", OPTION_TEXT, AT(package_pins),
	  .help = "the only packages that may be installed, each NAME==VERSION sha256:HASH" },
	{ "--mount", NULL, "SOURCE:PLACE[:MODE]", OPTION_COMMAS, AT(mounts),
	  .check = config_check_mount, .max = MOUNTS_MAX,
	  .help = "put a directory into every sandbox; MODE: ro, rw, rw-unprotected; may be "
		  "repeated" },
	{ "--workspace-rw", NULL, NULL, OPTION_SWITCH, AT(workspace_rw),
	  .help = "let sandboxes mount workspaces rw even if the quota cannot be enforced" },
	{ "--package-wheels-only", NULL, NULL, OPTION_SWITCH, AT(package_wheels_only),
	  .help = "refuse packages that have to be built" },
	{ "--npm-scripts", NULL, NULL, OPTION_SWITCH, AT(npm_scripts),
	  .help = "run install scripts of javascript packages, in the cell that fetches them" },
	{ "--package-size", NULL, "SIZE", OPTION_SIZE, AT(package_size), .min = MIB,
	  .max = 64 * GIB, .initial = "1G", .help = "largest size of one installation" },
	{ "--package-count", NULL, "N", OPTION_NUMBER, AT(package_count), .min = 1, .max = 5000,
	  .initial = "2000", .help = "most packages of one installation, including dependencies" },
	{ "--package-rate", NULL, "N", OPTION_NUMBER, AT(package_rate), .min = 1, .max = 100000,
	  .initial = "60", .help = "installations per caller and hour that need a download" },
	{ "--package-timeout", NULL, "TIME", OPTION_DURATION, AT(package_timeout_ms), .min = 1000,
	  .max = HOUR_MS, .initial = "300s",
	  .help = "longest time of a download, including builds" },
	{ "--package-store", NULL, "SIZE", OPTION_SIZE, AT(package_store), .min = MIB,
	  .max = 1024 * GIB, .initial = "10G",
	  .help = "size of all installed packages; beyond it the longest unused are removed" },
	{ "--package-keep", NULL, "TIME", OPTION_DURATION, AT(package_keep_ms), .min = 1000,
	  .max = 8760 * HOUR_MS, .initial = "720h",
	  .help = "remove installed packages that no sandbox used for TIME" },
	{ "--s3-bucket", NULL, "BUCKET", OPTION_TEXT, AT(s3_bucket), .check = config_check_place,
	  .help = "bucket for files of executions, with links to them: BUCKET or s3://BUCKET/PREFIX" },
	{ "--s3-endpoint", NULL, "URL", OPTION_TEXT, AT(s3_endpoint), .check = config_check_url,
	  .help = "S3 server, as in https://minio.example:9000 (Amazon)" },
	{ "--s3-region", NULL, "REGION", OPTION_TEXT, AT(s3_region), .check = config_check_word,
	  .help = "region of the buckets (us-east-1)" },
	{ "--s3-style", NULL, "STYLE", OPTION_TEXT, AT(s3_style), .check = config_check_style,
	  .help = "address style of buckets: path or virtual (virtual for Amazon, path "
		  "elsewhere)" },
	{ "--s3-credentials", NULL, "FILE", OPTION_TEXT, AT(s3_credentials),
	  .help = "keys in the format of Amazon's tools, mode 0600 (AWS_ACCESS_KEY_ID, ...)" },
	{ "--s3-profile", NULL, "NAME", OPTION_TEXT, AT(s3_profile), .check = config_check_word,
	  .help = "section of the file of --s3-credentials (default)" },
	{ "--s3-ca", NULL, "FILE", OPTION_TEXT, AT(s3_ca),
	  .help = "CA certificates for the S3 server, in PEM (those of this machine)" },
	{ "--s3-link-time", NULL, "TIME", OPTION_DURATION, AT(s3_link_ms), .min = 1000,
	  .max = 168 * HOUR_MS, .initial = "1h",
	  .help = "how long links to files in the bucket are valid" },
	{ "--workspace-bucket", NULL, "NAME=PLACE", OPTION_COMMAS, AT(workspace_buckets),
	  .check = config_check_mapping, .max = LIST_ITEMS,
	  .help = "keep the workspace [OWNER/]NAME in s3://BUCKET/PREFIX; may be repeated" },
	{ "--tools", NULL, "NAMES", OPTION_TEXT, AT(tools), .check = check_tools,
	  .initial = "default",
	  .help = "tools that MCP clients are offered: default, all, or names" },
	{ "--egress-ca", NULL, "FILE", OPTION_TEXT, AT(egress_ca),
	  .help = "additional CA certificates for hosts that secrets are bound to, in PEM" },
	{ "--secrets-file", NULL, "FILE", OPTION_TEXT, AT(secrets_file),
	  .help = "secrets for sandboxes, one NAME=VALUE per line; mode 0600" },
	{ "--secrets-env", NULL, "PREFIX", OPTION_TEXT, AT(secrets_env),
	  .check = config_check_prefix,
	  .help = "environment variables PREFIX... are secrets, named by the rest of their names" },
	{ "--secrets-command", NULL, "COMMAND", OPTION_TEXT, AT(secrets_command),
	  .check = config_check_command,
	  .help = "program that prints secrets in the format of the file; run without a shell" },
	{ "--mcp-auth-server", NULL, "URL", OPTION_TEXT, AT(mcp_auth_server),
	  .check = config_check_url,
	  .help = "issuer of tokens, reported to MCP clients that have no token (RFC 9728)" },
	{ "--mcp-url", NULL, "URL", OPTION_TEXT, AT(mcp_url), .check = config_check_url,
	  .help = "URL of /mcp as clients know it, if a proxy is in front (that of the request)" },
	{ "--mcp-config", NULL, "FILE", OPTION_COMMAS, AT(mcp_configs), .check = config_check_path,
	  .max = LIST_ITEMS,
	  .help = "file of MCP servers (mcpServers) whose tools code may call; may be repeated" },
	{ "--mcp-discover", NULL, NULL, OPTION_SWITCH, AT(mcp_discover),
	  .help = "also use MCP servers in the files of Claude, Cursor, VS Code, Windsurf and "
		  "others" },
	{ "--mcp-user", NULL, "NAME", OPTION_TEXT, AT(mcp_user), .check = config_check_user,
	  .help = "as root: user to run MCP servers as (the owner of the first --mcp-config "
		  "file)" },
	{ "--egress-private", NULL, "NETS", OPTION_COMMAS, AT(egress_private),
	  .check = config_check_net, .max = LIST_ITEMS,
	  .help = "private ranges that sandboxes may reach by name, as in 10.1.0.0/16; may be "
		  "repeated" },
	{ "--egress-dns", NULL, "ADDR:PORT", OPTION_TEXT, AT(egress_dns),
	  .check = config_check_resolver,
	  .help = "resolver for the names that sandboxes may reach (those of /etc/resolv.conf)" },
	{ "--egress-connections", NULL, "N", OPTION_NUMBER, AT(egress_connections), .min = 1,
	  .max = 4096, .initial = "256", .help = "outgoing connections of a sandbox at once" },
	{ "--egress-rate", NULL, "N", OPTION_NUMBER, AT(egress_rate), .min = 1, .max = 100000,
	  .initial = "100",
	  .help = "new outgoing connections of a sandbox per second; further ones wait" },
	{ "--egress-bytes", NULL, "SIZE", OPTION_SIZE, AT(egress_bytes), .max = 1048576 * GIB,
	  .initial = "0",
	  .help = "bytes in both directions in the life of a sandbox's cell, or 0 for no limit" },
	{ "--drain-timeout", NULL, "TIME", OPTION_DURATION, AT(drain_ms), .max = HOUR_MS,
	  .initial = "30s", .help = "on SIGTERM: how long running executions may take to end" },
	{ "--log-level", NULL, "LEVEL", OPTION_CUSTOM, 0, .set = set_level, .initial = "info",
	  .help = "debug, info, warning or error (info)" },
	{ "--log-format", NULL, "FORMAT", OPTION_CUSTOM, 0, .set = set_format,
	  .help = "text or json (text on a terminal, json otherwise)" },
};

/* Variables of the service that this one replaces. @suffix: the unit of the value. */
static const struct {
	const char *name, *flag, *suffix;
} elder[] = {
	{ "MAX_EXECUTION_TIME", "--max-timeout", "" },
	{ "MAX_MEMORY_MB", "--memory", "M" },
	{ "BLOCKED_PACKAGES", "--blocked-packages", "" },
	{ "LOG_LEVEL", "--log-level", "" },
	{ "MCP_SERVERS_CONFIG", "--mcp-config", "" },
	/* Of buckets. Later ones count. Keys are not settings: see vault/source.h. */
	{ "AWS_DEFAULT_REGION", "--s3-region", "" },
	{ "AWS_REGION", "--s3-region", "" },
	{ "AWS_ENDPOINT_URL", "--s3-endpoint", "" },
	{ "AWS_ENDPOINT_URL_S3", "--s3-endpoint", "" },
	{ "COREASON_SANDBOX_S3_REGION", "--s3-region", "" },
	{ "COREASON_SANDBOX_S3_ENDPOINT_URL", "--s3-endpoint", "" },
	{ "COREASON_SANDBOX_S3_BUCKET", "--s3-bucket", "" },
};

static int from_elder(struct config *c, char **env, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(elder); i++) {
		const char *v = options_lookup(env, elder[i].name);
		char text[32];

		if (!v)
			continue;
		if (elder[i].suffix[0]) {
			if (strspn(v, "0123456789") != strlen(v) || strlen(v) > 20)
				return err_say(e, -EINVAL, "%s: must be a whole number",
					       elder[i].name);
			(void)snprintf(text, sizeof(text), "%s%s", v, elder[i].suffix);
			v = text;
		}
		int r = options_set(&c->parsed, elder[i].flag, OPTION_BY_OLD_NAME, elder[i].name, v,
				    e);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The starter tells in variables where the URLs of the indexes come from (cli/package_index.h). */
static void fill_indexes(struct config *c, char **env)
{
	static const char *const from[INDEX_KINDS] = { "CAISSON_PIP_INDEX_FROM",
						       "CAISSON_NPM_REGISTRY_FROM" };
	static const char *const note[INDEX_KINDS] = { "CAISSON_PIP_INDEX_NOTE",
						       "CAISSON_NPM_REGISTRY_NOTE" };

	for (size_t i = 0; i < INDEX_KINDS; i++) {
		c->index_from[i] = options_lookup(env, from[i]);
		c->index_note[i] = options_lookup(env, note[i]);
	}
	if (c->pip_index && strcmp(c->pip_index, "none") == 0)
		c->pip_index = NULL;
	if (c->npm_registry && strcmp(c->npm_registry, "none") == 0)
		c->npm_registry = NULL;
}

/* The names are copies that struct options owns, so they may be rewritten. */
static void fill_packages(struct config *c)
{
	if (c->blocked_packages[0] && !c->blocked_packages[1] &&
	    strcmp(c->blocked_packages[0], "none") == 0)
		c->blocked_packages[0] = NULL;
	for (size_t i = 0; c->blocked_packages[i]; i++)
		config_canonical_package((char *)(uintptr_t)c->blocked_packages[i]);
}

/*
 * Without tokens only the starter and root may call, and both may pull images themselves. Other
 * callers must not make a daemon fetch what they name unless the operator says so.
 */
static void fill_pulls(struct config *c)
{
	c->image_pull = c->image_pull_when ? strcmp(c->image_pull_when, "missing") == 0 :
					     !c->token_file && !c->no_token;
}

/* The state directory as `caisson run` finds it, and the socket in it. */
static int fill_paths(struct config *c, char **env, struct err *e)
{
	char path[4096];
	struct sockaddr_un address;
	int n;

	if (!c->state) {
		if (state_dir(NULL, options_lookup(env, "XDG_RUNTIME_DIR"), path, sizeof(path),
			      NULL) < 0)
			return err_say(e, -EINVAL, "--state: the path is too long");
		c->state = options_own(&c->parsed, path, strlen(path));
	}
	if (c->state && !c->socket) {
		n = snprintf(path, sizeof(path), "%s/caisson.sock", c->state);
		if (n < 0 || (size_t)n >= sizeof(address.sun_path))
			return err_say(
				e, -EINVAL,
				"--state: the path is too long for a socket in it; name the socket "
				"with --socket, or give --socket none");
		c->socket = options_own(&c->parsed, path, (size_t)n);
	}
	return c->state && c->socket ? 0 : err_set(e, -ENOMEM, "store a path");
}

static int agree(struct config *c, struct err *e)
{
	if (spec_check_memory(c->memory_bytes, e) < 0)
		return -EINVAL;
	if (c->without && options_given(&c->parsed, "--cpus"))
		return err_say(e, -EINVAL, "--cpus: cannot be enforced with --without cgroup");
	if (!c->tls_cert != !c->tls_key)
		return err_say(e, -EINVAL, "%s: --tls-cert and --tls-key go together",
			       c->tls_cert ? "--tls-cert" : "--tls-key");
	if (c->tls_cert && strcmp(c->listen, "none") == 0)
		return err_say(e, -EINVAL, "--tls-cert: --listen must be an address, not none");
	if (c->no_token && c->token_file)
		return err_say(
			e, -EINVAL,
			"--no-token and --token-file contradict each other: give one of them");
	if (strcmp(c->listen, "none") == 0 && strcmp(c->socket, "none") == 0)
		return err_say(e, -EINVAL,
			       "--listen none and --socket none: no client could connect");
	if (c->timeout_ms > c->max_timeout_ms) {
		if (options_given(&c->parsed, "--timeout"))
			return err_say(e, -EINVAL,
				       "--timeout: must not be more than --max-timeout, %" PRIu64
				       " s",
				       c->max_timeout_ms / 1000);
		c->timeout_ms = c->max_timeout_ms;
	}
	if (c->pool > c->max_sandboxes) {
		if (options_given(&c->parsed, "--pool"))
			return err_say(e, -EINVAL,
				       "--pool: must not be more than --max-sandboxes, %" PRIu64,
				       c->max_sandboxes);
		c->pool = c->max_sandboxes;
	}
	return 0;
}

static struct options table(void)
{
	return (struct options){ .rows = rows,
				 .n_rows = ARRAY_SIZE(rows),
				 .command = "caisson serve",
				 .all_variables = true };
}

static int collect(struct config *c, int argc, char **argv, struct err *e)
{
	struct options *p = &c->parsed;
	int r;

	if ((r = options_defaults(p, e)) < 0 || (r = from_elder(c, p->env, e)) < 0 ||
	    (r = options_environment(p, e)) < 0)
		return r;
	return options_arguments(p, argc, argv, e);
}

int config_parse(int argc, char **argv, char **env, config_check_fn *tools, struct config *ret,
		 struct err *e)
{
	struct config *c = ret;
	int r;

	tools_checker = tools;
	memset(c, 0, sizeof(*c));
	c->parsed = table();
	/* Before all else: these two work whatever the environment holds. */
	c->help = options_has_word(argc, argv, "--help") || options_has_word(argc, argv, "-h");
	c->version = options_has_word(argc, argv, "--version");
	if (c->help || c->version)
		return 0;
	c->parsed.target = c;
	c->parsed.env = env;
	c->log_json = isatty(STDERR_FILENO) == 0;
	if ((r = collect(c, argc, argv, e)) < 0)
		return r;
	fill_indexes(c, env);
	fill_packages(c);
	fill_pulls(c);
	if ((r = fill_paths(c, env, e)) < 0)
		return r;
	return agree(c, e);
}

void config_free(struct config *c)
{
	options_free(&c->parsed);
}

void config_usage(FILE *out)
{
	const struct options p = table();

	options_help(&p, 0, out);
	(void)fputs(
		"\n"
		"  Each option has an environment variable, as CAISSON_MAX_BODY of --max-body.\n"
		"  These variables are read too: MAX_EXECUTION_TIME (seconds)\n"
		"  for --max-timeout, MAX_MEMORY_MB for --memory,\n"
		"  BLOCKED_PACKAGES for --blocked-packages, LOG_LEVEL for --log-level,\n"
		"  MCP_SERVERS_CONFIG for --mcp-config; and for buckets AWS_REGION,\n"
		"  AWS_ENDPOINT_URL, COREASON_SANDBOX_S3_BUCKET, _REGION and _ENDPOINT_URL.\n",
		out);
}
