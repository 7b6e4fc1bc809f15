/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the bells of a generation, names the descriptors of a heritage for the child to keep, and
 * sets limits, priority, affinity, user, group and directory of a worker. A worker must not start
 * with the wrong user or directory; every other failure is only an alert. */
#include "process/heritage.h"

#include "base/cpu_mask.h"
#include "os/process.h"
#include "os/wakeup.h"
#include "process/role.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

void bells_open(struct bells *bells, unsigned n)
{
    *bells = (struct bells) { .fds = NULL };
    if (n < 2 || n > BELLS_MAX)
        return;
    bells->fds = malloc(2 * n * sizeof(bells->fds[0]));
    if (bells->fds == NULL)
        return;
    for (unsigned i = 0; i < 2 * n; i++)
        bells->fds[i] = -1;
    bells->n = n;
    bells->fd_n = 2 * n;
    for (unsigned i = 0; i < n; i++) {
        int ends[2];

        if (os_bell_open(ends) == -1) {
            bells_close(bells);
            return;
        }
        bells->fds[i] = ends[0];
        if (ends[1] == ends[0])
            bells->fd_n = n;
        else
            bells->fds[n + i] = ends[1];
    }
}

void bells_close(struct bells *bells)
{
    for (unsigned i = 0; i < bells->fd_n; i++)
        if (bells->fds[i] != -1)
            close(bells->fds[i]);
    free(bells->fds);
    *bells = (struct bells) { .fds = NULL };
}

void bells_ring(const struct bells *bells, unsigned i)
{
    int end;

    assert(i < bells->n);
    end = bells->fds[bells->fd_n - bells->n + i];
    if (os_bell_ring(end) == -1 && errno == EAGAIN) {
        bells_quiet(bells, i);
        os_bell_ring(end);
    }
}

void bells_quiet(const struct bells *bells, unsigned i)
{
    assert(i < bells->n);
    os_bell_quiet(bells->fds[i]);
}

void heritage_open_log(const struct heritage *heritage, struct log *log)
{
    const struct core_settings *core = &heritage->cycle->core;

    log_init(log, core->logs, core->log_n);
    log->routed = core->routed_level;
    log->point = (enum log_point)core->debug_points;
    log->lost = &shared_slot(heritage->shared, heritage->slot)->counters.n[COUNTER_LOST];
    log->diag = heritage->diag;
    log->diag_session = heritage->diag_session;
    heritage_override_log(heritage, log);
}

void heritage_override_log(const struct heritage *heritage, struct log *log)
{
    log_set_override(log, heritage->shared->published->log_override);
}

static void add_listeners(struct descriptors *kept, const struct cycle *cycle)
{
    const struct listener *listener;

    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        for (unsigned i = 0; i < listener->fd_n; i++)
            descriptors_add(kept, listener->fds[i]);
}

/* A module's memory has a descriptor, kept for debuggers; shared memory's are not kept. */
void heritage_add_descriptors(struct heritage *heritage, const struct descriptors *opened)
{
    struct descriptors *kept = &heritage->descriptors;
    const struct cycle *cycle = heritage->cycle;
    bool serves = heritage->task == TASK_SERVE || heritage->task == TASK_ALL;
    const struct bells *bells = serves ? heritage->bells : NULL;
    const struct module *module;

    descriptors_add(kept, heritage->channel);
    for (unsigned i = 0; bells != NULL && i < bells->fd_n; i++)
        descriptors_add(kept, bells->fds[i]);
    for (unsigned i = 0, n = core_target_n(&cycle->core); i < n; i++)
        descriptors_add_target(kept, core_target(&cycle->core, i));
    if (heritage->task == TASK_ASK)
        descriptors_add(kept, cycle->stream.addresses->segment.fd);
    else if (serves)
        add_listeners(kept, cycle);
    SLIST_FOREACH (module, &cycle->modules, link)
        descriptors_add(kept, module->memory);
    descriptors_add_all(kept, opened);
}

static bool is_module_memory(const struct cycle *cycle, int fd)
{
    const struct module *module;

    SLIST_FOREACH (module, &cycle->modules, link)
        if (module->memory == fd)
            return true;
    return false;
}

void heritage_keep_opened(
    struct descriptors *opened, const struct descriptors *before, const struct cycle *before_cycle)
{
    for (unsigned i = 0; i < before->n; i++)
        if (!is_module_memory(before_cycle, before->fds[i]))
            descriptors_add(opened, before->fds[i]);
}

static void set_limit(
    int resource, int64_t value, bool soft_only, const char *directive, struct log *log)
{
    struct rlimit limits;

    if (value < 0 || getrlimit(resource, &limits) == -1)
        return;
    limits.rlim_cur = (rlim_t)value;
    if (!soft_only && limits.rlim_max < limits.rlim_cur)
        limits.rlim_max = limits.rlim_cur; /* root may raise it */
    if (setrlimit(resource, &limits) == -1)
        log_write(
            log, LEVEL_ALERT, errno, "setrlimit() for \"%s %" PRId64 "\" failed", directive, value);
}

