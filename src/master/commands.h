/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that were given, by a signal or by a client of the control socket, and are not carried
 * out yet. The log, the clients and the status are told why a reload or an upgrade waits. */
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "event/timer.h"
#include "process/signals.h"

#include <stdint.h>

struct master;

#define COMMANDS_WAITING 2   /* a reload and an upgrade: the others are carried out at once */
#define COMMANDS_WHY_MAX 256 /* bytes of a reason */

struct commands {
    struct log *log;
    uint32_t requested; /* by clients, until carried out, as bits */
    pid_t sender;       /* sender of the latest signal taken; 0: unknown, or no signal */
    char why[COMMANDS_WAITING][COMMANDS_WHY_MAX]; /* told last; "": nothing waits */
    struct timer upgrade; /* delay of the news about a slow start of a new binary */
};

/* Whether the command was given and not taken yet. */
bool commands_given(const struct commands *commands, enum command command);
/* Takes the command, and logs the signal; false without a command. */
bool commands_take(struct commands *commands, enum command command);
/* Tells the log and new clients, after all commands, why a reload or an upgrade waits. */
void commands_tell(struct master *master);
/* A new binary was started: clients of the upgrade are told of a slow start. */
void commands_note_upgrade(struct commands *commands, struct timers *timers);
/* Writes the waiting commands for the status. */
void commands_write(const struct commands *commands, struct json *json);
