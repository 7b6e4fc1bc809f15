/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses options and words, and makes paths absolute. No file is opened, and nothing is sent:
 * main.c acts on the resulting struct cmdline. */
#include "cli/cmdline.h"

#include "base/number.h"
#include "process/environment.h"
#include "process/signals.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MAX_MS (24 * 3600 * 1000)
#define DAYS_MAX 3650

/* Options without a letter, as getopt_long() returns them. */
enum {
    LONG_HELP = 256,
    LONG_VERSION,
    LONG_JSON,
    LONG_CHECK,
    LONG_TIMEOUT,
    LONG_CONTROL,
    LONG_WAIT,
    LONG_SELF_SIGNED,
    LONG_DAYS,
    LONG_OUT,
    LONG_SORT,
    LONG_BY,
};

/* Joins directory and path, unless the path is absolute; NULL without memory. */
static char *join_argument_path(const char *directory, const char *path)
{
    char *joined;

    if (path[0] == '/')
        return strdup(path);
    return asprintf(&joined, "%s/%s", directory, path) == -1 ? NULL : joined;
}

/* Resolves a path below the prefix of -p, or else below the current directory. */
static char *resolve_argument_path(const char *prefix, const char *path)
{
    char *here, *resolved;

    if (prefix != NULL)
        return join_argument_path(prefix, path);
    here = path[0] == '/' ? strdup("/") : getcwd(NULL, 0);
    if (here == NULL)
        return NULL;
    resolved = join_argument_path(here, path);
    free(here);
    return resolved;
}

/* Makes the path of a directory absolute. "." and "dir/" become "/here" and "/here/dir": a socket
 * below has the same name for all spellings. */
static char *resolve_directory(const char *path)
{
    char *resolved;
    size_t n;

    while (strncmp(path, "./", 2) == 0)
        path += 2 + strspn(path + 2, "/");
    resolved = *path == '\0' || strcmp(path, ".") == 0 ? getcwd(NULL, 0)
                                                       : resolve_argument_path(NULL, path);
    if (resolved == NULL)
        return NULL;
    for (n = strlen(resolved); n > 1 && resolved[n - 1] == '/'; n--)
        resolved[n - 1] = '\0';
    return resolved;
}

/* Copies directives and environment for reloads: the process's title overwrites the arguments. */
static int copy_start(struct cmdline *cmdline, const char *globals, struct log *log)
{
    struct cycle_options *cycle = &cmdline->cycle;

    if (globals != NULL && (cycle->globals = strdup(globals)) == NULL)
        log_write(log, LEVEL_EMERG, errno, "no memory for the directives of the command line");
    else if ((cycle->environment = (const char *const *)process_copy_list(environ)) == NULL)
        log_write(log, LEVEL_EMERG, errno, "no memory for the environment");
    else
        return 0;
    return -1;
}

static int resolve_paths(struct cmdline *cmdline, const char *prefix, const char *conf,
    const char *error_log, struct log *log)
{
    char *base = prefix == NULL ? NULL : resolve_directory(prefix);
    struct cycle_options *cycle = &cmdline->cycle;

    cycle->prefix = base; /* NULL: the directory of the configuration */
    if (prefix != NULL && base == NULL) {
        log_write(log, LEVEL_EMERG, errno, "cannot make the prefix \"%s\" absolute", prefix);
        return -1;
    }
    if (prefix != NULL) { /* with a prefix, all paths lie below, as in nginx */
        cycle->conf = resolve_argument_path(base, conf == NULL ? "conf/forkbeard.conf" : conf);
        cycle->pid = join_argument_path(base, "logs/forkbeard.pid");
        cycle->error_log = join_argument_path(base, "logs/error.log");
        cycle->module_directory = strdup(base);
    } else {
        cycle->conf = conf == NULL ? strdup(DEFAULT_CONF_PATH) : resolve_argument_path(NULL, conf);
        cycle->pid = strdup(DEFAULT_PID_PATH);
        cycle->error_log = strdup(DEFAULT_ERROR_LOG_PATH);
        cycle->module_directory = strdup(DEFAULT_MODULE_DIR);
    }
    if (error_log != NULL) {
        free((char *)cycle->error_log);
        cycle->error_log = strcmp(error_log, "stderr") == 0
                               ? strdup(error_log)
                               : resolve_argument_path(base, error_log);
    }
    if (cycle->conf != NULL && cycle->pid != NULL && cycle->error_log != NULL &&
        cycle->module_directory != NULL)
        return 0;
    log_write(log, LEVEL_EMERG, errno, "cannot make a path of the command line absolute");
    return -1;
}

/* Returns the row of a word; NULL where there is none. */
static const struct cmdline_word *find_word(const char *name)
{
    for (const struct cmdline_word *word = cmdline_words; word->name != NULL; word++)
        if (strcmp(word->name, name) == 0)
            return word;
    return NULL;
}

