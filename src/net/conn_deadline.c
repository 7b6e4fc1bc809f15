/* SPDX-License-Identifier: BSD-2-Clause */
/* The deadlines of connections, in a wheel of buckets: level 0 has a bucket for each millisecond,
 * each further level a bucket for 64 of the level below.
 *
 * Responsible for running `expired` once for each deadline reached. A deadline that is put off
 * moves nothing: the bucket is looked at in time, and the connection goes on to a later bucket.
 * Invariants: a linked connection is in a bucket that begins no later than the deadline; the timer
 * is set for the first used bucket, or sooner. A deadline without a link was left aside: a look at
 * all slots begins when at most half of the time has passed, and enters the deadline. */
#include "net/conn_deadline.h"

#define BITS 6
#define BUCKETS (1u << BITS) /* of a level */

/* Bounds of a turn of the wheel, and of a look: a moved connection or a slot is a step. */
#define STEPS_A_TURN 4096
#define EXPIRY_COUNTS 16

static_assert(BUCKETS == 64, "a level's used buckets are the bits of a number");

/* In `prev` of a bucket's first connection, beside the bucket; else it is a slot. */
#define IS_FIRST (1u << 31)

/* The whole number lies within CONN_DEADLINE_MOST of the present, on either side. */
uint64_t conn_deadline_at(const struct fb_conn *conn)
{
    uint64_t now = conn->net->loop.clock.mono_ms;

    return now + (uint64_t)(int64_t)(int32_t)(conn->deadline - (uint32_t)now);
}

/* Returns the begin of a future bucket, in ms. */
static uint64_t bucket_start(const struct conn_wheel *wheel, unsigned bucket)
{
    unsigned level = bucket / BUCKETS;
    uint64_t turn = wheel->now >> (level + 1) * BITS;

    return (turn << BITS | bucket % BUCKETS) << level * BITS;
}

/* Returns the first used bucket: half emptied, or the first of the lowest level; -1: none. */
static int first_bucket(const struct conn_wheel *wheel)
{
    for (unsigned level = 1; level < CONN_WHEEL_LEVELS; level++) {
        unsigned present = (unsigned)(wheel->now >> level * BITS) % BUCKETS;

        if (wheel->used[level] >> present & 1)
            return (int)(level * BUCKETS + present);
    }
    for (unsigned level = 0; level < CONN_WHEEL_LEVELS; level++)
        if (wheel->used[level] != 0)
            return (int)(level * BUCKETS) + __builtin_ctzll(wheel->used[level]);
    return -1;
}

static void unlink_conn(struct net *net, struct fb_conn *conn)
{
    struct conn_wheel *wheel = &net->wheel;
    uint32_t next = conn->timed.next, prev = conn->timed.prev;

    assert(prev != 0);
    if (next != 0)
        conn_at_slot(net, next)->timed.prev = prev;
    if (!(prev & IS_FIRST)) {
        conn_at_slot(net, prev)->timed.next = next;
        return;
    }
    prev &= ~IS_FIRST;
    wheel->first[prev] = next;
    if (next == 0)
        wheel->used[prev / BUCKETS] &= ~(1ull << prev % BUCKETS);
}

/* Puts a connection into a bucket of the lowest level with deadline and present in one turn. */
static void put_into_bucket(struct net *net, struct fb_conn *conn)
{
    struct conn_wheel *wheel = &net->wheel;
    uint64_t at = conn_deadline_at(conn), start;
    uint32_t next, number = conn_slot(conn);
    unsigned level, bucket;

    assert(at >= wheel->now);
    level = (63 - (unsigned)__builtin_clzll((at ^ wheel->now) | (BUCKETS - 1))) / BITS;
    bucket = level * BUCKETS + (unsigned)(at >> level * BITS) % BUCKETS;
    next = wheel->first[bucket];
    conn->timed = (struct conn_link) { .next = next, .prev = IS_FIRST | bucket };
    if (next != 0)
        conn_at_slot(net, next)->timed.prev = number;
    wheel->first[bucket] = number;
    wheel->used[level] |= 1ull << bucket % BUCKETS;
    start = bucket_start(wheel, bucket);
    if (start < wheel->next) {
        wheel->next = start;
        timers_arm_at(&net->loop.timers, &wheel->timer, start);
    }
}

/* Counts buckets from the expiry time, unless a used bucket begins before. */
static void turn_wheel(struct net *net)
{
    struct conn_wheel *wheel = &net->wheel;
    uint64_t now = *net->loop.timers.due_by;

    if (wheel->next > now && wheel->now < now)
        wheel->now = now;
}

void conn_deadline_enter(struct fb_conn *conn)
{
    struct net *net = conn->net;

    conn_trace(conn, "deadline set: in %" PRId32 " ms",
        (int32_t)(conn->deadline - (uint32_t)net->loop.clock.mono_ms));
    if (conn->timed.prev != 0)
        unlink_conn(net, conn);
    turn_wheel(net);
    put_into_bucket(net, conn);
}

void conn_deadline_leave(struct fb_conn *conn)
{
    conn_trace(conn, "deadline deleted: %" PRId32 " ms were left",
        (int32_t)(conn->deadline - (uint32_t)conn->net->loop.clock.mono_ms));
    unlink_conn(conn->net, conn);
    conn->timed = (struct conn_link) { 0, 0 };
    conn->limited = 0;
}

