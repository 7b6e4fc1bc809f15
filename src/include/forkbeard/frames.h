/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames, for a `data` callback that takes frame after frame and returns the number of used bytes:
 *
 *     fb_bytes rest = in, line;
 *     while (fb_frame_until(conn, &rest, "\n", 1, &limit, &line))
 *         ...
 *     return in.n - rest.n;
 *
 * Each call returns 1 after cutting a frame from the front of *rest; *frame is lent like the input.
 * Returns 0 when the frame is incomplete, or the connection is stopped, begins TLS, or ends.
 *
 * Part of <forkbeard/forkbeard.h>, with the same rules. */
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
/* Cuts a frame behind its length: a number of `width` bytes (1 to 8), most significant byte first,
 * or with `little` not 0 least significant first. The length is removed, and belongs to neither the
 * frame nor `most`. */
FB_SDK int fb_frame_prefixed(fb_conn *conn, fb_bytes *rest, unsigned width, int little,
    const fb_frame_limit *limit, fb_bytes *frame);
/* Cuts a frame in the same way behind a varint of at most `width` bytes (1 to 10): groups of 7
 * bits, the least significant first, all but the last with the high bit set. MQTT has 4,
 * protobuf 10. A longer varint, or a value beyond 64 bits, ends the connection as FB_BAD_FRAME.
 * Since API 4. */
FB_SDK int fb_frame_varint(
    fb_conn *conn, fb_bytes *rest, unsigned width, const fb_frame_limit *limit, fb_bytes *frame);

/* The head of a frame on the wire: bytes before the length, the length, bytes after the length. The
 * frame follows, with as many bytes as the length less `counts`.
 *
 *     PostgreSQL    .before = 1, .width = 4, .counts = 4
 *     MySQL         .width = 3, .little = 1, .after = 1
 *     TLS           .before = 3, .width = 2
 *     MQTT          .before = 1, .width = 4, .varint = 1
 *     HTTP/2        .width = 3, .after = 6
 *     SMPP          .width = 4, .after = 12, .counts = 16 */
typedef struct fb_frame_layout {
    size_t size;     /* sizeof(fb_frame_layout) */
    uint32_t before; /* bytes before the length: a type, a version */
    uint32_t width;  /* bytes of the length: 1 to 8; of a varint the most, 1 to 10 */
    uint32_t little; /* nonzero: the least significant byte comes first */
    uint32_t varint; /* nonzero: the length is a varint, as of fb_frame_varint() */
    uint32_t after;  /* bytes between the length and the frame: a sequence number */
    uint32_t counts; /* bytes of the head included in the length, perhaps with the length field */
} fb_frame_layout;

/* Cuts a head and the frame behind, when both are whole. *head is the head as in the input, lent
 * like the frame; `head` may be NULL. The head does not count for `most`. A length less than
 * `counts`, or a bad varint, ends the connection as FB_BAD_FRAME. Since API 4. */
FB_SDK int fb_frame_counted(fb_conn *conn, fb_bytes *rest, const fb_frame_layout *layout,
    const fb_frame_limit *limit, fb_bytes *head, fb_bytes *frame);

#ifdef __cplusplus
}
#endif
