/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls. One object, so that a daemon which loads modules has all of them. */
#include "base/log.h"
#include "net/target.h"
#include "settings/calls.h"
#include "shm/map.h"
#include "stream/frame.h"
#include "stream/shared_map.h"
#include "stream/side.h"
#include "worker/worker.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* What modules were built with. */
static_assert((int)FB_LOG_ALERT == (int)FB_ALERT, "levels are the log's");
static_assert((int)FB_LOG_ERROR == (int)FB_ERROR, "levels are the log's");
static_assert((int)FB_LOG_DEBUG == (int)FB_DEBUG, "levels are the log's");
static_assert((int)FB_COUNTER == (int)FB_SHM_COUNTER, "kinds are the metrics'");
static_assert((int)FB_GAUGE == (int)FB_SHM_GAUGE, "kinds are the metrics'");
static_assert((int)FB_MAP_OK == (int)FB_SHM_MAP_OK, "statuses are the map's");
static_assert((int)FB_MAP_FULL == (int)FB_SHM_MAP_FULL, "statuses are the map's");
static_assert((int)FB_MAP_NOT_A_NUMBER == (int)FB_SHM_MAP_NOT_A_NUMBER, "statuses are the map's");
static_assert(FB_MAP_KEEP_TTL == FB_SHM_KEEP_EXPIRY, "so is this");

#if UINTPTR_MAX == UINT64_MAX
static_assert(offsetof(fb_ops, closed) == 72 && sizeof(fb_ops) == 80, "layout of ABI 1");
static_assert(offsetof(fb_directive, initial) == 40 && offsetof(fb_directive, set) == 56 &&
                  sizeof(fb_directive) == 72,
    "layout of ABI 1");
static_assert(offsetof(fb_protocol, name) == 16 && offsetof(fb_protocol, ops) == 64 &&
                  offsetof(fb_protocol, needs) == 96 && sizeof(fb_protocol) == 120,
    "layout of ABI 1");
static_assert(sizeof(fb_metric) == 16 && sizeof(fb_item) == 40, "layout of ABI 1");
static_assert(sizeof(fb_frame_limit) == 16 && sizeof(fb_bytes) == 16, "layout of ABI 1");
static_assert(sizeof(fb_map_options) == 32 && sizeof(fb_pipe_options) == 16, "layout of ABI 1");
#endif

static fb_worker *worker_of(const fb_conn *conn)
{
    return fb_container(fb_stream_of(conn), struct fb_worker, stream);
}

/* Whether the protocol may still use it. What has ended may be told as long as its slot is free. */
static bool is_valid(const fb_conn *conn, const char *call)
{
    struct fb_stream *stream = fb_stream_of(conn);

    if (fb_likely(conn->source.in_use && !conn->lingering && !fb_session_is_kept(conn)))
        return true;
    if (stream->misused != NULL)
        stream->misused(stream, call);
    else
        fb_log(stream->net.log, FB_ALERT, 0, "%s() of a connection that has ended", call);
    return false;
}

#define VALID(conn) is_valid(conn, __func__)

/* ---- The configuration ---- */

int fb_conf_errorf(fb_conf *conf, const char *directive, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fb_settings_vreport(conf, directive, format, args);
    va_end(args);
    return -1;
}

void *fb_conf_alloc(fb_conf *conf, size_t n)
{
    return fb_settings_alloc(conf, n);
}

const fb_target *fb_conf_target(fb_conf *conf, const char *directive, const char *text)
{
    return fb_settings_target(conf, directive, text);
}

fb_map *fb_conf_map(fb_conf *conf, const fb_map_options *options)
{
    return fb_settings_map(conf, options);
}

/* ---- Output ---- */

void fb_write(fb_conn *conn, const void *p, size_t n)
{
    if (VALID(conn))
        fb_conn_write(conn, p, n);
}

void fb_writev(fb_conn *conn, const fb_bytes *pieces, size_t n)
{
    if (!VALID(conn))
        return;
    for (size_t i = 0; i < n; i++)
        fb_conn_write(conn, pieces[i].p, pieces[i].n);
}

int fb_write_ref(fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg)
{
    return VALID(conn) ? fb_conn_write_ref(conn, p, n, release, arg) : -1;
}