static int check_signal(const char *name, struct log *log)
{
    if (signals_named(name) != NULL)
        return 0;
    if (find_word(name) != NULL)
        log_write(
            log, LEVEL_EMERG, 0, "invalid option: \"-s %s\", did you mean \"%s\"?", name, name);
    else
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"-s %s\", expected stop, quit, leave, resume, reopen, reload or "
            "upgrade",
            name);
    return -1;
}

static int check_time(struct cmdline *cmdline, bool wait, const char *time, struct log *log)
{
    cmdline->options |= wait ? CMDLINE_WAIT : CMDLINE_TIMEOUT;
    if (number_parse_msec(
            time, 1, TIMEOUT_MAX_MS, wait ? &cmdline->wait_ms : &cmdline->timeout_ms) == NUMBER_OK)
        return 0;
    log_write(log, LEVEL_EMERG, 0,
        "invalid option: \"%s %s\", expected a time from 1ms to 1d, as 30s",
        wait ? "--wait" : "--timeout", time);
    return -1;
}

static int check_days(struct cmdline *cmdline, const char *days, struct log *log)
{
    cmdline->options |= CMDLINE_DAYS;
    if (number_parse(days, 1, DAYS_MAX, &cmdline->days) == NUMBER_OK)
        return 0;
    log_write(log, LEVEL_EMERG, 0, "invalid option: \"--days %s\", expected a number from 1 to %d",
        days, DAYS_MAX);
    return -1;
}

static int set_out(struct cmdline *cmdline, const char *directory, struct log *log)
{
    free((char *)cmdline->out);
    cmdline->out = resolve_directory(directory);
    if (cmdline->out == NULL)
        log_write(log, LEVEL_EMERG, errno, "cannot make the path \"%s\" absolute", directory);
    return cmdline->out != NULL ? 0 : -1;
}

/* Takes a path, "unix:PATH" as in the directive `control`, or without "unix:". */
static int set_control_path(struct cmdline *cmdline, const char *path, struct log *log)
{
    free((char *)cmdline->control);
    cmdline->control =
        resolve_argument_path(NULL, strncmp(path, "unix:", 5) == 0 ? path + 5 : path);
    if (cmdline->control == NULL)
        log_write(log, LEVEL_EMERG, errno, "cannot make the path \"%s\" absolute", path);
    return cmdline->control != NULL ? 0 : -1;
}

/* Reports an unknown option; -? asks for help. */
static int check_unknown(struct cmdline *cmdline, int letter, const char *argument, struct log *log)
{
    if (strncmp(argument, "--", 2) == 0) {
        log_write(log, LEVEL_EMERG, 0, "invalid option: \"%s\", see -h", argument);
        return -1;
    }
    if (letter != 0 && letter != '?') {
        log_write(log, LEVEL_EMERG, 0, "invalid option: \"-%c\", see -h", letter);
        return -1;
    }
    cmdline->help = true;
    return 0;
}

/* Whether a word takes the argument: "forward|back" takes two, "[directive]" any. */
static bool is_argument(const char *expected, const char *argument)
{
    size_t n = strlen(argument);

    if (*expected == '[' || strchr(expected, '|') == NULL)
        return true;
    for (; expected != NULL; expected = strchr(expected, '|')) {
        expected += *expected == '|';
        if (strncmp(expected, argument, n) == 0 && (expected[n] == '|' || expected[n] == '\0'))
            return true;
    }
    return false;
}

/* Parses the word and its argument, if any; returns the rest. */
static char **parse_word(struct cmdline *cmdline, char **words)
{
    const struct cmdline_word *word = words[0] != NULL ? find_word(words[0]) : NULL;

    if (word == NULL)
        return words;
    cmdline->word = word;
    words++;
    if (word->argument != NULL && words[0] != NULL && is_argument(word->argument, words[0]))
        cmdline->argument = *words++;
    cmdline->more = words;
    while (words[0] != NULL && cmdline->more_n < word->more) {
        cmdline->more_n++;
        words++;
    }
    return words;
}

/* Parses the arguments behind the options: a word with its argument, or none. */
static int check_words(struct cmdline *cmdline, char **words, struct log *log)
{
    const struct cmdline_word *word;

    words = parse_word(cmdline, words);
    word = cmdline->word;
    if (word != NULL && word->argument != NULL && *word->argument != '[' &&
        cmdline->argument == NULL)
        log_write(log, LEVEL_EMERG, 0, "invalid option: \"%s%s%s\", expected \"%s %s\"", word->name,
            words[0] != NULL ? " " : "", words[0] != NULL ? words[0] : "", word->name,
            word->argument);
    else if (words[0] != NULL && signals_named(words[0]) != NULL)
        log_write(log, LEVEL_EMERG, 0, "invalid option: \"%s\", did you mean \"-s %s\"?", words[0],
            words[0]);
    else if (words[0] != NULL)
        log_write(log, LEVEL_EMERG, 0, "invalid option: \"%s\", see -h", words[0]);
    else if (word != NULL && cmdline->signal != NULL)
        log_write(log, LEVEL_EMERG, 0, "invalid option: \"-s %s\" and \"%s\" are two commands",
            cmdline->signal, word->name);
    else
        return cmdline_check_options(cmdline, log);
    return -1;
}

