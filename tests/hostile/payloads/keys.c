/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - Find a key in the keyrings that came with the process, read it, leave one behind.
 *
 *   keys NAME NEW          look for NAME (a "user" key), then add NEW to every keyring
 *   keys wrap NAME SECRET PROGRAM...   a new session keyring with that key, then PROGRAM in it
 */
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

static const struct {
	const char *name;
	long id;
} rings[] = {
	{ "thread", KEY_SPEC_THREAD_KEYRING },
	{ "process", KEY_SPEC_PROCESS_KEYRING },
	{ "session", KEY_SPEC_SESSION_KEYRING },
	{ "user", KEY_SPEC_USER_KEYRING },
	{ "user-session", KEY_SPEC_USER_SESSION_KEYRING },
};

static int wrap(char **argv)
{
	if (say("join", syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL)) < 0)
		return 3;
	long key = syscall(SYS_add_key, "user", argv[2], argv[3], strlen(argv[3]),
			   KEY_SPEC_SESSION_KEYRING);

	if (say("add", key) < 0)
		return 4;
	/* Its possessor may do everything, by default. Others: nothing. */
	(void)execv(argv[4], argv + 4);
	return 127;
}

int main(int argc, char **argv)
{
	char text[256], line[64];

	if (argc > 4 && strcmp(argv[1], "wrap") == 0)
		return wrap(argv);
	if (argc != 3)
		return 2;
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		(void)snprintf(line, sizeof(line), "search-%s", rings[i].name);
		long key = say(line,
			       syscall(SYS_keyctl, KEYCTL_SEARCH, rings[i].id, "user", argv[1], 0));
		long n = key < 0 ? 0 : syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof(text));

		if (n > 0)
			(void)printf("read-%s %.*s\n", rings[i].name, (int)n, text);
	}
	say("request_key", syscall(SYS_request_key, "user", argv[1], NULL, 0));
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		(void)snprintf(line, sizeof(line), "add-%s", rings[i].name);
		long key =
			say(line, syscall(SYS_add_key, "user", argv[2], "left", 4ul, rings[i].id));

		/* The control must not leave it behind: revoked, it would still be in a user's
		 * keyring, and in his quota. */
		if (key > 0)
			(void)syscall(SYS_keyctl, KEYCTL_UNLINK, key, rings[i].id);
	}
	return 0;
}
