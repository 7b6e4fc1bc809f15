/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of the groups in a worker: lists of sessions that wait for a name, and for room
 * (`queue`), in the order of time-outs. A source of the loop's own stands for due queues. A timer
 * polls for room made by a different worker or by time. */
#include "upstream/queue.h"

#include "base/memory.h"

#include <stdio.h>

#define QUEUE_KIND KIND('Q', 'u', 'e', 'u')
/* The poll interval for room. */
#define POLL_MS 100
/* Limit of examined sessions of a queue: the first may have tried the server with room. */
#define LOOKED_AT 16
/* Limit of sessions resumed in a turn of the loop. */
#define RESUMED_A_TURN 256
/* The time for a name without a resolver_timeout, and the grace for the question's own failure. */
#define NAME_TIMEOUT_MS 30000
#define NAME_GRACE_MS 20

struct waiter {
    TAILQ_ENTRY(waiter) link;
    struct choice *choice;
    enum wait_reason reason;
    uint64_t since_ms, until_ms; /* monotonic */
};

TAILQ_HEAD(waiter_list, waiter);

/* The queue of a group, from the first waiting session on. */
struct queue {
    unsigned kind;
    struct upstreams *upstreams;
    struct upstream *upstream;
    TAILQ_ENTRY(queue) due; /* among the queues due soon */
    bool is_due;
    struct timer timer;
    struct waiter_list lists[WAIT_REASONS];
    uint32_t n[WAIT_REASONS];
};

static uint64_t now_of_queue(const struct queue *queue)
{
    return queue->upstreams->loop->clock.mono_ms;
}

static void make_queue_due(struct queue *queue)
{
    struct upstreams *upstreams = queue->upstreams;

    CHECK_KIND(queue, QUEUE_KIND);
    if (!queue->is_due)
        TAILQ_INSERT_TAIL(&upstreams->due, queue, due);
    queue->is_due = true;
    loop_post(upstreams->loop, &upstreams->source->events[EVENT_READ], QUEUE_NEXT);
}

static void clear_due(struct queue *queue)
{
    if (queue->is_due)
        TAILQ_REMOVE(&queue->upstreams->due, queue, due);
    queue->is_due = false;
}

static void queue_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    make_queue_due(container_of(timer, struct queue, timer));
}

/* Sets the timer by the first session of both lists. */
static void set_queue_timer(struct queue *queue)
{
    uint64_t now = now_of_queue(queue), ms = queue->n[WAIT_FOR_ROOM] > 0 ? POLL_MS : UINT64_MAX;

    for (int i = 0; i < WAIT_REASONS; i++) {
        const struct waiter *first = TAILQ_FIRST(&queue->lists[i]);

        if (first != NULL && first->until_ms <= now + 1)
            ms = 1;
        else if (first != NULL && first->until_ms - now < ms)
            ms = first->until_ms - now;
    }
    if (ms == UINT64_MAX)
        timer_del(queue->upstreams->loop, &queue->timer);
    else
        timer_set(queue->upstreams->loop, &queue->timer, ms);
}

/* Returns the group's queue; NULL without memory. */
static struct queue *get_queue(const struct choice *choice)
{
    struct upstream *upstream = choice->upstream;
    struct queue *queue = upstream->waiting;

    if (queue != NULL)
        return queue;
    queue = memory_alloc(choice_upstreams(choice)->memory, sizeof(*queue));
    if (queue == NULL)
        return NULL;
    *queue = (struct queue) {
        .kind = QUEUE_KIND,
        .upstreams = choice_upstreams(choice),
        .upstream = upstream,
        .timer.expired = queue_expired,
    };
    for (int i = 0; i < WAIT_REASONS; i++)
        TAILQ_INIT(&queue->lists[i]);
    upstream->waiting = queue;
    return queue;
}

void queue_wake(struct upstream *upstream)
{
    struct queue *queue = upstream->waiting;

    if (queue != NULL && queue->n[WAIT_FOR_NAME] + queue->n[WAIT_FOR_ROOM] > 0)
        make_queue_due(queue);
}

void queue_forget(struct upstream *upstream)
{
    struct queue *queue = upstream->waiting;

    if (queue == NULL)
        return;
    CHECK_KIND(queue, QUEUE_KIND);
    assert(queue->n[WAIT_FOR_NAME] == 0 && queue->n[WAIT_FOR_ROOM] == 0);
    timer_del(queue->upstreams->loop, &queue->timer);
    clear_due(queue);
    queue->kind = 0;
    upstream->waiting = NULL;
    memory_release(queue->upstreams->memory, queue);
}

