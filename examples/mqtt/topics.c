/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters and topics, and the messages to subscribers. */
#include "mqtt.h"

#include <string.h>

int mqtt_is_filter(fb_bytes filter, int wildcards)
{
    for (size_t i = 0; i < filter.n; i++) {
        const uint8_t *p = filter.p + i;
        int ends = i + 1 == filter.n || (*p == '+' && p[1] == '/');

        if (*p == '\0' ||
            ((*p == '+' || *p == '#') && !(wildcards && ends && (i == 0 || p[-1] == '/'))))
            return 0;
    }
    return filter.n > 0;
}

static int matches(fb_bytes filter, fb_bytes topic)
{
    const uint8_t *f = filter.p, *f_end = f + filter.n, *t = topic.p, *t_end = t + topic.n;

    if (*t == '$' && *f != '$')
        return 0;
    for (; f < f_end && *f != '#'; f++) {
        if (*f == '+')
            while (t < t_end && *t != '/')
                t++;
        else if (t == t_end) /* "a/#" is about "a", too */
            return f_end - f == 2 && f[1] == '#';
        else if (*f != *t++)
            return 0;
    }
    return f < f_end || t == t_end;
}

uint8_t mqtt_set_filter(struct mqtt_session *session, fb_bytes filter, int qos)
{
    fb_bytes rest = { session->filters, session->filters_n };
    size_t n = 3 + filter.n;

    while (rest.n > 0) {
        size_t at = session->filters_n - rest.n;
        fb_bytes found = mqtt_text(&rest);

        mqtt_take(&rest, 1);
        if (found.n != filter.n || memcmp(found.p, filter.p, filter.n) != 0)
            continue;
        memmove(session->filters + at, rest.p, rest.n);
        session->filters_n -= n;
        session->old_n -= at < session->old_n ? n : 0;
        break;
    }
    if (qos == -1 || session->filters_n + n > MQTT_TEXT_MAX)
        return 0x80;
    memcpy(session->filters + session->filters_n, filter.p - 2, n - 1);
    session->filters_n += n;
    session->filters[session->filters_n - 1] = (uint8_t)qos;
    session->cursor = (fb_map_cursor) { { 0 } };
    fb_timer(session->conn, 0, 1);
    return (uint8_t)qos;
}

/* Sends a session a message if a filter behind the first `old_n` bytes matches. */
static void offer(struct mqtt_session *session, size_t old_n, fb_bytes message, uint8_t retain)
{
    fb_bytes filters = { session->filters + old_n, session->filters_n - old_n };
    uint16_t next = session->number % UINT16_MAX + 1;
    uint8_t type = *mqtt_take(&message, 1).p, number[] = { (uint8_t)(next >> 8), (uint8_t)next };
    fb_bytes topic = mqtt_text(&message);
    int qos = -1;

    while (filters.n > 0) {
        int found = matches(mqtt_text(&filters), topic), own = *mqtt_take(&filters, 1).p;

        qos = found && own > qos ? own : qos;
    }
    if (qos == -1 || session->unacked == UINT16_MAX)
        return;
    qos &= type >> 1;
    session->unacked += (unsigned)qos;
    session->number = next;
    mqtt_write(session->conn, (uint8_t)(0x30 | qos << 1 | retain),
        (fb_bytes[]) { { topic.p - 2, topic.n + 2 }, { number, qos > 0 ? 2 : 0 }, message }, 3);
    fb_metric_add(session->conn, MQTT_SENT, 1);
    if (session->unacked == UINT16_MAX) /* no number is free */
        fb_abort(session->conn);
}

void mqtt_deliver(const struct mqtt_worker *worker, fb_bytes message)
{
    for (struct mqtt_session *at = worker->sessions; at != NULL; at = at->next)
        if (*message.p != 0x10)
            offer(at, 0, message, 0);
        else if (at->name.n + 3 == message.n && !memcmp(at->name.p, message.p + 3, at->name.n))
            fb_abort(at->conn);
}

void mqtt_retained(fb_conn *conn, void *state, uint32_t id)
{
    fb_map *retained = ((const struct mqtt_conf *)fb_conf_of(conn))->retained;
    struct mqtt_worker *worker = fb_worker_state(conn);
    struct mqtt_session *session = state;
    fb_item key = { worker->topic, sizeof(worker->topic), 0, 0, 0 };
    fb_item item = { worker->message, sizeof(worker->message), 0, 0, 0 };
    fb_map_status status = FB_MAP_OK;
    int n = 1000;

    while (status != FB_MAP_ABSENT && n-- && session->unacked < 500 && fb_unsent(conn) < 65536) {
        status = fb_map_next(fb_worker_of(conn), retained, &session->cursor, &key, &item);
        if (status == FB_MAP_OK)
            offer(session, session->old_n, (fb_bytes) { worker->message, item.n }, 1);
    }
    if (status == FB_MAP_ABSENT)
        session->old_n = session->filters_n;
    else
        fb_timer(conn, id, 1);
}
