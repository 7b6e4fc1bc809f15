/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets by POSIX, and getpeereid() of libbsd. Bytes of a file are copied through this process. */
#include "os/sockets.h"

#include <bsd/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* Functions without a call of POSIX ignore their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define COPIED_MOST 32768

#define MISSING { SOL_SOCKET, -1, "" }

const struct os_option os_option_keepidle = MISSING;
const struct os_option os_option_keepintvl = MISSING;
const struct os_option os_option_keepcnt = MISSING;
const struct os_option os_option_fastopen = MISSING;
const struct os_option os_option_defer_accept = MISSING;
const struct os_option os_option_buf_lock = MISSING;
const struct os_option os_options_untouched[] = {
    { SOL_SOCKET, SO_RCVLOWAT, "SO_RCVLOWAT" },
    { SOL_SOCKET, SO_DONTROUTE, "SO_DONTROUTE" },
    { SOL_SOCKET, SO_OOBINLINE, "SO_OOBINLINE" },
};
const size_t os_options_untouched_n =
    sizeof(os_options_untouched) / sizeof(os_options_untouched[0]);

void os_socket_spare_port(int fd)
{
}

void os_socket_give_up_in(int fd, unsigned ms)
{
}

int os_socket_set_transparent(int fd, sa_family_t family)
{
    errno = ENOPROTOOPT;
    return -1;
}

size_t os_socket_queued(int fd)
{
    return 0;
}

void os_socket_reset(int fd)
{
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* Bytes that the socket does not take are read again the next time. */
ssize_t os_socket_sendfile(int fd, int file, off_t *offset, size_t n)
{
    char bytes[COPIED_MOST];
    ssize_t part, sent;

    do
        part = pread(file, bytes, n < sizeof(bytes) ? n : sizeof(bytes), *offset);
    while (part == -1 && errno == EINTR);
    if (part <= 0)
        return part;
    do
        sent = send(fd, bytes, (size_t)part, MSG_NOSIGNAL);
    while (sent == -1 && errno == EINTR);
    if (sent > 0)
        *offset += (off_t)sent;
    return sent;
}

ssize_t os_socket_splice(int from, int to, size_t n)
{
    errno = ENOSYS;
    return -1;
}

/* POLLHUP tells of a closed end. A shut down end reads as empty packets. */
bool os_socket_is_closed(int fd)
{
    struct pollfd state = { .fd = fd, .events = POLLIN };
    char byte;

    if (poll(&state, 1, 0) != 1)
        return false;
    if ((state.revents & (POLLHUP | POLLERR)) != 0)
        return true;
    return recv(fd, &byte, 1, MSG_PEEK) == 0;
}

const int os_rights_cloexec = 0;
const int os_send_more = 0;

void os_rights_refuse(int fd)
{
}

bool os_rights_are_refused(int fd)
{
    return false;
}

static int connect_name(int fd, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (strlen(name) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, name);
    return connect(fd, (struct sockaddr *)&address, sizeof(address));
}

/* A long path is reached by its last name from its folder; the process returns afterwards. */
int os_socket_connect_path(int fd, const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    int before, status = -1, error;

    if (strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path) || slash == NULL)
        return connect_name(fd, path);
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path) + 1, path);
    before = open(".", O_RDONLY | O_CLOEXEC);
    if (before == -1)
        return -1;
    if (chdir(folder) == 0)
        status = connect_name(fd, slash + 1);
    error = errno;
    if (fchdir(before) == -1)
        status = -1;
    else
        errno = error;
    close(before);
    return status;
}

int os_socket_peer(int fd, uid_t *uid, pid_t *pid)
{
    gid_t gid;

    *pid = 0;
    return getpeereid(fd, uid, &gid);
}

bool os_socket_peer_is_in(int fd, gid_t group)
{
    uid_t uid;
    gid_t gid;

    return getpeereid(fd, &uid, &gid) == 0 && gid == group;
}

int os_socket_peer_handle(int fd)
{
    errno = ENOSYS;
    return -1;
}

int os_listening_queue(int fd, unsigned *backlog, unsigned *queue)
{
    errno = ENOSYS;
    return -1;
}

int os_listening_drops(int fd, unsigned *drops)
{
    errno = ENOSYS;
    return -1;
}

void os_listening_detach_programs(int fd)
{
}

int os_listening_visit(
    const char *root, int (*visit)(void *arg, const struct os_listening *listening), void *arg)
{
    return 0;
}
