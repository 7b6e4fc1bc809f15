/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest lifetime of a client's session: `session_lifetime`. */
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

/* Handles a phase by a struct lifetime_setting: the time runs since the connect. Returns 0. */
unsigned lifetime_begin(struct fb_conn *conn, const void *setting);
