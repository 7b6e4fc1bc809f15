/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of `on`, which denies calls never made by workers, and of `strict`, which allows the
 * calls of workers alone. The kernel caches calls allowed with any arguments, so frequent calls
 * have no rules about arguments, but for sending calls, where flags can connect.
 *
 * All workers share the listeners, whose options accepted sockets inherit: `on` denies options that
 * only harm a listener, and those of libraries without own sockets; `strict` allows the options of
 * workers and libraries. The master puts back options of a listener (net/listener_options.c). */
#include "sandbox/seccomp_rules.h"

#include "base/compiler.h"
#include "sandbox/confine.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Headers may be older; the numbers are the kernel's. */
#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

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

    TLS_OUTPUT = 1, /* TLS_TX */

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

#define NO_APPEND 0x20 /* RWF_NOAPPEND, since Linux 6.9: writes into what O_APPEND protects */
#define OPENS_TO_CHANGE (O_ACCMODE | O_CREAT | O_TRUNC)
#define IOPRIO_PROCESS 1 /* IOPRIO_WHO_PROCESS of linux/ioprio.h, a newer header */

#define CALLS(...) .calls = ((const char *const[]) { __VA_ARGS__, NULL })
#define VALUES(number, ...)                                                                        \
    .arg = (number), .values = (const unsigned[]) { __VA_ARGS__ },                                 \
    .value_n = countof(((const unsigned[]) { __VA_ARGS__ }))

/* The first argument is always the signalled process, or its first thread. */
#define SIGNALS CALLS("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
#define EXEC CALLS("execve", "execveat")
/* Without io_setup(), which workers call before the sandbox. */
#define AIO                                                                                        \
    CALLS("io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_pgetevents_time64",      \
        "io_submit")
/* Options of a level, of sockets. */
#define OPTIONS(level, ...)                                                                        \
    CALLS("setsockopt"), .when = { ARG_IS(1, level) }, VALUES(2, __VA_ARGS__)
#define RIGHTS_TO_CODE (FB_NEEDS_CODE | FB_NEEDS_EXEC)

