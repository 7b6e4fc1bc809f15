/* SPDX-License-Identifier: BSD-2-Clause */
/* The load of a peer by its connections. */
#pragma once

#include "upstream/least.h"

/* Returns how many connections the peer has, by all workers that share its state. */
uint32_t least_conn_load(const struct choice *choice, const struct peer *peer);
