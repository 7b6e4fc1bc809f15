/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard upgrade status|forward|back`: shows the two master processes of an upgrade, and has
 * one of them quit. A verb looks at both before, waits until it has taken effect, and says what it
 * has seen, never what it hopes. */
#include "cli/upgrade_command.h"

#include "cli/command.h"
#include "cli/exchange.h"
#include "cli/upgrade_state.h"
#include "os/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a verb may take unless --timeout says so. */
#define STATUS_MS 5000
#define EFFECT_MS 180000
/* Between two looks at the processes. */
#define LOOK_US 20000
#define LOOK_LEAST_MS 500

struct verb {
    const struct cmdline *cmdline;
    const struct core_settings *core;
    struct log *log;
    int64_t deadline;
    struct upgrade_state state;
};

/* Reads the state anew; the exit code. The last look has some time too: it says how far it is. */
static int look(struct verb *verb)
{
    int64_t least = cli_now_ms() + LOOK_LEAST_MS;
    int64_t deadline = verb->deadline > least ? verb->deadline : least;

    upgrade_state_free(&verb->state);
    if (upgrade_state_read(&verb->state, verb->core, deadline) == 0)
        return EXIT_SUCCESS;
    log_write(verb->log, LEVEL_EMERG, errno, "no memory to look for master processes");
    return EXIT_FAILURE;
}

/* Prints what has happened, but with -q. */
static void say(const struct verb *verb, const char *text)
{
    if (!verb->cmdline->quiet)
        log_write(verb->log, LEVEL_NOTICE, 0, "%s", text);
}

static void format_sessions(const struct upgrade_master *master, char *text, size_t size)
{
    snprintf(text, size, "%lld session%s", (long long)master->sessions,
        master->sessions == 1 ? "" : "s");
}

/* status */

static void show_master(const char *which, const struct upgrade_master *master, bool serves)
{
    if (master->replied)
        printf("%s binary: forkbeard %s, master process %d, %s, %u worker%s, %lld connection%s%s\n",
            which, master->version, (int)master->pid, master->state, master->workers,
            master->workers == 1 ? "" : "s", (long long)master->sessions,
            master->sessions == 1 ? "" : "s", master->main ? ", main process" : "");
    else
        printf("%s binary: master process %d%s%s\n", which, (int)master->pid,
            master->silent ? ", does not reply" : "", serves ? "" : ", does not serve yet");
}

static void show_next(const struct upgrade_state *state)
{
    if (!state->serves)
        printf("next: wait until it serves, or end it: forkbeard upgrade back\n");
    else if (upgrade_master_ends(&state->old))
        printf("next: nothing, the upgrade is complete when the sessions of process %d have ended; "
               "to close them: kill -INT %d\n",
            (int)state->old.pid, (int)state->old.pid);
    else if (upgrade_master_ends(&state->new))
        printf("next: nothing, the upgrade is taken back when the sessions of process %d have "
               "ended; to close them: kill -INT %d\n",
            (int)state->new.pid, (int)state->new.pid);
    else
        printf("next: to complete the upgrade: forkbeard upgrade forward\n"
               "      to take it back:         forkbeard upgrade back\n");
}

static void show_state(const struct upgrade_state *state, bool json)
{
    const struct upgrade_master *masters[] = { &state->new, &state->old };

    for (int i = 0; i < 2 && json; i++)
        fwrite(masters[i]->text, 1, masters[i]->text_n, stdout);
    if (json)
        return;
    if (!state->under_way) {
        printf("no upgrade is under way: master process %d serves alone\n", (int)state->new.pid);
        return;
    }
    show_master("new", &state->new, state->serves);
    show_master("old", &state->old, true);
    show_next(state);
}

static int run_status(struct verb *verb)
{
    const struct upgrade_state *state = &verb->state;

    show_state(state, (verb->cmdline->options & CMDLINE_JSON) != 0);
    if (fflush(stdout) != 0)
        return EXIT_FAILURE;
    if (state->new.silent || state->old.silent)
        return EXIT_NO_REPLY;
    return state->under_way ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* forward and back */

static int refuse(const struct verb *verb, const char *format, const struct upgrade_master *master)
{
    char text[256];

    snprintf(text, sizeof(text), format, (int)master->pid);
    log_write(verb->log, LEVEL_EMERG, 0, "%s", text);
    return EXIT_FAILURE;
}

/* Refuses what cannot be begun; the exit code. */
static int check_state(const struct verb *verb)
{
    const struct upgrade_state *state = &verb->state;
    const struct upgrade_master *silent = state->new.silent ? &state->new : &state->old;

    if (silent->silent) {
        log_write(verb->log, LEVEL_EMERG, 0,
            "the %s binary, process %d, did not reply: it may be stopped; kill -KILL %d ends it, "
            "and then the other serves alone",
            silent == &state->new ? "new" : "old", (int)silent->pid, (int)silent->pid);
        return EXIT_NO_REPLY;
    }
    if (!state->under_way)
        return refuse(verb, "no upgrade is under way: master process %d serves alone", &state->new);
    return EXIT_SUCCESS;
}

/* Gives a command to a process, by its control socket and else by the signal; the exit code. */
static int give(
    struct verb *verb, const struct upgrade_master *master, const char *command, int number)
{
    struct cli_exchange exchange = { .fd = -1 };
    char request[64], error[1024] = "";
    int status = EXIT_FAILURE;

    if (!master->replied) {
        if (kill(master->pid, number) == 0)
            return EXIT_SUCCESS;
        log_write(verb->log, LEVEL_ALERT, errno, "kill(%d, %d) failed", (int)master->pid, number);
        return EXIT_FAILURE;
    }
    snprintf(request, sizeof(request), "{\"command\":\"%s\"}\n", command);
    if (cli_connect(&exchange, master->control, verb->deadline) == -1 ||
        cli_send(&exchange, request) == -1 || cli_receive(&exchange, verb->deadline) == -1) {
        status = errno == EAGAIN ? EXIT_NO_REPLY : EXIT_FAILURE;
        log_write(verb->log, LEVEL_EMERG, errno, "process %d did not reply to \"%s\"",
            (int)master->pid, command);
    } else {
        struct json_value reply = json_parse(exchange.text, exchange.line_n);

        if (json_is_true(json_member(reply, "ok")))
            status = EXIT_SUCCESS;
        else if (json_text(json_member(reply, "error"), error, sizeof(error)))
            log_write(verb->log, LEVEL_EMERG, 0, "process %d refuses \"%s\": %s", (int)master->pid,
                command, error);
    }
    cli_disconnect(&exchange);
    return status;
}

/* Waits a moment and looks again; false when the time has passed. */
static bool look_again(struct verb *verb, int *status)
{
    if (cli_now_ms() >= verb->deadline)
        return false;
    usleep(LOOK_US);
    *status = look(verb);
    return *status == EXIT_SUCCESS;
}

/* Whether neither of the two is at the names any more: then nothing is worth waiting for. */
static bool both_are_gone(const struct verb *verb, pid_t new, pid_t old)
{
    const struct upgrade_master *alone = &verb->state.new;

    if (verb->state.under_way || alone->silent)
        return false;
    if (alone->replied)
        return alone->pid != new && alone->pid != old;
    return !os_proc_runs(new) && !os_proc_runs(old);
}

static int report_gone(const struct verb *verb, pid_t new, pid_t old)
{
    log_write(verb->log, LEVEL_EMERG, 0,
        "the new binary, process %d, and the old one, process %d, have both been ended meanwhile",
        (int)new, (int)old);
    return EXIT_FAILURE;
}

/* Says that the upgrade is complete, though sessions of the old process may go on. */
static int complete(const struct verb *verb, pid_t new, pid_t old)
{
    const struct upgrade_state *state = &verb->state;
    char text[256], sessions[64];

    if (state->new.pid != new) {
        log_write(verb->log, LEVEL_EMERG, 0,
            "the new binary, process %d, has ended: the upgrade was taken back", (int)new);
        return EXIT_FAILURE;
    }
    format_sessions(&state->old, sessions, sizeof(sessions));
    if (!state->under_way)
        snprintf(text, sizeof(text),
            "the upgrade is complete: process %d serves alone; the old one, process %d, has ended",
            (int)new, (int)old);
    else
        snprintf(text, sizeof(text),
            "the upgrade is complete: process %d serves alone; the old one, process %d, still has "
            "%s, and ends after that",
            (int)new, (int)old, sessions);
    say(verb, text);
    return EXIT_SUCCESS;
}

static int run_forward(struct verb *verb)
{
    const struct upgrade_state *state = &verb->state;
    pid_t new = state->new.pid, old = state->old.pid;
    int status = EXIT_SUCCESS;

    if (!state->serves)
        return refuse(verb,
            "the new binary, process %d, does not serve yet: wait for it, or end it by "
            "\"forkbeard upgrade back\"",
            &state->new);
    if (upgrade_master_ends(&state->new))
        return refuse(verb, "the upgrade is taken back already: the new binary, process %d, ends",
            &state->new);
    if (!upgrade_master_ends(&state->old))
        status = give(verb, &state->old, "quit", SIGQUIT);
    while (status == EXIT_SUCCESS && look_again(verb, &status)) {
        if (both_are_gone(verb, new, old))
            return report_gone(verb, new, old);
        if (!state->under_way && state->new.pid != -1)
            return complete(verb, new, old);
        /* without sessions it ends in a moment */
        if (state->old.replied && upgrade_master_ends(&state->old) && state->old.accepting == 0 &&
            state->old.sessions > 0)
            return complete(verb, new, old);
    }
    if (status != EXIT_SUCCESS)
        return status;
    log_write(verb->log, LEVEL_EMERG, 0,
        "the old binary, process %d, was told to quit and has not ended yet; the new one, process "
        "%d, serves",
        (int)old, (int)new);
    return EXIT_NO_REPLY;
}

/* Says how far it has come where the time has passed. */
static int report_unfinished(const struct verb *verb, pid_t new, pid_t old)
{
    const struct upgrade_state *state = &verb->state;
    char sessions[64];

    format_sessions(&state->new, sessions, sizeof(sessions));
    if (state->new.replied && state->new.pid == new)
        log_write(verb->log, LEVEL_EMERG, 0,
            "the old binary, process %d, serves alone, but the new one, process %d, still has %s: "
            "the names of the pid file and the control socket move back when it has ended",
            (int)old, (int)new, sessions);
    else
        log_write(verb->log, LEVEL_EMERG, 0,
            "the new binary, process %d, was told to quit and has not ended yet", (int)new);
    return EXIT_NO_REPLY;
}

static int run_back(struct verb *verb)
{
    const struct upgrade_state *state = &verb->state;
    pid_t new = state->new.pid, old = state->old.pid;
    int status = EXIT_SUCCESS;
    char text[256];

    if (upgrade_master_ends(&state->old))
        return refuse(verb,
            "the upgrade cannot be taken back: the old binary, process %d, ends already",
            &state->old);
    /* after SIGWINCH it has no workers, and clients would wait until the new one's have ended */
    if (state->serves && state->old.replied && state->old.accepting == 0)
        status = give(verb, &state->old, "reload", SIGHUP);
    if (status == EXIT_SUCCESS && !upgrade_master_ends(&state->new))
        status = give(verb, &state->new, "quit", state->serves ? SIGQUIT : SIGTERM);
    while (status == EXIT_SUCCESS && look_again(verb, &status)) {
        if (both_are_gone(verb, new, old))
            return report_gone(verb, new, old);
        if (state->under_way || state->new.pid != old)
            continue;
        snprintf(text, sizeof(text),
            "the upgrade was taken back: process %d serves alone again; the new one, process %d, "
            "has ended",
            (int)old, (int)new);
        say(verb, text);
        return EXIT_SUCCESS;
    }
    return status != EXIT_SUCCESS ? status : report_unfinished(verb, new, old);
}

/* Says that no process serves, but perhaps one shuts down; returns the exit code. */
static int report_none(const struct verb *verb)
{
    pid_t quitting = verb->state.quitting;
    char text[128];

    snprintf(
        text, sizeof(text), "no upgrade is under way: process %d is shutting down", (int)quitting);
    if (quitting == 0)
        log_write(verb->log, LEVEL_EMERG, 0, "no daemon runs with the %s \"%s\"",
            verb->cmdline->control != NULL ? "control socket" : "pid file", verb->core->pid);
    else if (strcmp(verb->cmdline->argument, "status") != 0)
        log_write(verb->log, LEVEL_EMERG, 0, "%s", text);
    else if ((verb->cmdline->options & CMDLINE_JSON) == 0)
        printf("%s\n", text);
    return EXIT_FAILURE;
}

static int run_verb(struct verb *verb)
{
    const char *word = verb->cmdline->argument;
    const struct upgrade_master *alone = &verb->state.new;
    int status = look(verb);

    if (status != EXIT_SUCCESS)
        return status;
    if (!verb->state.under_way && !alone->replied && !alone->silent && !os_proc_runs(alone->pid))
        return report_none(verb);
    if (strcmp(word, "status") == 0)
        return run_status(verb);
    status = check_state(verb);
    if (status != EXIT_SUCCESS)
        return status;
    return strcmp(word, "forward") == 0 ? run_forward(verb) : run_back(verb);
}

int cli_upgrade(const struct cmdline *cmdline, struct log *log)
{
    /* with --control the socket's names are all that is known */
    struct core_settings core = { .pid = cmdline->control, .control = cmdline->control };
    struct verb verb = { .cmdline = cmdline, .core = &core, .log = log };
    struct cycle_options options = cmdline->cycle;
    bool shows = strcmp(cmdline->argument, "status") == 0;
    struct cycle *cycle = NULL;
    int status;

    options.only_pid = true;
    if (cmdline->control == NULL) {
        cycle = cycle_load(&options, log, STDERR_FILENO);
        if (cycle == NULL)
            return EXIT_FAILURE;
        verb.core = &cycle->core;
    }
    verb.deadline = cli_now_ms() + (cmdline->timeout_ms != 0 ? cmdline->timeout_ms
                                       : shows               ? STATUS_MS
                                                             : EFFECT_MS);
    status = run_verb(&verb);
    upgrade_state_free(&verb.state);
    cycle_destroy(&cycle);
    return status;
}