const struct rule seccomp_denied[] = {
    /* for administrators, debuggers and container managers, and the kernel's worst holes */
    { CALLS(/* file systems and their mounts */
        "chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount",
        "open_by_handle_at", "open_tree", "open_tree_attr", "pivot_root", "quotactl", "quotactl_fd",
        "setns", "swapoff", "swapon", "umount", "umount2", "uselib",
        /* the machine */
        "acct", "clock_adjtime", "clock_adjtime64", "clock_settime", "clock_settime64",
        "create_module", "delete_module", "finit_module", "get_kernel_syms", "init_module",
        "ioperm", "iopl", "kexec_file_load", "kexec_load", "lookup_dcookie", "modify_ldt",
        "nfsservctl", "pciconfig_iobase", "pciconfig_read", "pciconfig_write", "query_module",
        "reboot", "setdomainname", "sethostname", "settimeofday", "stime", "sysfs", "syslog",
        "vhangup", "vm86", "vm86old", "_sysctl",
        /* other processes */
        "kcmp", "pidfd_getfd", "pidfd_send_signal", "process_madvise", "process_mrelease",
        "process_vm_readv", "process_vm_writev",
        /* the kernel's insides */
        "add_key", "bpf", "fanotify_init", "keyctl", "perf_event_open", "request_key",
        "userfaultfd",
        /* would widen the mapping of a worker's own page to siblings'; realloc() copies then */
        "mremap", "remap_file_pages") },
    { EXEC, .unless = FB_NEEDS_EXEC | RIGHT_OPEN },
    { CALLS("pidfd_open", "setsid"), .unless = FB_NEEDS_EXEC | RIGHT_OPEN },
    { CALLS("listen"), .unless = FB_NEEDS_LISTEN | RIGHT_OPEN },
    /* truncated files, an error log */
    { CALLS("fallocate", "ftruncate", "ftruncate64"), .unless = RIGHT_WRITES | RIGHT_OPEN },
    { CALLS("pwritev2"), .unless = RIGHT_WRITES | RIGHT_OPEN, .when = { ARG_HAS(5, NO_APPEND) } },
    /* to make a ring, or to change a ring's rights */
    { CALLS("io_uring_register", "io_uring_setup", "io_setup"), .unless = RIGHT_OPEN },
    { AIO, .unless = NEEDS_AIO | RIGHT_OPEN },
    { CALLS("io_uring_enter"), .unless = NEEDS_RING | RIGHT_OPEN },
    /* memory and queues shared between processes of a user, or hidden from inspection */
    { CALLS("ipc", "memfd_secret", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive",
          "mq_timedreceive_time64", "mq_timedsend", "mq_timedsend_time64", "mq_unlink", "msgctl",
          "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop",
          "semtimedop_time64", "shmat", "shmctl", "shmdt", "shmget"),
        .unless = RIGHT_OPEN },
    /* memory without a file must not become code, nor code be written; libraries are files */
    { CALLS("mmap", "mmap2"), .unless = RIGHTS_TO_CODE | RIGHT_OPEN,
        .when = { ARG_HAS(2, PROT_EXEC), ARG_HAS(3, MAP_ANONYMOUS) } },
    { CALLS("mmap", "mmap2"), .unless = RIGHTS_TO_CODE | RIGHT_OPEN,
        .when = { ARG_HAS(2, PROT_WRITE | PROT_EXEC) } },
    { CALLS("mprotect", "pkey_mprotect"), .unless = RIGHTS_TO_CODE | RIGHT_OPEN,
        .when = { ARG_HAS(2, PROT_EXEC) } },
    { CALLS("memfd_create"), .unless = RIGHTS_TO_CODE | RIGHT_OPEN },
    /* F_SETFL must keep flags: workers share listeners, and must not wait in accept4(); logs must
     * go on appending, unenforceable where a library makes own sockets non-blocking */
    { CALLS("fcntl", "fcntl64"), .unless = RIGHTS_OF_SOCKETS,
        .when = { ARG_IS(1, F_SETFL), ARG_HAS_NOT(2, O_APPEND) } },
    { CALLS("fcntl", "fcntl64"), .unless = RIGHTS_OF_SOCKETS,
        .when = { ARG_IS(1, F_SETFL), ARG_HAS_NOT(2, O_NONBLOCK) } },
    { CALLS("ioctl"), .unless = RIGHTS_OF_SOCKETS, .when = { ARG_IS(1, FIONBIO) } },
    /* a worker may change how it is scheduled itself, and no sibling */
    { CALLS("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"),
        .when = { ARG_COMPARE(0, SCMP_CMP_NE, 0) } },
    { CALLS("setpriority"), .when = { ARG_COMPARE(0, SCMP_CMP_NE, PRIO_PROCESS) } },
    { CALLS("setpriority", "ioprio_set"), .when = { ARG_COMPARE(1, SCMP_CMP_NE, 0) } },
    { CALLS("ioprio_set"), .when = { ARG_COMPARE(0, SCMP_CMP_NE, IOPRIO_PROCESS) } },
    { CALLS("ioctl"), VALUES(1, TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP) },
    /* choose the process that gets SIGIO */
    { CALLS("fcntl", "fcntl64"), VALUES(1, F_SETOWN, F_SETOWN_EX) },
    { CALLS("prctl"), .when = { ARG_IS(0, PR_SET_MM) } },
    /* personality(UINT32_MAX) only asks */
    { CALLS("personality"), .when = { ARG_COMPARE(0, SCMP_CMP_NE, UINT32_MAX) } },
    { CALLS("prlimit64"), .when = { ARG_COMPARE(0, SCMP_CMP_NE, 0) } },
    /* a child of fork() would be a second worker on the same descriptors; threads go on */
    { CALLS("clone"), .unless = FB_NEEDS_EXEC | RIGHT_OPEN | RIGHT_CLONES,
        .when = { ARG_HAS_NOT(CLONE_FLAGS, CLONE_THREAD) } },
    { CALLS("fork", "vfork"), .unless = FB_NEEDS_EXEC | RIGHT_OPEN | RIGHT_CLONES },
    /* a worker may signal running children; Landlock denies signals beyond its children */
    { SIGNALS, .unless = FB_NEEDS_EXEC | RIGHT_OPEN,
        .when = { ARG_COMPARE(0, SCMP_CMP_NE, SANDBOX_OWN_PID) } },
    /* Options that stop a listener or clients, never set by libraries. SO_LINGER makes the closing
     * process wait for the peer: workers make a reset by connect(). */
    { OPTIONS(SOL_SOCKET, SO_LINGER, SO_RCVLOWAT, SO_DONTROUTE, SO_ATTACH_FILTER, SO_LOCK_FILTER,
        ATTACH_BPF, ATTACH_REUSEPORT_CBPF, ATTACH_REUSEPORT_EBPF, SO_INCOMING_CPU,
        SO_MAX_PACING_RATE, TXTIME, RESERVE_MEMORY, TXREHASH) },
    { OPTIONS(IPPROTO_TCP, TCP_MAXSEG, TCP_WINDOW_CLAMP, TCP_MD5SIG, MD5_KEY_EXTENDED, TCP_REPAIR,
        TCP_SAVE_SYN, FASTOPEN_KEY, FASTOPEN_NO_COOKIE, TX_DELAY, AO_ADD_KEY, AO_DELETE_KEY,
        AO_INFO, AO_REPAIR, RTO_MOST, RTO_LEAST, DELACK_MOST) },
    { OPTIONS(IPPROTO_IP, IP_MINTTL, IP_OPTIONS, IP_IPSEC_POLICY, IP_XFRM_POLICY) },
    { OPTIONS(IPPROTO_IPV6, ADDRESS_OF_FAMILY, OLD_PACKET_OPTIONS, LEAST_HOPS, IPV6_HOPOPTS,
        IPV6_RTHDR, IPV6_RTHDRDSTOPTS, IPV6_DSTOPTS, IPV6_IPSEC_POLICY, IPV6_XFRM_POLICY) },
    { CALLS("send", "sendto", "sendmmsg"), .when = { ARG_HAS(3, MSG_FASTOPEN) } },
    { CALLS("sendmsg"), .when = { ARG_HAS(2, MSG_FASTOPEN) } },
    { .calls = NULL },
};

