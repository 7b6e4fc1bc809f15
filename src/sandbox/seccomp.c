/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter of system calls. `on` denies what no worker does, `strict` all but what workers do;
 * what is denied fails with EPERM. The kernel remembers the calls that are allowed whatever their
 * arguments, so that there are no rules about the arguments of calls that are made often.
 *
 * The kernel uses 32 bits of an int argument, but a filter gets 64 bits: a rule that denies must
 * compare only these 32. */
#include "sandbox/confine.h"

#include "process/sanitized.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define DENY SCMP_ACT_ERRNO(EPERM)
#define ALLOW SCMP_ACT_ALLOW

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
#define IOPRIO_PROCESS 1 /* IOPRIO_WHO_PROCESS of linux/ioprio.h, which is newer than others */
#define FAMILIES 64      /* more than there are */
#define TYPES 16         /* SOCK_TYPE_MASK and one */
#define INT UINT32_MAX   /* the bits of one */

/* In all of them the first argument is the process that is signalled; tkill() takes the number of
 * the process's first thread for it. */
static const char *const signals[] = { "kill", "tkill", "tgkill", "rt_sigqueueinfo",
    "rt_tgsigqueueinfo" };

/* A filter that is being made. */
struct filter {
    scmp_filter_ctx context;
    const struct needs *needs;
    /* a protocol of an older SDK cannot declare its needs, so nothing of these is denied */
    bool open;
    bool strict;
    int error; /* the first, negative; 0 */
};

static void add_all(struct filter *filter, uint32_t action, const char *name, unsigned n,
    const struct scmp_arg_cmp *conditions)
{
    int call = seccomp_syscall_resolve_name(name), error;

    assert(filter->error <= 0);
    if (call == __NR_SCMP_ERROR || filter->error != 0)
        return;
    error = seccomp_rule_add_array(filter->context, action, call, n, conditions);
    if (error != 0 && error != -EDOM && error != -EEXIST) /* no call of this architecture; twice */
        filter->error = error;
}

static void add_rule(struct filter *filter, uint32_t action, const char *name)
{
    add_all(filter, action, name, 0, NULL);
}

static void add_if(
    struct filter *filter, uint32_t action, const char *name, struct scmp_arg_cmp condition)
{
    add_all(filter, action, name, 1, &condition);
}

static void add_list(struct filter *filter, uint32_t action, const char *const *names)
{
    for (; *names != NULL; names++)
        add_rule(filter, action, *names);
}

/* Compares the 32 bits of an int argument. */
static struct scmp_arg_cmp arg_is(unsigned arg, uint32_t value)
{
    return SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, INT, value);
}

/* Compares all 64 bits of an argument. */
static struct scmp_arg_cmp arg_compare(unsigned arg, enum scmp_compare op, uint64_t value)
{
    return (struct scmp_arg_cmp) { .arg = arg, .op = op, .datum_a = value };
}

static struct scmp_arg_cmp has_not(unsigned arg, uint64_t bits)
{
    return SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bits, 0);
}

static struct scmp_arg_cmp arg_has(unsigned arg, uint64_t bits)
{
    return SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bits, bits);
}

/* Sockets */

/* Whether workers connect; to which ports, Landlock says. Programs and the resolver connect where
 * they want. */
static bool connects(const struct needs *needs, bool named)
{
    return needs->connect || needs->names || needs->exec || named;
}

static bool has_type(const struct filter *filter, unsigned type)
{
    const struct needs *needs = filter->needs;

    if (type == SOCK_STREAM)
        return !filter->strict || needs->listen || connects(needs, !STAILQ_EMPTY(&needs->ports));
    return type == SOCK_DGRAM && (needs->udp || needs->names || needs->resolver || filter->open);
}

static bool has_family(const struct filter *filter, unsigned family)
{
    const struct needs *needs = filter->needs;

    if (family == AF_UNIX)
        return !filter->strict || needs->listen || connects(needs, needs->unix_targets);
    return family == AF_INET || family == AF_INET6 ||
           (family == AF_NETLINK && (needs->names || filter->open)); /* protocol 0 is routes */
}

