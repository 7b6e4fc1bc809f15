/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates a session_use. Runs the timers of protocols' connections, by ids of the protocol's:
 * `timer` once for a timer, never for a connection that closes or is piped. Gives connections names
 * for references: numbers, never given twice.
 *
 * The name of an ended connection is not found. Names are a count, in a permutation by the stream's
 * key: no client guesses the name of another connection. Invariant: a session_use is in the tree if
 * the name is not 0. */
#include "session/use.h"

#include "shm/siphash.h"

#define HALF_BITS (SESSION_NAME_BITS / 2)
#define HALF_MASK ((UINT64_C(1) << HALF_BITS) - 1)
#define ROUNDS 6

struct session_use *session_use_create(struct fb_conn *conn)
{
    struct session_conn *session = session_conn_make(conn);
    struct session_use *use;

    if (session == NULL || session->use != NULL)
        return session != NULL ? session->use : NULL;
    use = spares_take(&stream_of(conn)->uses);
    if (use == NULL)
        return NULL;
    *use = (struct session_use) { .kind = SESSION_USE_KIND, .session = session };
    TAILQ_INIT(&use->reads);
    RB_INIT(&use->timers);
    return session->use = use;
}

struct session_use *session_use_make(struct fb_conn *conn)
{
    struct session_use *use = session_use_create(conn);

    if (use == NULL)
        conn_fail(conn, FB_NO_MEMORY);
    return use;
}

void session_timers_clear(struct session_use *use)
{
    struct net *net = use->session->conn->net;

    id_timers_clear(&use->timers, &net->loop, net->memory);
}

static void call_timer(struct fb_conn *conn, uint32_t id)
{
    if (!conn_is_active(conn) || conn->pipe != NULL || !SESSION_HAS(session_ops_of(conn), timer))
        return;
    session_callback_begin(conn, CALLBACK_TIMER);
    session_ops_of(conn)->timer(conn, conn->state, id);
    session_callback_end(conn);
}

static void timer_expired(struct loop *loop, struct timer *expired)
{
    struct session_use *use = container_of(id_timers_owner(expired), struct session_use, timers);
    struct fb_conn *conn = use->session->conn;
    struct net *net = conn->net;
    uint32_t id;

    CHECK_KIND(use, SESSION_USE_KIND);
    assert(session_is_usable(conn));
    if (!id_timers_take(expired, loop, net->memory, &id))
        return;
    call_timer(conn, id);
    net_flush(net);
}

void session_timer_set(struct fb_conn *conn, uint32_t id, uint64_t ms)
{
    struct session_use *use = session_use_make(conn);
    struct net *net = conn->net;

    assert(conn_is_owned(conn));
    if (use != NULL &&
        id_timers_set(&use->timers, &net->loop, net->memory, timer_expired, id, ms) == -1)
        conn_fail(conn, FB_NO_MEMORY);
}

void session_timer_cancel(struct fb_conn *conn, uint32_t id)
{
    struct session_use *use = session_use_of(conn);

    if (use != NULL)
        id_timers_cancel(&use->timers, &conn->net->loop, conn->net->memory, id);
}

/* ---- Names ---- */

static int compare_uses(const struct session_use *a, const struct session_use *b)
{
    return (a->name > b->name) - (a->name < b->name);
}

RB_GENERATE_INTERNAL(
    session_names, session_use, named, compare_uses, static __attribute__((unused)))

static uint64_t round_of(const struct stream *stream, unsigned round, uint64_t half)
{
    uint64_t block = (uint64_t)round << 32 | half;

    return siphash(stream->name_key, &block, sizeof(block)) & HALF_MASK;
}

/* A Feistel network: a round undoes itself, with the halves exchanged. */
static uint64_t permute(const struct stream *stream, uint64_t number, bool back)
{
    uint64_t left = number >> HALF_BITS, right = number & HALF_MASK, next;

    assert(number >> SESSION_NAME_BITS == 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        next = left ^ round_of(stream, back ? ROUNDS - 1 - i : i, right);
        left = right;
        right = next;
    }
    return right << HALF_BITS | left;
}

static uint64_t next_session_name(struct stream *stream)
{
    uint64_t name;

    do
        name = permute(stream, ++stream->last_name, false);
    while (name < SESSION_NAME_LEAST);
    return name;
}

uint64_t session_name(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);
    struct session_use *use = session_use_create(conn);

    if (use == NULL)
        return 0;
    if (use->name == 0) {
        use->name = next_session_name(stream);
        RB_INSERT(session_names, &stream->named, use);
    }
    assert(use->name >= SESSION_NAME_LEAST);
    return use->name;
}

bool session_name_was_given(const struct stream *stream, uint64_t name)
{
    uint64_t number = permute(stream, name, true);

    return name >= SESSION_NAME_LEAST && number > 0 && number <= stream->last_name;
}

struct fb_conn *session_find(struct stream *stream, uint64_t name)
{
    struct session_use key = { .name = name };
    struct session_use *use = RB_FIND(session_names, &stream->named, &key);

    if (use == NULL)
        return NULL;
    CHECK_KIND(use, SESSION_USE_KIND);
    assert(use->session->use == use);
    return use->session->conn;
}

void session_name_drop(struct session_use *use)
{
    if (use->name != 0)
        RB_REMOVE(session_names, &stream_of(use->session->conn)->named, use);
    use->name = 0;
}
