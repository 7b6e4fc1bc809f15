/* SPDX-License-Identifier: BSD-2-Clause */
/* The two halves of SCM_RIGHTS. A message holds at most one descriptor; a receiver names the length
 * of one, without the padding, so that the kernel closes what a sender adds beyond it. */
#include "process/fd_passing.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union fd_control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

ssize_t fd_send(int socket, const void *bytes, size_t n, int passed)
{
    struct iovec piece = { (void *)bytes, n };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1 };
    union fd_control control;
    ssize_t sent;

    assert(n > 0); /* a descriptor without a byte does not arrive */
    if (passed != -1) {
        memset(&control, 0, sizeof(control));
        header.msg_control = &control;
        header.msg_controllen = sizeof(control.room);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &passed, sizeof(int));
    }
    sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    if (sent == -1 && errno == ECONNRESET) /* the receiver has closed with unread messages */
        errno = EPIPE;
    return sent;
}

ssize_t fd_receive(int socket, void *bytes, size_t n, int *passed)
{
    struct iovec piece = { bytes, n };
    union fd_control control;
    struct msghdr header = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = CMSG_LEN(sizeof(int)), /* the padding has room for another one */
    };
    ssize_t received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = received >= 0 ? CMSG_FIRSTHDR(&header) : NULL;

    *passed = -1;
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(passed, CMSG_DATA(c), sizeof(int));
    return received;
}