const struct rule seccomp_allowed[] = {
    { CALLS(/* descriptors */
        "close", "close_range", "copy_file_range", "dup", "dup2", "dup3", "eventfd", "eventfd2",
        "fadvise64", "fadvise64_64", "arm_fadvise64_64", "fdatasync", "flock", "fstat", "fstat64",
        "fstatfs", "fstatfs64", "fsync", "getdents", "getdents64", "lseek", "_llseek",
        "memfd_create", "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev",
        "read", "readahead", "readv", "sendfile", "sendfile64", "signalfd", "signalfd4", "splice",
        "sync_file_range", "sync_file_range2", "tee", "timerfd_create", "timerfd_gettime",
        "timerfd_gettime64", "timerfd_settime", "timerfd_settime64", "vmsplice", "write", "writev",
        /* files by name, as far as Landlock permits opening */
        "access", "faccessat", "faccessat2", "fstatat64", "getcwd", "lstat", "lstat64",
        "newfstatat", "open", "openat", "openat2", "readlink", "readlinkat", "stat", "stat64",
        "statfs", "statfs64", "statx",
        /* waiting */
        "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait",
        "epoll_pwait2", "epoll_wait", "epoll_wait_old", "_newselect", "poll", "ppoll",
        "ppoll_time64", "pselect6", "pselect6_time64", "select",
        /* sockets that are there */
        "accept", "accept4", "getpeername", "getsockname", "getsockopt", "recv", "recvfrom",
        "recvmmsg", "recvmmsg_time64", "recvmsg", "shutdown", "socketpair",
        /* memory */
        "brk", "get_mempolicy", "madvise", "membarrier", "mincore", "mlock", "mlock2", "msync",
        "munlock", "munmap",
        /* threads and the process itself */
        "arch_prctl", "capget", "exit", "exit_group", "futex", "futex_time64", "futex_waitv",
        "futex_wait", "futex_wake", "futex_requeue", "get_robust_list", "getcpu", "getegid",
        "getegid32", "geteuid", "geteuid32", "getgid", "getgid32", "getgroups", "getgroups32",
        "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresgid32",
        "getresuid", "getresuid32", "getrlimit", "getrusage", "getsid", "gettid", "getuid",
        "getuid32", "rseq", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity",
        "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_yield", "set_robust_list",
        "set_thread_area", "set_tid_address", "set_tls", "sysinfo", "times", "ugetrlimit", "umask",
        "uname", "wait4", "waitid", "waitpid",
        /* time and signals */
        "alarm", "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64",
        "clock_nanosleep", "clock_nanosleep_time64", "getitimer", "getrandom", "gettimeofday",
        "nanosleep", "pause", "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
        "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_sigtimedwait_time64", "setitimer",
        "sigaltstack", "sigreturn", "time", "timer_create", "timer_delete", "timer_getoverrun",
        "timer_gettime", "timer_gettime64", "timer_settime", "timer_settime64") },
    { CALLS("chmod", "creat", "fchmod", "fchmodat", "fchmodat2", "fallocate", "ftruncate",
          "ftruncate64", "futimesat", "link", "linkat", "mkdir", "mkdirat", "rename", "renameat",
          "renameat2", "rmdir", "symlink", "symlinkat", "truncate", "truncate64", "unlink",
          "unlinkat", "utime", "utimensat", "utimensat_time64", "utimes"),
        .with = RIGHT_WRITES },
    { CALLS("pwritev2"), .when = { ARG_HAS_NOT(5, NO_APPEND) } },
    { AIO, .with = NEEDS_AIO },
    { EXEC, .with = FB_NEEDS_EXEC },
    { CALLS("chdir", "fchdir", "fork", "pidfd_open", "setpgid", "setrlimit", "setsid", "vfork"),
        .with = FB_NEEDS_EXEC },
    { CALLS("setpriority"), .with = FB_NEEDS_EXEC,
        .when = { ARG_COMPARE(0, SCMP_CMP_EQ, PRIO_PROCESS), ARG_COMPARE(1, SCMP_CMP_EQ, 0) } },
    { CALLS("listen"), .with = FB_NEEDS_LISTEN },
    { CALLS("bind"), .with = FB_NEEDS_LISTEN | FB_NEEDS_UDP | FB_NEEDS_NAMES | FB_NEEDS_BIND },
    { SIGNALS, .with = FB_NEEDS_EXEC },
    { SIGNALS, .unless = FB_NEEDS_EXEC, .when = { ARG_COMPARE(0, SCMP_CMP_EQ, SANDBOX_OWN_PID) } },
    { CALLS("clone"), .with = FB_NEEDS_EXEC | RIGHT_CLONES,
        .when = { ARG_HAS_NOT(CLONE_FLAGS, NAMESPACES) } },
    { CALLS("clone"), .unless = FB_NEEDS_EXEC | RIGHT_CLONES,
        .when = { { CLONE_FLAGS, SCMP_CMP_MASKED_EQ, NAMESPACES | CLONE_THREAD, CLONE_THREAD } } },
    { CALLS("mmap", "mmap2", "mprotect"), .with = RIGHTS_TO_CODE },
    { CALLS("mmap", "mmap2", "mprotect"), .unless = RIGHTS_TO_CODE,
        .when = { ARG_HAS_NOT(2, PROT_EXEC) } },
    /* libraries are loaded */
    { CALLS("mmap", "mmap2", "mprotect"), .with = FB_NEEDS_NAMES, .unless = RIGHTS_TO_CODE,
        .when = { ARG_HAS_NOT(2, PROT_WRITE) } },
    /* the harmless requests of calls that can do many things */
    { CALLS("ioctl"), VALUES(1, FIONREAD, FIOCLEX, FIONCLEX, TCGETS, TIOCGWINSZ, TIOCOUTQ) },
    { CALLS("fcntl", "fcntl64"),
        VALUES(1, F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_GETLK, F_SETLK, F_SETLKW,
            F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS,
            F_GET_SEALS) },
    { CALLS("fcntl", "fcntl64"), .with = RIGHTS_OF_SOCKETS,
        .when = { ARG_IS(1, F_SETFL), ARG_HAS(2, O_NONBLOCK) } },
    { CALLS("fcntl", "fcntl64"), .unless = RIGHTS_OF_SOCKETS,
        .when = { ARG_IS(1, F_SETFL), ARG_HAS(2, O_APPEND | O_NONBLOCK) } },
    { CALLS("prctl"), VALUES(0, PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS,
                          PR_GET_SECCOMP, PR_SET_VMA) },
    { CALLS("prlimit64"), .when = { ARG_COMPARE(0, SCMP_CMP_EQ, 0) } },
    /* options set by the daemon's own code in a worker */
    { OPTIONS(SOL_SOCKET, SO_KEEPALIVE, SO_RCVBUF, SO_REUSEADDR, SO_TIMESTAMP, PASS_RIGHTS) },
    { OPTIONS(IPPROTO_TCP, TCP_NODELAY) },
    { OPTIONS(IPPROTO_TCP, TCP_ULP), .with = RIGHT_SEALS },
    { OPTIONS(SOL_TLS, TLS_OUTPUT), .with = RIGHT_SEALS },
    { OPTIONS(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT) },
    { OPTIONS(IPPROTO_IP, IP_TRANSPARENT), .with = FB_NEEDS_TRANSPARENT },
    { OPTIONS(IPPROTO_IPV6, IPV6_TRANSPARENT), .with = FB_NEEDS_TRANSPARENT },
    /* more options of libraries, harmless on a listener and ignored by `on` */
    { OPTIONS(SOL_SOCKET, SO_BROADCAST, SO_PASSCRED), .with = RIGHTS_OF_SOCKETS },
    { OPTIONS(IPPROTO_TCP, TCP_QUICKACK, FASTOPEN_CONNECT), .with = RIGHTS_OF_SOCKETS },
    { OPTIONS(IPPROTO_IP, IP_PKTINFO, IP_RECVTOS, IP_RECVTTL), .with = RIGHTS_OF_SOCKETS },
    { OPTIONS(IPPROTO_IPV6, IPV6_V6ONLY, IPV6_RECVPKTINFO, IPV6_RECVTCLASS, IPV6_RECVHOPLIMIT),
        .with = RIGHTS_OF_SOCKETS },
    { OPTIONS(IPPROTO_UDP, UDP_SEGMENT, UDP_GRO), .with = RIGHTS_OF_SOCKETS },
    { CALLS("connect"), .with = RIGHTS_TO_CONNECT | NEEDS_UNIX_TARGETS | RIGHT_PORTS },
    /* A disconnect, which is a reset, has an address of a family alone. Kernels whose Landlock
     * wants a whole address hold the ports besides. */
    { CALLS("connect"), .unless = RIGHTS_TO_CONNECT | NEEDS_UNIX_TARGETS | RIGHT_PORTS,
        .when = { ARG_IS(2, sizeof(sa_family_t)) } },
    { CALLS("connect"), .with = RIGHT_HELD,
        .unless = RIGHTS_TO_CONNECT | NEEDS_UNIX_TARGETS | RIGHT_PORTS,
        .when = { ARG_IS(2, sizeof(struct sockaddr)) } },
    { CALLS("send", "sendto", "sendmmsg"), .when = { ARG_HAS_NOT(3, MSG_FASTOPEN) } },
    { CALLS("sendmsg"), .when = { ARG_HAS_NOT(2, MSG_FASTOPEN) } },
    { .calls = NULL },
};