static void add_waiter(struct queue *queue, struct waiter *waiter, enum wait_reason reason)
{
    const struct upstream *upstream = queue->upstream;
    int64_t ms = upstream->queue_timeout;

    if (reason == WAIT_FOR_NAME)
        ms = NAME_GRACE_MS +
             (upstream->resolver_timeout != 0 ? upstream->resolver_timeout : NAME_TIMEOUT_MS);
    assert(reason < WAIT_REASONS && waiter->choice->upstream->waiting == queue);
    waiter->reason = reason;
    waiter->since_ms = now_of_queue(queue);
    waiter->until_ms = waiter->since_ms + (uint64_t)ms;
    TAILQ_INSERT_TAIL(&queue->lists[reason], waiter, link);
    queue->n[reason]++;
    if (reason == WAIT_FOR_ROOM && upstream->waits.own != NULL)
        stats_add(&upstream->waits.own->begun, 1);
}

static void remove_waiter(struct waiter *waiter)
{
    struct queue *queue = waiter->choice->upstream->waiting;
    uint64_t ms = now_of_queue(queue) - waiter->since_ms;
    uint32_t *waited = &waiter->choice->more->waited_ms[waiter->reason];

    CHECK_KIND(queue, QUEUE_KIND);
    assert(queue->n[waiter->reason] > 0);
    TAILQ_REMOVE(&queue->lists[waiter->reason], waiter, link);
    queue->n[waiter->reason]--;
    if (*waited != CHOICE_NO_TIME)
        ms += *waited;
    *waited = ms < CHOICE_NO_TIME ? (uint32_t)ms : CHOICE_NO_TIME - 1;
}

static void count_wait_end(const struct waiter *waiter, fb_try_end how)
{
    struct stats_tries *stats = waiter->choice->upstream->waits.own;

    if (stats == NULL || waiter->reason != WAIT_FOR_ROOM)
        return;
    stats_add_time(
        &stats->times[0], now_of_queue(waiter->choice->upstream->waiting) - waiter->since_ms);
    stats_add_end(&stats->ended[how - FB_TRY_SERVED]);
}

/* Ends the wait of a session: with a server, without, or with the session. */
static struct choice *end_wait(struct waiter *waiter, fb_try_end how)
{
    struct choice *choice = waiter->choice;

    assert(choice->more->waiter == waiter);
    count_wait_end(waiter, how);
    remove_waiter(waiter);
    choice->more->waiter = NULL;
    memory_release(choice_upstreams(choice)->memory, waiter);
    return choice;
}

/* Whether the session may wait for room: some server might serve it, and the queue is not full. */
static bool may_wait_for_room(const struct choice *choice)
{
    const struct upstream *upstream = choice->upstream;
    const struct queue *queue = upstream->waiting;

    return choice->left > 0 && upstream->queue > 0 &&
           (queue == NULL || queue->n[WAIT_FOR_ROOM] < upstream->queue);
}

static fb_choice refuse_session(struct choice *choice)
{
    const struct upstream *upstream = choice->upstream;
    char text[MESSAGE_NAME + 128];

    if (!upstream->is_of_session || upstream->unresolved == NULL || upstream->peers->n > 0) {
        choice_report_none(choice);
        return FB_CHOICE_NONE;
    }
    snprintf(text, sizeof(text), "%s could not be resolved: %s",
        STAILQ_FIRST(&upstream->servers)->host, upstream->unresolved);
    choice_upstreams(choice)->report(choice, LEVEL_ERROR, upstream->name, text);
    return FB_CHOICE_INVALID;
}

static fb_choice begin_wait(struct choice *choice, enum wait_reason reason)
{
    struct queue *queue = get_queue(choice);
    struct choice_more *more = choice_make_more(choice);
    struct waiter *waiter = memory_alloc(choice_upstreams(choice)->memory, sizeof(*waiter));

    assert(!choice_waits(choice) && choice->peer == NULL);
    if (queue == NULL || more == NULL || waiter == NULL) {
        memory_release(choice_upstreams(choice)->memory, waiter);
        return FB_CHOICE_NO_MEMORY;
    }
    *waiter = (struct waiter) { .choice = choice };
    more->waiter = waiter;
    add_waiter(queue, waiter, reason);
    set_queue_timer(queue);
    return FB_CHOICE_WAITS;
}

/* Whether waiting sessions precede a new session: for room, or for an answered name. */
static bool others_wait(const struct upstream *upstream)
{
    const struct queue *queue = upstream->waiting;

    return queue != NULL && (queue->n[WAIT_FOR_ROOM] > 0 ||
                                (queue->n[WAIT_FOR_NAME] > 0 && upstream->unanswered == 0));
}

fb_choice queue_choose(struct choice *choice)
{
    return others_wait(choice->upstream) ? FB_CHOICE_NONE : choice_next(choice);
}

