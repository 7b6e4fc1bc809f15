/* SPDX-License-Identifier: BSD-2-Clause */
/* The reading of a pair: its files one by one, what they are tried for, and what becomes of it.
 *
 * Responsible for reading all files of a pair at one time, for the lines about swapped, expiring
 * and refused pairs, and for telling a mistake once. Part of keeper/pairs.h. */
#pragma once

#include "keeper/pairs.h"

/* Begins to read a pair; none is being read. Whether all is over: the files came at once. */
bool pair_load_begin(struct pairs *pairs, struct pair_place place, bool asked, bool at_once);
/* Takes the file that was asked for; whether all is over. */
bool pair_load_take(struct pairs *pairs, int fd, int error);
/* Gives up the reading, if any. */
void pair_load_cancel(struct pairs *pairs);
/* Returns the latest refusal of a pair's files; NULL: they are good, or were not read. */
struct pair_failure *pair_load_failure(const struct pairs *pairs, uint32_t number);
/* Forgets all refusals, so that the files are read again when they are needed. */
void pair_load_forget(struct pairs *pairs);
