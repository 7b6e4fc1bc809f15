/* SPDX-License-Identifier: BSD-2-Clause */
/* A stand-in for <port.h> of illumos, port_create(3C), whose event ports shims/port.c imitates:
 * descriptors, events of the program's own, and the alert mode; no files, timers, queues or
 * asynchronous I/O. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define PORT_SOURCE_AIO 1
#define PORT_SOURCE_TIMER 2
#define PORT_SOURCE_USER 3
#define PORT_SOURCE_FD 4
#define PORT_SOURCE_ALERT 5
#define PORT_SOURCE_MQ 6
#define PORT_SOURCE_FILE 7

#define PORT_ALERT_SET 1
#define PORT_ALERT_UPDATE 2

typedef unsigned short ushort_t;
typedef unsigned int uint_t;
typedef struct timespec timespec_t;

typedef struct port_event {
    int portev_events;
    ushort_t portev_source;
    ushort_t portev_pad;
    uintptr_t portev_object;
    void *portev_user;
} port_event_t;

int port_create(void);
int port_sendn(int ports[], int errors[], uint_t n, int events, void *user);
int port_alert(int port, int flags, int events, void *user);
int port_get(int port, port_event_t *event, const timespec_t *timeout);
/* Weak names: a test may define these, and call port_NAME_shim() itself. */
int port_associate(int port, int source, uintptr_t object, int events, void *user);
int port_associate_shim(int port, int source, uintptr_t object, int events, void *user);
int port_dissociate(int port, int source, uintptr_t object);
int port_dissociate_shim(int port, int source, uintptr_t object);
int port_send(int port, int events, void *user);
int port_send_shim(int port, int events, void *user);
int port_getn(int port, port_event_t list[], uint_t max, uint_t *nget, const timespec_t *timeout);
int port_getn_shim(
    int port, port_event_t list[], uint_t max, uint_t *nget, const timespec_t *timeout);
