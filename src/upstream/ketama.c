/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts points of each server's name on a circle of 32 bits: a key belongs to the next point
 * clockwise, or, where no peer of that server can be used, to the one after it. The points are
 * made at the first choice after the list has changed.
 *
 * A worker has 8 bytes for each point, at most POINTS_MOST: weights that ask for more get fewer
 * points each. */
#include "upstream/ketama.h"

#include "base/crc32.h"
#include "base/memory.h"

#include <string.h>
#include <strings.h>

#define POINTS_OF_WEIGHT 160
#define POINTS_MOST (UINT64_C(1) << 18)

struct point {
    uint32_t hash;
    uint32_t first; /* place of the first peer of the server in the list */
};

struct circle {
    uint32_t *firsts; /* by a primary's place: that of its server's first peer */
    uint32_t n;
    struct point points[];
};

/* Returns the checksum of a server's name: host, a zero byte, port; of a unix socket its path. */
static uint32_t hash_server(const char *name)
{
    size_t n = strlen(name), digits = 0;
    uint32_t crc;

    if (strncasecmp(name, "unix:", 5) == 0)
        return crc32_add(crc32_add(0, name + 5, n - 5), "", 1);
    while (digits < n && name[n - digits - 1] >= '0' && name[n - digits - 1] <= '9')
        digits++;
    if (digits == n || name[n - digits - 1] != ':')
        return crc32_add(crc32_add(0, name, n), "", 1);
    crc = crc32_add(crc32_add(0, name, n - digits - 1), "", 1);
    return crc32_add(crc, name + n - digits, digits);
}

/* Finds the peer of the list that is the first of the server at `at`, or has its name. */
static uint32_t find_first(const struct peers *peers, const uint32_t *firsts, uint32_t at)
{
    const struct upstream_server *server = peers->list[at]->server;

    if (at > 0 && peers->list[at - 1]->server == server)
        return firsts[at - 1];
    for (uint32_t i = 0; i < at; i++)
        if (firsts[i] == i && strcmp(peers->list[i]->server->name, server->name) == 0)
            return i;
    return at;
}

/* Returns the greatest weight of the server's peers. */
static uint32_t weight_of(const struct peers *peers, const uint32_t *firsts, uint32_t first)
{
    uint32_t weight = 0;

    for (uint32_t i = first; i < peers->primary_n; i++)
        if (firsts[i] == first && peers->list[i]->weight > weight)
            weight = peers->list[i]->weight;
    return weight;
}

/* Returns how many points a weight has, where all weights are `total`. */
static uint32_t points_of(uint32_t weight, uint64_t total)
{
    uint64_t n = (uint64_t)weight * POINTS_OF_WEIGHT;

    if (total * POINTS_OF_WEIGHT > POINTS_MOST)
        n = 1 + weight * POINTS_MOST / total;
    return (uint32_t)n;
}

/* Adds a server's points, each of which goes on from the one before. */
static void add_points(
    struct circle *circle, uint32_t first, const struct upstream_server *server, uint32_t n)
{
    uint32_t base = hash_server(server->name), hash = 0;

    while (n-- > 0) {
        const uint8_t before[] = { (uint8_t)hash, (uint8_t)(hash >> 8), (uint8_t)(hash >> 16),
            (uint8_t)(hash >> 24) };

        hash = crc32_add(base, before, sizeof(before));
        circle->points[circle->n++] = (struct point) { .hash = hash, .first = first };
    }
}

static int compare_points(const void *a, const void *b)
{
    const struct point *one = a, *other = b;

    if (one->hash != other->hash)
        return one->hash < other->hash ? -1 : 1;
    return (one->first > other->first) - (one->first < other->first);
}

static void sort_points(struct circle *circle)
{
    uint32_t n = 1;

    qsort(circle->points, circle->n, sizeof(circle->points[0]), compare_points);
    for (uint32_t i = 1; i < circle->n; i++)
        if (circle->points[i].hash != circle->points[n - 1].hash)
            circle->points[n++] = circle->points[i];
    circle->n = n;
}

/* Makes the circle of servers whose weights are `total`; NULL without memory. */
static struct circle *create_circle(const struct peers *peers, uint64_t total)
{
    uint64_t most = total * POINTS_OF_WEIGHT;
    struct circle *circle;

    if (most > POINTS_MOST)
        most = POINTS_MOST;
    most += peers->primary_n;
    circle =
        memory_alloc(peers->upstreams->memory, sizeof(*circle) + most * sizeof(circle->points[0]) +
                                                   peers->primary_n * sizeof(*circle->firsts));
    if (circle == NULL)
        return NULL;
    circle->n = 0;
    circle->firsts = (uint32_t *)(circle->points + most);
    for (uint32_t i = 0; i < peers->primary_n; i++)
        circle->firsts[i] = find_first(peers, circle->firsts, i);
    for (uint32_t i = 0; i < peers->primary_n; i++)
        if (circle->firsts[i] == i)
            add_points(circle, i, peers->list[i]->server,
                points_of(weight_of(peers, circle->firsts, i), total));
    assert(circle->n > 0 && circle->n <= most);
    sort_points(circle);
    return circle;
}

/* Returns the place of the first point from the hash on; behind the last one the first follows. */
static uint32_t find_point(const struct circle *circle, uint32_t hash)
{
    uint32_t low = 0, high = circle->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (circle->points[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Lets the server's peers take turns; NULL where none can be used. */
static struct peer *choose_of_server(
    struct choice *choice, const struct circle *circle, uint32_t first)
{
    const struct peers *peers = choice->upstream->peers;
    struct round_robin turn = { .best = NULL };

    assert(first < peers->primary_n);
    for (uint32_t i = first; i < peers->primary_n; i++)
        if (circle->firsts[i] == first && choice_may_use(choice, peers->list[i]))
            round_robin_add(&turn, choice, peers->list[i]);
    return round_robin_take(&turn);
}

struct peer *ketama_choose(struct choice *choice)
{
    struct peers *peers = choice->upstream->peers;
    const fb_bytes key = choice->more->key;
    const struct circle *circle;
    uint32_t at;

    assert(key.n > 0 && !choice->backup);
    if (peers->cache == NULL && peers->primary_n > 0)
        peers->cache = create_circle(peers, balancer_weight(choice));
    circle = peers->cache;
    if (circle == NULL)
        return round_robin_choose(choice);
    at = find_point(circle, crc32_add(0, key.p, key.n));
    while (choice->misses < BALANCER_MISSES) {
        uint32_t first = circle->points[(at + choice->misses) % circle->n].first;
        struct peer *peer = choose_of_server(choice, circle, first);

        if (peer != NULL)
            return peer;
        choice->misses++;
    }
    return round_robin_choose(choice);
}

void ketama_forget(struct peers *peers)
{
    memory_release(peers->upstreams->memory, peers->cache);
    peers->cache = NULL;
}
