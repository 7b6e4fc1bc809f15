/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules about sockets: their making, connects, and options. All workers share the listeners,
 * and accepted sockets inherit a listener's options: `on` denies options that only harm a listener,
 * and options of protocols' libraries where no protocol has sockets of its own; `strict` allows the
 * options of workers and libraries. The master puts back allowed options of a listener
 * (net/listener_options.c). */
#include "sandbox/seccomp_sockets.h"

#include "base/compiler.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#define FAMILIES 64 /* more than there are */
#define TYPES 16    /* SOCK_TYPE_MASK and one */

/* Headers may be older; the numbers are the kernel's. */
enum {
    ATTACH_BPF = 50,
    ATTACH_REUSEPORT_CBPF = 51,
    ATTACH_REUSEPORT_EBPF = 52,
    TXTIME = 61,
    BIND_TO_INDEX = 62,
    RECEIVE_TIMEOUT_64 = 66, /* SO_RCVTIMEO_NEW */
    SEND_TIMEOUT_64 = 67,
    RESERVE_MEMORY = 73,
    TXREHASH = 74,
    PASS_RIGHTS = 83,

    FASTOPEN_CONNECT = 30,
    MD5_KEY_EXTENDED = 32,
    FASTOPEN_KEY = 33,
    FASTOPEN_NO_COOKIE = 34,
    TX_DELAY = 37,
    AO_ADD_KEY = 38,
    AO_DELETE_KEY = 39,
    AO_INFO = 40,
    AO_REPAIR = 42,
    RTO_MOST = 44,
    RTO_LEAST = 45,
    DELACK_MOST = 46,

    ADDRESS_OF_FAMILY = 1, /* IPV6_ADDRFORM */
    OLD_PACKET_OPTIONS = 6,
    LEAST_HOPS = 73,
};

/* Options of a level, up to a 0; a list of them ends with a level without any. */
struct options {
    int level, numbers[32];
};

/* Options that stop a listener or clients, and are never set by libraries on own sockets. SO_LINGER
 * makes the closing process of an accepted socket wait for the peer: workers make a reset by
 * connect(). */
static const struct options harmful[] = {
    { SOL_SOCKET, { SO_LINGER, SO_RCVLOWAT, SO_DONTROUTE, SO_ATTACH_FILTER, SO_LOCK_FILTER,
                      ATTACH_BPF, ATTACH_REUSEPORT_CBPF, ATTACH_REUSEPORT_EBPF, SO_INCOMING_CPU,
                      SO_MAX_PACING_RATE, TXTIME, RESERVE_MEMORY, TXREHASH } },
    { IPPROTO_TCP, { TCP_MAXSEG, TCP_WINDOW_CLAMP, TCP_MD5SIG, MD5_KEY_EXTENDED, TCP_REPAIR,
                       TCP_SAVE_SYN, FASTOPEN_KEY, FASTOPEN_NO_COOKIE, TX_DELAY, AO_ADD_KEY,
                       AO_DELETE_KEY, AO_INFO, AO_REPAIR, RTO_MOST, RTO_LEAST, DELACK_MOST } },
    { IPPROTO_IP, { IP_MINTTL, IP_OPTIONS, IP_IPSEC_POLICY, IP_XFRM_POLICY } },
    { IPPROTO_IPV6, { ADDRESS_OF_FAMILY, OLD_PACKET_OPTIONS, LEAST_HOPS, IPV6_HOPOPTS, IPV6_RTHDR,
                        IPV6_RTHDRDSTOPTS, IPV6_DSTOPTS, IPV6_IPSEC_POLICY, IPV6_XFRM_POLICY } },
    { 0, { 0 } },
};

/* Options set by libraries on own sockets: hiredis, libpq, libcurl, c-ares, the C library's
 * resolver, and QUIC libraries. */
