/* SPDX-License-Identifier: BSD-2-Clause */
/* No client, in a build without c-ares: there is none to create, and so none to ask. */
#include "names/client.h"

#include <stdlib.h>

bool names_client_built(void)
{
    return false;
}

struct names_client *names_client_create(
    struct loop *loop, const char *servers, names_client_replied *replied)
{
    (void)servers;
    (void)replied;
    log_write(loop->log, LEVEL_EMERG, 0, "this build cannot resolve names, it lacks c-ares");
    return NULL;
}

void names_client_destroy(struct names_client **client)
{
    assert(*client == NULL);
    (void)client;
}

void names_client_ask(struct names_client *client, const char *name, uint16_t type, void *arg)
{
    (void)client;
    (void)name;
    (void)type;
    (void)arg;
    abort();
}

void names_client_asked(struct names_client *client)
{
    (void)client;
    abort();
}

bool names_client_hosts(struct names_client *client, const char *name, uint16_t type,
    const struct sockaddr *address, struct message *out, bool *readable)
{
    (void)client;
    (void)name;
    (void)type;
    (void)address;
    (void)out;
    *readable = true;
    return false;
}
