/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to workers. A channel that is full, because its worker does not read, is never waited
 * for: what was to be sent is remembered as a flag or a number, none of which grows, and sent when
 * there is room. Inboxes are made here, when the first worker asks for one: a reference may be
 * known to others before the worker that gave it out has said anything. */
#include "pool/pool.h"

#include "base/compiler.h"
#include "base/log_file.h"
#include "process/fd_passing.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* How long until a full channel is tried again. */
#define RESEND_MS 100

void pool_outbox_init(struct pool_worker *worker)
{
    assert(worker->inbox == -1);
    worker->outbox = (struct pool_outbox) { .inbox = -1, .gone = worker->generation->pool->gone_n };
}

void pool_outbox_done(struct pool_worker *worker)
{
    if (worker->outbox.inbox != -1)
        fd_close_socket(worker->outbox.inbox);
    worker->outbox = (struct pool_outbox) { .inbox = -1 };
}

/* Sends to a worker, which may have gone; false when it has to be tried again. */
static bool send_message(
    struct pool_worker *worker, enum channel_message_kind kind, uint32_t argument, int fd)
{
    struct channel_message message = { .kind = kind, .argument = argument, .fd = fd };

    if (channel_send(worker->channel, &message) == 0)
        return true;
    switch (errno) {
    case EAGAIN:
    case EINTR:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS: /* descriptors that others have passed and nobody has received */
        return false;
    case EPIPE: /* a dead worker is reaped soon */
        return true;
    default:
        log_quota_write(&worker->lines, LEVEL_ALERT, errno,
            "no message could be sent to worker process %d", (int)worker->pid);
        return true;
    }
}

/* The mutex comes before accepting: a worker that is told both never tries it. */
static bool send_plain(struct pool_worker *worker)
{
    static const enum channel_message_kind kinds[] = { MESSAGE_MUTEX_OFF, MESSAGE_ACCEPT,
        MESSAGE_RESCAN };
    struct pool_outbox *outbox = &worker->outbox;

    for (size_t i = 0; i < countof(kinds); i++) {
        uint32_t bit = 1u << kinds[i];

        if ((outbox->plain & bit) == 0)
            continue;
        if (!send_message(worker, kinds[i], 0, -1))
            return false;
        outbox->plain &= ~bit;
        worker->intake.accept_n += kinds[i] == MESSAGE_ACCEPT;
    }
    return true;
}

/* Passes a file, with flags of the worker's own if it can have them: see logs_separate(). */
static bool send_log(struct pool_worker *worker, unsigned log, int fd)
{
    int own = log_file_open_again(fd);
    bool sent = send_message(worker, MESSAGE_LOG_FILE, log, own != -1 ? own : fd);

    if (own != -1)
        close(own);
    return sent;
}

static bool send_logs(struct pool_worker *worker)
{
    const struct core_settings *core = &worker->generation->cycle->core;
    struct pool_outbox *outbox = &worker->outbox;

    assert(outbox->log_n <= core->log_n);
    for (; outbox->log_n > 0; outbox->log_n--) {
        unsigned log = core->log_n - outbox->log_n;

        if (core->logs[log].path != NULL && !send_log(worker, log, core->logs[log].fd))
            return false;
    }
    return true;
}

static bool send_inbox(struct pool_worker *worker)
{
    struct pool_outbox *outbox = &worker->outbox;

    assert(outbox->inbox != -1);
    if (!send_message(worker, MESSAGE_INBOX, 0, outbox->inbox))
        return false;
    close(outbox->inbox);
    outbox->inbox = -1;
    return true;
}

static bool send_gone(struct pool_worker *worker)
{
    const struct pool *pool = worker->generation->pool;
    struct pool_outbox *outbox = &worker->outbox;

    assert(pool->gone_n - outbox->gone <= POOL_GONE_MAX);
    for (; outbox->gone != pool->gone_n; outbox->gone++)
        if (!send_message(worker, MESSAGE_PEER_GONE, pool->gone[outbox->gone % POOL_GONE_MAX], -1))
            return false;
    return true;
}

static struct pool_worker *find_worker(const struct pool *pool, uint32_t incarnation)
{
    struct generation *generation;
    struct pool_worker *worker;

    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            if (worker->pid > 0 && slot_incarnation(worker->slot) == incarnation)
                return worker;
    return NULL;
}

