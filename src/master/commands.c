/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes commands, and finds the reason for which a command waits, in the order in which master.c
 * carries commands out. Never carries a command out. */
#include "master/commands.h"

#include "master/master.h"
#include "pool/generation.h"
#include "process/process_ops.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES (COMMANDS_WHY_MAX + 32)
#define UPGRADE_NOTE_MS 1000 /* most binaries serve before */

static const struct {
    enum command command;
    enum control_wait wait;
    const char *word;
} waiting_commands[COMMANDS_WAITING] = {
    { COMMAND_RELOAD, CONTROL_WAIT_RELOAD, "reload" },
    { COMMAND_UPGRADE, CONTROL_WAIT_UPGRADE, "upgrade" },
};

bool commands_given(const struct commands *commands, enum command command)
{
    return ((commands->requested | signals_state->given) >> command & 1) != 0;
}

bool commands_take(struct commands *commands, enum command command)
{
    bool requested = (commands->requested >> command & 1) != 0;
    const struct signal_row *row;

    assert(command > COMMAND_NONE && command < COMMAND_N);
    commands->requested &= ~(1u << command);
    commands->sender = 0;
    /* SIGHUP means a resume while the daemon quits */
    if (!signals_take(command == COMMAND_RESUME ? COMMAND_RELOAD : command, &commands->sender))
        return requested;
    row = signals_find(ROLE_MASTER, command);
    log_event(commands->log, "command", LEVEL_NOTICE, 0, "signal %d (%s) received from %d, %s",
        row->number, row->name, (int)commands->sender, row->doing);
    return true;
}

/* Writes the reason, and returns for how many milliseconds at most; 0: no bound is known. A
 * reason contains no time, and so stays equal during a wait. */
static uint64_t describe_wait(const struct master *master, char *text, size_t size)
{
    const struct upgrade *upgrade = &master->upgrade;

    if (master->reload.phase == RELOAD_CHECKING) {
        snprintf(text, size, "a reload is under way: the configuration is checked");
        return pool_ms_until(&master->pool, master->reload.deadline.deadline);
    }
    if (master->reload.phase != RELOAD_IDLE) {
        size_t n = (size_t)snprintf(text, size, "a reload is under way: ");

        return pool_describe_wait(&master->pool, text + n, size - n);
    }
    if (upgrade->phase == UPGRADE_STARTING || upgrade->phase == UPGRADE_ROLLING_BACK) {
        snprintf(text, size,
            upgrade->phase == UPGRADE_STARTING
                ? "an upgrade is under way: the new binary, process %d, does not serve yet"
                : "an upgrade is rolled back: the new binary, process %d, is ending",
            (int)upgrade->other);
        return pool_ms_until(&master->pool, upgrade->deadline.deadline);
    }
    return pool_describe_wait(&master->pool, text, size);
}

/* Makes the line of a reason with a limit in milliseconds. */
static void format_line(const char *why, uint64_t ms, char line[LINE_MAX_BYTES])
{
    if (ms > 0)
        snprintf(line, LINE_MAX_BYTES, "%s, at most %" PRIu64 " s", why, (ms + 999) / 1000);
    else
        snprintf(line, LINE_MAX_BYTES, "%s", why);
}

/* Tells the reason of one command. */
static void tell_reason(struct master *master, unsigned i)
{
    char why[COMMANDS_WHY_MAX], line[LINE_MAX_BYTES];
    char *told = master->commands.why[i];
    uint64_t ms = describe_wait(master, why, sizeof(why));
    bool changed = strcmp(why, told) != 0;

    assert(why[0] != '\0');
    strcpy(told, why);
    format_line(why, ms, line);
    if (changed)
        log_write(
            &master->log, LEVEL_NOTICE, 0, "\"%s\" waits: %s", waiting_commands[i].word, line);
    control_tell(&master->control, waiting_commands[i].wait, line, changed);
}

void commands_tell(struct master *master)
{
    CHECK_KIND(master, MASTER_KIND);
    for (unsigned i = 0; i < COMMANDS_WAITING; i++)
        if (commands_given(&master->commands, waiting_commands[i].command))
            tell_reason(master, i);
        else
            master->commands.why[i][0] = '\0';
}

static void upgrade_expired(struct loop *loop, struct timer *timer)
{
    struct master *master = container_of(timer, struct master, commands.upgrade);
    char why[COMMANDS_WHY_MAX], line[LINE_MAX_BYTES];
    uint64_t ms;

    CHECK_KIND(master, MASTER_KIND);
    (void)loop;
    if (master->upgrade.phase != UPGRADE_STARTING || master->reload.phase != RELOAD_IDLE)
        return;
    ms = describe_wait(master, why, sizeof(why));
    format_line(why, ms, line);
    control_tell(&master->control, CONTROL_WAIT_UPGRADE_END, line, true);
}

void commands_note_upgrade(struct commands *commands, struct timers *timers)
{
    commands->upgrade.expired = upgrade_expired;
    timers_arm(timers, &commands->upgrade, UPGRADE_NOTE_MS);
}

void commands_write(const struct commands *commands, struct json *json)
{
    for (unsigned i = 0; i < COMMANDS_WAITING; i++) {
        if (commands->why[i][0] == '\0')
            continue;
        json_object(json, NULL);
        json_string(json, "command", waiting_commands[i].word);
        json_string(json, "waiting", commands->why[i]);
        json_close(json);
    }
}
