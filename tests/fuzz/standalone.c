/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standalone.c - A main() for fuzz targets without libFuzzer: runs the target once over each file.
 *
 * Arguments are files and directories (not descended into further). Corpora thereby run as
 * regression tests with any compiler. No argument, or one that yields no file, is a failure: a
 * moved corpus must not pass silently.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "fuzz.h"

#define INPUT_MAX (1 << 20)

/* Return: 0, or -1 after saying why. */
static int run_file(const char *path)
{
	FILE *f = fopen(path, "rbe");
	uint8_t *whole = malloc(INPUT_MAX);
	int r = -1;

	if (!f || !whole) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		goto out;
	}

	size_t len = fread(whole, 1, INPUT_MAX, f);

	if (ferror(f)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		goto out;
	}

	/* An allocation of the exact size lets the sanitizer see a read past the end. */
	uint8_t *exact = malloc(len ? len : 1);

	if (!exact)
		goto out;
	memcpy(exact, whole, len);
	(void)LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	r = 0;
out:
	free(whole);
	if (f)
		(void)fclose(f);
	return r;
}

/* Return: how many files ran, or -1. */
static long run_directory(const char *path)
{
	DIR *d = opendir(path);
	long n = 0;

	if (!d) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	for (struct dirent *entry; n >= 0 && (entry = readdir(d));) {
		char name[4096];

		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) >=
			    (int)sizeof(name) ||
		    run_file(name) < 0)
			n = -1;
		else
			n++;
	}
	(void)closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	long total = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;
		long n = 1;

		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			n = run_directory(argv[i]);
		else if (run_file(argv[i]) < 0)
			n = -1;
		if (n <= 0) {
			fprintf(stderr, "%s: no input was run\n", argv[i]);
			return 1;
		}
		total += n;
	}
	printf("%ld inputs\n", total);
	return total > 0 ? 0 : 1;
}
