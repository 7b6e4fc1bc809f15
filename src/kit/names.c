/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers of names of a test: each `resolver` address, and 192.0.2.53 in place of the system's.
 * All know equal records. An unanswered question stays with the socket's output until a new reply
 * is set. */
#include "kit/kit.h"
#include "net/address_parse.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SYSTEM "192.0.2.53:53"
#define HEADER 12
#define NAME_MOST 256
#define DATA_MOST (NAME_MOST + 6)
#define REPLY_MOST 8192
#define ALIASES 16
#define NO_SUCH_NAME 3
#define FAILED 2

struct kit_record {
    STAILQ_ENTRY(kit_record) link;
    char owner[NAME_MOST];
    char alias[NAME_MOST]; /* CNAME: the name that it stands for */
    uint16_t type;
    uint32_t ttl;
    size_t n;
    uint8_t data[DATA_MOST];
};

struct kit_name_server {
    STAILQ_ENTRY(kit_name_server) link;
    struct address address;
    struct sim_server *server;
};

/* A socket that questions come by. */
struct kit_name_socket {
    STAILQ_ENTRY(kit_name_socket) link;
    struct sim_socket *socket;
    size_t used; /* bytes of its output that were answered */
};

struct reply {
    size_t n;
    uint8_t bytes[REPLY_MOST];
};

/* ---- Records ---- */

/* Writes a name in the form of messages; returns its bytes. */
static size_t encode_name(const char *name, uint8_t *out)
{
    size_t n = 0;

    while (*name != '\0' && strcmp(name, ".") != 0) {
        size_t label = strcspn(name, ".");

        out[n++] = (uint8_t)label;
        memcpy(out + n, name, label);
        n += label;
        name += label + (name[label] == '.');
    }
    out[n++] = 0;
    return n;
}

static void put16(uint8_t *out, unsigned value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
}

/* Reads the data behind the type; false: the data is not of the type. */
static bool read_data(struct kit_record *record, const char *type, const char *text)
{
    char name[NAME_MOST] = "";
    unsigned priority, weight, port;

    if (strcmp(type, "A") == 0 || strcmp(type, "AAAA") == 0) {
        int family = type[1] == '\0' ? AF_INET : AF_INET6;

        record->type = family == AF_INET ? FB_NAME_A : FB_NAME_AAAA;
        record->n = family == AF_INET ? 4 : 16;
        return inet_pton(family, text, record->data) == 1;
    }
    if (strcmp(type, "SRV") == 0) {
        record->type = FB_NAME_SRV;
        if (sscanf(text, "%u %u %u %255s", &priority, &weight, &port, name) != 4)
            return false;
        put16(record->data, priority);
        put16(record->data + 2, weight);
        put16(record->data + 4, port);
        record->n = 6 + encode_name(name, record->data + 6);
        return true;
    }
    record->type = strcmp(type, "PTR") == 0 ? FB_NAME_PTR : MESSAGE_CNAME;
    if (!message_is_name(text) || (record->type == MESSAGE_CNAME && strcmp(type, "CNAME") != 0))
        return false;
    if (record->type == MESSAGE_CNAME)
        snprintf(record->alias, sizeof(record->alias), "%s", text);
    record->n = encode_name(text, record->data);
    return true;
}

void fb_test_name(fb_test *test, const char *text)
{
    struct kit_record *record = kit_alloc(sizeof(*record));
    char type[8];
    int data = 0;

    CHECK_KIND(test, KIT_TEST);
    if (sscanf(text, "%255s %" SCNu32 " %7s %n", record->owner, &record->ttl, type, &data) != 3 ||
        data == 0 || !message_is_name(record->owner) || !read_data(record, type, text + data))
        kit_misused("fb_test_name(\"%s\"): expected \"NAME TTL TYPE DATA\"", text);
    STAILQ_INSERT_TAIL(&test->records, record, link);
}

void fb_test_names(fb_test *test, fb_test_reply reply)
{
    CHECK_KIND(test, KIT_TEST);
    test->names_reply = reply;
}

/* ---- Answers ---- */

static void add_record(struct reply *reply, const struct kit_record *record)
{
    uint8_t *p = reply->bytes + reply->n;
    size_t n;

    if (reply->n + NAME_MOST + 10 + record->n > sizeof(reply->bytes))
        return;
    n = encode_name(record->owner, p);
    put16(p + n, record->type);
    put16(p + n + 2, 1);
    put16(p + n + 4, record->ttl >> 16);
    put16(p + n + 6, record->ttl & 0xffff);
    put16(p + n + 8, (unsigned)record->n);
    memcpy(p + n + 10, record->data, record->n);
    reply->n += n + 10 + record->n;
    put16(reply->bytes + 6, (unsigned)(reply->bytes[6] << 8 | reply->bytes[7]) + 1);
}

/* Adds the records of a name; returns its alias, or NULL. */
static const struct kit_record *add_records(
    const fb_test *test, struct reply *reply, const char *name, uint16_t type, bool *known)
{
    const struct kit_record *record, *alias = NULL;

    STAILQ_FOREACH (record, &test->records, link) {
        if (strcasecmp(record->owner, name) != 0)
            continue;
        *known = true;
        if (record->type == type || record->type == MESSAGE_CNAME)
            add_record(reply, record);
        if (record->type == MESSAGE_CNAME && alias == NULL)
            alias = record;
    }
    return alias;
}

