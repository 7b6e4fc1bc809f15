/* SPDX-License-Identifier: BSD-2-Clause */
/* The two halves of SCM_RIGHTS. A message has one descriptor at most; an untrusted sender may add
 * more, and all are received: the kernel closes a descriptor without room as the sender wants, and
 * a socket with SO_LINGER waits for a peer that never reads. */
#include "channel/fd_passing.h"

#include "os/descriptor.h"
#include "os/sockets.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PASSED_MAX 253 /* descriptors of a message, by the kernel (SCM_MAX_FD) */
#define TIME_MAX 64    /* bytes of the time of a packet, as each system has it */
/* Packets in a socket, with room to spare. */
#define PACKETS_MAX 1024

union fd_control {
    struct cmsghdr header;
    char room[CMSG_SPACE(PASSED_MAX * sizeof(int)) + CMSG_SPACE(TIME_MAX)];
};

ssize_t fd_send(int socket, const void *bytes, size_t n, int passed)
{
    struct iovec piece = { (void *)bytes, n };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1 };
    union fd_control control;
    ssize_t sent;

    assert(n > 0); /* a descriptor without a byte does not arrive */
    if (passed != -1) {
        memset(&control, 0, CMSG_SPACE(sizeof(int)));
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(sizeof(int));
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

void fd_widen(int socket, int bytes)
{
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void fd_send_slowly(int socket, int seconds)
{
    struct timeval limit = { .tv_sec = seconds };

    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    fcntl(socket, F_SETFL, 0);
}

/* Takes a part's descriptors: *passed is the first of the message, the rest is discarded. */
static void take_descriptors(const struct cmsghdr *part, int *passed)
{
    const unsigned char *bytes = CMSG_DATA(part);
    size_t n = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, bytes + i * sizeof(int), sizeof(int));
        if (os_rights_cloexec ==
            0) /* no other thread runs programs, which would inherit the descriptor */
            descriptor_set_inherited(fd, false);
        if (*passed == -1)
            *passed = fd;
        else
            descriptor_discard(fd);
    }
}

ssize_t fd_receive(int socket, void *bytes, size_t n, int *passed, bool *more)
{
    struct iovec piece = { bytes, n };
    union fd_control control;
    struct msghdr header = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.room),
    };
    ssize_t received = recvmsg(socket, &header, os_rights_cloexec);
    struct cmsghdr *part = received >= 0 ? CMSG_FIRSTHDR(&header) : NULL;

    *passed = -1;
    if (more != NULL)
        *more = part != NULL;
    for (; part != NULL; part = CMSG_NXTHDR(&header, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
            take_descriptors(part, passed);
    return received;
}

/* Marks packets with the time: the end, unlike an empty packet, has none. */
static void mark_packets(int socket)
{
    setsockopt(socket, SOL_SOCKET, SO_TIMESTAMP, &(int) { 1 }, sizeof(int));
}

/* Whether the system marks packets of such sockets, sent before or after. */
static bool has_marks(void)
{
    int ends[2], passed;
    bool more = false;
    char byte;

    if (descriptor_socketpair(AF_UNIX, SOCK_SEQPACKET, O_NONBLOCK, ends) == -1)
        return false;
    if (send(ends[0], "", 0, 0) == 0) {
        mark_packets(ends[1]);
        fd_receive(ends[1], &byte, 1, &passed, &more);
    }
    close(ends[0]);
    close(ends[1]);
    return more;
}

/* Discards waiting packets. Without marks only the number of reads tells the end. */
static void discard_packets(int socket)
{
    bool marked = has_marks(), more = true;

    mark_packets(socket);
    for (int i = 0; i < PACKETS_MAX && (more || !marked); i++) {
        char byte;
        int passed;

        if (fd_receive(socket, &byte, 1, &passed, &more) == -1)
            break;
        if (passed != -1)
            descriptor_discard(passed);
    }
}

void fd_close_socket(int socket)
{
    assert(socket >= 0);
    if (!os_rights_are_refused(socket)) {
        shutdown(socket, SHUT_RDWR);
        discard_packets(socket);
    }
    close(socket);
}
