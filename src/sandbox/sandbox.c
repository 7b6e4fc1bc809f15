/* SPDX-License-Identifier: BSD-2-Clause */
/* Enters the sandbox of a worker, and logs missing parts: an error with `strict`; with `on` the
 * worker runs without them. */
#include "sandbox/sandbox.h"

#include "os/process.h"
#include "process/role.h"
#include "sandbox/confine.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* In the order of messages; the last is entered first. */
static const struct part {
    const char *name;
    const char *(*lacks)(int *error);
    int (*enter)(const struct cycle *cycle, struct log *log);
} parts[] = {
    { "the filter of system calls", sandbox_seccomp_lacks, sandbox_filter_enter },
    { "the rules for paths", sandbox_landlock_lacks, sandbox_landlock_enter },
};

/* Returns the number of parts that the system lacks, each logged after `what` unless NULL. */
static unsigned count_lacks(struct log *log, enum log_level level, const char *what)
{
    unsigned n = 0;
    int error;

    for (size_t i = 0; i < countof(parts); i++) {
        const char *lack = parts[i].lacks(&error);

        n += lack != NULL;
        if (lack != NULL && what != NULL)
            log_write(log, level, error, "%s without %s: %s", what, parts[i].name, lack);
    }
    return n;
}

int sandbox_check(const struct cycle *cycle, struct log *log)
{
    return cycle->core.sandbox == SANDBOX_STRICT &&
                   count_lacks(log, LEVEL_EMERG, "\"sandbox strict\" is not possible") > 0
               ? -1
               : 0;
}

static void note_needs(const struct cycle *cycle, struct log *log)
{
    const struct needs *needs = &cycle->needs;
    static const struct {
        uint64_t right;
        const char *what;
    } lifted[] = {
        { FB_NEEDS_EXEC, "run programs" },
        { FB_NEEDS_CODE, "make memory executable" },
        { FB_NEEDS_NAMES, "look up names, and so read /etc" },
        { FB_NEEDS_UDP, "open datagram sockets" },
        { FB_NEEDS_LISTEN, "open listening sockets" },
        { FB_NEEDS_RESOLVER, "ask servers of names" },
        { FB_NEEDS_CONNECT, "connect to any server" },
        { FB_NEEDS_BIND, "connect from any local address" },
        { FB_NEEDS_TRANSPARENT,
            "connect from addresses of others, by CAP_NET_RAW if root gives it" },
    };
    static const char *const accesses[] = {
        [NEEDS_TO_READ] = "read",
        [NEEDS_TO_WRITE] = "write",
        [NEEDS_TO_APPEND] = "make and write files in",
    };
    const struct needs_path *path;

    for (size_t i = 0; i < countof(lifted); i++)
        if (needs->rights & lifted[i].right)
            log_write(log, LEVEL_NOTICE, 0,
                "sandbox: workers may %s, because protocols need the right", lifted[i].what);
    STAILQ_FOREACH (path, &needs->paths, link)
        log_write(log, LEVEL_NOTICE, 0, "sandbox: workers may %s \"%s\", because %s the path",
            accesses[path->access], path->path,
            path->access == NEEDS_TO_APPEND ? "access logs need" : "protocols need");
    for (unsigned i = 0; i < cycle->tls.directory_n; i++)
        log_write(log, LEVEL_NOTICE, 0,
            "sandbox: keepers may read files beneath \"%s\", whose names come with handshakes",
            cycle->tls.directories[i]);
}

/* Leaves a helper these needs, ports aside, and its filter. */
static void narrow_needs(struct cycle *cycle, uint64_t rights, const struct sandbox_filter *filter)
{
    cycle->needs.rights = rights;
    cycle->needs.unknown = NULL;
    STAILQ_INIT(&cycle->needs.paths);
    cycle->filter = filter;
    if (cycle->core.sandbox == SANDBOX_ON && !(rights & NEEDS_RING) &&
        count_lacks(NULL, LEVEL_EMERG, NULL) == 0)
        cycle->core.sandbox = SANDBOX_STRICT;
}

void sandbox_narrow(struct cycle *cycle)
{
    /* ports of name servers are included */
    narrow_needs(
        cycle, FB_NEEDS_RESOLVER | (cycle->needs.rights & NEEDS_RING), cycle->helper_filter);
}

