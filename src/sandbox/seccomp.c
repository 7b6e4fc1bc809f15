/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter of system calls. `on` denies calls never made by workers, `strict` allows the calls of
 * workers alone; a denied call fails with EPERM. The kernel caches calls allowed with any
 * arguments, so frequent calls have no rules about arguments, but for sending calls, where flags
 * can connect. */
#include "sandbox/confine.h"
#include "sandbox/seccomp_sockets.h"

#include "process/sanitized.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

/* Headers may be older; the numbers are the kernel's. */
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

/* Position of the flags among the arguments of clone(). */
#if defined(__s390__) || defined(__CRIS__)
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif
#define NAMESPACES                                                                                 \
    ((uint64_t)CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |       \
        CLONE_NEWPID | CLONE_NEWNET)

#define NO_APPEND 0x20   /* RWF_NOAPPEND, since Linux 6.9: writes into what O_APPEND protects */
#define IOPRIO_PROCESS 1 /* IOPRIO_WHO_PROCESS of linux/ioprio.h, a newer header */

/* The first argument is always the signalled process; for tkill() the number of the process's first
 * thread. */
static const char *const signals[] = { "kill", "tkill", "tgkill", "rt_sigqueueinfo",
    "rt_tgsigqueueinfo" };

/* `on` */

static void deny_namespaces(struct filter *filter)
{
    for (uint64_t bit = 1; bit <= NAMESPACES; bit <<= 1) {
        if (bit & NAMESPACES)
            seccomp_add_if(filter, DENY, "clone", seccomp_arg_has(CLONE_FLAGS, bit));
        if (bit & (NAMESPACES | CLONE_NEWTIME))
            seccomp_add_if(filter, DENY, "unshare", seccomp_arg_has(0, bit));
    }
}

/* A child of fork() would be a second worker on the same descriptors. Threads go on. */
static void deny_fork(struct filter *filter)
{
    if (filter->needs->exec || filter->open || sanitized_clones)
        return;
    seccomp_add_if(filter, DENY, "clone", seccomp_arg_has_not(CLONE_FLAGS, CLONE_THREAD));
    seccomp_add_rule(filter, DENY, "fork");
    seccomp_add_rule(filter, DENY, "vfork");
}

/* A worker may signal running children; Landlock denies signals beyond its children. */
static void deny_signals(struct filter *filter)
{
    if (filter->needs->exec || filter->open)
        return;
    for (size_t i = 0; i < countof(signals); i++)
        seccomp_add_if(
            filter, DENY, signals[i], seccomp_arg_compare(0, SCMP_CMP_NE, SANDBOX_OWN_PID));
}

/* In builds with a runtime that makes some of the requests. */
static void deny_ptrace_but(struct filter *filter, const unsigned *own)
{
    static const struct {
        unsigned first, end;
    } requests[] = { { 0, 64 }, { PTRACE_SETOPTIONS, PTRACE_SETOPTIONS + 64 } };

    for (size_t i = 0; i < countof(requests); i++)
        for (unsigned request = requests[i].first; request < requests[i].end; request++) {
            const unsigned *one = own;

            while (*one != 0 && *one != request)
                one++;
            if (*one == 0)
                seccomp_add_if(filter, DENY, "ptrace", seccomp_arg_is(0, request));
        }
}

/* A worker may change how it is scheduled itself, and no sibling. */
static void deny_scheduling(struct filter *filter)
{
    static const char *const calls[] = { "sched_setaffinity", "sched_setattr", "sched_setparam",
        "sched_setscheduler" };

    for (size_t i = 0; i < countof(calls); i++)
        seccomp_add_if(filter, DENY, calls[i], seccomp_arg_compare(0, SCMP_CMP_NE, 0));
    seccomp_add_if(filter, DENY, "setpriority", seccomp_arg_compare(0, SCMP_CMP_NE, PRIO_PROCESS));
    seccomp_add_if(filter, DENY, "setpriority", seccomp_arg_compare(1, SCMP_CMP_NE, 0));
    seccomp_add_if(filter, DENY, "ioprio_set", seccomp_arg_compare(0, SCMP_CMP_NE, IOPRIO_PROCESS));
    seccomp_add_if(filter, DENY, "ioprio_set", seccomp_arg_compare(1, SCMP_CMP_NE, 0));
}

