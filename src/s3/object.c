/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.c - List, look at, link to, remove and put objects.
 *
 * A large object is put in parts. A part is read into memory, hashed, signed and sent, and stays
 * there to be sent again. So the memory is that of one part, however large the object. Parts are 16
 * MiB until there would be more than the 10,000 that servers take.
 */
#include "s3/object.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/fd.h"

#define PART_BYTES (UINT64_C(16) << 20)
#define PARTS_MAX 9999u
#define PART_BYTES_MAX (UINT64_C(512) << 20)
#define UPLOAD_ID_MAX 2048u

static int run(struct s3_client *c, struct s3_call *call, struct err *e)
{
	return s3_run(c, &call, 1, e);
}

static int run_well(struct s3_client *c, struct s3_call *call, struct err *e)
{
	int r = run(c, call, e);

	return r < 0 ? r : s3_check(call, e);
}

int s3_page(struct s3_client *c, const struct s3_place *place, const char *token,
	    struct s3_page *ret, struct err *e)
{
	_buf_ struct buf query = BUF_INIT(S3_URL_MAX);
	_s3_call_ struct s3_call call = { .method = "GET", .bucket = place->bucket };

	*ret = (struct s3_page){ 0 };
	if (token) {
		(void)buf_puts(&query, "continuation-token=");
		buf_escape(&query, token, "");
		(void)buf_puts(&query, "&");
	}
	(void)buf_puts(&query, "encoding-type=url&list-type=2&prefix=");
	buf_escape(&query, place->prefix, "");
	call.query = buf_str(&query);
	int r = query.err ? err_set(e, query.err, "ask for a list") : run_well(c, &call, e);

	if (r == 0)
		r = s3_xml_list(buf_str(&call.text), call.text.len, ret, e);
	return r < 0 ? err_wrap(e, "list the bucket '%s'", place->bucket) : 0;
}

/* 1, 0 when there is no such object, or -errno. */
static int look(struct s3_client *c, const char *bucket, const char *key,
		char ret_etag[S3_ETAG_MAX], struct err *e)
{
	_s3_call_ struct s3_call call = { .method = "HEAD", .bucket = bucket, .key = key };
	int r = run(c, &call, e);

	if (r == 0 && call.status == 404)
		return 0;
	if (r == 0)
		r = s3_check(&call, e);
	if (r < 0)
		return err_wrap(e, "look at '%.200s'", key);
	memcpy(ret_etag, call.etag, S3_ETAG_MAX);
	return 1;
}

int s3_remove(struct s3_client *c, const char *bucket, const char *key, struct err *e)
{
	_s3_call_ struct s3_call call = { .method = "DELETE", .bucket = bucket, .key = key };
	int r = run(c, &call, e);

	if (r == 0 && call.status != 404)
		r = s3_check(&call, e);
	return r < 0 ? err_wrap(e, "remove '%.200s'", key) : 0;
}

int s3_link(const struct s3_client *c, const char *bucket, const char *key, unsigned int expires,
	    struct buf *out)
{
	_buf_ struct buf host = BUF_INIT(512), path = BUF_INIT(S3_URL_MAX);
	struct s3_ask ask = { .method = "GET", .query = "", .now = (int64_t)time(NULL) };

	s3_host(&c->site, bucket, &host);
	s3_path(&c->site, bucket, key, &path);
	ask.host = buf_str(&host);
	ask.path = buf_str(&path);
	(void)buf_printf(out, "%s://%s%s?", c->site.tls ? "https" : "http", ask.host, ask.path);
	if (host.err || path.err)
		return -EMSGSIZE;
	return s3_presign(&c->creds, c->site.region, &ask, expires, out);
}

/* ---- putting ------------------------------------------------------------------------------- */

static void add(struct s3_call *call, const char *name, const char *value)
{
	call->headers[call->n_headers++] = (struct s3_header){ name, value };
}

/* The version that the request replaces, as a condition. */
static void add_condition(struct s3_call *call, const struct s3_new *n,
			  char quoted[S3_ETAG_MAX + 3])
{
	(void)snprintf(quoted, S3_ETAG_MAX + 3, "\"%.*s\"", (int)S3_ETAG_MAX,
		       n->match ? n->match : "");
	if (n->match)
		add(call, n->match[0] ? "if-match" : "if-none-match", n->match[0] ? quoted : "*");
}

