/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket options of a listener: set where different from the configuration, on new and kept
 * sockets; and put back where another process may have set an option without a directive, which
 * accepted sockets inherit and which outlives the process. The right values are an untouched
 * socket's, or a service manager's socket's at the start. Never fails: refusals are logged as
 * alerts. */
#include "net/listener_options.h"

#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>

/* An option, and the value to set. */
struct due {
    const struct os_option *option;
    int value;
};

const struct listener_options listener_defaults = {
    .backlog = 511,
    .fastopen = -1,
    .ipv6only = true,
    .tcp_nodelay = true,
};

const char *listener_lacks(const struct listener_options *options)
{
    if (options->deferred && os_option_defer_accept.number == -1)
        return "deferred";
    if (options->fastopen != -1 && os_option_fastopen.number == -1)
        return "fastopen";
    if ((options->keepidle != 0 || options->keepintvl != 0 || options->keepcnt != 0) &&
        os_option_keepidle.number == -1)
        return "so_keepalive=keepidle:keepintvl:keepcnt";
    return NULL;
}

int listener_option_of(int fd, const struct os_option *option)
{
    int value;
    socklen_t length = sizeof(value);

    return getsockopt(fd, option->level, option->number, &value, &length) == -1 ? 0 : value;
}

static void set_listener_option(const struct listener *listener, int fd,
    const struct os_option *option, int value, struct log *log)
{
    if (setsockopt(fd, option->level, option->number, &value, sizeof(value)) == -1)
        log_write(log, LEVEL_ALERT, errno, "setsockopt(%s, %d) %s failed, ignored", option->name,
            value, listener->text);
}

/* Sets options where different, in this order; returns how many were. */
static unsigned set_differing(
    const struct listener *listener, int fd, const struct due *due, size_t n, struct log *log)
{
    unsigned changed = 0;

    for (const struct due *end = due + n; due < end; due++) {
        int value;
        socklen_t length = sizeof(value);

        if (getsockopt(fd, due->option->level, due->option->number, &value, &length) == -1)
            value = 0;
        if (value == due->value)
            continue;
        set_listener_option(listener, fd, due->option, due->value, log);
        changed++;
    }
    return changed;
}

void listener_change_option(const struct listener *listener, int fd, const struct os_option *option,
    int value, struct log *log)
{
    set_differing(listener, fd, &(struct due) { option, value }, 1, log);
}

void listener_set_bind_options(const struct listener *listener, int fd, struct log *log)
{
    const struct listener_options *options = &listener->options;
    const struct due due[] = {
        { OPTION(SOL_SOCKET, SO_REUSEADDR), 1 },
        { OPTION(SOL_SOCKET, SO_REUSEPORT), options->reuseport || listener->beside },
        { OPTION(IPPROTO_IPV6, IPV6_V6ONLY), options->ipv6only },
    };

    assert(fd >= 0);
    if (!listener_is_unix(listener))
        set_differing(listener, fd, due, listener->address.any.sa_family == AF_INET6 ? 3 : 2, log);
}

static void read_options(struct listener_untouched *values, const struct listener *listener, int fd)
{
    bool ipv6 = listener->address.any.sa_family == AF_INET6;

    assert(os_options_untouched_n <= LISTENER_UNTOUCHED_MOST && !values->known);
    values->known = true;
    values->rcvbuf = listener_option_of(fd, OPTION(SOL_SOCKET, SO_RCVBUF));
    values->sndbuf = listener_option_of(fd, OPTION(SOL_SOCKET, SO_SNDBUF));
    values->buf_lock = listener_option_of(fd, &os_option_buf_lock);
    values->keepidle = listener_option_of(fd, &os_option_keepidle);
    values->keepintvl = listener_option_of(fd, &os_option_keepintvl);
    values->keepcnt = listener_option_of(fd, &os_option_keepcnt);
    for (size_t i = 0; i < os_options_untouched_n; i++) {
        const struct os_option *option = &os_options_untouched[i];
        socklen_t length = sizeof(values->values[i]);

        if ((option->level == IPPROTO_IPV6 && !ipv6) ||
            getsockopt(fd, option->level, option->number, &values->values[i], &length) == -1)
            values->values[i] = 0;
    }
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
    close(untouched);
    return values;
}

/* Returns the values due on the listener's sockets, or NULL. */
static const struct listener_untouched *values_to_restore(
    const struct listener *listener, struct listener_system *system)
{
    return listener->foreign ? listener->recorded : listener_untouched_of(listener, system);
}

