/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between connections, of one worker or two.
 *
 * A connection's reference is the life of its worker's slot and a number that the worker gives once.
 * A worker with such connections has an inbox: a socket of packets, whose sending end the master hands
 * to whoever wants to send to that life. It says also when the life has ended: what was sent there
 * and not answered is then answered with "unknown". So nothing is there until it is used. */
#include "worker/mail_private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define NAME_BITS (64 - FB_LIFE_BITS)
#define UNANSWERED_MAX 1024
/* Letters that wait for a worker which does not read them. */
#define FLOOD 4096
#define RETRY_MS 5
/* Letters that are read before others have their turn, and before what they may say is not waited for. */
#define LETTERS_A_TURN 64
#define ANSWERS_MAX 4096

static uint32_t life_of(fb_ref ref)
{
    return (uint32_t)(ref >> NAME_BITS);
}

static uint32_t own_life(const struct fb_worker *worker)
{
    return fb_slot_life(worker->heritage->slot);
}

static int compare(const struct pending *a, const struct pending *b)
{
    return (a->number > b->number) - (a->number < b->number);
}

RB_GENERATE_INTERNAL(pendings, pending, node, compare, static __attribute__((unused)))

static struct fb_net *net_of(struct fb_worker *worker)
{
    return &worker->stream.net;
}

static struct letter *write_letter(
    struct fb_worker *worker, const struct letter_head *head, const void *p, size_t n)
{
    struct letter *letter = fb_memory_alloc(net_of(worker)->memory, sizeof(*letter) + n);

    if (letter == NULL)
        return NULL;
    letter->n = n;
    letter->head = *head;
    if (n > 0)
        memcpy(letter->bytes, p, n);
    return letter;
}

static void burn(struct fb_worker *worker, struct letters *letters)
{
    struct letter *letter;

    while ((letter = STAILQ_FIRST(letters)) != NULL) {
        STAILQ_REMOVE_HEAD(letters, link);
        fb_memory_release(net_of(worker)->memory, letter);
    }
}

/* Runs on the loop, not within whoever has called us. */
static void take_along(struct fb_worker *worker, struct letter *letter)
{
    struct fb_mail *mail = worker->mail;

    STAILQ_INSERT_TAIL(&mail->own, letter, link);
    fb_loop_post(&net_of(worker)->loop, &mail->carrier->events[FB_READ], FB_QUEUE_NEXT);
}

/* Other workers */

static struct peer *find_peer(struct fb_mail *mail, uint32_t life)
{
    struct peer *peer;

    LIST_FOREACH (peer, &mail->peers, link)
        if (peer->life == life)
            return peer;
    return NULL;
}

static struct peer *meet(struct fb_worker *worker, uint32_t life)
{
    struct peer *peer = find_peer(worker->mail, life);

    if (peer != NULL)
        return peer;
    peer = fb_memory_alloc(net_of(worker)->memory, sizeof(*peer));
    if (peer == NULL)
        return NULL;
    *peer = (struct peer) { .life = life, .fd = -1 };
    STAILQ_INIT(&peer->letters);
    LIST_INSERT_HEAD(&worker->mail->peers, peer, link);
    fb_worker_tell_with(worker, FB_MESSAGE_WANT, life, -1);
    return peer;
}

static void leave(struct fb_worker *worker, struct peer *peer)
{
    burn(worker, &peer->letters);
    if (peer->fd != -1)
        close(peer->fd);
    LIST_REMOVE(peer, link);
    fb_memory_release(net_of(worker)->memory, peer);
}

/* Sends what it takes; false when it has gone. */
static bool deliver(struct fb_worker *worker, struct peer *peer)
{
    struct letter *letter;

    while (peer->fd != -1 && (letter = STAILQ_FIRST(&peer->letters)) != NULL) {
        struct iovec pieces[] = { { &letter->head, sizeof(letter->head) },
            { letter->bytes, letter->n } };
        struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 2 };

        if (sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == -1) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM)
                return false;
            fb_timer_set(&net_of(worker)->loop, &worker->mail->retry, RETRY_MS);
            return true;
        }
        STAILQ_REMOVE_HEAD(&peer->letters, link);
        peer->letter_n--;
        fb_memory_release(net_of(worker)->memory, letter);
    }
    return true;
}

