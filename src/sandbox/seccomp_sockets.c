/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules about sockets: which a worker makes, where it connects, what it sets on them. All
 * workers share the listeners, and accepted sockets inherit what is set on these: `on` denies the
 * options that only harm a listener, and those that only the libraries of protocols set where no
 * protocol has sockets of its own; `strict` allows what workers and these libraries set. The master
 * puts back what is allowed (net/listener_options.c). */
#include "base/compiler.h"
#include "sandbox/seccomp_rules.h"

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

struct option {
    int level, number;
};

/* Options that stop a listener or its clients, and that no library sets on sockets of its own.
 * SO_LINGER has whoever closes an accepted socket wait for its peer: workers make a reset by
 * connect(). */
static const struct option harmful[] = {
    { SOL_SOCKET, SO_LINGER },
    { SOL_SOCKET, SO_RCVLOWAT },
    { SOL_SOCKET, SO_DONTROUTE },
    { SOL_SOCKET, SO_ATTACH_FILTER },
    { SOL_SOCKET, SO_LOCK_FILTER },
    { SOL_SOCKET, ATTACH_BPF },
    { SOL_SOCKET, ATTACH_REUSEPORT_CBPF },
    { SOL_SOCKET, ATTACH_REUSEPORT_EBPF },
    { SOL_SOCKET, SO_INCOMING_CPU },
    { SOL_SOCKET, SO_MAX_PACING_RATE },
    { SOL_SOCKET, TXTIME },
    { SOL_SOCKET, RESERVE_MEMORY },
    { SOL_SOCKET, TXREHASH },
    { IPPROTO_TCP, TCP_MAXSEG },
    { IPPROTO_TCP, TCP_WINDOW_CLAMP },
    { IPPROTO_TCP, TCP_MD5SIG },
    { IPPROTO_TCP, MD5_KEY_EXTENDED },
    { IPPROTO_TCP, TCP_REPAIR },
    { IPPROTO_TCP, TCP_SAVE_SYN },
    { IPPROTO_TCP, FASTOPEN_KEY },
    { IPPROTO_TCP, FASTOPEN_NO_COOKIE },
    { IPPROTO_TCP, TX_DELAY },
    { IPPROTO_TCP, AO_ADD_KEY },
    { IPPROTO_TCP, AO_DELETE_KEY },
    { IPPROTO_TCP, AO_INFO },
    { IPPROTO_TCP, AO_REPAIR },
    { IPPROTO_TCP, RTO_MOST },
    { IPPROTO_TCP, RTO_LEAST },
    { IPPROTO_TCP, DELACK_MOST },
    { IPPROTO_IP, IP_MINTTL },
    { IPPROTO_IP, IP_OPTIONS },
    { IPPROTO_IP, IP_IPSEC_POLICY },
    { IPPROTO_IP, IP_XFRM_POLICY },
    { IPPROTO_IPV6, ADDRESS_OF_FAMILY },
    { IPPROTO_IPV6, OLD_PACKET_OPTIONS },
    { IPPROTO_IPV6, LEAST_HOPS },
    { IPPROTO_IPV6, IPV6_HOPOPTS },
    { IPPROTO_IPV6, IPV6_RTHDR },
    { IPPROTO_IPV6, IPV6_RTHDRDSTOPTS },
    { IPPROTO_IPV6, IPV6_DSTOPTS },
    { IPPROTO_IPV6, IPV6_IPSEC_POLICY },
    { IPPROTO_IPV6, IPV6_XFRM_POLICY },
};

/* Options that libraries set on sockets of their own: hiredis, libpq, libcurl, c-ares, the C
 * library's resolver, and those of QUIC. */
static const struct option of_libraries[] = {
    { SOL_SOCKET, SO_SNDBUF },
    { SOL_SOCKET, SO_RCVTIMEO },
    { SOL_SOCKET, SO_SNDTIMEO },
    { SOL_SOCKET, RECEIVE_TIMEOUT_64 },
    { SOL_SOCKET, SEND_TIMEOUT_64 },
    { SOL_SOCKET, SO_REUSEPORT },
    { SOL_SOCKET, SO_BINDTODEVICE },
    { SOL_SOCKET, BIND_TO_INDEX },
    { SOL_SOCKET, SO_OOBINLINE },
    { SOL_SOCKET, SO_PRIORITY },
    { SOL_SOCKET, SO_BUSY_POLL },
    { IPPROTO_TCP, TCP_CORK },
    { IPPROTO_TCP, TCP_SYNCNT },
    { IPPROTO_TCP, TCP_LINGER2 },
    { IPPROTO_TCP, TCP_USER_TIMEOUT },
    { IPPROTO_TCP, TCP_NOTSENT_LOWAT },
    { IPPROTO_TCP, TCP_CONGESTION },
    { IPPROTO_TCP, TCP_DEFER_ACCEPT },
    { IPPROTO_TCP, TCP_FASTOPEN },
    { IPPROTO_TCP, TCP_KEEPIDLE },
    { IPPROTO_TCP, TCP_KEEPINTVL },
    { IPPROTO_TCP, TCP_KEEPCNT },
    { IPPROTO_IP, IP_TOS },
    { IPPROTO_IP, IP_TTL },
    { IPPROTO_IP, IP_MTU_DISCOVER },
    { IPPROTO_IP, IP_RECVERR },
    { IPPROTO_IP, IP_UNICAST_IF },
    { IPPROTO_IPV6, IPV6_UNICAST_HOPS },
    { IPPROTO_IPV6, IPV6_MTU },
    { IPPROTO_IPV6, IPV6_MTU_DISCOVER },
    { IPPROTO_IPV6, IPV6_RECVERR },
    { IPPROTO_IPV6, IPV6_DONTFRAG },
    { IPPROTO_IPV6, IPV6_TCLASS },
    { IPPROTO_IPV6, IPV6_UNICAST_IF },
};

