/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - An image's configuration: the uncompressed layers, and how programs in it are started.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/document.h"
#include "image/manifest.h"
#include "image/ref.h"

#define WORD_MAX (128u << 10) /* as long as the kernel lets an argument be */

/* A word goes to execve(2) and perhaps to a terminal; of control characters tabs and newlines are
 * in use. */
static bool word_ok(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t')
			return false;
	return true;
}

static int take_words(const json_t *run, const char *member, char ***ret, struct err *e)
{
	const json_t *list = json_object_get(run, member), *word;
	size_t n = json_is_array(list) ? json_array_size(list) : 0, i;

	if (list && !json_is_array(list) && !json_is_null(list))
		return err_say(e, -EBADMSG, "the configuration's '%s' is no list", member);
	if (n > IMAGE_WORDS_MAX)
		return err_say(e, -EBADMSG, "the configuration's '%s' has more than %d words",
			       member, IMAGE_WORDS_MAX);
	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return err_set(e, -ENOMEM, "read the configuration");
	for (i = 0; i < n; i++) {
		word = json_array_get(list, i);
		if (!json_is_string(word) || json_string_length(word) > WORD_MAX ||
		    strlen(json_string_value(word)) != json_string_length(word) ||
		    !word_ok(json_string_value(word)))
			return err_say(e, -EBADMSG,
				       "the configuration's '%s' has a word that is none", member);
		(*ret)[i] = strdup(json_string_value(word));
		if (!(*ret)[i])
			return err_set(e, -ENOMEM, "read the configuration");
	}
	return 0;
}

static int take_text(const json_t *run, const char *member, size_t max, char **ret, struct err *e)
{
	const char *text = document_text(run, member);

	if (strlen(text) > max || !word_ok(text) || strpbrk(text, "\n\t"))
		return err_say(e, -EBADMSG, "the configuration's '%s' is too long, or no text",
			       member);
	*ret = strdup(text);
	return *ret ? 0 : err_set(e, -ENOMEM, "read the configuration");
}

static int check_env(char **env, struct err *e)
{
	for (; *env; env++)
		if (**env == '=' || !strchr(*env, '='))
			return err_say(e, -EBADMSG,
				       "the configuration's 'Env' has an entry without a name");
	return 0;
}

static int take_run(const json_t *run, struct image_config *ret, struct err *e)
{
	int r = take_words(run, "Env", &ret->env, e);

	if (r == 0)
		r = check_env(ret->env, e);
	if (r == 0)
		r = take_words(run, "Entrypoint", &ret->entrypoint, e);
	if (r == 0)
		r = take_words(run, "Cmd", &ret->cmd, e);
	if (r == 0)
		r = take_text(run, "WorkingDir", 4095, &ret->workdir, e);
	if (r == 0)
		r = take_text(run, "User", 255, &ret->user, e);
	if (r == 0 && ret->workdir[0] && ret->workdir[0] != '/')
		return err_say(e, -EBADMSG, "the configuration's 'WorkingDir' is not absolute");
	return r;
}

static int take_layers(const json_t *doc, struct config *ret, struct err *e)
{
	const json_t *list = json_object_get(json_object_get(doc, "rootfs"), "diff_ids"), *id;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > IMAGE_LAYERS_MAX)
		return err_say(
			e, -EBADMSG,
			"the configuration has no list 'rootfs.diff_ids', or a too long one");
	json_array_foreach(list, i, id)
	{
		const char *text = json_string_value(id);

		if (!text || !ref_digest_ok(text))
			return err_say(e, -EBADMSG,
				       "the configuration's 'diff_ids' has what is no digest");
		memcpy(ret->diff_ids[i], text, sizeof(ret->diff_ids[i]));
	}
	ret->n_layers = json_array_size(list);
	return 0;
}

int config_parse(const char *text, size_t len, struct config *ret, struct err *e)
{
	_document_ json_t *doc = document_load("configuration", text, len, e);
	int r;

	*ret = (struct config){ 0 };
	if (!doc)
		return -EBADMSG;
	(void)snprintf(ret->arch, sizeof(ret->arch), "%.31s", document_text(doc, "architecture"));
	(void)snprintf(ret->os, sizeof(ret->os), "%.31s", document_text(doc, "os"));
	(void)snprintf(ret->created, sizeof(ret->created), "%.39s", document_text(doc, "created"));
	r = take_layers(doc, ret, e);
	if (r == 0)
		r = take_run(json_object_get(doc, "config"), &ret->run, e);
	if (r < 0)
		config_free(ret);
	return r;
}

static void free_words(char **words)
{
	for (char **w = words; w && *w; w++)
		free(*w);
	free(words);
}

void image_config_free(struct image_config *c)
{
	free_words(c->env);
	free_words(c->entrypoint);
	free_words(c->cmd);
	free(c->workdir);
	free(c->user);
	*c = (struct image_config){ 0 };
}

void config_free(struct config *c)
{
	image_config_free(&c->run);
}
