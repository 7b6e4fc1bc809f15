/* SPDX-License-Identifier: BSD-2-Clause */
/* `env_substitution`: replaces environment variables in arguments before the setter. The directive
 * stands first in the configuration, and so holds for all of the file. */
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/set_value.h"

#include "conf/substitute.h"

#include <string.h>

/* Returns an earlier directive of the same file, or NULL. */
static const struct conf_directive *find_earlier(
    const struct apply *apply, const struct conf_directive *directive)
{
    const struct scope_entry *seen;

    STAILQ_FOREACH (seen, &apply->scope->seen, link)
        if (seen->directive != directive && seen->directive->name.file == directive->name.file)
            return seen->directive;
    return NULL;
}

int substitution_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const struct conf_file *file = directive->name.file;
    const struct conf_directive *earlier = find_earlier(apply, directive);

    if (earlier != NULL)
        return report_error(apply->report, &directive->name,
            "\"%s\" must stand before all other directives, and \"%s\" stands before it",
            directive->name.text, earlier->name.text);
    if (file != NULL && file->includer != NULL) { /* a default stands in no file */
        return report_error(apply->report, &directive->name,
            "\"%s\" must stand in the main file, not in an included file", directive->name.text);
    }
    return set_flag(apply, directive, field);
}

/* Copies a directive with all words; NULL after a report. */
static struct conf_directive *copy_directive(
    struct apply *apply, const struct conf_directive *directive)
{
    struct conf_directive *copy = apply_alloc(apply, sizeof(*copy));

    if (copy == NULL)
        return NULL;
    *copy = *directive;
    copy->args = apply_alloc(apply, directive->arg_n * sizeof(*copy->args));
    if (copy->args == NULL)
        return NULL;
    memcpy(copy->args, directive->args, directive->arg_n * sizeof(*copy->args));
    return copy;
}

const struct conf_directive *substitution_apply(
    struct apply *apply, const struct conf_directive *directive)
{
    struct conf_directive *copy;
    bool any = false, failed = false;

    for (unsigned i = 0; i < directive->arg_n; i++)
        any = any || substitute_finds(&directive->args[i]);
    if (!any || !apply->cycle->core.env_substitution)
        return directive;
    copy = copy_directive(apply, directive);
    if (copy == NULL)
        return NULL;
    for (unsigned i = 0; i < copy->arg_n; i++)
        if (substitute_finds(&directive->args[i]) &&
            substitute_variables(&apply->cycle->source, &directive->args[i],
                apply->options->environment, &copy->args[i]) == -1)
            failed = true;
    return failed ? NULL : copy;
}
