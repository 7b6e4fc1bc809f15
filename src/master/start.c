/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the daemon in a fixed order. Lines of a start go to standard error until the configured
 * logs are open; lines of the configuration's reading wait for their reader. The lock is taken
 * last: a daemon that cannot start leaves a running daemon alone. With `master_process off` a
 * single process opens listeners, logs and zones, runs as the worker, and never reloads. */
#include "master/start.h"

#include "configuration/await.h"
#include "configuration/configuration.h"
#include "configuration/listeners.h"
#include "configuration/logs.h"
#include "configuration/zones.h"
#include "master/master.h"
#include "net/listener_open.h"
#include "net/listener_socket.h"
#include "process/environment.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "sandbox/sandbox.h"
#include "systemd/fdstore.h"
#include "systemd/journal.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Reads the configuration, after a check for mistakes and harmful modules in another process. */
static struct cycle *load_checked(
    const struct cycle_options *options, struct log *log, struct descriptors *opened)
{
    struct config_check check = { .asks = options->testing };
    struct cycle_options answered = *options;
    struct cycle *cycle;

    if (config_check_run(&check, options, log, STDERR_FILENO) == -1)
        return NULL;
    answered.answers = check.answers;
    cycle = configuration_load(&answered, log, STDERR_FILENO, opened);
    config_check_done(&check);
    if (cycle != NULL && sandbox_check(cycle, log) == -1)
        cycle_destroy(&cycle);
    return cycle;
}

