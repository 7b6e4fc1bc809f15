/* SPDX-License-Identifier: BSD-2-Clause */
/* A link to a keeper, over a socket of packets. Requests leave at once, or, behind a full socket or
 * without a keeper, later: as many as there are handshakes, because a handshake has one request
 * without a reply. A keeper that breaks a rule, or goes, ends the handshakes under way; what the
 * keeper has said is checked before anything of it is used. */
#include "tls/link_keeper.h"

#include "tls/link_private.h"

#include <assert.h>
#include <bsd/sys/queue.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The time until a keeper is asked for again that could not be connected. */
#define AGAIN_MS 1000

/* Parts received in a turn; the rest is reported again. */
#define PARTS_A_TURN 32

/* A request that has not left. */
struct unsent_request {
    STAILQ_ENTRY(unsent_request) link;
    uint32_t number;
    size_t n;
    uint8_t bytes[];
};

struct keeper_link {
    struct tls_link base; /* the first member */
    void (*lost)(struct loop *loop);
    struct timer again; /* set while a keeper that could not be connected is missing */
    STAILQ_HEAD(, unsent_request) unsent;
    unsigned unsent_n;
    uint32_t gathered; /* the number of the reply that `flight` has parts of; 0: none */
    size_t flight_n;
    uint8_t request[TLS_REQUEST_MOST];
    uint8_t part[TLS_PART_SIZE_MOST + 1]; /* a longer packet fills it */
    uint8_t flight[TLS_FLIGHT_MOST];
};

/* Cancels come on top of begins: at most one for each handshake that the keeper knows. */
#define UNSENT_MOST (2 * TLS_HANDSHAKES_MOST)

static struct keeper_link *keeper_of(struct tls_link *link)
{
    return container_of(link, struct keeper_link, base);
}

/* ---- The socket ---- */

static void drop_unsent(struct keeper_link *keeper)
{
    struct unsent_request *request;

    while ((request = STAILQ_FIRST(&keeper->unsent)) != NULL) {
        STAILQ_REMOVE_HEAD(&keeper->unsent, link);
        free(request);
    }
    keeper->unsent_n = 0;
}

/* Closes the socket and ends all handshakes, from the loop. */
static void leave_keeper(struct keeper_link *keeper, const char *text)
{
    struct tls_link *link = &keeper->base;

    if (link->source != NULL)
        source_close(link->loop, link->source, false);
    link->source = NULL;
    link->broken = false;
    keeper->gathered = 0;
    keeper->flight_n = 0;
    drop_unsent(keeper);
    tls_link_fail_all(link, text);
}

static void lose_keeper(struct keeper_link *keeper, const char *text)
{
    leave_keeper(keeper, text);
    if (keeper->lost != NULL)
        keeper->lost(keeper->base.loop);
}

static void watch_keeper(struct tls_link *link, bool write)
{
    if (source_watch_level(link->loop, link->source, true, write) == -1)
        tls_link_break(link);
}

/* Sends a packet; 0: sent, or the keeper has gone, which is heard of by receiving; -1: full. */
static int send_to_keeper(struct tls_link *link, const uint8_t *p, size_t n)
{
    ssize_t sent;

    do
        sent = send(link->source->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent == -1 && errno == EINTR);
    if (sent != -1 || errno == EPIPE || errno == ECONNRESET)
        return 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM)
        return -1;
    log_write(link->loop->log, LEVEL_ALERT, errno, "send() to the keeper process failed");
    tls_link_break(link);
    return 0;
}

static void queue_request(struct keeper_link *keeper, uint32_t number, size_t n)
{
    struct unsent_request *unsent =
        keeper->unsent_n < UNSENT_MOST ? malloc(sizeof(*unsent) + n) : NULL;

    if (unsent == NULL) {
        tls_link_break(&keeper->base);
        return;
    }
    unsent->number = number;
    unsent->n = n;
    memcpy(unsent->bytes, keeper->request, n);
    STAILQ_INSERT_TAIL(&keeper->unsent, unsent, link);
    if (keeper->unsent_n++ == 0 && keeper->base.source != NULL)
        watch_keeper(&keeper->base, true);
}

static void send_request(struct keeper_link *keeper, const struct tls_request *request)
{
    size_t n = tls_message_write_request(request, keeper->request);

    if (keeper->base.source == NULL || keeper->unsent_n > 0 ||
        send_to_keeper(&keeper->base, keeper->request, n) == -1)
        queue_request(keeper, request->number, n);
}