static const char *type_of(const struct s3_new *n)
{
	return n->type ? n->type : "application/octet-stream";
}

/* For servers that do not know conditions. */
static int look_first(struct s3_client *c, const struct s3_new *n, struct err *e)
{
	char etag[S3_ETAG_MAX] = "";
	int r = n->match ? look(c, n->bucket, n->key, etag, e) : 0;

	if (r < 0 || !n->match)
		return r;
	if (strcmp(etag, n->match) != 0)
		return err_say(e, -ESTALE, "the object is not the one that was read");
	return 0;
}

/* ---- whole --------------------------------------------------------------------------------- */

static int put_whole(struct s3_client *c, struct s3_new *n, const char *data, bool conditions,
		     struct err *e)
{
	_s3_call_ struct s3_call call = { .method = "PUT",
					  .bucket = n->bucket,
					  .key = n->key,
					  .body = data,
					  .len = (size_t)n->size };
	char quoted[S3_ETAG_MAX + 3];

	add(&call, "content-type", type_of(n));
	if (conditions)
		add_condition(&call, n, quoted);
	int r = run_well(c, &call, e);

	memcpy(n->etag, call.etag, sizeof(n->etag));
	return r;
}

/* ---- in parts ------------------------------------------------------------------------------ */

struct upload {
	struct s3_client *c;
	struct s3_new *n;
	char id[UPLOAD_ID_MAX];
	char escaped[3 * UPLOAD_ID_MAX];
	struct buf list; /* the document that ends it */
};

static int begin(struct upload *u, struct err *e)
{
	_buf_ struct buf escaped = BUF_INIT(sizeof(u->escaped) - 1);
	_s3_call_ struct s3_call call = {
		.method = "POST", .bucket = u->n->bucket, .key = u->n->key, .query = "uploads="
	};

	add(&call, "content-type", type_of(u->n));
	int r = run_well(u->c, &call, e);

	if (r < 0)
		return r;
	if (!s3_xml_value(buf_str(&call.text), call.text.len, "UploadId", u->id, sizeof(u->id)))
		return err_say(e, -EBADMSG, "%s does not name the upload", u->c->site.host);
	buf_escape(&escaped, u->id, "");
	(void)snprintf(u->escaped, sizeof(u->escaped), "%s", buf_str(&escaped));
	return 0;
}

static int put_part(struct upload *u, unsigned int number, const char *data, size_t len,
		    struct err *e)
{
	_buf_ struct buf query = BUF_INIT(S3_URL_MAX);
	_s3_call_ struct s3_call call = {
		.method = "PUT", .bucket = u->n->bucket, .key = u->n->key, .body = data, .len = len
	};

	(void)buf_printf(&query, "partNumber=%u&uploadId=%s", number, u->escaped);
	call.query = buf_str(&query);
	add(&call, "content-type", "application/octet-stream");
	int r = run_well(u->c, &call, e);

	if (r < 0)
		return r;
	if (!call.etag[0] || strpbrk(call.etag, "<>&"))
		return err_say(e, -EBADMSG, "%s does not name the part", u->c->site.host);
	return buf_printf(&u->list, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
			  number, call.etag);
}

