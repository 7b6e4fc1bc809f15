/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends messages to the master. Those without an argument wait as a bit each: they are sent in the
 * order of their kinds, of which READY is the first. What clients can cause often, a rescan, is
 * sent at most every LIMITED_MS. */
#include "worker/outbox.h"

#include "worker/worker.h"

#include <assert.h>
#include <errno.h>

#define LIMITED_MS 20
#define RETRY_MS 50 /* the master has been stopped: it reads all else at once */
#define LIMITED (1u << MESSAGE_RESCAN | 1u << MESSAGE_INBOX_LOST)

bool worker_try_send(struct fb_worker *worker, enum channel_message_kind kind, uint32_t argument)
{
    struct channel_message message = { .kind = kind, .argument = argument, .fd = -1 };

    if (worker->channel == NULL || channel_send(worker->channel->fd, &message) == 0)
        return true;
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM)
        return false;
    if (errno != EPIPE) /* a master that has gone is seen by the channel's end */
        log_write(&worker->log, LEVEL_ALERT, errno, "a message to the master could not be sent");
    return true;
}

/* Sends what waits of these kinds; false when the channel is full. */
static bool send_unsent(struct fb_worker *worker, uint32_t kinds)
{
    struct worker_outbox *outbox = &worker->outbox;

    for (uint32_t kind = 1; outbox->unsent >> kind != 0; kind++) {
        uint32_t bit = 1u << kind;

        if ((outbox->unsent & kinds & bit) == 0)
            continue;
        if (!worker_try_send(worker, (enum channel_message_kind)kind, 0))
            return false;
        outbox->unsent &= ~bit;
    }
    return true;
}

/* Sends what may be sent now; sets the timer for the rest. */
static void send_due(struct fb_worker *worker)
{
    struct worker_outbox *outbox = &worker->outbox;
    struct loop *loop = &worker->stream.net.loop;
    uint64_t now = loop->clock.mono_ms, due = outbox->limited_ms + LIMITED_MS;
    bool limited = (outbox->unsent & LIMITED) != 0 && (outbox->limited_ms == 0 || now >= due);

    if (!send_unsent(worker, limited ? ~0u : ~LIMITED))
        timer_set(loop, &outbox->retry, RETRY_MS);
    else if (limited)
        outbox->limited_ms = now;
    else if (outbox->unsent != 0)
        timer_restart(loop, &outbox->retry, due - now);
}

static void retry_expired(struct loop *loop, struct timer *timer)
{
    struct fb_worker *worker = worker_of_loop(loop);

    assert(timer == &worker->outbox.retry);
    send_due(worker);
}

void worker_send(struct fb_worker *worker, enum channel_message_kind kind)
{
    assert(kind > 0 && kind < 32);
    if (worker->channel == NULL)
        return;
    worker->outbox.retry.expired = retry_expired;
    worker->outbox.unsent |= 1u << kind;
    send_due(worker);
}

void worker_send_rest(struct fb_worker *worker)
{
    timer_del(&worker->stream.net.loop, &worker->outbox.retry);
    if (worker->channel != NULL)
        send_unsent(worker, ~0u);
    worker->outbox.unsent = 0;
}
