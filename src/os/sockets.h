/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets, by calls and options of the system's own. Descriptors stay the caller's. A failure is -1
 * with errno, or false; ENOSYS or ENOPROTOOPT: no such call. Never waits for a peer, or logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Lets connect() choose a free port instead of bind(), where the system can. */
void os_socket_spare_port(int fd);
/* Allows bind() addresses of other hosts. */
int os_socket_set_transparent(int fd, sa_family_t family);
/* Ends a TCP connection whose peer acknowledges nothing for so long, where the system can. */
void os_socket_give_up_in(int fd, unsigned ms);
/* The flag of send() for bytes that may wait for the next ones; 0: the system has none. */
extern const int os_send_more;
/* Returns the bytes of the send queue; 0: unknown. */
size_t os_socket_queued(int fd);
/* Sends a reset, at once or by the following close(). */
void os_socket_reset(int fd);
/* Sends bytes of a file from *offset on, which moves; 0 at the end of the file. */
ssize_t os_socket_sendfile(int fd, int file, off_t *offset, size_t n);
/* Moves bytes between a pipe and a socket, without waiting. */
ssize_t os_socket_splice(int from, int to, size_t n);
/* Whether the other end of a socket of packets sends no more; empty packets count as the end. */
bool os_socket_is_closed(int fd);
/* The flag of recvmsg() that makes received descriptors close-on-exec; 0: the system has none. */
extern const int os_rights_cloexec;
/* Makes the kernel refuse descriptors sent to the socket (Linux 6.16). */
void os_rights_refuse(int fd);
bool os_rights_are_refused(int fd);
/* Connects to a path of any length; ENAMETOOLONG: unreachable. For a process of one thread. */
int os_socket_connect_path(int fd, const char *path);
/* Gives the user of a unix domain socket's client, and the pid or 0. */
int os_socket_peer(int fd, uid_t *uid, pid_t *pid);
/* Whether the group is the client's own or, where the system tells them, a further group. */
bool os_socket_peer_is_in(int fd, gid_t group);
/* Opens a pidfd of the client; ESRCH: the client has ended. */
int os_socket_peer_handle(int fd);
/* Gives the limit and the length of the queue of a listening TCP socket. */
int os_listening_queue(int fd, unsigned *backlog, unsigned *queue);
/* Gives the socket's number of dropped packets. */
int os_listening_drops(int fd, unsigned *drops);
/* Removes filter and reuseport programs, which choose the socket's packets or connections. */
void os_listening_detach_programs(int fd);

struct os_listening {
    struct sockaddr_storage address;
    socklen_t length;
    unsigned long inode; /* the number in /proc/PID/fd */
    uid_t uid;           /* the maker; (uid_t)-1: unknown, as for a unix socket */
};

/* Calls `visit` for each listening socket of this machine, until -1, and returns the last result.
 * The kernel's tables are below `root`, "" in the daemon; a missing table is empty. */
int os_listening_visit(
    const char *root, int (*visit)(void *arg, const struct os_listening *listening), void *arg);

/* An option by the kernel's number (-1: missing, so that getsockopt() fails) and the log's name. */
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
/* Options without a directive, settable by any process, that change listener or connections. */
extern const struct os_option os_options_untouched[];
extern const size_t os_options_untouched_n;
