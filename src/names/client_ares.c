/* SPDX-License-Identifier: BSD-2-Clause */
/* The client over c-ares. The library knows a socket by its place in our table, and never its
 * descriptor, which a simulated kernel does not have. A reply is handed on and not read here.
 *
 * Responsible for what the library does not guard itself against: an empty datagram, which 1.18
 * takes for the end of all questions. */
#define CARES_NO_DEPRECATED /* some calls have a replacement that is newer than 1.18 */
#include "names/client.h"

#include "base/check.h"
#include "event/io.h"

#include <ares.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define CLIENT_KIND KIND('A', 'R', 'E', 'S')
#define CLASS_IN 1
#define HOSTS_TTL 10 /* seconds for which a line of /etc/hosts holds */
/* A question is asked again after this time, then after twice as long ... */
#define TRY_MS 1000
#define TRIES 4
/* Events of a socket that has more to read than this are taken again in the next turn. */
#define READS_A_TURN 64
#define EMPTY_MOST 64

struct client_socket {
    struct source_ops ops; /* the source's: by them it leads here */
    struct names_client *client;
    struct source *source; /* NULL: the place is free */
    uint32_t serial;       /* changes with each use of the place */
    bool datagrams;
    bool drained; /* the latest recv has found nothing */
    socklen_t peer_n;
    struct sockaddr_storage peer;
};

struct names_client {
    unsigned kind;
    struct loop *loop;
    ares_channel channel;
    names_client_replied *replied;
    struct timer timer;
    bool searches; /* the system's search list is used */
    bool ending;
    struct client_socket sockets[NAMES_CLIENT_SOCKETS];
};

bool names_client_built(void)
{
    return true;
}

/* ---- Sockets ---- */

static struct client_socket *socket_of(struct names_client *client, ares_socket_t handle)
{
    CHECK_KIND(client, CLIENT_KIND);
    assert(handle >= 0 && handle < NAMES_CLIENT_SOCKETS);
    assert(client->sockets[handle].source != NULL);
    return &client->sockets[handle];
}

static ares_socket_t handle_of(const struct client_socket *socket)
{
    return (ares_socket_t)(socket - socket->client->sockets);
}

static void run_read(struct loop *loop, struct source *source);
static void run_write(struct loop *loop, struct source *source);

/* A simulated kernel has operations of its own; any other mechanism's are for connections. */
static void set_operations(struct loop *loop, struct source *source)
{
    bool simulated = loop->mechanism->self != NULL;

    source->io = simulated ? loop->mechanism->io : &io_socket;
    source->io_state = simulated ? loop->mechanism_state : NULL;
    source->level = true;
}

static ares_socket_t open_socket(int family, int type, int protocol, void *arg)
{
    struct names_client *client = arg;
    struct client_socket *socket = client->sockets, *end = socket + NAMES_CLIENT_SOCKETS;

    (void)family;
    (void)protocol;
    CHECK_KIND(client, CLIENT_KIND);
    while (socket < end && socket->source != NULL)
        socket++;
    if (socket < end)
        socket->source = source_get(&client->loop->sources);
    if (socket == end || socket->source == NULL) {
        errno = EMFILE;
        return ARES_SOCKET_BAD;
    }
    set_operations(client->loop, socket->source);
    socket->ops =
        (struct source_ops) { .run = { [EVENT_READ] = run_read, [EVENT_WRITE] = run_write } };
    socket->source->ops = &socket->ops;
    socket->source->fd = -1;
    socket->client = client;
    socket->serial++;
    socket->datagrams = type == SOCK_DGRAM;
    return handle_of(socket);
}

static int close_socket(ares_socket_t handle, void *arg)
{
    struct names_client *client = arg;
    struct client_socket *socket = socket_of(client, handle);

    source_close(client->loop, socket->source, false);
    socket->source = NULL;
    return 0;
}

static ssize_t failed(struct io_result result)
{
    errno = result.status == IO_FAILED ? result.error : EWOULDBLOCK;
    return -1;
}

