/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on the addresses of a connection's two ends, and on their text. */
#include "net/target.h"
#include "sdk/handle.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void copy_address(struct sockaddr_storage *out, const struct address *address)
{
    assert(address->length <= sizeof(*out));
    out->ss_family = address->any.sa_family;
    memcpy(out, &address->any, address->length);
}

int fb_peer_address(const fb_conn *conn, struct sockaddr_storage *out)
{
    struct address peer;

    if (!SDK_VALID(conn))
        return -1;
    memset(out, 0, sizeof(*out));
    if (conn->outgoing) {
        copy_address(out, &session_conn_of(conn)->target->address);
    } else {
        conn_peer_address(conn, &peer);
        copy_address(out, &peer);
    }
    return 0;
}

int fb_local_address(const fb_conn *conn, struct sockaddr_storage *out)
{
    socklen_t length = sizeof(*out);

    if (!SDK_VALID(conn))
        return -1;
    memset(out, 0, sizeof(*out));
    return conn->source.io->name(&conn->source, (struct sockaddr *)out, &length);
}

char *fb_address_text(const struct sockaddr_storage *address, char *text, size_t size)
{
    struct address a = { .length = sizeof(a.un) };
    char whole[ADDRESS_TEXT];

    memcpy(&a.un, address, sizeof(a.un));
    snprintf(text, size, "%s", address_format(&a, true, whole));
    return text;
}