static void retry_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    struct fb_worker *worker = fb_loop_worker(loop);
    struct peer *peer, *next;

    (void)timer;
    LIST_FOREACH_SAFE (peer, &worker->mail->peers, link, next)
        if (!deliver(worker, peer))
            fb_mail_gone(worker, peer->life);
}

/* Answers by ourselves, when nobody else will. */
static void answer_self(struct fb_worker *worker, struct pending *pending, fb_outcome outcome)
{
    worker->mail->known_n += pending->outcome == 0;
    pending->outcome = outcome;
    fb_loop_post(&net_of(worker)->loop, &worker->mail->carrier->events[FB_READ], FB_QUEUE_NEXT);
}

void fb_mail_gone(struct fb_worker *worker, uint32_t life)
{
    struct fb_mail *mail = worker->mail;
    struct peer *peer = mail != NULL ? find_peer(mail, life) : NULL;
    struct pending *pending;

    if (peer == NULL)
        return;
    leave(worker, peer);
    RB_FOREACH (pending, pendings, &mail->pending)
        if (pending->life == life && pending->outcome == 0)
            answer_self(worker, pending, FB_MESSAGE_UNKNOWN);
}

void fb_mail_alone(struct fb_worker *worker)
{
    struct peer *peer, *next;

    if (worker->mail == NULL)
        return;
    LIST_FOREACH_SAFE (peer, &worker->mail->peers, link, next)
        if (peer->fd == -1)
            fb_mail_gone(worker, peer->life);
}

void fb_mail_peer(struct fb_worker *worker, struct fb_message *message)
{
    struct peer *peer = worker->mail != NULL ? find_peer(worker->mail, message->argument) : NULL;

    if (peer == NULL || peer->fd != -1)
        return;
    peer->fd = message->fd; /* -1: there was no room for it among our descriptors */
    message->fd = -1;
    if (peer->fd == -1 || !deliver(worker, peer))
        fb_mail_gone(worker, message->argument);
}

/* Hands a letter on; false: the receiver is flooded, or there is no memory, and it is burnt. */
static bool post(struct fb_worker *worker, struct letter *letter)
{
    uint32_t life = life_of(letter->head.to);
    struct peer *peer;

    if (life == own_life(worker)) {
        take_along(worker, letter);
        return true;
    }
    peer = meet(worker, life);
    if (peer == NULL || (peer->letter_n >= FLOOD && letter->head.outcome == 0)) {
        fb_memory_release(net_of(worker)->memory, letter);
        return false;
    }
    STAILQ_INSERT_TAIL(&peer->letters, letter, link);
    peer->letter_n++;
    if (!deliver(worker, peer) || (peer->fd == -1 && worker->channel == NULL))
        fb_mail_gone(worker, life);
    return true;
}

/* What arrives */

static bool takes_messages(const struct fb_conn *conn)
{
    return conn != NULL && conn_is_active(conn);
}

/* Whether its protocol has handled it. */
static bool hand_over(struct fb_conn *conn, fb_ref from, fb_bytes bytes)
{
    const fb_ops *ops = fb_ops_of(conn);
    int result;

    if (conn->pipe != NULL || !FB_HAS(ops, message))
        return false;
    fb_callback_begin(conn, FB_CALLBACK_MESSAGE);
    result = ops->message(conn, conn->state, from, bytes);
    fb_callback_end(conn);
    return result == 0;
}

/* `own`: the letter that it came in, if we have that: then it is sent back with the answer, for which
 * there is always memory so; says whether it was. */
static bool receive_message(
    struct fb_worker *worker, const struct letter_head *in, fb_bytes bytes, struct letter *own)
{
    struct fb_conn *conn = fb_mail_find(worker, in->to);
    struct letter_head answer = {
        .number = in->number, .from = in->to, .to = in->from, .outcome = FB_MESSAGE_UNKNOWN
    };
    struct letter *letter;

    if (takes_messages(conn))
        answer.outcome =
            hand_over(conn, in->from, bytes) ? FB_MESSAGE_HANDLED : FB_MESSAGE_DECLINED;
    letter = own != NULL ? own : write_letter(worker, &answer, NULL, 0);
    if (letter == NULL) {
        fb_log(&worker->log, FB_CRIT, errno, "no memory to answer a message");
        return false;
    }
    letter->head = answer;
    letter->n = 0;
    post(worker, letter);
    return own != NULL;
}

