/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of the proxy, and the state of a session, which tries servers until one is
 * connected (session.c), and is a pipe then. Invariant: a session has one server connection at
 * most. */
#pragma once

#include "protocols/proxy/health.h"
#include "protocols/proxy/starttls.h"

#include <forkbeard/forkbeard.h>

#include <stdbool.h>
#include <sys/socket.h>

/* The PROXY header for a server. */
enum proxy_header { PROXY_HEADER_NONE, PROXY_HEADER_V1, PROXY_HEADER_V2 };

/* Limit of addresses of one proxy_bind: a directive's most arguments. */
#define PROXY_BIND_MOST 15

/* An address that servers are connected from. */
struct proxy_bind_address {
    const struct sockaddr_storage *fixed; /* NULL: `text` says it in each session */
    const fb_template *text;
};

/* Addresses of a proxy_bind, tried in turn by a session. */
struct proxy_bind {
    const struct proxy_bind_address *list;
    uint32_t n;       /* 0: the kernel chooses the address */
    bool transparent; /* they need not be this machine's */
};

/* Bytes a second. */
struct proxy_rate {
    const fb_template *text; /* NULL: `fixed` holds */
    uint64_t fixed;          /* 0: any */
};

/* TLS of clients after a command of their protocol. */
struct proxy_starttls {
    const struct starttls_dialect *dialect; /* NULL: off */
    bool optional;                          /* clients may go on without */
};

struct proxy_conf {
    const fb_upstream *upstream;
    int64_t connect_timeout, timeout; /* ms */
    int64_t buffer_size;
    int64_t half_close;            /* 1: a half may end long before the reverse half */
    int64_t next_upstream;         /* 1: after an unreachable server the next is tried */
    int64_t next_upstream_tries;   /* 0: as many as there are servers */
    int64_t next_upstream_timeout; /* ms, in which tries begin; 0: any */
    int64_t reset;                 /* 1: the client of a breaking server is reset */
    int64_t socket_keepalive;      /* 1: the kernel probes silent servers */
    struct proxy_bind bind;
    struct proxy_rate download, upload;
    enum proxy_header header;
    struct proxy_starttls starttls;
    const fb_tls_profile *tls; /* proxy_ssl; NULL: off */
    struct proxy_health health;
};

struct proxy_worker {
    fb_worker *worker;
    const fb_stream *stream;
    const fb_upstreams *upstreams;
    struct proxy_checks checks;
    uint64_t silent_ms; /* when a session has ended without a byte, monotonic; 0: never */
    uint32_t bind_turn; /* number of the next session, for the first address of proxy_bind */
};

/* The state of a client. A server connection's state is the client. */
struct proxy {
    uint32_t began_ms;      /* start of the first try, monotonic; wraps */
    uint32_t failed : 19;   /* tries that have */
    uint32_t bind_at : 4;   /* the address of proxy_bind in use */
    uint32_t bind_left : 4; /* addresses of proxy_bind that were not tried */
    bool listens : 1;       /* to the client, before the first try */
    bool may_go_on : 1;     /* servers are left beside the present one */
    bool connected : 1;     /* the server of the present try has been reached */
    bool unbound : 1;       /* the text of proxy_bind has turned out to be no address */
};

/* session.c: the callbacks of clients, and of servers, whose state is the client */
extern const fb_ops proxy_session_ops, proxy_server_ops;

/* dialogue.c: Talks with client and server until the client has TLS, and pipes both then. */
void proxy_dialogue_begin(fb_conn *client, fb_conn *server, const fb_pipe_options *options);
/* dialogue.c: proxy_starttls off | PROTOCOL [optional] */
int proxy_starttls_set(fb_conf *conf, void *value, const char *const *args, uint32_t n);

/* Bytes of the longest PROXY header. */
#define PROXY_HEADER_MOST (52 + FB_TLVS_MOST)
/* header.c: Makes the header of the client for its server; returns the number of bytes. */
size_t proxy_header_make(
    fb_conn *client, enum proxy_header header, uint8_t room[PROXY_HEADER_MOST]);
/* header.c: proxy_protocol on|off|v2 [version=1|2] [certificate] */
int proxy_header_set(fb_conf *conf, void *value, const char *const *args, uint32_t n);

/* rate.c: Works out a rate given as text. Returns 0; -1 without memory. */
int proxy_rate_evaluate(fb_conn *client, const struct proxy_rate *rate, uint64_t *out);
/* rate.c: proxy_download_rate and proxy_upload_rate */
int proxy_rate_set_download(fb_conf *conf, void *value, const char *const *args, uint32_t n);
int proxy_rate_set_upload(fb_conf *conf, void *value, const char *const *args, uint32_t n);

/* bind.c: Chooses a session's first address among several of proxy_bind. */
void proxy_bind_begin(fb_conn *client);
/* bind.c: Goes on to the next address of proxy_bind; false: all were tried. */
bool proxy_bind_next(fb_conn *client);
/* bind.c: Works out the address to connect from: `room`, a constant, or NULL; *status is -1 without
 * memory. */
const struct sockaddr *proxy_bind_address(
    fb_conn *client, struct sockaddr_storage *room, int *status);
/* bind.c: proxy_bind address ... [transparent] | off */
int proxy_bind_set(fb_conf *conf, void *value, const char *const *args, uint32_t n);
