/* SPDX-License-Identifier: BSD-2-Clause */
/* The zones of a configuration, opened by the master before its workers. */
#pragma once

#include "settings/cycle.h"

/* Opens every zone, with the memory of a fitting zone of `old` (open, or NULL), and enters the
 * servers in the statistics; -1 after an emerg line, with every zone closed. */
int configuration_open_zones(struct cycle *cycle, const struct zones *old, struct log *log);
