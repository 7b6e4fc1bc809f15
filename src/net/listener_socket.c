/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket of a listener: bound, also to a unix socket's path; examined; mended.
 *
 * Every process with the descriptor can stop a socket for all processes, by shutdown() or
 * connect(). A TCP socket is disconnected and listens again. A unix socket cannot, and a TCP socket
 * with a changed address must not: a new socket takes the place, and is given to the other holders,
 * unless a service manager would pass on the old one.
 *
 * Never accepts, and never decides when to mend. Invariant: an unlinked path is a stale socket, or
 * ours. */
#include "net/listener_socket.h"

#include "net/listener_options.h"
#include "net/listener_set.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without the flag a socket can only hang up. */
#ifndef POLLRDHUP
#define POLLRDHUP 0
#endif

/* A listener failing to listen again is tried at least once in so many times. */
#define TRIES_MOST 64

COLD void listener_log_failure(struct log *log, int error, const char *format, ...)
{
    struct log_line line = { .level = LEVEL_EMERG, .error = error, .place = log->place };
    va_list args;

    va_start(args, format);
    log_vput(log, &line, format, args);
    va_end(args);
    if (error == EADDRINUSE || error == EADDRNOTAVAIL)
        log_note_temporary(log);
}

/* ---- Paths of unix sockets ---- */

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

/* Removes a path needed by bind(), if a socket without a listening process, left by a crash. */
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

void listener_note_path(struct listener *listener)
{
    struct stat st;

    if (!listener_is_unix(listener) || lstat(listener->address.un.sun_path, &st) == -1 ||
        !S_ISSOCK(st.st_mode))
        return;
    listener->path_device = st.st_dev;
    listener->path_inode = st.st_ino;
}

bool listener_is_path_lost(const struct listener *listener)
{
    struct stat st;

    if (!listener_is_unix(listener) || listener->foreign || listener->kept_n > 0)
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

    assert(listener_is_unix(listener));
    error = probe_path(&listener->address);
    return error == 0 || error == EAGAIN; /* the backlog is full */
}

int listener_unlink_path(const struct listener *listener)
{
    const char *path = listener->address.un.sun_path;

    if (!listener_is_unix(listener) || listener->foreign || listener_is_path_lost(listener))
        return 0;
    return unlink(path) == -1 && errno != ENOENT ? -1 : 0;
}

void listener_unlink(struct listener *listener, struct log *log)
{
    if (listener->stored_n == 0 && listener_unlink_path(listener) == -1)
        log_write(log, LEVEL_ALERT, errno, "unlink() \"%s\" failed", listener->address.un.sun_path);
}

/* ---- Bound ---- */

static int bind_unix(struct listener *listener, int fd, struct log *log)
{
    const char *path = listener->address.un.sun_path;

    if (clear_path(listener, log) == -1)
        return -1;
    if (bind(fd, &listener->address.any, listener->address.length) == -1) {
        listener_log_failure(log, errno, "bind() to %s failed", listener->text);
        return -1;
    }
    if (chmod(path, 0666) == -1) { /* any user may connect, as with nginx */
        log_write(log, LEVEL_EMERG, errno, "chmod() \"%s\" failed", path);
        unlink(path);
        return -1;
    }
    listener_note_path(listener);
    return 0;
}