static void add_sockets(struct filter *filter, uint32_t action)
{
    static const unsigned internet[] = { AF_INET, AF_INET6 };
    bool allows = action == ALLOW;

    for (unsigned family = 0; family < FAMILIES; family++)
        if (family == AF_NETLINK && has_family(filter, family))
            for (unsigned protocol = 0; protocol < FAMILIES; protocol++) {
                const struct scmp_arg_cmp both[] = { arg_is(0, family), arg_is(2, protocol) };

                if ((protocol == 0) == allows)
                    add_all(filter, action, "socket", 2, both);
            }
        else if (family == AF_INET || family == AF_INET6)
            continue;
        else if (has_family(filter, family) == allows)
            add_if(filter, action, "socket", arg_is(0, family));
    for (size_t i = 0; i < countof(internet); i++)
        for (unsigned type = 0; type < TYPES; type++) {
            const struct scmp_arg_cmp both[] = { arg_is(0, internet[i]),
                SCMP_A1(SCMP_CMP_MASKED_EQ, TYPES - 1, type) };

            if (has_type(filter, type) == allows)
                add_all(filter, action, "socket", 2, both);
        }
}

/* `on` */

static void deny_namespaces(struct filter *filter)
{
    for (uint64_t bit = 1; bit <= NAMESPACES; bit <<= 1) {
        if (bit & NAMESPACES)
            add_if(filter, DENY, "clone", arg_has(CLONE_FLAGS, bit));
        if (bit & (NAMESPACES | CLONE_NEWTIME))
            add_if(filter, DENY, "unshare", arg_has(0, bit));
    }
}

/* A child of fork() would be a second worker on the same descriptors. Threads go on. */
static void deny_fork(struct filter *filter)
{
    if (filter->needs->exec || filter->open || sanitized_clones)
        return;
    add_if(filter, DENY, "clone", has_not(CLONE_FLAGS, CLONE_THREAD));
    add_rule(filter, DENY, "fork");
    add_rule(filter, DENY, "vfork");
}

/* A worker may send signals to programs that it runs; Landlock denies signals to all other
 * processes. */
static void deny_signals(struct filter *filter)
{
    if (filter->needs->exec || filter->open)
        return;
    for (size_t i = 0; i < countof(signals); i++)
        add_if(filter, DENY, signals[i], arg_compare(0, SCMP_CMP_NE, SANDBOX_OWN_PID));
}

/* In builds whose runtime makes some of the requests. */
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
                add_if(filter, DENY, "ptrace", arg_is(0, request));
        }
}

/* A worker may change how it is scheduled itself, and no sibling. */
static void deny_scheduling(struct filter *filter)
{
    static const char *const calls[] = { "sched_setaffinity", "sched_setattr", "sched_setparam",
        "sched_setscheduler" };

    for (size_t i = 0; i < countof(calls); i++)
        add_if(filter, DENY, calls[i], arg_compare(0, SCMP_CMP_NE, 0));
    add_if(filter, DENY, "setpriority", arg_compare(0, SCMP_CMP_NE, PRIO_PROCESS));
    add_if(filter, DENY, "setpriority", arg_compare(1, SCMP_CMP_NE, 0));
    add_if(filter, DENY, "ioprio_set", arg_compare(0, SCMP_CMP_NE, IOPRIO_PROCESS));
    add_if(filter, DENY, "ioprio_set", arg_compare(1, SCMP_CMP_NE, 0));
}

/* Memory that is no file's must not become code; libraries are mapped from their files. */
static void deny_code(struct filter *filter)
{
    static const char *const maps[] = { "mmap", "mmap2" };
    const struct scmp_arg_cmp anonymous[] = { arg_has(2, PROT_EXEC), arg_has(3, MAP_ANONYMOUS) };

    if (filter->needs->code || filter->needs->exec || filter->open)
        return;
    for (size_t i = 0; i < countof(maps); i++)
        add_all(filter, DENY, maps[i], countof(anonymous), anonymous);
    add_if(filter, DENY, "mprotect", arg_has(2, PROT_EXEC));
    add_if(filter, DENY, "pkey_mprotect", arg_has(2, PROT_EXEC));
    add_rule(filter, DENY, "memfd_create");
}

