/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of access as ranges of addresses with one verdict each: a look-up is a binary search.
 *
 * Responsible for giving a range the verdict of its first rule. Relies on blocks being apart, or
 * nested. Invariant: a table's ranges are in the order of addresses, the first begins with the
 * lowest address, and a range ends where the next begins. */
#include "features/access/access.h"

#include "base/check.h"
#include "net/conn_log.h"
#include "session/phases.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define BITS_MOST 128

/* An address as a number. */
struct number {
    uint64_t high, low;
};

struct range {
    struct number first;
    bool allows;
};

struct table {
    const struct range *ranges;
    unsigned n; /* 0: no rule is about these addresses */
};

struct access {
    struct table in, in6;
    bool allows_unix;
};

/* A rule while its table is built. */
struct span {
    struct number first, last;
    unsigned order; /* in the configuration */
    bool allows;
};

static int compare_numbers(struct number a, struct number b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    return (a.low > b.low) - (a.low < b.low);
}

static struct number number_of_in(struct in_addr in)
{
    return (struct number) { .low = ntohl(in.s_addr) };
}

static struct number number_of_in6(const struct in6_addr *in6)
{
    struct number number = { 0 };

    for (unsigned i = 0; i < 8; i++) {
        number.high = number.high << 8 | in6->s6_addr[i];
        number.low = number.low << 8 | in6->s6_addr[8 + i];
    }
    return number;
}

/* Returns the number whose lowest bits are set. */
static struct number low_bits(unsigned bits)
{
    struct number number = { 0 };

    assert(bits <= BITS_MOST);
    if (bits >= 64)
        number.high = bits == 128 ? UINT64_MAX : (UINT64_C(1) << (bits - 64)) - 1;
    number.low = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return number;
}

/* Returns the range of a rule among the addresses of a family, which have so many bits. */
static struct span span_of(const struct access_rule *rule, unsigned bits)
{
    const struct address *address = &rule->block.address;
    struct span span = { .allows = rule->allows };
    struct number mask = low_bits(bits);

    if (address->any.sa_family != AF_UNSPEC) {
        mask = low_bits(bits - rule->block.bits);
        span.first = address->any.sa_family == AF_INET ? number_of_in(address->in.sin_addr)
                                                       : number_of_in6(&address->in6.sin6_addr);
    }
    assert((span.first.high & mask.high) == 0 && (span.first.low & mask.low) == 0);
    span.last.high = span.first.high | mask.high;
    span.last.low = span.first.low | mask.low;
    return span;
}

/* Orders spans by first address, the wider span first. */
static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    int result = compare_numbers(x->first, y->first);

    if (result == 0)
        result = compare_numbers(y->last, x->last);
    return result != 0 ? result : (x->order > y->order) - (x->order < y->order);
}

/* A table in building, and the spans around the address reached so far, the innermost last. Each
 * has the verdict of the first rule among itself and the spans around. */
struct building {
    struct range *ranges;
    unsigned n;
    struct span around[BITS_MOST + 1];
    unsigned around_n;
};

/* Ends the last range where a verdict begins. */
static void begin_range(struct building *building, struct number first, bool allows)
{
    unsigned n = building->n;

    if (n > 0 && compare_numbers(building->ranges[n - 1].first, first) == 0)
        n--;
    if (n == 0 || building->ranges[n - 1].allows != allows)
        building->ranges[n++] = (struct range) { .first = first, .allows = allows };
    assert(n > 0);
    building->n = n;
}

/* Leaves the innermost span, up to the last address of all. */
static void leave_span(struct building *building, struct number end)
{
    struct number next = building->around[--building->around_n].last;
    unsigned n = building->around_n;

    if (compare_numbers(next, end) == 0)
        return;
    next.high += ++next.low == 0;
    begin_range(building, next, n == 0 || building->around[n - 1].allows);
}

static void enter_span(struct building *building, struct span span)
{
    const struct span *around = NULL;

    if (building->around_n > 0)
        around = &building->around[building->around_n - 1];
    if (around != NULL && compare_numbers(around->first, span.first) == 0 &&
        compare_numbers(around->last, span.last) == 0)
        return; /* the same block, of a later rule */
    if (around != NULL && around->order < span.order) {
        span.order = around->order;
        span.allows = around->allows;
    }
    assert(building->around_n < countof(building->around));
    building->around[building->around_n++] = span;
    begin_range(building, span.first, span.allows);
}

