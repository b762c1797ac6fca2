/* SPDX-License-Identifier: Apache-2.0 */
/* object.c - One request each; s3_put() is in upload.c. */
#include "s3/object.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/err.h"

static int run(struct s3_client *c, struct s3_call *call, struct err *e)
{
	return s3_run(c, &call, 1, e);
}

int s3_page(struct s3_client *c, const struct s3_place *place, const char *token,
	    struct s3_page *ret, struct err *e)
{
	_buf_ struct buf query = BUF_INIT(S3_URL_MAX);
	_s3_call_ struct s3_call call = { .method = "GET", .bucket = place->bucket };

	*ret = (struct s3_page){ 0 };
	if (token) {
		(void)buf_puts(&query, "continuation-token=");
		s3_escape(token, false, &query);
		(void)buf_puts(&query, "&");
	}
	(void)buf_puts(&query, "encoding-type=url&list-type=2&prefix=");
	s3_escape(place->prefix, false, &query);
	call.query = buf_str(&query);
	int r = query.err ? err_set(e, query.err, "ask for a list") : run(c, &call, e);

	if (r == 0)
		r = s3_check(&call, e);
	if (r == 0)
		r = s3_xml_list(buf_str(&call.text), call.text.len, ret, e);
	return r < 0 ? err_wrap(e, "list the bucket '%s'", place->bucket) : 0;
}

int s3_head(struct s3_client *c, const char *bucket, const char *key, char ret_etag[S3_ETAG_MAX],
	    struct err *e)
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
