/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds trunks by the common properties of connections, and keeps the queues. A free place or an
 * idle connection wakes the first waiting connection, which in turn wakes the next. */
#include "backends/trunk.h"

#include "net/conn_connect.h"

#include <string.h>

#define TRUNK_KIND KIND('T', 'r', 'u', 'n')

static int compare_words(uintptr_t a, uintptr_t b)
{
    return (a > b) - (a < b);
}

static int compare_locals(const struct address *a, const struct address *b)
{
    if (a->length == 0 || b->length == 0)
        return compare_words(a->length, b->length);
    return address_compare(a, b);
}

static int compare_trunks(const struct trunk *a, const struct trunk *b)
{
    int result = address_compare(&a->target.address, &b->target.address);

    if (result == 0)
        result = compare_words((uintptr_t)a->ops, (uintptr_t)b->ops);
    if (result == 0)
        result = compare_locals(&a->local, &b->local);
    if (result == 0)
        result = compare_words((uintptr_t)a->receive_buffer, (uintptr_t)b->receive_buffer);
    if (result == 0)
        result = compare_words(a->flags, b->flags);
    if (result == 0)
        result = compare_words((uintptr_t)a->tls, (uintptr_t)b->tls);
    if (result == 0)
        result = compare_words(a->key_n, b->key_n);
    if (result == 0)
        result = compare_words(a->name_n, b->name_n);
    if (result == 0)
        result = compare_words(a->paths_n, b->paths_n);
    if (result == 0)
        result = compare_words(a->before_n, b->before_n);
    return result != 0
               ? result
               : memcmp(a->bytes, b->bytes, a->key_n + a->name_n + a->paths_n + a->before_n);
}

RB_GENERATE_INTERNAL(trunks, trunk, node, compare_trunks, static __attribute__((unused)))

/* Appends a part of the trunk's bytes, and returns the end. */
static uint8_t *append_part(uint8_t *end, const void *p, size_t n)
{
    if (n > 0)
        memcpy(end, p, n);
    return end + n;
}

static struct trunk *create_trunk(struct stream *stream, const struct trunk_wish *wish)
{
    const fb_connect_options *options = wish->options;
    size_t before_n = options->tls != NULL ? options->tls_before.n : 0;
    struct trunk *trunk = memory_alloc(stream->net.memory,
        sizeof(*trunk) + options->key_n + wish->tls_name.n + wish->tls_paths.n + before_n);
    uint8_t *end;

    if (trunk == NULL)
        return NULL;
    *trunk = (struct trunk) {
        .kind = TRUNK_KIND,
        .target = *wish->target,
        .ops = wish->ops,
        .tls = options->tls,
        .key_n = options->key_n,
        .name_n = wish->tls_name.n,
        .paths_n = wish->tls_paths.n,
        .before_n = before_n,
    };
    TAILQ_INIT(&trunk->waiting);
    TAILQ_INIT(&trunk->idle);
    if (options->local != NULL)
        address_from(&trunk->local, options->local);
    trunk->receive_buffer =
        options->receive_buffer < INT32_MAX ? (int)options->receive_buffer : INT32_MAX;
    trunk->flags = options->flags & TRUNK_FLAGS;
    end = append_part(trunk->bytes, options->key, options->key_n);
    end = append_part(end, wish->tls_name.p, wish->tls_name.n);
    end = append_part(end, wish->tls_paths.p, wish->tls_paths.n);
    append_part(end, options->tls_before.p, before_n);
    return trunk;
}

struct trunk *trunk_get(struct stream *stream, const struct trunk_wish *wish)
{
    struct trunk *trunk = create_trunk(stream, wish), *found;

    if (trunk == NULL)
        return NULL;
    found = RB_INSERT(trunks, &stream->trunks, trunk);
    if (found != NULL) {
        memory_release(stream->net.memory, trunk);
        trunk = found;
    }
    CHECK_KIND(trunk, TRUNK_KIND);
    trunk->limit = wish->options->limit;
    trunk->queue = wish->options->queue;
    trunk->age = wish->options->age;
    trunk->timeout = wish->timeout;
    assert(!trunk->held);
    trunk->held = true;
    return trunk;
}

/* Frees a trunk without users. */
static void release(struct stream *stream, struct trunk *trunk)
{
    CHECK_KIND(trunk, TRUNK_KIND);
    if (trunk->conn_n > 0 || trunk->waiting_n > 0 || trunk->held)
        return;
    assert(TAILQ_EMPTY(&trunk->idle) && TAILQ_EMPTY(&trunk->waiting));
    RB_REMOVE(trunks, &stream->trunks, trunk);
    trunk->kind = 0;
    memory_release(stream->net.memory, trunk);
}

