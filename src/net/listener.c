/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of one address: bound, adopted, made to listen, closed. Responsible for the paths of unix
 * sockets too. Never accepts. Invariant: a failed open leaves no socket that was not open
 * before. */
#include "net/listener.h"

#include "net/listener_options.h"
#include "net/listener_set.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_unix(const struct listener *listener)
{
    return listener->address.any.sa_family == AF_UNIX;
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
    if (is_unix(listener)) /* several sockets cannot share a path */
        listener->options.reuseport = false;
    address_format_zone(&listener->address, listener->text);
    return listener;
}

/* Logs that bind() or listen() has failed. An address that somebody else has, or that no interface
 * has yet, may be free or there later. */
static void PRINTF_FORMAT(3, 4) log_failure(struct log *log, int error, const char *format, ...)
{
    struct log_line line = { .level = LEVEL_EMERG, .error = error, .place = log->place };
    va_list args;

    va_start(args, format);
    log_vput(log, &line, format, args);
    va_end(args);
    if (error == EADDRINUSE || error == EADDRNOTAVAIL)
        log_note_temporary(log);
}

/* Connects to the path of a unix socket: returns 0 or an errno. */
static int probe_path(const struct address *address)
{
    int fd = descriptor_socket(AF_UNIX, SOCK_STREAM, O_NONBLOCK);
    int error = 0;

    if (fd == -1 || connect(fd, &address->any, address->length) == -1)
        error = errno;
    if (fd != -1)
        close(fd);
    return error;
}

/* Removes a path that bind() needs, where it is a socket that no process listens on: a crash left
 * it. */
static int clear_path(const struct listener *listener, struct log *log)
{
    const char *path = listener->address.un.sun_path;
    struct stat st;
    int error;

    if (lstat(path, &st) == -1)
        return 0; /* no path, or bind() will say why not */
    if (!S_ISSOCK(st.st_mode)) {
        log_write(log, LEVEL_EMERG, 0, "bind() to %s failed: the path exists and is not a socket",
            listener->text);
        return -1;
    }
    error = probe_path(&listener->address);
    switch (error) {
    case 0:
    case EAGAIN:     /* the backlog is full */
    case EPROTOTYPE: /* no stream socket */
        log_write(log, LEVEL_EMERG, 0, "bind() to %s failed: the socket is in use", listener->text);
        log_note_temporary(log);
        return -1;
    case ENOENT:
        return 0;
    case ECONNREFUSED:
        if (unlink(path) == 0 || errno == ENOENT)
            return 0;
        log_write(log, LEVEL_EMERG, errno, "unlink() stale %s failed", listener->text);
        return -1;
    default:
        log_write(log, LEVEL_EMERG, error, "connect() to %s, to see if it is in use, failed",
            listener->text);
        return -1;
    }
}

/* Notes which file the path of a unix socket is. */
static void note_path(struct listener *listener)
{
    struct stat st;

    if (!is_unix(listener) || lstat(listener->address.un.sun_path, &st) == -1 ||
        !S_ISSOCK(st.st_mode))
        return;
    listener->path_device = st.st_dev;
    listener->path_inode = st.st_ino;
}

static int bind_unix(struct listener *listener, int fd, struct log *log)
{
    const char *path = listener->address.un.sun_path;

    if (clear_path(listener, log) == -1)
        return -1;
    if (bind(fd, &listener->address.any, listener->address.length) == -1) {
        log_failure(log, errno, "bind() to %s failed", listener->text);
        return -1;
    }
    if (chmod(path, 0666) == -1) { /* any user may connect, as with nginx */
        log_write(log, LEVEL_EMERG, errno, "chmod() \"%s\" failed", path);
        unlink(path);
        return -1;
    }
    note_path(listener);
    return 0;
}

static int bind_inet(struct listener *listener, int fd, struct log *log)
{
    struct address chosen = listener->address;

    listener_set_bind_options(listener, fd, log);
    if (bind(fd, &chosen.any, chosen.length) == -1) {
        log_failure(log, errno, "bind() to %s failed", listener->text);
        return -1;
    }
    if (address_port(&chosen) != 0)
        return 0;
    /* the sockets that follow must get the same port */
    if (getsockname(fd, &chosen.any, &chosen.length) == -1) {
        log_write(log, LEVEL_EMERG, errno, "getsockname() of %s failed", listener->text);
        return -1;
    }
    listener_set_move(listener, &chosen);
    address_format_zone(&chosen, listener->text);
    return 0;
}

int listener_open_socket(struct listener *listener, struct log *log)
{
    int family = listener->address.any.sa_family;
    int fd = descriptor_socket(family, SOCK_STREAM, O_NONBLOCK);

    if (fd == -1) {
        log_write(log, LEVEL_EMERG, errno, "socket() %s failed", listener->text);
        return -1;
    }
    if ((is_unix(listener) ? bind_unix : bind_inet)(listener, fd, log) == -1) {
        close(fd);
        return -1;
    }
    return fd;
}

