/* SPDX-License-Identifier: BSD-2-Clause */
/* Places of the library's table, connections and ports behind the places, and their events. */
#define CARES_NO_DEPRECATED /* some calls have a replacement that is newer than 1.18 */
#include "names/client_sockets.h"

#include "base/check.h"
#include "event/io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* Reads of a socket in a turn; a socket with more to read goes on in the next turn. */
#define READS_A_TURN 64

static struct client_socket *socket_of(struct names_client *client, ares_socket_t handle)
{
    CHECK_KIND(client, CLIENT_KIND);
    assert(handle >= 0 && handle < CLIENT_PLACES);
    assert(client->places[handle].in_use);
    return &client->places[handle];
}

static ares_socket_t handle_of_socket(const struct client_socket *socket)
{
    return (ares_socket_t)(socket - socket->client->places);
}

/* A simulated kernel has operations of its own; any other mechanism's are for connections. NULL
 * with errno. */
static struct source *create_source(struct names_client *client, const struct source_ops *ops)
{
    struct loop *loop = client->loop;
    bool simulated = loop->mechanism->self != NULL;
    struct source *source = source_get(&loop->sources);

    if (source == NULL) {
        errno = EMFILE;
        return NULL;
    }
    source->io = simulated ? loop->mechanism->io : &io_socket;
    source->io_state = simulated ? loop->mechanism_state : NULL;
    source->level = true;
    source->ops = ops;
    source->fd = -1;
    client->socket_n++;
    return source;
}

static void close_client_source(struct names_client *client, struct source *source)
{
    assert(client->socket_n > 0);
    source_close(client->loop, source, false);
    client->socket_n--;
}

static ssize_t fail_operation(struct io_result result)
{
    errno = result.status == IO_FAILED ? result.error : EWOULDBLOCK;
    return -1;
}

static int watch_server(struct names_client *client, struct source *source, bool read, bool write)
{
    int result = source_watch_level(client->loop, source, read, write);

    if (result == -1)
        log_write(client->loop->log, LEVEL_ERROR, errno, "a server of names could not be watched");
    return result;
}

/* ---- Ports ---- */

static void close_port(struct names_client *client, struct client_port *port)
{
    TAILQ_REMOVE(&client->ports, port, link);
    if (port->asked != NULL)
        LIST_REMOVE(port, own);
    if (client->reading == port)
        client->reading = NULL;
    close_client_source(client, port->source);
    free(port);
}

static uint64_t age_of(const struct names_client *client, const struct client_port *port)
{
    return client->loop->clock.mono_ms - port->opened_ms;
}

void client_sockets_end(struct client_asked *asked)
{
    while (!LIST_EMPTY(&asked->ports))
        close_port(asked->client, LIST_FIRST(&asked->ports));
}

/* Finds the question of a datagram: a question being asked, or sent before, or, of a search list,
 * the successor of the reply just read. NULL where the library named none: the port stays until it
 * gives way, or no question is left. */
static struct client_asked *question_of(const struct names_client *client, const uint8_t id[2])
{
    const struct client_port *port;

    if (client->asking != NULL)
        return client->asking;
    TAILQ_FOREACH (port, &client->ports, link)
        if (memcmp(port->id, id, sizeof(port->id)) == 0)
            return port->asked;
    return client->reading != NULL ? client->reading->asked : NULL;
}

/* Closes the socket of the oldest question where all sockets are in use. */
static bool make_socket_room(struct names_client *client)
{
    struct client_port *oldest = TAILQ_FIRST(&client->ports);

    if (client->socket_n < client->socket_most)
        return true;
    if (oldest != NULL)
        close_port(client, oldest);
    return oldest != NULL;
}

/* Adds the credit of the elapsed time; the most is that of a question and 8 ms. */
static void add_credit(struct names_client *client)
{
    uint64_t now = client->loop->clock.mono_ms;
    uint64_t most = 8ull * client->socket_most + NAMES_CLIENT_PACE_MS;
    uint64_t ms = now - client->credit_ms;

    client->credit_ms = now;
    client->credit = ms >= NAMES_CLIENT_PACE_MS ? most : client->credit + ms * client->socket_most;
    if (client->credit > most)
        client->credit = most;
}

