/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes lines to access logs. A line is made in the final buffer, once more after a flush. */
#include "features/access_log/access_log.h"

#include "features/access_log/gzip.h"
#include "features/features.h"
#include "session/record.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define LINE_FIRST 4096       /* bytes of a line written at once; grows as needed */
#define LINE_MOST (64u << 20) /* more is lost */
/* Shortest time between log lines about lost lines, and about the end of losses. */
#define LOST_SAID_MS UINT64_C(60000)
#define ENDED_SAID_MS UINT64_C(1000)

/* Lines of a worker for one file. */
struct access_buffer {
    const struct access_file *file;
    struct access_logs *logs;
    char *bytes; /* NULL: none was needed yet */
    size_t n;
    unsigned lines;
    struct timer flush;
    uint64_t said_ms; /* time of the last log line about lost lines; 0: none */
};

struct access_logs {
    struct stream *stream;
    char *line; /* room for a line outside of buffers */
    size_t line_size;
    struct access_cache **caches; /* made when they are first used */
    unsigned cache_n;
    unsigned n;
    struct access_buffer buffers[];
};

static struct log *log_of(const struct access_buffer *buffer)
{
    return buffer->logs->stream->net.log;
}

/* Says how many lines were lost: with the first, then once a minute, and when lines are accepted
 * again. `path` is what could not be opened, or NULL. */
static COLD void report_lost_lines(struct access_buffer *buffer, int error, const char *path)
{
    struct log_target *target = buffer->file->target;
    uint64_t now = buffer->logs->stream->net.loop.clock.mono_ms, n = target->lost;
    char name[LOG_TARGET_NAME];

    log_of(buffer)->broken = log_of(buffer)->broken || target->broken;
    if (buffer->said_ms != 0 && now - buffer->said_ms < (error == 0 ? ENDED_SAID_MS : LOST_SAID_MS))
        return;
    target->lost = 0;
    buffer->said_ms = now;
    if (path != NULL)
        log_write(log_of(buffer), LEVEL_CRIT, error, "open() \"%s\" failed", path);
    if (n > 0)
        log_write(log_of(buffer), LEVEL_ALERT, path != NULL ? 0 : error,
            "%" PRIu64 " line%s not accepted by %s", n, n == 1 ? " was" : "s were",
            log_target_name(target, name));
}

/* Gives the lines to the target, the own of the file or of a path with variables, or loses them. */
static void put_lines(
    struct access_buffer *buffer, struct log_target *target, const struct log_lines *lines)
{
    struct log_target *own = buffer->file->target;
    uint64_t lost = target->lost;
    bool taken;

    if (target->fd == -1)
        return;
    taken = log_target_put(target, lines, &log_of(buffer)->stamp);
    if (unlikely(log_target_waits(target))) {
        log_of(buffer)->waiting = true;
        log_of(buffer)->broken = log_of(buffer)->broken || target->broken;
    }
    if (likely(taken && target->lost == 0 && own->lost == 0))
        return;
    log_count_lost(log_of(buffer), target->lost - lost);
    if (target != own) {
        own->lost += target->lost;
        target->lost = 0;
    }
    if (taken)
        report_lost_lines(buffer, 0, NULL);
    else
        report_lost_lines(buffer, errno != 0 ? errno : ENOSPC, NULL); /* 0: a part was accepted */
}

static void lose_lines(struct access_buffer *buffer, unsigned lines, int error, const char *path)
{
    buffer->file->target->lost += lines;
    log_count_lost(log_of(buffer), lines);
    report_lost_lines(buffer, error, path);
}

static void write_lines(struct access_buffer *buffer, const char *bytes, size_t n, unsigned count)
{
    struct log_lines lines = { .bytes = bytes, .n = n, .count = count };
    char *packed = NULL;

    if (buffer->file->gzip > 0) {
        packed = access_gzip_pack((int)buffer->file->gzip, bytes, n, &lines.n);
        if (packed == NULL) {
            lose_lines(buffer, count, ENOMEM, NULL);
            return;
        }
        lines.bytes = packed;
        lines.packed = true;
    }
    put_lines(buffer, buffer->file->target, &lines);
    access_gzip_free(packed);
}

static void flush_buffer(struct access_buffer *buffer)
{
    struct loop *loop = &buffer->logs->stream->net.loop;

    assert((buffer->n == 0) == (buffer->lines == 0));
    assert(!timer_is_set(&buffer->flush) || buffer->file->flush > 0);
    timer_del(loop, &buffer->flush);
    if (buffer->n == 0)
        return;
    write_lines(buffer, buffer->bytes, buffer->n, buffer->lines);
    buffer->n = 0;
    buffer->lines = 0;
}

