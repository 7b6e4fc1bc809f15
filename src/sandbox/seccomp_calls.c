/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of system calls by purpose. A call unknown to the architecture or to libseccomp is passed
 * over. Calls with rules about arguments are in seccomp.c. */
#include "sandbox/confine.h"

/* Calls of administrators, debuggers and container managers, and those with the kernel's worst
 * holes. */
const char *const sandbox_calls_denied[] = {
    /* file systems and their mounts */
    "chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount",
    "open_by_handle_at", "open_tree", "open_tree_attr", "pivot_root", "quotactl", "quotactl_fd",
    "setns", "swapoff", "swapon", "umount", "umount2", "uselib",
    /* the machine */
    "acct", "clock_adjtime", "clock_adjtime64", "clock_settime", "clock_settime64", "create_module",
    "delete_module", "finit_module", "get_kernel_syms", "init_module", "ioperm", "iopl",
    "kexec_file_load", "kexec_load", "lookup_dcookie", "modify_ldt", "nfsservctl",
    "pciconfig_iobase", "pciconfig_read", "pciconfig_write", "query_module", "reboot",
    "setdomainname", "sethostname", "settimeofday", "stime", "sysfs", "syslog", "vhangup", "vm86",
    "vm86old", "_sysctl",
    /* other processes */
    "kcmp", "pidfd_getfd", "pidfd_send_signal", "process_madvise", "process_mrelease",
    "process_vm_readv", "process_vm_writev",
    /* the kernel's insides */
    "add_key", "bpf", "fanotify_init", "keyctl", "perf_event_open", "request_key", "userfaultfd",
    /* would widen the mapping of a worker's own page to siblings' pages; realloc() copies then */
    "mremap", "remap_file_pages", NULL
};

/* Memory and queues shared between processes of a user, or hidden from inspection. */
const char *const sandbox_calls_of_sharing[] = { "ipc", "memfd_secret", "mq_getsetattr",
    "mq_notify", "mq_open", "mq_timedreceive", "mq_timedreceive_time64", "mq_timedsend",
    "mq_timedsend_time64", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget",
    "semop", "semtimedop", "semtimedop_time64", "shmat", "shmctl", "shmdt", "shmget", NULL };

const char *const sandbox_calls_of_exec[] = { "execve", "execveat", NULL };

/* To make a ring, or to change a ring's rights. */
const char *const sandbox_calls_of_io_uring[] = { "io_uring_register", "io_uring_setup", NULL };

/* Without io_setup(), which workers call before the sandbox. */
const char *const sandbox_calls_of_aio[] = { "io_cancel", "io_destroy", "io_getevents",
    "io_pgetevents", "io_pgetevents_time64", "io_submit", NULL };

const char *const sandbox_calls_allowed[] = {
    /* descriptors */
    "close", "close_range", "copy_file_range", "dup", "dup2", "dup3", "eventfd", "eventfd2",
    "fadvise64", "fadvise64_64", "arm_fadvise64_64", "fdatasync", "flock", "fstat", "fstat64",
    "fstatfs", "fstatfs64", "fsync", "getdents", "getdents64", "lseek", "_llseek", "memfd_create",
    "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "read", "readahead",
    "readv", "sendfile", "sendfile64", "signalfd", "signalfd4", "splice", "sync_file_range",
    "sync_file_range2", "tee", "timerfd_create", "timerfd_gettime", "timerfd_gettime64",
    "timerfd_settime", "timerfd_settime64", "vmsplice", "write", "writev",
    /* files by name, as far as Landlock permits opening */
    "access", "faccessat", "faccessat2", "fstatat64", "getcwd", "lstat", "lstat64", "newfstatat",
    "open", "openat", "openat2", "readlink", "readlinkat", "stat", "stat64", "statfs", "statfs64",
    "statx",
    /* waiting */
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2",
    "epoll_wait", "epoll_wait_old", "_newselect", "poll", "ppoll", "ppoll_time64", "pselect6",
    "pselect6_time64", "select",
    /* sockets that are there */
    "accept", "accept4", "getpeername", "getsockname", "getsockopt", "recv", "recvfrom", "recvmmsg",
    "recvmmsg_time64", "recvmsg", "shutdown", "socketpair",
    /* memory */
    "brk", "get_mempolicy", "madvise", "membarrier", "mincore", "mlock", "mlock2", "msync",
    "munlock", "munmap",
    /* threads and the process itself */
    "arch_prctl", "capget", "exit", "exit_group", "futex", "futex_time64", "futex_waitv",
    "futex_wait", "futex_wake", "futex_requeue", "get_robust_list", "getcpu", "getegid",
    "getegid32", "geteuid", "geteuid32", "getgid", "getgid32", "getgroups", "getgroups32",
    "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresgid32",
    "getresuid", "getresuid32", "getrlimit", "getrusage", "getsid", "gettid", "getuid", "getuid32",
    "rseq", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity",
    "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_yield", "set_robust_list",
    "set_thread_area", "set_tid_address", "set_tls", "sysinfo", "times", "ugetrlimit", "umask",
    "uname", "wait4", "waitid", "waitpid",
    /* time and signals */
    "alarm", "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64",
    "clock_nanosleep", "clock_nanosleep_time64", "getitimer", "getrandom", "gettimeofday",
    "nanosleep", "pause", "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
    "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_sigtimedwait_time64", "setitimer",
    "sigaltstack", "sigreturn", "time", "timer_create", "timer_delete", "timer_getoverrun",
    "timer_gettime", "timer_gettime64", "timer_settime", "timer_settime64", NULL
};

const char *const sandbox_calls_of_children[] = { "chdir", "fchdir", "fork", "pidfd_open",
    "setpgid", "setrlimit", "setsid", "vfork", NULL };

const char *const sandbox_calls_of_groups[] = { "pidfd_open", "setsid", NULL };

const char *const sandbox_calls_of_cutting[] = { "fallocate", "ftruncate", "ftruncate64", NULL };

const char *const sandbox_calls_of_writing[] = { "chmod", "creat", "fchmod", "fchmodat",
    "fchmodat2", "fallocate", "ftruncate", "ftruncate64", "futimesat", "link", "linkat", "mkdir",
    "mkdirat", "rename", "renameat", "renameat2", "rmdir", "symlink", "symlinkat", "truncate",
    "truncate64", "unlink", "unlinkat", "utime", "utimensat", "utimensat_time64", "utimes", NULL };
