/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - The settings of `caisson serve`, and how they are collected.
 *
 * Four passes over the same table, each overriding the one before: defaults (written as text and
 * parsed like any value), the variables of the older service, CAISSON_ variables, flags. A list
 * given again replaces the list of the pass before it and adds to that of its own pass. At the end
 * the settings are compared with each other: what was said twice and differs is refused, a default
 * that does not fit what was said gives way.
 */
#include "front/support/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/near.h"
#include "client/state.h"
#include "front/support/config_value.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define HOUR_MS UINT64_C(3600000)
#define ENV_NAME_MAX 64

#define AT(member) offsetof(struct config, member)

static const struct config_row rows[] = {
	{ "--listen", "ADDR:PORT", CONFIG_ADDRESS, AT(listen), 0, 0, "127.0.0.1:8001",
	  "where to serve HTTP, or none" },
	{ "--socket", "PATH", CONFIG_SOCKET, AT(socket), 0, 0, NULL,
	  "unix socket to serve HTTP on, or none (caisson.sock in the state directory)" },
	{ "--state", "DIR", CONFIG_DIR, AT(state), 0, 0, NULL,
	  "where the journal and the socket are kept (as for caisson run)" },
	{ "--token-file", "FILE", CONFIG_FILE, AT(token_file), 0, 0, NULL,
	  "who may call: one NAME:TOKEN per line, mode 600 (none: you and root, on this machine)" },
	{ "--policy", "FILE", CONFIG_FILE, AT(policy), 0, 0, NULL,
	  "ceilings for all and for each owner, see caisson-policy(5); read again on SIGHUP" },
	{ "--tls-cert", "FILE", CONFIG_FILE, AT(tls_cert), 0, 0, NULL,
	  "certificate chain in PEM: serve HTTPS on --listen" },
	{ "--tls-key", "FILE", CONFIG_FILE, AT(tls_key), 0, 0, NULL,
	  "the certificate's private key in PEM" },
	{ "--allow-host", "NAME", CONFIG_HOSTS, AT(allow_hosts), 0, CONFIG_LIST_MAX, "",
	  "further name that clients may call us by; may be repeated" },
	{ "--allow-origin", "URL", CONFIG_ORIGINS, AT(allow_origins), 0, CONFIG_LIST_MAX, "",
	  "further web origin whose pages may call us; may be repeated" },
	{ "--image", "IMAGE", CONFIG_IMAGE, AT(image), 0, 0, "host",
	  "what sandboxes are made from unless they say: host, dir:PATH, or a pulled image" },
	{ "--image-store", "DIR", CONFIG_DIR, AT(image_store), 0, 0, NULL,
	  "where pulled images are (as for caisson image)" },
	{ "--preload", "MODULES", CONFIG_MODULES, AT(preload), 0, CONFIG_LIST_MAX, "",
	  "python modules to import before anyone asks, as in numpy,pandas" },
	{ "--pool", "N", CONFIG_COUNT, AT(pool), 0, 1000, "4",
	  "interpreters to keep ready, each in a cell of its own" },
	{ "--max-sandboxes", "N", CONFIG_COUNT, AT(max_sandboxes), 1, 4000, "1000",
	  "sandboxes at once; more are answered with 429" },
	{ "--idle-timeout", "TIME", CONFIG_TIME, AT(idle_ms), 1000, 168 * HOUR_MS, "300s",
	  "end a session that nobody used for so long" },
	{ "--timeout", "TIME", CONFIG_TIME, AT(timeout_ms), 1, 24 * HOUR_MS, "30s",
	  "wall time of an execution that names none" },
	{ "--max-timeout", "TIME", CONFIG_TIME, AT(max_timeout_ms), 1000, 24 * HOUR_MS, "120s",
	  "wall time that a request may ask for" },
	{ "--memory", "SIZE", CONFIG_SIZE, AT(memory_bytes), 16 * MIB, 1024 * GIB, "512M",
	  "memory of a sandbox" },
	{ "--cpus", "N", CONFIG_CPUS, AT(cpu_milli), 10, 1024000, "1",
	  "share of processors of a sandbox, as in 0.5" },
	{ "--pids", "N", CONFIG_COUNT, AT(pids), 1, 32768, "128",
	  "processes and threads of a sandbox" },
	{ "--disk", "SIZE", CONFIG_SIZE, AT(disk_bytes), MIB, 1024 * GIB, "1G",
	  "size of a sandbox's writable layer, which lives in memory" },
	{ "--max-output", "CHARS", CONFIG_COUNT, AT(max_output), 1, 64 * MIB, "10000",
	  "characters returned of each stream" },
	{ "--max-body", "SIZE", CONFIG_SIZE, AT(max_body), KIB, GIB, "8M",
	  "size of a request's body" },
	{ "--blocked-packages", "NAMES", CONFIG_PACKAGES, AT(blocked_packages), 0,
	  CONFIG_BLOCKED_MAX, "os,subprocess,sys,importlib,ctypes,multiprocessing,threading",
	  "packages that pip_install refuses, or none" },
	{ "--pip-index", "URL", CONFIG_INDEX, AT(pip_index), 0, 0, NULL,
	  "index of python packages, or none (that of this machine's pip, else pypi.org)" },
	{ "--npm-registry", "URL", CONFIG_INDEX, AT(npm_registry), 0, 0, NULL,
	  "registry of javascript packages, or none (that of this machine's npm, else npmjs.org)" },
	{ "--package-host", "NAME", CONFIG_HOSTS, AT(package_hosts), 0, CONFIG_LIST_MAX, "",
	  "further host where the index keeps its files; may be repeated" },
	{ "--package-dir", "DIR", CONFIG_DIR, AT(package_dir), 0, 0, NULL,
	  "directory of wheels and sdists, beside the index or instead of one" },
	{ "--allowed-packages", "NAMES", CONFIG_PATTERNS, AT(allowed_packages), 0,
	  CONFIG_BLOCKED_MAX, "", "the only packages that may be installed, as in numpy,types-*" },
	{ "--known-packages", "NAMES", CONFIG_PATTERNS, AT(known_packages), 0, CONFIG_BLOCKED_MAX,
	  "", "packages that are meant although they look like a misspelling of another" },
	{ "--package-pins", "FILE", CONFIG_FILE, AT(package_pins), 0, 0, NULL,
	  "the only packages that may be installed, each NAME==VERSION sha256:HASH" },
	{ "--mount", "SOURCE:PLACE[:MODE]", CONFIG_MOUNTS, AT(mounts), 0, MOUNTS_MAX + 1, "",
	  "put a directory into every sandbox; MODE: ro, rw, rw-unprotected; may be repeated" },
	{ "--workspace-rw", "", CONFIG_SWITCH, AT(workspace_rw), 0, 0, "no",
	  "let sandboxes mount workspaces rw, although nothing then enforces the quota" },
	{ "--package-wheels-only", "", CONFIG_SWITCH, AT(package_wheels_only), 0, 0, "no",
	  "refuse packages that would have to be built" },
	{ "--npm-scripts", "", CONFIG_SWITCH, AT(npm_scripts), 0, 0, "no",
	  "run install scripts of javascript packages, in the cell that fetches them" },
	{ "--package-size", "SIZE", CONFIG_SIZE, AT(package_size), MIB, 64 * GIB, "1G",
	  "size of what one installation may bring" },
	{ "--package-count", "N", CONFIG_COUNT, AT(package_count), 1, 2000, "200",
	  "packages that one installation may bring, dependencies included" },
	{ "--package-rate", "N", CONFIG_COUNT, AT(package_rate), 1, 100000, "60",
	  "installations per caller and hour that have to be fetched" },
	{ "--package-timeout", "TIME", CONFIG_TIME, AT(package_timeout_ms), 1000, HOUR_MS, "300s",
	  "how long fetching and building may take" },
	{ "--package-store", "SIZE", CONFIG_SIZE, AT(package_store), MIB, 1024 * GIB, "10G",
	  "size of all installed packages; beyond it the longest unused go" },
	{ "--package-keep", "TIME", CONFIG_TIME, AT(package_keep_ms), 1000, 8760 * HOUR_MS, "720h",
	  "remove installed packages that no sandbox used for so long" },
	{ "--s3-bucket", "BUCKET", CONFIG_PLACE, AT(s3_bucket), 0, 0, NULL,
	  "put files that executions leave there, with links: BUCKET or s3://BUCKET/PREFIX" },
	{ "--s3-endpoint", "URL", CONFIG_URL, AT(s3_endpoint), 0, 0, NULL,
	  "the server of buckets, as in https://minio.example:9000 (Amazon's)" },
	{ "--s3-region", "REGION", CONFIG_WORD, AT(s3_region), 0, 0, NULL,
	  "the buckets' region (us-east-1)" },
	{ "--s3-style", "STYLE", CONFIG_STYLE, AT(s3_style), 0, 0, NULL,
	  "how buckets are addressed: path or virtual (virtual at Amazon's, path elsewhere)" },
	{ "--s3-credentials", "FILE", CONFIG_FILE, AT(s3_credentials), 0, 0, NULL,
	  "keys for them as Amazon's tools have them, mode 0600 (AWS_ACCESS_KEY_ID, ...)" },
	{ "--s3-profile", "NAME", CONFIG_WORD, AT(s3_profile), 0, 0, NULL,
	  "which section of that file (default)" },
	{ "--s3-ca", "FILE", CONFIG_FILE, AT(s3_ca), 0, 0, NULL,
	  "PEM: who vouches for that server (those whom this machine trusts)" },
	{ "--s3-link-time", "TIME", CONFIG_TIME, AT(s3_link_ms), 1000, 168 * HOUR_MS, "1h",
	  "how long links to such files are good" },
	{ "--workspace-bucket", "NAME=PLACE", CONFIG_PLACES, AT(workspace_buckets), 0,
	  CONFIG_LIST_MAX, "",
	  "the workspace [OWNER/]NAME is in s3://BUCKET/PREFIX; may be repeated" },
	{ "--tools", "NAMES", CONFIG_TOOLS, AT(tools), 0, 0, "default",
	  "tools that MCP clients are offered: default, all, or names" },
	{ "--egress-ca", "FILE", CONFIG_FILE, AT(egress_ca), 0, 0, NULL,
	  "PEM: who else may vouch for hosts that secrets are bound to" },
	{ "--secrets-file", "FILE", CONFIG_FILE, AT(secrets_file), 0, 0, NULL,
	  "secrets for sandboxes, one line NAME=VALUE each; mode 0600" },
	{ "--secrets-env", "PREFIX", CONFIG_PREFIX, AT(secrets_env), 0, 0, NULL,
	  "variables PREFIXNAME of the environment are secrets, by NAME" },
	{ "--secrets-command", "COMMAND", CONFIG_COMMAND, AT(secrets_command), 0, 0, NULL,
	  "prints secrets as the file has them; words, no shell" },
	{ "--mcp-auth-server", "URL", CONFIG_URL, AT(mcp_auth_server), 0, 0, NULL,
	  "where MCP clients without a token are sent for one (RFC 9728)" },
	{ "--mcp-url", "URL", CONFIG_URL, AT(mcp_url), 0, 0, NULL,
	  "where clients find /mcp, behind a proxy (as they call us)" },
	{ "--mcp-config", "FILE", CONFIG_FILES, AT(mcp_configs), 0, CONFIG_LIST_MAX, "",
	  "MCP servers whose tools code may call, as hosts write them: mcpServers; may be repeated" },
	{ "--mcp-discover", "", CONFIG_SWITCH, AT(mcp_discover), 0, 0, "no",
	  "also those in the files of Claude, Cursor, VS Code, Windsurf and others" },
	{ "--mcp-user", "NAME", CONFIG_NAME, AT(mcp_user), 0, 0, NULL,
	  "as root: whom to run them as (the owner of the first --mcp-config file)" },
	{ "--mcp-conformance", "", CONFIG_SWITCH, AT(mcp_conformance), 0, 0, "no",
	  "also offer the fixtures of the MCP conformance suite; never for users" },
	{ "--egress-private", "NETS", CONFIG_NETS, AT(egress_private), 0, CONFIG_LIST_MAX, "",
	  "private ranges that sandboxes may reach by name, as in 10.1.0.0/16; may be repeated" },
	{ "--egress-dns", "ADDR:PORT", CONFIG_RESOLVER, AT(egress_dns), 0, 0, NULL,
	  "resolver for the names that sandboxes may reach (those of /etc/resolv.conf)" },
	{ "--egress-connections", "N", CONFIG_COUNT, AT(egress_connections), 1, 4096, "256",
	  "connections out of a sandbox at once" },
	{ "--egress-rate", "N", CONFIG_COUNT, AT(egress_rate), 1, 100000, "100",
	  "new connections out of a sandbox per second; more have to wait" },
	{ "--egress-bytes", "SIZE", CONFIG_SIZE, AT(egress_bytes), 0, 1048576 * GIB, "0",
	  "bytes out of and into a sandbox in its life, or 0 for no limit" },
	{ "--drain-timeout", "TIME", CONFIG_TIME, AT(drain_ms), 0, HOUR_MS, "30s",
	  "on SIGTERM: how long what runs may take to end" },
	{ "--log-level", "LEVEL", CONFIG_LEVEL, AT(log_level), 0, 0, "info",
	  "debug, info, warning or error" },
	{ "--log-format", "FORMAT", CONFIG_FORMAT, AT(log_json), 0, 0, NULL,
	  "text or json (text on a terminal, json otherwise)" },
};

