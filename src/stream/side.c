/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/side.h"

struct fb_alarm {
    LIST_ENTRY(fb_alarm) link;
    struct fb_timer timer;
    struct fb_side *side;
    uint64_t due; /* monotonic ms; the timer may be set for earlier */
    uint32_t id;
};

static int compare(const struct fb_side *a, const struct fb_side *b)
{
    return (a->name > b->name) - (a->name < b->name);
}

RB_GENERATE_INTERNAL(fb_named, fb_side, named, compare, static __attribute__((unused)))

struct fb_side *fb_side_create(struct fb_net *net)
{
    struct fb_side *side = fb_memory_alloc(net->memory, sizeof(*side));

    if (side == NULL)
        return NULL;
    *side = (struct fb_side) { .conn = NULL };
    TAILQ_INIT(&side->children);
    LIST_INIT(&side->alarms);
    return side;
}

struct fb_side *fb_side_make(struct fb_conn *conn)
{
    struct fb_side *side = fb_side_of(conn);

    if (side != NULL)
        return side;
    side = fb_side_create(conn->net);
    if (side == NULL) {
        fb_conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    side->conn = conn;
    conn->side = side;
    return side;
}

static void drop_alarm(struct fb_alarm *alarm)
{
    struct fb_net *net = alarm->side->conn->net;

    fb_timer_del(&net->loop, &alarm->timer);
    LIST_REMOVE(alarm, link);
    fb_memory_release(net->memory, alarm);
}

void fb_side_clear(struct fb_side *side)
{
    struct fb_conn *conn = side->conn;
    struct fb_net *net = conn->net;

    while (!LIST_EMPTY(&side->alarms))
        drop_alarm(LIST_FIRST(&side->alarms));
    fb_timer_del(&net->loop, &side->frame_timer);
    side->frame_most = 0;
    fb_net_release(net, &side->lasting);
    fb_net_release(net, &side->temporary);
    if (side->name != 0)
        RB_REMOVE(fb_named, &fb_stream_of(conn)->named, side);
    side->name = 0;
    side->unanswered = 0;
    side->own_timeout = false;
    if (side->parent != NULL)
        TAILQ_REMOVE(&side->parent->children, side, sibling);
    side->parent = NULL;
}

void fb_side_free(struct fb_conn *conn)
{
    struct fb_side *side = fb_side_of(conn);

    if (side == NULL)
        return;
    fb_side_clear(side);
    fb_memory_release(conn->net->memory, side);
    conn->side = NULL;
}

static void ring(struct fb_conn *conn, uint32_t id)
{
    if (conn->closing || conn->failed != 0 || conn->pipe != NULL || !FB_HAS(fb_ops_of(conn), timer))
        return;
    fb_callback_begin(conn, FB_CALLBACK_TIMER);
    fb_ops_of(conn)->timer(conn, conn->state, id);
    fb_callback_end(conn);
}

static void alarm_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    struct fb_alarm *alarm = fb_container(timer, struct fb_alarm, timer);
    struct fb_conn *conn = alarm->side->conn;
    struct fb_net *net = conn->net;
    uint32_t id = alarm->id;

    if (alarm->due > loop->clock.mono_ms) { /* it was moved back */
        fb_timer_set(loop, timer, alarm->due - loop->clock.mono_ms);
        return;
    }
    drop_alarm(alarm);
    ring(conn, id);
    fb_net_settle(net);
}

static struct fb_alarm *find_alarm(const struct fb_conn *conn, uint32_t id)
{
    struct fb_alarm *alarm = NULL;

    if (conn->side != NULL)
        LIST_FOREACH (alarm, &fb_side_of(conn)->alarms, link)
            if (alarm->id == id)
                break;
    return alarm;
}

void fb_session_alarm(struct fb_conn *conn, uint32_t id, uint64_t ms)
{
    struct fb_loop *loop = &conn->net->loop;
    struct fb_alarm *alarm = find_alarm(conn, id);
    struct fb_side *side;

    if (alarm == NULL) {
        side = fb_side_make(conn);
        if (side == NULL)
            return;
        alarm = fb_memory_alloc(conn->net->memory, sizeof(*alarm));
        if (alarm == NULL) {
            fb_conn_fail(conn, FB_NO_MEMORY);
            return;
        }
        *alarm = (struct fb_alarm) { .side = side, .id = id };
        alarm->timer.expired = alarm_expired;
        LIST_INSERT_HEAD(&side->alarms, alarm, link);
    }
    alarm->due = loop->clock.mono_ms + (ms > 0 ? ms : 1);
    /* moving it back costs nothing until it expires */
    if (fb_timer_is_set(&alarm->timer) && alarm->timer.deadline <= alarm->due)
        return;
    fb_timer_del(loop, &alarm->timer);
    fb_timer_set(loop, &alarm->timer, ms);
}

void fb_session_alarm_cancel(struct fb_conn *conn, uint32_t id)
{
    struct fb_alarm *alarm = find_alarm(conn, id);

    if (alarm != NULL)
        drop_alarm(alarm);
}

uint64_t fb_session_name(struct fb_conn *conn)
{
    struct fb_stream *stream = fb_stream_of(conn);
    struct fb_side *side = fb_side_make(conn);

    if (side == NULL)
        return 0;
    if (side->name == 0) {
        side->name = ++stream->last_name;
        RB_INSERT(fb_named, &stream->named, side);
    }
    return side->name;
}

struct fb_conn *fb_session_find(struct fb_stream *stream, uint64_t name)
{
    struct fb_side key = { .name = name };
    struct fb_side *side = RB_FIND(fb_named, &stream->named, &key);

    return side != NULL ? side->conn : NULL;
}