void listener_record(struct listener *listener)
{
    if (!listener->foreign || listener->recorded != NULL || listener_is_unix(listener))
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

/* Gives buffers without a configured size back to the kernel, or the size of an untouched
 * socket. */
static void restore_buffers(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    const struct os_option *const options[] = { OPTION(SOL_SOCKET, SO_RCVBUF),
        OPTION(SOL_SOCKET, SO_SNDBUF) };
    const int locks[] = { OS_RCVBUF_LOCK, OS_SNDBUF_LOCK };
    int locked = listener_option_of(fd, &os_option_buf_lock), free = locked;
    const struct listener_untouched *values;

    if (listener->options.rcvbuf != 0)
        free &= ~OS_RCVBUF_LOCK;
    if (listener->options.sndbuf != 0)
        free &= ~OS_SNDBUF_LOCK;
    values = free != 0 ? values_to_restore(listener, system) : NULL;
    for (size_t i = 0; values != NULL && i < countof(options); i++) {
        int size = i == 0 ? values->rcvbuf : values->sndbuf;

        if ((free & locks[i]) == 0 ||
            ((values->buf_lock & locks[i]) && listener_option_of(fd, options[i]) == size))
            continue;
        assert(size > 0);
        set_listener_option(listener, fd, options[i], size / 2, log); /* shown doubled */
        system->changed++;
    }
    if (values != NULL && (free & ~values->buf_lock) != 0)
        set_listener_option(
            listener, fd, &os_option_buf_lock, locked & ~(free & ~values->buf_lock), log);
}

/* Sets options without a directive to earlier values. */
static void restore_untouched(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    const struct listener_untouched *values = values_to_restore(listener, system);
    bool ipv6 = listener->address.any.sa_family == AF_INET6;

    struct due due[LISTENER_UNTOUCHED_MOST];
    size_t n = 0;

    assert(fd >= 0 && (values == NULL || values->known));
    os_listening_detach_programs(fd);
    for (size_t i = 0; values != NULL && i < os_options_untouched_n; i++)
        if (ipv6 || os_options_untouched[i].level != IPPROTO_IPV6)
            due[n++] = (struct due) { &os_options_untouched[i], values->values[i] };
    system->changed += set_differing(listener, fd, due, n, log);
}

/* Sets the options with directives, and for a 0 the system's default, which only foreign processes
 * change. */
static void set_configured(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    const struct listener_options *options = &listener->options;
    const struct listener_untouched *defaults =
        listener->adopted || system->restores ? listener_untouched_of(listener, system) : NULL;
    const struct {
        struct due due;
        int default_value;
    } keepalive[] = {
        { { &os_option_keepidle, options->keepidle }, defaults != NULL ? defaults->keepidle : 0 },
        { { &os_option_keepintvl, options->keepintvl },
            defaults != NULL ? defaults->keepintvl : 0 },
        { { &os_option_keepcnt, options->keepcnt }, defaults != NULL ? defaults->keepcnt : 0 },
    };
    struct due due[countof(keepalive) + 4];
    size_t n = 0;

    assert(listener_lacks(options) == NULL);
    due[n++] = (struct due) { OPTION(SOL_SOCKET, SO_KEEPALIVE),
        options->keepalive == LISTENER_KEEPALIVE_ON };
    for (size_t i = 0; i < countof(keepalive); i++) {
        due[n] = keepalive[i].due;
        if (due[n].value == 0)
            due[n].value = keepalive[i].default_value;
        n += due[n].value > 0;
    }
    due[n++] =
        (struct due) { &os_option_fastopen, options->fastopen == -1 ? 0 : options->fastopen };
    due[n++] = (struct due) { &os_option_defer_accept, options->deferred };
    due[n++] = (struct due) { OPTION(IPPROTO_TCP, TCP_NODELAY), options->tcp_nodelay };
    set_differing(listener, fd, due, n, log);
}

void listener_set_options(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    static const struct timeval least = { .tv_usec = 1 };
    const struct listener_options *options = &listener->options;
    int flags = fcntl(fd, F_GETFL);

    /* accept() never waits, or for a jiffy, when a process has made the socket blocking again */
    if (flags == -1 || ((flags & O_NONBLOCK) == 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1))
        log_write(log, LEVEL_ALERT, errno, "fcntl(O_NONBLOCK) %s failed, ignored", listener->text);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &least, sizeof(least)) == -1)
        log_write(
            log, LEVEL_ALERT, errno, "setsockopt(SO_RCVTIMEO) %s failed, ignored", listener->text);
    descriptor_stop_linger(fd); /* accepted sockets inherit it */
    /* the kernel shows sizes unequal to the set sizes, so there is nothing to compare */
    if (options->rcvbuf != 0)
        set_listener_option(listener, fd, OPTION(SOL_SOCKET, SO_RCVBUF), options->rcvbuf, log);
    if (options->sndbuf != 0)
        set_listener_option(listener, fd, OPTION(SOL_SOCKET, SO_SNDBUF), options->sndbuf, log);
    if (listener_is_unix(listener))
        return;
    if (listener->adopted || system->restores)
        restore_buffers(listener, fd, system, log);
    if (system->restores)
        restore_untouched(listener, fd, system, log);
    set_configured(listener, fd, system, log);
}

void listener_restore(
    struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    unsigned backlog, queue;
    bool lost; /* another backlog has been set, or may have been where the system cannot tell */

    assert(system->restores);
    system->changed = 0;
    listener_set_options(listener, fd, system, log);
    lost = os_listening_queue(fd, &backlog, &queue) == -1
               ? errno == ENOSYS
               : backlog != (unsigned)listener->options.backlog;
    if (lost && listen(fd, listener->options.backlog) == -1)
        return; /* broken since, which a worker reports */
    if (system->changed > 0 && listener_is_told(++listener->restored_n))
        log_write(log, LEVEL_ALERT, 0,
            "options of listener %s were changed, and are put back: %u (%u)", listener->text,
            system->changed, listener->restored_n);
}