void sandbox_narrow_keeper(struct cycle *cycle)
{
    STAILQ_INIT(&cycle->needs.ports);
    narrow_needs(
        cycle, NEEDS_KEEPER | (cycle->tls.directory_n > 0 ? NEEDS_FILES : 0), cycle->keeper_filter);
}

/* Makes a helper's filter. */
static int prepare_helper(const struct cycle *cycle, void (*narrow)(struct cycle *cycle),
    const struct sandbox_filter **filter)
{
    struct cycle helper = *cycle;
    int status;

    narrow(&helper);
    status = sandbox_filter_prepare(&helper);
    *filter = helper.filter;
    return status;
}

/* Makes the filters of the helpers that will run. */
static int prepare_helpers(struct cycle *cycle)
{
    if (cycle->stream.addresses != NULL &&
        prepare_helper(cycle, sandbox_narrow, &cycle->helper_filter) == -1)
        return -1;
    return cycle->tls.n == 0 ? 0
                             : prepare_helper(cycle, sandbox_narrow_keeper, &cycle->keeper_filter);
}

static int prepare_filter(struct cycle *cycle, struct log *log)
{
    int error;

    if (sandbox_seccomp_lacks(&error) != NULL ||
        (sandbox_filter_prepare(cycle) == 0 && prepare_helpers(cycle) == 0))
        return 0;
    if (errno == ETIMEDOUT)
        log_write(log, LEVEL_EMERG, 0,
            "sandbox: the filter of system calls was not made within %d ms: its process hangs, or "
            "the machine is overloaded",
            SANDBOX_FILTER_MS);
    else
        log_write(log, LEVEL_EMERG, errno, "sandbox: the filter of system calls could not be made");
    return -1;
}

int sandbox_prepare(struct cycle *cycle, struct log *log)
{
    int64_t mode = cycle->core.sandbox;
    const char *unknown = cycle->needs.unknown;

    assert(role_is(ROLE_MASTER));
    assert(mode >= SANDBOX_OFF && mode <= SANDBOX_STRICT);
    if (mode == SANDBOX_OFF)
        return 0;
    if (sandbox_check(cycle, log) == -1)
        return -1;
    count_lacks(log, LEVEL_NOTICE, "sandbox: workers run");
    if (unknown != NULL)
        log_write(log, LEVEL_NOTICE, 0,
            "sandbox: protocol \"%s\" cannot declare needs, %s: build the module again", unknown,
            mode == SANDBOX_ON ? "so the sandbox leaves paths, programs and sockets open"
                               : "and the sandbox denies all");
    note_needs(cycle, log);
    return prepare_filter(cycle, log);
}

/* Landlock restricts only the calling thread, no earlier threads. */
static int check_threads(enum log_level level, struct log *log)
{
    unsigned n = os_thread_count();

    if (n <= 1)
        return 0;
    log_write(log, level, 0,
        "sandbox: %u threads exist already, started by a protocol's worker_start or libraries, and "
        "the rules for paths do not apply to the threads",
        n);
    return -1;
}

/* Enters every supported part. The master has logged the missing parts. */
static int enter_parts(const struct cycle *cycle, enum log_level level, struct log *log)
{
    int error;

    assert(level == LEVEL_EMERG || level == LEVEL_WARN);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1) {
        log_write(log, level, errno, "sandbox: prctl(PR_SET_NO_NEW_PRIVS) failed");
        return -1;
    }
    for (size_t i = countof(parts); i-- > 0;)
        if (parts[i].lacks(&error) == NULL && parts[i].enter(cycle, log) == -1) {
            log_write(log, level, errno, "sandbox: %s could not be set", parts[i].name);
            return -1;
        }
    return 0;
}

int sandbox_enter(const struct cycle *cycle, struct log *log)
{
    bool strict = cycle->core.sandbox == SANDBOX_STRICT;
    enum log_level level = strict ? LEVEL_EMERG : LEVEL_WARN;

    assert(role_is(ROLE_WORKER));
    if (cycle->core.sandbox == SANDBOX_OFF)
        return 0;
    if (sandbox_check(cycle, log) == -1)
        return -1;
    tzset(); /* reads a file */
    if (check_threads(level, log) == -1 && strict)
        return -1;
    return enter_parts(cycle, level, log) == -1 && strict ? -1 : 0;
}
