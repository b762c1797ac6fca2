/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c - `caisson doctor`: what this machine supports, what is enforced, what is missing.
 *
 * Sysctls and files explain a failure; they prove nothing. So the last check makes a real cell and
 * reads the Linux kernel's evidence about it: that check decides the exit code, the others name the
 * remedy when it fails. Lines about a daemon that runs follow (doctor_daemon.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/options.h"
#include "cell/cgroup.h"
#include "cell/container.h"
#include "cell/landlock.h"
#include "cell/spec.h"
#include "cli/cell_job.h"
#include "cli/doctor.h"
#include "cli/package_index.h"
#include "cli/prepare.h"
#include "cli/run_image.h"
#include "cli/run_options.h"
#include "client/fail.h"
#include "client/program.h"

const char *const grade_names[] = { [GOOD] = "ok", [WEAK] = "weak", [BAD] = "missing" };

static void set(struct check *c, enum grade g, const char *found, const char *fix)
{
	c->grade = g;
	(void)snprintf(c->found, sizeof(c->found), "%s", found);
	(void)snprintf(c->fix, sizeof(c->fix), "%s", g == GOOD ? "" : fix);
}

/* ---- the checks ------------------------------------------------------------------------------ */

static void check_kernel(struct check *c)
{
	struct utsname u;

	(void)uname(&u);
	char *end;
	long major = strtol(u.release, &end, 10);
	long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
	char found[200];

	(void)snprintf(found, sizeof(found), "Linux %.150s", u.release);
	/* mount_setattr and overlay in user namespaces. */
	set(c, major > 5 || (major == 5 && minor >= 12) ? GOOD : BAD, found,
	    "cells need Linux 5.12 or later");
}

static void check_user(struct check *c)
{
	if (geteuid() == 0)
		set(c, GOOD, "root: every cell has 65536 host ids of its own", "");
	else
		set(c, WEAK, "ordinary user: init and agent share your id inside the cell",
		    "run as root for host ids per cell");
}

static void read_line(const char *path, char *text, size_t size)
{
	ssize_t n = fd_read_file(AT_FDCWD, path, text, size);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

/* AppArmor restricts programs that have no profile. */
static bool has_profile(void)
{
	char label[128];

	read_line("/proc/self/attr/apparmor/current", label, sizeof(label));
	return label[0] && strcmp(label, "unconfined") != 0;
}

static void check_userns(struct check *c)
{
	char v[64], found[128];

	read_line("/proc/sys/kernel/unprivileged_userns_clone", v, sizeof(v));
	if (geteuid() != 0 && strcmp(v, "0") == 0) {
		set(c, BAD, "kernel.unprivileged_userns_clone=0",
		    "sysctl kernel.unprivileged_userns_clone=1, or run as root");
		return;
	}
	read_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", v, sizeof(v));
	if (geteuid() != 0 && strcmp(v, "1") == 0 && !has_profile()) {
		set(c, BAD, "kernel.apparmor_restrict_unprivileged_userns=1",
		    "load an AppArmor profile with 'userns,' for this caisson (the Debian package "
		    "has one), sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as "
		    "root");
		return;
	}
	read_line("/proc/sys/user/max_user_namespaces", v, sizeof(v));
	(void)snprintf(found, sizeof(found), "allowed, at most %s", *v ? v : "?");
	set(c, strcmp(v, "0") == 0 || !*v ? BAD : GOOD, found,
	    "sysctl user.max_user_namespaces=15000");
}

static void check_container(struct check *c)
{
	const char *engine = container_engine();
	char options[CONTAINER_OPTIONS_MAX], found[64], fix[sizeof(c->fix)];
	bool missing = container_missing(options, sizeof(options));

	(void)snprintf(found, sizeof(found), "%.20s%s", engine ? engine : "none",
		       missing ? ", without what cells are made with" : "");
	(void)snprintf(fix, sizeof(fix), "start it with %s (docs/container.md)", options);
	set(c, missing ? BAD : GOOD, found, fix);
}

static void check_seccomp(struct check *c)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		set(c, GOOD, "filters available", "");
	else
		set(c, BAD, "no seccomp filters", "use a Linux kernel with CONFIG_SECCOMP_FILTER");
}

static void check_landlock(struct check *c)
{
	int abi = landlock_abi();
	char found[64];

	(void)snprintf(found, sizeof(found), "ABI %d", abi);
	set(c, abi >= 6 ? GOOD : WEAK, abi ? found : "not there",
	    "Linux 6.12 with CONFIG_SECURITY_LANDLOCK adds the second layer for signals and "
	    "abstract sockets");
}

static void check_cgroup(struct check *c)
{
	static const char *const kinds[] = {
		[CGROUP_NONE] = "none",
		[CGROUP_V2] = "v2",
		[CGROUP_V1] = "v1",
		[CGROUP_HYBRID] = "hybrid (limits on v1)",
	};
	struct cgroup_site site;
	struct err e = { 0 };

	if (cgroup_site_find(&site, &e) < 0)
		set(c, BAD, "no place for cells", e.msg);
	else
		set(c, GOOD, kinds[site.kind], "");
}

static void check_overlay(struct check *c)
{
	char text[8192];
	ssize_t n = fd_read_file(AT_FDCWD, "/proc/filesystems", text, sizeof(text));

	if (n > 0 && strstr(text, "\toverlay\n"))
		set(c, GOOD, "overlayfs", "");
	else
		set(c, WEAK, "no overlayfs: only the image 'host'",
		    "modprobe overlay, for images dir:PATH");
}

static void check_languages(struct check *c)
{
	static const struct {
		const char *name, *program;
	} langs[] = { { "python", "python3" },
		      { "bash", "bash" },
		      { "javascript", "node" },
		      { "r", "Rscript" } };
	static const char *const dirs[] = { "/usr/local/bin", "/usr/bin", "/bin" };
	char found[128] = "", path[64];

	for (size_t i = 0; i < ARRAY_SIZE(langs); i++)
		for (size_t d = 0; d < ARRAY_SIZE(dirs); d++) {
			(void)snprintf(path, sizeof(path), "%s/%s", dirs[d], langs[i].program);
			if (access(path, X_OK) == 0) {
				size_t n = strlen(found);

				(void)snprintf(found + n, sizeof(found) - n, "%s%s", n ? ", " : "",
					       langs[i].name);
				break;
			}
		}
	set(c, strstr(found, "python") ? GOOD : WEAK, *found ? found : "none in /usr",
	    "apt-get install python3 (nodejs, r-base-core)");
}

/* The index that the daemon uses unless an option names another. */
static void check_index(struct check *c)
{
	static const char *const ours[] = {
		[INDEX_PIP] = "CAISSON_PIP_INDEX", [INDEX_NPM] = "CAISSON_NPM_REGISTRY"
	};
	static struct index_choice x;
	char found[sizeof(c->found)] = "none: nothing is installed";
	const char *named = options_lookup(environ, ours[c->kind]);

	memset(&x, 0, sizeof(x));
	if (named && strcmp(named, "none") == 0)
		(void)snprintf(found, sizeof(found), "none: turned off (%s)", ours[c->kind]);
	else if (named)
		index_take(c->kind, named, ours[c->kind], &x);
	else
		index_of_machine(c->kind, environ, "", &x);
	index_keys_wipe(&x.keys);
	if (x.on)
		(void)snprintf(found, sizeof(found), "%.140s (%.100s)", x.url.url, x.from);
	set(c, x.note[0] ? WEAK : GOOD, found, x.note);
}

/* A real cell, inspected from outside while its command is held. */
static void check_cell(struct check *c, const struct run_options *o, struct buf *receipt)
{
	static const char *const argv[] = { "sleep", "0.1", NULL };
	static const char *const envp[] = { "PATH=/usr/local/bin:/usr/bin:/bin", NULL };
	char state[4096];
	struct outcome out;
	struct err e = { 0 };
	static struct run_options whole; /* with the layers of an image of the store */
	static struct run_image stored;
	_fd_ int image = -1;

	whole = *o;
	if (state_dir(o->state, getenv("XDG_RUNTIME_DIR"), state, sizeof(state), &e) < 0) {
		set(c, BAD, "no state directory", e.msg);
		return;
	}
	if (run_image_open(&whole, &stored, &e) < 0) {
		set(c, BAD, "no image", e.msg);
		return;
	}
	if (o->image_path) {
		image = open(o->image_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (image < 0) {
			set(c, BAD, "no image", strerror(errno));
			return;
		}
	}
	struct job job = {
		.state = state,
		.spec = &whole.spec,
		.fds = o->image_ref ? stored.loan.fds : &image,
		.n_fds = o->image_ref ? stored.loan.n_fds :
			 image >= 0   ? 1 :
					0,
		.exec = { .id = 1,
			  .cwd = "/",
			  .argv = argv,
			  .envp = envp,
			  .script_fd = -1,
			  .uid = CELL_UID,
			  .gid = CELL_GID },
		.timeout_ms = 10000,
		.capture = true,
		.capture_bytes = 4096,
		.receipt = true,
	};
	int r = job_run(&job, &out, &e);

	loan_close(&stored.loan);
	(void)buf_append(receipt, buf_str(&job.receipt_json), job.receipt_json.len);
	if (r < 0)
		set(c, BAD, "could not be sealed", e.msg);
	else if (!out.exited || out.exit.status != 0)
		set(c, BAD, "the test command failed", "run: caisson exec -- sleep 0.1");
	else if (o->spec.without)
		set(c, WEAK, "sealed, without what was given up", "drop --without");
	else
		set(c, GOOD, "sealed; every required layer seen in force from outside", "");
	job_free(&job);
}

/* ---- the report ------------------------------------------------------------------------------ */

static void print_text(const struct check *checks, size_t n)
{
	static const char *const colour[] = {
		[GOOD] = "\033[32m", [WEAK] = "\033[33m", [BAD] = "\033[31m"
	};
	bool tty = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	for (size_t i = 0; i < n; i++) {
		const struct check *c = &checks[i];

		(void)printf("%s%-8s%s %-16s %s\n", tty ? colour[c->grade] : "",
			     grade_names[c->grade], tty ? "\033[0m" : "", c->name, c->found);
		if (c->fix[0])
			(void)printf("%-8s %-16s fix: %s\n", "", "", c->fix);
	}
}

static void json_checks(struct json *j, const struct check *checks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_object_begin(j);
		json_member_str(j, "name", checks[i].name);
		json_member_str(j, "status", grade_names[checks[i].grade]);
		json_member_str(j, "found", checks[i].found);
		if (checks[i].fix[0])
			json_member_str(j, "fix", checks[i].fix);
		json_object_end(j);
	}
}

static int print_json(const struct check *checks, size_t n, const struct check *daemon,
		      size_t n_daemon, const struct buf *receipt, bool healthy)
{
	_buf_ struct buf b = BUF_INIT(8u << 20);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "version", CAISSON_VERSION);
	json_member_bool(&j, "healthy", healthy);
	json_member_array(&j, "checks");
	json_checks(&j, checks, n);
	json_checks(&j, daemon, n_daemon);
	json_array_end(&j);
	if (receipt->len > 0) {
		json_key(&j, "receipt");
		json_buf(&j, receipt);
	}
	json_object_end(&j);
	if (json_finish(&j) < 0)
		return -1;
	(void)buf_puts(&b, "\n");
	return b.err ? -1 : fd_write_all(STDOUT_FILENO, buf_str(&b), b.len);
}