/* Memory without a file must not become code, nor code be written; libraries are mapped from
 * files. */
static void deny_code(struct filter *filter)
{
    static const char *const maps[] = { "mmap", "mmap2" };
    const struct scmp_arg_cmp anonymous[] = { seccomp_arg_has(2, PROT_EXEC),
        seccomp_arg_has(3, MAP_ANONYMOUS) };

    if (filter->needs->code || filter->needs->exec || filter->open)
        return;
    for (size_t i = 0; i < countof(maps); i++) {
        seccomp_add_all(filter, DENY, maps[i], countof(anonymous), anonymous);
        seccomp_add_if(filter, DENY, maps[i], seccomp_arg_has(2, PROT_WRITE | PROT_EXEC));
    }
    seccomp_add_if(filter, DENY, "mprotect", seccomp_arg_has(2, PROT_EXEC));
    seccomp_add_if(filter, DENY, "pkey_mprotect", seccomp_arg_has(2, PROT_EXEC));
    seccomp_add_rule(filter, DENY, "memfd_create");
}

static bool may_write_files(const struct needs *needs)
{
    const struct needs_path *path;

    STAILQ_FOREACH (path, &needs->paths, link)
        if (path->access == NEEDS_TO_WRITE)
            return true;
    return false;
}

/* Denies needs declared by no protocol of the configuration. */
static void deny_needs(struct filter *filter)
{
    const struct needs *needs = filter->needs;

    if (filter->open)
        return;
    if (!needs->exec) {
        seccomp_add_list(filter, DENY, sandbox_calls_of_exec);
        seccomp_add_list(filter, DENY, sandbox_calls_of_groups);
    }
    if (!needs->listen)
        seccomp_add_rule(filter, DENY, "listen");
    if (!may_write_files(needs)) {
        seccomp_add_list(filter, DENY, sandbox_calls_of_cutting);
        seccomp_add_if(filter, DENY, "pwritev2", seccomp_arg_has(5, NO_APPEND));
    }
    seccomp_add_list(filter, DENY, sandbox_calls_of_io_uring);
    seccomp_add_rule(filter, DENY, "io_setup");
    if (!needs->aio)
        seccomp_add_list(filter, DENY, sandbox_calls_of_aio);
    if (!needs->ring)
        seccomp_add_rule(filter, DENY, "io_uring_enter");
    seccomp_add_list(filter, DENY, sandbox_calls_of_sharing);
}

/* Flags that F_SETFL must keep. Listeners share flags between all workers, and must not make
 * workers wait in accept4(). Descriptors of logs must go on appending, unenforceable where a
 * library makes own sockets non-blocking. */
static unsigned kept_flags(const struct filter *filter)
{
    return seccomp_has_own_sockets(filter) ? O_NONBLOCK : O_APPEND | O_NONBLOCK;
}

static void deny_flags(struct filter *filter)
{
    static const char *const calls[] = { "fcntl", "fcntl64" };
    static const unsigned kept[] = { O_APPEND, O_NONBLOCK };

    if (seccomp_has_own_sockets(filter))
        return;
    for (size_t i = 0; i < countof(calls); i++)
        for (size_t j = 0; j < countof(kept); j++) {
            const struct scmp_arg_cmp flags[] = { seccomp_arg_is(1, F_SETFL),
                seccomp_arg_has_not(2, kept[j]) };

            seccomp_add_all(filter, DENY, calls[i], countof(flags), flags);
        }
    seccomp_add_if(filter, DENY, "ioctl", seccomp_arg_is(1, FIONBIO));
}