static int bind_inet(struct listener *listener, int fd, struct log *log)
{
    struct address chosen = listener->address;

    listener_set_bind_options(listener, fd, log);
    if (bind(fd, &chosen.any, chosen.length) == -1) {
        listener_log_failure(log, errno, "bind() to %s failed", listener->text);
        return -1;
    }
    if (address_port(&chosen) != 0)
        return 0;
    /* the following sockets must get an equal port */
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
    if ((listener_is_unix(listener) ? bind_unix : bind_inet)(listener, fd, log) == -1) {
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

    if (listener_is_unix(listener))
        return lstat(address->un.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
               listener_is_path_in_use(listener);
    fd = descriptor_socket(address->any.sa_family, SOCK_STREAM, O_NONBLOCK);
    if (fd == -1)
        return false;
    listener_set_bind_options(listener, fd, log);
    error = bind(fd, &address->any, address->length) == -1 ? errno : 0;
    close(fd);
    return error == EADDRINUSE;
}

int listener_listen(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    listener_set_options(listener, fd, system, log);
    return listen(fd, listener->options.backlog);
}

bool listener_is_broken(const struct listener *listener, int fd)
{
    struct pollfd polled = { .fd = fd, .events = POLLRDHUP };

    assert(fd >= 0);
    if (listener_option_of(fd, OPTION(SOL_SOCKET, SO_ACCEPTCONN)) == 0)
        return true;
    return listener_is_unix(listener) && /* keeps SO_ACCEPTCONN after shutdown() */
           poll(&polled, 1, 0) == 1 && (polled.revents & (POLLHUP | POLLRDHUP)) != 0;
}

void listener_disconnect(int fd)
{
    static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

    assert(fd >= 0);
    descriptor_stop_linger(fd);
    connect(fd, &nowhere, sizeof(nowhere));
}

int listener_revive(struct listener *listener, int fd, struct log *log)
{
    struct address now;

    assert(!listener_is_unix(listener));
    listener_disconnect(fd); /* a port of the kernel's choice is lost */
    listener_change_option(listener, fd, OPTION(SOL_SOCKET, SO_REUSEADDR), 1, log);
    if (bind(fd, &listener->address.any, listener->address.length) == -1 && errno != EINVAL)
        return -1;
    if (address_of_socket(&now, fd) == -1)
        return -1;
    if (address_equal(&now, &listener->address))
        return 0;
    errno = EADDRNOTAVAIL;
    return -1;
}

/* ---- Mended ---- */

/* Puts a new socket in the place of the old; -1 with the failed call, or NULL after a line. */
static int replace_broken(struct listener *listener, int fd, const char **failed, struct log *log)
{
    struct listener_system system = { 0 };
    int fresh = listener_open_socket(listener, log), error;

    assert(fresh != fd && listener->kept_n == 0);
    *failed = NULL;
    if (fresh == -1)
        return -1;
    *failed = "listen";
    if (listener_listen(listener, fresh, &system, log) == 0) {
        *failed = "dup2";
        descriptor_stop_linger(fd);
        if (descriptor_replace(fresh, fd) != -1)
            *failed = NULL;
    }
    error = errno;
    close(fresh);
    errno = error;
    return *failed == NULL ? LISTENER_REPLACED : -1;
}

static int mend_broken(
    struct listener *listener, int fd, bool may_replace, const char **failed, struct log *log)
{
    struct listener_system system = { .restores = true };

    if (!listener_is_unix(listener)) {
        *failed = "bind";
        if (listener_revive(listener, fd, log) == 0) {
            *failed = "listen";
            if (listener_listen(listener, fd, &system, log) == 0)
                return LISTENER_MENDED;
        }
    } else if (!may_replace) {
        log_write(log, LEVEL_EMERG, 0,
            "listener %s was shut down, and only its owner can replace it: restart the socket unit",
            listener->text);
    }
    return may_replace ? replace_broken(listener, fd, failed, log) : -1;
}

int listener_mend(struct listener *listener, int fd, const struct listeners *others,
    bool may_replace, struct log *log)
{
    const char *failed = NULL;
    int result = -1, error;

    assert(fd >= 0 && listener_has(listener, fd));
    assert(!may_replace || listener->kept_n == 0);
    /* a failing listener is tried, and logged, ever less often, and never given up */
    if (listener_is_told(listener->mend_failures) || listener->mend_failures % TRIES_MOST == 0) {
        listener_set_allow(others, listener, true);
        result = mend_broken(listener, fd, may_replace, &failed, log);
        error = errno;
        listener_set_allow(others, listener, false);
        errno = error;
    }
    if (result == -1) {
        listener->mend_failures++;
        if (failed != NULL)
            log_write(log, LEVEL_EMERG, errno, "%s() to %s, which was shut down, failed", failed,
                listener->text);
        return -1;
    }
    listener->mend_failures = 0;
    if (listener_is_told(++listener->mended_n))
        log_write(log, LEVEL_ALERT, 0, "listener %s was shut down, and listens again (%u)",
            listener->text, listener->mended_n);
    return result;
}
