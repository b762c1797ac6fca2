/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_s3.c - Answers of servers, and the texts that a bucket's process reads: lists, errors,
 * manifests, keys.
 *
 * Keys of a list that are found good are relative, and go nowhere but down.
 */
#include "bucket/bucket.h"
#include "fuzz.h"
#include "s3/sign.h"
#include "s3/site.h"
#include "s3/xml.h"

static void try_list(const char *text, size_t len)
{
	_listing_ struct listing l = { 0 };
	struct s3_page p;

	if (s3_xml_list(text, len, &p, NULL) < 0)
		return;
	require(!p.more || p.token);
	if (listing_add(&l, &p, "", NULL) == 0 && listing_check(&l, NULL) == 0)
		for (size_t i = 0; i < l.n; i++) {
			const char *key = l.list[i].key;

			require(key[0] && key[0] != '/' && strlen(key) == l.list[i].key_len);
			require(strcmp(key, "..") != 0 && strncmp(key, "../", 3) != 0);
			require(!strstr(key, "/../") && !strstr(key, "//"));
		}
	s3_page_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_manifest_ struct manifest m = { 0 };
	char code[64], message[200], value[100];
	struct s3_creds creds;
	struct s3_place place;
	struct s3_site site;

	if (size > 65536)
		return 0;
	char *text = fuzz_text(data, size);

	try_list(text, size);
	s3_xml_error(text, size, code, message);
	(void)s3_xml_value(text, size, "UploadId", value, sizeof(value));
	(void)manifest_parse(text, size, &m);
	(void)s3_creds_parse(text, size, NULL, &creds, NULL);
	(void)s3_site_parse(text, NULL, S3_STYLE_AUTO, &site, NULL);
	(void)s3_place_parse(text, &place, NULL);
	free(text);
	return 0;
}
