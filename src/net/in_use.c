/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps foreign listening sockets, sorted for tens of thousands of listeners. */
#include "net/in_use.h"

#include "os/sockets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int add_listening(void *arg, const struct os_listening *listening)
{
    struct in_use_socket found = { .inode = listening->inode, .uid = listening->uid };
    struct in_use *in_use = arg;

    memcpy(&found.address.any, &listening->address, listening->length);
    found.address.length = listening->length;
    if (in_use->n == in_use->room) {
        size_t room = in_use->room > 0 ? 2 * in_use->room : 64;
        struct in_use_socket *larger = realloc(in_use->sockets, room * sizeof(*larger));

        if (larger == NULL)
            return -1;
        in_use->sockets = larger;
        in_use->room = room;
    }
    in_use->sockets[in_use->n++] = found;
    return 0;
}

/* Orders by port, wildcards first, then paths; the tables have no network interface. */
static int compare_held(const struct address *a, const struct address *b)
{
    bool a_is_unix = a->any.sa_family == AF_UNIX, b_is_unix = b->any.sa_family == AF_UNIX;
    int result = a_is_unix - b_is_unix;

    if (result == 0)
        result = address_port(a) - address_port(b);
    if (result == 0)
        result = address_is_wildcard(b) - address_is_wildcard(a);
    if (result == 0 && a->any.sa_family == AF_INET6 && b->any.sa_family == AF_INET6)
        return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr));
    return result != 0 ? result : address_compare(a, b);
}

static int compare_in_use(const void *a, const void *b)
{
    return compare_held(
        &((const struct in_use_socket *)a)->address, &((const struct in_use_socket *)b)->address);
}

/* Returns the index of the first socket that is not before the address. */
static size_t first_held_from(const struct in_use *in_use, const struct address *address)
{
    size_t low = 0, high = in_use->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_held(&in_use->sockets[middle].address, address) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void in_use_done(struct in_use *in_use)
{
    free(in_use->sockets);
    *in_use = (struct in_use) { .sockets = NULL };
}

int in_use_read(struct in_use *in_use, const char *root)
{
    *in_use = (struct in_use) { .sockets = NULL };
    if (os_listening_visit(root, add_listening, in_use) == -1) {
        in_use_done(in_use);
        return -1;
    }
    if (in_use->n > 0)
        qsort(in_use->sockets, in_use->n, sizeof(in_use->sockets[0]), compare_in_use);
    return 0;
}

/* Whether a socket is in the way of a listener; *sure: whatever options the socket has. */
static bool is_in_way(const struct listener *listener, const struct address *held, bool *sure)
{
    const struct address *wanted = &listener->address;
    sa_family_t family = wanted->any.sa_family, other = held->any.sa_family;

    *sure = family != AF_INET6 || wanted->in6.sin6_scope_id == 0 || address_is_wildcard(held);
    if (family == AF_UNIX || other == AF_UNIX)
        return family == other && strcmp(wanted->un.sun_path, held->un.sun_path) == 0;
    if (address_port(wanted) != address_port(held) || address_port(wanted) == 0)
        return false;
    if (family == other)
        return address_is_wildcard(wanted) || address_is_wildcard(held) ||
               compare_held(wanted, held) == 0;
    if (family == AF_INET6) /* a dual-stack socket takes all of IPv4 too */
        return address_is_wildcard(wanted) && !listener->options.ipv6only;
    *sure = false;
    return address_is_wildcard(held);
}

const struct in_use_socket *in_use_find(const struct in_use *in_use,
    const struct in_use_socket *after, const struct listener *listener, bool *sure)
{
    const struct address *wanted = &listener->address;
    size_t exact = first_held_from(in_use, wanted), i = exact;
    struct address wildcard;

    assert(after == NULL || (after >= in_use->sockets && after < in_use->sockets + in_use->n));
    if (after != NULL) {
        i = (size_t)(after - in_use->sockets) + 1;
    } else if (wanted->any.sa_family != AF_UNIX) {
        /* the port's wildcards come first, IPv4's before IPv6's */
        address_make(&wildcard, AF_INET, (const uint8_t[16]) { 0 }, address_port(wanted));
        i = first_held_from(in_use, &wildcard);
    }
    while (i < in_use->n) {
        const struct address *held = &in_use->sockets[i].address;
        bool narrow = !address_is_wildcard(wanted) && !address_is_wildcard(held);

        if (narrow && i < exact) { /* skips other addresses of the port */
            i = exact;
            continue;
        }
        if (address_port(held) != address_port(wanted))
            return NULL;
        if (is_in_way(listener, held, sure))
            return &in_use->sockets[i];
        if (narrow)
            return NULL;
        i++;
    }
    return NULL;
}
