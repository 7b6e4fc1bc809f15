/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest lifetime of a client's session, and the lowest rate of messages: no traffic extends
 * them.
 *
 * Responsible for telling the protocol of the end, as a draining worker does, and for ending the
 * session after the grace. Looks at the clock when a timer expires, and at no event. Invariant: a
 * lifetime is its session's, and the timer runs until the session closes. */
#include "features/lifetime/lifetime.h"

#include "base/check.h"
#include "base/number.h"
#include "features/features.h"
#include "session/conn.h"
#include "session/end.h"
#include "session/record.h"
#include "session/timeouts.h"
#include "session/use.h"
#include "settings/parameter.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <string.h>

#define SESSION_LIFETIME_KIND KIND('S', 'L', 'I', 'F')
/* Interval of the checks whether a session past its lifetime is idle. */
#define TICK_MS 500

struct lifetime_part {
    struct session_part part; /* the first member */
    unsigned kind;
    struct session_conn *session;
    uint64_t grace;   /* ms */
    uint64_t ends_at; /* monotonic ms; 0: the time is not over */
    struct timer timer;
};

/* Closes an idle session, and fails a session after its grace; returns whether it has failed. */
static bool end_lifetime(struct lifetime_part *lifetime, struct fb_conn *conn, uint64_t now)
{
    bool over = now >= lifetime->ends_at;

    if (!over && (!conn_is_active(conn) || !conn->idle || conn->pipe != NULL))
        return false;
    session_end_note(conn, SESSION_END_LIFETIME);
    if (over)
        conn_fail(conn, FB_DRAINED);
    else
        session_close(conn);
    return over;
}

/* Calls `draining` once among all callbacks of the session; a draining worker has done so. */
static void tell_lifetime(struct lifetime_part *lifetime, struct fb_conn *conn, uint64_t now)
{
    assert(now < lifetime->ends_at);
    if (conn->pipe != NULL || conn->phase != CONN_OPEN || stream_of(conn)->draining ||
        conn->session_phase == SESSION_TLS || conn->session_phase == SESSION_PREREAD ||
        lifetime->session->told)
        return;
    lifetime->session->told = true;
    session_call_draining_in(conn, lifetime->ends_at - now);
}

static void lifetime_expired(struct loop *loop, struct timer *timer)
{
    struct lifetime_part *lifetime = container_of(timer, struct lifetime_part, timer);
    struct fb_conn *conn = lifetime->session->conn;
    uint64_t now = loop->clock.mono_ms, left;

    CHECK_KIND(lifetime, SESSION_LIFETIME_KIND);
    assert(!conn->outgoing);
    if (conn_has_failed(conn))
        return;
    if (lifetime->ends_at == 0)
        lifetime->ends_at = now + lifetime->grace;
    if (!end_lifetime(lifetime, conn, now)) {
        left = lifetime->ends_at - now;
        timer_set(loop, timer, left < TICK_MS ? left : TICK_MS);
        tell_lifetime(lifetime, conn, now);
    }
    net_flush(conn->net);
}

static void lifetime_part_ended(struct fb_conn *conn, struct session_part *part)
{
    struct lifetime_part *lifetime = container_of(part, struct lifetime_part, part);

    CHECK_KIND(lifetime, SESSION_LIFETIME_KIND);
    assert(lifetime->session->conn == conn);
    timer_del(&conn->net->loop, &lifetime->timer);
    lifetime->kind = 0;
    memory_release(conn->net->memory, lifetime);
}

static const struct session_part_kind lifetime_part_kind = { .ended = lifetime_part_ended };

