/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads for protocols what their sessions need of the configuration: texts with variables, and
 * variables. Reports point at the directive that the protocol
 * has named. */
#include "settings/calls.h"

#include "settings/apply.h"
#include "settings/protocol.h"
#include "settings/template.h"

#include <string.h>

/* Tells which bytes of a text are values of the environment, where it is an argument's. */
static void set_plain(const fb_conf *conf, struct conf_word *word, const char *text)
{
    for (unsigned i = 0; conf->directive != NULL && i < conf->directive->arg_n; i++)
        if (conf->directive->args[i].text == text)
            word->plain = conf->directive->args[i].plain;
}

const struct conf_word *settings_word(const fb_conf *conf, const char *directive, const char *text)
{
    struct conf_word *word = apply_alloc(conf->apply, sizeof(*word));
    const char *copy = apply_strdup(conf->apply, text);

    if (word == NULL || copy == NULL)
        return NULL;
    *word = *settings_place(conf, directive);
    word->text = copy;
    word->plain = NULL;
    set_plain(conf, word, text);
    return word;
}

const fb_template *settings_template(fb_conf *conf, const char *directive, const char *text)
{
    const struct conf_word *word = settings_word(conf, directive, text);

    return word == NULL ? NULL : (const fb_template *)template_of(conf->apply, word, word->text);
}

const fb_variable *settings_variable(fb_conf *conf, const char *directive, const char *name)
{
    const struct conf_word *word = settings_word(conf, directive, name);
    const char *bare = name[0] == '$' ? name + 1 : name;
    size_t n = strspn(bare, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    if (word == NULL)
        return NULL;
    if (n > 0 && bare[n] == '\0')
        return (const fb_variable *)template_use(conf->apply, word, bare, n);
    settings_report(
        conf, directive, "invalid variable name \"%s\": expected letters, digits or \"_\"", name);
    return NULL;
}
