/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser, a machine of steps: a step takes a number, or skips bytes, and names a successor. The
 * lengths within a message are checked when a step begins, so that a message with contradictory
 * lengths is known as early as nginx knows it. */
#include "tls/hello.h"

#include "base/compiler.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define RECORD_HEAD 5
#define RECORD_HANDSHAKE 22
#define MESSAGE_CLIENT_HELLO 1
#define MAJOR 3
#define SSL2 0x0002
#define TLS1_3 0x0304
#define RANDOM_SIZE 32
#define NAME_OF_HOST 0

enum {
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_PROTOCOLS = 16,
    EXTENSION_VERSIONS = 43,
};

/* Bits of tls_hello's `has`. */
enum { HAS_NAME = 1, HAS_PROTOCOLS = 2 };

enum step {
    STEP_BEGIN,
    STEP_MESSAGE, /* type and length */
    STEP_VERSION,
    STEP_RANDOM,
    STEP_SESSION_LENGTH,
    STEP_SESSION,
    STEP_CIPHERS_LENGTH,
    STEP_CIPHERS,
    STEP_METHODS_LENGTH,
    STEP_METHODS,
    STEP_EXTENSIONS_LENGTH,
    STEP_EXTENSION, /* type and length of the next one */
    STEP_EXTENSION_REST,
    STEP_NAMES_LENGTH,
    STEP_NAME_HEAD, /* type and length of the first name */
    STEP_NAME,
    STEP_PROTOCOLS_LENGTH,
    STEP_PROTOCOL_LENGTH,
    STEP_PROTOCOL,
    STEP_VERSIONS_LENGTH,
    STEP_VERSIONS,
    STEPS,
};

/* How a step ends: by a function, or with the next step, of so many bytes. */
struct step_row {
    bool is_number; /* the bytes are a number; else they are skipped */
    void (*end)(struct tls_hello *hello);
    uint8_t next, next_n; /* 0: as many as the number says */
};

static const struct step_row steps[STEPS];

static void refuse_hello(struct tls_hello *hello)
{
    hello->status = TLS_HELLO_NONE;
    hello->need = 0;
}

static bool is_within_extension(enum step step)
{
    return step >= STEP_EXTENSION_REST;
}

/* Begins a step of n bytes, if the last was valid and the message, or the extension, has as
 * many. */
static void begin_step(struct tls_hello *hello, bool valid, enum step step, uint32_t n)
{
    uint32_t most = is_within_extension(step) ? hello->extension : hello->left;

    assert(step > STEP_MESSAGE && step < STEPS);
    assert(hello->need == 0 && (!valid || hello->extension <= hello->left));
    assert(!steps[step].is_number || (n > 0 && n <= sizeof(hello->number)));
    if (!valid || n > most) {
        refuse_hello(hello);
        return;
    }
    hello->step = (uint8_t)step;
    hello->need = n;
    if (steps[step].is_number)
        hello->number = 0;
}

/* ---- Extensions ---- */

static void begin_extension(struct tls_hello *hello)
{
    assert(hello->extension == 0);
    if (hello->left == 0)
        hello->status = TLS_HELLO_WHOLE;
    else
        begin_step(hello, true, STEP_EXTENSION, 4);
}

/* Refuses the repetition of an extension that is looked at. */
static void take_extension(struct tls_hello *hello)
{
    unsigned type = hello->number >> 16, n = hello->number & 0xffff;
    unsigned bit = type == EXTENSION_SERVER_NAME ? HAS_NAME
                   : type == EXTENSION_PROTOCOLS ? HAS_PROTOCOLS
                                                 : 0;
    bool valid = n <= hello->left && (hello->has & bit) == 0;

    hello->has |= (uint8_t)bit;
    hello->extension = n;
    if (bit == HAS_NAME)
        begin_step(hello, valid, STEP_NAMES_LENGTH, 2);
    else if (bit == HAS_PROTOCOLS)
        begin_step(hello, valid, STEP_PROTOCOLS_LENGTH, 2);
    else if (type == EXTENSION_VERSIONS)
        begin_step(hello, valid, STEP_VERSIONS_LENGTH, 1);
    else
        begin_step(hello, valid, STEP_EXTENSION_REST, n);
}

/* Begins the first bytes of a list, up to the end of the extension. */
static void begin_list(struct tls_hello *hello)
{
    const struct step_row *row = &steps[hello->step];

    begin_step(hello, hello->number == hello->extension, (enum step)row->next, row->next_n);
}

