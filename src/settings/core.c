/* SPDX-License-Identifier: BSD-2-Clause */
/* Directives of the main context: the table, the setters, and the values computed at the end (user,
 * pid file, control socket). Opens nothing. */
#include "base/check.h"
#include "base/cpu_mask.h"
#include "base/number.h"
#include "module/relink.h"
#include "os/limits.h"
#include "os/process.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/lookup.h"
#include "settings/set_value.h"
#include "shm/shared.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Half of the slots, but for a helper's, so that a reload finds room for as many new workers. */
#define WORKERS_MAX (SLOT_MAX / 2 - 1)

/* Warns of a missing user or group, where a caller other than root needs neither. */
static void warn_of_user(struct apply *apply, const struct conf_directive *directive)
{
    const struct conf_word *args = directive->args;
    const char *group = directive->arg_n > 1 ? args[1].text : NULL;
    bool of_group;

    if (lookup_user(apply, &args[0], args[0].text, group, false, &of_group) == NULL)
        return;
    if (group == NULL)
        report_warn(apply->report, &args[0],
            "there is no user \"%s\": root could not start the daemon", args[0].text);
    else
        report_warn(apply->report, &args[0],
            "there is no user \"%s\", or no group \"%s\": root could not start the daemon",
            args[0].text, group);
}

static int set_user(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const char *group = directive->arg_n > 1 ? directive->args[1].text : NULL, *wrong;
    bool of_group;

    (void)field;
    if (geteuid() != 0) {
        report_warn(apply->report, &directive->name,
            "the \"user\" directive makes sense only if the master process runs with super-user "
            "privileges, ignored");
        if (apply->options->testing)
            warn_of_user(apply, directive);
        return 0;
    }
    wrong =
        lookup_user(apply, &directive->args[0], directive->args[0].text, group, true, &of_group);
    return wrong == NULL ? 0 : set_bad_value(apply, directive, of_group ? 1 : 0, "%s", wrong);
}

static int set_noted_path(struct apply *apply, const struct conf_directive *directive, void *field)
{
    enum path_use use = strcmp(apply->setting->name, "pid") == 0 ? PATH_PID : PATH_DIRECTORY;

    if (set_path(apply, directive, field) == -1)
        return -1;
    paths_add(apply, apply->setting->name, use, *(const char **)field, &directive->args[0]);
    return 0;
}

static int set_worker_processes(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    int64_t *n = field;

    if (strcmp(directive->args[0].text, "auto") == 0) {
        *n = os_cpu_allowed("");
        if (*n > WORKERS_MAX)
            *n = WORKERS_MAX;
        return 0;
    }
    if (number_parse(directive->args[0].text, 1, WORKERS_MAX, n) == NUMBER_OK)
        return 0;
    return set_bad_value(
        apply, directive, 0, "expected a number between 1 and %d, or \"auto\"", WORKERS_MAX);
}

static int set_sandbox(struct apply *apply, const struct conf_directive *directive, void *field)
{
    apply->cycle->core.sandbox_given = directive->name.line != 0; /* not the default */
    return set_name(apply, directive, field);
}

static int set_cpu_affinity(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct core_settings *core = field;
    unsigned first = 0;

    if (strcmp(directive->args[0].text, "auto") == 0) {
        core->cpu_auto = true;
        first = 1;
        if (directive->arg_n > 2)
            return set_bad_value(apply, directive, 2, "\"auto\" takes one mask");
    }
    core->cpus = apply_alloc(apply, directive->arg_n * sizeof(*core->cpus));
    if (core->cpus == NULL)
        return -1;
    apply->affinity = directive;
    if (core->cpu_auto && directive->arg_n == 1) {
        core->cpu_n = 1;
        if (os_cpu_bound(core->cpus->words, CPU_MASK_WORDS) == -1)
            memset(core->cpus, 0xff, sizeof(*core->cpus));
        return 0;
    }
    for (unsigned i = first; i < directive->arg_n; i++) {
        const char *wrong = cpu_mask_parse(directive->args[i].text, &core->cpus[core->cpu_n++]);

        if (wrong != NULL)
            return set_bad_value(apply, directive, i, "%s", wrong);
    }
    return 0;
}

static int set_env(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct core_settings *core = field;
    const char *text = directive->args[0].text;
    const char **env;

    if (text[0] == '\0' || text[0] == '=')
        return set_bad_value(apply, directive, 0, "expected NAME or NAME=value");
    env = apply_grow(apply, core->env, core->env_n, sizeof(*env));
    if (env == NULL)
        return -1;
    env[core->env_n++] = text;
    core->env = env;
    return 0;
}

