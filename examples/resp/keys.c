/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands about keys and their values. */
#include "resp.h"

fb_map_status resp_map_get(struct resp_request *request, fb_bytes key, fb_item *item)
{
    item->value = request->room->value;
    item->room = sizeof(request->room->value);
    return fb_map_get(request->worker, request->conf->map, key, item);
}

fb_map_status resp_map_replace(
    struct resp_request *request, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl)
{
    return fb_map_replace(request->worker, request->conf->map, key, version, value, ttl);
}

int resp_is_refused(struct resp_request *request, fb_map_status status)
{
    if (status == FB_MAP_FULL)
        resp_error(request->conn, "OOM command not allowed when used memory > 'maxmemory'.");
    else if (status == FB_MAP_TOO_LARGE)
        resp_error(request->conn, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    else
        return 0;
    return 1;
}

int resp_take_ttl(struct resp_request *request, fb_bytes word, int64_t unit, int64_t *ms)
{
    int64_t number, limit = INT64_MAX - fb_wall_ms(request->worker);

    if (resp_number(word, &number) == -1) {
        resp_error(request->conn, RESP_NOT_AN_INTEGER);
        return 1;
    }
    if (number > limit / unit || number < -(limit / unit)) {
        resp_error(request->conn, "ERR invalid expire time in '%s' command", request->name);
        return 1;
    }
    *ms = number * unit;
    return 0;
}

struct set_options {
    int if_absent, if_present;
    uint64_t ttl;
};

/* Reads EX seconds, PX milliseconds, KEEPTTL, NX, XX. Returns 0, or 1 after an error reply. */
static int take_set_options(struct resp_request *request, struct set_options *options)
{
    const fb_bytes *words = request->words, *time = NULL;
    int64_t unit = 0, ms;

    for (size_t i = 3; i < request->n; i++) {
        int timed = resp_is(words[i], "ex") || resp_is(words[i], "px");

        if (timed && options->ttl == 0 && time == NULL && i + 1 < request->n) {
            unit = resp_is(words[i], "ex") ? 1000 : 1;
            time = &words[++i];
        } else if (resp_is(words[i], "keepttl") && time == NULL) {
            options->ttl = FB_MAP_KEEP_TTL;
        } else if (resp_is(words[i], "nx") && !options->if_present) {
            options->if_absent = 1;
        } else if (resp_is(words[i], "xx") && !options->if_absent) {
            options->if_present = 1;
        } else {
            resp_error(request->conn, "ERR syntax error");
            return 1;
        }
    }
    if (time == NULL)
        return 0;
    if (resp_take_ttl(request, *time, unit, &ms))
        return 1;
    if (ms <= 0) {
        resp_error(request->conn, "ERR invalid expire time in 'set' command");
        return 1;
    }
    options->ttl = (uint64_t)ms;
    return 0;
}

void resp_set(struct resp_request *request)
{
    struct set_options options = { .ttl = 0 };
    fb_bytes key = request->words[1], value = request->words[2];
    fb_item item;
    fb_map_status status;

    if (take_set_options(request, &options))
        return;
    if (options.if_absent)
        status = resp_map_replace(request, key, 0, value, options.ttl);
    else if (!options.if_present)
        status = fb_map_set(request->worker, request->conf->map, key, value, options.ttl);
    else
        do {
            status = resp_map_get(request, key, &item);
            if (status == FB_MAP_OK)
                status = resp_map_replace(request, key, item.version, value, options.ttl);
        } while (status == FB_MAP_CHANGED);

    if (resp_is_refused(request, status))
        return;
    if (status == FB_MAP_OK)
        resp_status(request->conn, "OK");
    else
        resp_nil(request->conn);
}

static void reply_value(struct resp_request *request, fb_bytes key)
{
    fb_item item;

    if (resp_map_get(request, key, &item) == FB_MAP_OK)
        resp_bulk(request->conn, (fb_bytes) { item.value, item.n });
    else
        resp_nil(request->conn);
}

void resp_get(struct resp_request *request)
{
    reply_value(request, request->words[1]);
}

void resp_mget(struct resp_request *request)
{
    resp_array(request->conn, request->n - 1);
    for (size_t i = 1; i < request->n; i++)
        reply_value(request, request->words[i]);
}

/* Sets the keys in sequence, not atomically: a client may see some keys set and the rest not
 * yet. */
void resp_mset(struct resp_request *request)
{
    const fb_bytes *words = request->words;

    if (request->n % 2 == 0) {
        resp_wrong_number(request);
        return;
    }
    for (size_t i = 1; i < request->n; i += 2) {
        fb_map_status status =
            fb_map_set(request->worker, request->conf->map, words[i], words[i + 1], 0);

        if (resp_is_refused(request, status))
            return;
    }
    resp_status(request->conn, "OK");
}

void resp_del(struct resp_request *request)
{
    int64_t n = 0;

    for (size_t i = 1; i < request->n; i++)
        n += fb_map_delete(request->worker, request->conf->map, request->words[i]) == FB_MAP_OK;
    resp_integer(request->conn, n);
}

/* Replies the length of the value, perhaps already made longer by another client. */
void resp_append(struct resp_request *request)
{
    fb_bytes key = request->words[1], value = request->words[2];
    fb_item item = { .n = 0 };

    if (resp_is_refused(request,
            fb_map_append(request->worker, request->conf->map, key, value, FB_MAP_KEEP_TTL)))
        return;
    resp_map_get(request, key, &item);
    resp_integer(request->conn, (int64_t)item.n);
}

/* Deletes only the value in its reply. */
void resp_getdel(struct resp_request *request)
{
    fb_bytes key = request->words[1];
    fb_map_status status;
    fb_item item;

    do {
        status = resp_map_get(request, key, &item);
        if (status == FB_MAP_OK)
            status = fb_map_remove(request->worker, request->conf->map, key, item.version);
    } while (status == FB_MAP_CHANGED);
    if (status == FB_MAP_OK)
        resp_bulk(request->conn, (fb_bytes) { item.value, item.n });
    else
        resp_nil(request->conn);
}

void resp_exists(struct resp_request *request)
{
    fb_item item;
    int64_t n = 0;

    for (size_t i = 1; i < request->n; i++)
        n += resp_map_get(request, request->words[i], &item) == FB_MAP_OK;
    resp_integer(request->conn, n);
}
