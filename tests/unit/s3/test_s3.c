/* SPDX-License-Identifier: Apache-2.0 */
/* test_s3.c - Signatures against Amazon's published examples; addresses, keys, answers,
 * credentials. */
#include <errno.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/err.h"
#include "hash/hash.h"
#include "s3/sign.h"
#include "s3/site.h"
#include "s3/xml.h"

/* ---- signatures: "Authenticating Requests (AWS Signature Version 4)", the examples of Amazon S3
 * --- */

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HOST "examplebucket.s3.amazonaws.com"
#define NOW 1369353600 /* 20130524T000000Z */
#define STAMP "20130524T000000Z"

static const struct s3_creds example = { .access = "AKIAIOSFODNN7EXAMPLE",
					 .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" };

static void expect_signature(const struct s3_ask *ask, const char *headers, const char *signature)
{
	_buf_ struct buf b = BUF_INIT(4096), wanted = BUF_INIT(4096);

	assert_int_equal(s3_sign(&example, "us-east-1", ask, &b), 0);
	(void)buf_printf(&wanted,
			 "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
			 "aws4_request,SignedHeaders=%s,Signature=%s",
			 headers, signature);
	assert_string_equal(buf_str(&b), buf_str(&wanted));
}

TEST(get_with_range)
{
	const struct s3_ask ask = { .method = "GET",
				    .host = HOST,
				    .path = "/test.txt",
				    .query = "",
				    .payload = EMPTY_HASH,
				    .now = NOW,
				    .n_headers = 3,
				    .headers = { { "x-amz-date", STAMP },
						 { "range", "bytes=0-9" },
						 { "x-amz-content-sha256", EMPTY_HASH } } };

	expect_signature(&ask, "host;range;x-amz-content-sha256;x-amz-date",
			 "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(put)
{
	char hash[S3_HASH_HEX + 1];
	_buf_ struct buf path = BUF_INIT(100);
	struct s3_site site;

	assert_true(hash_sha256_hex("Welcome to Amazon S3.", 21, hash));
	assert_string_equal(hash,
			    "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
	assert_int_equal(s3_site_parse(NULL, NULL, S3_STYLE_AUTO, &site, NULL), 0);
	s3_path(&site, "examplebucket", "test$file.text", &path);
	const struct s3_ask ask = { .method = "PUT",
				    .host = HOST,
				    .path = buf_str(&path),
				    .query = "",
				    .payload = hash,
				    .now = NOW,
				    .n_headers = 4,
				    .headers = { { "date", "Fri, 24 May 2013 00:00:00 GMT" },
						 { "x-amz-date", STAMP },
						 { "x-amz-storage-class", "REDUCED_REDUNDANCY" },
						 { "x-amz-content-sha256", hash } } };

	expect_signature(&ask, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
			 "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(queries)
{
	struct s3_ask ask = { .method = "GET",
			      .host = HOST,
			      .path = "/",
			      .query = "lifecycle=",
			      .payload = EMPTY_HASH,
			      .now = NOW,
			      .n_headers = 2,
			      .headers = { { "x-amz-date", STAMP },
					   { "x-amz-content-sha256", EMPTY_HASH } } };

	expect_signature(&ask, "host;x-amz-content-sha256;x-amz-date",
			 "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
	ask.query = "max-keys=2&prefix=J";
	expect_signature(&ask, "host;x-amz-content-sha256;x-amz-date",
			 "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(presigned)
{
	const struct s3_ask ask = {
		.method = "GET", .host = HOST, .path = "/test.txt", .query = "", .now = NOW
	};
	_buf_ struct buf b = BUF_INIT(4096);

	assert_int_equal(s3_presign(&example, "us-east-1", &ask, 86400, &b), 0);
	assert_string_equal(
		buf_str(&b),
		"X-Amz-Algorithm=AWS4-HMAC-SHA256"
		"&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
		"&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
		"&"
		"X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
	assert_int_equal(s3_presign(&example, "us-east-1", &ask, 0, &b), -ERANGE);
	assert_int_equal(s3_presign(&example, "us-east-1", &ask, 604801, &b), -ERANGE);
}

/* ---- addresses ----------------------------------------------------------------------------- */

static void expect_address(const char *url, enum s3_style style, const char *key, const char *host,
			   const char *path)
{
	_buf_ struct buf h = BUF_INIT(400), p = BUF_INIT(400);
	struct s3_site site;

	assert_int_equal(s3_site_parse(url, "eu-west-1", style, &site, NULL), 0);
	s3_host(&site, "box", &h);
	s3_path(&site, "box", key, &p);
	assert_string_equal(buf_str(&h), host);
	assert_string_equal(buf_str(&p), path);
}

TEST(addresses)
{
	static const char *const wrong[] = { "ftp://x",      "https://",   "x.example",
					     "http://a b",   "http://u@h", "http://h/?q",
					     "http://h/\r\n" };
	struct s3_site site;

	expect_address(NULL, S3_STYLE_AUTO, "a b/ä", "box.s3.eu-west-1.amazonaws.com",
		       "/a%20b/%C3%A4");
	expect_address(NULL, S3_STYLE_PATH, NULL, "s3.eu-west-1.amazonaws.com", "/box");
	expect_address("http://127.0.0.1:9000", S3_STYLE_AUTO, "a+b", "127.0.0.1:9000",
		       "/box/a%2Bb");
	expect_address("https://S3.Example:443/x/", S3_STYLE_VIRTUAL, "k", "box.s3.example",
		       "/x/k");
	expect_address("http://h:80", S3_STYLE_PATH, NULL, "h", "/box");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(s3_site_parse(wrong[i], NULL, S3_STYLE_AUTO, &site, NULL),
				 -EINVAL);
	assert_int_equal(s3_site_parse(NULL, "a/b", S3_STYLE_AUTO, &site, NULL), -EINVAL);
}

TEST(places)
{
	static const char *const wrong[] = { "box",          "s3://",       "s3://Box",
					     "s3://a",       "s3://-box/x", "s3://box//x",
					     "s3://1.2.3.4", "s3://a..b" };
	struct s3_place p;

	assert_int_equal(s3_place_parse("s3://my-box", &p, NULL), 0);
	assert_string_equal(p.bucket, "my-box");
	assert_string_equal(p.prefix, "");
	assert_int_equal(s3_place_parse("s3://my.box/team/data", &p, NULL), 0);
	assert_string_equal(p.bucket, "my.box");
	assert_string_equal(p.prefix, "team/data/");
	assert_int_equal(s3_place_parse("s3://box/x/", &p, NULL), 0);
	assert_string_equal(p.prefix, "x/");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(s3_place_parse(wrong[i], &p, NULL), -EINVAL);
}

TEST(keys)
{
	static const char *const good[] = { "a", "a/b", "dir/", ".hidden", "a b", "...", "ä/ö" };
	static const char *const bad[] = { "",       "/",   "/a",  "a//b", "..",
					   "a/../b", "./a", "a/.", "a//",  "\xff" };
	char long_part[300], shown[16];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_null(s3_key_problem(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_non_null(s3_key_problem(bad[i], strlen(bad[i])));
	assert_non_null(s3_key_problem("a\0b", 3));
	memset(long_part, 'x', sizeof(long_part));
	assert_null(s3_key_problem(long_part, 255));
	assert_non_null(s3_key_problem(long_part, 256));
	assert_string_equal(s3_key_show("a\nb'", 4, shown, sizeof(shown)), "a?b?");
	assert_string_equal(s3_key_show(long_part, 300, shown, sizeof(shown)), "xxxxxxxxxxxx...");
}

/* ---- answers ------------------------------------------------------------------------------- */

#define LIST(inner)                                                                                \
	"<?xml version=\"1.0\"?><ListBucketResult "                                                \
	"xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"                                       \
	"<Name>box</Name>" inner "</ListBucketResult>"

static int parse(const char *text, struct s3_page *p)
{
	return s3_xml_list(text, strlen(text), p, NULL);
}

TEST(list)
{
	struct s3_page p;

	assert_int_equal(
		parse(LIST("<IsTruncated>true</IsTruncated>"
			   "<NextContinuationToken>a/+=</NextContinuationToken>"
			   "<Contents><Key>a+b%2Bc%0A</Key><Size>12</Size><ETag>&quot;e1&quot;"
			   "</ETag><LastModified>2013-05-24T00:00:00.000Z</LastModified>"
			   "<Owner><ID>x</ID></Owner></Contents>"
			   "<Contents><Key>z</Key><Size>0</Size></Contents>"),
		      &p),
		0);
	assert_int_equal(p.n, 2);
	assert_string_equal(p.list[0].key, "a b+c\n");
	assert_int_equal(p.list[0].size, 12);
	assert_int_equal(p.list[0].mtime, NOW);
	assert_string_equal(p.list[0].etag, "e1");
	assert_string_equal(p.list[1].key, "z");
	assert_true(p.more);
	assert_string_equal(p.token, "a/+=");
	s3_page_free(&p);
	assert_int_equal(parse(LIST(""), &p), 0);
	assert_int_equal(p.n, 0);
	s3_page_free(&p);
}

TEST(list_refused)
{
	static const char *const bad[] = {
		"",
		"<html></html>",
		"<ListBucketResult>",
		LIST("<IsTruncated>true</IsTruncated>"),
		LIST("<Contents><Size>1</Size></Contents>"),
		LIST("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
		"<a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a></a>",
		"<!DOCTYPE x [<!ENTITY a "
		"\"aa\">]><ListBucketResult><Name>&a;</Name></ListBucketResult>",
	};
	struct s3_page p;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &p), -EBADMSG);
}

TEST(errors)
{
	static const char text[] =
		"<Error><Code>NoSuchKey</Code><Message>no\nsuch</Message></Error>";
	static const char upload[] = "<InitiateMultipartUploadResult><UploadId>abc</UploadId></"
				     "InitiateMultipartUploadResult>";
	char code[64], message[200], id[8], small[3];

	s3_xml_error(text, strlen(text), code, message);
	assert_string_equal(code, "NoSuchKey");
	assert_string_equal(message, "no such");
	s3_xml_error("oops", 4, code, message);
	assert_string_equal(code, "");
	assert_true(s3_xml_value(upload, strlen(upload), "UploadId", id, sizeof(id)));
	assert_string_equal(id, "abc");
	assert_false(s3_xml_value(upload, strlen(upload), "UploadId", small, sizeof(small)));
	assert_false(s3_xml_value(upload, strlen(upload), "ETag", id, sizeof(id)));
}

/* ---- credentials --------------------------------------------------------------------------- */

TEST(creds)
{
	static const char text[] = "# ours\n[default]\naws_access_key_id = A1\n"
				   "aws_secret_access_key=S/1+\nregion = x\n\n"
				   "[other]\nAWS_ACCESS_KEY_ID=A2\r\nAWS_SECRET_ACCESS_KEY=S2\n"
				   "aws_session_token = T==\n";
	static const char lines[] = "AWS_ACCESS_KEY_ID=A3\nAWS_SECRET_ACCESS_KEY=S3\n";
	struct s3_creds c;
	struct err e = { 0 };

	assert_int_equal(s3_creds_parse(text, strlen(text), NULL, &c, NULL), 0);
	assert_string_equal(c.access, "A1");
	assert_string_equal(c.secret, "S/1+");
	assert_string_equal(c.token, "");
	assert_int_equal(s3_creds_parse(text, strlen(text), "other", &c, NULL), 0);
	assert_string_equal(c.access, "A2");
	assert_string_equal(c.token, "T==");
	assert_int_equal(s3_creds_parse(lines, strlen(lines), NULL, &c, NULL), 0);
	assert_string_equal(c.secret, "S3");
	assert_int_equal(s3_creds_parse(text, strlen(text), "third", &c, &e), -ENOENT);
	assert_int_equal(s3_creds_parse("a\n", 2, NULL, &c, &e), -EINVAL);
	assert_int_equal(s3_creds_parse("access_key=hush hush", 20, NULL, &c, &e), -EINVAL);
	assert_null(strstr(e.msg, "hush"));
}
