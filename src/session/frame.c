/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames: pieces of input, given to a protocol when whole.
 *
 * Responsible for the start of an incomplete frame, its greatest length, and the time of the
 * wait. Never keeps bytes: an incomplete frame stays with the connection like any unconsumed
 * input. Invariant: the frame timer is set only while a frame has begun (frame.most > 0). */
#include "session/frame.h"

#include <errno.h>
#include <string.h>

/* Bytes of a varint that holds 64 bits. */
#define VARINT_MOST 10

static void frame_expired(struct loop *loop, struct timer *timer)
{
    struct session_use *use = container_of(timer, struct session_use, frame.timer);
    struct fb_conn *conn = use->session->conn;

    CHECK_KIND(use, SESSION_USE_KIND);
    assert(use->frame.most > 0 && conn_is_owned(conn));
    if (!conn_is_active(conn) || conn->pipe != NULL)
        return;                            /* no protocol waits for the frame any more */
    if (conn->read == CONN_READ_STOPPED) { /* the protocol has us wait */
        timer_set(loop, timer, use->frame.timeout);
        return;
    }
    conn_log(conn, LEVEL_INFO, ETIMEDOUT, "a frame took too long to arrive");
    conn_fail(conn, FB_TIMED_OUT);
    net_flush(conn->net);
}

void frame_forget(struct session_use *use)
{
    use->frame.most = use->frame.scanned = 0;
    use->frame.at = NULL;
    timer_del(&use->session->conn->net->loop, &use->frame.timer);
}

/* Returns the start of the incomplete frame. */
static const uint8_t *beginning(const struct session_use *use)
{
    return use->frame.at != NULL ? use->frame.at : use->session->conn->net->lent.p;
}

/* Whether the begun frame is at the front of `rest`. */
static bool is_begun(const struct session_use *use, const fb_bytes *rest)
{
    return use != NULL && use->frame.most > 0 && beginning(use) == rest->p;
}

/* Adds without overflow: a limit may be SIZE_MAX. */
static size_t sum(size_t a, size_t b)
{
    return a < SIZE_MAX - b ? a + b : SIZE_MAX;
}

/* Begins an incomplete frame at `rest`, of `most` bytes with the delimiter or length. */
static struct session_frame *await_frame(
    struct fb_conn *conn, const fb_bytes *rest, size_t most, const struct fb_frame_limit *limit)
{
    struct session_frame *frame;
    struct session_use *use;

    if (rest->n == 0)
        return NULL; /* the frame has not begun */
    use = session_use_make(conn);
    if (use == NULL)
        return NULL;
    if (!is_begun(use, rest))
        frame_forget(use);
    frame = &use->frame;
    frame->at = rest->p;
    frame->most = sum(most, 1);
    frame->scanned = 0;
    frame->timeout = session_clamp_ms(limit->timeout);
    frame->timer.expired = frame_expired;
    if (limit->timeout > 0 && !timer_is_set(&frame->timer))
        timer_set(&conn->net->loop, &frame->timer, frame->timeout);
    return frame;
}

static COLD int fail_frame(struct fb_conn *conn, fb_reason reason)
{
    if (reason == FB_BAD_FRAME)
        conn_log(conn, LEVEL_INFO, 0, "the length of a frame makes no sense");
    conn_fail(conn, reason);
    return 0;
}

/* Gives the protocol a frame of n bytes, and steps over the bytes before, in and behind it. */
static int take_frame(
    struct fb_conn *conn, fb_bytes *rest, size_t before, size_t n, size_t behind, fb_bytes *frame)
{
    assert(before + n + behind <= rest->n);
    *frame = (fb_bytes) { rest->p + before, n };
    rest->p += before + n + behind;
    rest->n -= before + n + behind;
    if (session_use_of(conn) != NULL)
        frame_forget(session_use_of(conn));
    return 1;
}

void frame_consumed(struct session_use *use, const uint8_t *at)
{
    if (use->frame.most > 0 && beginning(use) != at)
        frame_forget(use);
    use->frame.at = NULL;
}

/* Whether the protocol is to be given no more frames for now. */
static bool takes_no_frame(const struct fb_conn *conn)
{
    return !conn_is_active(conn) || conn->read == CONN_READ_STOPPED || conn->pipe != NULL ||
           conn->session_phase == SESSION_SECURING;
}

/* Hashes by FNV-1a. */
static uint64_t hash_delimiter(const uint8_t *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3;
    return h;
}

