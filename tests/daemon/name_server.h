/* SPDX-License-Identifier: BSD-2-Clause */
/* A server of names played by a test: takes a question, and builds an answer byte by byte, by
 * datagrams or by a connection. Every wait has a deadline, which fails the test. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A server of names, with one port for both sockets. */
struct name_server {
    int udp, tcp;
    in_port_t port;
};

/* A question, and the answer built behind the question. */
struct name_reply {
    struct sockaddr_in from;
    int fd; /* the connection of the query; -1: a datagram */
    size_t n;
    uint8_t bytes[4096];
};

/* Types of records. */
enum { NAME_A = 1, NAME_CNAME = 5, NAME_PTR = 12, NAME_AAAA = 28, NAME_SRV = 33 };

/* Bytes of a name that stands at an offset of the message; 12 is the question's. */
#define NAME_AT(offset) ((const uint8_t[]) { 0xc0, (offset) }), 2
#define NAME_ASKED NAME_AT(12)
#define NAME_TRUNCATED 0x02 /* in the third byte */

struct name_server name_server_start(void);
void name_server_stop(const struct name_server *server);
/* Takes the next question, none of the latest once more, and begins an answer without records. */
void name_server_take(const struct name_server *server, struct name_reply *reply);
void name_server_accept(const struct name_server *server, struct name_reply *reply);
/* Whether no question waits. */
bool name_server_is_quiet(const struct name_server *server);
uint16_t name_reply_type(const struct name_reply *reply);
/* Appends a record; `name` has the bytes of the message's format. */
void name_reply_add(struct name_reply *reply, const uint8_t *name, size_t name_n, uint16_t type,
    uint32_t ttl, const void *data, size_t n);
/* Appends 192.0.2.`last`. */
void name_reply_add_a(struct name_reply *reply, uint32_t ttl, uint8_t last);
/* Sends the answer, with the code `code` (0: found, 3: no such name). */
void name_server_send(const struct name_server *server, struct name_reply *reply, uint8_t code);
