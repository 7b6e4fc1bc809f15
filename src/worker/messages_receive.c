/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives messages: finds the connection or the protocol that each is for, and answers it. What
 * another worker has sent is input: it may name anything. A reference reaches connections of the
 * sender's own protocol, and of those that take messages of others. */
#include "session/use.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>

/* For so long messages to connections are not taken, after too many guesses. */
#define DEAF_MS 1000

static uint64_t call_conn(struct fb_conn *conn, fb_ref from, fb_bytes bytes)
{
    const fb_ops *ops = session_ops_of(conn);
    int result;

    if (conn->pipe != NULL || !SESSION_HAS(ops, message))
        return FB_MESSAGE_DECLINED;
    session_callback_begin(conn, CALLBACK_MESSAGE);
    result = ops->message(conn, conn->state, from, bytes);
    session_callback_end(conn);
    return result == 0 ? FB_MESSAGE_HANDLED : FB_MESSAGE_DECLINED;
}

static bool takes_from(const struct fb_conn *conn, const struct worker *worker, uint64_t mark)
{
    const struct server *server = session_server_of(conn);

    return worker->protocols[server->protocol_index].mark == mark ||
           (server->protocol->flags & FB_TAKES_FOREIGN) != 0;
}

/* Gives a message to a connection; the outcome. */
static uint64_t give_to_conn(struct worker *worker, const struct message_head *head, fb_bytes bytes)
{
    uint64_t now = messages_net(worker)->loop.clock.mono_ms;
    struct fb_conn *conn;

    if (now < worker->messages->deaf_until)
        return FB_MESSAGE_BUSY;
    conn = references_find(worker, head->to);
    if (conn != NULL && conn_is_active(conn) && takes_from(conn, worker, head->protocol))
        return call_conn(conn, head->from, bytes);
    if (conn != NULL || !references_is_guess(worker, head->to))
        return FB_MESSAGE_UNKNOWN;
    if (!references_note_guess(worker))
        worker->messages->deaf_until = now + DEAF_MS;
    return MESSAGE_IS_GUESS;
}

/* Gives a message to this worker's part of the sender's protocol; the outcome. */
static uint64_t give_to_worker(
    struct worker *worker, const struct message_head *head, fb_bytes bytes)
{
    struct heartbeat *heartbeat = messages_net(worker)->heartbeat;
    struct fb_worker *own = worker_protocol_of_mark(worker, head->protocol);
    int result;

    if (head->to != references_own_worker(worker) || own == NULL)
        return FB_MESSAGE_UNKNOWN;
    if (!WORKER_HAS(own, message))
        return FB_MESSAGE_DECLINED;
    heartbeat_begin(heartbeat, CALLBACK_WORKER_MESSAGE, own->index);
    result = own->protocol->worker_ops->message(own, own->state, head->from, bytes);
    worker_check_fork(worker);
    heartbeat_end(heartbeat);
    return result == 0 ? FB_MESSAGE_HANDLED : FB_MESSAGE_DECLINED;
}

/* Makes a reply of a queued message, and sends it. */
static void send_reply(struct worker *worker, struct queued_message *reply,
    const struct message_head *head, uint64_t outcome)
{
    assert(reply->shared == NULL); /* the local queue has none */
    reply->head = (struct message_head) {
        .number = head->number, .from = head->to, .to = head->from, .outcome = outcome
    };
    reply->p = reply->own;
    reply->n = 0;
    messages_queue(worker, reply);
}

bool messages_receive(struct worker *worker, const struct message_head *head, fb_bytes bytes,
    struct queued_message *own)
{
    struct message_head answered = *head; /* which may be the head of `own` */
    uint64_t outcome;

    assert(own != NULL);
    if (head->outcome == MESSAGE_IS_GREETING) {
        messages_greeted(worker, head->from, bytes);
        return false;
    }
    if (head->outcome != MESSAGE_IS_SENT) {
        messages_answered(worker, head);
        return false;
    }
    outcome = references_is_worker(head->to) ? give_to_worker(worker, head, bytes)
                                             : give_to_conn(worker, head, bytes);
    send_reply(worker, own, &answered, outcome);
    return true;
}