static void flush_due(struct loop *loop, struct timer *timer)
{
    (void)loop;
    flush_buffer(container_of(timer, struct access_buffer, flush));
}

/* Makes the line in growing memory; *n: the length with the newline. NULL without memory. */
static char *make_line(
    struct access_logs *logs, struct fb_conn *conn, const struct line_format *format, size_t *n)
{
    for (;;) {
        char *end = logs->line == NULL ? NULL
                                       : log_format_write(format, conn, logs->line,
                                             logs->line + logs->line_size - 1);
        size_t larger = logs->line_size == 0 ? LINE_FIRST : 2 * logs->line_size;
        char *line;

        if (end != NULL) {
            *end = '\n';
            *n = (size_t)(end + 1 - logs->line);
            return logs->line;
        }
        line = larger > LINE_MOST ? NULL : memory_alloc(logs->stream->net.memory, larger);
        if (line == NULL)
            return NULL;
        if (logs->line != NULL)
            memory_release(logs->stream->net.memory, logs->line);
        logs->line = line;
        logs->line_size = larger;
    }
}

static void write_at_once(
    struct access_buffer *buffer, struct fb_conn *conn, const struct line_format *format)
{
    size_t n;
    const char *line = make_line(buffer->logs, conn, format, &n);

    if (line == NULL)
        lose_lines(buffer, 1, ENOMEM, NULL);
    else
        write_lines(buffer, line, n, 1);
}

/* Makes the line behind those in the buffer; false where there is no room. */
static bool add_line(
    struct access_buffer *buffer, struct fb_conn *conn, const struct line_format *format)
{
    char *p = buffer->bytes + buffer->n, *end;

    end = log_format_write(format, conn, p, buffer->bytes + buffer->file->buffer);
    if (unlikely(end == NULL || end == buffer->bytes + buffer->file->buffer))
        return false;
    *end = '\n';
    buffer->n = (size_t)(end + 1 - buffer->bytes);
    buffer->lines++;
    return true;
}

/* A line longer than the buffer is written at once, behind the buffered lines. */
static void write_buffered(
    struct access_buffer *buffer, struct fb_conn *conn, const struct line_format *format)
{
    const struct access_file *file = buffer->file;

    assert(file->buffer > 0 && buffer->n <= file->buffer);
    if (unlikely(buffer->bytes == NULL)) {
        buffer->bytes = memory_alloc(buffer->logs->stream->net.memory, file->buffer);
        if (buffer->bytes == NULL) {
            write_at_once(buffer, conn, format);
            return;
        }
    }
    if (unlikely(!add_line(buffer, conn, format))) {
        flush_buffer(buffer);
        if (!add_line(buffer, conn, format)) {
            write_at_once(buffer, conn, format);
            return;
        }
    }
    if (file->flush > 0 && !timer_is_set(&buffer->flush))
        timer_set(&buffer->logs->stream->net.loop, &buffer->flush, (uint64_t)file->flush);
}

/* Returns the server's cache of descriptors; NULL: it has none, or there is no memory. */
static struct access_cache *cache_of(struct access_logs *logs, const struct fb_conn *conn)
{
    const struct access_log_values *values =
        server_feature(session_server_of(conn), FEATURE_ACCESS_LOG);
    const struct access_cache_setting *setting = values->cache;
    struct net *net = &logs->stream->net;

    if (setting == NULL)
        return NULL;
    assert(setting->index < logs->cache_n);
    if (logs->caches[setting->index] == NULL)
        logs->caches[setting->index] = access_cache_create(setting, net->memory, &net->loop);
    return logs->caches[setting->index];
}

/* Writes a line to the file of the path, which is open only as long, or in the cache. */
static void write_to(struct access_buffer *buffer, struct access_cache *cache, const char *path,
    const struct log_lines *lines)
{
    struct log_target own = { .fd = -1, .path = path }, *target = &own;

    assert(buffer->file->path != NULL && buffer->file->target->fd == -1);
    if (cache != NULL)
        target = access_cache_open(cache, path);
    else if (log_target_open(&own) == -1)
        target = NULL;
    if (target == NULL) {
        lose_lines(buffer, 1, errno, path);
        return;
    }
    put_lines(buffer, target, lines);
    if (cache != NULL)
        access_cache_give(cache, target);
    else
        close(own.fd);
}

static void write_by_path(
    struct access_buffer *buffer, struct fb_conn *conn, const struct access_log *log)
{
    struct log_lines lines = { .count = 1 };
    char path[PATH_MAX];

    lines.bytes = make_line(buffer->logs, conn, log->format, &lines.n);
    if (lines.bytes == NULL || access_path_make(log->file->path, conn, path) == -1)
        lose_lines(buffer, 1, lines.bytes == NULL ? ENOMEM : errno, NULL);
    else
        write_to(buffer, cache_of(buffer->logs, conn), path, &lines);
}

