/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry: standard descriptors, signals, the command line, and then what it asks for. */
#include "cli/cmdline.h"
#include "cli/command.h"
#include "master/start.h"
#include "process/environment.h"
#include "process/signals.h"
#include "process/title.h"
#include "protocols/table.h"
#include "upgrade/binary.h"

#include <errno.h>
#include <stdlib.h>

static int show_help(const struct fb_cmdline *cmdline)
{
    fb_cmdline_show_version(cmdline);
    if (cmdline->help)
        fb_cmdline_show_help();
    return EXIT_SUCCESS;
}

static int serve(struct fb_cmdline *cmdline, struct fb_log *log, int argc, char **argv)
{
    struct binary binary;
    int status = binary_remember(&binary, argv, cmdline->cycle.environment);

    if (status == -1)
        fb_log(log, FB_EMERG, errno, "no memory to start");
    fb_title_init(argc, argv);
    return status == -1 ? EXIT_FAILURE : start_daemon(&cmdline->cycle, &binary, log, argv);
}

static int run(struct fb_cmdline *cmdline, struct fb_log *log, int argc, char **argv)
{
    cmdline->cycle.protocols = fb_protocols;
    if (cmdline->help || cmdline->version)
        return show_help(cmdline);
    if (cmdline->test)
        return start_test(&cmdline->cycle, cmdline->quiet, cmdline->dump, log);
    if (cmdline->signal != NULL)
        return fb_ask_order(cmdline, log);
    if (cmdline->status)
        return fb_ask_status(cmdline, log);
    return serve(cmdline, log, argc, argv);
}

int main(int argc, char **argv)
{
    struct fb_log_target standard_error;
    struct fb_cmdline cmdline;
    struct fb_log log;
    int status = EXIT_FAILURE;

    if (fb_process_fill_standard() == -1)
        return EXIT_FAILURE;
    fb_signals_reset();
    fb_signals_end_first_process();
    fb_log_init_plain(&log, &standard_error, "forkbeard");
    if (fb_cmdline_parse(&cmdline, argc, argv, &log) == 0)
        status = run(&cmdline, &log, argc, argv);
    fb_cmdline_done(&cmdline);
    return status;
}
