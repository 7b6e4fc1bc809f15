/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line, with nginx's options. Paths are made absolute here, so that no later code
 * depends on the current directory. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

struct cmdline {
    bool help;          /* -h, -? */
    bool version;       /* -v */
    bool build;         /* -V */
    bool test;          /* -t, -T */
    bool dump;          /* -T */
    bool quiet;         /* -q */
    const char *signal; /* -s */
    bool status;        /* the word "status" */
    bool json;          /* --json */
    int64_t timeout_ms; /* --timeout; 0: the command's own */
    struct cycle_options cycle;
};

/* Returns -1 after an emerg line. Paths are allocated, until cmdline_done() in either case. */
int cmdline_parse(struct cmdline *cmdline, int argc, char **argv, struct log *log);
void cmdline_done(struct cmdline *cmdline);

/* Write to standard error, as nginx does. */
void cmdline_show_help(void);
void cmdline_show_version(const struct cmdline *cmdline);
