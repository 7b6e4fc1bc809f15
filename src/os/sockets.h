/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets, where systems have calls or options of their own.
 *
 * Descriptors stay the caller's. A failure is -1 with errno, or false, and ENOSYS or ENOPROTOOPT
 * where the system has no such call. Nothing waits for a peer. Never logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Lets connect() choose a free port, and not bind(), where the system can. */
void os_socket_spare_port(int fd);
/* Allows bind() addresses of other hosts. */
int os_socket_set_transparent(int fd, sa_family_t family);
/* Returns the bytes of the send queue; 0: unknown. */
size_t os_socket_queued(int fd);
/* Sends a reset, at once or by the following close(). */
void os_socket_reset(int fd);
/* Sends bytes of a file from *offset on, which moves; 0 at the end of the file. */
ssize_t os_socket_sendfile(int fd, int file, off_t *offset, size_t n);
/* Moves bytes between a pipe and a socket, without waiting. */
ssize_t os_socket_splice(int from, int to, size_t n);

/* Whether the other end of a socket of packets sends no more. Where a shut down end reads as empty
 * packets for ever, an empty packet counts as the end, so that no end may send one. */
bool os_socket_is_closed(int fd);
/* Receives as recvmsg(). Received descriptors are close-on-exec after os_rights_take(). */
ssize_t os_rights_receive(int fd, struct msghdr *header);
void os_rights_take(int passed);
/* Makes the kernel refuse descriptors sent to the socket, where possible (Linux 6.16). */
void os_rights_refuse(int fd);
bool os_rights_are_refused(int fd);

/* Connects a unix domain socket to a path that may be longer than an address has room for;
 * ENAMETOOLONG: the path cannot be reached. For a process of one thread. */
int os_socket_connect_path(int fd, const char *path);
/* Gives the user of a unix domain socket's client and, where the system tells it, the pid, else
 * 0. */
int os_socket_peer(int fd, uid_t *uid, pid_t *pid);
/* Opens a pidfd of the client; ESRCH: the client has ended, and the pid may be reused. */
int os_socket_peer_handle(int fd);

/* Gives the limit and the length of the queue of a listening TCP socket. */
int os_listening_queue(int fd, unsigned *backlog, unsigned *queue);
/* Gives the socket's number of dropped packets. */
int os_listening_drops(int fd, unsigned *drops);
/* Removes filter and reuseport programs, able to choose the socket's packets or connections. */
void os_listening_detach_programs(int fd);

struct os_listening {
    struct sockaddr_storage address;
    socklen_t length;
    unsigned long inode; /* the number in /proc/PID/fd */
    uid_t uid;           /* the maker; (uid_t)-1: unknown, as for a unix socket */
};

/* Calls `visit` for each listening socket of this machine, until `visit` returns -1, and returns
 * the last result. The kernel's tables are read from below `root`, "" in the daemon; a missing
 * table is empty. */
int os_listening_visit(
    const char *root, int (*visit)(void *arg, const struct os_listening *listening), void *arg);

/* An option by the kernel's number and the log's name. Number -1: the system lacks the option, so
 * that getsockopt() fails. */
struct os_option {
    int level;
    int number;
    const char *name;
};

extern const struct os_option os_option_keepidle, os_option_keepintvl, os_option_keepcnt;
extern const struct os_option os_option_fastopen, os_option_defer_accept;
/* Bits for buffers with a set size (Linux 5.14). */
extern const struct os_option os_option_buf_lock;
#define OS_SNDBUF_LOCK 1
#define OS_RCVBUF_LOCK 2
/* Options without a directive, settable by unprivileged processes: accepted sockets inherit them,
 * or they stop a listener. */
extern const struct os_option os_options_untouched[];
extern const size_t os_options_untouched_n;
