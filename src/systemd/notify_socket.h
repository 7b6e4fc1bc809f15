/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends a message to the service manager: a datagram to the manager's unix socket, perhaps with a
 * descriptor, as in sd_notify(3). Nothing here waits; resending is the caller's. */
#pragma once

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify_socket {
    struct sockaddr_un address;
    socklen_t length; /* the address's; 0: there is none */
    int fd;           /* made with the first message, because descriptors may have been passed to
                       * us; -1: there is none yet */
};

enum notify_sent {
    NOTIFY_SENT,        /* the kernel has it */
    NOTIFY_LATER,       /* the manager does not read, or a resource is short */
    NOTIFY_UNREACHABLE, /* the socket has no reader; errno says more */
    NOTIFY_UNFIT,       /* the message can never be sent; errno says more */
};

/* Takes the address: a path that begins with '/', or a name that begins with '@'. Returns NULL, or
 * the reason of a refusal. */
const char *notify_socket_set(struct notify_socket *manager, const char *text);
enum notify_sent notify_socket_send(
    struct notify_socket *manager, const char *text, size_t length, int fd);
/* Closes the descriptor and forgets the address. */
void notify_socket_close(struct notify_socket *manager);