void client_sockets_take_credit(struct names_client *client)
{
    if (client->socket_n >= client->socket_most / 2)
        client->credit -=
            client->credit < NAMES_CLIENT_PACE_MS ? client->credit : NAMES_CLIENT_PACE_MS;
}

/* Returns the time until the credit is enough for a question. */
static uint64_t credit_ms(struct names_client *client)
{
    add_credit(client);
    if (client->socket_n < client->socket_most / 2 || client->credit >= NAMES_CLIENT_PACE_MS)
        return 0;
    return (NAMES_CLIENT_PACE_MS - client->credit) / client->socket_most + 1;
}

uint64_t names_client_room_ms(struct names_client *client, bool again)
{
    const struct client_port *oldest = TAILQ_FIRST(&client->ports);
    bool is_full = client->socket_n >= client->socket_most;

    CHECK_KIND(client, CLIENT_KIND);
    if (is_full && oldest == NULL) /* connections end when the library likes */
        return NAMES_CLIENT_PACE_MS;
    if (!again)
        return credit_ms(client);
    if (!is_full || age_of(client, oldest) >= NAMES_CLIENT_TRY_MS)
        return 0;
    return NAMES_CLIENT_TRY_MS - age_of(client, oldest);
}

/* Whether a datagram may be sent: a repetition does not wait, and counts as lost. */
static bool is_sent(struct names_client *client)
{
    if (client->asking == NULL && names_client_room_ms(client, true) > 0)
        return false;
    return make_socket_room(client);
}

static void run_port(struct loop *loop, struct source *source);

static struct client_port *open_client_port(struct client_socket *socket, const uint8_t *id)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = run_port } };
    struct names_client *client = socket->client;
    struct io_connect options = { .datagrams = true };
    struct client_port *port = malloc(sizeof(*port));
    struct io_result result;

    if (port == NULL)
        return NULL;
    *port = (struct client_port) { .ops = ops, .socket = socket, .id = { id[0], id[1] } };
    port->source = create_source(client, &port->ops);
    if (port->source == NULL) {
        free(port);
        return NULL;
    }
    port->asked = question_of(client, id);
    if (port->asked != NULL)
        LIST_INSERT_HEAD(&port->asked->ports, port, own);
    port->opened_ms = client->loop->clock.mono_ms;
    TAILQ_INSERT_TAIL(&client->ports, port, link);
    result = port->source->io->connect(
        port->source, (const struct sockaddr *)&socket->peer, socket->peer_n, &options);
    if (result.status != IO_DONE)
        fail_operation(result);
    else if (watch_server(client, port->source, true, false) == 0)
        return port;
    close_port(client, port);
    return NULL;
}

static ssize_t send_datagram(struct client_socket *socket, const struct iovec *pieces, int n)
{
    struct names_client *client = socket->client;
    struct client_port *port;
    struct io_result result;

    assert(n > 0 && pieces[0].iov_len >= sizeof(port->id));
    if (!is_sent(client))
        return (ssize_t)pieces[0].iov_len;
    port = open_client_port(socket, pieces[0].iov_base);
    if (port == NULL)
        return -1;
    result = port->source->io->send(port->source, pieces, n);
    if (result.status == IO_DONE)
        return (ssize_t)result.n;
    close_port(client, port);
    return fail_operation(result);
}

/* Receives a datagram, perhaps the reply to the port's question. */
static ssize_t receive_datagram(struct client_port *port, void *p, size_t n)
{
    for (int i = 0; i < READS_A_TURN; i++) {
        struct io_span span = { p, n };
        struct io_result result = port->source->io->recv(port->source, &span);

        port->drained = result.status != IO_DONE && result.status != IO_EOF;
        if (port->drained)
            return fail_operation(result);
        if (result.status == IO_EOF || span.n < sizeof(port->id) ||
            memcmp(span.p, port->id, sizeof(port->id)) != 0)
            continue;
        if (span.p != p)
            memcpy(p, span.p, span.n);
        return (ssize_t)span.n;
    }
    errno = EWOULDBLOCK;
    return -1;
}

