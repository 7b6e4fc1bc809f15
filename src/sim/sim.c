/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulation, sockets and servers as driven by the harness: arriving bytes, bytes taken by the
 * peer, and ends. A connect waits in the queue of the server until an accept or a refusal; without
 * a server at the address the connect is refused. A simulation outlives all loops. */
#include "sim/sim_private.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_DIGEST 1000000
/* The clocks begin at odd places, unlikely to be confused with a second clock or with durations. */
#define FIRST_MONO_MS 1000000
#define FIRST_WALL_MS 1795253400000 /* 2026-11-21 09:30:00 UTC */

struct sim *sim_create(void)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    assert(sim != NULL);
    sim->kind = SIM_KIND;
    sim->edge = sim_mechanism_edge;
    sim->level = sim_mechanism_level;
    sim->edge.self = sim->level.self = sim;
    RB_INIT(&sim->endpoints);
    STAILQ_INIT(&sim->servers);
    STAILQ_INIT(&sim->faults);
    sim->next_fd = SIM_FIRST_FD;
    sim->clock = (struct clock) { .mono_ms = FIRST_MONO_MS, .wall_ms = FIRST_WALL_MS };
    sim->digest = FIRST_DIGEST;
    return sim;
}

void sim_destroy(struct sim **simp)
{
    struct sim *sim = *simp;
    struct sim_server *server;
    struct sim_fault *fault;

    *simp = NULL;
    CHECK_KIND(sim, SIM_KIND);
    assert(sim->loop_n == 0);
    sim_check_closed(sim);
    sim_endpoints_free(sim);
    while ((server = STAILQ_FIRST(&sim->servers)) != NULL) {
        STAILQ_REMOVE_HEAD(&sim->servers, link);
        free(server);
    }
    while ((fault = STAILQ_FIRST(&sim->faults)) != NULL) {
        STAILQ_REMOVE_HEAD(&sim->faults, link);
        free(fault);
    }
    sim->kind = 0;
    free(sim);
}

void sim_splice(struct sim *sim)
{
    sim->edge.io = sim->level.io = &sim_io_splicing;
}

void sim_trouble(struct sim *sim, uint64_t seed, const struct sim_trouble *trouble)
{
    static const struct sim_trouble none;

    CHECK_KIND(sim, SIM_KIND);
    sim->random = seed;
    sim->trouble = trouble != NULL ? *trouble : none;
}

uint32_t sim_random(struct sim *sim, uint32_t below)
{
    return sim_draw(&sim->random, below);
}

/* ---- Sockets ---- */

struct sim_socket *sim_connection(struct sim *sim)
{
    struct sim_endpoint *s = sim_endpoint_create(sim, -1);

    s->must_close = true;
    return &s->view;
}

struct sim_socket *sim_listener(struct sim *sim, int fd)
{
    return &sim_endpoint_create(sim, fd)->view;
}

struct sim_socket *sim_client(struct sim_socket *listener)
{
    struct sim_endpoint *client = sim_endpoint_create(sim_endpoint_by(listener)->sim, -1);

    client->view.local = listener->local;
    client->view.local_length = listener->local_length;
    STAILQ_INSERT_TAIL(&sim_endpoint_by(listener)->clients, client, line_link);
    listener->waiting++;
    return &client->view;
}

void sim_say(struct sim_socket *socket, const void *p, size_t n)
{
    struct sim_step *step;

    assert(n > 0);
    step = sim_append_step(sim_endpoint_by(socket), SIM_STEP_BYTES, n);
    if (step != NULL)
        memcpy(step->bytes, p, n);
}

void sim_says(struct sim_socket *socket, const char *text)
{
    sim_say(socket, text, strlen(text));
}

void sim_stall(struct sim_socket *socket)
{
    sim_append_step(sim_endpoint_by(socket), SIM_STEP_STALL, 0);
}

void sim_end(struct sim_socket *socket)
{
    sim_append_step(sim_endpoint_by(socket), SIM_STEP_END, 0);
}

void sim_set_room(struct sim_socket *socket, size_t n)
{
    struct sim_endpoint *s = sim_endpoint_by(socket);

    socket->room = n;
    if (s->seal != NULL)
        sim_io_push_sealed(s);
    if (n > 0)
        sim_mark_changed(s, EVENT_WRITE);
}

void sim_take(struct sim_socket *socket, size_t n)
{
    assert(n <= socket->queued);
    socket->queued -= n;
}

size_t sim_unread(const struct sim_socket *socket)
{
    size_t n = 0;
    struct sim_step *step;

    STAILQ_FOREACH (step, &sim_endpoint_by(socket)->steps, link)
        n += step->n - step->at;
    return n;
}

const char *sim_sent(const struct sim_socket *socket)
{
    return socket->sent != NULL ? (const char *)socket->sent : "";
}

void sim_forget_sent(struct sim_socket *socket)
{
    free(socket->sent);
    socket->sent = NULL;
    socket->sent_n = socket->queued = sim_endpoint_by(socket)->sent_room = 0;
}

void sim_kill(struct sim_socket *socket)
{
    sim_break_output(socket, EPIPE);
    socket->reset = true;
}

struct sim_socket *sim_socket_find(struct sim *sim, int fd)
{
    struct sim_endpoint *s = sim_endpoint_find(sim, fd);

    return s != NULL ? &s->view : NULL;
}

void sim_socket_free(struct sim_socket **socket)
{
    struct sim_endpoint *s = sim_endpoint_by(*socket);

    assert(s->view.closed);
    *socket = NULL;
    sim_endpoint_free(s);
}

/* ---- Servers ---- */

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

/* Binds the socket, whose port is chosen where none is asked for; returns 0 or an errno. */
static int bind_endpoint(
    struct sim_endpoint *s, const struct sockaddr *address, const struct io_connect *options)
{
    struct sockaddr_in *in = (void *)&s->view.local; /* sin6_port has the same offset */
    const struct sockaddr_in *wanted = (const void *)options->local;
    in_port_t port = in->sin_port;

    if (options->local->sa_family != address->sa_family || address->sa_family == AF_UNIX)
        return EAFNOSUPPORT;
    if (wanted->sin_family == AF_INET && ntohl(wanted->sin_addr.s_addr) >> 8 == 0xcb0071 &&
        !options->transparent) /* 203.0.113.0/24 is not this machine's */
        return EADDRNOTAVAIL;
    assert(options->local_length <= sizeof(s->view.local));
    memcpy(&s->view.local, options->local, options->local_length);
    if (in->sin_port == 0)
        in->sin_port = port;
    return 0;
}

struct sim_endpoint *sim_connect(struct source *source, const struct sockaddr *address,
    socklen_t length, struct io_connect *options)
{
    struct sim *sim = sim_loop_of(source)->sim;
    struct sim_endpoint *s = sim_endpoint_create(sim, -1);

    assert(length <= sizeof(s->view.peer));
    if (source->fd != -1)
        sim_fault(sim, source->fd, "connect() of a source with a descriptor");
    memcpy(&s->view.peer, address, length);
    s->view.peer_length = length;
    name_local(s, address->sa_family);
    s->must_close = true;
    source->fd = s->view.fd;
    if (options != NULL) {
        s->view.receive_buffer = options->receive_buffer;
        s->view.keepalive = options->keepalive;
        if (options->local != NULL)
            s->connect_error = bind_endpoint(s, address, options);
        options->failed = s->connect_error != 0 ? IO_BIND : IO_CONNECT;
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