bool listener_is_taken(const struct listener *listener, struct log *log)
{
    const struct address *address = &listener->address;
    struct stat st;
    int fd, error;

    if (is_unix(listener)) {
        if (lstat(address->un.sun_path, &st) == -1 || !S_ISSOCK(st.st_mode))
            return false;
        error = probe_path(address);
        return error == 0 || error == EAGAIN;
    }
    fd = descriptor_socket(address->any.sa_family, SOCK_STREAM, O_NONBLOCK);
    if (fd == -1)
        return false;
    listener_set_bind_options(listener, fd, log);
    error = bind(fd, &address->any, address->length) == -1 ? errno : 0;
    close(fd);
    return error == EADDRINUSE;
}

static bool has_same_address(const struct listener *from, const struct listener *listener)
{
    return address_equal(&from->address, &listener->address);
}

/* Lets further sockets be bound to the port of an adopted socket that was bound without
 * reuseport. */
static void allow_reuseport(
    const struct listener *listener, const struct listener *from, int allowed)
{
    if (from == NULL || from->options.reuseport || !listener->options.reuseport)
        return;
    for (unsigned i = 0; i < from->fd_n; i++) /* if it fails, the next bind() does */
        setsockopt(from->fds[i], SOL_SOCKET, SO_REUSEPORT, &allowed, sizeof(allowed));
}

/* Gives up reuseport where the service manager has passed fewer sockets than there are worker
 * slots: a port that another user has bound cannot be bound once more. */
static void share_passed_sockets(
    struct listener *listener, unsigned passed, unsigned slots, struct log *log)
{
    if (!listener->options.reuseport || passed >= slots)
        return;
    log_write(log, LEVEL_WARN, 0,
        "\"reuseport\" of %s is ignored: the service manager has passed %u sockets for %u workers, "
        "which share them",
        listener->text, passed, slots);
    listener->options.reuseport = false;
}

bool listener_overlaps(const struct listener *a, const struct listener *b)
{
    return a->address.any.sa_family == b->address.any.sa_family && !is_unix(a) &&
           address_port(&a->address) == address_port(&b->address) &&
           address_is_wildcard(&a->address) != address_is_wildcard(&b->address);
}

void listener_allow_others(const struct listener *listener, bool allow)
{
    int value = allow || listener->options.reuseport;

    /* with several sockets it is allowed anyway; if it fails, the next bind() or listen() does */
    if (listener->fd_n == 1 && listener->fds[0] != -1)
        setsockopt(listener->fds[0], SOL_SOCKET, SO_REUSEPORT, &value, sizeof(value));
}

/* Takes over what is known of the path. */
static void take_path(struct listener *listener, const struct listener *from)
{
    listener->path_device = from->path_device;
    listener->path_inode = from->path_inode;
    if (listener->path_inode == 0) /* another process has bound it */
        note_path(listener);
}

int listener_open(
    struct listener *listener, const struct listener *from, unsigned slots, struct log *log)
{
    unsigned n = listener->options.reuseport ? slots : 1, previous_n;

