/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups adopted sockets by address, and discards unused sockets. Inspects each socket before. */
#include "net/adopted.h"

#include "base/number.h"
#include "net/listener_open.h"
#include "net/listener_options.h"
#include "net/listener_set.h"
#include "net/listener_socket.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The most clients closed with a socket; no queue is longer. */
#define DRAIN_MAX 65536

struct adopted *adopted_create(void)
{
    struct arena *arena = arena_create();
    struct adopted *adopted = arena == NULL ? NULL : arena_alloc(arena, sizeof(*adopted));

    if (adopted == NULL) {
        arena_destroy(&arena);
        return NULL;
    }
    adopted->arena = arena;
    STAILQ_INIT(&adopted->sockets);
    listener_set_init(&adopted->holders);
    return adopted;
}

void adopted_destroy(struct adopted **adopted)
{
    struct arena *arena;

    if (*adopted == NULL)
        return;
    arena = (*adopted)->arena;
    *adopted = NULL;
    arena_destroy(&arena);
}

/* Makes a TCP socket listen again after a foreign shutdown() or connect(); an accepted connection
 * has no port once disconnected. */
static bool listens_again(int fd, struct address *address)
{
    if (address_of_socket(address, fd) == -1 || address->any.sa_family == AF_UNIX)
        return false;
    listener_disconnect(fd);
    return address_of_socket(address, fd) == 0 && address_port(address) != 0 &&
           listen(fd, listener_defaults.backlog) == 0;
}

/* Reads the address and the options of a socket. Returns NULL, or a description of the fault. */
static const char *inspect_socket(
    int fd, struct address *address, struct listener_options *options, bool *ipv6only)
{
    int type;

    errno = 0;
    type = listener_option_of(fd, OPTION(SOL_SOCKET, SO_TYPE));
    if (errno != 0)
        return "the descriptor is not a socket";
    if (type != SOCK_STREAM)
        return "the socket is not a stream socket";
    if (listener_option_of(fd, OPTION(SOL_SOCKET, SO_ACCEPTCONN)) == 0 &&
        !listens_again(fd, address))
        return "the socket does not listen";
    if (address_of_socket(address, fd) == -1)
        return "the address is not known";
    if (address->any.sa_family != AF_INET && address->any.sa_family != AF_INET6 &&
        address->any.sa_family != AF_UNIX)
        return "the socket is neither TCP nor a unix domain socket";
    *options = listener_defaults;
    options->reuseport = listener_option_of(fd, OPTION(SOL_SOCKET, SO_REUSEPORT)) != 0;
    *ipv6only = listener_option_of(fd, OPTION(IPPROTO_IPV6, IPV6_V6ONLY)) != 0;
    errno = 0; /* a unix socket has neither */
    return NULL;
}

const char *adopted_add(struct adopted *adopted, const struct adopted_socket *passed)
{
    struct adopted_socket *own = arena_alloc(adopted->arena, sizeof(*own));
    struct listener_options options;
    struct address address;
    struct listener *holder;
    const char *wrong;
    int flags;

    if (own == NULL)
        return "there is no memory for the socket";
    *own = *passed;
    own->name = arena_strdup(adopted->arena, passed->name);
    wrong = inspect_socket(own->fd, &address, &options, &own->ipv6only);
    if (wrong != NULL)
        return wrong;
    flags = fcntl(own->fd, F_GETFL);
    if (flags == -1 || fcntl(own->fd, F_SETFL, flags | O_NONBLOCK) == -1 ||
        fcntl(own->fd, F_SETFD, FD_CLOEXEC) == -1)
        return "the flags cannot be set";
    holder = listener_set_at(&adopted->holders, &address);
    if (holder == NULL) {
        holder = listener_create(adopted->arena, &address, &options);
        if (holder != NULL)
            listener_set_add(&adopted->holders, holder);
    }
    if (own->name == NULL || holder == NULL ||
        listener_add(holder, own->fd, own->from == ADOPTED_FROM_MANAGER) == -1)
        return "there is no memory for the socket";
    holder->foreign = holder->foreign || own->from == ADOPTED_FROM_MANAGER;
    holder->stored_n += own->from == ADOPTED_FROM_STORE;
    own->holder = holder;
    STAILQ_INSERT_TAIL(&adopted->sockets, own, link);
    return NULL;
}

