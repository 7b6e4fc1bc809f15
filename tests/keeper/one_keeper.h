/* SPDX-License-Identifier: BSD-2-Clause */
/* A keeper in the process of a test, which turns it, and plays master and worker. */
#pragma once

#include "keeper/keeper.h"
#include "support/memory_log.h"
#include "support/test.h"
#include "tls/message.h"

#define NUMBER(place) (1u << TLS_PLACE_BITS | (place))

extern struct keeper keeper;
extern struct cycle cycle;
extern struct heritage heritage;
extern struct memory_log memory;
extern int master, worker; /* the far ends; -1: closed */
extern uint8_t packet[TLS_PART_SIZE_MOST];

/* Makes what a keeper inherits; its configuration has so many files. */
void prepare(unsigned files);
/* Starts a keeper without files, with a worker; and ends it. */
void start(void);
void stop(void);
/* Frees what prepare() has made. */
void leave(void);
void turn(unsigned n);
void connect_worker(void);

void send_message(uint32_t kind, uint32_t argument, int fd);
void expect_message(uint32_t kind, uint32_t argument);
void expect_no_message(void);
void send_request(
    enum tls_request_kind kind, uint32_t number, uint32_t profile, const void *in, size_t n);
/* Receives a part of a reply; false: none has come. */
bool receive_part(struct tls_part *part);
bool is_link_closed(void);
