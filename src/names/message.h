/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the answer of a server of names: the records about the name of the question, directly or by
 * aliases, with times to live. Bounded work, no allocation, no read outside of the message. */
#pragma once

#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a name as text, with the NUL. */
#define MESSAGE_NAME 256
/* Records taken from an answer, and bytes of all their names; the rest is left out. */
#define MESSAGE_ITEMS 256
#define MESSAGE_TEXT 16384
/* The greatest time to live, in seconds: a week. */
#define MESSAGE_TTL_MOST 604800u

/* Types of records; the numbers are those of the messages. */
enum { MESSAGE_A = 1, MESSAGE_CNAME = 5, MESSAGE_PTR = 12, MESSAGE_AAAA = 28, MESSAGE_SRV = 33 };

enum message_status {
    MESSAGE_FOUND,
    MESSAGE_NO_DATA,   /* no such record for the name, or for an alias */
    MESSAGE_CUT,       /* ends within a record */
    MESSAGE_MALFORMED, /* a wrong length, name or count */
    MESSAGE_LOOP,      /* aliases that do not end */
    MESSAGE_FOREIGN,   /* an answer to another question */
};

struct message_item {
    uint32_t ttl; /* seconds */
    uint16_t port, priority, weight;
    uint16_t name;       /* SRV and PTR: the name's place in the text */
    uint8_t address[16]; /* A (4 bytes) and AAAA */
};

/* An answer that was read. */
struct message {
    uint16_t type;  /* asked for */
    uint32_t ttl;   /* the least of all records and aliases */
    unsigned n;     /* items */
    size_t text_n;  /* bytes of the text */
    size_t aliases; /* followed until the canonical name */
    bool is_alias;  /* aliases alone: ask for the name at their end */
    char canonical[MESSAGE_NAME];
    struct message_item items[MESSAGE_ITEMS];
    char text[MESSAGE_TEXT]; /* names, each with a NUL */
};

/* Sets a message without records, whose addresses have the time to live; adds an address. */
void message_begin(struct message *out, uint16_t type, uint32_t ttl, const char *canonical);
void message_add_address(struct message *out, const void *address);
/* Reads an answer to a question of this type; *out is whole only with MESSAGE_FOUND. */
enum message_status message_read(const uint8_t *p, size_t n, uint16_t type, struct message *out);
/* Limits the times to live of an answer to the aliases'. */
void message_bound(struct message *message, uint32_t ttl);
/* Returns the name of a type of question. */
const char *message_type_name(uint16_t type);
/* Describes the mistake in an answer. */
const char *message_why(enum message_status status);
/* Whether the text can be asked for: labels of 1 to 63 printable characters, 253 in all, perhaps
 * with a dot at the end. */
int message_is_name(const char *text);
/* A kept answer: the records of a message in a single piece of memory. Constant, and shared by
 * askers and the cache, until the last holder drops it. */
struct names_answer {
    unsigned holders;
    uint16_t type;
    uint32_t ttl;      /* seconds, from `since_ms` on */
    uint64_t since_ms; /* monotonic */
    unsigned n;
    size_t size;           /* bytes of all of it */
    const char *canonical; /* lies behind the items */
    const char *text;      /* names of the items, behind that */
    struct message_item items[];
};

/* Copies the message for one holder; `valid_ms`, unless 0, replaces all times to live. SRV are
 * sorted by priority, then the greatest weight. NULL without memory. */
struct names_answer *names_answer_create(
    const struct memory *memory, const struct message *message, uint64_t now_ms, int64_t valid_ms);
struct names_answer *names_answer_share(struct names_answer *answer);
/* Gives up the answer, if any; the last holder frees the memory. Sets the pointer to NULL. */
void names_answer_drop(const struct memory *memory, struct names_answer **answer);
/* Seconds left of a time to live. */
uint32_t names_answer_left(const struct names_answer *answer, uint32_t ttl, uint64_t now_ms);
