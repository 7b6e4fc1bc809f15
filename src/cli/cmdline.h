/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: nginx's options, and commands that are words, as `status`, rows of a table.
 * Paths are made absolute here: no later code depends on the current directory. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

#include <stdio.h>

struct cmdline;

/* Options of -s and of words, as bits. */
enum cmdline_option {
    CMDLINE_JSON = 1,
    CMDLINE_TIMEOUT = 2,
    CMDLINE_CONTROL = 4, /* for commands to a daemon: its socket, or the options of a start */
    CMDLINE_WAIT = 8,
    CMDLINE_SELF_SIGNED = 16,
    CMDLINE_DAYS = 32,
    CMDLINE_OUT = 64,
    CMDLINE_CHECK = 128,
    CMDLINE_FOLLOW = 256,
    CMDLINE_SORT = 512,
    CMDLINE_BY = 1024,
};

/* A command that is a word. Usage, help and errors derive from the rows. */
struct cmdline_word {
    const char *name; /* NULL behind the last row */
    /* NULL: no argument; "forward|back": a choice; "[directive]": any, or none */
    const char *argument;
    unsigned more;    /* number of further arguments, of any kind */
    unsigned options; /* enum cmdline_option */
    const char *help; /* lines, without the last newline */
    /* Returns the exit code. */
    int (*run)(const struct cmdline *cmdline, struct log *log);
};

struct cmdline {
    bool help;                       /* -h, -?, --help */
    bool version;                    /* -v, --version */
    bool build;                      /* -V */
    bool gnu;                        /* --help or --version: to standard output */
    bool test;                       /* -t, -T */
    bool dump;                       /* -T */
    bool quiet;                      /* -q */
    const char *signal;              /* -s */
    const struct cmdline_word *word; /* or NULL */
    const char *argument;            /* the argument behind the word, or NULL */
    char **more;                     /* arguments behind it; NULL behind the last */
    unsigned more_n;
    unsigned options;    /* enum cmdline_option: the given options */
    int64_t timeout_ms;  /* --timeout; 0: the command's own */
    const char *control; /* --control: an absolute path; NULL: the configuration's */
    int64_t wait_ms;     /* --wait; 0: not given */
    int64_t days;        /* --days; 0: not given */
    const char *sort;    /* --sort; NULL: not given */
    const char *by;      /* --by; NULL: not given */
    const char *out;     /* --out: an absolute path, by default of the current directory */
    struct cycle_options cycle;
};

/* The words; the last row has no name. */
extern const struct cmdline_word cmdline_words[];

/* Returns -1 after an emerg line. Paths are allocated until cmdline_done() in either case. */
int cmdline_parse(struct cmdline *cmdline, int argc, char **argv, struct log *log);
void cmdline_done(struct cmdline *cmdline);
/* Reports options that belong to neither the command nor the word; -1 then. */
int cmdline_check_options(const struct cmdline *cmdline, struct log *log);
/* Write to standard error, as nginx does, or to standard output for --help and --version. */
void cmdline_show_help(const struct cmdline *cmdline);
void cmdline_show_version(const struct cmdline *cmdline);