int fb_send_file(fb_conn *conn, int fd, uint64_t offset, uint64_t n)
{
    return VALID(conn) ? fb_conn_write_file(conn, fd, offset, n) : -1;
}

void fb_flush(fb_conn *conn)
{
    if (VALID(conn))
        fb_conn_push(conn);
}

size_t fb_unsent(const fb_conn *conn)
{
    return VALID(conn) ? conn->unsent : 0;
}

/* ---- The connection ---- */

void fb_stop(fb_conn *conn)
{
    if (VALID(conn) && conn->pipe == NULL)
        fb_conn_stop(conn);
}

void fb_resume(fb_conn *conn)
{
    if (VALID(conn) && conn->pipe == NULL)
        fb_conn_resume(conn);
}

void fb_shutdown(fb_conn *conn)
{
    if (VALID(conn) && conn->pipe == NULL)
        fb_conn_shutdown(conn);
}

void fb_close(fb_conn *conn)
{
    if (VALID(conn))
        fb_conn_close(conn);
}

void fb_abort(fb_conn *conn)
{
    if (VALID(conn))
        fb_conn_fail(conn, FB_ABORTED);
}

void fb_set_timeout(fb_conn *conn, uint64_t ms)
{
    if (VALID(conn) && conn->pipe == NULL)
        fb_session_set_timeout(conn, ms);
}

void fb_timer(fb_conn *conn, uint32_t id, uint64_t ms)
{
    if (VALID(conn))
        fb_session_alarm(conn, id, ms);
}

void fb_timer_cancel(fb_conn *conn, uint32_t id)
{
    if (VALID(conn))
        fb_session_alarm_cancel(conn, id);
}

void fb_set_idle(fb_conn *conn, int idle)
{
    if (VALID(conn))
        fb_session_set_idle(conn, idle != 0);
}

void *fb_alloc(fb_conn *conn, size_t n)
{
    struct fb_side *side = VALID(conn) ? fb_side_make(conn) : NULL;

    return side != NULL ? fb_net_alloc(conn->net, &side->lasting, n) : NULL;
}

void *fb_temp_alloc(fb_conn *conn, size_t n)
{
    struct fb_side *side = VALID(conn) ? fb_side_make(conn) : NULL;

    return side != NULL ? fb_net_alloc(conn->net, &side->temporary, n) : NULL;
}

void fb_temp_reset(fb_conn *conn)
{
    if (VALID(conn) && conn->side != NULL)
        fb_net_release(conn->net, &fb_side_of(conn)->temporary);
}

const void *fb_conf_of(const fb_conn *conn)
{
    return VALID(conn) ? fb_binding_of(conn)->server->protocol_conf : NULL;
}

int fb_peer_address(const fb_conn *conn, struct sockaddr_storage *out)
{
    if (!VALID(conn))
        return -1;
    memset(out, 0, sizeof(*out));
    if (conn->outgoing)
        memcpy(
            out, &fb_side_of(conn)->target->address.any, fb_side_of(conn)->target->address.length);
    else
        memcpy(out, &conn->peer, sizeof(conn->peer));
    return 0;
}

int fb_local_address(const fb_conn *conn, struct sockaddr_storage *out)
{
    socklen_t length = sizeof(*out);

    if (!VALID(conn))
        return -1;
    memset(out, 0, sizeof(*out));
    return conn->source.io->name(&conn->source, (struct sockaddr *)out, &length);
}

char *fb_address_text(const struct sockaddr_storage *address, char *text, size_t size)
{
    struct fb_address a = { .length = sizeof(a.un) };
    char whole[FB_ADDRESS_TEXT];

    memcpy(&a.un, address, sizeof(a.un));
    snprintf(text, size, "%s", fb_address_format(&a, true, whole));
    return text;
}

uint64_t fb_received(const fb_conn *conn)
{
    return VALID(conn) ? conn->received : 0;
}

uint64_t fb_sent(const fb_conn *conn)
{
    return VALID(conn) ? conn->sent : 0;
}

/* ---- Frames ---- */

int fb_frame_until(fb_conn *conn, fb_bytes *rest, const void *delimiter, size_t delimiter_n,
    const fb_frame_limit *limit, fb_bytes *frame)
{
    return VALID(conn) ? fb_session_frame_until(conn, rest, delimiter, delimiter_n, limit, frame)
                       : 0;
}

