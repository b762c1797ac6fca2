/* SPDX-License-Identifier: Apache-2.0 */
/* test_index.c - The index that pip and npm would use, by their files and variables; and the
 * arguments that go on. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "cli/package_index.h"

/* ---- files --------------------------------------------------------------------------------- */

static void seen(void *arg, const char *section, const char *key, const char *value)
{
	(void)buf_printf(arg, "%s|%s|%s;", section, key, value);
}

TEST(ini)
{
	_buf_ struct buf b = BUF_INIT(1024);
	char python[] = "a=1\n[s]\n# c\n; d\nkey = v w \nlong =\n  x\n\ty\nURL: "
			"http://h/\nnone\n[t]\r\nz=\n";
	char npm[] = "a=1\n b = 2\n//h/:_authToken = t=t\n[s]\nc=3";

	ini_read(&ini_python, python, seen, &b);
	assert_string_equal(buf_str(&b), "|a|1;s|key|v w;s|long|x\ny;s|URL|http://h/;t|z|;");
	buf_clear(&b);
	ini_read(&ini_npm, npm, seen, &b);
	assert_string_equal(buf_str(&b), "|a|1;|b|2;|//h/:_authToken|t=t;s|c|3;");
}

static char root[UNIT_DIR_MAX];

static void put(const char *path, const char *text)
{
	char whole[512];

	(void)snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *p = strchr(whole + strlen(root) + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(whole, 0755);
		*p = '/';
	}
	_fd_ int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static struct index_choice c;

static void ask(enum index_kind kind, char **env)
{
	index_of_machine(kind, env, root, &c);
}

#define EXPECT(kind, url_, from_, ...)                                                             \
	do {                                                                                       \
		char *env_[] = { (char *)"HOME=/home", (char *)"PATH=/nowhere", __VA_ARGS__,       \
				 NULL };                                                           \
		ask(kind, env_);                                                                   \
		assert_true(c.on);                                                                 \
		assert_string_equal(c.url.url, url_);                                              \
		assert_string_equal(c.from, from_);                                                \
	} while (0)

/* Each later place wins over those before it. */
TEST(order_of_pip)
{
	EXPECT(INDEX_PIP, "https://pypi.org/simple", "the public index", NULL);
	put("/etc/xdg/pip/pip.conf", "[global]\nindex-url=https://xdg.test/\n");
	EXPECT(INDEX_PIP, "https://xdg.test/", "/etc/xdg/pip/pip.conf", NULL);
	put("/etc/pip.conf", "[global]\nindex_url: https://etc.test/\n[list]\nindex-url=x\n");
	EXPECT(INDEX_PIP, "https://etc.test/", "/etc/pip.conf", NULL);
	put("/home/.pip/pip.conf", "[global]\nindex-url=https://old.test/\n");
	put("/home/.config/pip/pip.conf", "[global]\nindex-url=https://own.test/\n");
	EXPECT(INDEX_PIP, "https://own.test/", "/home/.config/pip/pip.conf", NULL);
	EXPECT(INDEX_PIP, "https://old.test/", "/home/.pip/pip.conf",
	       (char *)"XDG_CONFIG_HOME=/elsewhere");
	put("/named.conf", "[global]\nno-index = false\n");
	EXPECT(INDEX_PIP, "https://etc.test/", "/etc/pip.conf",
	       (char *)"PIP_CONFIG_FILE=/named.conf");
	EXPECT(INDEX_PIP, "https://pypi.org/simple", "the public index",
	       (char *)"PIP_CONFIG_FILE=/dev/null");
	put("/etc/pip.conf", "[install]\nindex-url = https://install.test/\n");
	EXPECT(INDEX_PIP, "https://install.test/", "/etc/pip.conf", NULL);
	EXPECT(INDEX_PIP, "https://var.test/", "PIP_INDEX_URL",
	       (char *)"PIP_INDEX_URL=https://u:p@var.test/");
	assert_string_equal(c.keys.value[INDEX_PASSWORD], "p");
}

TEST(off)
{
	static const struct {
		const char *variable, *more, *words;
	} off[] = {
		{ "PIP_INDEX_URL=http://a.test/", "X=", "trusted-host" },
		{ "PIP_INDEX_URL=http://u:canary@localhost/", "X=", "not encrypted" },
		{ "PIP_INDEX_URL=file:///srv", "X=", "PIP_INDEX_URL" },
		{ "PIP_NO_INDEX=yes", "X=", "no-index of PIP_NO_INDEX" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(off); i++) {
		char *env[] = { (char *)off[i].variable, (char *)off[i].more, NULL };

		ask(INDEX_PIP, env);
		assert_false(c.on);
		assert_true(strstr(c.note, off[i].words) && !strstr(c.note, "canary"));
		assert_false(index_keys_any(&c.keys));
	}
	EXPECT(INDEX_PIP, "http://a.test:81/", "PIP_INDEX_URL",
	       (char *)"PIP_INDEX_URL=http://a.test:81/", (char *)"PIP_TRUSTED_HOST=b A.test:81");
	EXPECT(INDEX_PIP, "http://127.0.0.1/", "PIP_INDEX_URL",
	       (char *)"PIP_INDEX_URL=http://127.0.0.1/");
}

/* A file that another user could write is ignored. */
TEST(files_of_others)
{
	char path[256];

	put("/open.conf", "[global]\nindex-url=https://owned.test/\n");
	(void)snprintf(path, sizeof(path), "%s/open.conf", root);
	assert_int_equal(chmod(path, 0666), 0);
	char *env[] = { (char *)"PIP_CONFIG_FILE=/open.conf", (char *)"XDG_CONFIG_DIRS=/no", NULL };

	ask(INDEX_PIP, env);
	assert_false(c.on); /* and not the public index in its place */
	assert_non_null(strstr(c.note, "/open.conf can be changed by everybody"));
	(void)snprintf(path, sizeof(path), "%s/fifo.conf", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	env[0] = (char *)"PIP_CONFIG_FILE=/fifo.conf";
	ask(INDEX_PIP, env);
	assert_non_null(strstr(c.note, "not a regular file"));
}

TEST(npm)
{
	EXPECT(INDEX_NPM, "https://registry.npmjs.org", "the public registry", NULL);
	put("/etc/npmrc", "registry=https://etc.test/\n");
	EXPECT(INDEX_NPM, "https://etc.test/", "/etc/npmrc", NULL);
	put("/prefix/etc/npmrc", "registry = \"https://prefix.test/\"\n");
	EXPECT(INDEX_NPM, "https://prefix.test/", "/prefix/etc/npmrc",
	       (char *)"npm_config_prefix=/prefix");
	put("/home/.npmrc", "registry=https://own.test:443/a/b/\n//own.test/:_authToken=wide\n"
			    "//own.test/a/:_authToken=${TOKEN}\n//own.test/a/b/c/:_authToken=deep\n"
			    "//other.test/:_authToken=other\n@s:registry=https://scope.test/\n");
	EXPECT(INDEX_NPM, "https://own.test:443/a/b/", "/home/.npmrc", (char *)"TOKEN=mine");
	assert_string_equal(c.keys.value[INDEX_TOKEN], "mine");
	assert_string_equal(c.variable, "TOKEN");
	EXPECT(INDEX_NPM, "https://own.test:443/a/b/", "/home/.npmrc", NULL);
	assert_string_equal(c.keys.value[INDEX_TOKEN], "wide");
	EXPECT(INDEX_NPM, "https://other.test", "NPM_CONFIG_REGISTRY",
	       (char *)"NPM_CONFIG_Registry=https://other.test");
	assert_string_equal(c.keys.value[INDEX_TOKEN], "other");
	put("/home/.npmrc", "//own.test/:_auth=bWU6d29yZA==\n//own.test/:username=ignored\n");
	EXPECT(INDEX_NPM, "https://own.test/", "NPM_CONFIG_REGISTRY",
	       (char *)"npm_config_registry=https://own.test/");
	assert_string_equal(c.keys.value[INDEX_PASSWORD], "word");
}

/* ---- arguments ----------------------------------------------------------------------------- */

TEST(settle)
{
	char *argv[] = { (char *)"serve",
			 (char *)"--pip-index=https://old:canary1@a.test/",
			 (char *)"--pip-index",
			 (char *)"https://me:canary2@b.test/simple",
			 (char *)"--npm-registry=none",
			 NULL };
	_buf_ struct buf lines = BUF_INIT(4096);
	struct err e = { 0 };

	(void)setenv("CAISSON_PIP_INDEX", "https://me:canary3@c.test/", 1);
	(void)setenv("UV_INDEX_URL", "https://me:canary4@d.test/", 1);
	assert_int_equal(index_settle(argv, &lines, &e), 0);
	assert_string_equal(argv[1], "--pip-index=https://b.test/simple");
	assert_string_equal(argv[3], "https://b.test/simple");
	assert_string_equal(argv[4], "--npm-registry=none");
	assert_string_equal(buf_str(&lines),
			    "CAISSON_PIP_USER@b.test=me\nCAISSON_PIP_PASSWORD@b.test=canary2\n");
	assert_string_equal(getenv("CAISSON_PIP_INDEX"), "https://b.test/simple");
	assert_string_equal(getenv("CAISSON_PIP_INDEX_FROM"), "--pip-index");
	assert_string_equal(getenv("CAISSON_NPM_REGISTRY"), "none");
	for (char **at = environ; *at; at++)
		assert_null(strstr(*at, "canary"));
	free(argv[1]); /* an exec would take them along */
	free(argv[3]);
	free(argv[4]);
	char *dir[] = { (char *)"serve", (char *)"--package-dir", (char *)"/srv", NULL };

	(void)unsetenv("CAISSON_PIP_INDEX");
	assert_int_equal(index_settle(dir, &lines, &e), 0);
	assert_string_equal(getenv("CAISSON_PIP_INDEX"), "none");
	char *bad[] = { (char *)"serve", (char *)"--pip-index", (char *)"http://a:b@c.test/",
			NULL };

	assert_true(index_settle(bad, &lines, &e) < 0);
	assert_non_null(strstr(e.msg, "--pip-index: http://c.test/ has credentials"));
}

int main(void)
{
	if (!unit_dir_make(root, false))
		return 1;
	int failed = unit_run();

	return unit_dir_remove(root) || failed;
}
