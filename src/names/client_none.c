/* SPDX-License-Identifier: BSD-2-Clause */
/* No client, in a build without c-ares: there is none to create, and so none to ask. */
#include "names/client.h"

#include <stdlib.h>

bool names_client_built(void)
{
    return false;
}

struct names_client *names_client_create(
    struct loop *loop, const char *servers, unsigned sockets, names_client_replied *replied)
{
    (void)servers;
    (void)sockets;
    (void)replied;
    log_write(loop->log, LEVEL_EMERG, 0, "this build cannot resolve names without c-ares");
    return NULL;
}

void names_client_destroy(struct names_client **client)
{
    assert(*client == NULL);
    (void)client;
}

uint64_t names_client_room_ms(struct names_client *client, bool again)
{
    (void)client;
    (void)again;
    abort();
}

void names_client_ask(struct names_client *client, const char *name, uint16_t type, void *arg)
{
    (void)client;
    (void)name;
    (void)type;
    (void)arg;
    abort();
}

void names_client_take_back(struct names_client *client)
{
    (void)client;
    abort();
}

void names_client_asked(struct names_client *client)
{
    (void)client;
    abort();
}

bool names_client_hosts(struct names_client *client, const char *name, uint16_t type,
    const struct address *address, struct message *out, bool *readable)
{
    (void)client;
    (void)name;
    (void)type;
    (void)address;
    (void)out;
    *readable = true;
    return false;
}