static const struct options of_libraries[] = {
    { SOL_SOCKET,
        { SO_SNDBUF, SO_RCVTIMEO, SO_SNDTIMEO, RECEIVE_TIMEOUT_64, SEND_TIMEOUT_64, SO_REUSEPORT,
            SO_BINDTODEVICE, BIND_TO_INDEX, SO_OOBINLINE, SO_PRIORITY, SO_BUSY_POLL } },
    { IPPROTO_TCP,
        { TCP_CORK, TCP_SYNCNT, TCP_LINGER2, TCP_USER_TIMEOUT, TCP_NOTSENT_LOWAT, TCP_CONGESTION,
            TCP_DEFER_ACCEPT, TCP_FASTOPEN, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT } },
    { IPPROTO_IP, { IP_TOS, IP_TTL, IP_MTU_DISCOVER, IP_RECVERR, IP_UNICAST_IF } },
    { IPPROTO_IPV6, { IPV6_UNICAST_HOPS, IPV6_MTU, IPV6_MTU_DISCOVER, IPV6_RECVERR, IPV6_DONTFRAG,
                        IPV6_TCLASS, IPV6_UNICAST_IF } },
    { 0, { 0 } },
};

/* More options of libraries, harmless on a listener and ignored by `on`. */
static const struct options harmless[] = {
    { SOL_SOCKET, { SO_BROADCAST, SO_PASSCRED } },
    { IPPROTO_TCP, { TCP_QUICKACK, FASTOPEN_CONNECT } },
    { IPPROTO_IP, { IP_PKTINFO, IP_RECVTOS, IP_RECVTTL } },
    { IPPROTO_IPV6, { IPV6_V6ONLY, IPV6_RECVPKTINFO, IPV6_RECVTCLASS, IPV6_RECVHOPLIMIT } },
    { IPPROTO_UDP, { UDP_SEGMENT, UDP_GRO } },
    { 0, { 0 } },
};

/* Options set by the daemon's own code in a worker. */
static const struct options of_workers[] = {
    { SOL_SOCKET, { SO_KEEPALIVE, SO_RCVBUF, SO_REUSEADDR, SO_TIMESTAMP, PASS_RIGHTS } },
    { IPPROTO_TCP, { TCP_NODELAY } },
    { IPPROTO_IP, { IP_BIND_ADDRESS_NO_PORT } },
    { 0, { 0 } },
};

static const struct options of_transparency[] = {
    { IPPROTO_IP, { IP_TRANSPARENT } },
    { IPPROTO_IPV6, { IPV6_TRANSPARENT } },
    { 0, { 0 } },
};

/* Sending calls, and the argument with the flags. */
static const struct {
    const char *call;
    unsigned flags;
} sending[] = { { "send", 3 }, { "sendto", 3 }, { "sendmsg", 2 }, { "sendmmsg", 3 } };

bool seccomp_has_own_sockets(const struct filter *filter)
{
    const struct needs *needs = filter->needs;

    return needs->udp || needs->connect || needs->names || needs->listen || needs->exec ||
           filter->open;
}

/* Whether workers connect; Landlock decides about ports. Programs and the resolver connect
 * anywhere. */
static bool may_connect(const struct needs *needs, bool named)
{
    return needs->connect || needs->names || needs->exec || named;
}

static bool has_type(const struct filter *filter, unsigned type)
{
    const struct needs *needs = filter->needs;

    if (type == SOCK_STREAM)
        return !filter->strict || needs->listen || may_connect(needs, !STAILQ_EMPTY(&needs->ports));
    return type == SOCK_DGRAM && (needs->udp || needs->names || needs->resolver || filter->open);
}

static bool has_family(const struct filter *filter, unsigned family)
{
    const struct needs *needs = filter->needs;

    if (family == AF_UNIX)
        return !filter->strict || needs->listen || may_connect(needs, needs->unix_targets);
    return family == AF_INET || family == AF_INET6 ||
           (family == AF_NETLINK && (needs->names || filter->open)); /* protocol 0 is routes */
}

