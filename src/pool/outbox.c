/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to workers with an argument; the channel's end keeps those without. A full channel is
 * never waited for: a flag or a bounded number remembers the message until there is room. Inboxes
 * are made at the first request. During an upgrade a worker asks once for workers of the other
 * master process, and each time for an inbox. Nothing from the other process is asserted on. */
#include "pool/outbox.h"

#include "base/compiler.h"
#include "channel/fd_passing.h"
#include "os/descriptor.h"
#include "os/log_file.h"
#include "pool/worker.h"
#include "process/role.h"
#include "tls/files.h"

#include <assert.h>
#include <errno.h>

/* Connections for the logs of one worker: all of many logs at a time. */
static const struct token_rate dial_rate = { .burst = 64, .per_second = 4 };

static const char unread_messages[] = "the process does not read its messages";

/* Whether the incarnation, perhaps invented, is of the other master process. */
static bool is_foreign_incarnation(const struct pool *pool, uint32_t incarnation)
{
    return slot_half_of(incarnation) != pool->shared->half;
}

void pool_outbox_failed(struct channel_end *end, int error)
{
    struct pool_worker *worker = container_of(end, struct pool_worker, channel);

    log_quota_write(&worker->lines, LEVEL_ALERT, error, "no message could be sent to %s %d",
        pool_worker_title(worker), (int)worker->pid);
}

/* Sends to a worker, dead or alive; false: try again. */
static bool send_to_worker(
    struct pool_worker *worker, enum channel_message_kind kind, uint32_t argument, int fd)
{
    return channel_end_try(&worker->channel,
        &(struct channel_message) { .kind = kind, .argument = argument, .fd = fd });
}

static bool send_logs(struct pool_worker *worker)
{
    const struct core_settings *core = &worker->generation->cycle->core;
    struct pool_outbox *outbox = &worker->outbox;

    assert(outbox->log_n <= core_target_n(core));
    for (; outbox->log_n > 0; outbox->log_n--) {
        unsigned log = core_target_n(core) - outbox->log_n;
        const struct log_target *target = core_target(core, log);
        int own = target->path != NULL ? log_file_open_again(target->fd) : -1;
        bool sent = target->path == NULL || /* with flags of its own if possible */
                    send_to_worker(worker, MESSAGE_LOG_FILE, log, own != -1 ? own : target->fd);

        descriptor_close(own);
        if (!sent)
            return false;
    }
    return true;
}

static bool send_inbox(struct pool_worker *worker)
{
    struct pool_outbox *outbox = &worker->outbox;

    assert(outbox->inbox != -1);
    if (!send_to_worker(worker, MESSAGE_INBOX, 0, outbox->inbox))
        return false;
    descriptor_close(outbox->inbox);
    outbox->inbox = -1;
    return true;
}

static bool send_link(struct pool_worker *worker)
{
    struct pool_outbox *outbox = &worker->outbox;

    if (!send_to_worker(worker, MESSAGE_LINK, worker->link_n, outbox->link))
        return false;
    descriptor_close(outbox->link);
    outbox->link = -1;
    return true;
}

/* Sends a keeper the file that it waits for, or why there is none. */
static bool send_file(struct pool_worker *worker)
{
    struct pool_outbox *outbox = &worker->outbox;
    int fd = tls_file_open(&worker->generation->cycle->tls, outbox->file);
    uint32_t error = fd == -1 ? (uint32_t)errno : 0;

    outbox->file_wanted = !send_to_worker(worker, MESSAGE_FILE, error, fd);
    descriptor_close(fd);
    return !outbox->file_wanted;
}

static bool send_gone(struct pool_worker *worker)
{
    const struct pool *pool = worker->generation->pool;
    struct pool_outbox *outbox = &worker->outbox;

    assert(pool->gone_n - outbox->gone <= POOL_GONE_MAX);
    for (; outbox->gone != pool->gone_n; outbox->gone++)
        if (!send_to_worker(
                worker, MESSAGE_SIBLING_GONE, pool->gone[outbox->gone % POOL_GONE_MAX], -1))
            return false;
    return true;
}

/* Returns the sending end of an inbox, made at the first request; -1: no worker or descriptor. */
static int find_own_inbox(struct pool *pool, uint32_t incarnation)
{
    struct pool_worker *worker = pool_worker_of_incarnation(pool, incarnation);
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
        channel_end_retry(&worker->channel);
    return worker->inbox;
}

/* Sends a worker the inbox of an incarnation, or, -1, the news of its end; false: try again. */
static bool send_inbox_of(struct pool_worker *worker, uint32_t incarnation, int inbox)
{
    return send_to_worker(
        worker, inbox != -1 ? MESSAGE_SIBLING_INBOX : MESSAGE_SIBLING_GONE, incarnation, inbox);
}

