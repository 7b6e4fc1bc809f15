/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of test_sandbox.c: what a worker tries, and how it ends in each mode of the sandbox.
 * The words are those of sandbox/attempts.h. */
#pragma once

#include <errno.h>
#include <linux/capability.h>

/* Layers that stop an attempt. */
enum guard { FILTER, PATHS, PORTS };

#define CAP(name) (1u + CAP_##name)

/* How attempts end under `on` and `strict`; with `off` they end otherwise than by a denial, as long
 * as the worker has the capability that they need (0: none). */
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
    { "cut", EPERM, EPERM, 0, FILTER },
    { "overwrite", EPERM, EPERM, 0, FILTER },
    { "cut_hole", EPERM, EPERM, 0, FILTER },

    { "setuid", 0, EPERM, 0, FILTER },
    { "bind", 0, EPERM, 0, FILTER },
    { "affinity_self", 0, EPERM, 0, FILTER },
    { "priority_self", 0, EPERM, 0, FILTER },
    { "memfd", EPERM, 0, 0, FILTER },
    { "stop_appending", 0, EPERM, 0, FILTER },
    { "begin_to_wait", 0, EPERM, 0, FILTER },
    { "have_others_wait", 0, EPERM, 0, FILTER },
    { "connect $1", ECONNREFUSED, EPERM, 0, FILTER },
    { "tcp", 0, EPERM, 0, FILTER },
    { "unix", 0, EPERM, 0, FILTER },
#ifndef __SANITIZE_ADDRESS__
    { "fork", EPERM, EPERM, 0, FILTER },
    { "open /proc/self/status", 0, EACCES, 0, PATHS },
    { "open /usr/lib", 0, EACCES, 0, PATHS },
#endif

    { "go_on_appending", 0, 0, 0, FILTER },
    { "kill_self", 0, 0, 0, FILTER },
    { "tgkill_self", 0, 0, 0, FILTER },
    { "thread tgkill_self", 0, 0, 0, FILTER },
    { "open /dev/null", 0, 0, 0, PATHS },
    { "open /usr/share/zoneinfo", 0, 0, 0, PATHS },
};