/* Empties a begun bucket into lower levels; of level 0 due connections expire, and postponed ones
 * go on. Returns the steps left: with none the bucket may not be empty. */
static int run_bucket(struct net *net, unsigned bucket, int steps)
{
    struct conn_wheel *wheel = &net->wheel;

    while (steps > 0 && wheel->first[bucket] != 0) {
        struct fb_conn *conn = conn_at_slot(net, wheel->first[bucket]);

        assert(conn->phase != CONN_FREE && conn->limited);
        if (bucket >= BUCKETS || conn_deadline_at(conn) > *net->loop.timers.due_by) {
            unlink_conn(net, conn);
            put_into_bucket(net, conn);
            steps--;
        } else {
            conn_deadline_leave(conn);
            wheel->expired(conn);
            steps -= EXPIRY_COUNTS;
        }
    }
    return steps;
}

static void wheel_expired(struct loop *loop, struct timer *timer)
{
    struct net *net = container_of(timer, struct net, wheel.timer);
    struct conn_wheel *wheel = &net->wheel;
    int bucket, steps = STEPS_A_TURN;

    assert(loop == &net->loop);
    wheel->next = 0; /* deadlines set meanwhile are later */
    while ((bucket = first_bucket(wheel)) != -1) {
        uint64_t start = bucket_start(wheel, (unsigned)bucket);

        if (start > *loop->timers.due_by || steps <= 0) {
            wheel->next = start;
            timers_arm_at(&loop->timers, timer, start);
            break;
        }
        assert(start >= wheel->now);
        wheel->now = start;
        steps = run_bucket(net, (unsigned)bucket, steps);
    }
    if (bucket == -1)
        wheel->next = UINT64_MAX;
    turn_wheel(net);
}

void conn_wheel_look_at(struct net *net, uint64_t at)
{
    struct conn_wheel *wheel = &net->wheel;

    assert(at < wheel->look.at);
    wheel->look.at = at;
    if (wheel->look.index == 0) /* no look is under way */
        timers_arm_at(&net->loop.timers, &wheel->look.timer, at);
}

/* Enters or expires deadlines left aside of some slots; later deadlines wait for the next look. */
static void look_expired(struct loop *loop, struct timer *timer)
{
    struct net *net = container_of(timer, struct net, wheel.look.timer);
    struct conn_wheel *wheel = &net->wheel;
    int steps = STEPS_A_TURN;

    assert(loop == &net->loop && wheel->look.index <= loop->sources.used_n);
    if (wheel->look.index == 0)
        wheel->look.at = UINT64_MAX;
    for (; steps > 0 && wheel->look.index < loop->sources.used_n; steps--) {
        struct fb_conn *conn = conn_at_index(net, wheel->look.index++);

        if (conn == NULL || !conn->limited || conn->timed.prev != 0)
            continue;
        if (conn_deadline_at(conn) > *loop->timers.due_by) {
            conn_deadline_enter(conn);
            continue;
        }
        conn->limited = 0;
        wheel->expired(conn);
        steps -= EXPIRY_COUNTS - 1;
    }
    if (wheel->look.index < loop->sources.used_n) {
        timers_arm(&loop->timers, timer, 1); /* others have their turn */
        return;
    }
    wheel->look.index = 0;
    if (wheel->look.at != UINT64_MAX)
        timers_arm_at(&loop->timers, timer, wheel->look.at);
}

void conn_wheel_init(struct conn_wheel *wheel, void (*expired)(struct fb_conn *conn))
{
    assert(expired != NULL);
    *wheel = (struct conn_wheel) {
        .next = UINT64_MAX,
        .expired = expired,
        .timer.expired = wheel_expired,
        .look = { .at = UINT64_MAX, .timer.expired = look_expired },
    };
}

void conn_wheel_done(struct net *net)
{
    assert(first_bucket(&net->wheel) == -1);
    timers_disarm(&net->loop.timers, &net->wheel.timer);
    timers_disarm(&net->loop.timers, &net->wheel.look.timer);
}

void conn_wheel_check(const struct net *net, uint32_t timed_n)
{
    const struct conn_wheel *wheel = &net->wheel;
    uint32_t n = 0;

    for (unsigned bucket = 0; bucket < countof(wheel->first); bucket++) {
        uint32_t number = wheel->first[bucket], prev = IS_FIRST | bucket;

        assert((number != 0) == (wheel->used[bucket / BUCKETS] >> bucket % BUCKETS & 1));
        for (; number != 0; n++) {
            const struct fb_conn *conn = conn_at_slot(net, number);

            assert(conn->timed.prev == prev && conn->net == net);
            assert(conn_deadline_at(conn) >= bucket_start(wheel, bucket));
            prev = number;
            number = conn->timed.next;
        }
    }
    assert(n == timed_n);
    assert(timed_n == 0 || wheel->next != UINT64_MAX);
    assert(timer_is_set(&wheel->timer) == (wheel->next != UINT64_MAX) || wheel->next == 0);
    assert(timer_is_set(&wheel->look.timer) == (wheel->look.at != UINT64_MAX) ||
           wheel->look.index != 0);
}