static void take_name_head(struct tls_hello *hello)
{
    begin_step(hello, hello->number >> 16 == NAME_OF_HOST, STEP_NAME, hello->number & 0xffff);
}

/* Notes the name, ended by the latest byte, and skips the rest of the extension. */
static void take_name(struct tls_hello *hello)
{
    hello->name.n = hello->number;
    hello->name.at = hello->taken - hello->name.n;
    begin_step(hello, true, STEP_EXTENSION_REST, hello->extension);
}

static void take_protocol_length(struct tls_hello *hello)
{
    begin_step(hello, hello->number > 0, STEP_PROTOCOL, hello->number);
}

static void take_protocol(struct tls_hello *hello)
{
    struct tls_hello_part *all = &hello->protocols;

    if (all->n == 0)
        all->at = hello->taken - hello->number - 1;
    all->n = hello->taken - all->at;
    assert(all->n > hello->number);
    if (hello->extension > 0)
        begin_step(hello, true, STEP_PROTOCOL_LENGTH, 1);
    else
        begin_extension(hello);
}

/* Takes a list of versions as a sign of TLS 1.3, the only version with the list, as nginx does. */
static void take_versions_length(struct tls_hello *hello)
{
    bool valid = hello->number >= 2 && hello->number == hello->extension;

    begin_step(hello, valid, STEP_VERSIONS, hello->number);
    if (valid)
        hello->version = TLS1_3;
}

/* ---- The message ---- */

static void begin_hello_message(struct tls_hello *hello)
{
    hello->step = STEP_MESSAGE;
    hello->need = 4;
}

static void take_message(struct tls_hello *hello)
{
    hello->left = hello->number & 0xffffff;
    begin_step(hello, hello->number >> 24 == MESSAGE_CLIENT_HELLO, STEP_VERSION, 2);
}

static void take_version(struct tls_hello *hello)
{
    hello->version = (uint16_t)hello->number;
    begin_step(hello, true, STEP_RANDOM, RANDOM_SIZE);
}

/* Begins the extensions, which fill the rest of a message, and may be missing. */
static void take_methods(struct tls_hello *hello)
{
    if (hello->left == 0)
        hello->status = TLS_HELLO_WHOLE;
    else
        begin_step(hello, true, STEP_EXTENSIONS_LENGTH, 2);
}

static void take_extensions_length(struct tls_hello *hello)
{
    if (hello->number != hello->left)
        refuse_hello(hello);
    else
        begin_extension(hello);
}

static const struct step_row steps[STEPS] = {
    [STEP_BEGIN] = { false, begin_hello_message, 0, 0 },
    [STEP_MESSAGE] = { true, take_message, 0, 0 },
    [STEP_VERSION] = { true, take_version, 0, 0 },
    [STEP_RANDOM] = { false, NULL, STEP_SESSION_LENGTH, 1 },
    [STEP_SESSION_LENGTH] = { true, NULL, STEP_SESSION, 0 },
    [STEP_SESSION] = { false, NULL, STEP_CIPHERS_LENGTH, 2 },
    [STEP_CIPHERS_LENGTH] = { true, NULL, STEP_CIPHERS, 0 },
    [STEP_CIPHERS] = { false, NULL, STEP_METHODS_LENGTH, 1 },
    [STEP_METHODS_LENGTH] = { true, NULL, STEP_METHODS, 0 },
    [STEP_METHODS] = { false, take_methods, 0, 0 },
    [STEP_EXTENSIONS_LENGTH] = { true, take_extensions_length, 0, 0 },
    [STEP_EXTENSION] = { true, take_extension, 0, 0 },
    [STEP_EXTENSION_REST] = { false, begin_extension, 0, 0 },
    [STEP_NAMES_LENGTH] = { true, begin_list, STEP_NAME_HEAD, 3 },
    [STEP_NAME_HEAD] = { true, take_name_head, 0, 0 },
    [STEP_NAME] = { false, take_name, 0, 0 },
    [STEP_PROTOCOLS_LENGTH] = { true, begin_list, STEP_PROTOCOL_LENGTH, 1 },
    [STEP_PROTOCOL_LENGTH] = { true, take_protocol_length, 0, 0 },
    [STEP_PROTOCOL] = { false, take_protocol, 0, 0 },
    [STEP_VERSIONS_LENGTH] = { true, take_versions_length, 0, 0 },
    [STEP_VERSIONS] = { false, begin_extension, 0, 0 },
};

