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

static void run_port_read(struct loop *loop, struct source *source);
static void run_port_write(struct loop *loop, struct source *source);

static bool is_stream(const struct client_port *port)
{
    return port->socket->stream == port;
}

/* A simulated kernel has its own operations, other mechanisms a socket's. NULL with errno. */
static struct client_port *create_port(struct client_socket *socket)
{
    struct loop *loop = socket->client->loop;
    bool simulated = loop->mechanism->self != NULL;
    struct client_port *port = malloc(sizeof(*port));
    struct source *source = port != NULL ? source_get(&loop->sources) : NULL;

    if (source == NULL) {
        free(port);
        errno = EMFILE;
        return NULL;
    }
    *port = (struct client_port) {
        .ops.run = { [EVENT_READ] = run_port_read, [EVENT_WRITE] = run_port_write },
        .socket = socket,
        .source = source,
    };
    source->io = simulated ? loop->mechanism->io : &io_socket;
    source->io_state = simulated ? loop->mechanism_state : NULL;
    source->level = true;
    source->ops = &port->ops;
    source->fd = -1;
    socket->client->socket_n++;
    return port;
}

static void close_port(struct client_port *port)
{
    struct names_client *client = port->socket->client;

    assert(client->socket_n > 0);
    if (is_stream(port))
        port->socket->stream = NULL;
    else
        TAILQ_REMOVE(&client->ports, port, link);
    if (port->asked != NULL)
        LIST_REMOVE(port, own);
    if (client->reading == port)
        client->reading = NULL;
    source_close(client->loop, port->source, false);
    client->socket_n--;
    free(port);
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

static uint64_t age_of(const struct names_client *client, const struct client_port *port)
{
    return client->loop->clock.mono_ms - port->opened_ms;
}

void client_sockets_end(struct client_asked *asked)
{
    while (!LIST_EMPTY(&asked->ports))
        close_port(LIST_FIRST(&asked->ports));
}

/* Finds the question of a datagram: being asked, or sent before, or, of a search list, the
 * successor of the reply just read. NULL: unknown, the port stays until it gives way. */
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
        close_port(oldest);
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

static int connect_port(struct client_port *port, bool datagrams)
{
    struct io_connect options = { .datagrams = datagrams };
    struct io_result result = port->source->io->connect(
        port->source, (const struct sockaddr *)&port->socket->peer, port->socket->peer_n, &options);

    if (result.status == IO_DONE)
        return 0;
    errno = result.status == IO_FAILED ? result.error : datagrams ? EWOULDBLOCK : EINPROGRESS;
    return -1;
}

static struct client_port *open_datagram_port(struct client_socket *socket, const uint8_t *id)
{
    struct names_client *client = socket->client;
    struct client_port *port = create_port(socket);

    if (port == NULL)
        return NULL;
    memcpy(port->id, id, sizeof(port->id));
    port->asked = question_of(client, id);
    if (port->asked != NULL)
        LIST_INSERT_HEAD(&port->asked->ports, port, own);
    port->opened_ms = client->loop->clock.mono_ms;
    TAILQ_INSERT_TAIL(&client->ports, port, link);
    if (connect_port(port, true) == 0 && watch_server(client, port->source, true, false) == 0)
        return port;
    close_port(port);
    return NULL;
}

static ssize_t send_datagram(struct client_socket *socket, const struct iovec *pieces, int n)
{
    struct client_port *port;
    struct io_result result;

    assert(n > 0 && pieces[0].iov_len >= sizeof(port->id));
    if (!is_sent(socket->client))
        return (ssize_t)pieces[0].iov_len;
    port = open_datagram_port(socket, pieces[0].iov_base);
    if (port == NULL)
        return -1;
    result = port->source->io->send(port->source, pieces, n);
    if (result.status == IO_DONE)
        return (ssize_t)result.n;
    close_port(port);
    return fail_operation(result);
}

/* Receives from a connection, or a datagram, perhaps the reply to the port's question. */
static ssize_t receive_from(struct client_port *port, void *p, size_t n)
{
    for (int i = 0; i < READS_A_TURN; i++) {
        struct io_span span = { p, n };
        struct io_result result = port->source->io->recv(port->source, &span);
        bool at_end = result.status == IO_EOF;

        port->drained = result.status != IO_DONE && (!at_end || is_stream(port));
        if (port->drained)
            return at_end ? 0 : fail_operation(result);
        if (!is_stream(port) && (at_end || span.n < sizeof(port->id) ||
                                    memcmp(span.p, port->id, sizeof(port->id)) != 0))
            continue;
        if (span.p != p)
            memcpy(p, span.p, span.n);
        return (ssize_t)span.n;
    }
    errno = EWOULDBLOCK;
    return -1;
}

static struct client_port *port_of_source(struct source *source)
{
    return container_of((struct source_ops *)source->ops, struct client_port, ops);
}

/* The library may close the port, and open more. The simulated kernel gives one edge for all data
 * of a connection. */
static void run_port_read(struct loop *loop, struct source *source)
{
    struct client_port *port = port_of_source(source);
    struct names_client *client = port->socket->client;
    ares_socket_t handle = handle_of_socket(port->socket);
    bool again = is_stream(port);

    CHECK_KIND(client, CLIENT_KIND);
    source->events[EVENT_READ].ready = false;
    client->reading = port;
    for (int i = 0; i < READS_A_TURN && client->reading == port && (i == 0 || again); i++) {
        port->drained = true; /* if it is not even asked */
        ares_process_fd(client->channel, handle, ARES_SOCKET_BAD);
        again = again && client->reading == port && !port->drained;
    }
    if (client->reading == port && !port->drained && source->events[EVENT_READ].armed)
        loop_post(loop, &source->events[EVENT_READ], QUEUE_NEXT);
    client->reading = NULL;
    names_client_asked(client);
}

static void run_port_write(struct loop *loop, struct source *source)
{
    const struct client_socket *socket = port_of_source(source)->socket;
    struct names_client *client = socket->client;

    (void)loop;
    CHECK_KIND(client, CLIENT_KIND);
    source->events[EVENT_WRITE].ready = false;
    ares_process_fd(client->channel, ARES_SOCKET_BAD, handle_of_socket(socket));
    names_client_asked(client);
}

/* ---- The library's calls ---- */

static ares_socket_t open_socket(int family, int type, int protocol, void *arg)
{
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
    socket->client = client;
    if (type != SOCK_DGRAM && (socket->stream = create_port(socket)) == NULL)
        return ARES_SOCKET_BAD;
    socket->in_use = true;
    return handle_of_socket(socket);
}

static int close_socket(ares_socket_t handle, void *arg)
{
    struct names_client *client = arg;
    struct client_socket *socket = socket_of(client, handle);
    struct client_port *port, *next;

    TAILQ_FOREACH_SAFE (port, &client->ports, link, next)
        if (port->socket == socket)
            close_port(port);
    if (socket->stream != NULL)
        close_port(socket->stream);
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
    return socket->stream != NULL ? connect_port(socket->stream, false) : 0;
}

static ares_ssize_t receive_any(ares_socket_t handle, void *p, size_t n, int flags,
    struct sockaddr *from, ares_socklen_t *from_n, void *arg)
{
    struct names_client *client = arg;
    struct client_socket *socket = socket_of(client, handle);
    ssize_t result = -1;

    (void)flags;
    if (socket->stream != NULL)
        result = receive_from(socket->stream, p, n);
    else if (client->reading != NULL && client->reading->socket == socket)
        result = receive_from(client->reading, p, n);
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

    if (socket->stream == NULL)
        return (ares_ssize_t)send_datagram(socket, pieces, n);
    result = socket->stream->source->io->send(socket->stream->source, pieces, n);
    return result.status == IO_DONE ? (ares_ssize_t)result.n : (ares_ssize_t)fail_operation(result);
}

void client_sockets_changed(void *arg, ares_socket_t handle, int readable, int writable)
{
    struct names_client *client = arg;
    struct client_port *stream = socket_of(client, handle)->stream;

    if (stream != NULL && stream->source->fd != -1)
        watch_server(client, stream->source, readable != 0, writable != 0);
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

/* A timer at most NAMES_CLIENT_TRY_MS ahead is early enough for any question. The library is not
 * asked each time, because its search goes through all questions. */
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
