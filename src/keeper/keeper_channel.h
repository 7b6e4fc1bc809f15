/* SPDX-License-Identifier: BSD-2-Clause */
/* The keeper's end of the channel to the master. */
#pragma once

#include "keeper/keeper.h"

/* Watches the channel; -1 after an emerg line. */
int keeper_channel_open(struct keeper *keeper);
/* Goes to a later phase; an earlier phase is ignored. The master
 * hears of a drain. */
void keeper_advance(struct keeper *keeper, enum keeper_phase phase);
/* Gives the engine the file that has come, and asks the master for the next that is wanted; false:
 * the channel is full, and the call is to be made again. */
bool keeper_channel_ask(struct keeper *keeper);
/* Stops watching the channel, if open. The kernel closes it, which tells the master of the end. */
void keeper_channel_close(struct keeper *keeper);