int fb_frame_fixed(
    fb_conn *conn, fb_bytes *rest, size_t n, const fb_frame_limit *limit, fb_bytes *frame)
{
    return VALID(conn) ? fb_session_frame_fixed(conn, rest, n, limit, frame) : 0;
}

int fb_frame_prefixed(fb_conn *conn, fb_bytes *rest, unsigned width, int little,
    const fb_frame_limit *limit, fb_bytes *frame)
{
    return VALID(conn) ? fb_session_frame_prefixed(conn, rest, width, little != 0, limit, frame)
                       : 0;
}

/* ---- Connections to servers ---- */

fb_conn *fb_connect(fb_conn *owner, const fb_target *target, const fb_ops *ops, void *state)
{
    return VALID(owner) ? fb_session_connect(owner, target, ops, state) : NULL;
}

const fb_target *fb_make_target(fb_conn *conn, const char *text)
{
    struct fb_target *target = fb_alloc(conn, sizeof(*target));

    if (target == NULL || fb_address_parse(text, 0, &target->address) != NULL ||
        (target->address.any.sa_family != AF_UNIX && fb_address_port(&target->address) == 0))
        return NULL;
    fb_address_format(&target->address, true, target->text);
    return target;
}

int fb_is_reused(const fb_conn *conn)
{
    return VALID(conn) && conn->outgoing && fb_side_of(conn)->reused;
}

void fb_keep(fb_conn *conn, uint64_t ms)
{
    if (VALID(conn))
        fb_session_keep(conn, ms);
}

/* One of them ends already. */
static bool end_together(fb_conn *a, fb_conn *b)
{
    if (a->failed != 0 || b->failed != 0) {
        fb_conn_fail(a, FB_ABORTED);
        fb_conn_fail(b, FB_ABORTED);
        return true;
    }
    if (!a->closing && !b->closing)
        return false;
    fb_conn_close(a);
    fb_conn_close(b);
    return true;
}

void fb_pipe(fb_conn *a, fb_conn *b, const fb_pipe_options *options)
{
    bool has_timeout = options != NULL && options->size >= sizeof(*options);

    if (!VALID(a) || !VALID(b) || a == b || a->pipe != NULL || b->pipe != NULL)
        return;
    if (end_together(a, b))
        return;
    if (fb_conn_pipe(a, b, has_timeout ? options->timeout : 0) == 0)
        return;
    fb_conn_fail(a, FB_NO_MEMORY);
    fb_conn_fail(b, FB_NO_MEMORY);
}

/* ---- The worker ---- */

fb_worker *fb_worker_of(const fb_conn *conn)
{
    return worker_of(conn);
}

static struct fb_worker_protocol *protocol_of(const fb_conn *conn)
{
    return &worker_of(conn)->protocols[fb_binding_of(conn)->server->protocol_index];
}

void *fb_worker_state(const fb_conn *conn)
{
    return VALID(conn) ? protocol_of(conn)->state : NULL;
}

int64_t fb_wall_ms(const fb_worker *worker)
{
    return worker->stream.net.loop.clock.wall_ms;
}

uint64_t fb_mono_ms(const fb_worker *worker)
{
    return worker->stream.net.loop.clock.mono_ms;
}

void fb_random(fb_worker *worker, void *p, size_t n)
{
    worker->random(worker, p, n);
}

int fb_run(fb_worker *worker, void (*work)(void *job), void (*done)(fb_worker *worker, void *job),
    const void *job, size_t n)
{
    return fb_threads_run(worker, work, done, job, n);
}

fb_ref fb_ref_of(fb_conn *conn)
{
    return VALID(conn) ? fb_mail_ref(worker_of(conn), conn) : 0;
}

fb_conn *fb_find(fb_worker *worker, fb_ref ref)
{
    return fb_mail_find(worker, ref);
}

uint64_t fb_send_message(fb_conn *from, fb_ref to, const void *p, size_t n)
{
    return VALID(from) ? fb_mail_send(worker_of(from), from, to, p, n) : 0;
}

/* ---- What all workers share ---- */

void fb_metric_add(fb_conn *conn, uint32_t metric, int64_t by)
{
    if (VALID(conn) && metric < fb_binding_of(conn)->server->protocol->metric_n)
        fb_shm_metric_add(&protocol_of(conn)->row[metric], by);
}

