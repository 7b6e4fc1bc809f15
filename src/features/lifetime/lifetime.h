/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest lifetime of a client's session: `session_lifetime`. Costs a session whose server has
 * none nothing. */
#pragma once

#include "session/timeouts.h"
#include "session/use.h"

struct lifetime_setting {
    int64_t time;   /* ms; 0: any */
    int64_t jitter; /* ms by which the lifetime is shortened, at most */
    int64_t grace;  /* ms in which a session has to end then */
};

/* The feature's struct of a server. */
struct lifetime_values {
    struct lifetime_setting lifetime;
    struct rate_setting receive_min_rate;
};

/* Handles a phase of a session, by a struct lifetime_setting: its time begins, or has begun with
 * the connection. Returns 0; without memory the connection has failed. */
unsigned lifetime_begin(struct fb_conn *conn, const void *setting);
