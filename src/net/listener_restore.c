/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts back what another process may have set on a listening socket and no configuration sets: each
 * process that has the socket can, accepted sockets inherit it, and it outlives the process. Knows
 * the values of a socket that nobody has touched, or where the service manager has passed the
 * socket, those that it had then. Never fails. */
#include "net/listener_options.h"

#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

static void read_options(struct listener_untouched *values, const struct listener *listener, int fd)
{
    bool ipv6 = listener->address.any.sa_family == AF_INET6;

    assert(os_options_untouched_n <= LISTENER_UNTOUCHED_MOST && !values->known);
    values->known = true;
    values->rcvbuf = listener_option_of(fd, OPTION(SOL_SOCKET, SO_RCVBUF));
    values->sndbuf = listener_option_of(fd, OPTION(SOL_SOCKET, SO_SNDBUF));
    values->buf_lock = listener_option_of(fd, &os_option_buf_lock);
    for (size_t i = 0; i < os_options_untouched_n; i++)
        if (ipv6 || os_options_untouched[i].level != IPPROTO_IPV6)
            values->values[i] = listener_option_of(fd, &os_options_untouched[i]);
}

const struct listener_untouched *listener_untouched_of(
    const struct listener *listener, struct listener_system *system)
{
    int family = listener->address.any.sa_family, untouched;
    struct listener_untouched *values = family == AF_INET6 ? &system->in6 : &system->in;

    assert(family != AF_UNIX);
    if (values->known)
        return values;
    untouched = descriptor_socket(family, SOCK_STREAM, 0);
    if (untouched == -1)
        return NULL;
    read_options(values, listener, untouched);
    values->keepidle = listener_option_of(untouched, &os_option_keepidle);
    values->keepintvl = listener_option_of(untouched, &os_option_keepintvl);
    values->keepcnt = listener_option_of(untouched, &os_option_keepcnt);
    close(untouched);
    return values;
}

/* Returns the values that the listener's sockets are to have, or NULL. */
static const struct listener_untouched *values_of(
    const struct listener *listener, struct listener_system *system)
{
    return listener->foreign ? listener->recorded : listener_untouched_of(listener, system);
}

void listener_record(struct listener *listener)
{
    if (!listener->foreign || listener->recorded != NULL ||
        listener->address.any.sa_family == AF_UNIX)
        return;
    listener->recorded = arena_alloc(listener->arena, sizeof(*listener->recorded));
    if (listener->recorded != NULL)
        read_options(listener->recorded, listener, listener->fds[0]);
}

void listener_take_record(struct listener *listener, const struct listener *from)
{
    assert(from->recorded == NULL || from->recorded->known);
    if (from->recorded == NULL)
        return;
    listener->recorded = arena_alloc(listener->arena, sizeof(*listener->recorded));
    if (listener->recorded != NULL)
        *listener->recorded = *from->recorded;
}

/* Gives a buffer whose size was set, and maybe `was_locked` so, its size back. Returns whether it
 * differed. */
static bool restore_buffer(const struct listener *listener, int fd, const struct os_option *option,
    int size, bool was_locked, struct log *log)
{
    assert(size > 0);
    if (was_locked && listener_option_of(fd, option) == size)
        return false;
    listener_set_option(listener, fd, option, size / 2, log); /* the kernel shows the double */
    return true;
}

void listener_restore_buffers(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    int locked = listener_option_of(fd, &os_option_buf_lock), free = locked;
    const struct listener_untouched *values;

    if (listener->options.rcvbuf != 0)
        free &= ~OS_RCVBUF_LOCK;
    if (listener->options.sndbuf != 0)
        free &= ~OS_SNDBUF_LOCK;
    values = free != 0 ? values_of(listener, system) : NULL;
    if (values == NULL)
        return;
    if (free & OS_RCVBUF_LOCK)
        system->changed += restore_buffer(listener, fd, OPTION(SOL_SOCKET, SO_RCVBUF),
            values->rcvbuf, values->buf_lock & OS_RCVBUF_LOCK, log);
    if (free & OS_SNDBUF_LOCK)
        system->changed += restore_buffer(listener, fd, OPTION(SOL_SOCKET, SO_SNDBUF),
            values->sndbuf, values->buf_lock & OS_SNDBUF_LOCK, log);
    free &= ~values->buf_lock;
    if (free != 0)
        listener_set_option(listener, fd, &os_option_buf_lock, locked & ~free, log);
}

void listener_restore_untouched(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    const struct listener_untouched *values = values_of(listener, system);
    bool ipv6 = listener->address.any.sa_family == AF_INET6;

    assert(fd >= 0 && (values == NULL || values->known));
    os_listening_detach_programs(fd);
    for (size_t i = 0; values != NULL && i < os_options_untouched_n; i++) {
        const struct os_option *option = &os_options_untouched[i];

        if ((option->level == IPPROTO_IPV6 && !ipv6) ||
            listener_option_of(fd, option) == values->values[i])
            continue;
        listener_set_option(listener, fd, option, values->values[i], log);
        system->changed++;
    }
}

/* Whether another backlog can have been set. Of a unix socket none can be told. */
static bool may_have_lost_backlog(const struct listener *listener, int fd)
{
    unsigned backlog, queue;

    if (os_listening_queue(fd, &backlog, &queue) == -1)
        return errno == ENOSYS;
    return backlog != (unsigned)listener->options.backlog; /* while it listens */
}

void listener_restore(
    struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    assert(system->restores);
    system->changed = 0;
    listener_set_options(listener, fd, system, log);
    if (may_have_lost_backlog(listener, fd) && listen(fd, listener->options.backlog) == -1)
        return; /* broken since, which a worker reports */
    if (system->changed > 0 && listener_is_told(++listener->restored_n))
        log_write(log, LEVEL_ALERT, 0,
            "options of listener %s were changed, and are put back: %u (%u)", listener->text,
            system->changed, listener->restored_n);
}