static void feed_keeper(struct tls_link *link, const struct tls_request *request)
{
    send_request(keeper_of(link), request);
}

/* Tickets do not wait for a full socket: their number is a server's choice. */
static bool ticket_keeper(struct tls_link *link, const struct tls_request *request)
{
    struct keeper_link *keeper = keeper_of(link);
    size_t n;

    if (link->source == NULL || keeper->unsent_n > 0)
        return false;
    n = tls_message_write_request(request, keeper->request);
    return send_to_keeper(link, keeper->request, n) == 0;
}

/* Takes a handshake's unsent requests out of the queue. Whether the keeper knows the number. */
static bool unqueue_requests(struct keeper_link *keeper, uint32_t number)
{
    struct unsent_request *request, *next;
    bool is_known = true;

    STAILQ_FOREACH_SAFE (request, &keeper->unsent, link, next) {
        struct tls_request unsent;

        if (request->number != number)
            continue;
        if (tls_message_read_request(&unsent, request->bytes, request->n) == 0)
            is_known = is_known && unsent.kind != TLS_BEGIN;
        STAILQ_REMOVE(&keeper->unsent, request, unsent_request, link);
        keeper->unsent_n--;
        free(request);
    }
    return is_known;
}

static void cancel_keeper(struct tls_link *link, uint32_t number)
{
    struct keeper_link *keeper = keeper_of(link);

    if (unqueue_requests(keeper, number) && link->source != NULL)
        send_request(keeper, &(struct tls_request) { .kind = TLS_CANCEL, .number = number });
}

static void run_keeper_write(struct loop *loop, struct source *source)
{
    struct tls_link *link = tls_link_of(source);
    struct keeper_link *keeper = keeper_of(link);
    struct unsent_request *request;

    (void)loop;
    while (!link->broken && (request = STAILQ_FIRST(&keeper->unsent)) != NULL) {
        if (send_to_keeper(link, request->bytes, request->n) == -1)
            return;
        STAILQ_REMOVE_HEAD(&keeper->unsent, link);
        keeper->unsent_n--;
        free(request);
    }
    if (!link->broken)
        watch_keeper(link, false);
}

/* ---- Replies ---- */

/* Adds bytes to the flight of a reply in parts. Returns the broken rule, or NULL. */
static const char *gather_part(struct keeper_link *keeper, const struct tls_part *part)
{
    if (keeper->gathered != 0 && keeper->gathered != part->number)
        return "parts of two replies";
    if (part->out.n > TLS_FLIGHT_MOST - keeper->flight_n)
        return "a reply that is too long";
    if (part->more || keeper->gathered != 0) {
        memcpy(keeper->flight + keeper->flight_n, part->out.p, part->out.n);
        keeper->flight_n += part->out.n;
    }
    keeper->gathered = part->more ? part->number : 0;
    return NULL;
}

/* Gives a whole reply to its owner. Returns the broken rule, or NULL. */
static const char *deliver_reply(struct keeper_link *keeper, struct tls_part *part)
{
    struct link_place *place = tls_link_find(&keeper->base, part->number);
    struct tls_reply reply = { .used = part->used, .session = part->session };

    if (place == NULL) /* late */
        return NULL;
    if (place->phase != LINK_WAITING)
        return "a reply without a request";
    if (part->used > place->given || (part->step == TLS_MORE && part->used < place->given))
        return "more or fewer bytes taken than were given";
    if (part->session.awaits_tickets != 0 && place->start.role != TLS_CLIENT)
        return "tickets for a server";
    reply.out = keeper->flight_n > 0 ? keeper->flight : (uint8_t *)part->out.p;
    reply.out_n = keeper->flight_n > 0 ? keeper->flight_n : part->out.n;
    reply.out_most = reply.out_n;
    reply.peer = (uint8_t *)part->peer.p;
    reply.peer_n = part->peer.n;
    reply.facts = (uint8_t *)part->facts.p;
    reply.facts_n = part->facts.n;
    reply.severe = part->severe;
    memcpy(reply.text, part->text, sizeof(reply.text));
    tls_link_reply(&keeper->base, place, part->step, &reply);
    explicit_bzero(&reply.session, sizeof(reply.session));
    return NULL;
}