static int finish(struct upload *u, bool conditions, struct err *e)
{
	_buf_ struct buf query = BUF_INIT(S3_URL_MAX), body = BUF_INIT(4u << 20);
	_s3_call_ struct s3_call call = { .method = "POST",
					  .bucket = u->n->bucket,
					  .key = u->n->key };
	char code[64], message[200], quoted[S3_ETAG_MAX + 3], etag[S3_ETAG_MAX + 8];

	(void)buf_printf(&query, "uploadId=%s", u->escaped);
	(void)buf_printf(&body, "<CompleteMultipartUpload>%s</CompleteMultipartUpload>",
			 buf_str(&u->list));
	call.query = buf_str(&query);
	call.body = buf_str(&body);
	call.len = body.len;
	add(&call, "content-type", "application/xml");
	if (conditions)
		add_condition(&call, u->n, quoted);
	int r = body.err ? err_set(e, body.err, "list the parts") : run_well(u->c, &call, e);

	if (r < 0)
		return r;
	/* A server begins this answer before it knows the result: 200 can be an error. */
	s3_xml_error(buf_str(&call.text), call.text.len, code, message);
	if (code[0])
		return err_say(e, strcmp(code, "PreconditionFailed") == 0 ? -ESTALE : -EIO,
			       "%s answers %s: %s", u->c->site.host, code, message);
	if (!s3_xml_value(buf_str(&call.text), call.text.len, "ETag", etag, sizeof(etag)))
		return err_say(e, -EBADMSG, "%s does not end the upload", u->c->site.host);
	s3_etag(etag, strlen(etag), u->n->etag);
	return 0;
}

static void forget(struct upload *u)
{
	_buf_ struct buf query = BUF_INIT(S3_URL_MAX);
	_s3_call_ struct s3_call call = { .method = "DELETE",
					  .bucket = u->n->bucket,
					  .key = u->n->key };
	int cancel = u->c->cancel_fd;

	(void)buf_printf(&query, "uploadId=%s", u->escaped);
	call.query = buf_str(&query);
	u->c->cancel_fd = -1; /* also when nobody waits any more */
	(void)run_well(u->c, &call, NULL);
	u->c->cancel_fd = cancel;
}

static int put_parts(struct upload *u, s3_source *source, void *arg,
		     void (*progress)(void *arg, uint64_t bytes), struct err *e)
{
	uint64_t size = u->n->size, at = 0;
	uint64_t part = size / PARTS_MAX + 1 > PART_BYTES ? size / PARTS_MAX + 1 : PART_BYTES;
	_mem_ char *data = part <= PART_BYTES_MAX ? malloc((size_t)part) : NULL;
	int r = data ? 0 : err_set(e, -ENOMEM, "hold a part of %" PRIu64 " bytes", part);

	for (unsigned int number = 1; r == 0 && at < size; number++) {
		size_t len = (size_t)(size - at < part ? size - at : part);

		r = source(arg, data, len);
		if (r < 0)
			return err_set(e, r, "read it");
		r = put_part(u, number, data, len, e);
		at += len;
		if (r == 0 && progress)
			progress(arg, at);
	}
	return r;
}

static int put_large(struct s3_client *c, struct s3_new *n, s3_source *source, void *arg,
		     void (*progress)(void *arg, uint64_t bytes), struct err *e)
{
	struct upload u = { .c = c, .n = n, .list = BUF_INIT(4u << 20) };
	int r = begin(&u, e);

	if (r < 0)
		return r;
	r = put_parts(&u, source, arg, progress, e);
	if (r == 0)
		r = finish(&u, true, e);
	if (r == -EOPNOTSUPP && n->match) {
		r = look_first(c, n, e);
		if (r == 0)
			r = finish(&u, false, e);
	}
	if (r < 0)
		forget(&u);
	buf_free(&u.list);
	return r;
}

int s3_put(struct s3_client *c, struct s3_new *n, s3_source *source, void *arg,
	   void (*progress)(void *arg, uint64_t bytes), struct err *e)
{
	int r;

	n->etag[0] = '\0';
	if (n->size > PART_BYTES) {
		r = put_large(c, n, source, arg, progress, e);
		return r < 0 ? err_wrap(e, "put '%.200s'", n->key) : 0;
	}
	_mem_ char *data = malloc((size_t)n->size + 1);

	if (!data)
		return err_set(e, -ENOMEM, "put '%.200s'", n->key);
	r = source(arg, data, (size_t)n->size);
	if (r < 0)
		return err_set(e, r, "put '%.200s': read it", n->key);
	r = put_whole(c, n, data, true, e);
	if (r == -EOPNOTSUPP && n->match) {
		r = look_first(c, n, e);
		if (r == 0)
			r = put_whole(c, n, data, false, e);
	}
	if (r == 0 && progress)
		progress(arg, n->size);
	return r < 0 ? err_wrap(e, "put '%.200s'", n->key) : 0;
}
