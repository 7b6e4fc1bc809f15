/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts every protocol once per worker, stops protocols, and frees the states. */
#include "worker/protocols.h"

#include "shm/siphash.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

const char *worker_protocols_name(const struct worker *worker, unsigned index)
{
    const struct fb_worker *own = index < STREAM_PROTOCOLS_MAX ? &worker->protocols[index] : NULL;

    return own != NULL && own->protocol != NULL ? own->protocol->name : "unknown";
}

/* Calls `worker_start`, if there is one. */
static int call_start(struct worker *worker, const struct server *server, struct fb_worker *handle)
{
    const fb_protocol *protocol = server->protocol;
    int result;

    if (protocol->worker_start == NULL)
        return 0;
    worker_callback_begin(handle, CALLBACK_WORKER_START);
    result = protocol->worker_start(handle, handle->state);
    worker_callback_end(worker);
    return result;
}

/* The protocol's mark in messages, equal in every configuration. */
static uint64_t mark_of(const char *name)
{
    static const uint64_t key[2] = { 0, 0 };

    return siphash(key, name, strlen(name));
}

static int start_protocol(struct worker *worker, const struct server *server)
{
    const fb_protocol *protocol = server->protocol;
    struct fb_worker *own = &worker->protocols[server->protocol_index];

    assert(server->protocol_index < STREAM_PROTOCOLS_MAX && own->state == NULL);
    own->worker = worker;
    own->index = server->protocol_index;
    own->protocol = protocol;
    own->mark = mark_of(protocol->name);
    RB_INIT(&own->timers);
    if (protocol->worker_state > 0) {
        own->state = memory_alloc(worker->stream.net.memory, protocol->worker_state);
        if (own->state == NULL)
            return worker_fail(worker, errno, "no memory for \"%s\"", protocol->name);
        memset(own->state, 0, protocol->worker_state);
    }
    if (server->metrics != NULL)
        own->row = shm_metrics_row(
            zone_memory(server->metrics), server->metrics->shape, worker->heritage->slot.slot);
    if (call_start(worker, server, own) != 0)
        return worker_fail(worker, 0, "\"%s\" could not start in this worker", protocol->name);
    net_flush(&worker->stream.net);
    own->started = true;
    return 0;
}

int worker_protocols_start(struct worker *worker)
{
    const struct server *server;

    assert(worker->phase == WORKER_STARTING);
    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link)
        if (server->protocol != NULL && !worker->protocols[server->protocol_index].started &&
            start_protocol(worker, server) == -1)
            return -1;
    return 0;
}

static void clear_timers(struct fb_worker *own)
{
    if (own->worker != NULL)
        id_timers_clear(
            &own->timers, &own->worker->stream.net.loop, own->worker->stream.net.memory);
}

void worker_protocols_stop(struct worker *worker)
{
    const struct server *server;

    assert(worker->phase == WORKER_ENDING && worker->stream.net.connection_n == 0);
    map_watch_done(worker);
    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link) {
        struct fb_worker *own = &worker->protocols[server->protocol_index];

        if (server->protocol == NULL)
            continue;
        clear_timers(own);
        heartbeat_begin(worker->stream.net.heartbeat, CALLBACK_WORKER_STOP, server->protocol_index);
        if (own->started && server->protocol->worker_stop != NULL)
            server->protocol->worker_stop(own, own->state);
        worker_callback_end(worker);
        clear_timers(own); /* of worker_stop itself */
        watches_remove_all(own);
        memory_release(worker->stream.net.memory, own->state);
        own->state = NULL;
        own->row = NULL;
        own->started = false;
    }
}

void worker_protocols_drain(struct worker *worker, uint64_t deadline)
{

    assert(worker->phase == WORKER_DRAINING);
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++) {
        struct fb_worker *own = &worker->protocols[i];

        if (!own->started || !WORKER_HAS(own, draining))
            continue;
        worker_callback_begin(own, CALLBACK_WORKER_DRAINING);
        own->protocol->worker_ops->draining(own, own->state, deadline);
        worker_callback_end(worker);
    }
    net_flush(&worker->stream.net);
}

bool worker_protocols_wait(const struct worker *worker)
{
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (worker->protocols[i].unanswered > 0)
            return true;
    return false;
}