/* More of these, which do not matter on a listener: `on` does not look at them. */
static const struct option harmless[] = {
    { SOL_SOCKET, SO_BROADCAST },
    { SOL_SOCKET, SO_PASSCRED },
    { IPPROTO_TCP, TCP_QUICKACK },
    { IPPROTO_TCP, FASTOPEN_CONNECT },
    { IPPROTO_IP, IP_PKTINFO },
    { IPPROTO_IP, IP_RECVTOS },
    { IPPROTO_IP, IP_RECVTTL },
    { IPPROTO_IPV6, IPV6_V6ONLY },
    { IPPROTO_IPV6, IPV6_RECVPKTINFO },
    { IPPROTO_IPV6, IPV6_RECVTCLASS },
    { IPPROTO_IPV6, IPV6_RECVHOPLIMIT },
    { IPPROTO_UDP, UDP_SEGMENT },
    { IPPROTO_UDP, UDP_GRO },
};

/* Options that the daemon's own code sets in a worker. */
static const struct option of_workers[] = {
    { SOL_SOCKET, SO_KEEPALIVE },
    { SOL_SOCKET, SO_RCVBUF },
    { SOL_SOCKET, SO_REUSEADDR },
    { SOL_SOCKET, SO_TIMESTAMP },
    { SOL_SOCKET, PASS_RIGHTS },
    { IPPROTO_TCP, TCP_NODELAY },
    { IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT },
};

static const struct option of_transparency[] = {
    { IPPROTO_IP, IP_TRANSPARENT },
    { IPPROTO_IPV6, IPV6_TRANSPARENT },
};

/* Calls that send, and the place of their flags. */
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

bool seccomp_connects(const struct needs *needs, bool named)
{
    return needs->connect || needs->names || needs->exec || named;
}

static bool has_type(const struct filter *filter, unsigned type)
{
    const struct needs *needs = filter->needs;

    if (type == SOCK_STREAM)
        return !filter->strict || needs->listen ||
               seccomp_connects(needs, !STAILQ_EMPTY(&needs->ports));
    return type == SOCK_DGRAM && (needs->udp || needs->names || needs->resolver || filter->open);
}

static bool has_family(const struct filter *filter, unsigned family)
{
    const struct needs *needs = filter->needs;

    if (family == AF_UNIX)
        return !filter->strict || needs->listen || seccomp_connects(needs, needs->unix_targets);
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

static void add_sockets(struct filter *filter, uint32_t action)
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

static void add_options(
    struct filter *filter, uint32_t action, const struct option *options, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct scmp_arg_cmp both[] = { seccomp_arg_is(1, (uint32_t)options[i].level),
            seccomp_arg_is(2, (uint32_t)options[i].number) };

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
    add_sockets(filter, DENY);
    add_options(filter, DENY, harmful, countof(harmful));
    if (!seccomp_has_own_sockets(filter))
        add_options(filter, DENY, of_libraries, countof(of_libraries));
    for (size_t i = 0; i < countof(sending); i++)
        seccomp_add_if(
            filter, DENY, sending[i].call, seccomp_arg_has(sending[i].flags, MSG_FASTOPEN));
}

void seccomp_allow_sockets(struct filter *filter)
{
    const struct needs *needs = filter->needs;

    add_sockets(filter, ALLOW);
    add_options(filter, ALLOW, of_workers, countof(of_workers));
    if (needs->transparent)
        add_options(filter, ALLOW, of_transparency, countof(of_transparency));
    if (seccomp_has_own_sockets(filter)) {
        add_options(filter, ALLOW, of_libraries, countof(of_libraries));
        add_options(filter, ALLOW, harmless, countof(harmless));
    }
    if (seccomp_connects(needs, needs->unix_targets || !STAILQ_EMPTY(&needs->ports)))
        seccomp_add_rule(filter, ALLOW, "connect");
    else
        allow_disconnect(filter);
    for (size_t i = 0; i < countof(sending); i++)
        seccomp_add_if(
            filter, ALLOW, sending[i].call, seccomp_arg_has_not(sending[i].flags, MSG_FASTOPEN));
}