/* The library may close the port, and open more. */
static void run_port(struct loop *loop, struct source *source)
{
    struct client_port *port =
        container_of((struct source_ops *)source->ops, struct client_port, ops);
    struct names_client *client = port->socket->client;

    CHECK_KIND(client, CLIENT_KIND);
    source->events[EVENT_READ].ready = false;
    port->drained = true; /* if it is not even asked */
    client->reading = port;
    ares_process_fd(client->channel, handle_of_socket(port->socket), ARES_SOCKET_BAD);
    if (client->reading == port && !port->drained && source->events[EVENT_READ].armed)
        loop_post(loop, &source->events[EVENT_READ], QUEUE_NEXT);
    client->reading = NULL;
    names_client_asked(client);
}

/* ---- Connections ---- */

/* The library may close the socket, and reopen the place. The simulated kernel gives one edge for
 * all data. */
static void run_stream_read(struct loop *loop, struct source *source)
{
    struct client_socket *socket =
        container_of((struct source_ops *)source->ops, struct client_socket, ops);
    struct names_client *client = socket->client;
    ares_socket_t handle = handle_of_socket(socket);
    uint32_t serial = socket->serial;
    int i = 0;

    CHECK_KIND(client, CLIENT_KIND);
    source->events[EVENT_READ].ready = false;
    do {
        socket->drained = true; /* if it is not even asked */
        ares_process_fd(client->channel, handle, ARES_SOCKET_BAD);
    } while (socket->source == source && socket->serial == serial && !socket->drained &&
             ++i < READS_A_TURN);
    if (i == READS_A_TURN && source->events[EVENT_READ].armed)
        loop_post(loop, &source->events[EVENT_READ], QUEUE_NEXT);
    names_client_asked(client);
}

static void run_stream_write(struct loop *loop, struct source *source)
{
    struct client_socket *socket =
        container_of((struct source_ops *)source->ops, struct client_socket, ops);
    struct names_client *client = socket->client;

    (void)loop;
    CHECK_KIND(client, CLIENT_KIND);
    source->events[EVENT_WRITE].ready = false;
    ares_process_fd(client->channel, ARES_SOCKET_BAD, handle_of_socket(socket));
    names_client_asked(client);
}

static int connect_stream(struct client_socket *socket)
{
    struct io_connect options = { .datagrams = false };
    struct io_result result = socket->source->io->connect(
        socket->source, (const struct sockaddr *)&socket->peer, socket->peer_n, &options);

    if (result.status == IO_DONE)
        return 0;
    errno = result.status == IO_FAILED ? result.error : EINPROGRESS;
    return -1;
}

static ssize_t receive_stream(struct client_socket *socket, void *p, size_t n)
{
    struct io_span span = { p, n };
    struct io_result result = socket->source->io->recv(socket->source, &span);

    socket->drained = result.status != IO_DONE;
    if (result.status == IO_EOF)
        return 0;
    if (result.status != IO_DONE)
        return fail_operation(result);
    if (span.p != p)
        memcpy(p, span.p, span.n);
    return (ssize_t)span.n;
}

/* ---- The library's calls ---- */

static ares_socket_t open_socket(int family, int type, int protocol, void *arg)
{
    static const struct source_ops ops = {
        .run = { [EVENT_READ] = run_stream_read, [EVENT_WRITE] = run_stream_write }
    };
    struct names_client *client = arg;
    struct client_socket *socket = client->places, *end = socket + CLIENT_PLACES;

    (void)family;
    (void)protocol;
    CHECK_KIND(client, CLIENT_KIND);
    while (socket < end && socket->in_use)
        socket++;
    if (socket == end || (type != SOCK_DGRAM && !make_socket_room(client))) {
        errno = EMFILE;
        return ARES_SOCKET_BAD;
    }
    socket->ops = ops;
    if (type != SOCK_DGRAM) {
        socket->source = create_source(client, &socket->ops);
        if (socket->source == NULL)
            return ARES_SOCKET_BAD;
    }
    socket->in_use = true;
    socket->client = client;
    socket->serial++;
    return handle_of_socket(socket);
}

