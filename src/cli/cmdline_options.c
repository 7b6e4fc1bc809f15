/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists options and words: the help, the usage, and the commands that an option belongs to. No
 * value of an option is parsed here. */
#include "cli/cmdline.h"

#include "cli/certificate_command.h"
#include "cli/command.h"
#include "cli/explain.h"
#include "cli/upgrade_command.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define COLUMN 14 /* the help's colon stands there */

static const char *const options[][2] = {
    { "-?,-h", "this help" },
    { "--help", "this help, to standard output" },
    { "-v", "show version and exit" },
    { "--version", "show version on standard output and exit" },
    { "-V", "show version and build options, then exit" },
    { "-t", "test configuration and exit" },
    { "-T", "test configuration, dump it and exit" },
    { "-q", "suppress non-error messages during configuration testing" },
    { "-s signal", "send a command to the master process: stop, quit, leave, resume,\n"
                   "reopen, reload or upgrade; except for stop, wait for the result" },
    { "-f", "with events: go on with those that happen, until the daemon ends" },
    { "--json", "show the status as one line of JSON" },
    { "--timeout time", "wait no longer for the daemon's reply (default: 5s,\n"
                        "3m for resume, reload and upgrade)" },
    { "--check", "with status: print problems alone, and exit with 0 (none),\n"
                 "1 (warnings) or 2 (critical), as monitoring plugins do" },
    { "--control path", "reach the daemon with this control socket, and read\n"
                        "no configuration" },
    { "--wait time", "with -s quit or stop: wait until all master processes have ended;\n"
                     "those that have not quit within this time are stopped" },
    { "--sort column", "with sessions: in this order (default: age)" },
    { "--by column", "with sessions: count the sessions of each client, upstream ..." },
    { "--self-signed", "make a certificate that is signed by its own key" },
    { "--days number", "days until the certificate expires (default: 90)" },
    { "--out directory", "write there (default: the current directory)" },
    { "-p prefix", "set prefix path: conf/forkbeard.conf, logs/forkbeard.pid and\n"
                   "logs/error.log are below the prefix" },
    { "-e filename", "set error log file (default: " DEFAULT_ERROR_LOG_PATH ")" },
    { "-c filename", "set configuration file (default: " DEFAULT_CONF_PATH ")" },
    { "-g directives", "set global directives outside of the configuration file" },
};

/* Manual and completions repeat the rows. */
const struct cmdline_word cmdline_words[] = {
    { .name = "status",
        .options = CMDLINE_CHECK | CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "show problems, workers, connections and queues of the running daemon",
        .run = cli_status },
    { .name = "explain",
        .argument = "[directive]",
        .help = "show the manual's entry of a directive, or the names of all",
        .run = cli_explain },
    { .name = "upstream",
        .argument = "[name [up|drain|down|auto server]]",
        .more = 2,
        .options = CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "show the servers of all upstreams or of one, or change a server's state",
        .run = cli_upstream },
    { .name = "sessions",
        .argument = "[column=text ...]",
        .more = UINT_MAX,
        .options = CMDLINE_SORT | CMDLINE_BY | CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "list the sessions: who, since when, to which server, and what is awaited",
        .run = cli_sessions },
    { .name = "certificates",
        .options = CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "show the certificates in use, their ends, and files that were refused",
        .run = cli_certificates },
    { .name = "events",
        .options = CMDLINE_FOLLOW | CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "show the last 1000 events of the daemon: generations, workers, commands",
        .run = cli_events },
    { .name = "log",
        .argument = "[level [for time]]",
        .more = 2,
        .options = CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "show the level that is set for all error logs, set it, for a time or without\n"
                "an end, or take it back (level \"default\")",
        .run = cli_log },
    { .name = "upgrade",
        .argument = "status|forward|back",
        .options = CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "show the upgrade that is under way, complete it, or take it back",
        .run = cli_upgrade },
    { .name = "certificate",
        .argument = "--self-signed name [name ...]",
        .more = UINT_MAX,
        .options = CMDLINE_SELF_SIGNED | CMDLINE_DAYS | CMDLINE_OUT,
        .help = "make a key and a certificate for these DNS names and IP addresses,\n"
                "as NAME.key and NAME.crt; existing files are left as they are",
        .run = cli_certificate },
    { .name = NULL },
};

/* Options of commands, as in the usage behind the command. */
static const struct {
    enum cmdline_option option;
    const char *name, *usage;
} owned[] = {
    { CMDLINE_CHECK, "--check", " [--check]" },
    { CMDLINE_FOLLOW, "-f", " [-f]" },
    { CMDLINE_SORT, "--sort", " [--sort column]" },
    { CMDLINE_BY, "--by", " [--by column]" },
    { CMDLINE_JSON, "--json", " [--json]" },
    { CMDLINE_TIMEOUT, "--timeout", " [--timeout time]" },
    { CMDLINE_CONTROL, "--control", " [--control path | -c filename ...]" },
    { CMDLINE_WAIT, "--wait", " [--wait time]" },
    { CMDLINE_SELF_SIGNED, "--self-signed", "" }, /* stands before the names */
    { CMDLINE_DAYS, "--days", " [--days number]" },
    { CMDLINE_OUT, "--out", " [--out directory]" },
};

