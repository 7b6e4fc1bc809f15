/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a command that was given is not carried out yet: the log, the clients that have asked for
 * it, and the status are told. */
#pragma once

#include "event/timer.h"

#include <stddef.h>

struct control_status;
struct master;

#define WAITING_COMMANDS 2   /* reload and upgrade: the others are carried out at once */
#define WAITING_TEXT_MAX 256 /* bytes of a reason */

/* Reasons that were told last, "" where nothing waits; of a reload, then of an upgrade. */
struct waiting {
    char why[WAITING_COMMANDS][WAITING_TEXT_MAX];
    struct timer upgrade; /* when to tell that a new binary still starts */
};

/* Tells the reason of each command that waits, where it is another one than before, and tells new
 * clients. To be called when commands have been carried out, while one waits or has waited. */
void waiting_tell(struct master *master);
/* A new binary was started: clients that have asked for it are told if it takes long. */
void waiting_note_upgrade(struct waiting *waiting, struct timers *timers);
/* Fills in what was told last. */
void waiting_fill(const struct waiting *waiting, struct control_status *out);
