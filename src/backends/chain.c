/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds circles. The connecting worker notes a connection's chain for the accepting worker, by
 * source address and destination port.
 *
 * A connection goes to this host where source and destination address are equal, or both of the
 * loopback interface. The kernel is asked for the source address only where the destination port is
 * ours, and for a different host not again for a minute. Unix sockets have no address to
 * compare. */
#include "backends/chain.h"

#include "base/compiler.h"
#include "net/conn_connect.h"
#include "session/record.h"
#include "session/server.h"
#include "session/session.h"

#include <string.h>

#define OTHER_MS 60000

static void get_host(const struct conn_peer *peer, uint8_t host[16])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    if (peer->family == AF_INET6) {
        memcpy(host, &peer->in6, 16);
        return;
    }
    memcpy(host, mapped, sizeof(mapped));
    memcpy(host + sizeof(mapped), &peer->in, 4);
}

static uint64_t hash_words(const uint64_t *words, unsigned n)
{
    uint64_t hash = 0;

    for (unsigned i = 0; i < n; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static uint64_t hash_host(const uint8_t host[16])
{
    uint64_t words[2];

    memcpy(words, host, sizeof(words));
    return hash_words(words, 2);
}

static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
    "the port of an address is found without a look at its family");

/* Hashes the addresses of a connection, known at both ends, and of one connection at most; ports
 * in network byte order. */
static uint64_t hash_ends(const struct conn_peer *from, in_port_t to_port)
{
    uint64_t words[3];

    get_host(from, (uint8_t *)words);
    words[2] = (uint64_t)from->port << 16 | to_port;
    return hash_words(words, 3);
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

/* Compares the chain with the binding; false: a circle, and the client is closed. */
static COLD bool compare_chain(struct fb_conn *conn, uint32_t chain)
{
    const struct binding *binding = session_binding_of(conn);
    const struct chain_use *use = &stream_of(conn)->chains;

    if (use->binding_n > CHAIN_BITS ? chain <= use->binding_n : (chain & binding->chain) == 0)
        return true;
    conn_log(conn, LEVEL_ERROR, 0,
        "a connection of this daemon has come back to %s: servers lead to each other in a circle",
        binding->text);
    session_set_status(conn, STATUS_INTERNAL);
    conn_close(conn);
    return false;
}

/* Keeps the chain for the next connection. */
static COLD void keep_chain(struct fb_conn *conn, uint32_t chain)
{
    struct session_conn *session;
    struct session_record *record;

    session = session_conn_make(conn);
    record = session != NULL ? session_record_create(session) : NULL;
    if (record != NULL)
        record->chain = chain;
}

/* Takes the chain of a client's connection; 0: none is noted. */
static uint32_t take_chain(const struct fb_conn *conn)
{
    const struct chain_use *use = &stream_of(conn)->chains;
    const struct binding *binding = conn->owner;

    assert(!conn->outgoing);
    if (use->table == NULL || use->table->used == 0 || conn->peer.family == AF_UNIX)
        return 0;
    return shared_take_chain(use->table, hash_ends(&conn->peer, binding->address.in.sin_port),
        use->tag, conn->net->loop.clock.mono_ms);
}

bool chain_begin(struct fb_conn *conn)
{
    uint32_t chain = take_chain(conn);

    if (likely(chain == 0))
        return true;
    if (session_binding_of(conn)->names == NULL && !compare_chain(conn, chain))
        return false; /* else a name may choose another server */
    keep_chain(conn, chain);
    return true;
}

bool chain_check(struct fb_conn *conn)
{
    const struct session_record *record = session_record_of(conn);
    uint32_t chain = record != NULL ? record->chain : 0;

    if (chain == 0) {
        chain = take_chain(conn); /* noted behind our accept, by another worker */
        if (likely(chain == 0))
            return true;
        keep_chain(conn, chain);
    }
    return compare_chain(conn, chain);
}

/* ---- A connection to a server ---- */

/* Whether the connection goes to this host. */
static bool is_to_this_host(
    struct chain_use *use, const struct fb_conn *server, struct conn_peer *local, uint64_t now_ms)
{
    struct address address = { .length = sizeof(address.un) };
    uint8_t host[16], local_host[16];
    struct chain_other *other;
    uint64_t hash;

    get_host(&server->peer, host);
    hash = hash_host(host);
    other = &use->others[hash % CHAIN_OTHERS];
    if ((other->host == hash && now_ms < other->until_ms) ||
        server->source.io->name(&server->source, &address.any, &address.length) == -1 ||
        address.any.sa_family != server->peer.family)
        return false;
    conn_peer_set(local, &address.any);
    get_host(local, local_host);
    if (memcmp(host, local_host, sizeof(host)) == 0 ||
        (is_loopback(host) && is_loopback(local_host)))
        return true;
    *other = (struct chain_other) { .host = hash, .until_ms = now_ms + OTHER_MS };
    return false;
}

static COLD void note_to_our_port(
    struct chain_use *use, const struct fb_conn *client, const struct fb_conn *server)
{
    const struct session_record *record = session_record_of(client);
    uint64_t now = client->net->loop.clock.mono_ms;
    uint32_t chain = record != NULL ? record->chain : 0;
    struct conn_peer local;

    if (client->outgoing || server->source.fd == -1 || !is_to_this_host(use, server, &local, now))
        return;
    chain = use->binding_n > CHAIN_BITS ? chain + 1 : chain | session_binding_of(client)->chain;
    shared_put_chain(use->table, hash_ends(&local, server->peer.port), use->tag, chain, now);
}

void chain_note(struct stream *stream, const struct fb_conn *owner, const struct fb_conn *server)
{
    struct chain_use *use = &stream->chains;

    assert(server->outgoing);
    if (use->table != NULL && server->peer.family != AF_UNIX &&
        unlikely(use->listen_ports >> ntohs(server->peer.port) % 64 & 1))
        note_to_our_port(use, session_client_of(owner), server);
}
