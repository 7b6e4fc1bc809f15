/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of a protocol's input, with limits and timeouts; copies no byte. */
#pragma once

#include "session/use.h"

#include <forkbeard/forkbeard.h>

/* Take a frame off *rest: fb_frame_until(), fb_frame_fixed() and fb_frame_counted(). Return 1 and
 * the frame, or 0: not whole yet, or the connection has failed. */
int frame_until(struct fb_conn *conn, fb_bytes *rest, const void *delimiter, size_t n,
    const struct fb_frame_limit *limit, fb_bytes *frame);
int frame_fixed(struct fb_conn *conn, fb_bytes *rest, size_t n, const struct fb_frame_limit *limit,
    fb_bytes *frame);
int frame_counted(struct fb_conn *conn, fb_bytes *rest, const struct fb_frame_layout *layout,
    const struct fb_frame_limit *limit, fb_bytes *head, fb_bytes *frame);
/* `data` has consumed input up to `at`. */
void frame_consumed(struct session_use *use, const uint8_t *at);
/* Forgets a begun frame that will not become whole. */
void frame_forget(struct session_use *use);
