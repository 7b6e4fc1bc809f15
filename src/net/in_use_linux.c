/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads /proc/self/net/tcp, tcp6 and unix, which list every socket, and keeps those that listen.
 * The kernel lists these first in tcp and tcp6, so that a busy machine's connections are not
 * read. */
#include "net/in_use.h"

#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_LISTEN 0x0a
#define UNIX_LISTENS 0x10000

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
    if (parse_address(local, &found.address) && in_use_add(in_use, &found) == -1)
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
    if (in_use_add(in_use, &found) == -1)
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

int in_use_read(struct in_use *in_use, const char *root)
{
    *in_use = (struct in_use) { .sockets = NULL };
    if (read_table(in_use, root, "tcp", read_tcp) == 0 &&
        read_table(in_use, root, "tcp6", read_tcp) == 0 &&
        read_table(in_use, root, "unix", read_unix) == 0) {
        in_use_sort(in_use);
        return 0;
    }
    in_use_done(in_use);
    return -1;
}