#define SIGNAL_OPTIONS                                                                             \
    (CMDLINE_TIMEOUT | CMDLINE_CONTROL | CMDLINE_WAIT) /* options that belong to -s */

static void show_row(const char *name, const char *argument, const char *text, FILE *out)
{
    int n = fprintf(
        out, "  %s%s%s", name, argument != NULL ? " " : "", argument != NULL ? argument : "");

    fprintf(out, n > COLUMN + 2 ? "\n%*s: " : "%*s: ", n > COLUMN + 2 ? COLUMN + 2 : COLUMN + 2 - n,
        "");
    for (; *text != '\0'; text++) {
        putc(*text, out);
        if (*text == '\n')
            fprintf(out, "%*s", COLUMN + 4, "");
    }
    putc('\n', out);
}

static void show_owned(unsigned options_owned, FILE *out)
{
    for (size_t i = 0; i < countof(owned); i++)
        if ((options_owned & owned[i].option) != 0)
            fputs(owned[i].usage, out);
}

static void show_usage(FILE *out)
{
    fprintf(out, "Usage: forkbeard [-?hvVtTq] [-p prefix] [-e filename] [-c filename]\n"
                 "                 [-g directives]\n"
                 "       forkbeard -s signal");
    show_owned(SIGNAL_OPTIONS, out);
    putc('\n', out);
    for (const struct cmdline_word *word = cmdline_words; word->name != NULL; word++) {
        fprintf(out, "       forkbeard %s", word->name);
        if (word->argument != NULL)
            fprintf(out, " %s", word->argument);
        show_owned(word->options, out);
        putc('\n', out);
    }
}

void cmdline_show_help(const struct cmdline *cmdline)
{
    FILE *out = cmdline->gnu ? stdout : stderr;

    show_usage(out);
    fprintf(out, "\nOptions:\n");
    for (size_t i = 0; i < countof(options); i++)
        show_row(options[i][0], NULL, options[i][1], out);
    fprintf(out, "\nCommands:\n");
    for (const struct cmdline_word *word = cmdline_words; word->name != NULL; word++)
        show_row(word->name, word->argument, word->help, out);
}

void cmdline_show_version(const struct cmdline *cmdline)
{
    if (cmdline->gnu) {
        printf("forkbeard %s\n", BUILD_VERSION);
        return;
    }
    fprintf(stderr, "forkbeard version: forkbeard/%s\n", BUILD_VERSION);
    if (!cmdline->build)
        return;
    fprintf(stderr, "built by %s\nconfigure arguments: %s\n", BUILD_COMPILER, BUILD_CONFIGURE_ARGS);
    fprintf(stderr, "libraries: %s\nlibraries that it lacks: %s\n", BUILD_LIBRARIES, BUILD_WITHOUT);
    fprintf(stderr, "system: %s\ndebug lines: %s\nevent mechanisms:", BUILD_SYSTEM,
        DEBUG_BUILD ? "yes" : "no");
    for (int i = 0; mechanism_table[i] != NULL; i++)
        fprintf(stderr, " %s", mechanism_table[i]->name);
    fprintf(stderr, "\nmodule directory: %s\nprotocols:", cmdline->cycle.module_directory);
    for (int i = 0; cmdline->cycle.protocols[i] != NULL; i++)
        fprintf(stderr, " %s", cmdline->cycle.protocols[i]->name);
    fprintf(stderr, "\n");
}

/* Writes the commands of an option: -s, "status" and "upgrade". */
static void name_owners(unsigned option, char *text, size_t size)
{
    const char *names[8];
    size_t n = 0, used = 0;

    if ((SIGNAL_OPTIONS & option) != 0)
        names[n++] = "-s";
    for (const struct cmdline_word *word = cmdline_words; word->name != NULL; word++)
        if ((word->options & option) != 0)
            names[n++] = word->name;
    assert(n > 0 && n <= countof(names));
    for (size_t i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, names[i][0] == '-' ? "%s%s" : "%s\"%s\"",
            i == 0       ? ""
            : i == n - 1 ? " and "
                         : ", ",
            names[i]);
}

int cmdline_check_options(const struct cmdline *cmdline, struct log *log)
{
    unsigned belong = cmdline->word != NULL     ? cmdline->word->options
                      : cmdline->signal != NULL ? SIGNAL_OPTIONS
                                                : 0;
    char owners[256];

    for (size_t i = 0; i < countof(owned); i++) {
        if ((cmdline->options & owned[i].option & ~belong) == 0)
            continue;
        name_owners(owned[i].option, owners, sizeof(owners));
        log_write(
            log, LEVEL_EMERG, 0, "invalid option: \"%s\" belongs to %s", owned[i].name, owners);
        return -1;
    }
    if (cmdline->wait_ms == 0 || strcmp(cmdline->signal, "quit") == 0 ||
        strcmp(cmdline->signal, "stop") == 0)
        return 0;
    log_write(
        log, LEVEL_EMERG, 0, "invalid option: \"--wait\" belongs to \"-s quit\" and \"-s stop\"");
    return -1;
}