int64_t fb_metric_total(const fb_conn *conn, uint32_t metric)
{
    const struct fb_server *server = VALID(conn) ? fb_binding_of(conn)->server : NULL;

    if (server == NULL || metric >= server->protocol->metric_n)
        return 0;
    return fb_shm_metrics_total(fb_zone_memory(server->metrics), metric);
}

static uint64_t now(const fb_worker *worker)
{
    return (uint64_t)fb_wall_ms(worker);
}

static uint64_t expiry(const fb_worker *worker, uint64_t ttl)
{
    if (ttl == 0 || ttl == FB_MAP_KEEP_TTL)
        return ttl;
    return ttl < FB_MAP_KEEP_TTL - now(worker) ? now(worker) + ttl : FB_MAP_KEEP_TTL - 1;
}

fb_map_status fb_map_get(fb_worker *worker, fb_map *map, fb_bytes key, fb_item *item)
{
    struct fb_shm_item copy = { .value = item->value, .room = item->room };
    enum fb_shm_map_status status =
        fb_shm_map_get(fb_map_memory(map), key.p, key.n, now(worker), &copy);

    if (status == FB_SHM_MAP_TOO_LARGE && copy.version != 0) /* there was not room for all of it */
        status = FB_SHM_MAP_OK;
    item->n = copy.n;
    item->version = copy.version;
    item->ttl = copy.expires_ms == 0 ? 0 : copy.expires_ms - now(worker);
    return (fb_map_status)status;
}

fb_map_status fb_map_set(fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes value, uint64_t ttl)
{
    return (fb_map_status)fb_shm_map_set(
        fb_map_memory(map), key.p, key.n, now(worker), value.p, value.n, expiry(worker, ttl), NULL);
}

fb_map_status fb_map_replace(
    fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl)
{
    return (fb_map_status)fb_shm_map_replace(fb_map_memory(map), key.p, key.n, now(worker), version,
        value.p, value.n, expiry(worker, ttl), NULL);
}

fb_map_status fb_map_add(fb_worker *worker, fb_map *map, fb_bytes key, int64_t by, int64_t *sum)
{
    return (fb_map_status)fb_shm_map_add(fb_map_memory(map), key.p, key.n, now(worker), by, sum);
}

fb_map_status fb_map_delete(fb_worker *worker, fb_map *map, fb_bytes key)
{
    return (fb_map_status)fb_shm_map_delete(fb_map_memory(map), key.p, key.n, now(worker));
}

uint64_t fb_map_count(const fb_map *map)
{
    return fb_shm_map_count(fb_map_memory(map));
}

/* ---- Log and statistics ---- */

void fb_conn_logf(fb_conn *conn, fb_log_level level, const char *format, ...)
{
    va_list args;

    if (!VALID(conn) || ((int)level > (int)conn->net->log->level && !conn->debug))
        return;
    va_start(args, format);
    fb_conn_vlog(conn, (enum fb_level)level, 0, format, args);
    va_end(args);
}

void fb_worker_logf(fb_worker *worker, fb_log_level level, const char *format, ...)
{
    struct fb_log_line line = { .level = (enum fb_level)level };
    va_list args;

    if ((int)level > (int)worker->log.level)
        return;
    va_start(args, format);
    fb_log_vwrite(&worker->log, &line, format, args);
    va_end(args);
}

void fb_count_request(fb_conn *conn)
{
    if (VALID(conn))
        fb_count(conn->net->counters, FB_REQUESTS, 1);
}

void fb_get_statistics(fb_worker *worker, fb_statistics *out)
{
    uint64_t n[FB_COUNTERS], busy;
    fb_statistics all = { .size = out->size };

    fb_shared_totals(worker->stream.shared, n);
    busy = n[FB_READING] + n[FB_WRITING];
    all.accepts = n[FB_ACCEPTS];
    all.handled = n[FB_HANDLED];
    all.requests = n[FB_REQUESTS];
    all.active = n[FB_ACTIVE];
    all.reading = n[FB_READING];
    all.writing = n[FB_WRITING];
    /* other workers count on while we read */
    all.waiting = n[FB_ACTIVE] > busy ? n[FB_ACTIVE] - busy : 0;
    memcpy(out, &all, out->size < sizeof(all) ? out->size : sizeof(all));
}
