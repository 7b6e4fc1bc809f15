/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of answers, and kept answers. The parsers of c-ares 1.18, the oldest supported
 * version, tell no time to live of SRV and PTR records, nor of an alias without a record. Goes
 * through the records once for each alias, at most ALIASES times; a pointer within a name leads
 * backwards, so that none is followed twice. A name with unprintable characters is malformed. */
#include "names/message.h"

#include "base/compiler.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEADER 12
#define RECORD 10    /* bytes of a record between name and data */
#define ALIASES 16   /* followed; more are a loop */
#define RECORDS 1024 /* looked at, of a message */
#define CLASS_IN 1
#define IS_ANSWER 0x80 /* in the third byte of the header */
#define POINTER 0xc0
#define LABEL_MOST 63

/* A message, and the place of the next read. */
struct reader {
    const uint8_t *p;
    size_t n, at;
};

struct record {
    char owner[MESSAGE_NAME];
    uint16_t type, class;
    uint32_t ttl;
    size_t data, end; /* places in the message */
};

static uint16_t number16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static bool is_printable(uint8_t c)
{
    return c > ' ' && c < 0x7f && c != '.' && c != '\\' && c != '"';
}

/* Appends a label to a name of n bytes; returns the new length, or 0 for a wrong label. */
static size_t add_label(char name[MESSAGE_NAME], size_t n, const uint8_t *label, size_t label_n)
{
    if (n + label_n + 2 > MESSAGE_NAME)
        return 0;
    for (size_t i = 0; i < label_n; i++)
        if (!is_printable(label[i]))
            return 0;
    if (n > 0)
        name[n++] = '.';
    memcpy(name + n, label, label_n);
    return n + label_n;
}

/* Reads the name at the reader's place, and moves the place behind the name. The root is ".". */
static enum message_status read_record_name(struct reader *reader, char name[MESSAGE_NAME])
{
    size_t at = reader->at, before = reader->at, n = 0;
    bool jumped = false;

    for (;;) {
        uint8_t length;

        if (at >= reader->n)
            return MESSAGE_CUT;
        length = reader->p[at++];
        if (length == 0)
            break;
        if (length > LABEL_MOST) {
            if (length < POINTER)
                return MESSAGE_MALFORMED;
            if (at >= reader->n)
                return MESSAGE_CUT;
            if (!jumped)
                reader->at = at + 1;
            jumped = true;
            at = (size_t)(length & ~POINTER) << 8 | reader->p[at];
            if (at < HEADER || at >= before)
                return MESSAGE_MALFORMED;
            before = at;
            continue;
        }
        if (length > reader->n - at)
            return MESSAGE_CUT;
        n = add_label(name, n, reader->p + at, length);
        if (n == 0)
            return MESSAGE_MALFORMED;
        at += length;
    }
    if (!jumped)
        reader->at = at;
    if (n == 0)
        name[n++] = '.';
    name[n] = '\0';
    assert(reader->at <= reader->n);
    return MESSAGE_FOUND;
}

/* Reads the head of a record, and leaves the reader behind its data. */
static enum message_status read_record_head(struct reader *reader, struct record *record)
{
    enum message_status status = read_record_name(reader, record->owner);
    const uint8_t *head = reader->p + reader->at;

    if (status != MESSAGE_FOUND)
        return status;
    if (reader->n - reader->at < RECORD)
        return MESSAGE_CUT;
    record->type = number16(head);
    record->class = number16(head + 2);
    record->ttl = (uint32_t)number16(head + 4) << 16 | number16(head + 6);
    record->data = reader->at + RECORD;
    if (number16(head + 8) > reader->n - record->data)
        return MESSAGE_CUT;
    record->end = record->data + number16(head + 8);
    reader->at = record->end;
    if (record->ttl > INT32_MAX)
        record->ttl = 0;
    if (record->ttl > MESSAGE_TTL_MOST)
        record->ttl = MESSAGE_TTL_MOST;
    return MESSAGE_FOUND;
}

/* Reads a name that fills the record's data after `skip` bytes. */
static enum message_status read_data_name(
    const struct reader *whole, const struct record *record, size_t skip, char name[MESSAGE_NAME])
{
    struct reader reader = { whole->p, record->end, record->data + skip };
    enum message_status status;

    if (record->end - record->data <= skip)
        return MESSAGE_MALFORMED;
    status = read_record_name(&reader, name);
    if (status != MESSAGE_FOUND || reader.at != record->end)
        return MESSAGE_MALFORMED;
    return MESSAGE_FOUND;
}

