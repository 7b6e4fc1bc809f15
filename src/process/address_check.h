/* SPDX-License-Identifier: BSD-2-Clause */
/* Warns, for -t, of addresses that other processes listen on, so that a start could not bind them.
 * Nothing is bound and no socket is made: the kernel's tables say what is in use. Addresses that a
 * daemon with our pid file has are its to keep, at a reload. */
#pragma once

#include "settings/cycle.h"

/* Warns of each address of the configuration in the log, with excerpts to the descriptor. */
void address_check(const struct cycle *cycle, struct log *log, int excerpts);