static void try_again(struct pool *pool);

/* Returns the sending end of a worker's inbox, which is made unless there is one; -1: there is no
 * such worker, or no descriptor is left. */
static int find_inbox(struct pool *pool, uint32_t incarnation)
{
    struct pool_worker *worker = find_worker(pool, incarnation);
    int ends[2];

    if (worker == NULL || worker->inbox != -1)
        return worker == NULL ? -1 : worker->inbox;
    if (channel_open_inbox(ends) == -1) {
        log_quota_write(&worker->lines, LEVEL_ALERT, errno,
            "worker process %d can be sent no messages", (int)worker->pid);
        return -1;
    }
    assert(worker->outbox.inbox == -1);
    worker->known = true;
    worker->inbox = ends[1];
    worker->outbox.inbox = ends[0];
    if (!send_inbox(worker))
        try_again(pool);
    return worker->inbox;
}

static bool send_inboxes(struct pool_worker *worker)
{
    struct pool_outbox *outbox = &worker->outbox;

    for (; outbox->wanted_n > 0; outbox->wanted_n--) {
        uint32_t wanted = outbox->wanted[outbox->wanted_n - 1];
        int inbox = find_inbox(worker->generation->pool, wanted);

        if (!send_message(
                worker, inbox != -1 ? MESSAGE_INBOX_OF_PEER : MESSAGE_PEER_GONE, wanted, inbox))
            return false;
    }
    return true;
}

/* Sends what the channel has room for. */
static void send_all(struct pool_worker *worker)
{
    const struct pool_outbox *outbox = &worker->outbox;
    struct pool *pool = worker->generation->pool;
    bool sent;

    if (worker->channel == -1 || worker->killed != POOL_KILL_NONE)
        return;
    sent = (outbox->plain == 0 || send_plain(worker)) &&
           (outbox->log_n == 0 || send_logs(worker)) &&
           (outbox->inbox == -1 || send_inbox(worker)) &&
           (outbox->gone == pool->gone_n || send_gone(worker)) &&
           (outbox->wanted_n == 0 || send_inboxes(worker));
    if (!sent)
        try_again(pool);
}

static void resend_expired(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, resend);
    struct generation *generation;
    struct pool_worker *worker;

    assert(loop == NULL);
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            send_all(worker);
}

static void try_again(struct pool *pool)
{
    pool->resend.expired = resend_expired;
    if (!timer_is_set(&pool->resend))
        timers_arm(pool->timers, &pool->resend, RESEND_MS);
}

void pool_outbox_send(struct pool_worker *worker, enum channel_message_kind kind)
{
    assert(kind == MESSAGE_MUTEX_OFF || kind == MESSAGE_ACCEPT || kind == MESSAGE_RESCAN);
    worker->outbox.plain |= 1u << kind;
    send_all(worker);
}

void pool_outbox_listener(struct pool_worker *worker, int fd)
{
    if (worker->channel != -1 && worker->killed == POOL_KILL_NONE)
        send_message(worker, MESSAGE_LISTENER, (uint32_t)fd, fd);
}

void pool_outbox_logs(struct pool_worker *worker)
{
    worker->outbox.log_n = worker->generation->cycle->core.log_n;
    send_all(worker);
}

bool pool_outbox_want_inbox(struct pool_worker *worker, uint32_t incarnation)
{
    struct pool_outbox *outbox = &worker->outbox;

    if (outbox->wanted_n == POOL_WANTED_MAX)
        return false;
    outbox->wanted[outbox->wanted_n++] = incarnation;
    send_all(worker);
    return true;
}

void pool_outbox_note_gone(const struct pool_worker *gone)
{
    struct pool *pool = gone->generation->pool;
    struct generation *generation;
    struct pool_worker *worker;

    pool->gone[pool->gone_n++ % POOL_GONE_MAX] = slot_incarnation(gone->slot);
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            if (worker != gone)
                send_all(worker);
}

bool pool_outbox_is_full(const struct pool_worker *worker)
{
    return worker->pid > 0 &&
           worker->generation->pool->gone_n - worker->outbox.gone >= POOL_GONE_MAX;
}