/* Reads the name of a question as text; returns the name's bytes in the message, or 0 when cut. */
static size_t read_question_name(const uint8_t *p, size_t n, char name[NAME_MOST])
{
    size_t at = 0, length = 0;

    while (at < n && p[at] != 0) {
        size_t label = p[at++];

        if (label > n - at || length + label + 2 > NAME_MOST)
            return 0;
        if (length > 0)
            name[length++] = '.';
        memcpy(name + length, p + at, label);
        length += label;
        at += label;
    }
    name[length] = '\0';
    return at < n ? at + 1 : 0;
}

/* Makes the answer to a question of n bytes or more; returns the answer's bytes, or 0 for a cut
 * question. */
static size_t make_answer(const fb_test *test, const uint8_t *p, size_t n, struct reply *reply)
{
    const struct kit_record *alias;
    char name[NAME_MOST];
    const char *next = name;
    bool known = false;
    size_t name_n = n > HEADER ? read_question_name(p + HEADER, n - HEADER, name) : 0;
    size_t whole = HEADER + name_n + 4;

    if (name_n == 0 || n < whole)
        return 0;
    memcpy(reply->bytes, p, whole);
    memset(reply->bytes + 6, 0, 6);
    put16(reply->bytes + 2, 0x8180);
    reply->n = whole;
    for (int i = 0; i < ALIASES && next != NULL && test->names_reply == FB_TEST_ACCEPTS; i++) {
        alias =
            add_records(test, reply, next, (uint16_t)(p[whole - 4] << 8 | p[whole - 3]), &known);
        next = alias != NULL ? alias->alias : NULL;
    }
    if (!known)
        reply->bytes[3] |= test->names_reply == FB_TEST_ACCEPTS ? NO_SUCH_NAME : FAILED;
    return whole;
}

/* ---- Sockets ---- */

/* Answers the next question of a socket; false: there is none that is whole. */
static bool answer_next(fb_test *test, struct kit_name_socket *own)
{
    const struct sim_socket *socket = own->socket;
    size_t head = socket->datagrams ? 0 : 2, left = socket->sent_n - own->used;
    struct reply reply;
    uint8_t length[2];
    size_t n =
        left > head ? make_answer(test, socket->sent + own->used + head, left - head, &reply) : 0;

    if (n == 0)
        return false;
    own->used += head + n;
    put16(length, (unsigned)reply.n);
    if (head > 0)
        sim_say(own->socket, length, sizeof(length));
    sim_say(own->socket, reply.bytes, reply.n);
    return true;
}

void kit_names_serve(fb_test *test)
{
    struct kit_name_server *server;
    struct kit_name_socket *own, *next;
    struct sim_socket *socket;

    STAILQ_FOREACH (server, &test->name_servers, link)
        while ((socket = sim_server_take(server->server)) != NULL) {
            own = kit_alloc(sizeof(*own));
            own->socket = socket;
            STAILQ_INSERT_TAIL(&test->name_sockets, own, link);
        }
    STAILQ_FOREACH_SAFE (own, &test->name_sockets, link, next) {
        while (
            !own->socket->closed && test->names_reply != FB_TEST_SILENT && answer_next(test, own))
            continue;
        if (!own->socket->closed)
            continue;
        STAILQ_REMOVE(&test->name_sockets, own, kit_name_socket, link);
        free(own);
    }
}

static void open_server(fb_test *test, const char *text)
{
    struct kit_name_server *server;
    struct address address;

    if (address_parse(text, 0, &address) != NULL)
        kit_misused("the server of names \"%s\" is no address", text);
    STAILQ_FOREACH (server, &test->name_servers, link)
        if (address_equal(&server->address, &address))
            return;
    server = kit_alloc(sizeof(*server));
    server->address = address;
    server->server = sim_server(test->sim, &address.any, address.length);
    STAILQ_INSERT_TAIL(&test->name_servers, server, link);
}

void kit_names_open(fb_test *test, struct cycle *cycle)
{
    const struct names_setting *setting;

    cycle->stream.system.servers = SYSTEM;
    for (setting = &cycle->stream.system; setting != NULL; setting = setting->next) {
        char *copy = setting->users != 0 ? strdup(setting->servers) : NULL, *rest = copy, *one;

        while (copy != NULL && (one = strsep(&rest, ",")) != NULL)
            open_server(test, one);
        free(copy);
    }
}

/* Frees all entries of a list. */
#define FREE_ALL(head)                                                                             \
    while (!STAILQ_EMPTY(head)) {                                                                  \
        void *first = STAILQ_FIRST(head);                                                          \
                                                                                                   \
        STAILQ_REMOVE_HEAD(head, link);                                                            \
        free(first);                                                                               \
    }

void kit_names_free(fb_test *test)
{
    FREE_ALL(&test->name_servers)
    FREE_ALL(&test->name_sockets)
    FREE_ALL(&test->records)
}
