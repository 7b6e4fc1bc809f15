/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of clients. A packet that breaks the rules of the standard ends the connection. */
#include "mqtt.h"

#include <string.h>

fb_bytes mqtt_take(fb_bytes *in, size_t n)
{
    fb_bytes taken = { in->p, n };

    if (n > in->n || in->p == NULL)
        return *in = (fb_bytes) { NULL, 0 };
    *in = (fb_bytes) { in->p + n, in->n - n };
    return taken;
}

fb_bytes mqtt_text(fb_bytes *in)
{
    fb_bytes n = mqtt_take(in, 2);

    return mqtt_take(in, n.n > 0 ? n.p[0] * 256u + n.p[1] : 0);
}

void mqtt_write(fb_conn *conn, uint8_t type, const fb_bytes *pieces, size_t n)
{
    uint8_t head[3] = { type };
    size_t length = 0;

    for (size_t i = 0; i < n; i++)
        length += pieces[i].n;
    head[1] = (uint8_t)(length % 128 | (length > 127 ? 128 : 0));
    head[2] = (uint8_t)(length / 128); /* 16383 bytes at most */
    fb_write(conn, head, length > 127 ? 3 : 2);
    fb_writev(conn, pieces, n);
}

static int take_connect(fb_conn *conn, struct mqtt_session *session, fb_bytes packet)
{
    enum { CLEAN = 2, WILL = 4, WILL_QOS = 0x18, WILL_RETAIN = 0x20 };
    struct mqtt_worker *worker = fb_worker_state(conn);
    uint8_t *copy = fb_alloc(conn, packet.n + 1), flags, code = 0;
    fb_bytes in = { copy, packet.n }, fixed = mqtt_take(&in, 10);

    if (copy == NULL || fixed.n == 0 || memcmp(packet.p, "\0\4MQTT", 6) != 0)
        return -1;
    memcpy(copy, packet.p, packet.n);
    flags = fixed.p[7];
    session->name = mqtt_text(&in);
    if (flags & WILL) {
        session->will_type = (flags & WILL_QOS ? 0x32 : 0x30) | (flags & WILL_RETAIN ? 1 : 0);
        session->will_topic = mqtt_text(&in);
        session->will = mqtt_text(&in);
    }
    if (in.p == NULL || flags & 1 || (flags & WILL && !mqtt_is_filter(session->will_topic, 0)))
        return -1;
    code = fixed.p[6] != 4 ? 1 : session->name.n == 0 && !(flags & CLEAN) ? 2 : 0;
    mqtt_write(conn, 0x20, &(fb_bytes) { (uint8_t[]) { 0, code }, 2 }, 1);
    if (code > 0) /* 1: wrong version, 2: no name */
        return -1;
    if (session->name.n > 0) /* ends the client already using the name, on any worker */
        mqtt_publish(conn, 0x10, session->name, (fb_bytes) { copy, 0 });
    session->conn = conn;
    session->next = worker->sessions;
    worker->sessions = session;
    fb_metric_add(conn, MQTT_CLIENTS, 1);
    fb_set_timeout(conn, 0);
    fb_set_receive_timeout(conn, 1500 * (fixed.p[8] * UINT64_C(256) + fixed.p[9]));
    return 0;
}

static int take_publish(fb_conn *conn, uint8_t type, fb_bytes in)
{
    fb_bytes topic = mqtt_text(&in), number = mqtt_take(&in, type & 6 ? 2 : 0);

    if (in.p == NULL || type & 4 || !mqtt_is_filter(topic, 0))
        return -1;
    fb_count_request(conn);
    fb_metric_add(conn, MQTT_RECEIVED, 1);
    if (type & 2)
        mqtt_write(conn, 0x40, &number, 1);
    mqtt_publish(conn, type, topic, in); /* may end the connection, a subscriber's */
    return 0;
}

/* Takes a SUBSCRIBE; or an UNSUBSCRIBE, whose filters have no QoS. */
static int take_filters(fb_conn *conn, struct mqtt_session *session, fb_bytes in, int adds)
{
    uint8_t codes[MQTT_PACKET_MAX / 3]; /* a filter has a length, and a byte at least */
    fb_bytes number = mqtt_take(&in, 2);
    size_t n = 0;

    while (in.n > 0) {
        fb_bytes filter = mqtt_text(&in), qos = mqtt_take(&in, adds ? 1 : 0);

        if (in.p == NULL || !mqtt_is_filter(filter, 1))
            return -1;
        codes[n++] = mqtt_set_filter(session, filter, adds ? *qos.p > 0 : -1);
    }
    mqtt_write(conn, adds ? 0x90 : 0xb0, (fb_bytes[]) { number, { codes, adds ? n : 0 } }, 2);
    return n > 0 ? 0 : -1;
}

int mqtt_packet(fb_conn *conn, struct mqtt_session *session, uint8_t type, fb_bytes in)
{
    if (session->conn == NULL) /* CONNECT comes first, and once */
        return type == 0x10 ? take_connect(conn, session, in) : -1;
    if (type >> 4 == 3)
        return take_publish(conn, type, in);
    if (type == 0x82 || type == 0xa2)
        return take_filters(conn, session, in, type == 0x82);
    if (type == 0x40) /* PUBACK */
        session->unacked -= session->unacked > 0;
    else if (type == 0xc0) /* PINGREQ */
        mqtt_write(conn, 0xd0, NULL, 0);
    else if (type == 0xe0) /* DISCONNECT */
        session->will_topic.n = 0;
    return type == 0x40 || type == 0xc0 ? 0 : -1;
}
