/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames behind heads of many layouts, chosen by the first byte of a connection: frames have the
 * length in the head, for bytes in any pieces. */
#include <forkbeard/test.h>

#include <assert.h>

#define MOST 300

static const fb_frame_layout layouts[] = {
    { .size = sizeof(fb_frame_layout), .before = 1, .width = 4, .counts = 4 },
    { .size = sizeof(fb_frame_layout), .width = 3, .little = 1, .after = 1 },
    { .size = sizeof(fb_frame_layout), .before = 3, .width = 2 },
    { .size = sizeof(fb_frame_layout), .before = 1, .width = 4, .varint = 1 },
    { .size = sizeof(fb_frame_layout), .width = 10, .varint = 1 },
    { .size = sizeof(fb_frame_layout), .width = 10, .varint = 1, .after = 2, .counts = 12 },
    { .size = sizeof(fb_frame_layout), .width = 8, .little = 1, .counts = 8 },
    { .size = sizeof(fb_frame_layout), .before = 2, .width = 1, .after = 3, .counts = 6 },
};

struct frames_conn {
    const fb_frame_layout *layout; /* NULL: no byte has come */
};

/* Reads the number of a head, from the last byte on. */
static uint64_t number_of(const fb_frame_layout *layout, fb_bytes head)
{
    const uint8_t *first = head.p + layout->before, *end = head.p + head.n - layout->after;
    uint64_t number = 0;

    if (layout->varint) {
        while (end > first)
            number = number << 7 | (*--end & 0x7f);
        return number;
    }
    assert((size_t)(end - first) == layout->width);
    for (uint32_t i = 0; i < layout->width; i++)
        number |= (uint64_t)first[i] << 8 * (layout->little ? i : layout->width - 1 - i);
    return number;
}

static size_t frames_data(fb_conn *conn, void *state, fb_bytes in)
{
    static const fb_frame_limit limit = { .most = MOST, .timeout = 30000 };
    struct frames_conn *own = state;
    fb_bytes rest = in, head, frame;

    if (own->layout == NULL) {
        own->layout = &layouts[rest.p[0] % (sizeof(layouts) / sizeof(layouts[0]))];
        rest.p++;
        rest.n--;
    }
    while (fb_frame_counted(conn, &rest, own->layout, &limit, &head, &frame)) {
        assert(frame.n <= MOST && frame.p == head.p + head.n && rest.p == frame.p + frame.n);
        assert(number_of(own->layout, head) == frame.n + own->layout->counts);
        fb_write(conn, frame.p, frame.n);
    }
    return in.n - rest.n;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .data = frames_data };

static const fb_directive directives[] = {
    { .name = "frames", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(frames) = {
    FB_PROTOCOL_HEADER,
    .name = "frames",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct frames_conn),
    .ops = &ops,
};

FB_TEST_FUZZ(fb_protocol_frames, "frames;")

FB_TEST_FUZZ_MAIN