/* Makes the ranges of sorted spans. */
static void build_ranges(
    struct building *building, const struct span *spans, unsigned n, struct number end)
{
    begin_range(building, (struct number) { 0 }, true);
    for (unsigned i = 0; i < n; i++) {
        while (building->around_n > 0 &&
               compare_numbers(building->around[building->around_n - 1].last, spans[i].first) < 0)
            leave_span(building, end);
        enter_span(building, spans[i]);
    }
    while (building->around_n > 0)
        leave_span(building, end);
}

/* Builds the table of a family's rules; -1 without memory. */
static int build_table(struct arena *arena, const struct access_rules *rules, sa_family_t family,
    unsigned bits, struct table *table)
{
    struct building building = { .n = 0 };
    const struct access_rule *rule;
    struct span *spans;
    unsigned n = 0, i = 0;

    STAILQ_FOREACH (rule, rules, link)
        n += rule->block.address.any.sa_family == family ||
             rule->block.address.any.sa_family == AF_UNSPEC;
    if (n == 0)
        return 0;
    building.ranges = arena_alloc(arena, (2 * (size_t)n + 1) * sizeof(*building.ranges));
    spans = calloc(n, sizeof(*spans));
    if (building.ranges == NULL || spans == NULL) {
        free(spans);
        return -1;
    }
    STAILQ_FOREACH (rule, rules, link) {
        if (rule->block.address.any.sa_family != family &&
            rule->block.address.any.sa_family != AF_UNSPEC)
            continue;
        spans[i] = span_of(rule, bits);
        spans[i].order = i;
        i++;
    }
    qsort(spans, n, sizeof(*spans), compare_spans);
    build_ranges(&building, spans, n, low_bits(bits));
    free(spans);
    assert(i == n && building.n > 0 && building.n <= 2 * n + 1);
    *table = (struct table) { .ranges = building.ranges, .n = building.n };
    return 0;
}

static bool allows_unix(const struct access_rules *rules)
{
    const struct access_rule *rule;

    STAILQ_FOREACH (rule, rules, link)
        if (rule->block.address.any.sa_family == AF_UNIX ||
            rule->block.address.any.sa_family == AF_UNSPEC)
            return rule->allows;
    return true;
}

const struct access *access_build(struct arena *arena, const struct access_rules *rules)
{
    struct access *access = arena_alloc(arena, sizeof(*access));

    assert(!STAILQ_EMPTY(rules));
    if (access == NULL || build_table(arena, rules, AF_INET, 32, &access->in) == -1 ||
        build_table(arena, rules, AF_INET6, 128, &access->in6) == -1)
        return NULL;
    access->allows_unix = allows_unix(rules);
    return access;
}

/* Finds the range of the address, and returns the verdict. */
static bool table_allows(const struct table *table, struct number address)
{
    unsigned least = 0, beyond = table->n;

    if (table->n == 0)
        return true;
    assert(table->ranges[0].first.high == 0 && table->ranges[0].first.low == 0);
    while (beyond - least > 1) {
        unsigned middle = least + (beyond - least) / 2;

        if (compare_numbers(table->ranges[middle].first, address) <= 0)
            least = middle;
        else
            beyond = middle;
    }
    return table->ranges[least].allows;
}

bool access_allows(const struct access *access, const struct sockaddr *client)
{
    const struct sockaddr_in6 *in6 = (const void *)client;
    struct in_addr in;

    switch (client->sa_family) {
    case AF_INET:
        return table_allows(
            &access->in, number_of_in(((const struct sockaddr_in *)client)->sin_addr));
    case AF_INET6:
        if (access->in.n == 0 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
            return table_allows(&access->in6, number_of_in6(&in6->sin6_addr));
        memcpy(&in, &in6->sin6_addr.s6_addr[12], sizeof(in));
        return table_allows(&access->in, number_of_in(in));
    default:
        return access->allows_unix;
    }
}

unsigned access_run(struct fb_conn *conn, const void *access)
{
    struct address client;

    conn_peer_address(conn, &client);
    if (access_allows(access, &client.any))
        return 0;
    conn_log(conn, LEVEL_ERROR, 0, "access forbidden by rule while initializing session");
    return STATUS_FORBIDDEN;
}