const struct rule seccomp_keeper[] = {
    { CALLS(/* the worker, the master, and logs */
        "close", "dup3", "poll", "ppoll", "ppoll_time64", "read", "recvfrom", "recvmsg", "sendmsg",
        "sendto", "write", "writev",
        /* files that the master has opened */
        "fstat", "fstat64", "lseek", "_llseek", "pread64",
        /* memory, randomness and time */
        "brk", "clock_gettime", "clock_gettime64", "futex", "futex_time64", "getpid", "getrandom",
        "madvise", "munmap",
        /* the end, also by an assertion */
        "exit", "exit_group", "gettid", "restart_syscall", "rt_sigaction", "rt_sigprocmask",
        "rt_sigreturn", "sigaltstack", "sigreturn") },
    { CALLS("getsockopt"), .when = { ARG_IS(1, SOL_SOCKET), ARG_IS(2, SO_TYPE) } },
    /* fstat(), as C libraries make it */
    { CALLS("fstatat64", "newfstatat"), .when = { ARG_HAS(3, AT_EMPTY_PATH) } },
    { CALLS("statx"), .when = { ARG_HAS(2, AT_EMPTY_PATH) } },
    { CALLS("open"), .with = NEEDS_FILES, .when = { ARG_HAS_NOT(1, OPENS_TO_CHANGE) } },
    { CALLS("openat"), .with = NEEDS_FILES, .when = { ARG_HAS_NOT(2, OPENS_TO_CHANGE) } },
    { CALLS("mmap", "mmap2", "mprotect"), .when = { ARG_HAS_NOT(2, PROT_EXEC) } },
    { CALLS("pwritev2"), .when = { ARG_HAS_NOT(5, NO_APPEND) } },
    { SIGNALS, .when = { ARG_COMPARE(0, SCMP_CMP_EQ, SANDBOX_OWN_PID) } },
    { .calls = NULL },
};