static bool log_is_wanted(struct fb_conn *conn, const struct access_log *log)
{
    struct value value;

    if (log->condition == NULL || template_value(conn, log->condition, &value) == -1)
        return true;
    return value.n > 1 || (value.n == 1 && value.p[0] != '0');
}

unsigned access_log_run(struct fb_conn *conn, const void *arg)
{
    struct access_logs *logs = stream_of(conn)->features[FEATURE_ACCESS_LOG];

    assert(logs != NULL && !conn->outgoing);
    for (const struct access_log *log = arg; log != NULL; log = log->next) {
        struct access_buffer *buffer = &logs->buffers[log->file->index];

        if (!log_is_wanted(conn, log))
            continue;
        if (log->file->path != NULL)
            write_by_path(buffer, conn, log);
        else if (log->file->buffer > 0)
            write_buffered(buffer, conn, log->format);
        else
            write_at_once(buffer, conn, log->format);
    }
    return 0;
}

/* Makes the buffers, and room for caches; NULL without memory. */
static struct access_logs *make_logs(struct stream *stream, const struct access_log_conf *conf)
{
    unsigned n = conf->file_n;
    struct access_logs *logs =
        memory_alloc(stream->net.memory, sizeof(*logs) + n * sizeof(logs->buffers[0]));

    if (logs == NULL)
        return NULL;
    *logs = (struct access_logs) { .stream = stream, .n = n, .cache_n = conf->cache_n };
    if (logs->cache_n == 0)
        return logs;
    logs->caches = memory_alloc(stream->net.memory, logs->cache_n * sizeof(*logs->caches));
    if (logs->caches == NULL) {
        memory_release(stream->net.memory, logs);
        return NULL;
    }
    memset(logs->caches, 0, logs->cache_n * sizeof(*logs->caches));
    return logs;
}

int access_log_open(struct stream *stream, const struct cycle *cycle, struct slot_id slot)
{
    const struct access_log_conf *conf =
        cycle->stream.features != NULL ? cycle->stream.features[FEATURE_ACCESS_LOG] : NULL;
    const struct access_file *file;
    struct access_logs *logs;

    (void)slot;
    assert(stream->features[FEATURE_ACCESS_LOG] == NULL);
    if (conf == NULL || conf->file_n == 0)
        return 0;
    logs = make_logs(stream, conf);
    if (logs == NULL) {
        log_write(stream->net.log, LEVEL_EMERG, errno, "no memory for the access logs");
        return -1;
    }
    for (file = conf->files; file != NULL; file = file->next)
        logs->buffers[file->index] = (struct access_buffer) {
            .file = file, .logs = logs, .flush = { .expired = flush_due }
        };
    stream->features[FEATURE_ACCESS_LOG] = logs;
    return 0;
}

void access_log_flush(struct stream *stream)
{
    struct access_logs *logs = stream->features[FEATURE_ACCESS_LOG];

    for (unsigned i = 0; logs != NULL && i < logs->n; i++)
        flush_buffer(&logs->buffers[i]);
}

void access_log_flush_to(struct stream *stream, const struct log_target *target)
{
    struct access_logs *logs = stream->features[FEATURE_ACCESS_LOG];

    for (unsigned i = 0; logs != NULL && i < logs->n; i++)
        if (logs->buffers[i].file->target == target)
            flush_buffer(&logs->buffers[i]);
}

void access_log_reopen(struct stream *stream)
{
    struct access_logs *logs = stream->features[FEATURE_ACCESS_LOG];

    access_log_flush(stream);
    for (unsigned i = 0; logs != NULL && i < logs->cache_n; i++)
        if (logs->caches[i] != NULL)
            access_cache_clear(logs->caches[i]);
}

void access_log_close(struct stream *stream, const struct cycle *cycle)
{
    struct access_logs *logs = stream->features[FEATURE_ACCESS_LOG];
    const struct memory *memory = stream->net.memory;

    (void)cycle;
    if (logs == NULL)
        return;
    access_log_flush(stream);
    for (unsigned i = 0; i < logs->n; i++) {
        struct access_buffer *buffer = &logs->buffers[i];

        buffer->said_ms = 0;
        if (buffer->file->target->lost > 0)
            report_lost_lines(buffer, 0, NULL);
        if (buffer->bytes != NULL)
            memory_release(memory, buffer->bytes);
    }
    for (unsigned i = 0; i < logs->cache_n; i++)
        access_cache_destroy(&logs->caches[i]);
    if (logs->caches != NULL)
        memory_release(memory, logs->caches);
    if (logs->line != NULL)
        memory_release(memory, logs->line);
    memory_release(memory, logs);
    stream->features[FEATURE_ACCESS_LOG] = NULL;
}
