/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a TCP listener that POSIX lacks: times of the keep-alive, Fast Open, and accepting
 * that is deferred until there is input. Linux has all of them. */
#include "base/compiler.h"
#include "net/listener_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

/* Headers may be older; the numbers are the kernel's. */
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
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

#define ROW(level, number) { level, number, #number }
/* An option that this kernel does not know reads as 0 on every socket, and stays alone. Priority
 * follows the type of service, and is last. */
const struct socket_option listener_untouched_options[] = {
    ROW(SOL_SOCKET, SO_RCVLOWAT),
    ROW(SOL_SOCKET, SO_DONTROUTE),
    ROW(SOL_SOCKET, SO_OOBINLINE),
    ROW(SOL_SOCKET, SO_BUSY_POLL),
    ROW(SOL_SOCKET, SO_INCOMING_CPU),
    ROW(SOL_SOCKET, SO_MAX_PACING_RATE),
    ROW(SOL_SOCKET, SO_BINDTOIFINDEX),
    ROW(IPPROTO_TCP, TCP_CORK),
    ROW(IPPROTO_TCP, TCP_LINGER2),
    ROW(IPPROTO_TCP, TCP_NOTSENT_LOWAT),
    ROW(IPPROTO_TCP, TCP_SAVE_SYN),
    ROW(IPPROTO_TCP, TCP_SYNCNT),
    ROW(IPPROTO_TCP, TCP_TX_DELAY),
    ROW(IPPROTO_TCP, TCP_USER_TIMEOUT),
    ROW(IPPROTO_TCP, TCP_RTO_MAX_MS),
    ROW(IPPROTO_TCP, TCP_RTO_MIN_US),
    ROW(IPPROTO_TCP, TCP_DELACK_MAX_US),
    ROW(IPPROTO_IP, IP_MINTTL),
    ROW(IPPROTO_IP, IP_MTU_DISCOVER),
    ROW(IPPROTO_IP, IP_RECVERR),
    ROW(IPPROTO_IP, IP_TOS),
    ROW(IPPROTO_IP, IP_TTL),
    ROW(IPPROTO_IP, IP_UNICAST_IF),
    ROW(IPPROTO_IPV6, IPV6_DONTFRAG),
    ROW(IPPROTO_IPV6, IPV6_MINHOPCOUNT),
    ROW(IPPROTO_IPV6, IPV6_MTU_DISCOVER),
    ROW(IPPROTO_IPV6, IPV6_RECVERR),
    ROW(IPPROTO_IPV6, IPV6_TCLASS),
    ROW(IPPROTO_IPV6, IPV6_UNICAST_HOPS),
    ROW(IPPROTO_IPV6, IPV6_UNICAST_IF),
    ROW(SOL_SOCKET, SO_PRIORITY),
};

const size_t listener_untouched_n = countof(listener_untouched_options);
const struct socket_option listener_buf_lock = ROW(SOL_SOCKET, SO_BUF_LOCK);

const char *listener_lacks(const struct listener_options *options)
{
    (void)options;
    return NULL;
}

void listener_read_keepalive(struct listener_untouched *values, int fd)
{
    values->keepidle = listener_option_of(fd, OPTION(IPPROTO_TCP, TCP_KEEPIDLE));
    values->keepintvl = listener_option_of(fd, OPTION(IPPROTO_TCP, TCP_KEEPINTVL));
    values->keepcnt = listener_option_of(fd, OPTION(IPPROTO_TCP, TCP_KEEPCNT));
}

bool listener_lost_backlog(const struct listener *listener, int fd)
{
    struct tcp_info info = { 0 };
    socklen_t length = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
           info.tcpi_sacked != (uint32_t)listener->options.backlog; /* while it listens */
}

void listener_detach_programs(int fd)
{
    static const int none;

    setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
    setsockopt(fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &none, sizeof(none));
}

/* Sets an option whose value 0 stands for the system's default, which only a socket
 * that others have had may no longer have. */
static void change_or_default(const struct listener *listener, int fd,
    const struct socket_option *option, int value, int default_value, struct log *log)
{
    if (value == 0)
        value = default_value;
    if (value > 0)
        listener_change_option(listener, fd, option, value, log);
}

void listener_set_tcp_extras(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    static const struct listener_untouched unknown = { .known = false };
    const struct listener_options *options = &listener->options;
    int fastopen = options->fastopen == -1 ? 0 : options->fastopen;
    const struct listener_untouched *defaults = NULL;

    if (listener->adopted || system->restores)
        defaults = listener_untouched_of(listener, system);
    if (defaults == NULL)
        defaults = &unknown;
    change_or_default(listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPIDLE), options->keepidle,
        defaults->keepidle, log);
    change_or_default(listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPINTVL), options->keepintvl,
        defaults->keepintvl, log);
    change_or_default(
        listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPCNT), options->keepcnt, defaults->keepcnt, log);
    listener_change_option(listener, fd, OPTION(IPPROTO_TCP, TCP_FASTOPEN), fastopen, log);
    listener_change_option(
        listener, fd, OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT), options->deferred, log);
}
