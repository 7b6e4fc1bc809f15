/* SPDX-License-Identifier: BSD-2-Clause */
/* Setters of values that only protocols have. `declared` is the protocol's own declaration, checked
 * by module/check.c. */
#include "base/check.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/calls.h"
#include "settings/lookup.h"
#include "settings/protocol.h"
#include "settings/set_value.h"
#include "settings/template.h"

int protocol_set_target(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct fb_target *target = apply_alloc(apply, sizeof(*target));
    const char *text = apply_address(apply, directive->args[0].text), *wrong;

    if (target == NULL || text == NULL)
        return -1;
    wrong = lookup_target(apply, text, target);
    if (wrong != NULL)
        return set_bad_value(apply, directive, 0, "%s", wrong);
    needs_add_target(apply, target);
    *(const struct fb_target **)field = target;
    return 0;
}

int protocol_set_path(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const char *text = directive->args[0].text;

    *(const char **)field = *text == '\0' ? text : apply_path(apply, text);
    return *(const char **)field == NULL ? -1 : 0;
}

/* Returns the place in the configuration for a call of the SDK. */
static struct fb_conf conf_at(struct apply *apply, const struct conf_directive *directive)
{
    return (struct fb_conf) {
        .apply = apply,
        .scope = apply->scope,
        .protocol = apply->setting->protocol,
        .directive = directive,
    };
}

/* A default has no place, and its words are gone when the setter returns. */
int protocol_set_template(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct fb_conf conf = conf_at(apply, directive);
    const char *text = directive->args[0].text;

    if (scope_find(apply->scope, apply->setting) != NULL)
        *(const fb_template **)field =
            (const fb_template *)template_of(apply, &directive->args[0], text);
    else
        *(const fb_template **)field = settings_template(&conf, apply->setting->name, text);
    return *(const fb_template **)field != NULL ? 0 : -1;
}

int protocol_set_custom(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const struct setting *setting = apply->setting;
    struct fb_conf conf = conf_at(apply, directive);
    const char **args = apply_alloc(apply, (directive->arg_n + 1) * sizeof(*args));
    unsigned errors = apply->report->error_n;
    int status;

    assert(setting->declared->set != NULL);
    if (args == NULL)
        return -1;
    for (unsigned i = 0; i < directive->arg_n; i++)
        args[i] = directive->args[i].text;
    check_progress_enter(apply->options->progress, &directive->name, "when its directive was set",
        "protocol \"%s\"", setting->protocol->name);
    status = setting->declared->set(
        &conf, setting->protocol->conf_state > 0 ? field : NULL, args, directive->arg_n);
    check_progress_leave(apply->options->progress);
    if (status != 0 && apply->report->error_n == errors)
        report_error(apply->report, &directive->name,
            "invalid \"%s\" directive: protocol \"%s\" refuses it without a message", setting->name,
            setting->protocol->name);
    return status == 0 ? 0 : -1;
}