/* Variables of the service that this one replaces. @suffix: what completes the value's unit. */
static const struct {
	const char *name, *flag, *suffix;
} elder[] = {
	{ "MAX_EXECUTION_TIME", "--max-timeout", "" },
	{ "MAX_MEMORY_MB", "--memory", "M" },
	{ "BLOCKED_PACKAGES", "--blocked-packages", "" },
	{ "LOG_LEVEL", "--log-level", "" },
	{ "MCP_SERVERS_CONFIG", "--mcp-config", "" },
	/* Of buckets. Later ones count. Keys are not settings: see vault/hide.h. */
	{ "AWS_DEFAULT_REGION", "--s3-region", "" },
	{ "AWS_REGION", "--s3-region", "" },
	{ "AWS_ENDPOINT_URL", "--s3-endpoint", "" },
	{ "AWS_ENDPOINT_URL_S3", "--s3-endpoint", "" },
	{ "COREASON_SANDBOX_S3_REGION", "--s3-region", "" },
	{ "COREASON_SANDBOX_S3_ENDPOINT_URL", "--s3-endpoint", "" },
	{ "COREASON_SANDBOX_S3_BUCKET", "--s3-bucket", "" },
};

/* Which settings were given by someone, and by which pass last. */
enum pass { PASS_DEFAULT, PASS_ELDER, PASS_ENV, PASS_FLAG };
struct given {
	enum pass by[ARRAY_SIZE(rows)];
};

