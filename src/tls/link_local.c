/* SPDX-License-Identifier: BSD-2-Clause */
/* A link to an engine in this process: bytes wait, copied, for the source's event, so that a reply
 * never comes within a call. Never lets a handshake wait for more than a turn. */
#include "tls/link_local.h"

#include "tls/handshakes.h"
#include "tls/link_private.h"

#include <assert.h>
#include <bsd/sys/queue.h>
#include <stdlib.h>
#include <string.h>

/* Bytes, or the name of a client's begin, on their way to the engine, behind a begin's paths. */
struct local_request {
    STAILQ_ENTRY(local_request) link;
    struct tls_request request;
    uint8_t bytes[];
};

STAILQ_HEAD(local_requests, local_request);

struct local_link {
    struct tls_link base; /* the first member */
    struct tls_handshakes *handshakes;
    struct local_requests requests;
    bool holds, lost; /* of simulations */
};

static struct local_link *local_of(struct tls_link *link)
{
    return container_of(link, struct local_link, base);
}

static void feed_local(struct tls_link *link, const struct tls_request *request)
{
    struct local_link *local = local_of(link);
    /* a client's begin has a name, and no bytes */
    fb_bytes rest = request->in.n > 0 ? request->in : request->start.name;
    fb_bytes paths = request->kind == TLS_BEGIN ? request->start.paths : (fb_bytes) { NULL, 0 };
    struct local_request *copy = malloc(sizeof(*copy) + paths.n + rest.n);

    if (copy == NULL) {
        tls_link_break(link);
        return;
    }
    copy->request = *request;
    copy->request.start.paths = (fb_bytes) { copy->bytes, paths.n };
    copy->request.in.p = copy->request.start.name.p = copy->bytes + paths.n;
    if (paths.n > 0)
        memcpy(copy->bytes, paths.p, paths.n);
    if (rest.n > 0)
        memcpy(copy->bytes + paths.n, rest.p, rest.n);
    STAILQ_INSERT_TAIL(&local->requests, copy, link);
    tls_link_post(link);
}

/* At once, since a handshake may be forgotten in the same turn. */
static bool ticket_local(struct tls_link *link, const struct tls_request *request)
{
    return tls_handshakes_ticket(local_of(link)->handshakes, request) == 0;
}

/* Requests of a forgotten handshake are passed over when their turn comes. */
static void cancel_local(struct tls_link *link, uint32_t number)
{
    tls_handshakes_cancel(local_of(link)->handshakes, number);
}

static void carry_out_local(struct local_link *local, const struct tls_request *request)
{
    struct link_place *place = tls_link_find(&local->base, request->number);
    struct tls_reply *reply;
    enum tls_step step;
    int status;

    if (place == NULL)
        return;
    /* requests of this process: the profile exists */
    status = tls_handshakes_feed(local->handshakes, request, UINT32_MAX, &step, &reply);
    assert(status == 0 && step != TLS_LATER); /* files are this process's own */
    if (status == 0)
        tls_link_reply(&local->base, place, step, reply);
}

static void drop_local_requests(struct local_requests *requests)
{
    struct local_request *request;

    while ((request = STAILQ_FIRST(requests)) != NULL) {
        STAILQ_REMOVE_HEAD(requests, link);
        free(request);
    }
}

/* Carries out the requests so far; new requests of the replies' owners wait for the next turn. */
static void run_local_requests(struct loop *loop, struct source *source)
{
    struct local_link *local = local_of(tls_link_of(source));
    struct local_requests requests = STAILQ_HEAD_INITIALIZER(requests);
    struct local_request *request;

    (void)loop;
    if (local->base.broken || local->lost) {
        const char *why = local->lost ? "the keeper was lost" : "no memory for a handshake";

        drop_local_requests(&local->requests);
        tls_handshakes_end_all(local->handshakes);
        local->base.broken = local->lost = false;
        tls_link_fail_all(&local->base, why);
        return;
    }
    if (local->holds)
        return;
    tls_link_shed(&local->base);
    STAILQ_CONCAT(&requests, &local->requests);
    STAILQ_FOREACH (request, &requests, link)
        carry_out_local(local, &request->request);
    drop_local_requests(&requests);
}

static void destroy_local(struct tls_link *link)
{
    struct local_link *local = local_of(link);

    drop_local_requests(&local->requests);
    tls_handshakes_destroy(local->handshakes);
    source_detach(link->loop, link->source);
    free(local);
}

struct tls_link *tls_link_create_local(
    struct loop *loop, const struct tls_engine_ops *ops, struct tls_engine *engine)
{
    static const struct tls_link_ops link_ops = {
        .feed = feed_local,
        .ticket = ticket_local,
        .cancel = cancel_local,
        .destroy = destroy_local,
    };
    struct local_link *local = calloc(1, sizeof(*local));

    if (local == NULL)
        return NULL;
    STAILQ_INIT(&local->requests);
    tls_link_init(&local->base, loop, &link_ops);
    local->base.plain = ops == &tls_engine_plain;
    local->base.source_ops.run[EVENT_READ] = run_local_requests;
    local->handshakes = tls_handshakes_create(ops, engine);
    local->base.source = local->handshakes != NULL
                             ? loop_make_own(loop, QUEUE_NORMAL, &local->base.source_ops)
                             : NULL;
    if (local->base.source != NULL)
        return &local->base;
    tls_handshakes_destroy(local->handshakes);
    free(local);
    return NULL;
}

void tls_link_hold_local(struct tls_link *link, bool holds)
{
    local_of(link)->holds = holds;
    tls_link_post(link);
}

void tls_link_lose_local(struct tls_link *link)
{
    local_of(link)->lost = true;
    tls_link_post(link);
}