int verb_doctor(int argc, char **argv)
{
	static struct run_options o;
	static struct check checks[] = {
		{ .name = "kernel", .run = check_kernel },
		{ .name = "user", .run = check_user },
		{ .name = "container", .run = check_container },
		{ .name = "user namespaces", .run = check_userns },
		{ .name = "seccomp", .run = check_seccomp },
		{ .name = "landlock", .run = check_landlock },
		{ .name = "cgroup", .run = check_cgroup },
		{ .name = "overlay", .run = check_overlay },
		{ .name = "languages", .run = check_languages },
		{ .name = "pip index", .run = check_index, .kind = INDEX_PIP },
		{ .name = "npm registry", .run = check_index, .kind = INDEX_NPM },
		{ .name = "cell" },
	};
	static struct check daemon[DOCTOR_DAEMON_MAX];
	struct check *cell = &checks[ARRAY_SIZE(checks) - 1];
	_buf_ struct buf receipt = BUF_INIT(4u << 20);
	struct err e = { 0 };
	int r = run_options_parse(VERB_DOCTOR, argc, argv, &o, &e);

	if (r == 1) {
		(void)printf("Usage: caisson doctor [OPTIONS]\n\nExit code: 0 when cells can be "
			     "sealed here, 1 when not.\n\n");
		run_options_help(VERB_DOCTOR, stdout);
		return 0;
	}
	if (r == 0 && o.parsed.end < argc)
		r = err_say(&e, -EINVAL, "unexpected argument '%s'", argv[o.parsed.end]);
	if (r < 0 || (r = container_enter(&e)) < 0)
		return verb_fail(&e, o.json, EXIT_CAISSON);
	for (struct check *c = checks; c < cell; c++)
		c->run(c);
	check_cell(cell, &o, &receipt);
	size_t n = doctor_daemon(o.state, daemon);

	if (o.json) {
		if (print_json(checks, ARRAY_SIZE(checks), daemon, n, &receipt,
			       cell->grade != BAD) < 0)
			return EXIT_CAISSON;
	} else {
		print_text(checks, ARRAY_SIZE(checks));
		print_text(daemon, n);
	}
	return cell->grade == BAD ? 1 : 0;
}