fb_choice queue_wait(struct choice *choice)
{
    const struct upstream *upstream = choice->upstream;
    const struct queue *queue = upstream->waiting;

    if (upstream->unanswered > 0 || (queue != NULL && queue->n[WAIT_FOR_NAME] > 0))
        return begin_wait(choice, WAIT_FOR_NAME);
    if (may_wait_for_room(choice))
        return begin_wait(choice, WAIT_FOR_ROOM);
    return refuse_session(choice);
}

void queue_end(struct choice *choice, fb_try_end how)
{
    CHECK_KIND(choice, CHOICE_KIND);
    if (choice_waits(choice)) {
        end_wait(choice->more->waiter, FB_TRY_UNUSED);
        set_queue_timer(choice->upstream->waiting);
        return;
    }
    choice_end(choice, how);
    if (others_wait(choice->upstream))
        make_queue_due(choice->upstream->waiting);
}

/* Returns the status to resume a session with; FB_CHOICE_WAITS: not yet. */
static fb_choice look_at_waiter(struct queue *queue, struct waiter *waiter)
{
    struct choice *choice = waiter->choice;
    fb_choice status = choice_next(choice);
    bool has_name = queue->upstream->unanswered == 0;

    assert(choice->more->waiter == waiter && choice->upstream == queue->upstream);
    if (status != FB_CHOICE_NONE)
        return status;
    if (waiter->reason == WAIT_FOR_NAME && has_name && may_wait_for_room(choice)) {
        remove_waiter(waiter);
        add_waiter(queue, waiter, WAIT_FOR_ROOM);
        return FB_CHOICE_WAITS;
    }
    if (waiter->reason == WAIT_FOR_NAME && has_name)
        return refuse_session(choice);
    if (waiter->until_ms > now_of_queue(queue))
        return FB_CHOICE_WAITS;
    choice->more->given_up = waiter->reason;
    choice_upstreams(choice)->report(choice, LEVEL_ERROR, queue->upstream->name,
        waiter->reason == WAIT_FOR_NAME ? "the name of no server was resolved in time"
                                        : "upstream queue timed out");
    return FB_CHOICE_NONE;
}

static struct waiter *find_ready(struct queue *queue, fb_choice *status)
{
    for (int reason = 0; reason < WAIT_REASONS; reason++) {
        bool all = reason == WAIT_FOR_NAME && queue->upstream->unanswered == 0;
        struct waiter *waiter, *next;
        unsigned n = 0;

        TAILQ_FOREACH_SAFE (waiter, &queue->lists[reason], link, next) {
            if (++n > LOOKED_AT && !all)
                break;
            *status = look_at_waiter(queue, waiter);
            if (*status != FB_CHOICE_WAITS)
                return waiter;
        }
    }
    return NULL;
}

/* Serves a session of the queue; the session may be freed. */
static void serve_queue(struct queue *queue)
{
    struct upstreams *upstreams = queue->upstreams;
    fb_choice status;
    struct waiter *waiter = find_ready(queue, &status);
    struct choice *choice = NULL;

    CHECK_KIND(queue, QUEUE_KIND);
    assert(queue->is_due);
    clear_due(queue);
    if (waiter != NULL) {
        choice = end_wait(waiter, status == FB_CHOICE_SERVER ? FB_TRY_SERVED : FB_TRY_FAILED);
        queue_wake(queue->upstream);
    }
    set_queue_timer(queue);
    if (choice != NULL)
        upstreams->resume(choice, status);
}

static void run_due_queues(struct loop *loop, struct source *source)
{
    struct upstreams *upstreams =
        container_of((struct source_ops *)source->ops, struct upstreams, queue_ops);

    assert(upstreams->loop == loop);
    for (unsigned n = 0; n < RESUMED_A_TURN && !TAILQ_EMPTY(&upstreams->due); n++)
        serve_queue(TAILQ_FIRST(&upstreams->due));
    upstreams->resumed(upstreams);
    if (!TAILQ_EMPTY(&upstreams->due))
        loop_post(loop, &source->events[EVENT_READ], QUEUE_NEXT);
}

int queue_open(struct upstreams *upstreams)
{
    assert(upstreams->source == NULL);
    TAILQ_INIT(&upstreams->due);
    upstreams->queue_ops = (struct source_ops) { .run = { [EVENT_READ] = run_due_queues } };
    upstreams->source = loop_make_own(upstreams->loop, QUEUE_NORMAL, &upstreams->queue_ops);
    return upstreams->source != NULL ? 0 : -1;
}

void queue_close(struct upstreams *upstreams)
{
    if (upstreams->source == NULL)
        return;
    assert(TAILQ_EMPTY(&upstreams->due));
    source_close(upstreams->loop, upstreams->source, false);
    upstreams->source = NULL;
}
