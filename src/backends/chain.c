/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds circles. The connecting worker notes a connection's chain for the accepting worker, by
 * source address and destination port.
 *
 * A connection goes to this host where source and destination address are equal, or both of the
 * loopback interface. The kernel is asked for the source address only where the destination port
 * is ours, and for the address of a different host not again for a minute. Unix sockets have no
 * address to compare. */
#include "backends/chain.h"

#include "base/compiler.h"
#include "session/phases.h"
#include "session/record.h"
#include "session/session.h"
#include "shm/siphash.h"

#include <string.h>

#define OTHER_MS 60000

/* The addresses of a connection, known at both ends. */
struct ends {
    uint8_t from[16]; /* IPv6, or IPv4 mapped into it */
    in_port_t from_port, to_port;
};

static void get_host(const struct address *address, uint8_t host[16])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    if (address->any.sa_family == AF_INET6) {
        memcpy(host, &address->in6.sin6_addr, 16);
        return;
    }
    memcpy(host, mapped, sizeof(mapped));
    memcpy(host + sizeof(mapped), &address->in.sin_addr, 4);
}

static uint64_t hash(const void *bytes, size_t n)
{
    static const uint64_t key[2]; /* peers choose none of these bytes */

    return siphash(key, bytes, n);
}

static uint64_t key_of(const struct address *from, in_port_t to_port)
{
    struct ends ends;

    memset(&ends, 0, sizeof(ends));
    get_host(from, ends.from);
    ends.from_port = address_port(from);
    ends.to_port = to_port;
    return hash(&ends, sizeof(ends));
}

static bool is_loopback(const uint8_t host[16])
{
    static const uint8_t one[16] = { [15] = 1 };
    static const uint8_t mapped[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };

    return memcmp(host, one, 16) == 0 || memcmp(host, mapped, sizeof(mapped)) == 0;
}

void chain_init(struct stream *stream, const struct stream_settings *settings, uint32_t generation)
{
    if (!stream_connects(settings))
        return;
    stream->chains = (struct chain_use) {
        .table = &stream->shared->common->chains,
        .listen_ports = settings->listen_ports,
        .binding_n = settings->binding_n,
        .tag = (uint16_t)generation,
    };
}

/* ---- A client ---- */

/* Compares the client's chain with the binding, and keeps the chain for the connection to a server;
 * false: a circle. */
static COLD bool follow_chain(struct fb_conn *conn, uint32_t chain)
{
    const struct binding *binding = session_binding_of(conn);
    const struct chain_use *use = &stream_of(conn)->chains;
    struct session_conn *session;
    struct session_record *record;

    if (use->binding_n > CHAIN_BITS ? chain > use->binding_n : (chain & binding->chain) != 0) {
        conn_log(conn, LEVEL_ERROR, 0,
            "a connection of this daemon has come back to %s: servers lead to each other in a "
            "circle",
            binding->text);
        session_set_status(conn, STATUS_INTERNAL);
        conn_close(conn);
        return false;
    }
    session = session_conn_make(conn);
    record = session != NULL ? session_record_create(session) : NULL;
    if (record != NULL)
        record->chain = chain;
    return true;
}

bool chain_begin(struct fb_conn *conn)
{
    const struct chain_use *use = &stream_of(conn)->chains;
    struct address peer;
    uint32_t chain;
    uint64_t key;

    assert(!conn->outgoing);
    if (use->table == NULL || conn->peer.family == AF_UNIX)
        return true;
    conn_peer_address(conn, &peer);
    key = key_of(&peer, address_port(&session_binding_of(conn)->address));
    chain = chains_take(use->table, key, use->tag, conn->net->loop.clock.mono_ms);
    return likely(chain == 0) || follow_chain(conn, chain);
}

/* ---- A connection to a server ---- */

static bool is_known_other(const struct chain_use *use, const struct address *to, uint64_t now_ms)
{
    uint8_t host[16];
    uint64_t other;

    get_host(to, host);
    other = hash(host, sizeof(host));
    return use->others[other % CHAIN_OTHERS].address == other &&
           now_ms < use->others[other % CHAIN_OTHERS].until_ms;
}

static void note_other(struct chain_use *use, const uint8_t host[16], uint64_t now_ms)
{
    uint64_t other = hash(host, 16);

    use->others[other % CHAIN_OTHERS].address = other;
    use->others[other % CHAIN_OTHERS].until_ms = now_ms + OTHER_MS;
}

/* Whether the connection goes to this host; `local` is the source address. */
static bool is_ours(
    struct chain_use *use, const struct address *to, const struct address *local, uint64_t now_ms)
{
    uint8_t host[16], local_host[16];

    get_host(to, host);
    get_host(local, local_host);
    if (memcmp(host, local_host, sizeof(host)) == 0 ||
        (is_loopback(host) && is_loopback(local_host)))
        return true;
    note_other(use, host, now_ms);
    return false;
}

COLD void chain_note(struct fb_conn *client, struct fb_conn *server, const struct fb_target *target)
{
    struct chain_use *use = &stream_of(client)->chains;
    const struct session_record *record = session_record_of(client);
    struct address local = { .length = sizeof(local.un) };
    uint64_t now = client->net->loop.clock.mono_ms;
    uint32_t chain = record != NULL ? record->chain : 0;

    assert(server->outgoing && use->table != NULL);
    if (client->outgoing || server->source.fd == -1 || is_known_other(use, &target->address, now) ||
        server->source.io->name(&server->source, &local.any, &local.length) == -1 ||
        local.any.sa_family != target->address.any.sa_family ||
        !is_ours(use, &target->address, &local, now))
        return;
    chain = use->binding_n > CHAIN_BITS ? chain + 1 : chain | session_binding_of(client)->chain;
    chains_put(use->table, key_of(&local, address_port(&target->address)), use->tag, chain, now);
}
