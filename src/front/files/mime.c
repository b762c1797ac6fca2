/* SPDX-License-Identifier: Apache-2.0 */
/* mime.c - Media types by suffix, for the files that programs leave behind. */
#include "front/files/mime.h"

#include <string.h>
#include <strings.h>

const char *mime_of(const char *path)
{
	static const char *const known[][2] = {
		{ ".png", "image/png" },
		{ ".jpg", "image/jpeg" },
		{ ".jpeg", "image/jpeg" },
		{ ".gif", "image/gif" },
		{ ".webp", "image/webp" },
		{ ".svg", "image/svg+xml" },
		{ ".pdf", "application/pdf" },
		{ ".csv", "text/csv" },
		{ ".tsv", "text/tab-separated-values" },
		{ ".txt", "text/plain" },
		{ ".log", "text/plain" },
		{ ".md", "text/markdown" },
		{ ".html", "text/html" },
		{ ".json", "application/json" },
		{ ".xml", "application/xml" },
		{ ".zip", "application/zip" },
		{ ".gz", "application/gzip" },
		{ ".tar", "application/x-tar" },
		{ ".parquet", "application/vnd.apache.parquet" },
		{ ".mp4", "video/mp4" },
		{ ".mp3", "audio/mpeg" },
		{ ".wav", "audio/wav" },
		{ ".py", "text/x-python" },
		{ ".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
	};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcasecmp(dot, known[i][0]) == 0)
			return known[i][1];
	return "application/octet-stream";
}
