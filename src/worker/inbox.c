/* SPDX-License-Identifier: BSD-2-Clause */
/* The inbox: a socket of packets that other workers send to. The master keeps its sending end, and
 * hands it to the workers that ask for it. A worker without a master has no inbox. */
#include "base/check.h"
#include "worker/commands.h"
#include "worker/messages_private.h"

#include <errno.h>
#include <unistd.h>

/* Messages that are received before other events have their turn. */
#define MESSAGES_A_TURN 64

void inbox_read(struct fb_worker *worker, int most)
{
    struct source *source = worker->messages->inbox;
    struct {
        struct message_head head;
        uint8_t bytes[FB_MESSAGE_MAX];
    } room;

    assert(source != NULL && source->in_use);
    for (int i = 0; i < most; i++) {
        ssize_t n = recv(source->fd, &room, sizeof(room), 0);

        if (n == -1 && errno == EINTR)
            continue;
        if (n == 0) /* no process can send to us any more, which would be reported for ever */
            source_disarm(&messages_net(worker)->loop, source, EVENT_READ);
        if (n < (ssize_t)sizeof(room.head)) { /* none is left */
            source->events[EVENT_READ].ready = false;
            break;
        }
        messages_receive(
            worker, &room.head, (fb_bytes) { room.bytes, (size_t)n - sizeof(room.head) }, NULL);
        net_flush(messages_net(worker));
    }
}

static void inbox_readable(struct loop *loop, struct source *source)
{
    struct fb_worker *worker = worker_of_loop(loop);

    CHECK_KIND(worker->messages, MESSAGES_KIND);
    assert(source == worker->messages->inbox);
    inbox_read(worker, MESSAGES_A_TURN);
    if (source->events[EVENT_READ].ready)
        loop_post(loop, &source->events[EVENT_READ], QUEUE_NEXT);
}

int inbox_open(struct fb_worker *worker)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = inbox_readable } };
    struct messages *messages = worker->messages;
    int ends[2];

    assert(messages->inbox == NULL);
    if (worker->channel == NULL)
        return 0; /* no other workers */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == -1)
        return -1;
    messages->inbox = messages_source(worker, ends[0], &ops);
    if (messages->inbox == NULL ||
        source_arm(&messages_net(worker)->loop, messages->inbox, EVENT_READ) == -1) {
        if (messages->inbox == NULL)
            close(ends[0]);
        close(ends[1]);
        return -1;
    }
    worker_send_with(worker, MESSAGE_INBOX, 0, ends[1]);
    close(ends[1]);
    return 0;
}