static int connect_socket(
    ares_socket_t handle, const struct sockaddr *address, ares_socklen_t length, void *arg)
{
    struct client_socket *socket = socket_of(arg, handle);
    struct io_connect options = { .datagrams = socket->datagrams };
    struct io_result result;

    assert(length <= sizeof(socket->peer));
    memcpy(&socket->peer, address, length);
    socket->peer_n = length;
    result = socket->source->io->connect(socket->source, address, length, &options);
    if (result.status == IO_DONE)
        return 0;
    errno = result.status == IO_FAILED ? result.error : EINPROGRESS;
    return -1;
}

static ares_ssize_t receive(ares_socket_t handle, void *p, size_t n, int flags,
    struct sockaddr *from, ares_socklen_t *from_n, void *arg)
{
    struct client_socket *socket = socket_of(arg, handle);
    struct io_span span = { p, n };
    struct io_result result;
    int empty = 0;

    (void)flags;
    do
        result = socket->source->io->recv(socket->source, &span);
    while (result.status == IO_EOF && socket->datagrams && ++empty < EMPTY_MOST);
    socket->drained = result.status != IO_DONE && empty < EMPTY_MOST;
    if (result.status == IO_EOF && !socket->datagrams)
        return 0;
    if (result.status != IO_DONE)
        return failed(result);
    if (span.p != p)
        memcpy(p, span.p, span.n);
    if (from != NULL && *from_n >= socket->peer_n) {
        memcpy(from, &socket->peer, socket->peer_n);
        *from_n = socket->peer_n;
    }
    return (ares_ssize_t)span.n;
}

static ares_ssize_t send_pieces(ares_socket_t handle, const struct iovec *pieces, int n, void *arg)
{
    struct client_socket *socket = socket_of(arg, handle);
    struct io_result result = socket->source->io->send(socket->source, pieces, n);

    return result.status == IO_DONE ? (ares_ssize_t)result.n : failed(result);
}

static const struct ares_socket_functions socket_functions = {
    .asocket = open_socket,
    .aclose = close_socket,
    .aconnect = connect_socket,
    .arecvfrom = receive,
    .asendv = send_pieces,
};

/* The library waits for something else, or is about to close the socket. */
static void socket_changed(void *arg, ares_socket_t handle, int readable, int writable)
{
    struct names_client *client = arg;
    struct source *source = socket_of(client, handle)->source;

    if (source->fd == -1)
        return;
    if (source_watch_level(client->loop, source, readable != 0, writable != 0) == -1)
        log_write(client->loop->log, LEVEL_ERROR, errno, "a server of names could not be watched");
}

/* ---- Events ---- */