static bool may_write_files(const struct needs *needs)
{
    const struct needs_path *path;

    STAILQ_FOREACH (path, &needs->paths, link)
        if (path->access == NEEDS_TO_WRITE)
            return true;
    return false;
}

/* Denies what protocols may need, and none of this configuration has declared. */
static void deny_needs(struct filter *filter)
{
    const struct needs *needs = filter->needs;

    if (filter->open)
        return;
    if (!needs->exec) {
        add_list(filter, DENY, sandbox_calls_of_exec);
        add_list(filter, DENY, sandbox_calls_of_groups);
    }
    if (!needs->listen)
        add_rule(filter, DENY, "listen");
    if (!may_write_files(needs)) {
        add_list(filter, DENY, sandbox_calls_of_cutting);
        add_if(filter, DENY, "pwritev2", arg_has(5, NO_APPEND));
    }
    add_list(filter, DENY, sandbox_calls_of_io_uring);
    add_rule(filter, DENY, "io_setup");
    if (!needs->aio)
        add_list(filter, DENY, sandbox_calls_of_aio);
    if (!needs->ring)
        add_rule(filter, DENY, "io_uring_enter");
    add_list(filter, DENY, sandbox_calls_of_sharing);
}

static void deny_calls(struct filter *filter)
{
    static const unsigned ioctls[] = { TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP };
    static const unsigned fcntls[] = { F_SETOWN,
        F_SETOWN_EX }; /* choose the process that gets SIGIO */

    add_list(filter, DENY, sandbox_calls_denied);
    deny_needs(filter);
    deny_code(filter);
    deny_scheduling(filter);
    for (size_t i = 0; i < countof(ioctls); i++)
        add_if(filter, DENY, "ioctl", arg_is(1, ioctls[i]));
    for (size_t i = 0; i < countof(fcntls); i++) {
        add_if(filter, DENY, "fcntl", arg_is(1, fcntls[i]));
        add_if(filter, DENY, "fcntl64", arg_is(1, fcntls[i]));
    }
    add_if(filter, DENY, "prctl", arg_is(0, PR_SET_MM));
    add_if(filter, DENY, "personality", arg_compare(0, SCMP_CMP_NE, INT)); /* INT only asks */
    add_if(filter, DENY, "prlimit64", arg_compare(0, SCMP_CMP_NE, 0));
    deny_namespaces(filter);
    deny_fork(filter);
    deny_signals(filter);
    if (sanitized_ptraces[0] == 0)
        add_rule(filter, DENY, "ptrace");
    else
        deny_ptrace_but(filter, sanitized_ptraces);
    add_sockets(filter, DENY);
}

/* `strict` */

static void allow_signals(struct filter *filter)
{
    for (size_t i = 0; i < countof(signals); i++)
        if (filter->needs->exec)
            add_rule(filter, ALLOW, signals[i]);
        else
            add_if(filter, ALLOW, signals[i], arg_compare(0, SCMP_CMP_EQ, SANDBOX_OWN_PID));
}

static void allow_clones(struct filter *filter)
{
    uint64_t looked_at = NAMESPACES | CLONE_THREAD;

    if (filter->needs->exec || sanitized_clones)
        add_if(filter, ALLOW, "clone", has_not(CLONE_FLAGS, NAMESPACES));
    else
        add_if(filter, ALLOW, "clone",
            SCMP_CMP(CLONE_FLAGS, SCMP_CMP_MASKED_EQ, looked_at, CLONE_THREAD));
}

static void allow_memory(struct filter *filter)
{
    static const char *const calls[] = { "mmap", "mmap2", "mprotect" };
    const struct needs *needs = filter->needs;

    for (size_t i = 0; i < countof(calls); i++)
        if (needs->code || needs->exec || needs->names) /* names load libraries */
            add_rule(filter, ALLOW, calls[i]);
        else
            add_if(filter, ALLOW, calls[i], has_not(2, PROT_EXEC));
}

