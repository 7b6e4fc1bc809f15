/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter of system calls: seccomp_rules.c, and loops of rules. Denied calls fail with EPERM. */
#include "sandbox/confine.h"
#include "sandbox/seccomp_rules.h"

#include "process/sanitized.h"

#include <assert.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

/* Headers may be older; the numbers are the kernel's. */
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#define DENY SCMP_ACT_ERRNO(EPERM)
#define ALLOW SCMP_ACT_ALLOW

#define FAMILIES 64 /* more than there are */
#define TYPES 16    /* SOCK_TYPE_MASK and one */

/* A filter under construction. */
struct filter {
    scmp_filter_ctx context;
    uint64_t rights;
    bool strict;
    int error; /* the first, negative; 0 */
};

/* Passes over a call that this architecture or libseccomp does not know. */
static void add_rule(struct filter *filter, uint32_t action, const char *name, unsigned n,
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

static void add_if(
    struct filter *filter, uint32_t action, const char *name, struct scmp_arg_cmp condition)
{
    add_rule(filter, action, name, 1, &condition);
}

static struct scmp_arg_cmp arg_is(unsigned arg, uint32_t value)
{
    return (struct scmp_arg_cmp)ARG_IS(arg, value);
}

static void add_call(
    struct filter *filter, uint32_t action, const char *name, const struct rule *rule)
{
    struct scmp_arg_cmp conditions[3];
    unsigned n = 0;

    for (; n < 2 && rule->when[n].op != 0; n++)
        conditions[n] = rule->when[n];
    if (rule->value_n == 0)
        add_rule(filter, action, name, n, conditions);
    for (unsigned i = 0; i < rule->value_n; i++) {
        conditions[n] = arg_is(rule->arg, rule->values[i]);
        add_rule(filter, action, name, n + 1, conditions);
    }
}

static void add_rules(struct filter *filter, uint32_t action, const struct rule *rules)
{
    for (; rules->calls != NULL; rules++) {
        if ((rules->with != 0 && !(filter->rights & rules->with)) ||
            (filter->rights & rules->unless) != 0)
            continue;
        for (const char *const *call = rules->calls; *call != NULL; call++)
            add_call(filter, action, *call, rules);
    }
}

/* ---- Sockets ---- */

static bool has_type(const struct filter *filter, unsigned type)
{
    if (type == SOCK_STREAM)
        return !filter->strict ||
               (filter->rights & (FB_NEEDS_LISTEN | RIGHTS_TO_CONNECT | RIGHT_PORTS)) != 0;
    return type == SOCK_DGRAM &&
           (filter->rights & (FB_NEEDS_UDP | FB_NEEDS_NAMES | FB_NEEDS_RESOLVER | RIGHT_OPEN)) != 0;
}

static bool has_family(const struct filter *filter, unsigned family)
{
    if (family == AF_UNIX)
        return !filter->strict ||
               (filter->rights & (FB_NEEDS_LISTEN | RIGHTS_TO_CONNECT | NEEDS_UNIX_TARGETS)) != 0;
    return family == AF_NETLINK && (filter->rights & (FB_NEEDS_NAMES | RIGHT_OPEN)) != 0;
}

/* Neither multipath TCP nor SCTP: Landlock's rules for ports are about TCP. */
static void add_streams(struct filter *filter, unsigned family)
{
    static const uint32_t tcp[] = { 0, IPPROTO_TCP };
    struct scmp_arg_cmp when[] = { arg_is(0, family),
        SCMP_A1(SCMP_CMP_MASKED_EQ, TYPES - 1, SOCK_STREAM),
        ARG_COMPARE(2, SCMP_CMP_GT, IPPROTO_TCP) };

    if (!filter->strict)
        add_rule(filter, DENY, "socket", countof(when), when);
    for (size_t i = 0; filter->strict && i < countof(tcp); i++) {
        when[2] = arg_is(2, tcp[i]);
        add_rule(filter, ALLOW, "socket", countof(when), when);
    }
}

static void add_internet(struct filter *filter, uint32_t action, unsigned family)
{
    for (unsigned type = 0; type < TYPES; type++) {
        const struct scmp_arg_cmp both[] = { arg_is(0, family),
            SCMP_A1(SCMP_CMP_MASKED_EQ, TYPES - 1, type) };

        if (type == SOCK_STREAM && has_type(filter, type))
            add_streams(filter, family);
        else if (has_type(filter, type) == (action == ALLOW))
            add_rule(filter, action, "socket", countof(both), both);
    }
}

static void add_sockets(struct filter *filter, uint32_t action)
{
    bool allows = action == ALLOW;

    for (unsigned family = 0; family < FAMILIES; family++)
        if (family == AF_NETLINK && has_family(filter, family))
            for (unsigned protocol = 0; protocol < FAMILIES; protocol++) {
                const struct scmp_arg_cmp both[] = { arg_is(0, family), arg_is(2, protocol) };

                if ((protocol == 0) == allows) /* routes */
                    add_rule(filter, action, "socket", countof(both), both);
            }
        else if (family == AF_INET || family == AF_INET6)
            add_internet(filter, action, family);
        else if (has_family(filter, family) == allows)
            add_if(filter, action, "socket", arg_is(0, family));
}

/* ---- `on` ---- */

static void deny_namespaces(struct filter *filter)
{
    for (uint64_t bit = 1; bit <= NAMESPACES; bit <<= 1) {
        if (bit & NAMESPACES)
            add_if(filter, DENY, "clone", (struct scmp_arg_cmp)ARG_HAS(CLONE_FLAGS, bit));
        if (bit & (NAMESPACES | CLONE_NEWTIME))
            add_if(filter, DENY, "unshare", (struct scmp_arg_cmp)ARG_HAS(0, bit));
    }
}

/* Denies all requests but those of the runtime of this build. */
static void deny_ptrace(struct filter *filter)
{
    static const struct {
        unsigned first, end;
    } requests[] = { { 0, 64 }, { PTRACE_SETOPTIONS, PTRACE_SETOPTIONS + 64 } };

    if (sanitized_ptraces[0] == 0)
        add_rule(filter, DENY, "ptrace", 0, NULL);
    for (size_t i = 0; sanitized_ptraces[0] != 0 && i < countof(requests); i++)
        for (unsigned request = requests[i].first; request < requests[i].end; request++) {
            const unsigned *own = sanitized_ptraces;

            while (*own != 0 && *own != request)
                own++;
            if (*own == 0)
                add_if(filter, DENY, "ptrace", arg_is(0, request));
        }
}

static void deny_calls(struct filter *filter)
{
    deny_namespaces(filter);
    add_rules(filter, DENY, seccomp_denied);
    if (!(filter->rights & RIGHTS_OF_SOCKETS))
        add_rules(filter, DENY, seccomp_libraries);
    deny_ptrace(filter);
    add_sockets(filter, DENY);
}

/* ---- `strict` ---- */

static void allow_build_calls(struct filter *filter)
{
    for (const char *const *call = sanitized_calls; *call != NULL; call++)
        add_rule(filter, ALLOW, *call, 0, NULL);
    for (const unsigned *option = sanitized_prctls; *option != 0; option++)
        add_if(filter, ALLOW, "prctl", arg_is(0, *option));
    for (const unsigned *request = sanitized_ptraces; *request != 0; request++)
        add_if(filter, ALLOW, "ptrace", arg_is(0, *request));
}

static void allow_calls(struct filter *filter)
{
    assert(!(filter->rights & (RIGHT_OPEN | NEEDS_RING))); /* only with `on` */
    /* a sanitizer's end of the process needs what workers have */
    if ((filter->rights & NEEDS_KEEPER) && sanitized_calls[0] == NULL) {
        add_rules(filter, ALLOW, seccomp_keeper);
        return;
    }
    add_rules(filter, ALLOW, seccomp_allowed);
    if (filter->rights & RIGHTS_OF_SOCKETS)
        add_rules(filter, ALLOW, seccomp_libraries);
    allow_build_calls(filter);
    add_sockets(filter, ALLOW);
}

/* ---- The filter ---- */

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

static uint64_t rights_of_filter(const struct cycle *cycle)
{
    const struct needs *needs = &cycle->needs;
    const struct needs_path *path;
    uint64_t rights = needs->rights;

    STAILQ_FOREACH (path, &needs->paths, link)
        rights |= path->access == NEEDS_TO_WRITE ? RIGHT_WRITES : 0;
    rights |= STAILQ_EMPTY(&needs->ports) ? 0 : RIGHT_PORTS;
    rights |= sandbox_landlock_holds_ports(cycle) ? RIGHT_HELD : 0;
    rights |= sanitized_clones ? RIGHT_CLONES : 0;
    if (!(rights & NEEDS_KEEPER) && tls_profiles_offload(&cycle->tls) != NULL)
        rights |= RIGHT_SEALS;
    if (needs->unknown != NULL && cycle->core.sandbox != SANDBOX_STRICT)
        rights |= RIGHT_OPEN;
    return rights;
}

/* The C library tries clone3() first, whose flags a filter cannot see. */
static int write_filter(struct filter *filter, int fd)
{
    add_rule(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
    if (filter->strict)
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
        .rights = rights_of_filter(cycle),
        .strict = strict,
    };
    int error;

    assert(cycle->core.sandbox != SANDBOX_OFF);
    if (filter.context == NULL) {
        errno = ENOMEM;
        return -1;
    }
    error = write_filter(&filter, fd);
    seccomp_release(filter.context);
    errno = -error;
    return error == 0 ? 0 : -1;
}