/* Takes a packet. Returns the broken rule, or NULL. */
static const char *take_part(struct keeper_link *keeper, size_t n)
{
    struct tls_part part;
    const char *rule;

    if (tls_message_read_part(&part, keeper->part, n) == -1)
        return "a malformed message";
    rule = gather_part(keeper, &part);
    if (rule == NULL && !part.more) {
        rule = deliver_reply(keeper, &part);
        keeper->flight_n = 0;
    }
    explicit_bzero(&part.session, sizeof(part.session));
    return rule;
}

/* Receives a packet; 0: none is there, -1: the keeper has gone. */
static ssize_t receive_part(struct keeper_link *keeper)
{
    ssize_t n;

    do /* a close with unread requests is reported before the last parts */
        n = recv(keeper->base.source->fd, keeper->part, sizeof(keeper->part), MSG_DONTWAIT);
    while (n == -1 && (errno == EINTR || errno == ECONNRESET));
    if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    return n > 0 ? n : -1;
}

static void run_keeper_read(struct loop *loop, struct source *source)
{
    struct tls_link *link = tls_link_of(source);
    struct keeper_link *keeper = keeper_of(link);

    if (!link->broken)
        tls_link_shed(link);
    for (unsigned i = 0; i < PARTS_A_TURN && !link->broken; i++) {
        ssize_t n = receive_part(keeper);
        const char *rule = n > 0 ? take_part(keeper, (size_t)n) : NULL;

        if (n > 0)
            explicit_bzero(keeper->part, (size_t)n);
        if (rule != NULL) {
            log_write(loop->log, LEVEL_ALERT, 0,
                "the keeper process has broken a rule of its link (%s)", rule);
            lose_keeper(keeper, "the keeper process has broken a rule");
            return;
        }
        if (n == -1) {
            lose_keeper(keeper, "the keeper process has gone");
            return;
        }
        if (n == 0 || link->waiting == 0) /* further packets are reported again */
            return;
    }
    if (link->broken)
        lose_keeper(keeper, "the link to the keeper process has failed");
}

/* ---- Beginning and end ---- */

/* Takes an accepted descriptor only if it is a socket of packets. */
static bool is_packet_socket(int fd)
{
    int type = 0;
    socklen_t length = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}

static void keeper_again_expired(struct loop *loop, struct timer *timer)
{
    struct keeper_link *keeper = container_of(timer, struct keeper_link, again);

    if (keeper->lost != NULL)
        keeper->lost(loop);
}

static void connect_keeper(struct tls_link *link, int fd)
{
    struct keeper_link *keeper = keeper_of(link);
    struct source *source;

    if (link->source != NULL || link->broken)
        leave_keeper(keeper, "the keeper process was replaced");
    source = is_packet_socket(fd) ? source_get(&link->loop->sources) : NULL;
    if (source == NULL) {
        log_write(link->loop->log, LEVEL_ALERT, 0, "the keeper process cannot be reached");
        close(fd);
        timer_set(link->loop, &keeper->again, AGAIN_MS);
        return;
    }
    timer_del(link->loop, &keeper->again);
    source->fd = fd;
    source->io = &io_socket;
    source->ops = &link->source_ops;
    source->level = true;
    link->source = source;
    watch_keeper(link, keeper->unsent_n > 0);
}

static void destroy_keeper_link(struct tls_link *link)
{
    struct keeper_link *keeper = keeper_of(link);

    leave_keeper(keeper, "");
    timer_del(link->loop, &keeper->again);
    free(keeper);
}

struct tls_link *tls_link_create(struct loop *loop, void (*lost)(struct loop *loop))
{
    static const struct tls_link_ops link_ops = {
        .feed = feed_keeper,
        .ticket = ticket_keeper,
        .cancel = cancel_keeper,
        .connect = connect_keeper,
        .destroy = destroy_keeper_link,
    };
    struct keeper_link *keeper = calloc(1, sizeof(*keeper));

    if (keeper == NULL)
        return NULL;
    STAILQ_INIT(&keeper->unsent);
    keeper->lost = lost;
    keeper->again.expired = keeper_again_expired;
    tls_link_init(&keeper->base, loop, &link_ops);
    keeper->base.source_ops.run[EVENT_READ] = run_keeper_read;
    keeper->base.source_ops.run[EVENT_WRITE] = run_keeper_write;
    return &keeper->base;
}