/* Allows the harmless requests of calls that can do many things. */
static void allow_options(struct filter *filter)
{
    static const unsigned ioctls[] = { FIONREAD, FIOCLEX, FIONCLEX, TCGETS, TIOCGWINSZ, TIOCOUTQ };
    static const unsigned fcntls[] = { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_GETLK,
        F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_SETPIPE_SZ, F_GETPIPE_SZ,
        F_ADD_SEALS, F_GET_SEALS };
    /* listeners, whose flags are those of all workers, must not have them wait in accept4();
     * descriptors of logs must go on appending, which cannot be held where a library makes its own
     * sockets non-blocking */
    bool own_sockets = filter->needs->udp || filter->needs->connect;
    const struct scmp_arg_cmp flags[] = { arg_is(1, F_SETFL),
        arg_has(2, own_sockets ? O_NONBLOCK : O_APPEND | O_NONBLOCK) };
    static const unsigned prctls[] = { PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE,
        PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_SET_VMA };

    for (size_t i = 0; i < countof(ioctls); i++)
        add_if(filter, ALLOW, "ioctl", arg_is(1, ioctls[i]));
    for (size_t i = 0; i < countof(fcntls); i++) {
        add_if(filter, ALLOW, "fcntl", arg_is(1, fcntls[i]));
        add_if(filter, ALLOW, "fcntl64", arg_is(1, fcntls[i]));
    }
    add_all(filter, ALLOW, "fcntl", countof(flags), flags);
    add_all(filter, ALLOW, "fcntl64", countof(flags), flags);
    for (size_t i = 0; i < countof(prctls); i++)
        add_if(filter, ALLOW, "prctl", arg_is(0, prctls[i]));
    add_if(filter, ALLOW, "prlimit64", arg_compare(0, SCMP_CMP_EQ, 0));
}

static void allow_for_build(struct filter *filter)
{
    add_list(filter, ALLOW, sanitized_calls);
    for (const unsigned *option = sanitized_prctls; *option != 0; option++)
        add_if(filter, ALLOW, "prctl", arg_is(0, *option));
    for (const unsigned *request = sanitized_ptraces; *request != 0; request++)
        add_if(filter, ALLOW, "ptrace", arg_is(0, *request));
}

static void allow_calls(struct filter *filter)
{
    const struct scmp_arg_cmp own_priority[] = { arg_compare(0, SCMP_CMP_EQ, PRIO_PROCESS),
        arg_compare(1, SCMP_CMP_EQ, 0) };
    const struct needs *needs = filter->needs;

    assert(!filter->open && !needs->ring); /* only with `on` */
    add_list(filter, ALLOW, sandbox_calls_allowed);
    if (may_write_files(needs))
        add_list(filter, ALLOW, sandbox_calls_of_writing);
    add_if(filter, ALLOW, "pwritev2", has_not(5, NO_APPEND));
    if (needs->aio)
        add_list(filter, ALLOW, sandbox_calls_of_aio);
    if (needs->exec) {
        add_list(filter, ALLOW, sandbox_calls_of_exec);
        add_list(filter, ALLOW, sandbox_calls_of_children);
        add_all(filter, ALLOW, "setpriority", countof(own_priority), own_priority);
    }
    if (connects(needs, needs->unix_targets || !STAILQ_EMPTY(&needs->ports)))
        add_rule(filter, ALLOW, "connect");
    if (needs->listen)
        add_rule(filter, ALLOW, "listen");
    if (needs->listen || needs->udp || needs->names || needs->bind)
        add_rule(filter, ALLOW, "bind");
    allow_signals(filter);
    allow_clones(filter);
    allow_memory(filter);
    allow_options(filter);
    allow_for_build(filter);
    add_sockets(filter, ALLOW);
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
    add_rule(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3");
    if (strict)
        allow_calls(filter);
    else
        deny_calls(filter);
    if (filter->error == 0)
        filter->error = seccomp_attr_set(filter->context, SCMP_FLTATR_ACT_BADARCH, DENY);
    /* an old libseccomp refuses this: the filter is slower then */
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