int start_test(const struct cycle_options *options, bool quiet, bool dump, struct log *log)
{
    struct descriptors opened = { .fds = NULL };
    struct log_failures failures = { .n = 0 };
    struct cycle *cycle;

    log->failures = &failures;
    cycle = load_checked(options, log, &opened);
    descriptors_done(&opened);
    if (cycle == NULL) {
        fprintf(stderr, "forkbeard: configuration file %s test failed\n", options->conf);
        return log_exit_code(log);
    }
    config_check_addresses(cycle, log, STDERR_FILENO);
    if (!quiet)
        fprintf(stderr,
            "forkbeard: the configuration file %s syntax is ok\n"
            "forkbeard: configuration file %s test is successful\n",
            options->conf, options->conf);
    if (dump)
        conf_dump(&cycle->source, stdout);
    cycle_destroy(&cycle);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* From here on lines go where the configuration says. Whoever starts us watches standard error:
 * until we serve, warnings and graver lines go there as well. */
static void log_as_configured(struct start *start, struct log *standard_error)
{
    struct core_settings *core = &start->cycle->core;

    log_init(&start->log, core->logs, core->log_n);
    start->log.pid = process_ops->self();
    start->log.failures = standard_error->failures;
    standard_error->failures = NULL;
    start->log.diag = standard_error->diag;
    start->log.diag_session = standard_error->diag_session;
    log_update(&start->log);
    if (logs_main_uses_stderr(core))
        return;
    standard_error->targets[0].level = LEVEL_WARN;
    standard_error->diag = NULL;
    log_update(standard_error);
    start->log.also = standard_error;
    log_update(&start->log);
}

/* Locks the pid file; a new binary shares the lock of the old one, unless the file differs. */
static int lock_pidfile_or_share(struct start *start, const char *path)
{
    struct pidfile inherited = { .path = path, .lock_fd = start->inheritance.lock, .shared = true };

    start->inheritance.lock = -1;
    if (inherited.lock_fd != -1 && pidfile_is_locked(&inherited)) {
        start->pidfile = inherited;
        return 0;
    }
    pidfile_close_lock(&inherited);
    await_lock(path, &start->log);
    return pidfile_lock(&start->pidfile, path, &start->log);
}

/* Makes ready for a master or a single process; -1 after an emerg line. */
static int prepare_daemon(struct start *start, struct log *standard_error)
{
    struct core_settings *core = &start->cycle->core;
    char *path;

    journal_init();
    process_ignore_pipe(); /* a log whose reader has gone */
    logs_open_standard(&standard_error->targets[0]);
    if (logs_open(core, &start->log) == -1)
        return -1;
    log_as_configured(start, standard_error);
    sizing_log(start->cycle, &start->log);
    events_log_debug(start->cycle, &start->log);
    events_log(start->cycle, &start->log);
    if (process_set_environment(core, &start->log) == -1)
        return -1;
    path = strdup(core->pid);
    start->shared = shared_create(!core->master_process);
    if (path == NULL || start->shared == NULL) {
        log_write(&start->log, LEVEL_EMERG, errno, "no memory to start");
        free(path);
        return -1;
    }
    role_set(core->master_process ? ROLE_MASTER : ROLE_SINGLE);
    /* signals wait for the loop from now on, so that whoever ends us finds nothing left behind */
    signals_install(core->master_process ? ROLE_MASTER : ROLE_SINGLE);
    worker_list_remove_stale(path, path);
    if (core->control.path != NULL)
        worker_list_remove_stale(core->control.path, path);
    if (core->control_read.path != NULL)
        worker_list_remove_stale(core->control_read.path, path);
    shared_begin(start->shared, start->inheritance.side, start->inheritance.serial);
    if (lock_pidfile_or_share(start, path) == -1) {
        free(path);
        return -1;
    }
    return 0;
}

/* The command line in one string, for the title; NULL without memory. */
static char *join_arguments(char **argv)
{
    char *joined = strdup(argv[0]);

    for (int i = 1; argv[i] != NULL && joined != NULL; i++) {
        char *longer;

        if (asprintf(&longer, "%s %s", joined, argv[i]) == -1)
            longer = NULL;
        free(joined);
        joined = longer;
    }
    return joined;
}

/* Logs the start, mostly in nginx's words. */
static void log_start(struct start *start)
{
    const struct cycle *cycle = start->cycle;
    char beside[64] = "";
    struct utsname os;

    if (start->inheritance.link != -1)
        snprintf(beside, sizeof(beside), " beside process %d", (int)process_ops->parent());
    if (uname(&os) == -1)
        os = (struct utsname) { .sysname = "" };
    log_write(&start->log, LEVEL_NOTICE, 0,
        "forkbeard/%s starts%s: using the \"%s\" event method, configuration file %s, built by %s, "
        "OS: %s %s",
        BUILD_VERSION, beside, cycle->events.mechanism->name, start->options->conf, BUILD_COMPILER,
        os.sysname, os.release);
}

/* Closes listeners after a worker never accepted. */
static void close_unused_listeners(struct cycle *cycle, struct log *log)
{
    struct listener *listener;

    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link) {
        if (listener->fd_n == 0 || listener->fds[0] == -1)
            continue; /* an unbound path may belong to a second daemon */
        listener_unlink(listener, log);
        listener_close(listener);
    }
}

static int open_listeners(struct cycle *cycle, struct adopted *inherited, struct log *log)
{
    if (listeners_open(cycle, NULL, inherited, 1, log) == -1 ||
        listeners_commit(cycle, NULL, inherited, log) == -1)
        return -1;
    fdstore_add(&cycle->stream.listeners, log);
    fdstore_drop_unclaimed(inherited, &cycle->stream.listeners, log);
    adopted_finish(inherited, &cycle->stream.listeners, log);
    adopted_close_others(inherited, &cycle->stream.listeners); /* no reload will want them */
    return 0;
}

