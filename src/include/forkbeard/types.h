/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain types of Forkbeard's SDK. Include <forkbeard/forkbeard.h>. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A connection. Valid from the `opened` callback until the `closed` callback returns. */
typedef struct fb_conn fb_conn;

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
    FB_TIMED_OUT,    /* a timeout of the configuration, or the network's */
    FB_INPUT_LIMIT,  /* more unconsumed input than the protocol's input_limit */
    FB_ABORTED,      /* fb_abort() */
    FB_DRAINED,      /* the worker ends */
    FB_REFUSED,      /* `opened` refused the connection */
    FB_NO_MEMORY,
    FB_IO_ERROR, /* any other error of the connection */
} fb_reason;