unsigned adopted_find(const struct adopted *adopted, const char *name, struct address *out,
    unsigned max, bool *ipv6only)
{
    const struct adopted_socket *passed;
    unsigned n = 0;
    int64_t number;

    if (number_parse(name, ADOPTED_PASSED_FIRST, INT_MAX, &number) != NUMBER_OK)
        number = 0;
    STAILQ_FOREACH (passed, &adopted->sockets, link) {
        const struct address *address = &passed->holder->address;

        /* the number of a stored or inherited socket varies between starts */
        if (passed->number == 0 || passed->from != ADOPTED_FROM_MANAGER ||
            (number != 0 ? passed->number != number : strcmp(passed->name, name) != 0) ||
            address_is_among(out, n < max ? n : max, address))
            continue;
        if (n == 0)
            *ipv6only = passed->ipv6only;
        if (n < max)
            out[n] = *address;
        n++;
    }
    return n;
}

void adopted_describe(const struct adopted *adopted, char *text, size_t size)
{
    const struct adopted_socket *passed;
    size_t n = 0;

    snprintf(text, size, "none");
    STAILQ_FOREACH (passed, &adopted->sockets, link) {
        int more;

        if (passed->from != ADOPTED_FROM_MANAGER)
            continue;
        more = snprintf(text + n, size - n, "%s%d (\"%s\") %s", n > 0 ? ", " : "", passed->number,
            passed->name, passed->holder->text);
        if (more < 0 || (size_t)more >= size - n)
            return;
        n += (size_t)more;
    }
}

struct listener *adopted_holder(const struct adopted *adopted, const struct listener *listener)
{
    return adopted == NULL ? NULL : listener_set_find(&adopted->holders, listener);
}

/* Closes the connections of the queue's clients, and returns how many. Input is read before: a
 * close with unread input is a reset. */
static unsigned close_waiting(int fd)
{
    char discarded[4096];
    unsigned n = 0;
    int client;

    while (n < DRAIN_MAX && (client = descriptor_accept(fd, NULL, NULL, O_NONBLOCK)) != -1) {
        shutdown(client, SHUT_WR);
        while (recv(client, discarded, sizeof(discarded), 0) > 0)
            ;
        descriptor_discard(client);
        n++;
    }
    return n;
}

/* Logs a socket without a listener, and closes it unless the service manager owns the socket. */
static void discard_socket(struct adopted_socket *passed, struct log *log)
{
    struct listener *holder = passed->holder;
    unsigned n;

    switch (passed->from) {
    case ADOPTED_FROM_MANAGER:
        log_write(log, LEVEL_WARN, 0,
            "the service manager has passed socket %d (\"%s\"), %s, which no \"listen\" uses: it "
            "stays open, and no worker accepts connections on it",
            passed->number, passed->name, holder->text);
        break;
    case ADOPTED_FROM_STORE:
        n = close_waiting(passed->fd);
        descriptor_discard(passed->fd);
        listener_unlink(holder, log);
        log_write(log, LEVEL_NOTICE, 0,
            "%s was stored by the service manager, but no \"listen\" uses it any more: the socket "
            "and its %u waiting clients were closed",
            holder->text, n);
        break;
    case ADOPTED_FROM_MASTER: /* the other process still serves the queue */
        descriptor_discard(passed->fd);
        log_write(log, LEVEL_NOTICE, 0,
            "no \"listen\" uses %s any more: the old master process serves it until it exits",
            holder->text);
        break;
    }
}

void adopted_finish(struct adopted *adopted, const struct listeners *serving, struct log *log)
{
    struct adopted_socket *passed;
    struct listener *holder;

    assert(!adopted->finished);
    adopted->finished = true;
    STAILQ_FOREACH (passed, &adopted->sockets, link) {
        if (listener_set_find(serving, passed->holder) == NULL)
            discard_socket(passed, log);
        if (passed->from != ADOPTED_FROM_MANAGER)
            passed->fd = -1;
    }
    STAILQ_FOREACH (holder, &adopted->holders.list, link)
        holder->fd_n = holder->kept_n;
}

void adopted_close_others(struct adopted *adopted, const struct listeners *own)
{
    struct adopted_socket *passed;
    struct listener *listener;

    if (adopted == NULL)
        return;
    STAILQ_FOREACH (passed, &adopted->sockets, link) {
        listener = listener_set_find(own, passed->holder);
        if (passed->fd != -1 && (listener == NULL || !listener_has(listener, passed->fd)))
            descriptor_discard(passed->fd);
        passed->fd = -1;
    }
    STAILQ_FOREACH (listener, &own->list, link)
        listener->kept_n = 0;
}