/* Options of hiredis, libpq, libcurl, c-ares, the C library's resolver, and QUIC libraries. */
const struct rule seccomp_libraries[] = {
    { OPTIONS(SOL_SOCKET, SO_SNDBUF, SO_RCVTIMEO, SO_SNDTIMEO, RECEIVE_TIMEOUT_64, SEND_TIMEOUT_64,
        SO_REUSEPORT, SO_BINDTODEVICE, BIND_TO_INDEX, SO_OOBINLINE, SO_PRIORITY, SO_BUSY_POLL) },
    { OPTIONS(IPPROTO_TCP, TCP_CORK, TCP_SYNCNT, TCP_LINGER2, TCP_USER_TIMEOUT, TCP_NOTSENT_LOWAT,
        TCP_CONGESTION, TCP_DEFER_ACCEPT, TCP_FASTOPEN, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT) },
    { OPTIONS(IPPROTO_IP, IP_TOS, IP_TTL, IP_MTU_DISCOVER, IP_RECVERR, IP_UNICAST_IF) },
    { OPTIONS(IPPROTO_IPV6, IPV6_UNICAST_HOPS, IPV6_MTU, IPV6_MTU_DISCOVER, IPV6_RECVERR,
        IPV6_DONTFRAG, IPV6_TCLASS, IPV6_UNICAST_IF) },
    { .calls = NULL },
};
