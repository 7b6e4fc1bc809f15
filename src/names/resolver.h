/* SPDX-License-Identifier: BSD-2-Clause */
/* A resolver: one `resolver` of the configuration in a worker, with its questions and its cache.
 * Asks each question once for all parts, and keeps at most RESOLVER_CACHE valid answers. Questions
 * without an answer block no new question. No resolution is delivered within a call. */
#pragma once

#include "base/memory.h"
#include "event/loop.h"
#include "names/client.h"
#include "names/setting.h"
#include "net/address.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

/* Answers that are kept, and their bytes. */
#define RESOLVER_CACHE 4096
#define RESOLVER_CACHE_BYTES (4u * 1024 * 1024)
/* Answers in a row with aliases alone. */
#define RESOLVER_ALIASES 8
/* For so long an absent name, or record, stays absent. */
#define RESOLVER_ABSENT_MS 10000

struct fb_resolution;
struct resolver_part;

/* The surroundings of a process's resolvers. */
struct resolver_host {
    struct loop *loop;
    const struct memory *memory;
    struct source
        *source; /* posted when questions wait: the handler calls resolver_ask() of each resolver */
    void (*ended)(struct resolver_part *part); /* a part has ended with an outcome */
};

enum resolver_phase {
    QUESTION_WAITS,  /* in the queue of new, or of repeated questions */
    QUESTION_ASKED,  /* the client has it, and will reply */
    QUESTION_CACHED, /* answered, and kept */
};

/* Links a resolution to one question, and then keeps the outcome. */
struct resolver_part {
    TAILQ_ENTRY(resolver_part) link;
    struct fb_resolution *resolution;
    bool quiet;                         /* a failure is logged by the asker */
    struct resolver_question *question; /* NULL: the part has ended, or is not used */
    fb_name_outcome outcome;            /* 0: it has not ended */
    const char *why;
    struct names_answer *answer;
};

struct resolver_question {
    unsigned kind;
    enum resolver_phase phase;
    uint16_t type;
    bool is_again;      /* the client has given it back */
    bool is_logged;     /* a log line about a late answer was written */
    unsigned aliases;   /* aliases followed by questions of their own */
    uint32_t alias_ttl; /* the least of theirs, in seconds */
    char *alias;        /* the latest alias, which is asked for; NULL: the name is asked for */
    RB_ENTRY(resolver_question) node;
    TAILQ_ENTRY(resolver_question) link; /* in a queue, or among the cached, the latest last */
    TAILQ_HEAD(, resolver_part) parts;
    struct resolver *resolver;
    /* in the cache */
    uint64_t until_ms;
    fb_name_outcome outcome;
    const char *why;
    struct names_answer *answer;
    struct address address; /* MESSAGE_PTR's; else without a length */
    char name[];            /* in small letters */
};

RB_HEAD(resolver_questions, resolver_question);
struct resolver {
    unsigned kind;
    const struct resolver_host *host;
    const struct names_setting *setting;
    struct resolver *next;
    struct names_client *client;
    struct resolver_questions questions;
    TAILQ_HEAD(resolver_queue, resolver_question) waiting; /* new ones, the latest first */
    struct resolver_queue again, cached;
    struct timer timer; /* until there is room for what waits */
    unsigned cached_n;
    size_t cached_bytes;
    bool has_warned; /* about /etc/hosts, which cannot be read */
};

/* Makes a resolver with so many sockets at most; NULL after an emerg line. */
struct resolver *resolver_create(
    const struct resolver_host *host, const struct names_setting *setting, unsigned sockets);
/* Frees a resolver and its questions, without interested parts. */
void resolver_destroy(struct resolver **resolver);
/* Begins to wait for an answer; a part with a known answer ends at once. `address` is for
 * MESSAGE_PTR, else NULL. -1 without memory. */
int resolver_want(struct resolver *resolver, struct resolver_part *part, const char *name,
    uint16_t type, const struct address *address);
/* Ends the interest of a part, and gives up the answer. */
void resolver_forget(struct resolver *resolver, struct resolver_part *part);
/* Logs, once a question, a time-out of all servers. */
void resolver_log_late(struct resolver *resolver, struct resolver_part *part, uint64_t ms);
/* Asks waiting questions, as far as there is room. */
void resolver_ask(struct resolver *resolver);
/* Asserts what holds between two calls. */
void resolver_check(struct resolver *resolver);