static void deny_calls(struct filter *filter)
{
    static const unsigned ioctls[] = { TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP };
    static const unsigned fcntls[] = { F_SETOWN,
        F_SETOWN_EX }; /* choose the process that gets SIGIO */

    seccomp_add_list(filter, DENY, sandbox_calls_denied);
    deny_needs(filter);
    deny_code(filter);
    deny_flags(filter);
    deny_scheduling(filter);
    for (size_t i = 0; i < countof(ioctls); i++)
        seccomp_add_if(filter, DENY, "ioctl", seccomp_arg_is(1, ioctls[i]));
    for (size_t i = 0; i < countof(fcntls); i++) {
        seccomp_add_if(filter, DENY, "fcntl", seccomp_arg_is(1, fcntls[i]));
        seccomp_add_if(filter, DENY, "fcntl64", seccomp_arg_is(1, fcntls[i]));
    }
    seccomp_add_if(filter, DENY, "prctl", seccomp_arg_is(0, PR_SET_MM));
    seccomp_add_if(filter, DENY, "personality",
        seccomp_arg_compare(0, SCMP_CMP_NE, UINT32_MAX)); /* which only asks */
    seccomp_add_if(filter, DENY, "prlimit64", seccomp_arg_compare(0, SCMP_CMP_NE, 0));
    deny_namespaces(filter);
    deny_fork(filter);
    deny_signals(filter);
    if (sanitized_ptraces[0] == 0)
        seccomp_add_rule(filter, DENY, "ptrace");
    else
        deny_ptrace_but(filter, sanitized_ptraces);
    seccomp_deny_sockets(filter);
}

/* `strict` */

static void allow_signals(struct filter *filter)
{
    for (size_t i = 0; i < countof(signals); i++)
        if (filter->needs->exec)
            seccomp_add_rule(filter, ALLOW, signals[i]);
        else
            seccomp_add_if(
                filter, ALLOW, signals[i], seccomp_arg_compare(0, SCMP_CMP_EQ, SANDBOX_OWN_PID));
}

static void allow_clones(struct filter *filter)
{
    uint64_t looked_at = NAMESPACES | CLONE_THREAD;

    if (filter->needs->exec || sanitized_clones)
        seccomp_add_if(filter, ALLOW, "clone", seccomp_arg_has_not(CLONE_FLAGS, NAMESPACES));
    else
        seccomp_add_if(filter, ALLOW, "clone",
            SCMP_CMP(CLONE_FLAGS, SCMP_CMP_MASKED_EQ, looked_at, CLONE_THREAD));
}

static void allow_memory(struct filter *filter)
{
    static const char *const calls[] = { "mmap", "mmap2", "mprotect" };
    const struct needs *needs = filter->needs;

    for (size_t i = 0; i < countof(calls); i++) {
        if (needs->code || needs->exec) {
            seccomp_add_rule(filter, ALLOW, calls[i]);
            continue;
        }
        seccomp_add_if(filter, ALLOW, calls[i], seccomp_arg_has_not(2, PROT_EXEC));
        if (needs->names) /* libraries are loaded */
            seccomp_add_if(filter, ALLOW, calls[i], seccomp_arg_has_not(2, PROT_WRITE));
    }
}

/* Allows the harmless requests of calls that can do many things. */
static void allow_options(struct filter *filter)
{
    static const unsigned ioctls[] = { FIONREAD, FIOCLEX, FIONCLEX, TCGETS, TIOCGWINSZ, TIOCOUTQ };
    static const unsigned fcntls[] = { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_GETLK,
        F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_SETPIPE_SZ, F_GETPIPE_SZ,
        F_ADD_SEALS, F_GET_SEALS };
    const struct scmp_arg_cmp flags[] = { seccomp_arg_is(1, F_SETFL),
        seccomp_arg_has(2, kept_flags(filter)) };
    static const unsigned prctls[] = { PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE,
        PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_SET_VMA };

    for (size_t i = 0; i < countof(ioctls); i++)
        seccomp_add_if(filter, ALLOW, "ioctl", seccomp_arg_is(1, ioctls[i]));
    for (size_t i = 0; i < countof(fcntls); i++) {
        seccomp_add_if(filter, ALLOW, "fcntl", seccomp_arg_is(1, fcntls[i]));
        seccomp_add_if(filter, ALLOW, "fcntl64", seccomp_arg_is(1, fcntls[i]));
    }
    seccomp_add_all(filter, ALLOW, "fcntl", countof(flags), flags);
    seccomp_add_all(filter, ALLOW, "fcntl64", countof(flags), flags);
    for (size_t i = 0; i < countof(prctls); i++)
        seccomp_add_if(filter, ALLOW, "prctl", seccomp_arg_is(0, prctls[i]));
    seccomp_add_if(filter, ALLOW, "prlimit64", seccomp_arg_compare(0, SCMP_CMP_EQ, 0));
}

