/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of the messages, written and read by copies of structs without padding. Lengths are
 * not trusted: they have to add up to the packet, and fields that a kind does not use are 0. */
#include "tls/message.h"

#include "tls/record.h"

#include <assert.h>
#include <string.h>

/* Paths follow, and a name, of a client, or the peer's bytes. */
struct request_wire {
    uint64_t server;
    uint32_t kind, number, role, profile;
    uint32_t name_n, paths_n;
};

struct part_wire {
    uint32_t number, more, step, used;
    uint32_t out_n, session_n, peer_n, facts_n, text_n, severe;
};

_Static_assert(
    sizeof(struct request_wire) + TLS_PATHS_MOST + TLS_FEED_MOST == TLS_REQUEST_MOST, "header");
_Static_assert(sizeof(struct part_wire) + TLS_PART_MOST + sizeof(struct tls_session) +
                       TLS_PEER_MOST + TLS_FACTS_MOST ==
                   TLS_PART_SIZE_MOST,
    "header");
_Static_assert(TLS_HANDSHAKES_MOST <= 1u << TLS_PLACE_BITS, "places");

/* Whether a number has a place and a generation. */
static bool is_handshake_number(uint32_t number)
{
    return number >> TLS_PLACE_BITS != 0 && TLS_PLACE(number) < TLS_HANDSHAKES_MOST;
}

static bool is_server_name(fb_bytes name)
{
    return name.n <= TLS_NAME_MOST && (name.n == 0 || memchr(name.p, '\0', name.n) == NULL);
}

/* Whether the bytes are texts, each with a NUL behind it. */
static bool are_paths(fb_bytes paths)
{
    return paths.n == 0 || (paths.n <= TLS_PATHS_MOST && paths.p[paths.n - 1] == '\0');
}

/* Appends bytes to a message of n bytes. */
static void append_wire(uint8_t *p, size_t *n, fb_bytes bytes)
{
    if (bytes.n > 0)
        memcpy(p + *n, bytes.p, bytes.n);
    *n += bytes.n;
}

size_t tls_message_write_request(const struct tls_request *request, uint8_t *p)
{
    struct request_wire wire = { .kind = request->kind, .number = request->number };
    fb_bytes paths = { NULL, 0 }, rest = request->in;
    size_t n = sizeof(wire);

    assert(request->kind >= TLS_BEGIN && request->kind <= TLS_TICKET);
    assert(is_handshake_number(request->number));
    assert(request->in.n <= TLS_FEED_MOST);
    if (request->kind == TLS_BEGIN) {
        wire.role = request->start.role;
        wire.profile = request->start.profile;
        paths = request->start.paths;
        wire.paths_n = (uint32_t)paths.n;
        assert(are_paths(paths));
    }
    if (wire.role == TLS_CLIENT) {
        assert(request->in.n == 0 && is_server_name(request->start.name));
        wire.server = request->start.server;
        rest = request->start.name;
        wire.name_n = (uint32_t)rest.n;
    }
    assert(request->kind != TLS_CANCEL || rest.n == 0);
    memcpy(p, &wire, sizeof(wire));
    append_wire(p, &n, paths);
    append_wire(p, &n, rest);
    return n;
}

/* Whether each field of a request of n bytes behind the header is in range. */
static bool check_request(const struct request_wire *wire, size_t n)
{
    if (wire->kind < TLS_BEGIN || wire->kind > TLS_TICKET || !is_handshake_number(wire->number) ||
        wire->paths_n > (wire->kind == TLS_BEGIN ? n : 0) || n - wire->paths_n > TLS_FEED_MOST)
        return false;
    if (wire->kind == TLS_BEGIN && wire->role == TLS_CLIENT)
        return wire->name_n == n - wire->paths_n;
    if (wire->kind == TLS_BEGIN ? wire->role != TLS_SERVER : (wire->role | wire->profile) != 0)
        return false;
    return (wire->server | wire->name_n) == 0 && (wire->kind != TLS_CANCEL || n == 0);
}

int tls_message_read_request(struct tls_request *request, const uint8_t *p, size_t n)
{
    struct request_wire wire;

    if (n < sizeof(wire) || n > TLS_REQUEST_MOST)
        return -1;
    memcpy(&wire, p, sizeof(wire));
    p += sizeof(wire);
    n -= sizeof(wire);
    if (!check_request(&wire, n))
        return -1;
    *request = (struct tls_request) {
        .kind = (enum tls_request_kind)wire.kind,
        .number = wire.number,
        .start = { .role = (enum tls_role)wire.role, .profile = wire.profile },
    };
    request->start.paths = (fb_bytes) { p, wire.paths_n };
    if (!are_paths(request->start.paths))
        return -1;
    p += wire.paths_n;
    n -= wire.paths_n;
    if (wire.role == TLS_SERVER) {
        request->in = (fb_bytes) { p, n };
        return 0;
    }
    request->start.name = (fb_bytes) { p, n };
    request->start.server = wire.server;
    return is_server_name(request->start.name) ? 0 : -1;
}

static void copy_keys(struct tls_keys *to, const struct tls_keys *from)
{
    to->sequence = from->sequence;
    memcpy(to->secret, from->secret, sizeof(to->secret));
    memcpy(to->key, from->key, sizeof(to->key));
    memcpy(to->iv, from->iv, sizeof(to->iv));
}

