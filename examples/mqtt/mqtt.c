/* SPDX-License-Identifier: BSD-2-Clause */
/* The way between workers, and the descriptor. Messages wait in the outbox; as many as fit are sent
 * to all workers at once, and the next ones when all have answered: so they stay in order. */
#include "mqtt.h"

#include <string.h>

static void send_part(fb_worker *handle, struct mqtt_worker *worker)
{
    fb_bytes rest = { worker->outbox, worker->outbox_n };
    size_t n;

    if (worker->sent > 0 || worker->outbox_n == 0)
        return;
    do {
        n = worker->outbox_n - rest.n;
        mqtt_text(&rest);
    } while (n < worker->outbox_n && worker->outbox_n - rest.n <= FB_MESSAGE_MAX);
    worker->sent = fb_send_all(handle, worker->outbox, n) != 0 ? n : 0;
    worker->waits = 1;
    if (worker->sent == 0)
        fb_worker_timer(handle, 0, 5);
}

static void workers_answered(fb_worker *handle, void *state, const fb_answer *answer)
{
    struct mqtt_worker *worker = state;

    if (answer->outcome == FB_MESSAGE_BUSY) {
        worker->busy[worker->busy_n++] = answer->to;
        fb_worker_timer(handle, 0, 5);
    }
    worker->waits -= answer->left == 0;
    if (worker->waits > 0 || worker->busy_n > 0)
        return;
    worker->outbox_n -= worker->sent;
    memmove(worker->outbox, worker->outbox + worker->sent, worker->outbox_n);
    worker->sent = 0;
    for (struct mqtt_session *at = worker->sessions; at != NULL; at = at->next)
        if (worker->outbox_n < MQTT_OUTBOX / 2)
            fb_resume(at->conn);
    send_part(handle, worker);
}

/* Sends the part again to workers too busy for it. */
static void workers_timer(fb_worker *handle, void *state, uint32_t id)
{
    struct mqtt_worker *worker = state;

    for (; worker->busy_n > 0; worker->busy_n--, worker->waits++)
        if (fb_send_worker(
                handle, worker->busy[worker->busy_n - 1], worker->outbox, worker->sent) == 0)
            break;
    if (worker->busy_n > 0)
        fb_worker_timer(handle, id, 5);
    send_part(handle, worker);
}

static int workers_message(fb_worker *handle, void *state, fb_ref from, fb_bytes bytes)
{
    (void)handle, (void)from;
    while (bytes.n > 0)
        mqtt_deliver(state, mqtt_text(&bytes));
    return 0;
}

void mqtt_publish(fb_conn *conn, uint8_t type, fb_bytes topic, fb_bytes payload)
{
    fb_map *retained = ((const struct mqtt_conf *)fb_conf_of(conn))->retained;
    struct mqtt_worker *worker = fb_worker_state(conn);
    uint8_t *p = worker->outbox + worker->outbox_n;
    fb_bytes message = { p + 2, 3 + topic.n + payload.n };

    if (worker->outbox_n + 2 + message.n > MQTT_OUTBOX) {
        fb_conn_logf(conn, FB_LOG_ALERT, "mqtt: a will is lost, there is no room for more");
        return;
    }
    memcpy(p, (uint8_t[]) { (uint8_t)(message.n >> 8), (uint8_t)message.n, type }, 3);
    memcpy(p + 3, topic.p - 2, 2 + topic.n);
    memcpy(p + 5 + topic.n, payload.p, payload.n);
    worker->outbox_n += 2 + message.n;
    if (type & 1 && payload.n == 0)
        fb_map_delete(fb_worker_of(conn), retained, topic);
    else if (type & 1 && fb_map_set(fb_worker_of(conn), retained, topic, message, 0) != FB_MAP_OK)
        fb_conn_logf(conn, FB_LOG_WARN, "mqtt: there is no room to retain a message");
    mqtt_deliver(worker, message);
    send_part(fb_worker_of(conn), worker);
    if (worker->outbox_n > MQTT_OUTBOX / 2)
        fb_stop(conn);
}

static size_t mqtt_data(fb_conn *conn, void *state, fb_bytes in)
{
    static const fb_frame_layout layout = { sizeof(layout), .before = 1, .width = 4, .varint = 1 };
    const fb_frame_limit limit = { MQTT_PACKET_MAX, 10000 };
    const struct mqtt_worker *worker = fb_worker_state(conn);
    fb_bytes rest = in, head, packet;

    if (((struct mqtt_session *)state)->conn != NULL && worker->outbox_n > MQTT_OUTBOX / 2)
        fb_stop(conn); /* other packets have filled it: no packet is found now */
    while (fb_frame_counted(conn, &rest, &layout, &limit, &head, &packet))
        if (mqtt_packet(conn, state, *head.p, packet) == -1)
            fb_close(conn);
    return in.n - rest.n;
}

static void mqtt_unwritable(fb_conn *conn, void *state)
{
    (void)state;
    fb_abort(conn); /* the client does not read its messages */
}

static void mqtt_closed(fb_conn *conn, void *state, fb_reason reason)
{
    struct mqtt_session *session = state;
    struct mqtt_session **at = &((struct mqtt_worker *)fb_worker_state(conn))->sessions;

    (void)reason;
    if (session->conn == NULL)
        return;
    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    fb_metric_add(conn, MQTT_CLIENTS, -1);
    if (session->will_topic.n > 0)
        mqtt_publish(conn, session->will_type, session->will_topic, session->will);
}

static int mqtt_conf_done(fb_conf *conf, void *own, const void *parent)
{
    struct mqtt_conf *mqtt = own;
    const fb_map_options options = { sizeof(options), "retained", 1, (uint32_t)mqtt->retained_n,
        MQTT_TEXT_MAX, 2 * MQTT_TEXT_MAX, 0 };

    (void)parent;
    return (mqtt->retained = fb_conf_map(conf, &options)) != NULL ? 0 : -1;
}

static const fb_worker_ops worker_ops = { .size = sizeof(fb_worker_ops),
    .timer = workers_timer,
    .message = workers_message,
    .answered = workers_answered };

static const fb_ops ops = { .size = sizeof(fb_ops),
    .data = mqtt_data,
    .timer = mqtt_retained,
    .closed = mqtt_closed,
    .unwritable = mqtt_unwritable };

static const fb_directive directives[] = {
    { .name = "mqtt", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { "mqtt_retained", FB_VALUE_NUMBER, 0, offsetof(struct mqtt_conf, retained_n), 0, 1, 10000000,
        "100000", NULL, NULL, 0, 0 },
};

static const fb_metric metrics[] = { { "clients", FB_GAUGE, 0 }, { "received", FB_COUNTER, 0 },
    { "sent", FB_COUNTER, 0 } };

FB_PROTOCOL(mqtt) = { FB_PROTOCOL_HEADER, .name = "mqtt", FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_METRICS(metrics), .conn_state = sizeof(struct mqtt_session),
    .conf_state = sizeof(struct mqtt_conf), .worker_state = sizeof(struct mqtt_worker),
    .output_limit = 4 * 1024 * 1024, .ops = &ops, .worker_ops = &worker_ops,
    .conf_done = mqtt_conf_done };