static const struct config_row *find_row(const char *flag, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strlen(rows[i].flag) == len && strncmp(rows[i].flag, flag, len) == 0)
			return &rows[i];
	return NULL;
}

static bool was_given(const struct given *g, const char *flag)
{
	const struct config_row *row = find_row(flag, strlen(flag));

	return row && g->by[row - rows] != PASS_DEFAULT;
}

/* @source: the flag or variable, for the message. */
static int give(struct config *c, struct given *g, enum pass by, const struct config_row *row,
		const char *source, const char *value, struct err *e)
{
	bool append = g->by[row - rows] == by && by != PASS_DEFAULT;

	g->by[row - rows] = by;
	return config_value_set(c, row, value, append, e) < 0 ? err_wrap(e, "%s", source) : 0;
}

static const char *lookup(char **env, const char *name)
{
	size_t len = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return (*env)[len + 1] ? *env + len + 1 : NULL;
	return NULL;
}

/* "--max-body" is CAISSON_MAX_BODY. */
static void env_name(const char *flag, char out[ENV_NAME_MAX])
{
	size_t n = (size_t)snprintf(out, ENV_NAME_MAX, "CAISSON_%s", flag + 2);

	for (size_t i = 0; i < n && i < ENV_NAME_MAX; i++)
		out[i] = (char)(out[i] == '-'                  ? '_' :
				out[i] >= 'a' && out[i] <= 'z' ? out[i] - 'a' + 'A' :
								 out[i]);
}