unsigned lifetime_begin(struct fb_conn *conn, const void *arg)
{
    const struct lifetime_setting *setting = arg;
    struct session_record *record = session_record_make(conn);
    struct lifetime_part *lifetime;
    uint64_t now = conn->net->loop.clock.mono_ms, ends, age = now - conn->opened_ms;

    if (record == NULL)
        return 0;
    lifetime = memory_alloc(conn->net->memory, sizeof(*lifetime));
    if (lifetime == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return 0;
    }
    assert(setting->jitter <= setting->time);
    *lifetime = (struct lifetime_part) {
        .kind = SESSION_LIFETIME_KIND,
        .session = conn->session,
        .grace = (uint64_t)setting->grace,
        .timer.expired = lifetime_expired,
    };
    session_part_add(record, &lifetime->part, &lifetime_part_kind);
    ends = (uint64_t)setting->time - session_spread(conn, (uint64_t)setting->jitter);
    timer_set(&conn->net->loop, &lifetime->timer, ends > age ? ends - age : 1);
    return 0;
}

#define LIFETIME_GRACE_MS 30000
#define RATE_GRACE_MS 10000
#define TIME_EXPECTED "a time such as 500ms, 30s or 1h 30m"

static const struct parameter lifetime_parameters[] = {
    { "grace=", PARAMETER_MSEC, offsetof(struct lifetime_setting, grace), 0, INT64_MAX,
        TIME_EXPECTED },
    { "jitter=", PARAMETER_MSEC, offsetof(struct lifetime_setting, jitter), 0, INT64_MAX,
        TIME_EXPECTED },
    { .name = NULL },
};

static const struct parameter rate_parameters[] = {
    { "grace=", PARAMETER_MSEC, offsetof(struct rate_setting, grace), 0, INT64_MAX, TIME_EXPECTED },
    { .name = NULL },
};

static bool is_off(const struct conf_directive *directive)
{
    return directive->arg_n == 1 && strcmp(directive->args[0].text, "off") == 0;
}

static int lifetime_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct lifetime_setting *lifetime = field;

    *lifetime = (struct lifetime_setting) { .time = 0 };
    if (is_off(directive))
        return 0;
    if (number_parse_msec(directive->args[0].text, 0, INT64_MAX, &lifetime->time) != NUMBER_OK)
        return set_bad_value(apply, directive, 0, "expected " TIME_EXPECTED);
    lifetime->jitter = lifetime->time / 10;
    lifetime->grace = LIFETIME_GRACE_MS;
    for (unsigned i = 1; i < directive->arg_n; i++) {
        if (parameter_set(apply, directive, i, lifetime_parameters, "jitter=time or grace=time",
                lifetime) == -1)
            return -1;
        if (lifetime->jitter > lifetime->time)
            return set_bad_value(apply, directive, i, "the jitter is longer than the lifetime");
    }
    return 0;
}

static int lifetime_set_rate(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct rate_setting *rate = field;

    *rate = (struct rate_setting) { .grace = RATE_GRACE_MS };
    if (is_off(directive))
        return 0;
    if (number_parse_size(directive->args[0].text, 0, INT64_MAX, &rate->bytes) != NUMBER_OK)
        return set_bad_value(apply, directive, 0, "expected a size such as 512, 16k or 1m");
    return directive->arg_n == 1
               ? 0
               : parameter_set(apply, directive, 1, rate_parameters, "grace=time", rate);
}

static void lifetime_finish(struct apply *apply, struct scope *server)
{
    const struct lifetime_values *values = feature_values(server, FEATURE_LIFETIME);

    if (values->lifetime.time > 0)
        feature_add_handler(apply, server->server, PHASE_TIMES, lifetime_begin, &values->lifetime);
    if (values->receive_min_rate.bytes > 0)
        feature_add_handler(apply, server->server, PHASE_TIMES, session_receive_begin_rate,
            &values->receive_min_rate);
}

static const struct setting rows[] = {
    { "receive_min_rate", CONTEXT_SERVERS, 1, 2, .set = lifetime_set_rate,
        SETTING_FIELD(struct lifetime_values, receive_min_rate), .initial = "off" },
    { "session_lifetime", CONTEXT_SERVERS, 1, 3, .set = lifetime_set,
        SETTING_FIELD(struct lifetime_values, lifetime), .initial = "off" },
    { .name = NULL },
};

const struct feature lifetime_feature = {
    .name = "lifetime",
    .rows = rows,
    .server_size = sizeof(struct lifetime_values),
    .finish_server = lifetime_finish,
};
