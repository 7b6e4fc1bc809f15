/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the limits of a server for admission: rates first, which count each admitted attempt, then
 * numbers of sessions. The first refusal decides. Logs losses of a zone's memory to damage. */
#include "features/limit_conn/limit_conn.h"

#include "base/compiler.h"
#include "session/record.h"
#include "settings/cycle.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Lines about the damage of one zone in a worker. */
#define LOG_EVERY_MS 1000

static struct limit_zone *limit_zone_of(const struct zone *zone)
{
    assert(zone->kind == &shm_limit_kind);
    return container_of(zone->shape, struct limit_zone, shape);
}

int limit_conn_open(struct stream *stream, const struct cycle *cycle, struct slot_id slot)
{
    struct zone *zone;

    (void)stream;
    assert(slot_id_is_valid(slot));
    STAILQ_FOREACH (zone, &cycle->zones, link) {
        struct limit_zone *limit;

        if (zone->kind != &shm_limit_kind)
            continue;
        limit = limit_zone_of(zone);
        assert(limit->zone == zone && zone_memory(zone) != NULL);
        shm_limit_open(limit->handle, zone_memory(zone), &limit->shape, slot);
        limit->handle->rate_most_ns = limit->rate_most_ns;
    }
    return 0;
}

void limit_conn_close(struct stream *stream, const struct cycle *cycle)
{
    struct zone *zone;

    (void)stream;
    STAILQ_FOREACH (zone, &cycle->zones, link)
        if (zone->kind == &shm_limit_kind && limit_zone_of(zone)->handle->header != NULL)
            shm_limit_close(limit_zone_of(zone)->handle);
}

static uint64_t now_ns(const struct fb_conn *conn)
{
    return conn->net->loop.clock.mono_ms * 1000000;
}

/* Logs the repairs made by a call. */
static COLD void log_mended(const struct fb_conn *conn, struct limit_zone *zone)
{
    const struct shm_limit_mended *m = &zone->handle->mended, before = zone->logged;
    uint64_t now_ms = conn->net->loop.clock.mono_ms;

    if (zone->logged_ms != 0 && now_ms - zone->logged_ms < LOG_EVERY_MS)
        return;
    zone->logged = *m;
    zone->logged_ms = now_ms;
    if (m->rebuilt != before.rebuilt)
        log_write(conn->net->log, LEVEL_ALERT, 0,
            "zone \"%s\": the limit was damaged, and %" PRIu32 " shards of the zone were rebuilt",
            zone->name, m->rebuilt - before.rebuilt);
    if (m->recounted != before.recounted)
        log_write(conn->net->log, LEVEL_ALERT, 0,
            "zone \"%s\": the limit was damaged, and %" PRIu32 " counts were mended", zone->name,
            m->recounted - before.recounted);
    if (m->taken != before.taken)
        log_write(conn->net->log, LEVEL_WARN, 0,
            "zone \"%s\": %" PRIu32 " locks of the limit were taken from processes that stand "
            "still",
            zone->name, m->taken - before.taken);
    if (m->rebuilt != before.rebuilt || m->recounted != before.recounted)
        log_debug_point(conn->net->log, "a limit was damaged");
}

static void look_at_mended(const struct fb_conn *conn, struct limit_zone *zone)
{
    if (unlikely(memcmp(&zone->handle->mended, &zone->logged, sizeof(zone->logged)) != 0))
        log_mended(conn, zone);
}

/* Works the key out; false where there is nothing to count. */
static bool find_limit_key(struct fb_conn *conn, const struct limit_zone *zone, struct value *key)
{
    if (template_value(conn, zone->key, key) == -1) {
        conn_fail(conn, FB_NO_MEMORY);
        return false;
    }
    if (key->n > LIMIT_CONN_KEY_MAX)
        conn_log(conn, LEVEL_ERROR, 0,
            "the value of the \"%s\" key is more than %d bytes: \"%.*s\"", zone->key_text,
            LIMIT_CONN_KEY_MAX, (int)key->n, key->p);
    return key->n > 0 && key->n <= LIMIT_CONN_KEY_MAX;
}

/* ---- What a session was counted for ---- */

struct limit_part {
    struct session_part part; /* the first member */
    struct limit_held *held;  /* zones and keys */
    enum limit_status status;
};

static void limit_part_left(struct session_part *part)
{
    container_of(part, struct limit_part, part)->status = LIMIT_NONE;
}

static void give_back(const struct fb_conn *conn, const struct limit_held *held)
{
    if (held->count != NULL)
        shm_limit_give(held->zone->handle, held->count, now_ns(conn));
}

static void limit_part_ended(struct fb_conn *conn, struct session_part *part)
{
    const struct limit_held *held = container_of(part, struct limit_part, part)->held;

    assert(!conn->outgoing);
    for (; held != NULL; held = held->next) {
        give_back(conn, held);
        look_at_mended(conn, held->zone);
    }
}

static const struct session_part_kind limit_part_kind = {
    .left = limit_part_left,
    .ended = limit_part_ended,
};

/* Returns the place of the session's count, or of its attempt (`coming`), from an earlier server;
 * or the end of the list. */
static struct limit_held **find_held(
    struct limit_part *part, const struct limit_zone *zone, const struct value *key, bool coming)
{
    struct limit_held **at = &part->held;

