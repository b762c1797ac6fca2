/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_check.h - Check one value of a setting, for the table in config.c.
 *
 * Each returns 0, or a negative errno with a message that does not name the option.
 */
#ifndef CAISSON_FRONT_SUPPORT_CONFIG_CHECK_H
#define CAISSON_FRONT_SUPPORT_CONFIG_CHECK_H

struct err;

int config_check_address(const char *v, struct err *e); /* numeric address and port, or none */
int config_check_socket(const char *v, struct err *e);  /* absolute path that fits a socket address,
							   or none */
int config_check_user(const char *v, struct err *e);    /* name of a user */
int config_check_image(const char *v, struct err *e);
int config_check_registry(const char *v, struct err *e); /* host, dir:PATH, or a reference */
int config_check_prefix(const char *v, struct err *e);   /* prefix of variables that are secrets */
int config_check_command(const char *v, struct err *e);  /* words with spaces between them */
int config_check_resolver(const char *v, struct err *e); /* numeric address and port */
int config_check_word(const char *v, struct err *e);     /* letters, digits, '-', '_' and '.' */
int config_check_style(const char *v, struct err *e);    /* of addresses of buckets */
int config_check_place(const char *v, struct err *e);    /* BUCKET, or s3://BUCKET/PREFIX */
int config_check_url(const char *v, struct err *e);    /* http:// or https://, without a query; goes
							  into headers and JSON */
int config_check_index(const char *v, struct err *e);  /* URL of a package index, or none */
int config_check_module(const char *v, struct err *e); /* python module as `import` takes it */
int config_check_host(const char *v, struct err *e);   /* without a port */
int config_check_server(const char *v, struct err *e); /* a name, perhaps with a port */
int config_check_origin(const char *v, struct err *e); /* scheme://host[:port] */
int config_check_net(const char *v, struct err *e);    /* range of addresses */
int config_check_package(const char *v, struct err *e); /* name of a python package */
int config_check_pattern(const char *v, struct err *e); /* the same with '*', and names of npm */
int config_check_mount(const char *v, struct err *e);   /* front/support/mounts.h */
int config_check_path(const char *v, struct err *e);    /* without control characters */
int config_check_mapping(const char *v, struct err *e); /* [OWNER/]NAME=s3://BUCKET/PREFIX */

/* config_canonical_package() - Rewrite a name that config_check_package() took (PEP 503). */
void config_canonical_package(char *s);

#endif