static int set_debug_points(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    int64_t choice;

    if (set_name(apply, directive, &choice) == -1)
        return -1;
    *(int64_t *)field = choice == 0 ? LOG_POINT_STOP : LOG_POINT_ABORT;
    return 0;
}

static int set_max_draining(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    bool is_auto;

    if (set_number_or_auto(apply, directive, field, &is_auto) == -1)
        return -1;
    if (is_auto)
        *(int64_t *)field = -1; /* see sizing_finish() */
    return 0;
}

/* Modules are checked from their load on. */
static int set_debug_modules(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    if (set_flag(apply, directive, field) == -1)
        return -1;
    if (*(int64_t *)field == 0)
        return 0;
    if (!relink_is_built())
        return report_error(apply->report, &directive->name,
            "\"debug_modules\" is not possible: this system has no dl_iterate_phdr()");
    if (SLIST_EMPTY(&apply->cycle->modules))
        return 0;
    return report_error(apply->report, &directive->name,
        "\"debug_modules\" must stand before the first \"load_module\"");
}

static_assert(SANDBOX_OFF == 0 && SANDBOX_ON == 1 && SANDBOX_STRICT == 2, "in the order of names");

#define CORE(member) .offset = offsetof(struct core_settings, member)

const struct setting core_table[] = {
    { "control", CONTEXT_MAIN, 1, 3, .set = control_set, .finds_master = true,
        .unset = "unix:@runstatedir@/forkbeard.sock" },
    { "control_read", CONTEXT_MAIN, 1, 3, .set = control_set_read, .unset = "none" },
    { "daemon", CONTEXT_MAIN, 1, 1, .set = set_flag, CORE(daemon), .initial = "on" },
    { "debug_modules", CONTEXT_MAIN, 1, 1, .set = set_debug_modules, CORE(debug_modules),
        .initial = "off" },
    { "debug_points", CONTEXT_MAIN, 1, 1, .set = set_debug_points, CORE(debug_points),
        .names = (const char *const[]) { "stop", "abort", NULL }, .unset = "none" },
    { "env", CONTEXT_MAIN, 1, 1, .set = set_env, .repeats = true, .unset = "TZ" },
    { "env_substitution", CONTEXT_MAIN, 1, 1, .set = substitution_set, CORE(env_substitution),
        .finds_master = true, .initial = "off" },
    { "error_log", CONTEXT_MAIN, 1, 3, .set = log_targets_set, .repeats = true,
        .unset = "@localstatedir@/log/forkbeard/error.log error" },
    { "error_log_rate_limit", CONTEXT_MAIN, 1, 2, .set = log_targets_set_rate_limit, .parts = true,
        .initial = "burst=1000 interval=1s" },
    { "events", CONTEXT_MAIN, 0, 0, .set = events_set, .block = true, .unset = "none" },
    { "include", CONTEXT_ANY, 1, 1, .set = apply_include, .repeats = true, .finds_master = true,
        .unset = "none" },
    { "load_module", CONTEXT_MAIN, 1, 1, .set = modules_set, .repeats = true, .unset = "none" },
    { "master_process", CONTEXT_MAIN, 1, 1, .set = set_flag, CORE(master_process),
        .initial = "on" },
    { "max_draining_workers", CONTEXT_MAIN, 1, 1, .set = set_max_draining,
        CORE(max_draining_workers), .greatest_value = INT_MAX, .initial = "auto" },
    { "max_generations", CONTEXT_MAIN, 1, 1, .set = set_number, CORE(max_generations),
        .greatest_value = INT_MAX, .initial = "0" },
    { "pid", CONTEXT_MAIN, 1, 1, .set = set_noted_path, CORE(pid), .finds_master = true,
        .unset = "@runstatedir@/forkbeard.pid" },
    { "sandbox", CONTEXT_MAIN, 1, 1, .set = set_sandbox, CORE(sandbox),
        .names = (const char *const[]) { "off", "on", "strict", NULL }, .initial = "on" },
    { "sigterm_shutdown", CONTEXT_MAIN, 1, 1, .set = set_name, CORE(sigterm_graceful),
        .names = (const char *const[]) { "fast", "graceful", NULL }, .initial = "fast" },
    { "stream", CONTEXT_MAIN, 0, 0, .set = stream_set, .block = true, .unset = "none" },
    { "thread_pool", CONTEXT_MAIN, 2, 3, .set = thread_pools_set, .repeats = true,
        .initial = "default threads=32 max_queue=65536" },
    { "timer_resolution", CONTEXT_MAIN, 1, 1, .set = set_msec, CORE(timer_resolution),
        .greatest_value = 3600 * 1000, .initial = "off" },
    { "user", CONTEXT_MAIN, 1, 2, .set = set_user, .unset = "@DEFAULT_USER@" },
    { "worker_cpu_affinity", CONTEXT_MAIN, 1, UCHAR_MAX, .set = set_cpu_affinity, .unset = "none" },
    { "worker_priority", CONTEXT_MAIN, 1, 1, .set = set_number, CORE(worker_priority),
        .least_value = -20, .greatest_value = 20, .initial = "0" },
    { "worker_processes", CONTEXT_MAIN, 1, 1, .set = set_worker_processes, CORE(worker_processes),
        .initial = "1" },
    { "worker_rlimit_core", CONTEXT_MAIN, 1, 1, .set = set_size, CORE(rlimit_core), .unset = "none",
        .unset_value = -1 },
    { "worker_rlimit_nofile", CONTEXT_MAIN, 1, 1, .set = set_number, CORE(rlimit_nofile),
        .least_value = 1, .greatest_value = INT_MAX, .unset = "none", .unset_value = -1 },
    { "worker_shutdown_timeout", CONTEXT_MAIN, 1, 1, .set = set_msec, CORE(worker_shutdown_timeout),
        .initial = "off" },
    { "worker_start_timeout", CONTEXT_MAIN, 1, 1, .set = set_msec, CORE(worker_start_timeout),
        .initial = "30s" },
    { "worker_watchdog", CONTEXT_MAIN, 1, 1, .set = set_msec, CORE(worker_watchdog),
        .initial = "60s" },
    { "working_directory", CONTEXT_MAIN, 1, 1, .set = set_noted_path, CORE(working_directory),
        .unset = "none" },
    { .name = NULL },
};

