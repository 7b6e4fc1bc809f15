/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's frame calls. session/frame.c cuts the frames; the calls refuse an ended connection, and
 * then there is no frame. */
#include "sdk/handle.h"
#include "session/frame.h"

#include <assert.h>

/* A cut frame lies before the rest of the input. */
static int check_cut(int cut, const fb_bytes *rest, const fb_bytes *frame)
{
    assert(!cut || frame->p + frame->n <= rest->p);
    return cut;
}

int fb_frame_until(fb_conn *conn, fb_bytes *rest, const void *delimiter, size_t delimiter_n,
    const fb_frame_limit *limit, fb_bytes *frame)
{
    return SDK_VALID(conn)
               ? check_cut(
                     frame_until(conn, rest, delimiter, delimiter_n, limit, frame), rest, frame)
               : 0;
}

int fb_frame_fixed(
    fb_conn *conn, fb_bytes *rest, size_t n, const fb_frame_limit *limit, fb_bytes *frame)
{
    return SDK_VALID(conn) ? check_cut(frame_fixed(conn, rest, n, limit, frame), rest, frame) : 0;
}

int fb_frame_prefixed(fb_conn *conn, fb_bytes *rest, unsigned width, int little,
    const fb_frame_limit *limit, fb_bytes *frame)
{
    const fb_frame_layout layout = { .width = width, .little = (uint32_t)(little != 0) };

    return SDK_VALID(conn)
               ? check_cut(frame_counted(conn, rest, &layout, limit, NULL, frame), rest, frame)
               : 0;
}

int fb_frame_varint(
    fb_conn *conn, fb_bytes *rest, unsigned width, const fb_frame_limit *limit, fb_bytes *frame)
{
    const fb_frame_layout layout = { .width = width, .varint = 1 };

    return SDK_VALID(conn)
               ? check_cut(frame_counted(conn, rest, &layout, limit, NULL, frame), rest, frame)
               : 0;
}

int fb_frame_counted(fb_conn *conn, fb_bytes *rest, const fb_frame_layout *layout,
    const fb_frame_limit *limit, fb_bytes *head, fb_bytes *frame)
{
    fb_bytes own;

    assert(layout->size >= sizeof(*layout));
    if (!SDK_VALID(conn))
        return 0;
    if (head == NULL)
        head = &own;
    if (!check_cut(frame_counted(conn, rest, layout, limit, head, frame), rest, frame))
        return 0;
    assert(head->p + head->n == frame->p);
    return 1;
}
