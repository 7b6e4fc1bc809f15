/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of test_sandbox.c: a worker's attempts, and the results in all modes of the sandbox.
 * The words are from sandbox/attempts.h. */
#pragma once

#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Layers that stop an attempt. */
enum guard { FILTER, PATHS, PORTS };

#define CAP(name) (1u + CAP_##name)

/* An option of a socket, by the numbers of its level and name. */
#define NUMBER(macro) #macro
#define WORDS(level, option) "option " NUMBER(level) " " NUMBER(option)
#define OPTION(level, option, on, strict) { WORDS(level, option), on, strict, 0, FILTER }

/* Results of attempts under `on` and `strict`; with `off` the results are no denials, as long as
 * the worker has the needed capability (0: none). */
static const struct row {
    const char *words;
    int on, strict;
    unsigned capability;
    enum guard guard;
} rows[] = {
    { "execve", EPERM, EPERM, 0, FILTER },
    { "execveat", EPERM, EPERM, 0, FILTER },
    { "program", EPERM, EPERM, 0, FILTER },
    { "thread execve", EPERM, EPERM, 0, FILTER },
    { "clone3", ENOSYS, ENOSYS, 0, FILTER },
    { "clone_user", EPERM, EPERM, CAP(SYS_ADMIN), FILTER },
    { "unshare", EPERM, EPERM, CAP(SYS_ADMIN), FILTER },
    { "setns", EPERM, EPERM, 0, FILTER },
#ifdef __x86_64__
    { "other_abi", EPERM, EPERM, 0, FILTER },
#endif

    { "open /etc/passwd", EACCES, EACCES, 0, PATHS },
    { "open /etc/shadow", EACCES, EACCES, CAP(DAC_OVERRIDE), PATHS },
    { "thread open /etc/passwd", EACCES, EACCES, 0, PATHS },
    { "make /tmp/fb_made_by_a_worker", EACCES, EACCES, 0, PATHS },
    { "open_by_handle_at", EPERM, EPERM, CAP(DAC_READ_SEARCH), FILTER },

    { "ptrace", EPERM, EPERM, 0, FILTER },
    { "process_vm_readv", EPERM, EPERM, 0, FILTER },
    { "process_vm_writev", EPERM, EPERM, 0, FILTER },
    { "pidfd_getfd", EPERM, EPERM, 0, FILTER },
    { "kill 1", EPERM, EPERM, CAP(KILL), FILTER },
    { "thread kill 1", EPERM, EPERM, CAP(KILL), FILTER },
    { "tgkill", EPERM, EPERM, 0, FILTER },
    { "tkill", EPERM, EPERM, 0, FILTER },
    { "sigqueue", EPERM, EPERM, 0, FILTER },
    { "sigio", EPERM, EPERM, 0, FILTER },
    { "pidfd_send_signal", EPERM, EPERM, 0, FILTER },
    { "limit_other", EPERM, EPERM, 0, FILTER },

    { "raw", EPERM, EPERM, CAP(NET_RAW), FILTER },
    { "hidden_raw", EPERM, EPERM, CAP(NET_RAW), FILTER },
    { "packet", EPERM, EPERM, CAP(NET_RAW), FILTER },
    { "hidden_packet", EPERM, EPERM, CAP(NET_RAW), FILTER },
    { "netlink", EPERM, EPERM, 0, FILTER },
    { "udp", EPERM, EPERM, 0, FILTER },
    { "listen", EPERM, EPERM, 0, FILTER },
    { "bind $1", EACCES, EPERM, 0, PORTS },

    { "mptcp", EPERM, EPERM, 0, FILTER },
    { "hidden_mptcp", EPERM, EPERM, 0, FILTER },
    { "fastopen", EPERM, EPERM, 0, FILTER },
    { "fastopen_message", EPERM, EPERM, 0, FILTER },
    { "fastopen_messages", EPERM, EPERM, 0, FILTER },

    OPTION(SOL_SOCKET, SO_LINGER, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_RCVLOWAT, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_DONTROUTE, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_ATTACH_FILTER, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_LOCK_FILTER, EPERM, EPERM),
    OPTION(SOL_SOCKET, 50, EPERM, EPERM), /* SO_ATTACH_BPF */
    OPTION(SOL_SOCKET, 51, EPERM, EPERM), /* ATTACH_REUSEPORT_CBPF */
    OPTION(SOL_SOCKET, 52, EPERM, EPERM), /* ATTACH_REUSEPORT_EBPF */
    OPTION(SOL_SOCKET, SO_INCOMING_CPU, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_MAX_PACING_RATE, EPERM, EPERM),
    OPTION(SOL_SOCKET, 61, EPERM, EPERM), /* TXTIME */
    OPTION(SOL_SOCKET, 73, EPERM, EPERM), /* RESERVE_MEMORY */
    OPTION(SOL_SOCKET, 74, EPERM, EPERM), /* TXREHASH */
    OPTION(SOL_TCP, TCP_MAXSEG, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_WINDOW_CLAMP, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_MD5SIG, EPERM, EPERM),
    OPTION(SOL_TCP, 32, EPERM, EPERM), /* MD5_KEY_EXTENDED */
    OPTION(SOL_TCP, TCP_REPAIR, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_SAVE_SYN, EPERM, EPERM),
    OPTION(SOL_TCP, 33, EPERM, EPERM), /* FASTOPEN_KEY */
    OPTION(SOL_TCP, 34, EPERM, EPERM), /* FASTOPEN_NO_COOKIE */
    OPTION(SOL_TCP, 37, EPERM, EPERM), /* TX_DELAY */
    OPTION(SOL_TCP, 38, EPERM, EPERM), /* AO_ADD_KEY */
    OPTION(SOL_TCP, 39, EPERM, EPERM), /* AO_DELETE_KEY */
    OPTION(SOL_TCP, 40, EPERM, EPERM), /* AO_INFO */
    OPTION(SOL_TCP, 42, EPERM, EPERM), /* AO_REPAIR */
    OPTION(SOL_TCP, 44, EPERM, EPERM), /* RTO_MOST */
    OPTION(SOL_TCP, 45, EPERM, EPERM), /* RTO_LEAST */
    OPTION(SOL_TCP, 46, EPERM, EPERM), /* DELACK_MOST */
    OPTION(SOL_IP, IP_MINTTL, EPERM, EPERM),
    OPTION(SOL_IP, IP_OPTIONS, EPERM, EPERM),
    OPTION(SOL_IP, IP_IPSEC_POLICY, EPERM, EPERM),
    OPTION(SOL_IP, IP_XFRM_POLICY, EPERM, EPERM),
    OPTION(SOL_IPV6, 1, EPERM, EPERM),  /* ADDRESS_OF_FAMILY */
    OPTION(SOL_IPV6, 6, EPERM, EPERM),  /* OLD_PACKET_OPTIONS */
    OPTION(SOL_IPV6, 73, EPERM, EPERM), /* LEAST_HOPS */
    OPTION(SOL_IPV6, IPV6_HOPOPTS, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_RTHDR, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_RTHDRDSTOPTS, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_DSTOPTS, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_IPSEC_POLICY, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_XFRM_POLICY, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_SNDBUF, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_RCVTIMEO, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_SNDTIMEO, EPERM, EPERM),
    OPTION(SOL_SOCKET, 66, EPERM, EPERM), /* RECEIVE_TIMEOUT_64 */
    OPTION(SOL_SOCKET, 67, EPERM, EPERM), /* SEND_TIMEOUT_64 */
    OPTION(SOL_SOCKET, SO_REUSEPORT, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_BINDTODEVICE, EPERM, EPERM),
    OPTION(SOL_SOCKET, 62, EPERM, EPERM), /* BIND_TO_INDEX */
    OPTION(SOL_SOCKET, SO_OOBINLINE, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_PRIORITY, EPERM, EPERM),
    OPTION(SOL_SOCKET, SO_BUSY_POLL, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_CORK, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_SYNCNT, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_LINGER2, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_USER_TIMEOUT, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_NOTSENT_LOWAT, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_CONGESTION, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_DEFER_ACCEPT, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_FASTOPEN, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_KEEPIDLE, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_KEEPINTVL, EPERM, EPERM),
    OPTION(SOL_TCP, TCP_KEEPCNT, EPERM, EPERM),
    OPTION(SOL_IP, IP_TOS, EPERM, EPERM),
    OPTION(SOL_IP, IP_TTL, EPERM, EPERM),
    OPTION(SOL_IP, IP_MTU_DISCOVER, EPERM, EPERM),
    OPTION(SOL_IP, IP_RECVERR, EPERM, EPERM),
    OPTION(SOL_IP, IP_UNICAST_IF, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_UNICAST_HOPS, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_MTU, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_MTU_DISCOVER, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_RECVERR, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_DONTFRAG, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_TCLASS, EPERM, EPERM),
    OPTION(SOL_IPV6, IPV6_UNICAST_IF, EPERM, EPERM),

    { "mount", EPERM, EPERM, CAP(SYS_ADMIN), FILTER },
    { "umount", EPERM, EPERM, CAP(SYS_ADMIN), FILTER },
    { "fsopen", EPERM, EPERM, CAP(SYS_ADMIN), FILTER },
    { "chroot", EPERM, EPERM, CAP(SYS_CHROOT), FILTER },
    { "pivot_root", EPERM, EPERM, CAP(SYS_ADMIN), FILTER },
    { "swapon", EPERM, EPERM, CAP(SYS_ADMIN), FILTER },
    { "quotactl", EPERM, EPERM, CAP(SYS_ADMIN), FILTER },

    { "keyctl", EPERM, EPERM, 0, FILTER },
    { "add_key", EPERM, EPERM, 0, FILTER },
    { "request_key", EPERM, EPERM, 0, FILTER },
    { "bpf", EPERM, EPERM, CAP(SYS_ADMIN), FILTER },
    { "perf_event_open", EPERM, EPERM, 0, FILTER },
    { "userfaultfd", EPERM, EPERM, 0, FILTER },
    { "io_uring", EPERM, EPERM, 0, FILTER },
    { "io_uring_register", EPERM, EPERM, 0, FILTER },
    { "finit_module", EPERM, EPERM, CAP(SYS_MODULE), FILTER },
    { "init_module", EPERM, EPERM, CAP(SYS_MODULE), FILTER },
    { "delete_module", EPERM, EPERM, CAP(SYS_MODULE), FILTER },
    { "reboot", EPERM, EPERM, CAP(SYS_BOOT), FILTER },
    { "personality", EPERM, EPERM, 0, FILTER },
    { "input", EPERM, EPERM, 0, FILTER },
    { "hidden_input", EPERM, EPERM, 0, FILTER },
    { "memory_map", EPERM, EPERM, CAP(SYS_RESOURCE), FILTER },

    { "setsid", EPERM, EPERM, 0, FILTER },
    { "pidfd_open", EPERM, EPERM, 0, FILTER },
    { "affinity_other", EPERM, EPERM, 0, FILTER },
    { "sched_setattr", EPERM, EPERM, 0, FILTER },
    { "priority_other", EPERM, EPERM, 0, FILTER },
    { "priority_group", EPERM, EPERM, 0, FILTER },
    { "ioprio_other", EPERM, EPERM, 0, FILTER },
    { "shmget", EPERM, EPERM, 0, FILTER },
    { "semget", EPERM, EPERM, 0, FILTER },
    { "msgsnd", EPERM, EPERM, 0, FILTER },
    { "mq_open", EPERM, EPERM, 0, FILTER },
    { "memfd_secret", EPERM, EPERM, 0, FILTER },
    { "widen", EPERM, EPERM, 0, FILTER },
    { "remap_file_pages", EPERM, EPERM, 0, FILTER },
    { "code", EPERM, EPERM, 0, FILTER },
    { "mprotect", EPERM, EPERM, 0, FILTER },
    { "zero_code", EPERM, EPERM, 0, FILTER },
    { "cut", EPERM, EPERM, 0, FILTER },
    { "overwrite", EPERM, EPERM, 0, FILTER },
    { "cut_hole", EPERM, EPERM, 0, FILTER },

    { "setuid", 0, EPERM, 0, FILTER },
    { "bind", 0, EPERM, 0, FILTER },
    { "affinity_self", 0, EPERM, 0, FILTER },
    { "priority_self", 0, EPERM, 0, FILTER },
    { "memfd", EPERM, 0, 0, FILTER },
    { "stop_appending", EPERM, EPERM, 0, FILTER },
    { "begin_to_wait", EPERM, EPERM, 0, FILTER },
    { "have_others_wait", EPERM, EPERM, 0, FILTER },
    { "connect $1", ECONNREFUSED, EPERM, 0, FILTER },
    { "tcp", 0, EPERM, 0, FILTER },
    { "named_tcp", 0, EPERM, 0, FILTER },
    { "connect_long", EBADF, EPERM, 0, FILTER },
    { "unix", 0, EPERM, 0, FILTER },
#ifndef __SANITIZE_ADDRESS__
    { "fork", EPERM, EPERM, 0, FILTER },
    { "open /proc/self/status", 0, EACCES, 0, PATHS },
    { "open /usr/lib", 0, EACCES, 0, PATHS },
#endif

    { "go_on_appending", 0, 0, 0, FILTER },
    { "disconnect", EBADF, EBADF, 0, FILTER },
    { "sendto", EBADF, EBADF, 0, FILTER },
    OPTION(SOL_SOCKET, SO_KEEPALIVE, EBADF, EBADF),
    OPTION(SOL_TCP, TCP_NODELAY, EBADF, EBADF),
    OPTION(SOL_TCP, TCP_ULP, EBADF, EPERM),
    OPTION(282 /* SOL_TLS */, 1 /* TLS_TX */, EBADF, EPERM),
    OPTION(282 /* SOL_TLS */, 2 /* TLS_RX */, EBADF, EPERM),
    OPTION(SOL_IP, IP_BIND_ADDRESS_NO_PORT, EBADF, EBADF),
    OPTION(SOL_IP, IP_PKTINFO, EBADF, EPERM),
    { "kill_self", 0, 0, 0, FILTER },
    { "tgkill_self", 0, 0, 0, FILTER },
    { "thread tgkill_self", 0, 0, 0, FILTER },
    { "open /dev/null", 0, 0, 0, PATHS },
    { "open /usr/share/zoneinfo", 0, 0, 0, PATHS },
};