static void default_user(struct apply *apply)
{
    bool of_group;

    if (geteuid() != 0)
        return;
    /* no workers are better than workers as root */
    if (lookup_user(apply, NULL, DEFAULT_USER, NULL, true, &of_group) != NULL)
        report_error(apply->report, NULL,
            "there is no user \"%s\" for the worker processes, name another with \"user\"",
            DEFAULT_USER);
}

void core_finish_paths(struct apply *apply)
{
    struct core_settings *core = &apply->cycle->core;

    if (core->pid == NULL && apply->report->error_n == 0 && /* a mistake may hide the directive */
        (core->pid = apply_strdup(apply, apply->options->pid)) != NULL)
        paths_add_default(apply, "pid", PATH_PID, core->pid);
    control_set_default(apply);
}

/* Finds out whether a worker can be bound to a mask: at least one processor must be usable. */
static void check_mask(
    struct apply *apply, unsigned arg, const struct cpu_mask *mask, const struct cpu_mask *usable)
{
    const struct conf_directive *directive = apply->affinity;
    struct cpu_mask missing = cpu_mask_without(mask, usable);
    struct cpu_mask left = cpu_mask_without(mask, &missing);

    if (cpu_mask_count(&left) == 0)
        set_bad_value(apply, directive, arg, "processor %u is not there, or may not be used",
            cpu_mask_first(&missing));
    else if (cpu_mask_count(&missing) > 0)
        report_warn(apply->report, &directive->args[arg],
            "\"%s\" in \"%s\" directive: processor %u is not there, or may not be used",
            directive->args[arg].text, directive->name.text, cpu_mask_first(&missing));
}

/* Checks the masks of workers, in a configuration check alone. */
static void check_affinity(struct apply *apply)
{
    const struct core_settings *core = &apply->cycle->core;
    const struct conf_directive *directive = apply->affinity;
    unsigned first = core->cpu_auto ? 1 : 0, n = core->cpu_n;
    struct cpu_mask usable;

    if (directive == NULL || !core->master_process)
        return;
    if (!apply->options->testing && apply->options->progress == NULL)
        return;
    if (!os_cpu_binds)
        report_error(apply->report, &directive->name,
            "\"%s\" is not supported: this build cannot bind a worker to a processor",
            directive->name.text);
    if (directive->arg_n == first)
        return;
    if (!core->cpu_auto && n > (unsigned)core->worker_processes)
        n = (unsigned)core->worker_processes;
    if (cpu_mask_find_usable(&usable))
        for (unsigned i = 0; i < n; i++)
            check_mask(apply, first + i, &core->cpus[i], &usable);
}

void core_finish(struct apply *apply)
{
    struct core_settings *core = &apply->cycle->core;

    assert(apply->report->error_n == 0);
    assert(core->worker_processes >= 1 && core->worker_processes <= WORKERS_MAX);
    core_finish_paths(apply);
    if (core->user == NULL)
        default_user(apply);
    control_finish(apply);
    if (core->sandbox == SANDBOX_STRICT && !core->master_process)
        report_error(apply->report, NULL,
            "\"sandbox strict\" needs worker processes: set \"master_process on\"");
    check_affinity(apply);
    log_targets_finish(apply);
}
