/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `limit_conn_zone`, and the rules that name zones, perhaps before the zone's directive. */
#include "features/limit_conn/limit_conn.h"

#include "base/check.h"
#include "base/number.h"
#include "features/features.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ZONE_PREFIX "limit_conn:"
#define ZONE_LEAST 32768
#define ZONE_MOST (INT64_C(1) << 36)
#define ZONE_EXPECTED "expected zone=name:size, such as zone=addr:10m"
#define RATE_EXPECTED "expected a rate such as 10r/s or 30r/m"
#define RATE_MOST 1000000
#define BURST_MOST 65535
/* Maps of maps that are looked into for the variables of a key. */
#define MAPS_FOLLOWED 2
#define SECOND_NS UINT64_C(1000000000)
/* The number of the layout of a zone's content. */
#define LIMIT_VERSION 1

/* Returns the zone of that name, made where there is none; NULL after a report. */
static struct limit_zone *find_limit_zone(struct apply *apply, const char *name, size_t n)
{
    struct limit_conf *conf = feature_conf(apply, FEATURE_LIMIT_CONN);
    struct limit_zone **at = &conf->zones, *zone;

    for (; *at != NULL; at = &(*at)->next)
        if (strlen((*at)->name) == n && memcmp((*at)->name, name, n) == 0)
            return *at;
    zone = apply_alloc(apply, sizeof(*zone));
    if (zone == NULL)
        return NULL;
    zone->name = arena_strndup(apply->cycle->arena, name, n);
    zone->handle = apply_alloc(apply, sizeof(*zone->handle));
    if (zone->name == NULL || zone->handle == NULL) {
        report_error(apply->report, NULL, "out of memory");
        return NULL;
    }
    *at = zone;
    return zone;
}

static int declare_zone(
    struct apply *apply, const struct conf_directive *directive, struct limit_zone *zone)
{
    struct cycle *cycle = apply->cycle;
    char name[sizeof(ZONE_PREFIX) + ZONE_NAME_MAX];

    shm_limit_set_text(&zone->shape, zone->key_text, strlen(zone->key_text));
    if (snprintf(name, sizeof(name), ZONE_PREFIX "%s", zone->name) > ZONE_NAME_MAX)
        return set_bad_value(apply, directive, 1, "the name of a zone has %d characters at most",
            (int)(ZONE_NAME_MAX - strlen(ZONE_PREFIX)));
    zone->zone = zone_declare(
        &cycle->zones, cycle->arena, &shm_limit_kind, name, LIMIT_VERSION, &zone->shape);
    if (zone->zone != NULL)
        return 0;
    return report_error(apply->report, &directive->args[1], "zone \"%s\" cannot be declared: %s",
        zone->name, strerror(errno));
}

static int limit_conn_set_zone(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    const char *text = directive->args[1].text, *colon;
    struct limit_zone *zone;
    const char *name;
    int64_t size;

    (void)field;
    if (strncmp(text, "zone=", 5) != 0)
        return set_bad_value(apply, directive, 1, ZONE_EXPECTED);
    name = text + 5;
    colon = strchr(name, ':');
    if (colon == NULL || colon == name)
        return set_bad_value(apply, directive, 1, ZONE_EXPECTED);
    if (number_parse_size(colon + 1, 1, ZONE_MOST, &size) != NUMBER_OK)
        return set_bad_value(
            apply, directive, 1, "invalid zone size: expected a size such as 32k or 10m");
    if (size < ZONE_LEAST)
        return set_bad_value(apply, directive, 1, "zone is too small: a zone has at least 32k");
    zone = find_limit_zone(apply, name, (size_t)(colon - name));
    if (zone == NULL)
        return -1;
    if (zone->key != NULL && zone->shape.size != (uint64_t)size)
        return set_bad_value(apply, directive, 1,
            "the size %" PRId64 " of shared memory zone \"%s\" conflicts with already declared "
            "size %" PRIu64,
            size, zone->name, zone->shape.size);
    if (zone->key != NULL)
        return set_bad_value(apply, directive, 1,
            "limit_conn_zone \"%s\" is already bound to key \"%s\"", zone->name, zone->key_text);
    zone->shape.size = (uint64_t)size;
    zone->key_text = apply_strdup(apply, directive->args[0].text);
    zone->key = template_of(apply, &directive->args[0], directive->args[0].text);
    if (zone->key == NULL || zone->key_text == NULL)
        return -1;
    return declare_zone(apply, directive, zone);
}

/* Adds a rule to the block's; NULL after a report. */
static struct limit_rule *add_limit_rule(
    struct apply *apply, const struct conf_directive *directive, struct limit_rule **at)
{
    const struct conf_word *word = &directive->args[0];
    struct limit_zone *zone = find_limit_zone(apply, word->text, strlen(word->text));
    struct limit_rule *rule = apply_alloc(apply, sizeof(*rule));

    if (zone == NULL || rule == NULL)
        return NULL;
    for (; *at != NULL; at = &(*at)->next)
        if ((*at)->zone == zone) {
            set_bad_value(apply, directive, 0,
                "\"%s\" directive is duplicate: the block already has a directive of the zone",
                directive->name.text);
            return NULL;
        }
    if (zone->used_at == NULL)
        zone->used_at = word;
    rule->zone = zone;
    *at = rule;
    return rule;
}