void trunk_drop(struct stream *stream, struct trunk *trunk)
{
    assert(trunk->held);
    trunk->held = false;
    release(stream, trunk);
}

/* Whether there is a place for a further connection. */
static bool has_place(const struct trunk *trunk)
{
    return trunk->limit == 0 || trunk->conn_n < trunk->limit;
}

bool trunk_is_full(const struct trunk *trunk)
{
    return !has_place(trunk) || trunk->waiting_n > 0;
}

void trunk_wake(struct trunk *trunk)
{
    struct session_reuse *first = TAILQ_FIRST(&trunk->waiting);

    if (first != NULL && (has_place(trunk) || !TAILQ_EMPTY(&trunk->idle)))
        conn_connect_soon(first->session->conn);
}

static void leave_queue(struct session_reuse *reuse)
{
    struct trunk *trunk = reuse->trunk;

    assert(reuse->session->waits && trunk->waiting_n > 0);
    reuse->session->waits = false;
    trunk->waiting_n--;
    TAILQ_REMOVE(&trunk->waiting, reuse, alike);
}

void trunk_enter(struct session_reuse *reuse, struct trunk *trunk)
{
    if (reuse->session->waits)
        leave_queue(reuse);
    reuse->trunk = trunk;
    trunk->conn_n++;
}

void trunk_wait(struct session_reuse *reuse, struct trunk *trunk)
{
    assert(reuse->trunk == NULL && trunk_is_full(trunk));
    reuse->trunk = trunk;
    reuse->session->waits = true;
    trunk->waiting_n++;
    TAILQ_INSERT_TAIL(&trunk->waiting, reuse, alike);
}

void trunk_leave(struct stream *stream, struct session_reuse *reuse)
{
    struct trunk *trunk = reuse->trunk;

    CHECK_KIND(trunk, TRUNK_KIND);
    if (reuse->session->waits) {
        leave_queue(reuse);
    } else {
        assert(trunk->conn_n > 0);
        trunk->conn_n--;
    }
    reuse->trunk = NULL;
    trunk_wake(trunk);
    release(stream, trunk);
}

void trunk_put(struct session_reuse *reuse)
{
    assert(!reuse->session->waits);
    TAILQ_INSERT_HEAD(&reuse->trunk->idle, reuse, alike);
    trunk_wake(reuse->trunk);
}

void trunk_take(struct session_reuse *reuse)
{
    TAILQ_REMOVE(&reuse->trunk->idle, reuse, alike);
}

struct io_connect *trunk_options(const struct trunk *trunk, struct io_connect *options)
{
    *options = (struct io_connect) {
        .receive_buffer = trunk->receive_buffer,
        .transparent = (trunk->flags & FB_CONNECT_TRANSPARENT) != 0,
        .keepalive = (trunk->flags & FB_CONNECT_TCP_KEEPALIVE) != 0,
    };
    if (trunk->local.length > 0) {
        options->local = &trunk->local.any;
        options->local_length = trunk->local.length;
    }
    return options->local != NULL || options->receive_buffer > 0 || trunk->flags != 0 ? options
                                                                                      : NULL;
}

bool trunk_is_old(const struct fb_conn *conn, const struct trunk *trunk)
{
    return trunk->age > 0 && conn->net->loop.clock.mono_ms - conn->opened_ms >= trunk->age;
}

void trunk_check_all(const struct stream *stream)
{
    struct trunk *trunk;
    const struct session_reuse *reuse;

    RB_FOREACH (trunk, trunks, (struct trunks *)&stream->trunks) {
        uint32_t waiting_n = 0, idle_n = 0;

        CHECK_KIND(trunk, TRUNK_KIND);
        TAILQ_FOREACH (reuse, &trunk->waiting, alike) {
            assert(reuse->trunk == trunk && reuse->session->waits &&
                   reuse->session->conn->source.fd == -1);
            waiting_n++;
        }
        TAILQ_FOREACH (reuse, &trunk->idle, alike) {
            assert(reuse->trunk == trunk && session_is_keepalive(reuse->session->conn));
            idle_n++;
        }
        assert(waiting_n == trunk->waiting_n && idle_n <= trunk->conn_n);
        assert(waiting_n + trunk->conn_n > 0 && !trunk->held);
    }
}