/* Returns how many bytes at the front are already searched for the delimiter. */
static size_t searched(const struct fb_conn *conn, const fb_bytes *rest, const void *p, size_t n)
{
    const struct session_use *use = session_use_of(conn);

    if (!is_begun(use, rest) || use->frame.scanned > rest->n ||
        use->frame.delimiter != hash_delimiter(p, n))
        return 0;
    return use->frame.scanned;
}

int frame_until(struct fb_conn *conn, fb_bytes *rest, const void *delimiter, size_t n,
    const struct fb_frame_limit *limit, fb_bytes *frame)
{
    struct session_frame *begun;
    const uint8_t *end;
    size_t scanned;

    if (takes_no_frame(conn))
        return 0;
    scanned = searched(conn, rest, delimiter, n);
    end = memmem(rest->p + scanned, rest->n - scanned, delimiter, n);
    if (end != NULL && (size_t)(end - rest->p) <= limit->most)
        return take_frame(conn, rest, 0, (size_t)(end - rest->p), n, frame);
    if (end != NULL || rest->n >= sum(limit->most, n))
        return fail_frame(conn, FB_INPUT_LIMIT);
    begun = await_frame(conn, rest, sum(limit->most, n), limit);
    if (begun != NULL && rest->n >= n) {
        begun->scanned = rest->n - n + 1; /* the delimiter's beginning may be there */
        begun->delimiter = hash_delimiter(delimiter, n);
    }
    return 0;
}

int frame_fixed(struct fb_conn *conn, fb_bytes *rest, size_t n, const struct fb_frame_limit *limit,
    fb_bytes *frame)
{
    if (takes_no_frame(conn))
        return 0;
    if (n > limit->most)
        return fail_frame(conn, FB_INPUT_LIMIT);
    if (rest->n >= n)
        return take_frame(conn, rest, 0, n, 0, frame);
    await_frame(conn, rest, n, limit);
    return 0;
}

/* Reads the length at p; returns how many bytes it has; 0: not whole, or *bad is set. */
static unsigned read_varint(const uint8_t *p, size_t n, unsigned most, uint64_t *length, bool *bad)
{
    *length = 0;
    for (unsigned i = 0; i < most; i++) {
        if (i == n)
            return 0;
        if (i == VARINT_MOST - 1 && p[i] > 1) /* beyond 64 bits */
            break;
        *length |= (uint64_t)(p[i] & 0x7f) << 7 * i;
        if ((p[i] & 0x80) == 0)
            return i + 1;
    }
    *bad = true;
    return 0;
}

static uint64_t read_number(const uint8_t *p, unsigned width, bool little)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < width; i++)
        number = number << 8 | p[little ? width - 1 - i : i];
    return number;
}

/* Reads the length of the layout from n bytes at p; returns as above. */
static unsigned read_length(
    const uint8_t *p, size_t n, const struct fb_frame_layout *layout, uint64_t *length, bool *bad)
{
    if (layout->varint)
        return read_varint(p, n, layout->width, length, bad);
    if (n < layout->width)
        return 0;
    *length = read_number(p, layout->width, layout->little != 0);
    return layout->width;
}

int frame_counted(struct fb_conn *conn, fb_bytes *rest, const struct fb_frame_layout *layout,
    const struct fb_frame_limit *limit, fb_bytes *head, fb_bytes *frame)
{
    size_t before = layout->before, around = before + layout->after;
    uint64_t n = 0;
    unsigned width = 0;
    bool bad = false;

    assert(layout->width >= 1 && layout->width <= (layout->varint ? VARINT_MOST : sizeof(n)));
    if (takes_no_frame(conn))
        return 0;
    if (rest->n > before)
        width = read_length(rest->p + before, rest->n - before, layout, &n, &bad);
    if (bad || (width > 0 && n < layout->counts))
        return fail_frame(conn, FB_BAD_FRAME);
    if (width == 0) {
        await_frame(conn, rest, sum(limit->most, around + layout->width), limit);
        return 0;
    }
    n -= layout->counts;
    if (n > limit->most)
        return fail_frame(conn, FB_INPUT_LIMIT);
    if (rest->n < around + width || rest->n - around - width < n) {
        await_frame(conn, rest, sum((size_t)n, around + width), limit);
        return 0;
    }
    if (head != NULL)
        *head = (fb_bytes) { rest->p, around + width };
    return take_frame(conn, rest, around + width, (size_t)n, 0, frame);
}