static int take_long_option(struct cmdline *cmdline, int option, const char *value, struct log *log)
{
    switch (option) {
    case LONG_HELP:
        cmdline->help = cmdline->gnu = true;
        return 0;
    case LONG_VERSION:
        cmdline->version = cmdline->gnu = true;
        return 0;
    case LONG_JSON:
        cmdline->options |= CMDLINE_JSON;
        return 0;
    case LONG_CHECK:
        cmdline->options |= CMDLINE_CHECK;
        return 0;
    case LONG_SELF_SIGNED:
        cmdline->options |= CMDLINE_SELF_SIGNED;
        return 0;
    case LONG_DAYS:
        return check_days(cmdline, value, log);
    case LONG_OUT:
        cmdline->options |= CMDLINE_OUT;
        return set_out(cmdline, value, log);
    case LONG_SORT:
        cmdline->options |= CMDLINE_SORT;
        cmdline->sort = value;
        return 0;
    case LONG_BY:
        cmdline->options |= CMDLINE_BY;
        cmdline->by = value;
        return 0;
    case LONG_CONTROL:
        cmdline->options |= CMDLINE_CONTROL;
        return set_control_path(cmdline, value, log);
    default:
        return check_time(cmdline, option == LONG_WAIT, value, log);
    }
}

int cmdline_parse(struct cmdline *cmdline, int argc, char **argv, struct log *log)
{
    static const struct option options[] = { { "help", no_argument, NULL, LONG_HELP },
        { "version", no_argument, NULL, LONG_VERSION }, { "json", no_argument, NULL, LONG_JSON },
        { "check", no_argument, NULL, LONG_CHECK },
        { "control", required_argument, NULL, LONG_CONTROL },
        { "timeout", required_argument, NULL, LONG_TIMEOUT },
        { "wait", required_argument, NULL, LONG_WAIT },
        { "self-signed", no_argument, NULL, LONG_SELF_SIGNED },
        { "days", required_argument, NULL, LONG_DAYS },
        { "out", required_argument, NULL, LONG_OUT },
        { "sort", required_argument, NULL, LONG_SORT }, { "by", required_argument, NULL, LONG_BY },
        { .name = NULL } };
    const char *values['z'] = { NULL }; /* arguments of -c, -e, -g and -p */
    int option;

    *cmdline = (struct cmdline) { .help = false };
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":hvVtTqfs:p:c:e:g:?", options, NULL)) != -1) {
        switch (option) {
        case 'h':
            cmdline->help = true;
            break;
        case 'v':
            cmdline->version = true;
            break;
        case 'V':
            cmdline->version = cmdline->build = true;
            break;
        case 'T':
            cmdline->dump = true;
            /* fall through */
        case 't':
            cmdline->test = true;
            break;
        case 'q':
            cmdline->quiet = true;
            break;
        case 'f':
            cmdline->options |= CMDLINE_FOLLOW;
            break;
        case 's':
            cmdline->signal = optarg;
            if (check_signal(optarg, log) == -1)
                return -1;
            break;
        case 'c':
        case 'e':
        case 'g':
        case 'p':
            values[option] = optarg;
            break;
        case ':':
            log_write(log, LEVEL_EMERG, 0, "option \"%s\" requires an argument", argv[optind - 1]);
            return -1;
        default:
            if ((option >= LONG_HELP ? take_long_option(cmdline, option, optarg, log)
                                     : check_unknown(cmdline, optopt, argv[optind - 1], log)) == -1)
                return -1;
            break;
        }
    }
    if (check_words(cmdline, argv + optind, log) == -1)
        return -1;
    if (cmdline->control != NULL && (values['p'] != NULL || values['c'] != NULL ||
                                        values['e'] != NULL || values['g'] != NULL)) {
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"--control\" reads no configuration: leave out -c, -e, -g and -p");
        return -1;
    }
    if (cmdline->word != NULL && (cmdline->word->options & CMDLINE_OUT) != 0 &&
        cmdline->out == NULL && set_out(cmdline, ".", log) == -1)
        return -1;
    cmdline->cycle.testing = cmdline->test;
    cmdline->cycle.shows_certificates = cmdline->test && !cmdline->quiet;
    if (copy_start(cmdline, values['g'], log) == -1)
        return -1;
    return resolve_paths(cmdline, values['p'], values['c'], values['e'], log);
}

void cmdline_done(struct cmdline *cmdline)
{
    struct cycle_options *cycle = &cmdline->cycle;

    free((char *)cycle->conf);
    free((char *)cycle->prefix);
    free((char *)cycle->pid);
    free((char *)cycle->error_log);
    free((char *)cycle->module_directory);
    free((char *)cycle->globals);
    free((char *)cmdline->control);
    free((char *)cmdline->out);
    free((void *)cycle->environment);
    *cmdline = (struct cmdline) { .help = false };
}