/* Does the work at the end of a step, when all bytes have come. */
static void end_step(struct tls_hello *hello)
{
    const struct step_row *row = &steps[hello->step];

    assert(hello->need == 0 && hello->status == TLS_HELLO_MORE);
    if (row->end != NULL)
        row->end(hello);
    else
        begin_step(
            hello, true, (enum step)row->next, row->next_n > 0 ? row->next_n : hello->number);
}

/* Counts n bytes of the message as looked at. */
static void count_taken(struct tls_hello *hello, uint32_t n)
{
    assert(n <= hello->need);
    hello->need -= n;
    hello->taken += n;
    if (hello->step > STEP_MESSAGE)
        hello->left -= n;
    if (is_within_extension((enum step)hello->step))
        hello->extension -= n;
}

/* Takes the contents of a record. */
static void take_record(struct tls_hello *hello, const uint8_t *p, uint32_t n)
{
    for (;;) {
        while (hello->need == 0 && hello->status == TLS_HELLO_MORE)
            end_step(hello);
        if (n == 0 || hello->status != TLS_HELLO_MORE)
            return;
        if (steps[hello->step].is_number) {
            hello->number = hello->number << 8 | *p;
            count_taken(hello, 1);
            p++;
            n--;
        } else {
            uint32_t part = n < hello->need ? n : hello->need;

            count_taken(hello, part);
            p += part;
            n -= part;
        }
    }
}

/* ---- Records ---- */

/* Decides by a head that is no record of TLS: perhaps of a client that also supports SSL 2. */
static void take_ssl2(struct tls_hello *hello, const uint8_t *head)
{
    if ((head[0] & 0x80) == 0 || head[2] != MESSAGE_CLIENT_HELLO ||
        (head[3] != 0 && head[3] != MAJOR)) {
        refuse_hello(hello);
        return;
    }
    hello->version = (uint16_t)(head[3] << 8 | head[4]);
    hello->status = TLS_HELLO_WHOLE;
}

static uint32_t record_length(const uint8_t *head)
{
    return (uint32_t)head[3] << 8 | head[4];
}

enum tls_hello_status tls_hello_parse(struct tls_hello *hello, fb_bytes in)
{
    assert(hello->at <= in.n && hello->step < STEPS);
    while (hello->status == TLS_HELLO_MORE && in.n - hello->at >= RECORD_HEAD) {
        const uint8_t *head = in.p + hello->at;

        if (head[0] != RECORD_HANDSHAKE || head[1] != MAJOR) {
            take_ssl2(hello, head);
            break;
        }
        if (in.n - hello->at - RECORD_HEAD < record_length(head))
            break;
        take_record(hello, head + RECORD_HEAD, record_length(head));
        hello->at += RECORD_HEAD + record_length(head);
    }
    assert(hello->at <= in.n && hello->taken <= hello->at);
    return (enum tls_hello_status)hello->status;
}

void tls_hello_copy(fb_bytes in, struct tls_hello_part part, uint8_t *out)
{
    size_t before = part.at, left = part.n;

    while (left > 0) {
        size_t n = record_length(in.p);
        size_t from = before < n ? before : n, taken = n - from < left ? n - from : left;

        assert(in.n >= RECORD_HEAD + n && in.p[0] == RECORD_HANDSHAKE);
        memcpy(out, in.p + RECORD_HEAD + from, taken);
        out += taken;
        left -= taken;
        before -= from;
        in.p += RECORD_HEAD + n;
        in.n -= RECORD_HEAD + n;
    }
}

void tls_hello_list(fb_bytes in, struct tls_hello_part part, uint8_t *out)
{
    size_t at = 0;

    assert(part.n >= 2);
    tls_hello_copy(in, part, out);
    while (at < part.n) {
        size_t n = out[at];

        assert(n > 0 && n < part.n - at);
        out[at] = ',';
        at += 1 + n;
    }
    memmove(out, out + 1, part.n - 1);
}

const char *tls_hello_version(uint16_t version)
{
    static const char *const names[] = { "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3" };
    unsigned minor = version & 0xff;

    if (version == SSL2)
        return "SSLv2";
    return version >> 8 == MAJOR && minor < countof(names) ? names[minor] : "";
}