/* Copies the fields alone, to zeroed memory: neither padding nor bytes behind a length are sent. */
static void copy_session(struct tls_session *to, const struct tls_session *from)
{
    assert(from->session_id_n <= sizeof(from->session_id));
    assert(from->alpn_n <= sizeof(from->alpn) && from->name_n <= sizeof(from->name));
    memset(to, 0, sizeof(*to));
    to->version = from->version;
    to->suite = from->suite;
    to->group = from->group;
    to->resumed = from->resumed;
    to->verify = from->verify;
    to->awaits_tickets = from->awaits_tickets;
    to->verify_code = from->verify_code;
    copy_keys(&to->in, &from->in);
    copy_keys(&to->out, &from->out);
    to->plain_most = from->plain_most;
    to->session_id_n = from->session_id_n;
    to->alpn_n = from->alpn_n;
    to->name_n = from->name_n;
    memcpy(to->session_id, from->session_id, from->session_id_n);
    memcpy(to->alpn, from->alpn, from->alpn_n);
    memcpy(to->name, from->name, from->name_n);
}

/* Whether every field of a session is in range; the suite is checked by its user. */
static bool check_session(const struct tls_session *session)
{
    return (session->version == TLS_1_2 || session->version == TLS_1_3) && session->resumed <= 1 &&
           session->verify <= TLS_VERIFIED_OTHER && session->awaits_tickets <= 1 &&
           session->plain_most > 0 && session->plain_most <= TLS_PLAIN_MOST &&
           session->session_id_n <= sizeof(session->session_id) &&
           memchr(session->name, '\0', session->name_n) == NULL;
}

/* Copies a text for a line of a log; returns the length. */
static size_t copy_failure(uint8_t *to, const char *text)
{
    size_t n = strnlen(text, TLS_TEXT - 1);

    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)text[i] < ' ' || text[i] == 0x7f ? ' ' : (uint8_t)text[i];
    return n;
}

size_t tls_message_write_part(
    uint32_t number, enum tls_step step, const struct tls_reply *reply, size_t from, uint8_t *p)
{
    size_t left = reply->out_n - from, n = sizeof(struct part_wire);
    struct part_wire wire = { .number = number };

    assert(is_handshake_number(number) && step <= TLS_FAILED);
    assert(from <= reply->out_n && reply->out_n <= TLS_FLIGHT_MOST);
    assert(reply->used <= TLS_FEED_MOST && reply->peer_n <= TLS_PEER_MOST);
    assert(reply->facts_n <= TLS_FACTS_MOST);
    wire.more = left > TLS_PART_MOST;
    wire.out_n = wire.more ? TLS_PART_MOST : (uint32_t)left;
    if (wire.out_n > 0)
        memcpy(p + n, reply->out + from, wire.out_n);
    n += wire.out_n;
    if (!wire.more) {
        wire.step = step;
        wire.used = (uint32_t)reply->used;
    }
    if (wire.step == TLS_DONE) {
        struct tls_session session;

        copy_session(&session, &reply->session);
        memcpy(p + n, &session, sizeof(session));
        explicit_bzero(&session, sizeof(session));
        wire.session_n = sizeof(session);
        wire.peer_n = (uint32_t)reply->peer_n;
        n += wire.session_n;
        if (wire.peer_n > 0)
            memcpy(p + n, reply->peer, wire.peer_n);
        n += wire.peer_n;
        wire.facts_n = (uint32_t)reply->facts_n;
        if (wire.facts_n > 0)
            memcpy(p + n, reply->facts, wire.facts_n);
        n += wire.facts_n;
    } else if (wire.step == TLS_FAILED) {
        wire.severe = reply->severe;
        wire.text_n = (uint32_t)copy_failure(p + n, reply->text);
        n += wire.text_n;
    }
    memcpy(p, &wire, sizeof(wire));
    return n;
}

/* Whether the header is in range by itself, and its lengths add up to n bytes. */
static bool check_part(const struct part_wire *wire, size_t n)
{
    if (!is_handshake_number(wire->number) || wire->more > 1 || wire->step > TLS_FAILED ||
        wire->used > TLS_FEED_MOST || wire->out_n > TLS_PART_MOST)
        return false;
    if (wire->more == 1 && (wire->step | wire->used) != 0)
        return false;
    if (wire->more == 1 && wire->out_n != TLS_PART_MOST)
        return false;
    if (wire->session_n != (wire->step == TLS_DONE ? sizeof(struct tls_session) : 0) ||
        wire->peer_n > (wire->step == TLS_DONE ? TLS_PEER_MOST : 0) ||
        wire->facts_n > (wire->step == TLS_DONE ? TLS_FACTS_MOST : 0) ||
        wire->text_n > (wire->step == TLS_FAILED ? TLS_TEXT - 1 : 0) ||
        wire->severe > (wire->step == TLS_FAILED))
        return false;
    return n == (size_t)wire->out_n + wire->session_n + wire->peer_n + wire->facts_n + wire->text_n;
}

int tls_message_read_part(struct tls_part *part, const uint8_t *p, size_t n)
{
    struct part_wire wire;

    if (n < sizeof(wire))
        return -1;
    memcpy(&wire, p, sizeof(wire));
    p += sizeof(wire);
    if (!check_part(&wire, n - sizeof(wire)))
        return -1;
    *part = (struct tls_part) {
        .number = wire.number,
        .more = wire.more == 1,
        .step = (enum tls_step)wire.step,
        .used = wire.used,
        .out = { p, wire.out_n },
    };
    p += wire.out_n;
    if (wire.step == TLS_DONE) {
        memcpy(&part->session, p, sizeof(part->session));
        part->peer = (fb_bytes) { p + sizeof(part->session), wire.peer_n };
        part->facts = (fb_bytes) { part->peer.p + wire.peer_n, wire.facts_n };
        return check_session(&part->session) && tls_facts_check(part->facts) ? 0 : -1;
    }
    if (wire.text_n >= TLS_TEXT || !tls_facts_is_text(p, wire.text_n))
        return -1;
    part->severe = wire.severe == 1;
    memcpy(part->text, p, wire.text_n);
    return 0;
}
