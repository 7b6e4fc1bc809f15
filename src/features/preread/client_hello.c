/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser, a machine of steps: a step takes a number, or skips bytes, and names a successor. The
 * lengths within a message are checked when a step begins, so that a message with contradictory
 * lengths is known as early as nginx knows it. */
#include "features/preread/client_hello.h"

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

/* Bits of client_hello's `has`. */
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

/* Whether the bytes of a step are a number; bytes of the rest are skipped. */
static const bool is_number[STEPS] = {
    [STEP_MESSAGE] = true,
    [STEP_VERSION] = true,
    [STEP_SESSION_LENGTH] = true,
    [STEP_CIPHERS_LENGTH] = true,
    [STEP_METHODS_LENGTH] = true,
    [STEP_EXTENSIONS_LENGTH] = true,
    [STEP_EXTENSION] = true,
    [STEP_NAMES_LENGTH] = true,
    [STEP_NAME_HEAD] = true,
    [STEP_PROTOCOLS_LENGTH] = true,
    [STEP_PROTOCOL_LENGTH] = true,
    [STEP_VERSIONS_LENGTH] = true,
};

static void refuse(struct client_hello *hello)
{
    hello->status = CLIENT_HELLO_NONE;
    hello->need = 0;
}

static bool is_within_extension(enum step step)
{
    return step >= STEP_EXTENSION_REST;
}

/* Begins a step of n bytes, if the message, or the extension, has as many. */
static void begin_step(struct client_hello *hello, enum step step, uint32_t n)
{
    uint32_t most = is_within_extension(step) ? hello->extension : hello->left;

    assert(step > STEP_MESSAGE && step < STEPS);
    assert(hello->need == 0 && hello->extension <= hello->left);
    assert(!is_number[step] || (n > 0 && n <= sizeof(hello->number)));
    if (n > most) {
        refuse(hello);
        return;
    }
    hello->step = (uint8_t)step;
    hello->need = n;
    if (is_number[step])
        hello->number = 0;
}

/* ---- Extensions ---- */

static void begin_extension(struct client_hello *hello)
{
    assert(hello->extension == 0);
    if (hello->left == 0)
        hello->status = CLIENT_HELLO_WHOLE;
    else
        begin_step(hello, STEP_EXTENSION, 4);
}

/* Notes an extension that may come only once; false: a repetition. */
static bool note_extension(struct client_hello *hello, unsigned bit)
{
    bool is_new = (hello->has & bit) == 0;

    hello->has |= (uint8_t)bit;
    return is_new;
}

static void take_extension(struct client_hello *hello)
{
    unsigned type = hello->number >> 16;

    if ((hello->number & 0xffff) > hello->left) {
        refuse(hello);
        return;
    }
    hello->extension = hello->number & 0xffff;
    if (type == EXTENSION_SERVER_NAME && note_extension(hello, HAS_NAME))
        begin_step(hello, STEP_NAMES_LENGTH, 2);
    else if (type == EXTENSION_PROTOCOLS && note_extension(hello, HAS_PROTOCOLS))
        begin_step(hello, STEP_PROTOCOLS_LENGTH, 2);
    else if (type == EXTENSION_VERSIONS)
        begin_step(hello, STEP_VERSIONS_LENGTH, 1);
    else if (type == EXTENSION_SERVER_NAME || type == EXTENSION_PROTOCOLS)
        refuse(hello);
    else
        begin_step(hello, STEP_EXTENSION_REST, hello->extension);
}

static void take_name_head(struct client_hello *hello)
{
    if (hello->number >> 16 != NAME_OF_HOST)
        refuse(hello);
    else
        begin_step(hello, STEP_NAME, hello->number & 0xffff);
}

/* Notes the name, ended by the latest byte, and skips the rest of the extension. */
static void take_name(struct client_hello *hello)
{
    hello->name.n = hello->number;
    hello->name.at = hello->taken - hello->name.n;
    begin_step(hello, STEP_EXTENSION_REST, hello->extension);
}

static void take_protocol(struct client_hello *hello)
{
    struct client_hello_part *all = &hello->protocols;

    if (all->n == 0)
        all->at = hello->taken - hello->number - 1;
    all->n = hello->taken - all->at;
    assert(all->n > hello->number);
    if (hello->extension > 0)
        begin_step(hello, STEP_PROTOCOL_LENGTH, 1);
    else
        begin_extension(hello);
}

/* Begins the first bytes of a list, up to the end of the extension. */
static void begin_list(struct client_hello *hello, enum step step, uint32_t n)
{
    if (hello->number != hello->extension)
        refuse(hello);
    else
        begin_step(hello, step, n);
}

static void take_protocol_length(struct client_hello *hello)
{
    if (hello->number == 0)
        refuse(hello);
    else
        begin_step(hello, STEP_PROTOCOL, hello->number);
}

/* Takes a list of versions as a sign of TLS 1.3, the only version with the list, as nginx does. */
static void take_versions_length(struct client_hello *hello)
{
    if (hello->number < 2) {
        refuse(hello);
        return;
    }
    begin_list(hello, STEP_VERSIONS, hello->number);
    if (hello->status == CLIENT_HELLO_MORE)
        hello->version = TLS1_3;
}

