/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads for protocols what their sessions need of the configuration: texts with variables,
 * variables, and addresses that servers listen on. Reports point at the directive that the protocol
 * has named. */
#include "settings/calls.h"

#include "settings/apply.h"
#include "settings/lookup.h"
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

/* Returns a word with this text at the place of a directive; NULL after a report. */
static const struct conf_word *make_word(
    const fb_conf *conf, const char *directive, const char *text)
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
    const struct conf_word *word = make_word(conf, directive, text);

    return word == NULL ? NULL : (const fb_template *)template_of(conf->apply, word, word->text);
}

const fb_variable *settings_variable(fb_conf *conf, const char *directive, const char *name)
{
    const struct conf_word *word = make_word(conf, directive, name);
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

/* Reads an address without variables; -1 after a report. */
static int set_address(
    fb_conf *conf, const char *directive, const char *text, struct address *address)
{
    const char *whole = apply_address(conf->apply, text), *wrong;
    struct fb_target target;

    if (whole == NULL)
        return -1;
    wrong = lookup_target(conf->apply, whole, &target);
    if (wrong != NULL)
        return settings_report(conf, directive, "invalid address \"%s\": %s", text, wrong);
    *address = target.address;
    return 0;
}

const fb_listener *settings_listener(fb_conf *conf, const char *directive, const char *text)
{
    const struct conf_word *word = make_word(conf, directive, text);
    struct fb_listener *listener = apply_alloc(conf->apply, sizeof(*listener));
    struct pass_use *use = apply_alloc(conf->apply, sizeof(*use));
    struct value constant;

    if (word == NULL || listener == NULL || use == NULL)
        return NULL;
    listener->text = template_of(conf->apply, word, word->text);
    if (listener->text == NULL)
        return NULL;
    if (template_is_constant(listener->text, &constant) &&
        set_address(conf, directive, text, &listener->address) == -1)
        return NULL;
    *use = (struct pass_use) { .listener = listener, .word = word, .protocol = conf->protocol };
    STAILQ_INSERT_TAIL(&conf->apply->passes, use, link);
    return listener;
}
