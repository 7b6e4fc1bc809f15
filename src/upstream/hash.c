/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses by a hash of the key: without `consistent` as Cache::Memcached does, by the weights in
 * order. For an unusable peer the key is hashed again, with a number in front; after many hashes,
 * without a key, and among backups, the choice is left to round robin.
 *
 * `consistent` moves few keys between servers where a server comes or goes. Points of server
 * names, equal to the points of Cache::Memcached::Fast and of nginx, lie on a circle of 32 bits:
 * a key belongs to the next point clockwise, or, where the server has no usable peer, to the
 * point after. The points are made at the first choice after the list has changed. A worker has
 * 8 bytes for a point, at most POINTS_MOST: greater weights get proportionally fewer points. */
#include "base/crc32.h"
#include "base/memory.h"
#include "upstream/balancer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define POINTS_OF_WEIGHT 160
#define POINTS_MOST (UINT64_C(1) << 18)

struct point {
    uint32_t hash;
    uint32_t first; /* place of the first peer of the server in the list */
};

struct circle {
    uint32_t *firsts; /* by a primary's place: the place of the server's first peer */
    uint32_t n, most; /* points, and room for points */
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

/* A primary by server name. */
struct named {
    const char *name;
    uint32_t place;
    uint32_t weight; /* the greatest weight of the server whose first peer has this index */
};

static int compare_named(const void *a, const void *b)
{
    const struct named *one = a, *other = b;
    int order = strcmp(one->name, other->name);

    return order != 0 ? order : (one->place > other->place) - (one->place < other->place);
}

/* Finds for every primary the first primary of an equal server name, and the greatest weight. */
static void find_firsts(const struct peers *peers, struct named *list, uint32_t *firsts)
{
    for (uint32_t i = 0; i < peers->primary_n; i++)
        list[i] = (struct named) { .name = peers->list[i]->server->name, .place = i };
    qsort(list, peers->primary_n, sizeof(*list), compare_named);
    for (uint32_t i = 0; i < peers->primary_n; i++) {
        bool is_alike = i > 0 && strcmp(list[i].name, list[i - 1].name) == 0;

        firsts[list[i].place] = is_alike ? firsts[list[i - 1].place] : list[i].place;
    }
    for (uint32_t i = 0; i < peers->primary_n; i++) {
        assert(firsts[i] <= i);
        if (peers->list[i]->weight > list[firsts[i]].weight)
            list[firsts[i]].weight = peers->list[i]->weight;
    }
}

/* Adds a server's points, hashed from the previous point. */
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

/* Adds the points of all servers, with weights of `total`, and sorts them. */
static void fill_circle(
    struct circle *circle, const struct peers *peers, const struct named *list, uint64_t total)
{
    uint32_t n = 1;

    for (uint32_t i = 0; i < peers->primary_n; i++)
        if (circle->firsts[i] == i)
            add_points(circle, i, peers->list[i]->server,
                (uint32_t)(total * POINTS_OF_WEIGHT > POINTS_MOST
                               ? 1 + list[i].weight * POINTS_MOST / total
                               : (uint64_t)list[i].weight * POINTS_OF_WEIGHT));
    assert(circle->n > 0 && circle->n <= circle->most);
    qsort(circle->points, circle->n, sizeof(circle->points[0]), compare_points);
    for (uint32_t i = 1; i < circle->n; i++)
        if (circle->points[i].hash != circle->points[n - 1].hash)
            circle->points[n++] = circle->points[i];
    circle->n = n;
}

/* Returns the circle of the primaries; NULL without memory. */
static struct circle *create_circle(const struct peers *peers, uint64_t total)
{
    const struct memory *memory = peers->upstreams->memory;
    struct named *list = memory_alloc(memory, peers->primary_n * sizeof(*list));
    uint64_t most = total * POINTS_OF_WEIGHT;
    struct circle *circle;

    most = (most < POINTS_MOST ? most : POINTS_MOST) + peers->primary_n;
    circle = memory_alloc(memory, sizeof(*circle) + most * sizeof(circle->points[0]) +
                                      peers->primary_n * sizeof(*circle->firsts));
    if (list != NULL && circle != NULL) {
        circle->n = 0;
        circle->most = (uint32_t)most;
        circle->firsts = (uint32_t *)(circle->points + most);
        find_firsts(peers, list, circle->firsts);
        fill_circle(circle, peers, list, total);
    } else {
        memory_release(memory, circle);
        circle = NULL;
    }
    memory_release(memory, list);
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

/* Chooses by the key, which is not empty, among the primaries. */
static struct peer *choose_by_point(struct choice *choice)
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

static void free_circle(struct peers *peers)
{
    memory_release(peers->upstreams->memory, peers->cache);
    peers->cache = NULL;
}

/* Returns the hash of the key after so many rehashes. */
static uint32_t hash_memcached_key(fb_bytes key, uint32_t rehashes)
{
    char number[16];
    uint32_t crc = 0;

    if (rehashes > 0)
        crc = crc32_add(0, number, (size_t)snprintf(number, sizeof(number), "%u", rehashes));
    return crc32_add(crc, key.p, key.n) >> 16 & 0x7fff;
}

static struct peer *choose_by_hash(struct choice *choice)
{
    struct choice_more *more = choice->more;
    uint64_t weight;

    if (more == NULL || more->key.n == 0 || choice->backup)
        return round_robin_choose(choice);
    if (choice->upstream->balance.consistent)
        return choose_by_point(choice);
    weight = balancer_weight(choice);
    while (weight > 0 && choice->misses < BALANCER_MISSES) {
        struct peer *peer;

        more->hash += hash_memcached_key(more->key, more->rehashes++);
        peer = balancer_peer_at(choice, more->hash % weight);
        if (choice_may_use(choice, peer))
            return peer;
        choice->misses++;
    }
    return round_robin_choose(choice);
}

const struct balancer balancer_hash = {
    .name = "hash", .choose = choose_by_hash, .forget = free_circle
};
