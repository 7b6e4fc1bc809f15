/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `allow` and `deny`, and judges clients. The rules of a family become a table of addresses,
 * made once for all servers that share the rules. Relies on blocks being apart, or nested. Warns
 * where a rule is not taken as written. */
#include "features/access/access.h"

#include "base/check.h"
#include "features/features.h"
#include "features/geo/geo_tree.h"
#include "net/address_parse.h"
#include "net/conn_log.h"
#include "settings/set_value.h"

#include <string.h>

/* Text of the addresses without a rule. A rule has twice its number, and 1 for `allow`. */
#define ALLOWED 1

struct access {
    struct geo_table in, in6; /* n = 0: no rule is about these addresses */
    bool allows_unix;
};

static bool rule_is_for(const struct access_rule *rule, sa_family_t family)
{
    return rule->block.address.any.sa_family == family ||
           rule->block.address.any.sa_family == AF_UNSPEC;
}

/* Adds a rule to the tree; of two rules for a block the earlier holds. -1 without memory. */
static int add_access_rule(struct geo_tree *tree, const struct access_rule *rule, uint32_t number)
{
    const struct address *address = &rule->block.address;
    struct geo_address first = { 0, 0 };
    unsigned bits = tree->is_v6 ? 128 : 32;
    uint32_t text = number << 1 | rule->allows;
    struct geo_range other;
    enum geo_added added;

    if (address->any.sa_family != AF_UNSPEC) {
        first = tree->is_v6 ? geo_address_of(&address->in6.sin6_addr, 16)
                            : geo_address_of(&address->in.sin_addr, 4);
        bits -= rule->block.bits;
    }
    assert(geo_address_compare(first, geo_address_fill(first, bits, false)) == 0);
    added = geo_tree_add(tree, first, geo_address_fill(first, bits, true), text, &other);
    if (added == GEO_REPLACED)
        geo_tree_add(tree, first, geo_address_fill(first, bits, true), other.text, &other);
    return added == GEO_NO_MEMORY ? -1 : 0;
}

/* Builds the table of a family's rules; -1 without memory. */
static int build_table(struct arena *arena, const struct access_rules *rules, sa_family_t family,
    struct geo_table *table)
{
    struct geo_tree tree = {
        .arena = arena_create(), .is_v6 = family == AF_INET6, .least_holds = true
    };
    const struct access_rule *rule;
    uint32_t n = 0;
    int rc = tree.arena != NULL ? 0 : -1;

    STAILQ_FOREACH (rule, rules, link)
        if (rc == 0 && rule_is_for(rule, family))
            rc = add_access_rule(&tree, rule, n++);
    if (rc == 0 && n > 0)
        rc = geo_tree_finish(&tree, ALLOWED, arena, table);
    arena_destroy(&tree.arena);
    return rc;
}

static bool allows_unix(const struct access_rules *rules)
{
    const struct access_rule *rule;

    STAILQ_FOREACH (rule, rules, link)
        if (rule_is_for(rule, AF_UNIX))
            return rule->allows;
    return true;
}

const struct access *access_build(struct arena *arena, const struct access_rules *rules)
{
    struct access *access = arena_alloc(arena, sizeof(*access));

    assert(!STAILQ_EMPTY(rules));
    if (access == NULL || build_table(arena, rules, AF_INET, &access->in) == -1 ||
        build_table(arena, rules, AF_INET6, &access->in6) == -1)
        return NULL;
    access->allows_unix = allows_unix(rules);
    return access;
}

static bool table_allows(const struct geo_table *table, const void *bytes, size_t n)
{
    return table->n == 0 || (geo_table_find(table, geo_address_of(bytes, n)) & ALLOWED) != 0;
}

bool access_allows(const struct access *access, const struct sockaddr *client)
{
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)client)->sin6_addr;

    switch (client->sa_family) {
    case AF_INET:
        return table_allows(&access->in, &((const struct sockaddr_in *)client)->sin_addr, 4);
    case AF_INET6:
        if (access->in.n == 0 || !IN6_IS_ADDR_V4MAPPED(in6))
            return table_allows(&access->in6, in6, 16);
        return table_allows(&access->in, in6->s6_addr + 12, 4);
    default:
        return access->allows_unix;
    }
}

/* Handles the phase of access: 403 and a line in the log where the client is denied. */
static unsigned run_rules(struct fb_conn *conn, const void *access)
{
    struct address client;

    conn_peer_address(conn, &client);
    if (access_allows(access, &client.any))
        return 0;
    conn_log(conn, LEVEL_ERROR, 0, "access forbidden by rule while initializing session");
    return STATUS_FORBIDDEN;
}

/* ---- The directives ---- */

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
static void warn_of_unreached_rule(
    struct apply *apply, struct access_setting *access, const struct conf_directive *directive)
{
    if (access->all == NULL || access->warned)
        return;
    access->warned = true;
    report_warn(apply->report, &directive->name,
        "the rule is never reached: \"%s all\" stands before it", access->all->name.text);
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
    warn_of_unreached_rule(apply, *access, directive);
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
        feature_add_handler(apply, server->server, PHASE_ACCESS, run_rules, access->built);
}

static const struct setting rows[] = {
    { "allow", CONTEXT_SERVERS, 1, 1, .set = access_set, .repeats = true,
        SETTING_FIELD(struct access_values, access), .unset = "none" },
    { "deny", CONTEXT_SERVERS, 1, 1, .set = access_set, .repeats = true,
        SETTING_FIELD(struct access_values, access), .unset = "none" },
    { .name = NULL },
};

const struct feature access_feature = {
    .name = "access",
    .rows = rows,
    .server_size = sizeof(struct access_values),
    .finish_server = access_finish,
};