static void take_least(uint32_t *least, uint32_t ttl)
{
    if (ttl < *least)
        *least = ttl;
}

static enum message_status read_record_item(const struct reader *reader,
    const struct record *record, struct message_item *item, char name[MESSAGE_NAME])
{
    const uint8_t *data = reader->p + record->data;
    size_t n = record->end - record->data;

    name[0] = '\0';
    switch (record->type) {
    case MESSAGE_A:
    case MESSAGE_AAAA:
        if (n != (record->type == MESSAGE_A ? 4 : 16))
            return MESSAGE_MALFORMED;
        memcpy(item->address, data, n);
        return MESSAGE_FOUND;
    case MESSAGE_SRV:
        if (n <= 6)
            return MESSAGE_MALFORMED;
        item->priority = number16(data);
        item->weight = number16(data + 2);
        item->port = number16(data + 4);
        return read_data_name(reader, record, 6, name);
    default:
        assert(record->type == MESSAGE_PTR);
        return read_data_name(reader, record, 0, name);
    }
}

/* Takes a record of the question; leaves out records beyond the room. */
static enum message_status take_answer(
    const struct reader *reader, const struct record *record, struct message *out)
{
    struct message_item item = { .ttl = record->ttl };
    char name[MESSAGE_NAME];
    enum message_status status = read_record_item(reader, record, &item, name);
    size_t n = name[0] == '\0' ? 0 : strlen(name) + 1;

    if (status != MESSAGE_FOUND || out->n == MESSAGE_ITEMS || n > MESSAGE_TEXT - out->text_n)
        return status;
    item.name = (uint16_t)out->text_n;
    memcpy(out->text + out->text_n, name, n);
    out->text_n += n;
    take_least(&out->ttl, item.ttl);
    out->items[out->n++] = item;
    return MESSAGE_FOUND;
}

/* Goes through the answers for the canonical name so far: takes the records of the question, or
 * else sets *alias to the target of the alias. */
static enum message_status scan_answers(struct reader reader, unsigned count, struct message *out,
    char alias[MESSAGE_NAME], uint32_t *alias_ttl)
{
    struct record record;

    alias[0] = '\0';
    for (; count > 0; count--) {
        enum message_status status = read_record_head(&reader, &record);

        if (status != MESSAGE_FOUND)
            return status;
        if (record.class != CLASS_IN || strcasecmp(record.owner, out->canonical) != 0)
            continue;
        if (record.type == out->type)
            status = take_answer(&reader, &record, out);
        else if (record.type == MESSAGE_CNAME && alias[0] == '\0') {
            status = read_data_name(&reader, &record, 0, alias);
            *alias_ttl = record.ttl;
        }
        if (status != MESSAGE_FOUND)
            return status;
    }
    return MESSAGE_FOUND;
}

/* Follows the aliases from the question's name on. */
static enum message_status follow_aliases(
    const struct reader *answers, unsigned count, struct message *out)
{
    char alias[MESSAGE_NAME];
    uint32_t alias_ttl = 0;

    for (;;) {
        enum message_status status = scan_answers(*answers, count, out, alias, &alias_ttl);

        if (status != MESSAGE_FOUND || out->n > 0)
            return status;
        if (alias[0] == '\0')
            return out->aliases > 0 || count == 0 ? MESSAGE_NO_DATA : MESSAGE_FOREIGN;
        if (++out->aliases > ALIASES)
            return MESSAGE_LOOP;
        take_least(&out->ttl, alias_ttl);
        strcpy(out->canonical, alias);
    }
}

void message_begin(struct message *out, uint16_t type, uint32_t ttl, const char *canonical)
{
    out->type = type;
    out->ttl = ttl;
    out->n = 0;
    out->text_n = out->aliases = 0;
    snprintf(out->canonical, sizeof(out->canonical), "%s", canonical);
}

void message_add_address(struct message *out, const void *address)
{
    out->items[out->n] = (struct message_item) { .ttl = out->ttl };
    memcpy(out->items[out->n++].address, address, out->type == MESSAGE_A ? 4 : 16);
}

void message_bound(struct message *message, uint32_t ttl)
{
    take_least(&message->ttl, ttl);
    for (unsigned i = 0; i < message->n; i++)
        take_least(&message->items[i].ttl, ttl);
}

enum message_status message_read(const uint8_t *p, size_t n, uint16_t type, struct message *out)
{
    struct reader reader = { p, n, HEADER };
    enum message_status status;
    unsigned count;