static void tell_sender(struct fb_worker *worker, struct pending *pending, fb_outcome outcome)
{
    struct fb_mail *mail = worker->mail;
    struct fb_conn *conn = fb_mail_find(worker, pending->from);
    uint64_t number = pending->number;

    RB_REMOVE(pendings, &mail->pending, pending);
    mail->known_n -= pending->outcome != 0;
    fb_memory_release(net_of(worker)->memory, pending);
    if (conn == NULL)
        return;
    fb_side_of(conn)->unanswered--;
    if (!takes_messages(conn) || conn->pipe != NULL || !FB_HAS(fb_ops_of(conn), answered))
        return;
    fb_callback_begin(conn, FB_CALLBACK_ANSWERED);
    fb_ops_of(conn)->answered(conn, conn->state, number, outcome);
    fb_callback_end(conn);
}

/* As above. */
static bool receive(
    struct fb_worker *worker, const struct letter_head *in, fb_bytes bytes, struct letter *own)
{
    struct pending key = { .number = in->number }, *pending;

    if (in->outcome == 0)
        return receive_message(worker, in, bytes, own);
    /* it is believed rather than we, who think that the receiver has gone */
    pending = RB_FIND(pendings, &worker->mail->pending, &key);
    if (pending != NULL && pending->from == in->to)
        tell_sender(worker, pending, (fb_outcome)in->outcome);
    return false;
}

static void read_inbox(struct fb_worker *worker, int most)
{
    struct fb_source *source = worker->mail->inbox;
    struct {
        struct letter_head head;
        uint8_t bytes[FB_MESSAGE_MAX];
    } room;

    for (int i = 0; i < most; i++) {
        ssize_t n = recv(source->fd, &room, sizeof(room), 0);

        if (n == -1 && errno == EINTR)
            continue;
        if (n == 0) /* nobody can send to us any more, which would be told again and again */
            fb_source_disarm(&net_of(worker)->loop, source, FB_READ);
        if (n < (ssize_t)sizeof(room.head)) { /* none is left */
            source->events[FB_READ].ready = false;
            break;
        }
        receive(worker, &room.head, (fb_bytes) { room.bytes, (size_t)n - sizeof(room.head) }, NULL);
        fb_net_settle(net_of(worker));
    }
}

static void inbox_readable(struct fb_loop *loop, struct fb_source *source)
{
    read_inbox(fb_loop_worker(loop), LETTERS_A_TURN);
    if (source->events[FB_READ].ready)
        fb_loop_post(loop, &source->events[FB_READ], FB_QUEUE_NEXT);
}

/* Tells what we answer ourselves; but not of messages that are sent meanwhile, of which there may be
 * no end. */
static void tell_known(struct fb_worker *worker)
{
    struct fb_mail *mail = worker->mail;
    struct pending key = { .number = 0 }, *pending;
    uint64_t last = mail->last_number;

    while (mail->known_n > 0 && (pending = RB_NFIND(pendings, &mail->pending, &key)) != NULL &&
           pending->number <= last) {
        key.number = pending->number + 1;
        if (pending->outcome == 0)
            continue;
        tell_sender(worker, pending, pending->outcome);
        fb_net_settle(net_of(worker));
    }
}

static void carry(struct fb_loop *loop, struct fb_source *source)
{
    struct fb_worker *worker = fb_loop_worker(loop);
    struct letters letters = STAILQ_HEAD_INITIALIZER(letters);
    struct letter *letter;

    (void)source;
    STAILQ_CONCAT(&letters, &worker->mail->own);
    while ((letter = STAILQ_FIRST(&letters)) != NULL) {
        STAILQ_REMOVE_HEAD(&letters, link);
        if (!receive(worker, &letter->head, (fb_bytes) { letter->bytes, letter->n }, letter))
            fb_memory_release(net_of(worker)->memory, letter);
        fb_net_settle(net_of(worker));
    }
    if (worker->mail->known_n > 0 && worker->mail->inbox != NULL)
        read_inbox(worker, ANSWERS_MAX); /* who has gone may have answered before */
    tell_known(worker);
}

/* The mail room, made when the first connection is named */

static struct fb_source *add_source(
    struct fb_worker *worker, int fd, const struct fb_source_ops *ops)
{
    struct fb_source *source = fb_source_get(&net_of(worker)->loop.sources);

    if (source == NULL)
        return NULL;
    source->fd = fd;
    source->ops = ops;
    source->io = &fb_io_socket;
    return source;
}