static void timer_expired(struct loop *loop, struct timer *timer)
{
    struct names_client *client = container_of(timer, struct names_client, timer);

    (void)loop;
    CHECK_KIND(client, CLIENT_KIND);
    ares_process_fd(client->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    names_client_asked(client);
}

void names_client_asked(struct names_client *client)
{
    struct timeval room, *left = ares_timeout(client->channel, NULL, &room);

    if (left == NULL)
        timer_del(client->loop, &client->timer);
    else
        timer_set(client->loop, &client->timer,
            (uint64_t)left->tv_sec * 1000 + (uint64_t)left->tv_usec / 1000 + 1);
}

/* The library may close the socket, and open another in its place. Edges of the simulated kernel
 * come once for all that is there. */
static void run_reads(struct client_socket *socket)
{
    struct names_client *client = socket->client;
    ares_socket_t handle = handle_of(socket);
    uint32_t serial = socket->serial;

    for (int i = 0; i < READS_A_TURN; i++) {
        socket->drained = true; /* if it is not even asked */
        ares_process_fd(client->channel, handle, ARES_SOCKET_BAD);
        if (socket->source == NULL || socket->serial != serial || socket->drained)
            return;
    }
    if (socket->source->events[EVENT_READ].armed)
        loop_post(client->loop, &socket->source->events[EVENT_READ], QUEUE_NEXT);
}

static void run_read(struct loop *loop, struct source *source)
{
    struct client_socket *socket =
        container_of((struct source_ops *)source->ops, struct client_socket, ops);

    (void)loop;
    CHECK_KIND(socket->client, CLIENT_KIND);
    source->events[EVENT_READ].ready = false;
    run_reads(socket);
    names_client_asked(socket->client);
}

static void run_write(struct loop *loop, struct source *source)
{
    struct client_socket *socket =
        container_of((struct source_ops *)source->ops, struct client_socket, ops);

    (void)loop;
    CHECK_KIND(socket->client, CLIENT_KIND);
    source->events[EVENT_WRITE].ready = false;
    ares_process_fd(socket->client->channel, ARES_SOCKET_BAD, handle_of(socket));
    names_client_asked(socket->client);
}

/* ---- Questions ---- */

/* Translates the library's status. */
static struct names_reply reply_of(int status)
{
    switch (status) {
    case ARES_SUCCESS:
        return (struct names_reply) { .outcome = FB_NAME_FOUND };
    case ARES_ENOTFOUND:
    case ARES_EBADNAME:
        return (struct names_reply) { FB_NAME_ABSENT, "there is no such name", NULL, 0 };
    case ARES_ENODATA:
        return (struct names_reply) { FB_NAME_NO_DATA, "it has no such record", NULL, 0 };
    case ARES_ETIMEOUT:
        return (struct names_reply) { FB_NAME_TIMED_OUT, "no server has answered", NULL, 0 };
    case ARES_ECONNREFUSED:
        return (struct names_reply) { FB_NAME_FAILED, "no server can be reached, or will answer",
            NULL, 0 };
    case ARES_ESERVFAIL:
        return (struct names_reply) { FB_NAME_FAILED, "the server has failed", NULL, 0 };
    case ARES_EREFUSED:
    case ARES_ENOTIMP:
    case ARES_EFORMERR:
        return (struct names_reply) { FB_NAME_FAILED, "the server refuses to answer", NULL, 0 };
    case ARES_EBADRESP:
        return (struct names_reply) { FB_NAME_BROKEN, "the answer is malformed", NULL, 0 };
    case ARES_ENOMEM:
        return (struct names_reply) { FB_NAME_NO_MEMORY, "there is no memory", NULL, 0 };
    default:
        return (struct names_reply) { FB_NAME_FAILED, ares_strerror(status), NULL, 0 };
    }
}

/* A question, with its client for the library's callback. */
struct asked {
    struct names_client *client;
    void *arg;
};

static void answered(void *arg, int status, int timeouts, unsigned char *p, int n)
{
    struct asked asked = *(struct asked *)arg;
    struct names_reply reply = reply_of(status);

    (void)timeouts;
    free(arg);
    if (asked.client->ending)
        return;
    if (reply.outcome == FB_NAME_FOUND) {
        reply.p = p;
        reply.n = (size_t)n;
    }
    asked.client->replied(asked.arg, &reply);
}

void names_client_ask(struct names_client *client, const char *name, uint16_t type, void *arg)
{
    struct names_reply none = reply_of(ARES_ENOMEM);
    struct asked *asked = malloc(sizeof(*asked));

    CHECK_KIND(client, CLIENT_KIND);
    if (asked == NULL) {
        client->replied(arg, &none);
        return;
    }
    *asked = (struct asked) { client, arg };
    if (client->searches)
        ares_search(client->channel, name, CLASS_IN, type, answered, asked);
    else
        ares_query(client->channel, name, CLASS_IN, type, answered, asked);
}

/* ---- /etc/hosts ---- */

static void add_host(const struct hostent *host, struct message *out)
{
    size_t n = host->h_addrtype == AF_INET ? 4 : 16;

    for (char **all = host->h_addr_list; *all != NULL && out->n < MESSAGE_ITEMS; all++) {
        out->items[out->n] = (struct message_item) { .ttl = HOSTS_TTL };
        memcpy(out->items[out->n++].address, *all, n);
    }
}

static void begin_hosts(struct message *out, uint16_t type, const char *canonical)
{
    out->type = type;
    out->ttl = HOSTS_TTL;
    out->n = 0;
    out->aliases = out->text_n = 0;
    snprintf(out->canonical, sizeof(out->canonical), "%s", canonical);
}

struct file_host {
    struct message *out;
    int status;
};

/* Called within ares_gethostbyaddr(), because the library looks into the file alone. */
static void host_found(void *arg, int status, int timeouts, struct hostent *host)
{
    struct file_host *found = arg;
    size_t n;

    (void)timeouts;
    found->status = status;
    if (status != ARES_SUCCESS)
        return;
    n = strlen(host->h_name) + 1;
    begin_hosts(found->out, MESSAGE_PTR, host->h_name);
    memcpy(found->out->text, host->h_name, n < MESSAGE_NAME ? n : 0);
    found->out->text_n = n < MESSAGE_NAME ? n : 0;
    found->out->items[0] = (struct message_item) { .ttl = HOSTS_TTL };
    found->out->n = n < MESSAGE_NAME;
}

static int find_address(
    struct names_client *client, const struct sockaddr *address, struct message *out)
{
    const struct sockaddr_in *in = (const void *)address;
    const struct sockaddr_in6 *in6 = (const void *)address;
    struct file_host found = { out, ARES_ENOTFOUND };
    bool is_v4 = address->sa_family == AF_INET;

    ares_gethostbyaddr(client->channel,
        is_v4 ? (const void *)&in->sin_addr : (const void *)&in6->sin6_addr, is_v4 ? 4 : 16,
        address->sa_family, host_found, &found);
    return found.status;
}

/* A name that the file has for the other family alone has no address of this one. */
static int find_name(
    struct names_client *client, const char *name, uint16_t type, struct message *out)
{
    int family = type == MESSAGE_A ? AF_INET : AF_INET6;
    int other = type == MESSAGE_A ? AF_INET6 : AF_INET;
    struct hostent *host = NULL;
    int status = ares_gethostbyname_file(client->channel, name, family, &host);

    if (status == ARES_ENOTFOUND)
        status = ares_gethostbyname_file(client->channel, name, other, &host);
    if (status != ARES_SUCCESS)
        return status;
    begin_hosts(out, type, host->h_name);
    if (host->h_addrtype == family)
        add_host(host, out);
    ares_free_hostent(host);
    return ARES_SUCCESS;
}

bool names_client_hosts(struct names_client *client, const char *name, uint16_t type,
    const struct sockaddr *address, struct message *out, bool *readable)
{
    int status = ARES_ENOTFOUND;

    CHECK_KIND(client, CLIENT_KIND);
    if (type == MESSAGE_PTR && address != NULL)
        status = find_address(client, address, out);
    else if (type == MESSAGE_A || type == MESSAGE_AAAA)
        status = find_name(client, name, type, out);
    *readable = status != ARES_EFILE;
    return status == ARES_SUCCESS;
}

/* ---- The client ---- */

static int init_channel(struct names_client *client, const char *servers)
{
    char lookups[] = "f"; /* of ares_gethostbyaddr() alone */
    struct ares_options options = {
        .flags = ARES_FLAG_NOALIASES,
        .timeout = TRY_MS,
        .tries = TRIES,
        .lookups = lookups,
        .sock_state_cb = socket_changed,
        .sock_state_cb_data = client,
    };
    int wanted = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                 ARES_OPT_SOCK_STATE_CB | (servers != NULL ? ARES_OPT_ROTATE : 0);
    int status = ares_init_options(&client->channel, &options, wanted);

    if (status != ARES_SUCCESS)
        return status;
    ares_set_socket_functions(client->channel, &socket_functions, client);
    if (servers != NULL)
        status = ares_set_servers_ports_csv(client->channel, servers);
    if (status != ARES_SUCCESS)
        ares_destroy(client->channel);
    return status;
}

struct names_client *names_client_create(
    struct loop *loop, const char *servers, names_client_replied *replied)
{
    struct names_client *client = calloc(1, sizeof(*client));
    int status = client == NULL ? ARES_ENOMEM : ares_library_init(ARES_LIB_INIT_ALL);

    if (status == ARES_SUCCESS) {
        client->kind = CLIENT_KIND;
        client->loop = loop;
        client->replied = replied;
        client->searches = servers == NULL;
        client->timer.expired = timer_expired;
        status = init_channel(client, servers);
        if (status == ARES_SUCCESS)
            return client;
        ares_library_cleanup();
    }
    free(client);
    log_write(loop->log, LEVEL_EMERG, 0, "the servers of names cannot be asked: %s",
        ares_strerror(status));
    return NULL;
}

void names_client_destroy(struct names_client **clientp)
{
    struct names_client *client = *clientp;

    if (client == NULL)
        return;
    *clientp = NULL;
    CHECK_KIND(client, CLIENT_KIND);
    client->ending = true;
    timer_del(client->loop, &client->timer);
    ares_destroy(client->channel); /* closes the sockets */
    ares_library_cleanup();
    client->kind = 0;
    free(client);
}
