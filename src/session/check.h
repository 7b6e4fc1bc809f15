/* SPDX-License-Identifier: BSD-2-Clause */
/* The invariants of sessions. */
#pragma once

#include "session/stream.h"

/* Asserts the invariants of all connections and sessions, between callbacks. */
void session_check_all(const struct stream *stream);
