/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends datagrams from a socket without a name: the manager knows the sender by the credentials
 * that the kernel adds. The kernel's smallest buffer takes the longest message. */
#include "systemd/notify_socket.h"

#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const char *notify_socket_set(struct notify_socket *manager, const char *text)
{
    size_t n = strlen(text);

    *manager = (struct notify_socket) { .fd = -1 };
    if (*text != '/' && *text != '@')
        return "neither an absolute path nor an abstract name";
    if (n < 2)
        return "no name";
    /* a path ends with a NUL, an abstract name begins with a NUL */
    if (n + (*text == '/') > sizeof(manager->address.sun_path))
        return "too long";
    manager->address.sun_family = AF_UNIX;
    memcpy(manager->address.sun_path, text, n);
    if (*text == '@')
        manager->address.sun_path[0] = '\0';
    manager->length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (size_t)(*text == '/'));
    return NULL;
}

static enum notify_sent classify(int error)
{
    switch (error) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS: /* too many descriptors in flight */
        return NOTIFY_LATER;
    case EBADF:
    case EMSGSIZE:
        return NOTIFY_UNFIT;
    default:
        return NOTIFY_UNREACHABLE;
    }
}

enum notify_sent notify_socket_send(
    struct notify_socket *manager, const char *text, size_t length, int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { .space = "" };
    struct iovec piece = { (char *)text, length };
    struct msghdr message = { .msg_name = &manager->address,
        .msg_namelen = manager->length,
        .msg_iov = &piece,
        .msg_iovlen = 1 };
    ssize_t n;

    assert(manager->length > 0);
    if (manager->fd == -1)
        manager->fd = descriptor_socket(AF_UNIX, SOCK_DGRAM, O_NONBLOCK);
    if (manager->fd == -1)
        return classify(errno);
    if (fd != -1) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control.space);
        control.header = (struct cmsghdr) {
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
        };
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    do
        n = sendmsg(manager->fd, &message, MSG_NOSIGNAL);
    while (n == -1 && errno == EINTR);
    return n != -1 ? NOTIFY_SENT : classify(errno);
}

void notify_socket_close(struct notify_socket *manager)
{
    if (manager->fd != -1)
        close(manager->fd);
    *manager = (struct notify_socket) { .fd = -1 };
}
