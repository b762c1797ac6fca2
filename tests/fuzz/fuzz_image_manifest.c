/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_image_manifest.c - Any bytes as index, manifest and configuration: accepted documents are
 * safe to use. */
#include "fuzz.h"

#include "image/documents.h"
#include "image/ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct platform want = { "linux", "amd64", "" };
	const char *text = (const char *)data;
	struct manifest m;
	struct config c;
	struct blob b;

	(void)manifest_kind(text, size, MEDIA_OCI_INDEX, NULL);
	if (index_choose(text, size, &want, &b, NULL) == 0)
		require(ref_digest_ok(b.digest) && b.size <= MANIFEST_BYTES_MAX);
	if (manifest_parse(text, size, &m, NULL) == 0) {
		require(m.n_layers >= 1 && m.n_layers <= IMAGE_LAYERS_MAX &&
			ref_digest_ok(m.config.digest));
		for (size_t i = 0; i < m.n_layers; i++)
			require(ref_digest_ok(m.layers[i].digest) &&
				m.layers[i].size <= LAYER_BYTES_MAX);
	}
	if (config_parse(text, size, &c, NULL) == 0) {
		require(c.n_layers <= IMAGE_LAYERS_MAX && c.run.env && c.run.cmd &&
			c.run.entrypoint);
		for (char **e = c.run.env; *e; e++)
			require(strchr(*e, '=') && **e != '=');
		config_free(&c);
	}
	return 0;
}
