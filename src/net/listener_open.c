/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a listener: opened or adopted, made to listen, closed, handed over. Never accepts.
 * Invariant: a failed open leaves no new socket. */
#include "net/listener_open.h"

#include "net/listener_options.h"
#include "net/listener_socket.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

/* Asserts the invariants of a listener in any state. */
static void check_sockets(const struct listener *listener)
{
    assert(listener->arena != NULL && (listener->fds != NULL || listener->fd_n == 0));
    assert(!listener_is_unix(listener) || !listener->options.reuseport);
    for (unsigned i = 0; i < listener->fd_n; i++)
        assert(listener->fds[i] >= -1);
}

struct listener *listener_create(
    struct arena *arena, const struct address *address, const struct listener_options *options)
{
    struct listener *listener = arena_alloc(arena, sizeof(*listener));

    if (listener == NULL)
        return NULL;
    listener->arena = arena;
    listener->address = *address;
    listener->options = *options;
    if (listener_is_unix(listener)) /* several sockets cannot share a path */
        listener->options.reuseport = false;
    address_format_zone(&listener->address, listener->text);
    return listener;
}

/* Allows further sockets on the port of an adopted socket without reuseport. */
static void allow_reuseport(
    const struct listener *listener, const struct listener *from, int allowed)
{
    if (from == NULL || from->options.reuseport || !listener->options.reuseport)
        return;
    for (unsigned i = 0; i < from->fd_n; i++) /* if it fails, the next bind() does */
        setsockopt(from->fds[i], SOL_SOCKET, SO_REUSEPORT, &allowed, sizeof(allowed));
}

/* Gives up reuseport with fewer sockets of the service manager than worker slots: another user's
 * port cannot be bound once more. */
static void share_passed_sockets(
    struct listener *listener, unsigned passed, unsigned slots, struct log *log)
{
    if (!listener->options.reuseport || passed >= slots)
        return;
    log_write(log, LEVEL_WARN, 0,
        "\"reuseport\" of %s is ignored: the service manager has passed %u sockets for %u workers "
        "to share",
        listener->text, passed, slots);
    listener->options.reuseport = false;
}

int listener_open(
    struct listener *listener, const struct listener *from, unsigned slots, struct log *log)
{
    unsigned n = listener->options.reuseport ? slots : 1, previous_n;

    assert(slots > 0);
    assert(from == NULL || address_equal(&from->address, &listener->address));
    if (from != NULL && from->path_lost) {
        assert(listener_is_unix(from) && from->kept_n == 0);
        log_write(log, LEVEL_ALERT, 0, "the path of %s was deleted or replaced: it is bound again",
            listener->text);
        from = NULL;
    }
    previous_n = from != NULL ? from->fd_n : 0;
    if (from != NULL) {
        listener->path_device = from->path_device;
        listener->path_inode = from->path_inode;
        if (listener->path_inode == 0) /* bound by another process */
            listener_note_path(listener);
        listener_take_record(listener, from);
    }
    listener->foreign = from != NULL && from->foreign;
    listener->kept_n = from != NULL ? from->kept_n : 0;
    if (listener->foreign)
        share_passed_sockets(listener, previous_n, slots, log);
    if (n < previous_n || listener->foreign)
        n = previous_n;
    if (listener->fd_n < n) /* otherwise it was open before */
        listener->fds = arena_alloc(listener->arena, n * sizeof(*listener->fds));
    if (listener->fds == NULL) {
        listener->fd_n = 0;
        log_write(log, LEVEL_EMERG, ENOMEM, "the sockets of %s cannot be opened", listener->text);
        return -1;
    }
    assert(n >= previous_n && n > 0);
    listener->fd_n = n;
    listener->adopted = false;
    listener->stored_n = from != NULL ? from->stored_n : 0;
    for (unsigned i = 0; i < n; i++) {
        listener->fds[i] = i < previous_n ? from->fds[i] : -1;
        if (listener->fds[i] != -1)
            listener->adopted = true;
    }
    allow_reuseport(listener, from, 1);
    for (unsigned i = 0; i < n; i++) {
        if (listener->fds[i] != -1)
            continue;
        listener->fds[i] = listener_open_socket(listener, log);
        if (listener->fds[i] == -1) {
            listener_undo_open(listener, from);
            return -1;
        }
    }
    return 0;
}

