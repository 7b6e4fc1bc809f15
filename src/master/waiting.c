/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out what a reload or an upgrade waits for, in the order in which master.c looks at it.
 * Nothing is changed but what was told; a reason has no time in it, so that it stays the same while
 * the wait does. */
#include "master/waiting.h"

#include "master/master.h"
#include "pool/generation.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES (WAITING_TEXT_MAX + 32)
#define UPGRADE_NOTE_MS 1000 /* most binaries serve before */

static const struct {
    enum command command;
    enum control_wait wait;
    const char *word;
} commands[WAITING_COMMANDS] = {
    { COMMAND_RELOAD, CONTROL_WAIT_RELOAD, "reload" },
    { COMMAND_UPGRADE, CONTROL_WAIT_UPGRADE, "upgrade" },
};

static uint64_t time_left(const struct clock *clock, const struct timer *timer)
{
    return timer->deadline > clock->mono_ms ? timer->deadline - clock->mono_ms : 0;
}

/* Writes the reason, and returns how many milliseconds it lasts at most; 0: no bound is known. */
static uint64_t describe(const struct master *master, char *text, size_t size)
{
    const struct upgrade *upgrade = &master->upgrade;

    if (master->reload.phase == RELOAD_CHECKING) {
        snprintf(text, size, "a reload is under way: its configuration is checked");
        return time_left(&master->clock, &master->reload.deadline);
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
        return time_left(&master->clock, &upgrade->deadline);
    }
    return pool_describe_wait(&master->pool, text, size);
}

/* Makes the line of a reason that lasts so many milliseconds at most. */
static void format_line(const char *why, uint64_t ms, char line[LINE_MAX_BYTES])
{
    if (ms > 0)
        snprintf(line, LINE_MAX_BYTES, "%s, at most %" PRIu64 " s", why, (ms + 999) / 1000);
    else
        snprintf(line, LINE_MAX_BYTES, "%s", why);
}

/* Tells the reason of one command. */
static void tell(struct master *master, unsigned i)
{
    char why[WAITING_TEXT_MAX], line[LINE_MAX_BYTES];
    char *told = master->waiting.why[i];
    uint64_t ms = describe(master, why, sizeof(why));
    bool changed = strcmp(why, told) != 0;

    assert(why[0] != '\0');
    strcpy(told, why);
    format_line(why, ms, line);
    if (changed)
        log_write(&master->log, LEVEL_NOTICE, 0, "\"%s\" waits: %s", commands[i].word, line);
    control_tell(&master->control, commands[i].wait, line, changed);
}

void waiting_tell(struct master *master)
{
    CHECK_KIND(master, MASTER_KIND);
    for (unsigned i = 0; i < WAITING_COMMANDS; i++)
        if (signals_given(commands[i].command) || master->requested[commands[i].command])
            tell(master, i);
        else
            master->waiting.why[i][0] = '\0';
}

static void upgrade_expired(struct loop *loop, struct timer *timer)
{
    struct master *master = container_of(timer, struct master, waiting.upgrade);
    char why[WAITING_TEXT_MAX], line[LINE_MAX_BYTES];
    uint64_t ms;

    CHECK_KIND(master, MASTER_KIND);
    (void)loop;
    if (master->upgrade.phase != UPGRADE_STARTING || master->reload.phase != RELOAD_IDLE)
        return;
    ms = describe(master, why, sizeof(why));
    format_line(why, ms, line);
    control_tell(&master->control, CONTROL_WAIT_UPGRADE_END, line, true);
}

void waiting_note_upgrade(struct waiting *waiting, struct timers *timers)
{
    waiting->upgrade.expired = upgrade_expired;
    timers_arm(timers, &waiting->upgrade, UPGRADE_NOTE_MS);
}

void waiting_fill(const struct waiting *waiting, struct control_status *out)
{
    unsigned n = 0;

    for (unsigned i = 0; i < WAITING_COMMANDS; i++) {
        if (waiting->why[i][0] == '\0')
            continue;
        out->pending[n].command = commands[i].word;
        out->pending[n++].why = waiting->why[i];
    }
    assert(out->pending[n].command == NULL);
}
