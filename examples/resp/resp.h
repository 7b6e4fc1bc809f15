/* SPDX-License-Identifier: BSD-2-Clause */
/* resp: a key-value server that speaks RESP2, the protocol of Redis. Its files, and what they
 * share:
 *
 *     resp.c      the descriptor and its directives; a session
 *     parse.c     parses commands, without copying them;  inline.c: commands typed by hand
 *     commands.c  the table of commands, and commands about the connection and the server
 *     keys.c      commands about keys and values;  numbers.c: about numbers and times to live
 *     reply.c     replies */
#pragma once

#include <forkbeard/forkbeard.h>

#define RESP_WORDS_MAX 4096               /* words of one command */
#define RESP_INPUT_MAX (2 * 1024 * 1024)  /* bytes of one command */
#define RESP_LINE_MAX (64 * 1024)         /* bytes of a command typed by hand */
#define RESP_VALUE_GREATEST (1024 * 1024) /* bytes of a value */

enum resp_metric { RESP_COMMANDS, RESP_CONNECTIONS, RESP_CLIENTS };

struct resp_conf {
    int64_t keys, key_max, value_max, memory;
    int64_t command_timeout; /* ms, from the first byte of a command to its last; 0: none */
    fb_map *map;
};

/* Buffers of a worker for its current command: callbacks do not nest, so a single set is enough. */
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
    const fb_bytes *words; /* in the input; the first is the name of the command */
    size_t n;
    const char *name; /* the command's, as replies write it */
    int ended;        /* the connection closes, and no further command is run */
};

/* Runs the command in `words` and replies. */
void resp_run(struct resp_request *request);
/* Replies that there are too many words, or too few. */
void resp_wrong_number(const struct resp_request *request);

/* Parsing */

enum resp_parsed {
    RESP_WHOLE,   /* a command of `n` words, which may be 0, in the first `used` bytes */
    RESP_PARTIAL, /* a command that needs at least `need` bytes to be complete */
    RESP_BROKEN,  /* `error`; the input that follows cannot be understood */
};

struct resp_parser {
    struct resp_worker *room; /* for the words */
    size_t bulk_max;          /* bytes of one word */
    size_t n, used, need;
    char error[64];
};

enum resp_parsed resp_parse(struct resp_parser *parser, fb_bytes in);
enum resp_parsed resp_parse_inline(struct resp_parser *parser, fb_bytes in);
/* Formats `error` as snprintf() does; returns RESP_BROKEN. */
enum resp_parsed resp_broken(struct resp_parser *parser, const char *format, ...);

/* Compares with a word in lower case; upper and lower case are the same. */
int resp_is(fb_bytes text, const char *word);
/* Reads an integer as the protocol writes it: no "+", no spaces, no leading zeros. Returns 0 or
 * -1. */
int resp_number(fb_bytes text, int64_t *out);
/* Writes an integer into `text`, and returns the used bytes. */
fb_bytes resp_decimal(int64_t number, char text[24]);

/* The keys are in a map shared by all workers. Its calls are atomic. A command that reads,
 * decides and writes begins again while the result is FB_MAP_CHANGED: another worker has
 * changed the key. */

/* Copies the value into the worker's buffer, which has room for any. */
fb_map_status resp_map_get(struct resp_request *request, fb_bytes key, fb_item *item);
fb_map_status resp_map_replace(
    struct resp_request *request, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl);
/* Replies that the map has refused a key or value, and returns 1; or returns 0. */
int resp_is_refused(struct resp_request *request, fb_map_status status);
/* Reads a time to live in units of `unit` ms. Returns 0, or 1 after an error reply. */
int resp_take_ttl(struct resp_request *request, fb_bytes word, int64_t unit, int64_t *ms);

/* Commands about keys */

void resp_set(struct resp_request *request);
void resp_get(struct resp_request *request);
void resp_mset(struct resp_request *request);
void resp_mget(struct resp_request *request);
void resp_del(struct resp_request *request);
void resp_append(struct resp_request *request);
void resp_getdel(struct resp_request *request);
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
/* Replies that there is no value. */
void resp_nil(fb_conn *conn);
/* Begins an array; the next n replies are its elements. */
void resp_array(fb_conn *conn, size_t n);