static void allow_build_calls(struct filter *filter)
{
    seccomp_add_list(filter, ALLOW, sanitized_calls);
    for (const unsigned *option = sanitized_prctls; *option != 0; option++)
        seccomp_add_if(filter, ALLOW, "prctl", seccomp_arg_is(0, *option));
    for (const unsigned *request = sanitized_ptraces; *request != 0; request++)
        seccomp_add_if(filter, ALLOW, "ptrace", seccomp_arg_is(0, *request));
}

static void allow_calls(struct filter *filter)
{
    const struct scmp_arg_cmp own_priority[] = { seccomp_arg_compare(0, SCMP_CMP_EQ, PRIO_PROCESS),
        seccomp_arg_compare(1, SCMP_CMP_EQ, 0) };
    const struct needs *needs = filter->needs;

    assert(!filter->open && !needs->ring); /* only with `on` */
    seccomp_add_list(filter, ALLOW, sandbox_calls_allowed);
    if (may_write_files(needs))
        seccomp_add_list(filter, ALLOW, sandbox_calls_of_writing);
    seccomp_add_if(filter, ALLOW, "pwritev2", seccomp_arg_has_not(5, NO_APPEND));
    if (needs->aio)
        seccomp_add_list(filter, ALLOW, sandbox_calls_of_aio);
    if (needs->exec) {
        seccomp_add_list(filter, ALLOW, sandbox_calls_of_exec);
        seccomp_add_list(filter, ALLOW, sandbox_calls_of_children);
        seccomp_add_all(filter, ALLOW, "setpriority", countof(own_priority), own_priority);
    }
    if (needs->listen)
        seccomp_add_rule(filter, ALLOW, "listen");
    if (needs->listen || needs->udp || needs->names || needs->bind)
        seccomp_add_rule(filter, ALLOW, "bind");
    allow_signals(filter);
    allow_clones(filter);
    allow_memory(filter);
    allow_options(filter);
    allow_build_calls(filter);
    seccomp_allow_sockets(filter);
}

/* A kernel with filters answers EFAULT, because there is no address to read from. */
const char *sandbox_seccomp_lacks(int *error)
{
    *error = 0;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) == -1 && errno != EFAULT) {
        *error = errno;
        return "the kernel does not offer seccomp filters";
    }
    return NULL;
}

/* The C library tries clone3() first, whose flags a filter cannot see. */
static int write_filter(struct filter *filter, bool strict, int fd)
{
    seccomp_add_rule(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3");
    if (strict)
        allow_calls(filter);
    else
        deny_calls(filter);
    if (filter->error == 0)
        filter->error = seccomp_attr_set(filter->context, SCMP_FLTATR_ACT_BADARCH, DENY);
    /* an old libseccomp refuses: the filter is slower then */
    seccomp_attr_set(filter->context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (filter->error == 0)
        filter->error = seccomp_export_bpf(filter->context, fd);
    return filter->error;
}

int sandbox_seccomp_build(const struct cycle *cycle, int fd)
{
    bool strict = cycle->core.sandbox == SANDBOX_STRICT;
    struct filter filter = {
        .context = seccomp_init(strict ? DENY : ALLOW),
        .needs = &cycle->needs,
        .open = !strict && cycle->needs.unknown != NULL,
        .strict = strict,
        .ports_held = sandbox_landlock_holds_ports(cycle),
    };
    int error;

    assert(cycle->core.sandbox != SANDBOX_OFF);
    if (filter.context == NULL) {
        errno = ENOMEM;
        return -1;
    }
    error = write_filter(&filter, strict, fd);
    seccomp_release(filter.context);
    errno = -error;
    return error == 0 ? 0 : -1;
}
