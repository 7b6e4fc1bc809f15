/* SPDX-License-Identifier: BSD-2-Clause */
/* The keeper's end of the channel to the master. */
#pragma once

#include "keeper/keeper.h"

/* Watches the channel; -1 after an emerg line. */
int keeper_channel_open(struct keeper *keeper);
/* Goes to a later phase; an earlier phase is ignored. The master
 * hears of a drain. */
void keeper_advance(struct keeper *keeper, enum keeper_phase phase);
/* Stops watching the channel, if open. The kernel closes it, which tells the master of the end. */
void keeper_channel_close(struct keeper *keeper);