    message_begin(out, type, MESSAGE_TTL_MOST, "");
    if (n < HEADER)
        return MESSAGE_CUT;
    if (!(p[2] & IS_ANSWER) || number16(p + 4) != 1)
        return MESSAGE_MALFORMED;
    status = read_record_name(&reader, out->canonical);
    if (status != MESSAGE_FOUND)
        return status;
    if (n - reader.at < 4)
        return MESSAGE_CUT;
    if (number16(p + reader.at) != type || number16(p + reader.at + 2) != CLASS_IN)
        return MESSAGE_FOREIGN;
    reader.at += 4;
    count = number16(p + 6);
    status = follow_aliases(&reader, count < RECORDS ? count : RECORDS, out);
    /* a server that knows of no record says so in the part behind the answers */
    out->is_alias = status == MESSAGE_NO_DATA && out->aliases > 0 && number16(p + 8) == 0;
    if (status == MESSAGE_FOUND && out->aliases > 0)
        message_bound(out, out->ttl);
    return status;
}

const char *message_type_name(uint16_t type)
{
    static const char *const names[] = {
        [MESSAGE_A] = "A", [MESSAGE_AAAA] = "AAAA", [MESSAGE_SRV] = "SRV", [MESSAGE_PTR] = "PTR"
    };

    assert(type < countof(names) && names[type] != NULL);
    return names[type];
}

const char *message_why(enum message_status status)
{
    static const char *const texts[] = {
        [MESSAGE_FOUND] = "it was found",
        [MESSAGE_NO_DATA] = "the name has no record of the type",
        [MESSAGE_CUT] = "the answer is cut",
        [MESSAGE_MALFORMED] = "the answer is malformed",
        [MESSAGE_LOOP] = "the aliases do not end",
        [MESSAGE_FOREIGN] = "the answer is about another name",
    };

    assert(status <= MESSAGE_FOREIGN);
    return texts[status];
}

int message_is_name(const char *text)
{
    size_t label = 0, n = 0;

    for (; text[n] != '\0'; n++) {
        if (n >= 254)
            return 0;
        if (text[n] == '.' && label == 0)
            return 0;
        if (text[n] == '.')
            label = 0;
        else if (!is_printable((uint8_t)text[n]) || ++label > LABEL_MOST)
            return 0;
    }
    return n > 0 && (n < 254 || text[n - 1] == '.');
}

/* ---- Kept answers ---- */

static int compare_services(const void *a, const void *b)
{
    const struct message_item *one = a, *other = b;

    if (one->priority != other->priority)
        return one->priority < other->priority ? -1 : 1;
    return (other->weight > one->weight) - (other->weight < one->weight);
}

struct names_answer *names_answer_create(
    const struct memory *memory, const struct message *message, uint64_t now_ms, int64_t valid_ms)
{
    size_t items = message->n * sizeof(message->items[0]), name = strlen(message->canonical) + 1;
    size_t size = sizeof(struct names_answer) + items + name + message->text_n;
    struct names_answer *answer = memory_alloc(memory, size);
    char *text;

    assert(message->n <= MESSAGE_ITEMS && message->text_n <= MESSAGE_TEXT);
    if (answer == NULL)
        return NULL;
    text = (char *)answer + sizeof(*answer) + items;
    *answer = (struct names_answer) {
        .holders = 1,
        .type = message->type,
        .ttl = message->ttl,
        .since_ms = now_ms,
        .n = message->n,
        .size = size,
        .canonical = text,
        .text = text + name,
    };
    memcpy(answer->items, message->items, items);
    memcpy(text, message->canonical, name);
    memcpy(text + name, message->text, message->text_n);
    if (valid_ms > 0) {
        answer->ttl = (uint32_t)(valid_ms < 1000 ? 1 : valid_ms / 1000);
        for (unsigned i = 0; i < answer->n; i++)
            answer->items[i].ttl = answer->ttl;
    }
    if (answer->type == MESSAGE_SRV)
        qsort(answer->items, answer->n, sizeof(answer->items[0]), compare_services);
    return answer;
}

struct names_answer *names_answer_share(struct names_answer *answer)
{
    assert(answer->holders > 0);
    answer->holders++;
    return answer;
}

void names_answer_drop(const struct memory *memory, struct names_answer **answer)
{
    if (*answer == NULL)
        return;
    assert((*answer)->holders > 0);
    if (--(*answer)->holders == 0)
        memory_release(memory, *answer);
    *answer = NULL;
}

uint32_t names_answer_left(const struct names_answer *answer, uint32_t ttl, uint64_t now_ms)
{
    uint64_t passed = (now_ms - answer->since_ms) / 1000;

    assert(now_ms >= answer->since_ms);
    return passed < ttl ? (uint32_t)(ttl - passed) : 0;
}
