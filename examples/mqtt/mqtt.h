/* SPDX-License-Identifier: BSD-2-Clause */
/* mqtt: a broker of MQTT 3.1.1, with clients in any worker. Messages between workers are a PUBLISH
 * without length and number: flags, the topic behind its length, the payload. */
#pragma once

#include <forkbeard/forkbeard.h>

#define MQTT_PACKET_MAX 16000 /* bytes of a packet: less than of a message between workers */
#define MQTT_TEXT_MAX 1024    /* bytes of a client's name and filters, of a topic */
#define MQTT_OUTBOX (1 << 18) /* for the other workers: publishers wait while half is used */
enum mqtt_metric { MQTT_CLIENTS, MQTT_RECEIVED, MQTT_SENT };
struct mqtt_conf {
    int64_t retained_n;
    fb_map *retained; /* messages, by their topics */
};

struct mqtt_session {
    struct mqtt_session *next; /* in the worker's list, from CONNECT on */
    fb_conn *conn;             /* NULL before CONNECT */
    fb_bytes name, will_topic, will;
    uint16_t number;      /* the latest message's */
    uint32_t unacked;     /* messages of QoS 1 */
    fb_map_cursor cursor; /* retained messages sent for filters behind old_n */
    size_t old_n, filters_n;
    uint8_t will_type, filters[MQTT_TEXT_MAX]; /* length, filter, QoS: see SUBSCRIBE */
};

struct mqtt_worker {
    struct mqtt_session *sessions;
    size_t outbox_n, sent;  /* bytes for the other workers; bytes under way */
    uint32_t waits, busy_n; /* missing replies; workers to send again to */
    fb_ref busy[2048];      /* more than there can be */
    uint8_t outbox[MQTT_OUTBOX], topic[MQTT_TEXT_MAX], message[2 * MQTT_TEXT_MAX];
};

/* Take something off the front of a packet; its p is NULL when there was less. */
fb_bytes mqtt_take(fb_bytes *in, size_t n);
fb_bytes mqtt_text(fb_bytes *in);
void mqtt_write(fb_conn *conn, uint8_t type, const fb_bytes *pieces, size_t n);
/* Handles a packet. Returns -1 at the end of the connection. */
int mqtt_packet(fb_conn *conn, struct mqtt_session *session, uint8_t type, fb_bytes in);
/* Checks a filter, or without wildcards a topic. */
int mqtt_is_filter(fb_bytes filter, int wildcards);
/* Removes a filter, and adds it again unless `qos` is -1; returns `qos`, or 0x80 without room. */
uint8_t mqtt_set_filter(struct mqtt_session *session, fb_bytes filter, int qos);
void mqtt_deliver(const struct mqtt_worker *worker, fb_bytes message);
/* A timer's: sends new filters some of the retained messages. */
void mqtt_retained(fb_conn *conn, void *state, uint32_t id);
/* Sends a message to the subscribers of all workers, and retains it where `type` says so. */
void mqtt_publish(fb_conn *conn, uint8_t type, fb_bytes topic, fb_bytes payload);
