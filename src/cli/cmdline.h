/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line, with nginx's options. Paths are made absolute here, so that nothing behind
 * depends on the directory that we were started in. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

struct fb_cmdline {
    bool help;          /* -h, -? */
    bool version;       /* -v */
    bool build;         /* -V */
    bool test;          /* -t, -T */
    bool dump;          /* -T */
    bool quiet;         /* -q */
    const char *signal; /* -s */
    bool status;        /* the word "status" */
    bool json;          /* --json */
    struct fb_cycle_options cycle;
};

/* Returns -1 after an emerg line. Paths are allocated, until fb_cmdline_done() in either case. */
int fb_cmdline_parse(struct fb_cmdline *cmdline, int argc, char **argv, struct fb_log *log);
void fb_cmdline_done(struct fb_cmdline *cmdline);

/* Write to standard error, as nginx does. */
void fb_cmdline_show_help(void);
void fb_cmdline_show_version(const struct fb_cmdline *cmdline);
