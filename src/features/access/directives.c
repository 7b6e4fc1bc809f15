/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `allow` and `deny`. The rules are worked out once for all servers that share the rules.
 * Warns where a rule is not taken as written. */
#include "features/access/directives.h"

#include "base/check.h"
#include "features/features.h"
#include "net/address_parse.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <string.h>

#define NO_ADDRESS "expected an address, a CIDR block, \"unix:\" or \"all\""

/* Reads the argument of a rule; -1 after a report. */
static int set_block(
    struct apply *apply, const struct conf_directive *directive, struct address_block *block)
{
    const char *text = directive->args[0].text, *wrong;
    bool low = false;

    if (strcmp(text, "all") == 0 || strcmp(text, "unix:") == 0) {
        block->address.any.sa_family = *text == 'a' ? AF_UNSPEC : AF_UNIX;
        return 0;
    }
    wrong = address_cidr_parse(text, block, &low);
    if (wrong != NULL)
        return set_bad_value(
            apply, directive, 0, "%s", strcmp(wrong, "invalid address") == 0 ? NO_ADDRESS : wrong);
    if (low)
        report_warn(
            apply->report, &directive->args[0], "low address bits of %s are meaningless", text);
    return 0;
}

/* A single warning for a list. */
static void warn_of_unreached(
    struct apply *apply, struct access_setting *access, const struct conf_directive *directive)
{
    if (access->all == NULL || access->warned)
        return;
    access->warned = true;
    report_warn(apply->report, &directive->name,
        "this rule is never reached: \"%s all\" stands before it", access->all->name.text);
}

static int access_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct access_setting **access = field;
    struct access_rule *rule = apply_alloc(apply, sizeof(*rule));

    if (rule == NULL || set_block(apply, directive, &rule->block) == -1)
        return -1;
    rule->allows = strcmp(apply->setting->name, "allow") == 0;
    if (*access == NULL) {
        *access = apply_alloc(apply, sizeof(**access));
        if (*access == NULL)
            return -1;
        STAILQ_INIT(&(*access)->rules);
    }
    STAILQ_INSERT_TAIL(&(*access)->rules, rule, link);
    warn_of_unreached(apply, *access, directive);
    if (rule->block.address.any.sa_family == AF_UNSPEC && (*access)->all == NULL)
        (*access)->all = directive;
    return 0;
}

static void access_finish(struct apply *apply, struct scope *server)
{
    struct access_values *values = feature_values(server, FEATURE_ACCESS);
    struct access_setting *access = values->access;

    assert(server->at == CONTEXT_SERVER);
    if (access == NULL)
        return;
    if (access->built == NULL)
        access->built = access_build(apply->cycle->arena, &access->rules);
    if (access->built == NULL)
        report_error(apply->report, NULL, "out of memory");
    else
        feature_add_handler(apply, server->server, PHASE_ACCESS, access_run, access->built);
}

static const struct setting rows[] = {
    { "allow", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = access_set, .repeats = true,
        .offset = offsetof(struct access_values, access), .size = sizeof(struct access_setting *),
        .unset = "none" },
    { "deny", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = access_set, .repeats = true,
        .offset = offsetof(struct access_values, access), .size = sizeof(struct access_setting *),
        .unset = "none" },
    { .name = NULL },
};

const struct feature access_feature = {
    .name = "access",
    .rows = rows,
    .server_size = sizeof(struct access_values),
    .finish_server = access_finish,
};