    assert(slots > 0);
    assert(from == NULL || has_same_address(from, listener));
    if (from != NULL && from->path_lost) {
        assert(is_unix(from) && from->kept_n == 0);
        log_write(log, LEVEL_ALERT, 0, "the path of %s was deleted or replaced: it is bound again",
            listener->text);
        from = NULL;
    }
    previous_n = from != NULL ? from->fd_n : 0;
    if (from != NULL) {
        take_path(listener, from);
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

int listener_listen(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    listener_set_options(listener, fd, system, log);
    return listen(fd, listener->options.backlog);
}

/* Lets a kept socket listen that somebody has shut down. */
static int revive_kept(struct listener *listener, int fd, struct log *log)
{
    return listener->adopted && !is_unix(listener) && listener_is_broken(listener, fd)
               ? listener_revive(listener, fd, log)
               : 0;
}

/* Tells that a kept socket stays as it is: the kernel does not change ipv6only of a bound one. */
static void note_ipv6only(const struct listener *listener, int fd, struct log *log)
{
    bool wanted = listener->options.ipv6only;

    if (listener->adopted && listener->address.any.sa_family == AF_INET6 &&
        listener_option_of(fd, OPTION(IPPROTO_IPV6, IPV6_V6ONLY)) != wanted)
        log_write(log, LEVEL_WARN, 0,
            "ipv6only=%s is ignored: %s is open already, and is kept as it is",
            wanted ? "on" : "off", listener->text);
}

int listener_commit(struct listener *listener, struct listener_system *system, struct log *log)
{
    int result = 0;

    listener_check(listener);
    listener_record(listener); /* before options of ours are set */
    for (unsigned i = 0; i < listener->fd_n; i++) {
        int fd = listener->fds[i];

        if (fd == -1)
            continue;
        note_ipv6only(listener, fd, log);
        if (revive_kept(listener, fd, log) == -1 ||
            listener_listen(listener, fd, system, log) == -1) {
            log_failure(log, errno, "listen() to %s, backlog %d failed", listener->text,
                listener->options.backlog);
            result = -1;
        }
    }
    return result;
}

bool listener_has(const struct listener *listener, int fd)
{
    for (unsigned i = 0; i < listener->fd_n; i++)
        if (listener->fds[i] == fd)
            return true;
    return false;
}

int listener_add(struct listener *listener, int fd)
{
    unsigned n = listener->fd_n;
    int *fds = arena_alloc(listener->arena, (n + 1) * sizeof(*fds));

    assert(fd >= 0 && !listener_has(listener, fd));
    if (fds == NULL)
        return -1;
    for (unsigned i = 0; i < n; i++)
        fds[i] = listener->fds[i];
    fds[n] = fd;
    listener->fds = fds;
    listener->fd_n = n + 1;
    return 0;
}

void listener_close(struct listener *listener)
{
    listener_check(listener);
    for (unsigned i = 0; i < listener->fd_n; i++) {
        if (listener->fds[i] != -1 && i >= listener->kept_n)
            descriptor_discard(listener->fds[i]);
        listener->fds[i] = -1;
    }
}

void listener_close_socket(struct listener *listener, int fd)
{
    assert(fd >= 0);
    listener_check(listener);
    for (unsigned i = 0; i < listener->fd_n; i++)
        if (listener->fds[i] == fd) {
            listener->fds[i] = -1;
            if (i >= listener->kept_n)
                descriptor_discard(fd);
        }
}

bool listener_is_path_lost(const struct listener *listener)
{
    struct stat st;

    listener_check(listener);
    if (!is_unix(listener) || listener->foreign || listener->kept_n > 0)
        return false;
    if (lstat(listener->address.un.sun_path, &st) == -1)
        return errno == ENOENT || errno == ENOTDIR;
    if (listener->path_inode == 0)
        return !S_ISSOCK(st.st_mode);
    return st.st_dev != listener->path_device || st.st_ino != listener->path_inode;
}

bool listener_is_path_in_use(const struct listener *listener)
{
    int error;

    assert(is_unix(listener));
    error = probe_path(&listener->address);
    return error == 0 || error == EAGAIN; /* the backlog is full */
}

/* Unlinks the path if it still leads to our socket; -1 with errno. */
static int unlink_socket(const struct listener *listener)
{
    const char *path = listener->address.un.sun_path;

    if (!is_unix(listener) || listener->foreign || listener_is_path_lost(listener))
        return 0;
    return unlink(path) == -1 && errno != ENOENT ? -1 : 0;
}

void listener_undo_open(struct listener *listener, const struct listener *from)
{
    assert(from == NULL || has_same_address(from, listener));
    listener_check(listener);
    allow_reuseport(listener, from, 0);
    for (unsigned i = 0; i < listener->fd_n; i++) {
        int fd = listener->fds[i];

        listener->fds[i] = -1;
        if (fd == -1 || (from != NULL && listener_has(from, fd)))
            continue;
        descriptor_discard(fd);
        if (!listener->adopted)
            unlink_socket(listener);
    }
}

void listener_hand_over(struct listener *listener, const struct listener *next)
{
    assert(next != listener && has_same_address(listener, next));
    for (unsigned i = 0; i < listener->fd_n; i++) {
        if (listener->fds[i] != -1 && i >= listener->kept_n &&
            !listener_has(next, listener->fds[i]))
            descriptor_discard(listener->fds[i]);
        listener->fds[i] = -1;
    }
}

void listener_unlink(struct listener *listener, struct log *log)
{
    if (listener->stored_n == 0 && unlink_socket(listener) == -1)
        log_write(log, LEVEL_ALERT, errno, "unlink() \"%s\" failed", listener->address.un.sun_path);
}

bool listener_is_open(const struct listener *listener)
{
    for (unsigned i = 0; i < listener->fd_n; i++)
        if (listener->fds[i] != -1)
            return true;
    return false;
}

void listener_check(const struct listener *listener)
{
    assert(listener->arena != NULL && (listener->fds != NULL || listener->fd_n == 0));
    assert(!is_unix(listener) || !listener->options.reuseport);
    for (unsigned i = 0; i < listener->fd_n; i++)
        assert(listener->fds[i] >= -1);
}