static int limit_conn_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct limit_rule *rule;
    int64_t most;

    switch (number_parse(directive->args[1].text, 1, SHM_LIMIT_MOST, &most)) {
    case NUMBER_OK:
        break;
    case NUMBER_RANGE:
        return set_bad_value(
            apply, directive, 1, "the limit must be between 1 and %d connections", SHM_LIMIT_MOST);
    default:
        return set_bad_value(apply, directive, 1, "expected a number of connections");
    }
    rule = add_limit_rule(apply, directive, field);
    if (rule == NULL)
        return -1;
    rule->most = (uint32_t)most;
    return 0;
}

/* Reads "10r/s" or "30r/m" as the time between two sessions; false if it is none. */
static bool parse_rate(const char *text, uint64_t *interval_ns)
{
    size_t n = strspn(text, "0123456789");
    bool minute = strcmp(text + n, "r/m") == 0;
    char digits[16];
    int64_t rate;

    if (n == 0 || n >= sizeof(digits) || (!minute && strcmp(text + n, "r/s") != 0))
        return false;
    memcpy(digits, text, n);
    digits[n] = '\0';
    if (number_parse(digits, 1, RATE_MOST, &rate) != NUMBER_OK)
        return false;
    *interval_ns = (minute ? 60 : 1) * SECOND_NS / (uint64_t)rate;
    return true;
}

static int limit_conn_set_rate(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct shm_limit_rate rate;
    struct limit_rule *rule;
    int64_t burst = 0;
    uint64_t most;

    if (!parse_rate(directive->args[1].text, &rate.interval_ns))
        return set_bad_value(apply, directive, 1, RATE_EXPECTED);
    if (directive->arg_n == 3 &&
        (strncmp(directive->args[2].text, "burst=", 6) != 0 ||
            number_parse(directive->args[2].text + 6, 0, BURST_MOST, &burst) != NUMBER_OK))
        return set_bad_value(apply, directive, 2, "expected burst=number, %d at most", BURST_MOST);
    rate.burst_ns = (uint64_t)burst * rate.interval_ns;
    rule = add_limit_rule(apply, directive, field);
    if (rule == NULL)
        return -1;
    rule->rate = rate;
    most = rate.burst_ns + rate.interval_ns;
    if (most > rule->zone->rate_most_ns)
        rule->zone->rate_most_ns = most;
    return 0;
}

static void limit_conn_finish(struct apply *apply, struct scope *server)
{
    const struct limit_values *values = feature_values(server, FEATURE_LIMIT_CONN);

    assert(server->at == CONTEXT_SERVER);
    if (values->conns != NULL || values->rates != NULL)
        feature_add_handler(apply, server->server, PHASE_PREACCESS, limit_conn_run, values);
}

/* Warns of a key that is empty when sessions are counted, or is chosen by clients. */
static void warn_of_key(struct apply *apply, const struct limit_zone *zone)
{
    const struct variable *later = template_find(zone->key, "ssl_", MAPS_FOLLOWED),
                          *chosen = template_find(zone->key, "proxy_protocol_", MAPS_FOLLOWED);

    if (later != NULL)
        report_warn(apply->report, zone->used_at,
            "sessions are counted before the ClientHello is read: $%s in the key of zone \"%s\" "
            "is empty then",
            later->name, zone->name);
    if (chosen != NULL)
        report_warn(apply->report, zone->used_at,
            "clients choose $%s in the key of zone \"%s\" themselves, unless all but proxies are "
            "kept away: name the proxies by \"set_real_ip_from\", and count by $remote_addr",
            chosen->name, zone->name);
}

static void limit_conn_check(struct apply *apply, struct scope *stream)
{
    const struct limit_conf *conf = feature_conf(apply, FEATURE_LIMIT_CONN);
    const struct limit_zone *zone = conf->zones;

    assert(stream->at == CONTEXT_STREAM);
    for (; apply_is_whole(apply, stream) && zone != NULL; zone = zone->next)
        if (zone->key == NULL)
            report_error(apply->report, zone->used_at,
                "zero size shared memory zone \"%s\": there is no \"limit_conn_zone\" with "
                "\"zone=%s:size\"",
                zone->name, zone->name);
        else if (zone->used_at != NULL)
            warn_of_key(apply, zone);
}

static const struct setting rows[] = {
    { "limit_conn", CONTEXT_SERVERS, 2, 2, .set = limit_conn_set, .repeats = true,
        SETTING_FIELD(struct limit_values, conns), .unset = "none" },
    { "limit_conn_dry_run", CONTEXT_SERVERS, 1, 1, .set = set_flag,
        SETTING_FIELD(struct limit_values, dry_run), .initial = "off" },
    { "limit_conn_log_level", CONTEXT_SERVERS, 1, 1, .set = set_name,
        SETTING_FIELD(struct limit_values, log_level), .initial = "error",
        .names = (const char *const[]) { "info", "notice", "warn", "error", NULL } },
    { "limit_conn_rate", CONTEXT_SERVERS, 2, 3, .set = limit_conn_set_rate, .repeats = true,
        SETTING_FIELD(struct limit_values, rates), .unset = "none" },
    { "limit_conn_zone", CONTEXT_STREAM, 2, 2, .set = limit_conn_set_zone, .repeats = true,
        .unset = "none" },
    { .name = NULL },
};

const struct feature limit_conn_feature = {
    .name = "limit_conn",
    .rows = rows,
    .server_size = sizeof(struct limit_values),
    .conf_size = sizeof(struct limit_conf),
    .variables = limit_conn_variables,
    .finish_server = limit_conn_finish,
    .finish = limit_conn_check,
    .open = limit_conn_open,
    .close = limit_conn_close,
};
