/* SPDX-License-Identifier: Apache-2.0 */
/* config_value.h - The kinds of values that settings have; between config.c, config_value.c and config_list.c. */
#ifndef CAISSON_FRONT_CONFIG_VALUE_H
#define CAISSON_FRONT_CONFIG_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "front/support/config.h"

enum config_kind {
	/* const char * */
	CONFIG_ADDRESS, /* numeric address and port, or none */
	CONFIG_SOCKET,  /* absolute path that fits a socket address, or none */
	CONFIG_DIR,     /* absolute path */
	CONFIG_FILE,    /* any path */
	CONFIG_NAME,    /* of a user */
	CONFIG_IMAGE,
	CONFIG_URL,      /* http:// or https://, without a query */
	CONFIG_INDEX,    /* the same, with a path, perhaps with credentials; or none */
	CONFIG_TOOLS,    /* names of tools, or default, or all */
	CONFIG_RESOLVER, /* numeric address and port */
	CONFIG_PREFIX,   /* of variables that are secrets */
	CONFIG_COMMAND,  /* words with spaces between */
	CONFIG_WORD,     /* letters, digits, '-', '_' and '.' */
	CONFIG_STYLE,    /* of addresses of buckets */
	CONFIG_PLACE,    /* a bucket, perhaps as s3://BUCKET/PREFIX */
	/* const char *[], in parts separated by commas */
	CONFIG_MODULES,
	CONFIG_HOSTS,
	CONFIG_ORIGINS,
	CONFIG_NETS,     /* ranges of addresses */
	CONFIG_PACKAGES, /* "none" empties the list */
	CONFIG_PATTERNS, /* the same with '*', and names of npm */
	CONFIG_FILES,
	CONFIG_MOUNTS, /* front/support/mounts.h */
	CONFIG_PLACES, /* [OWNER/]NAME=s3://BUCKET/PREFIX */
	/* uint64_t */
	CONFIG_COUNT,
	CONFIG_SIZE,
	CONFIG_TIME, /* milliseconds */
	/* uint32_t */
	CONFIG_CPUS,
	/* enum log_level, bool */
	CONFIG_LEVEL,
	CONFIG_FORMAT,
	/* bool: yes or no, and as an option it needs no value */
	CONFIG_SWITCH,
	CONFIG_KIND_MAX_,
};

struct config_row {
	const char *flag, *value; /* value: its name in --help */
	enum config_kind kind;
	size_t offset;       /* in struct config */
	uint64_t min, max;   /* numbers: both included; lists: max is the room, with its NULL */
	const char *initial; /* default, in the words of the value; NULL: see the help */
	const char *help;
};

/*
 * config_value_set() - Parse @v into the place of @row.
 * @append: add to a list instead of replacing it.
 * Return: 0, or a negative errno with a message that does not name the flag: the caller adds that.
 */
int config_value_set(struct config *c, const struct config_row *row, const char *v, bool append,
		     struct err *e);

/* config_list_set() - The same, for the kinds that are lists. */
int config_list_set(struct config *c, const struct config_row *row, const char *v, bool append,
		    struct err *e);

/* config_value_own() - A string of @len bytes that lives as long as @c; NULL without memory. */
char *config_value_own(struct config *c, const char *s, size_t len);

/* The default of log_json, which no text can give. */
bool config_value_stderr_is_log(void);

#endif