/* Sends a worker the incarnations of the other master process; false: try again. */
static bool send_others(struct pool_worker *worker)
{
    struct pool *pool = worker->generation->pool;
    struct pool_outbox *outbox = &worker->outbox;

    if (outbox->others_wanted) {
        outbox->others_asked = pool->ops->ask_inbox(pool->host, POOL_ASK_ALL, 0) == 0;
        if (!outbox->others_asked && errno == EAGAIN)
            return false;
        outbox->others_wanted = false;
        pool->others_met = pool->others_met || outbox->others_asked;
    }
    assert(outbox->others_left <= pool->others_n);
    for (; outbox->others_left > 0; outbox->others_left--)
        if (!send_to_worker(worker, MESSAGE_OTHER, pool->others[outbox->others_left - 1], -1))
            return false;
    return true;
}

/* Asks the other master process for an inbox; false: try again. */
static bool ask_other_for_inbox(struct pool_worker *worker, uint32_t incarnation)
{
    struct pool *pool = worker->generation->pool;

    assert(is_foreign_incarnation(pool, incarnation));
    if (pool->asks_n == POOL_ASKS_MAX)
        return false;
    if (pool->ops->ask_inbox(pool->host, incarnation, slot_incarnation(worker->slot)) == -1)
        return errno != EAGAIN && send_inbox_of(worker, incarnation, -1);
    pool->asks_n++;
    pool->others_met = true;
    return true;
}

/* Sends the inbox of one of our workers; false: try again. */
static bool send_own_inbox(struct pool_worker *worker, uint32_t incarnation)
{
    struct pool *pool = worker->generation->pool;
    int inbox = find_own_inbox(pool, incarnation);

    if (inbox == -1 && pool_worker_of_incarnation(pool, incarnation) != NULL)
        return false; /* no descriptor was left */
    return send_inbox_of(worker, incarnation, inbox);
}

static bool send_inboxes(struct pool_worker *worker)
{
    const struct pool *pool = worker->generation->pool;
    struct pool_outbox *outbox = &worker->outbox;

    for (; outbox->wanted_n > 0; outbox->wanted_n--) {
        uint32_t wanted = outbox->wanted[outbox->wanted_n - 1];

        if (is_foreign_incarnation(pool, wanted) ? !ask_other_for_inbox(worker, wanted)
                                                 : !send_own_inbox(worker, wanted))
            return false;
    }
    return true;
}

bool pool_outbox_send_more(struct channel_end *end)
{
    struct pool_worker *worker = container_of(end, struct pool_worker, channel);
    const struct pool_outbox *outbox = &worker->outbox;

    if (worker->killed != POOL_KILL_NONE)
        return true;
    return (outbox->log_n == 0 || send_logs(worker)) && (outbox->link == -1 || send_link(worker)) &&
           (!outbox->file_wanted || send_file(worker)) &&
           (outbox->inbox == -1 || send_inbox(worker)) && send_gone(worker) &&
           (outbox->wanted_n == 0 || send_inboxes(worker)) && send_others(worker);
}

void pool_outbox_listener(struct pool_worker *worker, int fd)
{
    if (worker->pid > 0 && worker->phase < POOL_WORKER_RELEASED && worker->killed == POOL_KILL_NONE)
        send_to_worker(worker, MESSAGE_LISTENER, (uint32_t)fd, fd);
}

bool pool_outbox_sessions(struct pool_worker *worker, int pipe)
{
    int own;
    bool sent;

    if (worker->pid <= 0 || worker->phase < POOL_WORKER_READY || worker->killed != POOL_KILL_NONE)
        return false;
    own = log_file_open_again(pipe); /* workers share no flags */
    sent = send_to_worker(worker, MESSAGE_SESSIONS, 0, own != -1 ? own : pipe);
    descriptor_close(own);
    return sent;
}

void pool_outbox_logs(struct pool_worker *worker)
{
    if (worker->generation->cycle->stream.access_logs)
        channel_end_send(&worker->channel, MESSAGE_REOPEN);
    worker->outbox.log_n = core_target_n(&worker->generation->cycle->core);
    channel_end_send_more(&worker->channel);
}

void pool_outbox_broken_log(struct pool_worker *worker, uint32_t log)
{
    struct pool *pool = worker->generation->pool;
    struct log_target *target = core_target(&worker->generation->cycle->core, log);
    int fd;

    if (target->stream == NULL) { /* a socket that all processes share */
        target->broken = pool->log->broken = true;
        return;
    }
    if (!token_bucket_take(&worker->dials, &dial_rate, pool->clock->mono_ms))
        return;
    fd = log_target_dial(target);
    if (fd != -1)
        send_to_worker(worker, MESSAGE_LOG_FILE, log, fd);
    descriptor_close(fd);
}

static bool note_wanted(struct pool_outbox *outbox, uint32_t incarnation)
{
    if (outbox->wanted_n == POOL_WANTED_MAX)
        return false;
    outbox->wanted[outbox->wanted_n++] = incarnation;
    return true;
}