static int open_inbox(struct fb_worker *worker)
{
    static const struct fb_source_ops ops = { .run = { [FB_READ] = inbox_readable } };
    struct fb_mail *mail = worker->mail;
    int ends[2];

    if (worker->channel == NULL)
        return 0; /* there are no others */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == -1)
        return -1;
    mail->inbox = add_source(worker, ends[0], &ops);
    if (mail->inbox == NULL || fb_source_arm(&net_of(worker)->loop, mail->inbox, FB_READ) == -1) {
        if (mail->inbox == NULL)
            close(ends[0]);
        close(ends[1]);
        return -1;
    }
    fb_worker_tell_with(worker, FB_MESSAGE_INBOX, 0, ends[1]);
    close(ends[1]);
    return 0;
}

static bool open_mail(struct fb_worker *worker)
{
    static const struct fb_source_ops ops = { .run = { [FB_READ] = carry } };

    if (worker->mail != NULL)
        return true;
    worker->mail = fb_memory_alloc(net_of(worker)->memory, sizeof(*worker->mail));
    if (worker->mail == NULL)
        return false;
    *worker->mail = (struct fb_mail) { .retry.expired = retry_expired };
    STAILQ_INIT(&worker->mail->own);
    LIST_INIT(&worker->mail->peers);
    RB_INIT(&worker->mail->pending);
    worker->mail->carrier = add_source(worker, -1, &ops);
    if (worker->mail->carrier != NULL && open_inbox(worker) == 0)
        return true;
    fb_log(&worker->log, FB_CRIT, errno, "messages to connections cannot be received");
    fb_mail_done(worker);
    return false;
}

void fb_mail_done(struct fb_worker *worker)
{
    struct fb_mail *mail = worker->mail;
    struct fb_loop *loop = &net_of(worker)->loop;
    struct pending *pending;

    if (mail == NULL)
        return;
    while (!LIST_EMPTY(&mail->peers))
        leave(worker, LIST_FIRST(&mail->peers));
    while ((pending = RB_MIN(pendings, &mail->pending)) != NULL) {
        RB_REMOVE(pendings, &mail->pending, pending);
        fb_memory_release(net_of(worker)->memory, pending);
    }
    burn(worker, &mail->own);
    fb_timer_del(loop, &mail->retry);
    if (mail->carrier != NULL)
        fb_source_close(loop, mail->carrier, false);
    if (mail->inbox != NULL)
        fb_source_close(loop, mail->inbox, false);
    fb_memory_release(net_of(worker)->memory, mail);
    worker->mail = NULL;
}

fb_ref fb_mail_ref(struct fb_worker *worker, struct fb_conn *conn)
{
    uint64_t name = open_mail(worker) ? fb_session_name(conn) : 0;

    assert(name >> NAME_BITS == 0);
    return name == 0 ? 0 : (fb_ref)own_life(worker) << NAME_BITS | name;
}

struct fb_conn *fb_mail_find(struct fb_worker *worker, fb_ref ref)
{
    if (life_of(ref) != own_life(worker))
        return NULL;
    return fb_session_find(&worker->stream, ref & ((UINT64_C(1) << NAME_BITS) - 1));
}

uint64_t fb_mail_send(
    struct fb_worker *worker, struct fb_conn *from, fb_ref to, const void *p, size_t n)
{
    struct letter_head head = { .from = fb_mail_ref(worker, from), .to = to };
    struct fb_side *side = fb_side_of(from);
    struct pending *pending;
    struct letter *letter;

    if (head.from == 0 || n > FB_MESSAGE_MAX || side->unanswered >= UNANSWERED_MAX)
        return 0;
    head.number = ++worker->mail->last_number;
    letter = write_letter(worker, &head, p, n);
    pending = fb_memory_alloc(net_of(worker)->memory, sizeof(*pending));
    if (letter == NULL || pending == NULL) {
        fb_memory_release(net_of(worker)->memory, letter);
        fb_memory_release(net_of(worker)->memory, pending);
        return 0;
    }
    *pending = (struct pending) { .number = head.number, .from = head.from, .life = life_of(to) };
    RB_INSERT(pendings, &worker->mail->pending, pending);
    side->unanswered++;
    if (!post(worker, letter))
        answer_self(worker, pending, FB_MESSAGE_DECLINED);
    return head.number;
}
