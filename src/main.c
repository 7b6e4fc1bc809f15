/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry point: opens the standard descriptors, resets signals, parses the command line and
 * calls what it asks for. Contains no other logic; tests and fuzzers link everything but this
 * file. */
#include "cli/cmdline.h"
#include "cli/command.h"
#include "cli/wait.h"
#include "features/features.h"
#include "keeper/engine.h"
#include "master/start.h"
#include "process/environment.h"
#include "process/process_ops.h"
#include "protocols/table.h"
#include "upgrade/binary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int show_help(const struct cmdline *cmdline)
{
    if (!cmdline->help || !cmdline->gnu)
        cmdline_show_version(cmdline);
    if (cmdline->help)
        cmdline_show_help(cmdline);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_daemon(struct cmdline *cmdline, struct log *log, int argc, char **argv)
{
    struct binary binary;
    int status = binary_remember(&binary, argv, cmdline->cycle.environment);

    if (status == -1)
        log_write(log, LEVEL_EMERG, errno, "no memory to start");
    process_init_title(argc, argv);
    status = status == -1 ? EXIT_FAILURE : start_daemon(&cmdline->cycle, &binary, log, argv);
    binary_forget(&binary);
    return status;
}

static int run_command(struct cmdline *cmdline, struct log *log, int argc, char **argv)
{
    cmdline->cycle.protocols = protocols_builtin;
    cmdline->cycle.features = features_all;
    cmdline->cycle.engine = &engine_openssl;
    if (cmdline->help || cmdline->version)
        return show_help(cmdline);
    if (cmdline->test)
        return start_test(&cmdline->cycle, cmdline->quiet, cmdline->dump, log);
    if (cmdline->wait_ms != 0)
        return cli_wait(cmdline, log);
    if (cmdline->signal != NULL)
        return cli_command(cmdline, log);
    if (cmdline->word != NULL)
        return cmdline->word->run(cmdline, log);
    return run_daemon(cmdline, log, argc, argv);
}

int main(int argc, char **argv)
{
    struct log_target standard_error;
    struct cmdline cmdline;
    struct log log;
    int status = EXIT_FAILURE;

    if (process_fill_standard() == -1)
        return EXIT_FAILURE;
    process_ops->reset_handlers();
    process_end_as_first();
    log_init_plain(&log, &standard_error, "forkbeard");
    if (cmdline_parse(&cmdline, argc, argv, &log) == 0)
        status = run_command(&cmdline, &log, argc, argv);
    cmdline_done(&cmdline);
    return status;
}
