/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads /proc/self/net/tcp, tcp6 and unix, which list every socket, and keeps those that listen.
 * The kernel lists these first in tcp and tcp6, so that a busy machine's connections are not
 * read. The sockets are sorted, so that tens of thousands of listeners each find theirs. */
#include "net/in_use.h"

#include <assert.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_LISTEN 0x0a
#define UNIX_LISTENS 0x10000

/* Adds a socket; -1 without memory. */
static int add_socket(struct in_use *in_use, const struct in_use_socket *found)
{
    if (in_use->n == in_use->room) {
        size_t room = in_use->room > 0 ? 2 * in_use->room : 64;
        struct in_use_socket *larger = realloc(in_use->sockets, room * sizeof(*larger));

        if (larger == NULL)
            return -1;
        in_use->sockets = larger;
        in_use->room = room;
    }
    in_use->sockets[in_use->n++] = *found;
    return 0;
}

/* Reads "0100007F:1F90", words of 32 bits in the machine's order, and a port. */
static bool parse_address(const char *text, struct address *out)
{
    size_t digits = strcspn(text, ":");
    uint32_t words[4] = { 0 };
    unsigned port;

    if ((digits != 8 && digits != 32) || sscanf(text + digits, ":%4X", &port) != 1)
        return false;
    for (size_t i = 0; i < digits / 8; i++)
        if (sscanf(text + 8 * i, "%8X", &words[i]) != 1)
            return false;
    memset(out, 0, sizeof(*out));
    if (digits == 8) {
        out->length = sizeof(out->in);
        out->in.sin_family = AF_INET;
        out->in.sin_addr.s_addr = words[0];
    } else {
        out->length = sizeof(out->in6);
        out->in6.sin6_family = AF_INET6;
        memcpy(&out->in6.sin6_addr, words, sizeof(words));
    }
    address_set_port(out, (in_port_t)port);
    return true;
}

/* Reads a line of tcp or tcp6. Returns whether lines of listening sockets may follow. */
static bool read_tcp(struct in_use *in_use, const char *line, bool *failed)
{
    struct in_use_socket found;
    char local[40];
    unsigned state, uid;

    if (sscanf(line, " %*d: %39s %*s %x %*s %*s %*s %u %*d %lu", local, &state, &uid,
            &found.inode) != 4)
        return true; /* the heading */
    if (state != STATE_LISTEN)
        return false;
    found.uid = uid;
    if (parse_address(local, &found.address) && add_socket(in_use, &found) == -1)
        *failed = true;
    return true;
}

/* Reads a line of unix. Returns true. */
static bool read_unix(struct in_use *in_use, const char *line, bool *failed)
{
    struct in_use_socket found = { .uid = (uid_t)-1 };
    unsigned flags, type;
    int path_at = 0;
    size_t n;

    if (sscanf(line, "%*s %*x %*x %x %x %*x %lu %n", &flags, &type, &found.inode, &path_at) != 3 ||
        path_at == 0 || line[path_at] != '/')
        return true;
    n = strlen(line + path_at);
    if (n >= sizeof(found.address.un.sun_path) ||
        (type == SOCK_STREAM && (flags & UNIX_LISTENS) == 0))
        return true;
    found.address.length = sizeof(found.address.un);
    found.address.un.sun_family = AF_UNIX;
    memcpy(found.address.un.sun_path, line + path_at, n + 1);
    if (add_socket(in_use, &found) == -1)
        *failed = true;
    return true;
}

static int read_table(struct in_use *in_use, const char *root, const char *name,
    bool (*read_one)(struct in_use *in_use, const char *line, bool *failed))
{
    char path[PATH_MAX], *line = NULL;
    size_t size = 0;
    bool failed = false;
    FILE *file;

    if (snprintf(path, sizeof(path), "%s/proc/self/net/%s", root, name) >= (int)sizeof(path) ||
        (file = fopen(path, "re")) == NULL)
        return 0;
    while (!failed && getline(&line, &size, file) != -1) {
        line[strcspn(line, "\n")] = '\0';
        if (!read_one(in_use, line, &failed))
            break;
    }
    free(line);
    fclose(file);
    return failed ? -1 : 0;
}

/* Orders by port, wildcards first; paths lie behind all ports. */
static int compare_places(const struct address *a, const struct address *b)
{
    bool a_is_unix = a->any.sa_family == AF_UNIX, b_is_unix = b->any.sa_family == AF_UNIX;
    int result = a_is_unix - b_is_unix;

    if (result == 0)
        result = address_port(a) - address_port(b);
    if (result == 0)
        result = address_is_wildcard(b) - address_is_wildcard(a);
    return result != 0 ? result : address_compare(a, b);
}

static int compare_sockets(const void *a, const void *b)
{
    return compare_places(
        &((const struct in_use_socket *)a)->address, &((const struct in_use_socket *)b)->address);
}

/* Returns the index of the first socket that is not before the address. */
static size_t first_from(const struct in_use *in_use, const struct address *address)
{
    size_t low = 0, high = in_use->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_places(&in_use->sockets[middle].address, address) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int in_use_read(struct in_use *in_use, const char *root)
{
    *in_use = (struct in_use) { .sockets = NULL };
    if (read_table(in_use, root, "tcp", read_tcp) == 0 &&
        read_table(in_use, root, "tcp6", read_tcp) == 0 &&
        read_table(in_use, root, "unix", read_unix) == 0) {
        if (in_use->n > 0)
            qsort(in_use->sockets, in_use->n, sizeof(in_use->sockets[0]), compare_sockets);
        return 0;
    }
    in_use_done(in_use);
    return -1;
}

void in_use_done(struct in_use *in_use)
{
    free(in_use->sockets);
    *in_use = (struct in_use) { .sockets = NULL };
}

/* Whether both are in the way of each other; *sure: whatever options the socket has. */
static bool is_in_way(const struct listener *listener, const struct address *held, bool *sure)
{
    const struct address *wanted = &listener->address;
    sa_family_t family = wanted->any.sa_family, other = held->any.sa_family;

    *sure = true;
    if (family == AF_UNIX || other == AF_UNIX)
        return family == other && strcmp(wanted->un.sun_path, held->un.sun_path) == 0;
    if (address_port(wanted) != address_port(held) || address_port(wanted) == 0)
        return false;
    if (family == other)
        return address_is_wildcard(wanted) || address_is_wildcard(held) ||
               address_equal(wanted, held);
    if (family == AF_INET6) /* a dual-stack socket takes all of IPv4 too */
        return address_is_wildcard(wanted) && !listener->options.ipv6only;
    *sure = false;
    return address_is_wildcard(held);
}

/* Returns the index of the first socket that may be in the way: the port's wildcards come first in
 * it, those of IPv4 before others. */
static size_t first_candidate(const struct in_use *in_use, const struct address *wanted)
{
    struct address wildcard = { .length = sizeof(wildcard.in) };

    if (wanted->any.sa_family == AF_UNIX)
        return first_from(in_use, wanted);
    wildcard.in.sin_family = AF_INET;
    address_set_port(&wildcard, address_port(wanted));
    return first_from(in_use, &wildcard);
}

const struct in_use_socket *in_use_find(const struct in_use *in_use,
    const struct in_use_socket *after, const struct listener *listener, bool *sure)
{
    const struct address *wanted = &listener->address;
    size_t exact = first_from(in_use, wanted);
    size_t i =
        after == NULL ? first_candidate(in_use, wanted) : (size_t)(after - in_use->sockets) + 1;

    assert(after == NULL || (after >= in_use->sockets && after < in_use->sockets + in_use->n));
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