static int run_single(struct start *start)
{
    struct cycle *cycle = start->cycle;
    const struct cycle *accepted = NULL;
    struct shared *shared = start->shared;
    struct adopted *inherited = start->inheritance.sockets;
    struct pidfile pidfile = start->pidfile;
    struct log log = start->log;
    struct heritage heritage = { .cycle = cycle, .shared = shared, .channel = -1 };
    int status;

    assert(cycle != NULL && shared != NULL);
    descriptors_done(&start->opened); /* no worker inherits them */
    /* orphans of a container from before our signals; the kernel reaps later orphans */
    while (process_ops->reap(-1, NULL, false) > 0)
        continue;
    if (slot_acquire(shared, &heritage.slot) && open_listeners(cycle, inherited, &log) == 0 &&
        configuration_open_zones(cycle, NULL, &log) == 0 &&
        pidfile_write_pid(&pidfile, &log) == 0) {
        zones_slot_acquired(&cycle->zones, heritage.slot);
        process_background_done(start->background, logs_standard(&cycle->core));
        logs_lead_output(&cycle->core, -1);
        log.failures = NULL;
        configuration_change_hooks(&accepted, cycle, &log);
        status = worker_main(&heritage, ROLE_SINGLE);
        configuration_change_hooks(&accepted, NULL, &log);
    } else {
        status = log_exit_code(&log);
        process_ready_tell(start->background, (unsigned char)status);
    }
    close_unused_listeners(cycle, &log);
    notify_wait(&log, process_ops->pause);
    pidfile_release(&pidfile, &log);
    free((char *)pidfile.path);
    configuration_discard(&cycle, &log);
    exec_state_done(&start->inheritance);
    shared_destroy(&shared);
    return status;
}

static int run_by_role(struct start *start, char **argv)
{
    char *arguments;
    int status;

    assert(start->cycle != NULL && start->shared != NULL);
    log_start(start);
    if (!start->cycle->core.master_process)
        return run_single(start);
    arguments = join_arguments(argv);
    process_ops->set_title("master process", arguments != NULL ? arguments : "");
    status = master_main(start);
    process_ops->set_title("master process", "");
    free(arguments);
    return status;
}

/* Takes descriptors of the service manager or the old master process. The old process shows the
 * log lines of a new binary, which keeps them. */
static int take_inheritance(struct start *start, struct cycle_options *options, struct log *log)
{
    int status;

    log_collect(log, diag_create());
    status = exec_state_take(&start->inheritance, log);
    if (status == 0)
        options->adopted = start->inheritance.sockets;
    if (start->inheritance.link == -1 && log->diag != NULL) {
        diag_destroy(&log->diag);
        log_collect(log, NULL);
    }
    return status;
}

/* Undoes a start that never served; returns the exit code. */
static int undo_daemon_start(struct start *start, struct diag *told)
{
    /* the lines tell of an upgrade, and the old process shows them */
    int code = start->inheritance.link == -1 ? log_exit_code(&start->log) : EXIT_FAILURE;

    process_ready_tell(start->background, (unsigned char)code);
    upgrade_report(start->inheritance.link, told);
    diag_destroy(&told);
    if (start->cycle != NULL) {
        logs_finish(&start->log);
        logs_close(&start->cycle->core);
    }
    cycle_destroy(&start->cycle);
    descriptors_done(&start->opened);
    exec_state_done(&start->inheritance);
    shared_destroy(&start->shared);
    return code;
}

int start_daemon(
    struct cycle_options *options, const struct binary *binary, struct log *log, char **argv)
{
    struct start start = { .options = options, .binary = binary, .background = -1 };
    struct diag *told;
    pid_t child = 0;
    int status;

    log->failures = &start.failures;
    notify_init(process_ops->self(), log);
    status = take_inheritance(&start, options, log);
    told = log->diag;
    start.log = *log;
    if (status == 0)
        start.cycle = load_checked(options, log, &start.opened);
    if (start.cycle == NULL)
        return undo_daemon_start(&start, told);
    if (start.inheritance.link != -1 && !start.cycle->core.master_process) {
        log_write(log, LEVEL_EMERG, 0,
            "the binary cannot be changed for a configuration with \"master_process off\"");
        return undo_daemon_start(&start, told);
    }
    /* a new binary stays the child of the old process, which is in the background already */
    if (start.cycle->core.daemon && start.inheritance.link == -1)
        child = process_enter_background(&start.background, &start.log);
    if (child == 0 && prepare_daemon(&start, log) == 0)
        return run_by_role(&start, argv);
    if (child > 0) { /* the daemon goes on in the background */
        status = process_ready_wait(start.background);
        start.background = -1;
        undo_daemon_start(&start, told);
        return status;
    }
    return undo_daemon_start(&start, told);
}
