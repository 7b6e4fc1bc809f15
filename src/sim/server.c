/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that the program of a simulation can connect to. Where there is none at an address, a
 * connect is refused. A connect waits in the queue of its server until the server accepts or
 * refuses it. */
#include "sim/sim_private.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static bool is_server_address(
    const struct sim_server *server, const void *address, socklen_t length)
{
    const struct sockaddr_in *in = address, *own_in = (const void *)&server->address;
    const struct sockaddr_in6 *in6 = address, *own_in6 = (const void *)&server->address;

    if (server->length != length || in->sin_family != own_in->sin_family)
        return false;
    switch (in->sin_family) {
    case AF_INET: /* the padding does not count */
        return in->sin_port == own_in->sin_port && in->sin_addr.s_addr == own_in->sin_addr.s_addr;
    case AF_INET6:
        return in6->sin6_port == own_in6->sin6_port &&
               in6->sin6_scope_id == own_in6->sin6_scope_id &&
               memcmp(&in6->sin6_addr, &own_in6->sin6_addr, sizeof(in6->sin6_addr)) == 0;
    default:
        return memcmp(address, &server->address, length) == 0;
    }
}

static struct sim_server *find_sim_server(
    struct sim *sim, const struct sockaddr *address, socklen_t length)
{
    struct sim_server *server;

    STAILQ_FOREACH (server, &sim->servers, link)
        if (is_server_address(server, address, length))
            return server;
    return NULL;
}

struct sim_server *sim_server(struct sim *sim, const struct sockaddr *address, socklen_t length)
{
    struct sim_server *server = calloc(1, sizeof(*server));

    assert(server != NULL && length <= sizeof(server->address));
    assert(find_sim_server(sim, address, length) == NULL);
    memcpy(&server->address, address, length);
    server->length = length;
    STAILQ_INIT(&server->waiting);
    STAILQ_INIT(&server->accepted);
    STAILQ_INSERT_TAIL(&sim->servers, server, link);
    return server;
}

void sim_servers_free(struct sim *sim)
{
    struct sim_server *server;

    while ((server = STAILQ_FIRST(&sim->servers)) != NULL) {
        STAILQ_REMOVE_HEAD(&sim->servers, link);
        free(server);
    }
}

static void refuse_connect(struct sim_endpoint *s, int error)
{
    assert(s->connecting && error != 0);
    s->connecting = false;
    s->connect_error = error;
    sim_break_both(s, error);
}

static void answer_connect(struct sim_server *server, struct sim_endpoint *s)
{
    assert(s->server == server && s->connecting);
    switch (server->answer) {
    case SIM_ACCEPTS:
        assert(s->connect_error == 0);
        s->connecting = false;
        STAILQ_INSERT_TAIL(&server->accepted, s, line_link);
        sim_mark_changed(s, EVENT_WRITE);
        break;
    case SIM_REFUSES:
        refuse_connect(s, server->error);
        break;
    case SIM_SILENT:
        STAILQ_INSERT_TAIL(&server->waiting, s, line_link);
        break;
    }
}

void sim_server_answer(struct sim_server *server, enum sim_server_answer answer, int error)
{
    struct sim_endpoint *s;

    server->answer = answer;
    server->error = error != 0 ? error : ECONNREFUSED;
    while (answer != SIM_SILENT && (s = STAILQ_FIRST(&server->waiting)) != NULL) {
        STAILQ_REMOVE_HEAD(&server->waiting, line_link);
        if (!s->view.closed)
            answer_connect(server, s);
    }
}

struct sim_socket *sim_server_take(struct sim_server *server)
{
    struct sim_endpoint *s = STAILQ_FIRST(&server->accepted);

    if (s == NULL)
        return NULL;
    assert(s->server == server && !s->connecting);
    STAILQ_REMOVE_HEAD(&server->accepted, line_link);
    return &s->view;
}

/* 192.0.2.100 or 2001:db8::100, with a port for each socket; a unix socket has no name. */
static void name_local(struct sim_endpoint *s, sa_family_t family)
{
    struct sockaddr_in *in = (void *)&s->view.local;
    struct sockaddr_in6 *in6 = (void *)&s->view.local;
    in_port_t port = htons((in_port_t)(32768 + s->view.fd % 16384));

    s->view.local.ss_family = family;
    if (family == AF_INET) {
        in->sin_addr.s_addr = htonl(0xc0000264);
        in->sin_port = port;
        s->view.local_length = sizeof(*in);
    } else if (family == AF_INET6) {
        in6->sin6_addr = (struct in6_addr) { { { 0x20, 0x01, 0x0d, 0xb8, [14] = 1, [15] = 0 } } };
        in6->sin6_port = port;
        s->view.local_length = sizeof(*in6);
    } else {
        s->view.local_length = sizeof(family);
    }
}

/* Whether this machine lacks the address. */
static bool is_foreign_address(const struct sockaddr *address)
{
    const struct sockaddr_in *in = (const void *)address;

    return address->sa_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 8 == 0xcb0071;
}

/* Binds the socket, whose port is chosen where none is asked for; returns 0 or an errno. */
static int bind_endpoint(
    struct sim_endpoint *s, const struct sockaddr *address, const struct io_connect *options)
{
    struct sockaddr_in *in = (void *)&s->view.local; /* sin6_port has the same offset */
    in_port_t port = in->sin_port;

    if (options->local->sa_family != address->sa_family || address->sa_family == AF_UNIX)
        return EAFNOSUPPORT;
    if (is_foreign_address(options->local) && !options->transparent)
        return EADDRNOTAVAIL;
    assert(options->local_length <= sizeof(s->view.local));
    memcpy(&s->view.local, options->local, options->local_length);
    if (in->sin_port == 0)
        in->sin_port = port;
    return 0;
}

/* Returns 0, or the errno of the local address. */
static int apply_options(
    struct sim_endpoint *s, const struct sockaddr *address, struct io_connect *options)
{
    int error = 0;

    s->view.receive_buffer = options->receive_buffer;
    s->view.keepalive = options->keepalive;
    if (options->local != NULL)
        error = bind_endpoint(s, address, options);
    options->failed = error != 0 ? IO_BIND : IO_CONNECT;
    return error;
}

struct sim_endpoint *sim_connect(struct source *source, const struct sockaddr *address,
    socklen_t length, struct io_connect *options)
{
    struct sim *sim = sim_loop_of(source)->sim;
    struct sim_endpoint *s = sim_endpoint_create(sim, -1);

    assert(length <= sizeof(s->view.peer));
    if (source->fd != -1)
        sim_fault(sim, source->fd, "connect() of a source that has a descriptor");
    memcpy(&s->view.peer, address, length);
    s->view.peer_length = length;
    name_local(s, address->sa_family);
    s->must_close = true;
    source->fd = s->view.fd;
    if (options != NULL) {
        s->connect_error = apply_options(s, address, options);
        if (s->connect_error != 0)
            return s;
        s->view.datagrams = options->datagrams;
    }
    s->connecting = true;
    s->server = find_sim_server(sim, address, length);
    if (s->view.datagrams) {
        s->connecting = false;
        if (s->server != NULL)
            STAILQ_INSERT_TAIL(&s->server->accepted, s, line_link);
    } else if (s->server == NULL) {
        refuse_connect(s, ECONNREFUSED);
    } else {
        s->server->tries++;
        answer_connect(s->server, s);
    }
    return s;
}
