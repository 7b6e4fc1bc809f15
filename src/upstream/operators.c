/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the operator's words about servers in pages that masters alone write: workers compare a
 * version. A place with the word UPSTREAM_AUTO is free for a new server. */
#include "upstream/operators.h"

#include "upstream/zone_private.h"

#include <errno.h>

#define STATE_BITS 2
#define STATE_MASK 3u

static_assert(UPSTREAM_DOWN <= STATE_MASK, "a word has room for the state");

uint32_t upstream_operators_version(const struct upstream_zone *zone)
{
    return ZONE_LOAD(zone->header->version);
}

/* Returns the place of a server; UINT32_MAX: the operator said nothing. */
static uint32_t find_said(const struct upstream_zone_header *header, uint32_t n, uint64_t server)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t there = ZONE_LOAD(header->said[i].server);

        if (there == server)
            return i;
        if (there == 0)
            break;
    }
    return UINT32_MAX;
}

static enum upstream_operator state_of_word(uint64_t word)
{
    return (enum upstream_operator)(word & STATE_MASK);
}

/* Returns the word about a server's name or address; 0: none. */
static uint64_t word_about(
    const struct upstream_zone *zone, const char *upstream, const char *server)
{
    const struct upstream_zone_header *header = zone_memory(zone->zone);
    uint64_t key = upstream_zone_server_key(header, upstream, server), word;
    uint32_t at = find_said(header, upstream_zone_layout(&zone->shape).n, key);

    if (at == UINT32_MAX)
        return 0;
    word = ZONE_LOAD(header->said[at].word);
    return ZONE_LOAD(header->said[at].server) == key ? word
                                                     : 0; /* the place may be another's by now */
}

enum upstream_operator upstream_operator_said(
    const struct upstream_zone *zone, const struct upstream_place *place, uint64_t *since_ms)
{
    uint64_t of_server, of_address;

    assert(place->upstream != NULL && place->server != NULL && place->address != NULL);
    of_server = word_about(zone, place->upstream, place->server);
    of_address = word_about(zone, place->upstream, place->address);
    *since_ms = (of_server > of_address ? of_server : of_address) >> STATE_BITS;
    return state_of_word(state_of_word(of_address) != UPSTREAM_AUTO ? of_address : of_server);
}

/* Returns a place in use by no server; UINT32_MAX: there is none. */
static uint32_t find_room(const struct upstream_zone_header *header, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (ZONE_LOAD(header->said[i].server) == 0 ||
            state_of_word(ZONE_LOAD(header->said[i].word)) == UPSTREAM_AUTO)
            return i;
    return UINT32_MAX;
}

int upstream_operator_set(
    const struct upstream *upstream, const char *server, enum upstream_operator to, uint64_t now_ms)
{
    const struct upstream_zone *zone = upstream->zone;
    struct upstream_zone_header *header;
    struct upstream_zone_said *said;
    uint32_t n, at;
    uint64_t key;

    assert(to <= UPSTREAM_DOWN);
    header = zone != NULL ? zone_memory(zone->zone) : NULL;
    if (header == NULL) {
        errno = ENOTSUP;
        return -1;
    }
    n = upstream_zone_layout(&zone->shape).n;
    key = upstream_zone_server_key(header, upstream->name, server);
    at = find_said(header, n, key);
    if (at == UINT32_MAX)
        at = find_room(header, n);
    if (at == UINT32_MAX) {
        errno = ENOSPC;
        return -1;
    }
    said = &header->said[at];
    ZONE_STORE(said->server, key);
    ZONE_STORE(said->word, now_ms << STATE_BITS | to);
    ZONE_STORE(header->version, ZONE_LOAD(header->version) + 1);
    return 0;
}
