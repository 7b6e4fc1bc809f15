/* SPDX-License-Identifier: BSD-2-Clause */
/* resp: a key-value server that speaks RESP2, the protocol of Redis. What its files share:
 *
 *     resp.c      the descriptor and its directives; a session
 *     parse.c     commands out of bytes, without copying them;  inline.c: those typed by hand
 *     commands.c  the table of commands, and those about the connection and the server
 *     keys.c      those about keys and values;  numbers.c: about numbers and times to live
 *     reply.c     replies */
#pragma once

#include <forkbeard/forkbeard.h>

/* Words of one command; a command's bytes; a line's that is typed by hand; a value's at most. */
#define RESP_WORDS_MAX 4096
#define RESP_INPUT_MAX (2 * 1024 * 1024)
#define RESP_LINE_MAX (64 * 1024)
#define RESP_VALUE_GREATEST (1024 * 1024)

enum resp_metric { RESP_COMMANDS, RESP_CONNECTIONS, RESP_CLIENTS };

struct resp_conf {
    int64_t keys, key_max, value_max;
    fb_map *map;
};

/* What a worker needs while it runs one command: callbacks do not nest, so there is one of each. */
struct resp_worker {
    fb_bytes words[RESP_WORDS_MAX];
    char line[RESP_LINE_MAX];
    char value[RESP_VALUE_GREATEST];
};

/* A command that is being run. */
struct resp_request {
    fb_conn *conn;
    fb_worker *worker;
    const struct resp_conf *conf;
    struct resp_worker *room;
    const fb_bytes *words; /* in the input: the first is the command's name */
    size_t n;
    const char *name; /* the command's, as replies write it */
    int ended;        /* nothing that follows on this connection is run */
};

/* Runs the command in `words` and replies. */
void resp_run(struct resp_request *request);
/* Replies that there are too many words, or too few. */
void resp_wrong_number(const struct resp_request *request);

/* Parsing */

enum resp_parsed {
    RESP_WHOLE,   /* a command of `n` words, which may be 0, in the first `used` bytes */
    RESP_PARTIAL, /* one that is not whole with less than `need` bytes */
    RESP_BROKEN,  /* nothing can be understood from here on: `error` */
};

struct resp_parser {
    struct resp_worker *room; /* where words are noted */
    size_t bulk_max;          /* bytes of one word */
    size_t n, used, need;
    char error[64];
};

enum resp_parsed resp_parse(struct resp_parser *parser, fb_bytes in);
enum resp_parsed resp_parse_inline(struct resp_parser *parser, fb_bytes in);
/* As snprintf() into `error`; returns RESP_BROKEN. */
enum resp_parsed resp_broken(struct resp_parser *parser, const char *format, ...);

/* Whether it is the word, in upper or lower case. */
int resp_is(fb_bytes text, const char *word);
/* A whole number, written as the protocol does: no sign "+", no spaces, no leading zeros. 0 or -1. */
int resp_number(fb_bytes text, int64_t *out);
/* The other way round: the bytes lie in `text`. */
fb_bytes resp_decimal(int64_t number, char text[24]);

/* The keys: a map that all workers share, each call of which is atomic. A command that reads, decides
 * and writes begins again while it is told FB_MAP_CHANGED: somebody else was faster. */

/* The value is copied into the worker's room, which holds any. */
fb_map_status resp_map_get(struct resp_request *request, fb_bytes key, fb_item *item);
fb_map_status resp_map_replace(
    struct resp_request *request, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl);
/* 1 after a reply that the map has not taken it. */
int resp_is_refused(struct resp_request *request, fb_map_status status);
/* The time to live in a word, in a unit of so many ms; 1 after a reply that it is none. */
int resp_take_ttl(struct resp_request *request, fb_bytes word, int64_t unit, int64_t *ms);

/* Commands about keys */

void resp_set(struct resp_request *request);
void resp_get(struct resp_request *request);
void resp_mset(struct resp_request *request);
void resp_mget(struct resp_request *request);
void resp_del(struct resp_request *request);
void resp_exists(struct resp_request *request);
void resp_incr(struct resp_request *request);
void resp_decr(struct resp_request *request);
void resp_incrby(struct resp_request *request);
void resp_decrby(struct resp_request *request);
void resp_ttl(struct resp_request *request);
void resp_pttl(struct resp_request *request);
void resp_expire(struct resp_request *request);
void resp_pexpire(struct resp_request *request);
void resp_persist(struct resp_request *request);

/* Replies */

#define RESP_NOT_AN_INTEGER "ERR value is not an integer or out of range"

/* A status: "OK". */
void resp_status(fb_conn *conn, const char *text);
/* "ERR what is wrong". */
void resp_error(fb_conn *conn, const char *format, ...);
void resp_integer(fb_conn *conn, int64_t number);
void resp_bulk(fb_conn *conn, fb_bytes bytes);
void resp_text(fb_conn *conn, const char *text);
/* In the place of a value that there is not. */
void resp_nil(fb_conn *conn);
/* So many replies follow, which belong to it. */
void resp_array(fb_conn *conn, size_t n);
