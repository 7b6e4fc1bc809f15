/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "net/conn.h"

#include <forkbeard/forkbeard.h>

/* As the SDK's calls of these names say. */
int fb_session_frame_until(struct fb_conn *conn, fb_bytes *rest, const void *delimiter, size_t n,
    const struct fb_frame_limit *limit, fb_bytes *frame);
int fb_session_frame_fixed(struct fb_conn *conn, fb_bytes *rest, size_t n,
    const struct fb_frame_limit *limit, fb_bytes *frame);
int fb_session_frame_prefixed(struct fb_conn *conn, fb_bytes *rest, unsigned width, bool little,
    const struct fb_frame_limit *limit, fb_bytes *frame);
