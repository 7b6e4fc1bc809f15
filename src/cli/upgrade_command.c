/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard upgrade status|forward|back`: shows the two master processes of an upgrade, and has
 * either quit. The masters name each other and their roles; without control sockets the pid files
 * tell. Replies are input, a missing member counts as empty. Reports tell observed facts. */
#include "cli/upgrade_command.h"

#include "base/compiler.h"
#include "cli/command.h"
#include "cli/exchange.h"
#include "cli/masters.h"
#include "os/proc.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time limit of a verb without --timeout. */
#define STATUS_MS 5000
#define EFFECT_MS 180000
/* Time limit of a master's status: a silent master hangs. */
#define REPLY_MS 5000
/* Poll interval, and the least time of the last poll. */
#define POLL_US 20000
#define POLL_LEAST_MS 500

/* A master process, as of its status; pid and `control` are known before. */
struct upgrade_master {
    pid_t pid;              /* -1: not known */
    char control[PATH_MAX]; /* path of the control socket, or "" */
    bool replied;
    bool silent; /* accepted the connection, and has not replied in time */
    char version[64];
    char state[32];
    char role[8];                 /* "old", "new"; "": no upgrade is under way */
    pid_t other;                  /* pid of the second master */
    char other_control[PATH_MAX]; /* path of its control socket, or "" */
    bool serves;                  /* the new process of the two does */
    bool main;                    /* the service manager's main process */
    unsigned workers, accepting;
    int64_t sessions;
    struct cli_exchange exchange; /* the reply */
};

struct verb {
    const struct cmdline *cmdline;
    struct core_settings core;
    struct log *log;
    int64_t deadline;
    bool under_way;
    bool serves; /* the new process does */
    /* During an upgrade both pids are known; else `new` is the only process, or none. */
    struct upgrade_master old, new;
    pid_t old_pid, new_pid; /* at the beginning of the verb */
};

/* Logs an error, or without -q a success; returns the exit code given. */
static PRINTF_FORMAT(3, 4) int report(const struct verb *verb, int status, const char *format, ...)
{
    enum log_level level = status == EXIT_SUCCESS ? LEVEL_NOTICE : LEVEL_EMERG;
    char text[1280];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (status != EXIT_SUCCESS || !verb->cmdline->quiet)
        log_write(verb->log, level, 0, "%s", text);
    return status;
}

/* The state of the upgrade */

static void forget_master(struct upgrade_master *master, pid_t pid)
{
    cli_disconnect(&master->exchange);
    *master = (struct upgrade_master) { .pid = pid, .exchange = { .fd = -1 } };
}

static void count_workers(struct upgrade_master *master, struct json_value generations)
{
    struct json_value generation = { NULL, 0 }, worker = { NULL, 0 };
    char state[32];

    while ((generation = json_next(generations, generation)).text != NULL)
        while ((worker = json_next(json_member(generation, "workers"), worker)).text != NULL) {
            if (json_integer(json_member(worker, "pid"), 0) == 0)
                continue;
            master->workers++;
            master->sessions += json_integer(json_member(worker, "connections"), 0);
            json_text(json_member(worker, "state"), state, sizeof(state));
            master->accepting += strcmp(state, "accepting") == 0;
        }
}

/* Asks the process at a control socket ("" or NULL: none) for its status. */
static void ask_master(
    struct upgrade_master *master, pid_t pid, const char *control, int64_t deadline)
{
    int64_t latest = cli_now_ms() + REPLY_MS;
    struct json_value status, upgrade;

    forget_master(master, pid);
    if (control == NULL || *control == '\0')
        return;
    snprintf(master->control, sizeof(master->control), "%s", control);
    deadline = deadline < latest ? deadline : latest;
    if (cli_request(&master->exchange, control, "status", deadline) == -1 ||
        cli_receive(&master->exchange) == -1) {
        master->silent = errno == EAGAIN;
        return;
    }
    status = json_parse(master->exchange.text, master->exchange.line_n);
    upgrade = json_member(status, "upgrade");
    master->replied = json_is_true(json_member(status, "ok"));
    master->pid = (pid_t)json_integer(json_member(status, "pid"), master->pid);
    json_text(json_member(status, "version"), master->version, sizeof(master->version));
    json_text(json_member(status, "state"), master->state, sizeof(master->state));
    if (master->replied)
        json_text(json_member(upgrade, "role"), master->role, sizeof(master->role));
    master->other = (pid_t)json_integer(json_member(upgrade, "other"), 0);
    json_text(json_member(upgrade, "control"), master->other_control, PATH_MAX);
    master->serves = json_is_true(json_member(upgrade, "serves"));
    master->main = master->role[0] == '\0' || json_is_true(json_member(upgrade, "main"));
    count_workers(master, json_member(status, "generations"));
}

/* Asks the second master named by `master`; at `path` where its socket is not named. */
static void ask_second_master(const struct upgrade_master *master, struct upgrade_master *other,
    const char *path, int64_t deadline)
{
    ask_master(other, master->other, *master->other_control != '\0' ? master->other_control : path,
        deadline);
    if (other->pid != master->other) /* a third process has the path */
        forget_master(other, master->other);
}

/* Asks the process at the configuration's paths and the second master named in its reply; or,
 * without a reply, the old process. Returns the exit code. */
static int poll_state(struct verb *verb)
{
    int64_t least = cli_now_ms() + POLL_LEAST_MS;
    int64_t deadline = verb->deadline > least ? verb->deadline : least;
    struct upgrade_master *new = &verb->new, *old = &verb->old, other;
    struct masters_entry first, second;
    struct masters masters;

    if (masters_find(&masters, &verb->core, verb->log) == -1)
        return EXIT_FAILURE;
    first = masters_at(&masters, MASTERS_FIRST);
    second = masters_at(&masters, MASTERS_OLD);
    forget_master(old, -1);
    ask_master(new, first.pid, first.control, deadline);
    if (*new->role != '\0') /* the old process itself may have the second name */
        ask_second_master(
            new, old, strcmp(new->role, "new") == 0 ? second.control : NULL, deadline);
    else if (!new->replied)
        ask_master(old, second.pid, second.control, deadline);
    if (!new->replied && strcmp(old->role, "old") == 0 && new->silent)
        new->pid = old->other;
    else if (!new->replied && strcmp(old->role, "old") == 0)
        ask_second_master(old, new, NULL, deadline);
    if (strcmp(new->role, "old") == 0) { /* until the new one serves */
        other = *new;
        *new = *old;
        *old = other;
    }
    masters_free(&masters);
    verb->under_way = new->replied || old->replied
                          ? *new->role != '\0' || *old->role != '\0'
                          : os_proc_runs(new->pid) && os_proc_runs(old->pid);
    verb->serves = strcmp(old->role, "old") != 0 || old->serves;
    if (!verb->under_way)
        forget_master(old, -1);
    return EXIT_SUCCESS;
}

/* Whether the process is quitting or stopping. */
static bool ends(const struct upgrade_master *master)
{
    return strcmp(master->state, "quitting") == 0 || strcmp(master->state, "stopping") == 0;
}

/* status */

static const char *plural_end(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void show_master(const char *which, const struct upgrade_master *master, bool serves)
{
    if (master->replied)
        printf("%s binary: forkbeard %s, master process %d, %s, %u worker%s, %lld connection%s%s\n",
            which, master->version, (int)master->pid, master->state, master->workers,
            plural_end(master->workers), (long long)master->sessions, plural_end(master->sessions),
            master->main ? ", main process" : "");
    else
        printf("%s binary: master process %d%s%s\n", which, (int)master->pid,
            master->silent ? ", does not reply" : "", serves ? "" : ", does not serve yet");
}

static void show_next(const struct verb *verb)
{
    const struct upgrade_master *ending = ends(&verb->old) ? &verb->old : &verb->new;

    if (!verb->serves)
        printf(
            "next: wait until the new binary serves, or end the upgrade: forkbeard upgrade back\n");
    else if (ends(ending))
        printf("next: nothing, the upgrade is %s when the sessions of process %d have ended; "
               "to close the sessions: kill -INT %d\n",
            ending == &verb->old ? "complete" : "taken back", (int)ending->pid, (int)ending->pid);
    else
        printf("next: to complete the upgrade: forkbeard upgrade forward\n"
               "      to take it back:         forkbeard upgrade back\n");
}

static int run_status(const struct verb *verb)
{
    if ((verb->cmdline->options & CMDLINE_JSON) != 0) {
        cli_print_line(&verb->new.exchange);
        cli_print_line(&verb->old.exchange);
    } else if (!verb->under_way) {
        printf("no upgrade is under way: master process %d serves alone\n", (int)verb->new.pid);
    } else {
        show_master("new", &verb->new, verb->serves);
        show_master("old", &verb->old, true);
        show_next(verb);
    }
    if (fflush(stdout) != 0)
        return EXIT_FAILURE;
    if (verb->new.silent || verb->old.silent)
        return EXIT_NO_REPLY;
    return verb->under_way ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* forward and back */

/* Gives a command by the control socket or as a signal; the exit code. */
static int give(struct verb *verb, struct upgrade_master *master, const char *command, int number)
{
    struct cli_exchange *exchange = &master->exchange;
    struct json_value reply;
    char error[1024];

    if (!master->replied) {
        if (kill(master->pid, number) == 0)
            return EXIT_SUCCESS;
        log_write(verb->log, LEVEL_ALERT, errno, "kill(%d, %d) failed", (int)master->pid, number);
        return EXIT_FAILURE;
    }
    cli_disconnect(exchange);
    if (cli_request(exchange, master->control, command, verb->deadline) == -1 ||
        cli_receive(exchange) == -1) {
        log_write(verb->log, LEVEL_EMERG, errno, "process %d did not reply to \"%s\"",
            (int)master->pid, command);
        return errno == EAGAIN ? EXIT_NO_REPLY : EXIT_FAILURE;
    }
    reply = json_parse(exchange->text, exchange->line_n);
    if (json_is_true(json_member(reply, "ok")))
        return EXIT_SUCCESS;
    json_text(json_member(reply, "error"), error, sizeof(error));
    return report(
        verb, EXIT_FAILURE, "process %d refuses \"%s\": %s", (int)master->pid, command, error);
}

/* Polls the state; false at the deadline, after an error, and when both processes have ended. */
static bool poll_state_again(struct verb *verb, int *status)
{
    const struct upgrade_master *alone = &verb->new;
    bool gone;

    if (*status != EXIT_SUCCESS || cli_now_ms() >= verb->deadline)
        return false;
    usleep(POLL_US);
    *status = poll_state(verb);
    gone = alone->replied ? alone->pid != verb->new_pid && alone->pid != verb->old_pid
                          : !os_proc_runs(verb->new_pid) && !os_proc_runs(verb->old_pid);
    if (*status == EXIT_SUCCESS && !verb->under_way && !alone->silent && gone)
        *status = report(verb, EXIT_FAILURE,
            "the new binary, process %d, and the old binary, process %d, have both been ended "
            "meanwhile",
            (int)verb->new_pid, (int)verb->old_pid);
    return *status == EXIT_SUCCESS;
}

/* Reports a complete upgrade; sessions of the old process may go on. */
static int complete(const struct verb *verb)
{
    char still[64] = "has ended";

    if (verb->new.pid != verb->new_pid)
        return report(verb, EXIT_FAILURE,
            "the new binary, process %d, has ended: the upgrade was taken back",
            (int)verb->new_pid);
    if (verb->under_way)
        snprintf(still, sizeof(still), "still has %lld session%s, and ends after that",
            (long long)verb->old.sessions, plural_end(verb->old.sessions));
    return report(verb, EXIT_SUCCESS,
        "the upgrade is complete: process %d serves alone; the old binary, process %d, %s",
        (int)verb->new_pid, (int)verb->old_pid, still);
}

static int run_forward(struct verb *verb)
{
    struct upgrade_master *old = &verb->old;
    int status = EXIT_SUCCESS;

    if (!verb->serves)
        return report(verb, EXIT_FAILURE,
            "the new binary, process %d, does not serve yet: wait, or end the process by "
            "\"forkbeard upgrade back\"",
            (int)verb->new_pid);
    if (ends(&verb->new))
        return report(verb, EXIT_FAILURE,
            "the upgrade is taken back already: the new binary, process %d, ends",
            (int)verb->new_pid);
    if (!ends(old))
        status = give(verb, old, "quit", SIGQUIT);
    while (poll_state_again(verb, &status))
        /* an old process without sessions ends in a moment */
        if ((!verb->under_way && verb->new.pid != -1) ||
            (ends(old) && old->accepting == 0 && old->sessions > 0))
            return complete(verb);
    if (status != EXIT_SUCCESS)
        return status;
    return report(verb, EXIT_NO_REPLY,
        "the old binary, process %d, was told to quit and has not ended yet; the new binary, "
        "process %d, serves",
        (int)verb->old_pid, (int)verb->new_pid);
}

static int run_back(struct verb *verb)
{
    struct upgrade_master *new = &verb->new, *old = &verb->old;
    int new_pid = (int)verb->new_pid, old_pid = (int)verb->old_pid;
    int status = EXIT_SUCCESS;

    if (ends(old))
        return report(verb, EXIT_FAILURE,
            "the upgrade cannot be taken back: the old binary, process %d, ends already", old_pid);
    /* after SIGWINCH without workers: clients would wait until the new process's have ended */
    if (verb->serves && old->replied && old->accepting == 0)
        status = give(verb, old, "reload", SIGHUP);
    if (status == EXIT_SUCCESS && !ends(new))
        status = give(verb, new, "quit", verb->serves ? SIGQUIT : SIGTERM);
    while (poll_state_again(verb, &status))
        if (!verb->under_way && new->pid == old_pid)
            return report(verb, EXIT_SUCCESS,
                "the upgrade was taken back: process %d serves alone again; the new binary, "
                "process %d, has ended",
                old_pid, new_pid);
    if (status != EXIT_SUCCESS)
        return status;
    if (!new->replied || new->pid != new_pid)
        return report(verb, EXIT_NO_REPLY,
            "the new binary, process %d, was told to quit and has not ended yet", new_pid);
    return report(verb, EXIT_NO_REPLY,
        "the old binary, process %d, serves alone, but the new binary, process %d, still has %lld "
        "session%s: the names of the pid file and the control socket move back when it has ended",
        old_pid, new_pid, (long long)new->sessions, plural_end(new->sessions));
}

/* Reports that no process serves, or a quitting process; returns the exit code. */
static int report_none(const struct verb *verb)
{
    const struct masters_entry *entry;
    struct masters masters;
    pid_t quitting = 0;

    if (masters_find(&masters, &verb->core, verb->log) == 0 &&
        (entry = masters_quitting(&masters)) != NULL)
        quitting = entry->pid;
    masters_free(&masters);
    if (quitting == 0)
        return report(verb, EXIT_FAILURE, "no daemon runs with the %s \"%s\"",
            verb->cmdline->control != NULL ? "control socket" : "pid file", verb->core.pid);
    if (strcmp(verb->cmdline->argument, "status") != 0)
        return report(verb, EXIT_FAILURE, "no upgrade is under way: process %d is shutting down",
            (int)quitting);
    if ((verb->cmdline->options & CMDLINE_JSON) == 0)
        printf("no upgrade is under way: process %d is shutting down\n", (int)quitting);
    return EXIT_FAILURE;
}

static int run_verb(struct verb *verb)
{
    const struct upgrade_master *new = &verb->new;
    const struct upgrade_master *silent = new->silent ? new : &verb->old;
    const char *word = verb->cmdline->argument;

    if (!verb->under_way && !new->replied && !new->silent && !os_proc_runs(new->pid))
        return report_none(verb);
    if (strcmp(word, "status") == 0)
        return run_status(verb);
    if (silent->silent)
        return report(verb, EXIT_NO_REPLY,
            "the %s binary, process %d, did not reply: it may be stopped; kill -KILL %d ends it, "
            "and then the other serves alone",
            silent == new ? "new" : "old", (int)silent->pid, (int)silent->pid);
    if (!verb->under_way)
        return report(verb, EXIT_FAILURE, "no upgrade is under way: master process %d serves alone",
            (int)new->pid);
    verb->new_pid = new->pid;
    verb->old_pid = verb->old.pid;
    return strcmp(word, "forward") == 0 ? run_forward(verb) : run_back(verb);
}

int cli_upgrade(const struct cmdline *cmdline, struct log *log)
{
    struct verb verb = { .cmdline = cmdline,
        .log = log,
        .old = { .pid = -1, .exchange = { .fd = -1 } },
        .new = { .pid = -1, .exchange = { .fd = -1 } } };
    int64_t ms = strcmp(cmdline->argument, "status") == 0 ? STATUS_MS : EFFECT_MS;
    struct cycle *cycle;
    int status;

    if (cli_load_paths(cmdline, log, &cycle, &verb.core) == -1)
        return EXIT_FAILURE;
    verb.deadline = cli_now_ms() + (cmdline->timeout_ms != 0 ? cmdline->timeout_ms : ms);
    status = poll_state(&verb);
    if (status == EXIT_SUCCESS)
        status = run_verb(&verb);
    forget_master(&verb.old, -1);
    forget_master(&verb.new, -1);
    cycle_destroy(&cycle);
    return status;
}
