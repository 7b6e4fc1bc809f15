/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages from workers. */
#pragma once

#include "pool/layout.h"

extern const struct channel_end_ops pool_channel_ops;

/* Receives and handles some messages of each worker; when more wait, the master is woken again.
 * Kills workers that break the channel's rules. */
void pool_receive_messages(struct pool *pool);
