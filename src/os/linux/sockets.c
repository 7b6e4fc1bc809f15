/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets by calls and options of Linux, and the tables of /proc/self/net. */
#include "os/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/un.h>
#include <unistd.h>

/* Headers may be older; the numbers are the kernel's. */
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#ifndef TCP_TX_DELAY
#define TCP_TX_DELAY 37
#endif
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif
#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45
#endif
#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US 46
#endif

#define STATE_LISTEN 0x0a
#define UNIX_LISTENS 0x10000

#define OPTION(level, number) { level, number, #number }

const struct os_option os_option_keepidle = OPTION(IPPROTO_TCP, TCP_KEEPIDLE);
const struct os_option os_option_keepintvl = OPTION(IPPROTO_TCP, TCP_KEEPINTVL);
const struct os_option os_option_keepcnt = OPTION(IPPROTO_TCP, TCP_KEEPCNT);
const struct os_option os_option_fastopen = OPTION(IPPROTO_TCP, TCP_FASTOPEN);
const struct os_option os_option_defer_accept = OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT);
const struct os_option os_option_buf_lock = OPTION(SOL_SOCKET, SO_BUF_LOCK);
/* An option unknown to the kernel reads as 0, and stays. Priority follows the type of service. */
const struct os_option os_options_untouched[] = {
    OPTION(SOL_SOCKET, SO_RCVLOWAT),
    OPTION(SOL_SOCKET, SO_DONTROUTE),
    OPTION(SOL_SOCKET, SO_OOBINLINE),
    OPTION(SOL_SOCKET, SO_BUSY_POLL),
    OPTION(SOL_SOCKET, SO_INCOMING_CPU),
    OPTION(SOL_SOCKET, SO_MAX_PACING_RATE),
    OPTION(SOL_SOCKET, SO_BINDTOIFINDEX),
    OPTION(IPPROTO_TCP, TCP_CORK),
    OPTION(IPPROTO_TCP, TCP_LINGER2),
    OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT),
    OPTION(IPPROTO_TCP, TCP_SAVE_SYN),
    OPTION(IPPROTO_TCP, TCP_SYNCNT),
    OPTION(IPPROTO_TCP, TCP_TX_DELAY),
    OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT),
    OPTION(IPPROTO_TCP, TCP_RTO_MAX_MS),
    OPTION(IPPROTO_TCP, TCP_RTO_MIN_US),
    OPTION(IPPROTO_TCP, TCP_DELACK_MAX_US),
    OPTION(IPPROTO_IP, IP_MINTTL),
    OPTION(IPPROTO_IP, IP_MTU_DISCOVER),
    OPTION(IPPROTO_IP, IP_RECVERR),
    OPTION(IPPROTO_IP, IP_TOS),
    OPTION(IPPROTO_IP, IP_TTL),
    OPTION(IPPROTO_IP, IP_UNICAST_IF),
    OPTION(IPPROTO_IPV6, IPV6_DONTFRAG),
    OPTION(IPPROTO_IPV6, IPV6_MINHOPCOUNT),
    OPTION(IPPROTO_IPV6, IPV6_MTU_DISCOVER),
    OPTION(IPPROTO_IPV6, IPV6_RECVERR),
    OPTION(IPPROTO_IPV6, IPV6_TCLASS),
    OPTION(IPPROTO_IPV6, IPV6_UNICAST_HOPS),
    OPTION(IPPROTO_IPV6, IPV6_UNICAST_IF),
    OPTION(SOL_SOCKET, SO_PRIORITY),
};
const size_t os_options_untouched_n =
    sizeof(os_options_untouched) / sizeof(os_options_untouched[0]);

static const int on = 1, off;

void os_socket_spare_port(int fd)
{
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)); /* IPv6 sockets too */
}

void os_socket_give_up_in(int fd, unsigned ms)
{
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

int os_socket_set_transparent(int fd, sa_family_t family)
{
    if (family == AF_INET6)
        return setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &on, sizeof(on));
    return setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on));
}

size_t os_socket_queued(int fd)
{
    int n;

    return ioctl(fd, SIOCOUTQ, &n) == -1 || n < 0 ? 0 : (size_t)n;
}

/* A disconnect is a reset: workers need no SO_LINGER, by which a foreign process could block them.
 * The family is the whole address, but older Landlock wants more. */
void os_socket_reset(int fd)
{
    static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

    if (connect(fd, &nowhere, sizeof(nowhere.sa_family)) == -1 && errno == EINVAL)
        connect(fd, &nowhere, sizeof(nowhere));
}

ssize_t os_socket_sendfile(int fd, int file, off_t *offset, size_t n)
{
    ssize_t sent;

    do
        sent = sendfile(fd, file, offset, n);
    while (sent == -1 && errno == EINTR);
    return sent;
}

ssize_t os_socket_splice(int from, int to, size_t n)
{
    ssize_t moved;

    do
        moved = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (moved == -1 && errno == EINTR);
    return moved;
}

/* POLLRDHUP distinguishes a closed end from a waiting packet. */
bool os_socket_is_closed(int fd)
{
    struct pollfd state = { .fd = fd, .events = POLLRDHUP };

    return poll(&state, 1, 0) == 1 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

const int os_rights_cloexec = MSG_CMSG_CLOEXEC;
/* Linux keeps such bytes for 200 ms at most. */
const int os_send_more = MSG_MORE;

void os_rights_refuse(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

bool os_rights_are_refused(int fd)
{
    int passes = 1;
    socklen_t n = sizeof(passes);

    return getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &passes, &n) == 0 && passes == 0;
}

/* A long path is reached by a descriptor of the file, through a short name in /proc. */
int os_socket_connect_path(int fd, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int file = -1, status, error;

    if (strlen(path) < sizeof(address.sun_path)) {
        strcpy(address.sun_path, path);
    } else {
        file = open(path, O_PATH | O_CLOEXEC);
        if (file == -1)
            return -1;
        snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
    }
    status = connect(fd, (struct sockaddr *)&address, sizeof(address));
    error = errno;
    if (file != -1)
        close(file);
    errno = error;
    return status;
}

int os_socket_peer(int fd, uid_t *uid, pid_t *pid)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == -1)
        return -1;
    *uid = peer.uid;
    *pid = peer.pid;
    return 0;
}

