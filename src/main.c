/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a start, then the master or a single process. */
#include "cli/cmdline.h"
#include "cli/command.h"
#include "master/master.h"
#include "process/environment.h"
#include "process/logs.h"
#include "process/rehearse.h"
#include "process/role.h"
#include "process/sandbox.h"
#include "process/title.h"
#include "protocols/table.h"
#include "systemd/journal.h"
#include "systemd/notify.h"
#include "upgrade/binary.h"
#include "upgrade/exec_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A mistake, or code of a module that does harm, is found by another process first. */
static struct fb_cycle *load(const struct fb_cycle_options *options, struct fb_log *log)
{
    struct fb_cycle *cycle;

    if (fb_cycle_rehearse(options, log, STDERR_FILENO) == -1)
        return NULL;
    cycle = fb_cycle_load(options, log, STDERR_FILENO);
    if (cycle != NULL && fb_sandbox_check(cycle, log) == -1)
        fb_cycle_destroy(&cycle);
    return cycle;
}

static int test(const struct fb_cmdline *cmdline, struct fb_log *log)
{
    const char *conf = cmdline->cycle.conf;
    struct fb_cycle *cycle = load(&cmdline->cycle, log);

    if (cycle == NULL) {
        fprintf(stderr, "forkbeard: configuration file %s test failed\n", conf);
        return EXIT_FAILURE;
    }
    if (!cmdline->quiet)
        fprintf(stderr,
            "forkbeard: the configuration file %s syntax is ok\n"
            "forkbeard: configuration file %s test is successful\n",
            conf, conf);
    if (cmdline->dump)
        fb_conf_dump(&cycle->source, stdout);
    fb_cycle_destroy(&cycle);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* From here on lines go where the configuration says. Who starts us watches standard error: while we
 * start, it is given warnings and what is graver as well. */
static void log_as_configured(struct fb_start *start, struct fb_log *standard_error)
{
    struct fb_core_settings *core = &start->cycle->core;

    fb_log_init(&start->log, core->logs, core->log_n);
    start->log.diag = standard_error->diag;
    start->log.diag_session = standard_error->diag_session;
    fb_log_update(&start->log);
    if (fb_logs_use_stderr(core))
        return;
    standard_error->targets[0].level = FB_WARN;
    standard_error->diag = NULL;
    fb_log_update(standard_error);
    start->log.also = standard_error;
    fb_log_update(&start->log);
}

/* The lock of a master process that changes its binary is the new one's, too, unless that has another
 * pid file. */
static int lock(struct fb_start *start, const char *path)
{
    struct fb_pidfile inherited = {
        .path = path, .lock_fd = start->inheritance.lock, .shared = true
    };

    start->inheritance.lock = -1;
    if (inherited.lock_fd != -1 && fb_pidfile_is_at(&inherited, path)) {
        start->pidfile = inherited;
        return 0;
    }
    fb_pidfile_forget(&inherited);
    return fb_pidfile_lock(&start->pidfile, path, &start->log);
}

/* Everything that both kinds of daemon need; -1 after a line that says what is in the way. */
static int prepare(struct fb_start *start, struct fb_log *standard_error)
{
    struct fb_core_settings *core = &start->cycle->core;
    char *path;

    fb_journal_init();
    if (fb_logs_open(core, &start->log) == -1)
        return -1;
    log_as_configured(start, standard_error);
    fb_sizing_log(start->cycle, &start->log);
    if (fb_process_environment(core, &start->log) == -1)
        return -1;
    path = strdup(core->pid);
    start->shared = fb_shared_create();
    if (path == NULL || start->shared == NULL) {
        fb_log(&start->log, FB_EMERG, errno, "no memory to start");
        free(path);
        return -1;
    }
    role_set(core->master_process ? FB_ROLE_MASTER : FB_ROLE_SINGLE);
    /* signals wait for the loop from now on, so that whoever ends us finds nothing left behind */
    fb_signals_install(core->master_process ? FB_ROLE_MASTER : FB_ROLE_SINGLE);
    fb_shared_begin(start->shared, start->inheritance.side, start->inheritance.serial);
    if (lock(start, path) == -1) {
        free(path);
        return -1;
    }
    return 0;
}

/* The command line in one string, for the title; NULL without memory. */
static char *join(char **argv)
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

static int run(struct fb_start *start, char **argv)
{
    char *arguments;

    if (!start->cycle->core.master_process)
        return fb_single_main(start);
    arguments = join(argv);
    fb_title_set("master process", arguments != NULL ? arguments : "");
    free(arguments);
    return fb_master_main(start);
}

/* What our start is based on, besides the configuration. */
static int inherit(struct fb_start *start, struct fb_cycle_options *options, struct fb_log *log)
{
    if (fb_inherit(&start->inheritance, log) == -1)
        return -1;
    options->inherited = start->inheritance.sockets;
    return 0;
}

/* A new binary's mistakes are its old one's to show, too. */
static void tell_old_one(const struct fb_start *start, struct fb_log *log)
{
    if (start->inheritance.link == -1)
        return;
    log->diag = fb_told_create();
    if (log->diag != NULL)
        log->diag_session = fb_told_begin(log->diag);
    fb_log_update(log);
}

static int load_first(struct fb_start *start, struct fb_log *log)
{
    start->cycle = load(start->options, log);
    if (start->cycle == NULL)
        return -1;
    if (start->inheritance.link == -1 || start->cycle->core.master_process)
        return 0;
    fb_log(log, FB_EMERG, 0,
        "the binary cannot be changed for a configuration with \"master_process off\"");
    return -1;
}

/* What has not begun to serve. */
static int give_up(struct fb_start *start, struct fb_told *told)
{
    fb_upgrade_report(start->inheritance.link, told);
    fb_told_destroy(&told);
    if (start->cycle != NULL)
        fb_logs_close(&start->cycle->core);
    fb_cycle_destroy(&start->cycle);
    fb_inheritance_done(&start->inheritance);
    fb_shared_destroy(&start->shared);
    return EXIT_FAILURE;
}

static int serve(
    struct fb_cmdline *cmdline, const struct binary *binary, struct fb_log *log, char **argv)
{
    struct fb_start start = { .options = &cmdline->cycle, .binary = binary, .background = -1 };
    struct fb_told *told;
    pid_t child = 0;
    int status;

    fb_notify_init();
    status = inherit(&start, &cmdline->cycle, log);
    tell_old_one(&start, log);
    told = log->diag;
    start.log = *log;
    if (status == -1 || load_first(&start, log) == -1)
        return give_up(&start, told);
    /* a new binary stays the child of the old one, which has gone into the background */
    if (start.cycle->core.daemon && start.inheritance.link == -1)
        child = fb_process_background(&start.background, &start.log);
    if (child == 0 && prepare(&start, log) == 0)
        return run(&start, argv);
    status = child > 0 ? fb_process_background_wait(start.background) : EXIT_FAILURE;
    give_up(&start, told);
    return status;
}

int main(int argc, char **argv)
{
    struct fb_log_target standard_error;
    struct fb_cmdline cmdline;
    struct binary binary;
    struct fb_log log;
    int status;

    if (fb_process_fill_standard() == -1)
        return EXIT_FAILURE;
    fb_signals_reset();
    fb_signals_end_first_process();
    fb_log_init_plain(&log, &standard_error, "forkbeard");
    if (fb_cmdline_parse(&cmdline, argc, argv, &log) == -1) {
        fb_cmdline_done(&cmdline);
        return EXIT_FAILURE;
    }
    cmdline.cycle.protocols = fb_protocols;

    if (cmdline.help || cmdline.version) {
        fb_cmdline_show_version(&cmdline);
        if (cmdline.help)
            fb_cmdline_show_help();
        status = EXIT_SUCCESS;
    } else if (cmdline.test) {
        status = test(&cmdline, &log);
    } else if (cmdline.signal != NULL) {
        status = fb_ask_order(&cmdline, &log);
    } else if (cmdline.status) {
        status = fb_ask_status(&cmdline, &log);
    } else {
        status = binary_remember(&binary, argv, cmdline.cycle.environment);
        if (status == -1)
            fb_log(&log, FB_EMERG, errno, "no memory to start");
        fb_title_init(argc, argv);
        status = status == -1 ? EXIT_FAILURE : serve(&cmdline, &binary, &log, argv);
    }
    fb_cmdline_done(&cmdline);
    return status;
}