bool pool_outbox_want_inbox(struct pool_worker *worker, uint32_t incarnation)
{
    if (!note_wanted(&worker->outbox, incarnation))
        return false;
    channel_end_send_more(&worker->channel);
    return true;
}

/* Adds an ended incarnation, or CHANNEL_OTHERS_GONE, for all workers but `except`. */
static void add_gone_incarnation(struct pool *pool, uint32_t gone, const struct pool_worker *except)
{
    struct pool_worker *worker;

    POOL_FOREACH_WORKER (worker, pool)
        /* the pid of `except` may be in use again */
        if (worker != except && worker->pid > 0 &&
            pool->gone_n - worker->outbox.gone >= POOL_GONE_MAX)
            pool_worker_break_rule(worker, unread_messages);
    pool->gone[pool->gone_n++ % POOL_GONE_MAX] = gone;
    POOL_FOREACH_WORKER (worker, pool)
        if (worker != except)
            channel_end_send_more(&worker->channel);
}

void pool_outbox_note_gone(const struct pool_worker *gone)
{
    struct pool *pool = gone->generation->pool;
    uint32_t incarnation = slot_incarnation(gone->slot);

    assert(gone->known);
    add_gone_incarnation(pool, incarnation, gone);
    pool->ops->worker_gone(pool->host, incarnation);
}

const char *pool_others_want(struct pool_worker *worker)
{
    assert(worker->pid > 0);
    if (worker->asks_others)
        return "a second request for the workers of another master process";
    worker->asks_others = true;
    worker->outbox.others_wanted = true;
    channel_end_send_more(&worker->channel);
    return NULL;
}

void pool_others_came(struct pool *pool, const uint32_t *others, unsigned n)
{
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    if (!pool->others_met) /* nobody has asked */
        return;
    pool->others_n = 0;
    for (unsigned i = 0; i < n && pool->others_n < SLOT_MAX; i++)
        if (others[i] >> INCARNATION_BITS == 0 && is_foreign_incarnation(pool, others[i]))
            pool->others[pool->others_n++] = others[i];
    POOL_FOREACH_WORKER (worker, pool) {
        if (!worker->outbox.others_asked && worker->outbox.others_left == 0)
            continue;
        worker->outbox.others_asked = false;
        worker->outbox.others_left = pool->others_n;
        channel_end_send_more(&worker->channel);
    }
}

void pool_others_inbox_came(
    struct pool *pool, uint32_t incarnation, uint32_t asker, bool found, int fd)
{
    struct pool_worker *worker = pool_worker_of_incarnation(pool, asker);

    assert(role_is(ROLE_MASTER));
    pool->asks_n -= pool->asks_n > 0;
    if (worker != NULL && worker->killed == POOL_KILL_NONE &&
        incarnation >> INCARNATION_BITS == 0 && is_foreign_incarnation(pool, incarnation) &&
        ((found && fd == -1) || !send_inbox_of(worker, incarnation, fd))) {
        if (note_wanted(&worker->outbox, incarnation))
            channel_end_retry(&worker->channel);
        else
            pool_worker_break_rule(worker, unread_messages);
    }
    POOL_FOREACH_WORKER (worker, pool)
        if (worker->outbox.wanted_n > 0) /* another request has room */
            channel_end_send_more(&worker->channel);
}

void pool_others_note_gone(struct pool *pool, uint32_t incarnation)
{
    assert(role_is(ROLE_MASTER));
    if (pool->others_met && incarnation >> INCARNATION_BITS == 0 &&
        is_foreign_incarnation(pool, incarnation))
        add_gone_incarnation(pool, incarnation, NULL);
}

void pool_others_end(struct pool *pool)
{
    const uint32_t serials = (1u << (INCARNATION_BITS - SLOT_BITS)) - 1;
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    pool->others_n = pool->asks_n = 0;
    POOL_FOREACH_WORKER (worker, pool) {
        worker->outbox.others_asked = false;
        worker->outbox.others_left = 0;
    }
    if (pool->others_met)
        add_gone_incarnation(
            pool, CHANNEL_OTHERS_GONE | (pool->shared->other_serial & serials), NULL);
    pool->others_met = false;
}

unsigned pool_others_list_own(struct pool *pool, uint32_t own[SLOT_MAX])
{
    const struct pool_worker *worker;
    unsigned n = 0;

    pool->others_met = true;
    POOL_FOREACH_SERVING (worker, pool)
        if (worker->pid > 0 && n < SLOT_MAX)
            own[n++] = slot_incarnation(worker->slot);
    return n;
}

int pool_others_find_inbox(struct pool *pool, uint32_t incarnation)
{
    pool->others_met = true;
    return find_own_inbox(pool, incarnation);
}