    while (*at != NULL && ((*at)->zone != zone || ((*at)->count == NULL) != coming ||
                              (*at)->key.n != key->n || memcmp((*at)->key.p, key->p, key->n) != 0))
        at = &(*at)->next;
    return at;
}

/* Returns a new entry for the session's list; NULL without memory: the client has been failed. */
static struct limit_held *make_held(
    struct fb_conn *conn, struct limit_zone *zone, const struct value *key)
{
    struct limit_held *held = session_keep(conn, sizeof(*held));

    if (held == NULL)
        conn_fail(conn, FB_NO_MEMORY);
    else
        *held = (struct limit_held) { .zone = zone, .key = *key };
    return held;
}

static void add_held(struct limit_part *part, struct limit_held *held)
{
    held->next = part->held;
    part->held = held;
}

/* Counts the session for a rule, and gives back an equal count of the server before. */
static enum shm_limit_status count_session(struct fb_conn *conn, struct limit_part *part,
    const struct limit_rule *rule, const struct value *key)
{
    struct limit_held **before = find_held(part, rule->zone, key, false), *held = *before;
    enum shm_limit_status status;

    assert(rule->most > 0);
    if (held != NULL) {
        *before = held->next;
        give_back(conn, held);
    } else {
        held = make_held(conn, rule->zone, key);
        if (held == NULL)
            return SHM_LIMIT_OK;
    }
    status =
        shm_limit_take(rule->zone->handle, key->p, key->n, now_ns(conn), rule->most, &held->count);
    if (status == SHM_LIMIT_OK)
        add_held(part, held);
    return status;
}

/* Notes the attempt of the session, unless the server before has done so. */
static enum shm_limit_status note_coming(struct fb_conn *conn, struct limit_part *part,
    const struct limit_rule *rule, const struct value *key)
{
    struct limit_held *held = *find_held(part, rule->zone, key, true);
    enum shm_limit_status status;

    if (held != NULL)
        return SHM_LIMIT_OK;
    status = shm_limit_pass(rule->zone->handle, key->p, key->n, now_ns(conn), &rule->rate);
    if (status == SHM_LIMIT_OK && session_server_of(conn)->passes) {
        held = make_held(conn, rule->zone, key);
        if (held != NULL)
            add_held(part, held);
    }
    return status;
}

static COLD void log_refusal(struct fb_conn *conn, const struct limit_values *values,
    const struct limit_rule *rule, enum shm_limit_status status)
{
    static const enum log_level levels[] = { LEVEL_INFO, LEVEL_NOTICE, LEVEL_WARN, LEVEL_ERROR };

    assert(status != SHM_LIMIT_OK);
    assert(values->log_level >= 0);
    assert((size_t)values->log_level < countof(levels));
    if (status == SHM_LIMIT_FULL)
        conn_log(conn, LEVEL_CRIT, 0, "no memory in limit_conn_zone \"%s\"", rule->zone->name);
    else
        conn_log(conn, levels[values->log_level], 0,
            "limiting connection%s%s by zone \"%s\" while initializing session",
            rule->most > 0 ? "s" : " rate", values->dry_run ? ", dry run," : "", rule->zone->name);
}

/* Whether the rule lets the session pass. */
static bool passes(
    struct fb_conn *conn, const struct limit_values *values, const struct limit_rule *rule)
{
    struct limit_part *part = session_part_of(conn, &limit_part_kind);
    enum shm_limit_status status;
    struct value key;

    assert(!conn->outgoing && rule->zone->handle->header != NULL);
    assert((rule->most > 0) != (rule->rate.interval_ns > 0));
    if (part == NULL)
        part = session_part_make(conn, sizeof(*part), &limit_part_kind);
    if (part == NULL || !find_limit_key(conn, rule->zone, &key))
        return true;
    status = rule->most > 0 ? count_session(conn, part, rule, &key)
                            : note_coming(conn, part, rule, &key);
    look_at_mended(conn, rule->zone);
    part->status = LIMIT_PASSED;
    if (status == SHM_LIMIT_OK)
        return true;
    log_refusal(conn, values, rule, status);
    part->status = values->dry_run ? LIMIT_REJECTED_DRY_RUN : LIMIT_REJECTED;
    return false;
}

unsigned limit_conn_run(struct fb_conn *conn, const void *arg)
{
    const struct limit_values *values = arg;
    const struct limit_rule *const lists[] = { values->rates, values->conns };

    for (unsigned i = 0; i < countof(lists); i++)
        for (const struct limit_rule *rule = lists[i]; rule != NULL; rule = rule->next) {
            if (!passes(conn, values, rule))
                return values->dry_run ? 0 : STATUS_UNAVAILABLE;
            if (!conn_is_active(conn))
                return 0;
        }
    return 0;
}

static int get_status(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    static const char *const names[] = {
        [LIMIT_PASSED] = "PASSED",
        [LIMIT_REJECTED] = "REJECTED",
        [LIMIT_REJECTED_DRY_RUN] = "REJECTED_DRY_RUN",
    };
    const struct limit_part *part = session_part_of(conn, &limit_part_kind);
    enum limit_status status = part != NULL ? part->status : LIMIT_NONE;

    (void)variable;
    assert(status <= LIMIT_REJECTED_DRY_RUN);
    if (status != LIMIT_NONE)
        *value = value_found(names[status], strlen(names[status]));
    return 0;
}

const struct variable_row limit_conn_variables[] = {
    { "limit_conn_status", get_status, .flags = VARIABLE_VOLATILE },
    { .name = NULL },
};
