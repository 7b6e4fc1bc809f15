/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that a proxy passes on: their first bytes are a PROXY header, with their addresses.
 *
 * Responsible for the header, from the start of the connection to the session's, and for the
 * results of the header: the client's address, where the proxy is trusted, and variables.
 * Invariant: the protocol sees nothing of the header, neither its bytes nor its time. */
#pragma once

#include "net/conn.h"
#include "session/record.h"
#include "text/variable.h"

/* Addresses of proxies whose PROXY headers are believed. */
struct trusted_setting {
    struct address_block *blocks;
    int64_t n;
};

/* The feature's struct of a server. */
struct proxy_protocol_values {
    int64_t timeout;                /* ms */
    struct trusted_setting trusted; /* set_real_ip_from */
};

/* A session's copy of its header, kept where a variable of the header is used. */
struct proxy_protocol_part {
    struct session_part part; /* the first member */
    struct conn_peer own;     /* the connection's peer */
    size_t n;
    uint8_t header[];
};

/* Callbacks of a client of a binding with PROXY headers, until the header is whole. */
extern const struct conn_ops proxy_protocol_ops;
/* Returns the header of the connection's session; NULL: none is kept. */
const struct proxy_protocol_part *proxy_protocol_of(const struct fb_conn *conn);