/* Limits descriptors to the mechanism's, so that no connection is accepted unwatched. */
static void limit_for_mechanism(const struct cycle *cycle, struct log *log)
{
    uint32_t most = cycle->events.mechanism->descriptors_max;
    struct rlimit limits;

    if (most == 0 || getrlimit(RLIMIT_NOFILE, &limits) == -1 || limits.rlim_cur <= most)
        return;
    set_limit(RLIMIT_NOFILE, most, true, "worker_rlimit_nofile", log);
}

void process_limit(const struct cycle *cycle, struct log *log)
{
    const struct core_settings *core = &cycle->core;
    struct rlimit limits;

    set_limit(RLIMIT_NOFILE, core->rlimit_nofile, false, "worker_rlimit_nofile", log);
    set_limit(RLIMIT_CORE, core->rlimit_core, false, "worker_rlimit_core", log);
    limit_for_mechanism(cycle, log);
    if (getrlimit(RLIMIT_NOFILE, &limits) == 0 &&
        limits.rlim_cur < (rlim_t)cycle->events.worker_connections)
        log_write(log, LEVEL_WARN, 0,
            "%" PRId64 " worker_connections exceed open file resource limit: %ju",
            cycle->events.worker_connections, (uintmax_t)limits.rlim_cur);
}

static void choose_cpus(const struct core_settings *core, unsigned index, struct log *log)
{
    struct cpu_mask mask;

    if (core->cpus == NULL)
        return;
    if (core->cpu_auto)
        mask = cpu_mask_choose(&core->cpus[0], index);
    else
        mask = core->cpus[index < core->cpu_n ? index : core->cpu_n - 1];
    if (os_cpu_bind(mask.words, CPU_MASK_WORDS) == -1)
        log_write(log, LEVEL_ALERT, errno, "sched_setaffinity() failed");
}

static void drop_capabilities(bool transparent, bool was_root, struct log *log)
{
    int result = os_process_drop_capabilities(transparent);

    if (result == -1)
        log_write(log, LEVEL_ALERT, errno, "capset() failed: the master's capabilities are kept");
    else if (result == 1 && was_root)
        log_write(log, LEVEL_ALERT, 0,
            "CAP_NET_RAW is denied: workers cannot connect from addresses of others");
}

static int change_user(const struct core_settings *core, bool transparent, struct log *log)
{
    if (geteuid() != 0) /* a service manager may have given the master capabilities */
        drop_capabilities(transparent, false, log);
    if (core->user == NULL || geteuid() != 0)
        return 0;
    if (setgid(core->gid) == -1) {
        log_write(log, LEVEL_EMERG, errno, "setgid(%u) failed", (unsigned)core->gid);
        return -1;
    }
    /* a name service, which initgroups() would ask, may hang */
    if (setgroups(core->group_n, core->groups) == -1) {
        log_write(log, LEVEL_EMERG, errno, "setgroups() to the %u groups of user %s failed",
            core->group_n, core->user);
        return -1;
    }
    if (transparent && core->uid != 0 && os_process_keep_capabilities() == -1)
        log_write(log, LEVEL_ALERT, errno, "prctl(PR_SET_KEEPCAPS) failed");
    if (setuid(core->uid) == -1) {
        log_write(log, LEVEL_EMERG, errno, "setuid(%u) failed", (unsigned)core->uid);
        return -1;
    }
    if (core->uid != 0)
        drop_capabilities(transparent, true, log);
    /* changing the user forbade core dumps, which worker_rlimit_core has just allowed */
    if (core->rlimit_core > 0 && os_process_allow_dumps() == -1)
        log_write(log, LEVEL_ALERT, errno, "prctl(PR_SET_DUMPABLE) failed");
    return 0;
}

int process_confine(const struct cycle *cycle, unsigned index, struct log *log)
{
    const struct core_settings *core = &cycle->core;
    bool is_helper = index >= (unsigned)core->worker_processes;

    assert(role_is(ROLE_WORKER));
    process_limit(cycle, log);
    if (core->worker_priority != 0 &&
        setpriority(PRIO_PROCESS, 0, (int)core->worker_priority) == -1)
        log_write(
            log, LEVEL_ALERT, errno, "setpriority(%" PRId64 ") failed", core->worker_priority);
    if (!is_helper)
        choose_cpus(core, index, log);
    if (change_user(core, (cycle->needs.rights & FB_NEEDS_TRANSPARENT) && !is_helper, log) == -1)
        return -1;
    if (core->working_directory != NULL && chdir(core->working_directory) == -1) {
        log_write(log, LEVEL_EMERG, errno, "chdir(\"%s\") failed", core->working_directory);
        return -1;
    }
    return 0;
}
