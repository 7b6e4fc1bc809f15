/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames, for a `data` callback that takes one after the other and returns what it has used:
 *
 *     fb_bytes rest = in, line;
 *     while (fb_frame_until(conn, &rest, "\n", 1, &limit, &line))
 *         ...
 *     return in.n - rest.n;
 *
 * Each call returns 1 when it has cut a frame from the front of *rest; *frame is lent as the input
 * is. It returns 0 when the frame is not complete yet, or the connection is stopped or ends.
 *
 * Part of <forkbeard/forkbeard.h>, whose rules hold here. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fb_frame_limit {
    size_t most;      /* bytes; a longer frame ends the connection as FB_INPUT_LIMIT */
    uint64_t timeout; /* ms from the first byte of a frame to its last, else the connection ends
                         as FB_TIMED_OUT; 0: no limit */
} fb_frame_limit;

/* Cuts a frame that ends before a delimiter of delimiter_n bytes, at least 1. The delimiter is
 * removed, and belongs to neither the frame nor `most`. */
FB_SDK int fb_frame_until(fb_conn *conn, fb_bytes *rest, const void *delimiter, size_t delimiter_n,
    const fb_frame_limit *limit, fb_bytes *frame);
/* Cuts a frame of n bytes. */
FB_SDK int fb_frame_fixed(
    fb_conn *conn, fb_bytes *rest, size_t n, const fb_frame_limit *limit, fb_bytes *frame);
/* Cuts a frame behind its length: a number of `width` bytes (1, 2, 4 or 8), most significant byte
 * first, or with `little` not 0 least significant first. The length is removed, and belongs to
 * neither the frame nor `most`. */
FB_SDK int fb_frame_prefixed(fb_conn *conn, fb_bytes *rest, unsigned width, int little,
    const fb_frame_limit *limit, fb_bytes *frame);

#ifdef __cplusplus
}
#endif
