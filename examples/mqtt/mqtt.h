/* SPDX-License-Identifier: BSD-2-Clause */
/* mqtt: a broker of MQTT 3.1.1, whose clients may be with any worker. What workers send each other
 * is a PUBLISH without length and number: flags, the topic behind its length, the payload. */
#pragma once

#include <forkbeard/forkbeard.h>

#define MQTT_PACKET_MAX 16000 /* bytes of a packet: less than of a message between workers */
#define MQTT_TEXT_MAX 1024    /* bytes of a client's name and filters, of a topic */
#define MQTT_OUTBOX (1 << 20) /* for the other workers: publishers wait while half of it is used */
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
    fb_map_cursor cursor; /* retained messages that were sent for filters behind old_n */
    size_t old_n, filters_n;
    uint8_t will_type, filters[MQTT_TEXT_MAX]; /* length, filter, QoS: see SUBSCRIBE */
};

struct mqtt_worker {
    struct mqtt_session *sessions;
    size_t outbox_n, sent;  /* bytes for the other workers; those of them that are under way */
    uint32_t waits, busy_n; /* answers that are missing; workers that have to be sent them again */
    fb_ref busy[2048];      /* more than there can be */
    uint8_t outbox[MQTT_OUTBOX], topic[MQTT_TEXT_MAX], message[2 * MQTT_TEXT_MAX];
};

/* Take something off the front of a packet; its p is NULL when there was less. */
fb_bytes mqtt_take(fb_bytes *in, size_t n);
fb_bytes mqtt_text(fb_bytes *in);
void mqtt_write(fb_conn *conn, uint8_t type, const fb_bytes *pieces, size_t n);
/* Does what a packet says. Returns -1 when it ends the connection. */
int mqtt_packet(fb_conn *conn, struct mqtt_session *session, uint8_t type, fb_bytes in);
/* Checks a filter, or without wildcards a topic. */
int mqtt_is_filter(fb_bytes filter, int wildcards);
/* Removes a filter, and adds it again unless `qos` is -1; returns that, or 0x80 without room. */
uint8_t mqtt_set_filter(struct mqtt_session *session, fb_bytes filter, int qos);
void mqtt_deliver(const struct mqtt_worker *worker, fb_bytes message);
/* A timer's: sends new filters some of the retained messages. */
void mqtt_retained(fb_conn *conn, void *state, uint32_t id);
/* Sends a message to the subscribers of all workers, and retains it where `type` says so. */
void mqtt_publish(fb_conn *conn, uint8_t type, fb_bytes topic, fb_bytes payload);