static int from_defaults(struct config *c, struct given *g, struct err *e)
{
	c->log_json = config_value_stderr_is_log();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].initial &&
		    give(c, g, PASS_DEFAULT, &rows[i], rows[i].flag, rows[i].initial, e) < 0)
			return -EINVAL;
	return 0;
}

static int from_elder(struct config *c, struct given *g, char **env, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(elder); i++) {
		const char *v = lookup(env, elder[i].name);
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
		if (give(c, g, PASS_ELDER, find_row(elder[i].flag, strlen(elder[i].flag)),
			 elder[i].name, v, e) < 0)
			return -EINVAL;
	}
	return 0;
}

static int from_environment(struct config *c, struct given *g, char **env, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[ENV_NAME_MAX];

		env_name(rows[i].flag, name);
		const char *v = lookup(env, name);

		if (v && give(c, g, PASS_ENV, &rows[i], name, v, e) < 0)
			return -EINVAL;
	}
	return 0;
}

static int unknown(const char *arg, size_t len, struct err *e)
{
	struct near n = near_word(arg, len);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		near_try(&n, rows[i].flag);
	return err_say(e, -EINVAL, "unknown option '%.*s'%s 'caisson serve --help' lists them",
		       (int)(len > 64 ? 64 : len), arg, near_hint(&n));
}