int listener_commit(struct listener *listener, struct listener_system *system, struct log *log)
{
    int result = 0;

    check_sockets(listener);
    listener_record(listener); /* before options of ours are set */
    for (unsigned i = 0; i < listener->fd_n; i++) {
        int fd = listener->fds[i];

        if (fd == -1)
            continue;
        /* the kernel does not change ipv6only of a bound socket */
        if (listener->adopted && listener->address.any.sa_family == AF_INET6 &&
            listener_option_of(fd, OPTION(IPPROTO_IPV6, IPV6_V6ONLY)) != listener->options.ipv6only)
            log_write(log, LEVEL_WARN, 0,
                "ipv6only=%s is ignored: %s is open already, and stays unchanged",
                listener->options.ipv6only ? "on" : "off", listener->text);
        /* a kept socket may have been shut down by another process */
        if ((listener->adopted && !listener_is_unix(listener) && listener_is_broken(listener, fd) &&
                listener_revive(listener, fd, log) == -1) ||
            listener_listen(listener, fd, system, log) == -1) {
            listener_log_failure(log, errno, "listen() to %s, backlog %d failed", listener->text,
                listener->options.backlog);
            result = -1;
        }
    }
    return result;
}

int listener_add(struct listener *listener, int fd, bool kept)
{
    unsigned n = listener->fd_n, at = kept ? listener->kept_n : n;
    int *fds = arena_alloc(listener->arena, (n + 1) * sizeof(*fds));

    assert(fd >= 0 && !listener_has(listener, fd));
    if (fds == NULL)
        return -1;
    for (unsigned i = 0; i < n; i++)
        fds[i < at ? i : i + 1] = listener->fds[i];
    fds[at] = fd;
    listener->fds = fds;
    listener->fd_n = n + 1;
    listener->kept_n += kept;
    return 0;
}

/* Closes the sockets behind the first kept_n, unless shared with `next` (NULL: none). */
static void close_sockets(struct listener *listener, const struct listener *next)
{
    check_sockets(listener);
    for (unsigned i = 0; i < listener->fd_n; i++) {
        int fd = listener->fds[i];

        listener->fds[i] = -1;
        if (fd != -1 && i >= listener->kept_n && (next == NULL || !listener_has(next, fd)))
            descriptor_discard(fd);
    }
}

void listener_close(struct listener *listener)
{
    close_sockets(listener, NULL);
}

void listener_close_socket(struct listener *listener, int fd)
{
    assert(fd >= 0);
    check_sockets(listener);
    for (unsigned i = 0; i < listener->fd_n; i++)
        if (listener->fds[i] == fd) {
            listener->fds[i] = -1;
            if (i >= listener->kept_n)
                descriptor_discard(fd);
        }
}

void listener_undo_open(struct listener *listener, const struct listener *from)
{
    assert(from == NULL || address_equal(&from->address, &listener->address));
    check_sockets(listener);
    allow_reuseport(listener, from, 0);
    for (unsigned i = 0; i < listener->fd_n; i++) {
        int fd = listener->fds[i];

        listener->fds[i] = -1;
        if (fd == -1 || (from != NULL && listener_has(from, fd)))
            continue;
        descriptor_discard(fd);
        if (!listener->adopted)
            listener_unlink_path(listener);
    }
}

void listener_hand_over(struct listener *listener, const struct listener *next)
{
    assert(next != listener && address_equal(&listener->address, &next->address));
    close_sockets(listener, next);
}
