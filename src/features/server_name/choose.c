/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses a client's server by the name of its ClientHello, by nginx's rules: whole names, the
 * longest end, the longest beginning, then expressions in order. */
#include "features/server_name/server_name.h"
#include "session/record.h"
#include "session/session.h"
#include "tls/hello.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

/* The longest name of a host. */
#define HOST_NAME_MOST 255

static bool is_literal_address(const char *name)
{
    struct in6_addr address;

    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

/* Brings a name of n bytes and a NUL to the form of nginx's: in lower case, without a port or a
 * dot at the end. Returns its length; 0: no name of a host. */
static size_t normalise_host(char *name, size_t n)
{
    if (n > 0 && (*name == '[' || strstr(name, "..") != NULL || strlen(name) < n))
        return 0;
    if (is_literal_address(name))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || name[i] == '/')
            return 0;
        name[i] = (char)tolower((unsigned char)name[i]);
    }
    n = strcspn(name, ":");
    if (n > 0 && name[n - 1] == '.')
        n--;
    name[n] = '\0';
    return is_literal_address(name) ? 0 : n;
}

int server_name_choose(struct fb_conn *conn, const struct tls_hello *hello, fb_bytes in)
{
    const struct server_names *names = session_binding_of(conn)->names;
    char buffer[HOST_NAME_MOST + 1], *name = buffer;
    uint32_t place = 0;
    size_t n;

    if (names == NULL || hello->status != TLS_HELLO_WHOLE || hello->name.n > HOST_NAME_MOST)
        return 0;
    assert(names->n > 0 && names->servers[0].binding == session_binding_of(conn));
    tls_hello_copy(in, hello->name, (uint8_t *)buffer);
    buffer[hello->name.n] = '\0';
    n = normalise_host(buffer, hello->name.n);
    if (n > 0 && names->map.regexes != NULL) { /* captures lie in it */
        name = session_keep(conn, n);
        if (name == NULL)
            return -1;
        memcpy(name, buffer, n);
    }
    if (n == 0 || map_look_up(&names->map, conn, name, n, &place) == -1)
        return n == 0 ? 0 : -1;
    assert(place < names->n);
    conn_debug(conn, "server name \"%.*s\": server %u of %u", (int)n, name, place, names->n);
    session_move(conn, names->servers[place].binding);
    return 0;
}