static int from_flags(struct config *c, struct given *g, int argc, char **argv, struct err *e)
{
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		size_t len = strcspn(arg, "=");
		const struct config_row *row = find_row(arg, len);

		if (arg[0] != '-')
			return err_say(e, -EINVAL, "'%.64s': serve takes options only", arg);
		if (!row)
			return unknown(arg, len, e);
		bool alone = row->kind == CONFIG_SWITCH && !arg[len];

		if (!arg[len] && i + 1 == argc && !alone)
			return err_say(e, -EINVAL, "%s needs a value: %s %s", row->flag, row->flag,
				       row->value);
		const char *v = alone ? "yes" : arg[len] ? arg + len + 1 : argv[++i];

		if (give(c, g, PASS_FLAG, row, row->flag, v, e) < 0)
			return -EINVAL;
	}
	return 0;
}

/* Who named the indexes, as the starter says it (cli/index.h). */
static void fill_indexes(struct config *c, char **env)
{
	static const char *const from[INDEX_KINDS] = { "CAISSON_PIP_INDEX_FROM",
						       "CAISSON_NPM_REGISTRY_FROM" };
	static const char *const note[INDEX_KINDS] = { "CAISSON_PIP_INDEX_NOTE",
						       "CAISSON_NPM_REGISTRY_NOTE" };

	for (size_t i = 0; i < INDEX_KINDS; i++) {
		c->index_from[i] = lookup(env, from[i]);
		c->index_note[i] = lookup(env, note[i]);
	}
}

