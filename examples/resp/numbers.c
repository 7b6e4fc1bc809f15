/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands about numbers and times to live. */
#include "resp.h"

/* Adds to a number. Clients set numbers as decimal text, so fb_map_add() cannot be used. */
static void add_to_number(struct resp_request *request, int64_t by)
{
    fb_bytes key = request->words[1];
    fb_map_status status;
    int64_t number;
    char text[24];

    do {
        fb_item item;

        number = 0;
        status = resp_map_get(request, key, &item);
        if (status == FB_MAP_OK && resp_number((fb_bytes) { item.value, item.n }, &number) == -1) {
            resp_error(request->conn, RESP_NOT_AN_INTEGER);
            return;
        }
        if (by < 0 ? number < INT64_MIN - by : number > INT64_MAX - by) {
            resp_error(request->conn, "ERR increment or decrement would overflow");
            return;
        }
        number += by;
        status = resp_map_replace(request, key, status == FB_MAP_OK ? item.version : 0,
            resp_decimal(number, text), FB_MAP_KEEP_TTL);
    } while (status == FB_MAP_CHANGED);
    if (!resp_is_refused(request, status))
        resp_integer(request->conn, number);
}

void resp_incr(struct resp_request *request)
{
    add_to_number(request, 1);
}

void resp_decr(struct resp_request *request)
{
    add_to_number(request, -1);
}

void resp_incrby(struct resp_request *request)
{
    int64_t by;

    if (resp_number(request->words[2], &by) == -1)
        resp_error(request->conn, RESP_NOT_AN_INTEGER);
    else
        add_to_number(request, by);
}

void resp_decrby(struct resp_request *request)
{
    int64_t by;

    if (resp_number(request->words[2], &by) == -1)
        resp_error(request->conn, RESP_NOT_AN_INTEGER);
    else if (by == INT64_MIN)
        resp_error(request->conn, "ERR decrement would overflow");
    else
        add_to_number(request, -by);
}

static void reply_ttl(struct resp_request *request, uint64_t unit)
{
    fb_item item;

    if (resp_map_get(request, request->words[1], &item) != FB_MAP_OK)
        resp_integer(request->conn, -2);
    else if (item.ttl == 0)
        resp_integer(request->conn, -1);
    else
        resp_integer(request->conn, (int64_t)((item.ttl + unit / 2) / unit));
}

void resp_ttl(struct resp_request *request)
{
    reply_ttl(request, 1000);
}

void resp_pttl(struct resp_request *request)
{
    reply_ttl(request, 1);
}

/* Sets the value again with another time to live; with `only_timed`, only if the key had a time to
 * live. */
static void set_ttl(struct resp_request *request, uint64_t ttl, int only_timed)
{
    fb_bytes key = request->words[1];
    fb_map_status status;
    fb_item item;

    do {
        status = resp_map_get(request, key, &item);
        if (status != FB_MAP_OK || (only_timed && item.ttl == 0)) {
            resp_integer(request->conn, 0);
            return;
        }
        status =
            resp_map_replace(request, key, item.version, (fb_bytes) { item.value, item.n }, ttl);
    } while (status == FB_MAP_CHANGED);
    if (!resp_is_refused(request, status))
        resp_integer(request->conn, 1);
}

static void expire_after(struct resp_request *request, int64_t unit)
{
    int64_t ms;

    if (resp_take_ttl(request, request->words[2], unit, &ms))
        return;
    if (ms > 0) {
        set_ttl(request, (uint64_t)ms, 0);
    } else { /* the time has passed already */
        request->n = 2;
        resp_del(request);
    }
}

void resp_expire(struct resp_request *request)
{
    expire_after(request, 1000);
}

void resp_pexpire(struct resp_request *request)
{
    expire_after(request, 1);
}

void resp_persist(struct resp_request *request)
{
    set_ttl(request, 0, 1);
}