struct fb_worker *worker_protocol_of_mark(struct worker *worker, uint64_t mark)
{
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (worker->protocols[i].started && worker->protocols[i].mark == mark)
            return &worker->protocols[i];
    return NULL;
}

static void protocol_timer_expired(struct loop *loop, struct timer *expired)
{
    struct worker *worker = worker_of_loop(loop);
    struct fb_worker *own = container_of(id_timers_owner(expired), struct fb_worker, timers);
    uint32_t id;

    assert(own->worker == worker && own->started);
    if (!id_timers_take(expired, loop, worker->stream.net.memory, &id) || !WORKER_HAS(own, timer))
        return;
    worker_callback_begin(own, CALLBACK_WORKER_TIMER);
    own->protocol->worker_ops->timer(own, own->state, id);
    worker_callback_end(worker);
    net_flush(&worker->stream.net);
}

int worker_protocol_timer(struct fb_worker *handle, uint32_t id, uint64_t ms)
{
    struct net *net = &worker_of(handle)->stream.net;

    return id_timers_set(&handle->timers, &net->loop, net->memory, protocol_timer_expired, id, ms);
}

void worker_protocol_timer_cancel(struct fb_worker *handle, uint32_t id)
{
    struct net *net = &worker_of(handle)->stream.net;

    id_timers_cancel(&handle->timers, &net->loop, net->memory, id);
}

/* ---- Posted work ---- */

/* Posted work runs in the next turn, by a source without a descriptor. A turn runs only earlier
 * posts: self-posting work leaves time for the rest. */
struct post {
    STAILQ_ENTRY(post) link;
    struct fb_worker *handle; /* the protocol that has posted it */
    void (*run)(struct fb_worker *handle, void *work);
    void *work;
    max_align_t bytes[];
};

static void run_posted_work(struct worker *worker, struct post *post)
{
    worker_callback_begin(post->handle, CALLBACK_POSTED);
    post->run(post->handle, post->work);
    worker_callback_end(worker);
    memory_release(worker->stream.net.memory, post);
}

static void run_posts(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);
    struct posts *posts = &worker->posts;
    struct post *post;
    unsigned n = posts->n;

    assert(source == posts->source && n > 0);
    (void)source;
    for (; n > 0; n--) {
        post = STAILQ_FIRST(&posts->list);
        STAILQ_REMOVE_HEAD(&posts->list, link);
        posts->n--;
        run_posted_work(worker, post);
    }
    net_flush(&worker->stream.net);
}

static const struct source_ops post_ops = { .run = { [EVENT_READ] = run_posts } };

int worker_protocol_post(struct fb_worker *handle,
    void (*run)(struct fb_worker *handle, void *work), const void *work, size_t n)
{
    struct worker *worker = worker_of(handle);
    struct loop *loop = &worker->stream.net.loop;
    struct posts *posts = &worker->posts;
    struct post *post;

    assert(run != NULL);
    if (posts->source == NULL) {
        STAILQ_INIT(&posts->list);
        posts->source = loop_make_own(loop, QUEUE_NORMAL, &post_ops);
    }
    if (posts->source == NULL || n > SIZE_MAX / 2)
        return -1;
    post = memory_alloc(worker->stream.net.memory, sizeof(*post) + n);
    if (post == NULL)
        return -1;
    post->handle = handle;
    post->run = run;
    post->work = n > 0 ? post->bytes : NULL;
    if (n > 0)
        memcpy(post->bytes, work, n);
    STAILQ_INSERT_TAIL(&posts->list, post, link);
    posts->n++;
    loop_post(loop, &posts->source->events[EVENT_READ], QUEUE_NEXT);
    return 0;
}

void worker_protocols_unpost(struct worker *worker)
{
    struct posts *posts = &worker->posts;
    struct post *post;

    assert(worker->phase == WORKER_ENDING);
    if (posts->source == NULL)
        return;
    while ((post = STAILQ_FIRST(&posts->list)) != NULL) {
        STAILQ_REMOVE_HEAD(&posts->list, link);
        posts->n--;
        memory_release(worker->stream.net.memory, post);
    }
    assert(posts->n == 0);
    source_close(&worker->stream.net.loop, posts->source, false);
    posts->source = NULL;
}