/* The state directory as `caisson run` finds it, and the socket in it. */
static int fill_paths(struct config *c, char **env, struct err *e)
{
	char path[4096];
	struct sockaddr_un address;
	int n;

	if (!c->state) {
		if (state_dir(NULL, lookup(env, "XDG_RUNTIME_DIR"), path, sizeof(path), NULL) < 0)
			return err_say(e, -EINVAL, "--state: the path is too long");
		c->state = config_value_own(c, path, strlen(path));
	}
	if (c->state && !c->socket) {
		n = snprintf(path, sizeof(path), "%s/caisson.sock", c->state);
		if (n < 0 || (size_t)n >= sizeof(address.sun_path))
			return err_say(e, -EINVAL,
				       "--state: too long for a socket in it; name one with "
				       "--socket, or --socket none");
		c->socket = config_value_own(c, path, (size_t)n);
	}
	return c->state && c->socket ? 0 : err_set(e, -ENOMEM, "remember a path");
}

static int agree(struct config *c, const struct given *g, struct err *e)
{
	if (!c->tls_cert != !c->tls_key)
		return err_say(e, -EINVAL, "%s: --tls-cert and --tls-key go together",
			       c->tls_cert ? "--tls-cert" : "--tls-key");
	if (c->tls_cert && strcmp(c->listen, "none") == 0)
		return err_say(e, -EINVAL, "--tls-cert: there is no address with --listen none");
	if (strcmp(c->listen, "none") == 0 && strcmp(c->socket, "none") == 0)
		return err_say(e, -EINVAL, "--listen none and --socket none: nobody could call");
	if (c->timeout_ms > c->max_timeout_ms) {
		if (was_given(g, "--timeout"))
			return err_say(e, -EINVAL,
				       "--timeout: must not be more than --max-timeout, %" PRIu64
				       " s",
				       c->max_timeout_ms / 1000);
		c->timeout_ms = c->max_timeout_ms;
	}
	if (c->pool > c->max_sandboxes) {
		if (was_given(g, "--pool"))
			return err_say(e, -EINVAL,
				       "--pool: must not be more than --max-sandboxes, %" PRIu64,
				       c->max_sandboxes);
		c->pool = c->max_sandboxes;
	}
	return 0;
}

int config_parse(int argc, char **argv, char **env, struct config *ret, struct err *e)
{
	struct config *c = ret;
	struct given g = { 0 };
	int r;

	memset(c, 0, sizeof(*c));
	/* Before all else: these two work whatever the environment holds. */
	for (int i = 1; i < argc; i++) {
		c->help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
		c->version |= strcmp(argv[i], "--version") == 0;
	}
	if (c->help || c->version)
		return 0;
	if ((r = from_defaults(c, &g, e)) < 0 || (r = from_elder(c, &g, env, e)) < 0 ||
	    (r = from_environment(c, &g, env, e)) < 0 || (r = from_flags(c, &g, argc, argv, e)) < 0)
		return r;
	fill_indexes(c, env);
	if ((r = fill_paths(c, env, e)) < 0)
		return r;
	return agree(c, &g, e);
}

void config_usage(void (*put)(const char *line, void *arg), void *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char left[64], line[256];
		const char *initial = rows[i].initial;
		bool show = initial && initial[0] && rows[i].kind != CONFIG_PACKAGES &&
			    rows[i].kind != CONFIG_SWITCH;

		(void)snprintf(left, sizeof(left), "%s %s", rows[i].flag, rows[i].value);
		(void)snprintf(line, sizeof(line), "  %-26s %s%s%s%s", left, rows[i].help,
			       show ? " (" : "", show ? initial : "", show ? ")" : "");
		put(line, arg);
	}
	put("", arg);
	put("  Each option is also a variable of the environment: --max-body is CAISSON_MAX_BODY.",
	    arg);
	put("  MAX_EXECUTION_TIME (seconds), MAX_MEMORY_MB, BLOCKED_PACKAGES and LOG_LEVEL are read",
	    arg);
	put("  too, for --max-timeout, --memory, --blocked-packages and --log-level; and", arg);
	put("  MCP_SERVERS_CONFIG for --mcp-config. Of buckets: AWS_REGION, AWS_ENDPOINT_URL, and",
	    arg);
	put("  COREASON_SANDBOX_S3_BUCKET, _REGION and _ENDPOINT_URL.", arg);
}