/* Does what follows a step of an extension. */
static void end_extension_step(struct client_hello *hello)
{
    switch ((enum step)hello->step) {
    case STEP_NAMES_LENGTH:
        begin_list(hello, STEP_NAME_HEAD, 3);
        break;
    case STEP_NAME_HEAD:
        take_name_head(hello);
        break;
    case STEP_NAME:
        take_name(hello);
        break;
    case STEP_PROTOCOLS_LENGTH:
        begin_list(hello, STEP_PROTOCOL_LENGTH, 1);
        break;
    case STEP_PROTOCOL_LENGTH:
        take_protocol_length(hello);
        break;
    case STEP_PROTOCOL:
        take_protocol(hello);
        break;
    case STEP_VERSIONS_LENGTH:
        take_versions_length(hello);
        break;
    default:
        assert(hello->step == STEP_EXTENSION_REST || hello->step == STEP_VERSIONS);
        begin_extension(hello);
    }
}

/* ---- The message ---- */

static void take_message(struct client_hello *hello)
{
    if (hello->number >> 24 != MESSAGE_CLIENT_HELLO) {
        refuse(hello);
        return;
    }
    hello->left = hello->number & 0xffffff;
    begin_step(hello, STEP_VERSION, 2);
}

/* Begins the extensions, which fill the rest of a message, and may be missing. */
static void take_methods(struct client_hello *hello)
{
    if (hello->left == 0)
        hello->status = CLIENT_HELLO_WHOLE;
    else
        begin_step(hello, STEP_EXTENSIONS_LENGTH, 2);
}

static void take_extensions_length(struct client_hello *hello)
{
    if (hello->number != hello->left)
        refuse(hello);
    else
        begin_extension(hello);
}

/* Does the work at the end of a step, when all bytes have come. */
static void end_step(struct client_hello *hello)
{
    assert(hello->need == 0 && hello->status == CLIENT_HELLO_MORE);
    switch ((enum step)hello->step) {
    case STEP_BEGIN:
        hello->step = STEP_MESSAGE;
        hello->need = 4;
        break;
    case STEP_MESSAGE:
        take_message(hello);
        break;
    case STEP_VERSION:
        hello->version = (uint16_t)hello->number;
        begin_step(hello, STEP_RANDOM, RANDOM_SIZE);
        break;
    case STEP_RANDOM:
        begin_step(hello, STEP_SESSION_LENGTH, 1);
        break;
    case STEP_SESSION_LENGTH:
        begin_step(hello, STEP_SESSION, hello->number);
        break;
    case STEP_SESSION:
        begin_step(hello, STEP_CIPHERS_LENGTH, 2);
        break;
    case STEP_CIPHERS_LENGTH:
        begin_step(hello, STEP_CIPHERS, hello->number);
        break;
    case STEP_CIPHERS:
        begin_step(hello, STEP_METHODS_LENGTH, 1);
        break;
    case STEP_METHODS_LENGTH:
        begin_step(hello, STEP_METHODS, hello->number);
        break;
    case STEP_METHODS:
        take_methods(hello);
        break;
    case STEP_EXTENSIONS_LENGTH:
        take_extensions_length(hello);
        break;
    case STEP_EXTENSION:
        take_extension(hello);
        break;
    default:
        end_extension_step(hello);
    }
}

/* Counts n bytes of the message as looked at. */
static void count_taken(struct client_hello *hello, uint32_t n)
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
static void take_record(struct client_hello *hello, const uint8_t *p, uint32_t n)
{
    for (;;) {
        while (hello->need == 0 && hello->status == CLIENT_HELLO_MORE)
            end_step(hello);
        if (n == 0 || hello->status != CLIENT_HELLO_MORE)
            return;
        if (is_number[hello->step]) {
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

/* Decides by the head of a message that is no record of TLS: type and version tell the first
 * message of a client that also supports SSL 2. */
static void take_ssl2(struct client_hello *hello, const uint8_t *head)
{
    if ((head[0] & 0x80) == 0 || head[2] != MESSAGE_CLIENT_HELLO ||
        (head[3] != 0 && head[3] != MAJOR)) {
        refuse(hello);
        return;
    }
    hello->version = (uint16_t)(head[3] << 8 | head[4]);
    hello->status = CLIENT_HELLO_WHOLE;
}

static uint32_t record_length(const uint8_t *head)
{
    return (uint32_t)head[3] << 8 | head[4];
}

enum client_hello_status client_hello_parse(struct client_hello *hello, fb_bytes in)
{
    assert(hello->at <= in.n && hello->step < STEPS);
    while (hello->status == CLIENT_HELLO_MORE && in.n - hello->at >= RECORD_HEAD) {
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
    return (enum client_hello_status)hello->status;
}

void client_hello_copy(fb_bytes in, struct client_hello_part part, uint8_t *out)
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

void client_hello_list(fb_bytes in, struct client_hello_part part, uint8_t *out)
{
    size_t at = 0;

    assert(part.n >= 2);
    client_hello_copy(in, part, out);
    while (at < part.n) {
        size_t n = out[at];

        assert(n > 0 && n < part.n - at);
        out[at] = ',';
        at += 1 + n;
    }
    memmove(out, out + 1, part.n - 1);
}

const char *client_hello_version(uint16_t version)
{
    static const char *const names[] = { "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3" };
    unsigned minor = version & 0xff;

    if (version == SSL2)
        return "SSLv2";
    return version >> 8 == MAJOR && minor < countof(names) ? names[minor] : "";
}