/* The further groups since Linux 4.13. */
bool os_socket_peer_is_in(int fd, gid_t group)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    gid_t *groups;
    bool found;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == -1)
        return false;
    found = peer.gid == group;
    length = NGROUPS_MAX * sizeof(*groups);
    groups = malloc(length);
    if (groups == NULL || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) == -1)
        length = 0;
    for (size_t i = 0; i < length / sizeof(*groups); i++)
        found = found || groups[i] == group;
    free(groups);
    return found;
}

/* Since Linux 6.5. */
int os_socket_peer_handle(int fd)
{
    int pidfd;
    socklen_t length = sizeof(pidfd);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
        return pidfd;
    if (errno == EINVAL)
        errno = ESRCH;
    return -1;
}

/* For a listening socket tcpi_sacked is the backlog, and tcpi_unacked the queue. */
int os_listening_queue(int fd, unsigned *backlog, unsigned *queue)
{
    struct tcp_info info = { 0 };
    socklen_t length = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == -1)
        return -1;
    *backlog = info.tcpi_sacked;
    *queue = info.tcpi_unacked;
    return 0;
}

int os_listening_drops(int fd, unsigned *drops)
{
    uint32_t memory[SK_MEMINFO_VARS] = { 0 };
    socklen_t length = sizeof(memory);

    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) == -1)
        return -1;
    *drops = memory[SK_MEMINFO_DROPS];
    return 0;
}

void os_listening_detach_programs(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof(off));
    setsockopt(fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &off, sizeof(off));
}

/* Reads "0100007F:1F90", words of 32 bits in the machine's order, and a port. */
static bool parse_hex_address(const char *text, struct os_listening *out)
{
    struct sockaddr_in in = { .sin_family = AF_INET };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
    size_t digits = strcspn(text, ":");
    uint32_t words[4] = { 0 };
    unsigned port;

    if ((digits != 8 && digits != 32) || sscanf(text + digits, ":%4X", &port) != 1)
        return false;
    for (size_t i = 0; i < digits / 8; i++)
        if (sscanf(text + 8 * i, "%8X", &words[i]) != 1)
            return false;
    in.sin_addr.s_addr = words[0];
    memcpy(&in6.sin6_addr, words, sizeof(words));
    in.sin_port = in6.sin6_port = htons((in_port_t)port);
    out->length = digits == 8 ? sizeof(in) : sizeof(in6);
    memcpy(&out->address, digits == 8 ? (void *)&in : (void *)&in6, out->length);
    return true;
}

enum line_status { LINE_LISTENS, LINE_IGNORED, LINE_LAST };

/* Parses a line of tcp or tcp6. The kernel lists listening sockets first; the rest is not read. */
static enum line_status parse_tcp_line(const char *line, struct os_listening *found)
{
    char local[40];
    unsigned state, uid;

    if (sscanf(line, " %*d: %39s %*s %x %*s %*s %*s %u %*d %lu", local, &state, &uid,
            &found->inode) != 4)
        return LINE_IGNORED; /* the heading */
    if (state != STATE_LISTEN)
        return LINE_LAST;
    found->uid = uid;
    return parse_hex_address(local, found) ? LINE_LISTENS : LINE_IGNORED;
}

static enum line_status parse_unix_line(const char *line, struct os_listening *found)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    unsigned flags, type;
    int path_at = 0;
    size_t n;

    if (sscanf(line, "%*s %*x %*x %x %x %*x %lu %n", &flags, &type, &found->inode, &path_at) != 3 ||
        path_at == 0 || line[path_at] != '/')
        return LINE_IGNORED;
    n = strlen(line + path_at);
    if (n >= sizeof(un.sun_path) || (type == SOCK_STREAM && (flags & UNIX_LISTENS) == 0))
        return LINE_IGNORED;
    memcpy(un.sun_path, line + path_at, n + 1);
    found->length = sizeof(un);
    memcpy(&found->address, &un, sizeof(un));
    return LINE_LISTENS;
}

int os_listening_visit(
    const char *root, int (*visit)(void *arg, const struct os_listening *listening), void *arg)
{
    static const struct {
        const char *name;
        enum line_status (*parse)(const char *line, struct os_listening *found);
    } tables[] = { { "tcp", parse_tcp_line }, { "tcp6", parse_tcp_line },
        { "unix", parse_unix_line } };
    char path[PATH_MAX], *line = NULL;
    int status = 0;
    size_t size = 0;

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && status == 0; i++) {
        enum line_status parsed = LINE_IGNORED;
        FILE *file;

        if (snprintf(path, sizeof(path), "%s/proc/self/net/%s", root, tables[i].name) >=
                (int)sizeof(path) ||
            (file = fopen(path, "re")) == NULL)
            continue;
        while (status == 0 && parsed != LINE_LAST && getline(&line, &size, file) != -1) {
            struct os_listening found = { .uid = (uid_t)-1 };

            line[strcspn(line, "\n")] = '\0';
            parsed = tables[i].parse(line, &found);
            if (parsed == LINE_LISTENS)
                status = visit(arg, &found);
        }
        fclose(file);
    }
    free(line);
    return status;
}
