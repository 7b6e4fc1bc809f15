/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain types of Forkbeard's SDK. Include <forkbeard/forkbeard.h>. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A connection: of a client, from `opened`, or to a server, from fb_connect(), until its `closed`
 * returns. */
typedef struct fb_conn fb_conn;
/* The worker process that a callback runs in; it outlives its connections. */
typedef struct fb_worker fb_worker;
/* A configuration that is being read; valid until the callback returns. */
typedef struct fb_conf fb_conf;
/* An address to connect to. */
typedef struct fb_target fb_target;
/* A map that all workers share. */
typedef struct fb_map fb_map;

/* Names a connection in any worker: it may be kept anywhere and sent anywhere, and never comes to
 * mean another connection. 0 is none. */
typedef uint64_t fb_ref;

/* Bytes that belong to somebody else. */
typedef struct fb_bytes {
    const uint8_t *p;
    size_t n;
} fb_bytes;

/* Why a connection ended. Values are only ever appended. */
typedef enum fb_reason {
    FB_FINISHED = 1, /* fb_close(): all output was handed to the kernel, and our end was sent */
    FB_PEER_GONE,    /* the peer closed, and nothing was left to do */
    FB_RESET,        /* the peer broke the connection */
    FB_TIMED_OUT,    /* a timeout of the configuration or the protocol, or the network's */
    FB_INPUT_LIMIT,  /* more unconsumed input than the protocol's input_limit or a frame's most */
    FB_ABORTED,      /* fb_abort(), or the end of the connection that it was made for */
    FB_DRAINED,      /* the worker ends */
    FB_REFUSED,      /* `opened` refused it, or the server that was to be connected to */
    FB_NO_MEMORY,
    FB_IO_ERROR, /* any other error of the connection */
} fb_reason;

/* What became of a message. Values are only ever appended. */
typedef enum fb_outcome {
    FB_MESSAGE_HANDLED = 1, /* `message` returned 0 */
    FB_MESSAGE_DECLINED, /* it returned something else, there is none, or its worker is flooded */
    FB_MESSAGE_UNKNOWN,  /* there is no such connection, or its worker died before it answered */
} fb_outcome;