static int close_socket(ares_socket_t handle, void *arg)
{
    struct names_client *client = arg;
    struct client_socket *socket = socket_of(client, handle);
    struct client_port *port, *next;

    TAILQ_FOREACH_SAFE (port, &client->ports, link, next)
        if (port->socket == socket)
            close_port(client, port);
    if (socket->source != NULL)
        close_client_source(client, socket->source);
    socket->source = NULL;
    socket->in_use = false;
    return 0;
}

static int connect_socket(
    ares_socket_t handle, const struct sockaddr *address, ares_socklen_t length, void *arg)
{
    struct client_socket *socket = socket_of(arg, handle);

    assert(length <= sizeof(socket->peer));
    memcpy(&socket->peer, address, length);
    socket->peer_n = length;
    return socket->source != NULL ? connect_stream(socket) : 0;
}

static ares_ssize_t receive_any(ares_socket_t handle, void *p, size_t n, int flags,
    struct sockaddr *from, ares_socklen_t *from_n, void *arg)
{
    struct names_client *client = arg;
    struct client_socket *socket = socket_of(client, handle);
    ssize_t result = -1;

    (void)flags;
    if (socket->source != NULL)
        result = receive_stream(socket, p, n);
    else if (client->reading != NULL && client->reading->socket == socket)
        result = receive_datagram(client->reading, p, n);
    else
        errno = EWOULDBLOCK;
    if (result > 0 && from != NULL && *from_n >= socket->peer_n) {
        memcpy(from, &socket->peer, socket->peer_n);
        *from_n = socket->peer_n;
    }
    return (ares_ssize_t)result;
}

static ares_ssize_t send_any(ares_socket_t handle, const struct iovec *pieces, int n, void *arg)
{
    struct client_socket *socket = socket_of(arg, handle);
    struct io_result result;

    if (socket->source == NULL)
        return (ares_ssize_t)send_datagram(socket, pieces, n);
    result = socket->source->io->send(socket->source, pieces, n);
    return result.status == IO_DONE ? (ares_ssize_t)result.n : (ares_ssize_t)fail_operation(result);
}

void client_sockets_changed(void *arg, ares_socket_t handle, int readable, int writable)
{
    struct names_client *client = arg;
    struct source *source = socket_of(client, handle)->source;

    if (source != NULL && source->fd != -1)
        watch_server(client, source, readable != 0, writable != 0);
}

/* ---- The library's time-outs ---- */

static void library_timer_expired(struct loop *loop, struct timer *timer)
{
    struct names_client *client = container_of(timer, struct names_client, timer);

    (void)loop;
    CHECK_KIND(client, CLIENT_KIND);
    ares_process_fd(client->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    names_client_asked(client);
}

/* A timer set at most NAMES_CLIENT_TRY_MS ahead is early enough for any question. The library is
 * not asked each time, because its search goes through all questions. */
void names_client_asked(struct names_client *client)
{
    uint64_t latest = client->loop->clock.mono_ms + NAMES_CLIENT_TRY_MS + 1;
    struct timeval room, *left;

    CHECK_KIND(client, CLIENT_KIND);
    if (timer_is_set(&client->timer) && client->timer.deadline <= latest)
        return;
    left = ares_timeout(client->channel, NULL, &room);
    if (left == NULL)
        timer_del(client->loop, &client->timer);
    else
        timer_set(client->loop, &client->timer,
            (uint64_t)left->tv_sec * 1000 + (uint64_t)left->tv_usec / 1000 + 1);
}

void client_sockets_init(struct names_client *client)
{
    static const struct ares_socket_functions functions = {
        .asocket = open_socket,
        .aclose = close_socket,
        .aconnect = connect_socket,
        .arecvfrom = receive_any,
        .asendv = send_any,
    };

    TAILQ_INIT(&client->ports);
    client->timer.expired = library_timer_expired;
    ares_set_socket_functions(client->channel, &functions, client);
}

void client_sockets_done(struct names_client *client)
{
    assert(client->socket_n == 0);
    timer_del(client->loop, &client->timer);
}