/* Neither multipath TCP nor SCTP: Landlock's rules for ports are about TCP. */
static void add_streams(struct filter *filter, unsigned family)
{
    static const uint32_t tcp[] = { 0, IPPROTO_TCP };
    const struct scmp_arg_cmp others[] = { seccomp_arg_is(0, family),
        SCMP_A1(SCMP_CMP_MASKED_EQ, TYPES - 1, SOCK_STREAM),
        seccomp_arg_compare(2, SCMP_CMP_GT, IPPROTO_TCP) };

    if (!filter->strict)
        seccomp_add_all(filter, DENY, "socket", countof(others), others);
    for (size_t i = 0; filter->strict && i < countof(tcp); i++) {
        const struct scmp_arg_cmp own[] = { others[0], others[1], seccomp_arg_is(2, tcp[i]) };

        seccomp_add_all(filter, ALLOW, "socket", countof(own), own);
    }
}

static void add_internet(struct filter *filter, uint32_t action, unsigned family)
{
    for (unsigned type = 0; type < TYPES; type++) {
        const struct scmp_arg_cmp both[] = { seccomp_arg_is(0, family),
            SCMP_A1(SCMP_CMP_MASKED_EQ, TYPES - 1, type) };

        if (type == SOCK_STREAM && has_type(filter, type))
            add_streams(filter, family);
        else if (has_type(filter, type) == (action == ALLOW))
            seccomp_add_all(filter, action, "socket", countof(both), both);
    }
}

static void add_socket_rules(struct filter *filter, uint32_t action)
{
    bool allows = action == ALLOW;

    for (unsigned family = 0; family < FAMILIES; family++)
        if (family == AF_NETLINK && has_family(filter, family))
            for (unsigned protocol = 0; protocol < FAMILIES; protocol++) {
                const struct scmp_arg_cmp both[] = { seccomp_arg_is(0, family),
                    seccomp_arg_is(2, protocol) };

                if ((protocol == 0) == allows)
                    seccomp_add_all(filter, action, "socket", 2, both);
            }
        else if (family == AF_INET || family == AF_INET6)
            add_internet(filter, action, family);
        else if (has_family(filter, family) == allows)
            seccomp_add_if(filter, action, "socket", seccomp_arg_is(0, family));
}

static void add_options(struct filter *filter, uint32_t action, const struct options *options)
{
    for (; options->numbers[0] != 0; options++)
        for (const int *number = options->numbers; *number != 0; number++) {
            const struct scmp_arg_cmp both[] = { seccomp_arg_is(1, (uint32_t)options->level),
                seccomp_arg_is(2, (uint32_t)*number) };

            seccomp_add_all(filter, action, "setsockopt", countof(both), both);
        }
}

/* A disconnect, which is a reset, has an address of a family alone. Kernels whose Landlock wants a
 * whole address hold the ports besides. */
static void allow_disconnect(struct filter *filter)
{
    seccomp_add_if(filter, ALLOW, "connect", seccomp_arg_is(2, sizeof(sa_family_t)));
    if (filter->ports_held)
        seccomp_add_if(filter, ALLOW, "connect", seccomp_arg_is(2, sizeof(struct sockaddr)));
}

void seccomp_deny_sockets(struct filter *filter)
{
    add_socket_rules(filter, DENY);
    add_options(filter, DENY, harmful);
    if (!seccomp_has_own_sockets(filter))
        add_options(filter, DENY, of_libraries);
    for (size_t i = 0; i < countof(sending); i++)
        seccomp_add_if(
            filter, DENY, sending[i].call, seccomp_arg_has(sending[i].flags, MSG_FASTOPEN));
}

void seccomp_allow_sockets(struct filter *filter)
{
    const struct needs *needs = filter->needs;

    add_socket_rules(filter, ALLOW);
    add_options(filter, ALLOW, of_workers);
    if (needs->transparent)
        add_options(filter, ALLOW, of_transparency);
    if (seccomp_has_own_sockets(filter)) {
        add_options(filter, ALLOW, of_libraries);
        add_options(filter, ALLOW, harmless);
    }
    if (may_connect(needs, needs->unix_targets || !STAILQ_EMPTY(&needs->ports)))
        seccomp_add_rule(filter, ALLOW, "connect");
    else
        allow_disconnect(filter);
    for (size_t i = 0; i < countof(sending); i++)
        seccomp_add_if(
            filter, ALLOW, sending[i].call, seccomp_arg_has_not(sending[i].flags, MSG_FASTOPEN));
}
