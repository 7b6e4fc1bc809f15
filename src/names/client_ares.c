/* SPDX-License-Identifier: BSD-2-Clause */
/* The client over c-ares: questions, /etc/hosts, and the channel. Hands on replies unread. */
#define CARES_NO_DEPRECATED /* some calls have a replacement that is newer than 1.18 */
#include "names/client_sockets.h"

#include "base/check.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS_IN 1
#define HOSTS_TTL 10 /* seconds for which a line of /etc/hosts holds */

bool names_client_built(void)
{
    return true;
}

/* ---- Questions ---- */

/* Translates the library's status. */
static struct names_reply reply_of(int status)
{
    static const struct {
        int status;
        struct names_reply reply;
    } replies[] = {
        { ARES_SUCCESS, { .outcome = FB_NAME_FOUND } },
        { ARES_ENOTFOUND, { FB_NAME_ABSENT, "the name does not exist", NULL, 0 } },
        { ARES_EBADNAME, { FB_NAME_ABSENT, "the name does not exist", NULL, 0 } },
        { ARES_ENODATA, { FB_NAME_NO_DATA, "the name has no record of the type", NULL, 0 } },
        { ARES_ETIMEOUT, { FB_NAME_TIMED_OUT, "no server has answered", NULL, 0 } },
        { ARES_ECONNREFUSED,
            { FB_NAME_FAILED, "no server can be reached, or will answer", NULL, 0 } },
        { ARES_ESERVFAIL, { FB_NAME_FAILED, "the server has failed", NULL, 0 } },
        { ARES_EREFUSED, { FB_NAME_FAILED, "the server refuses to answer", NULL, 0 } },
        { ARES_ENOTIMP, { FB_NAME_FAILED, "the server refuses to answer", NULL, 0 } },
        { ARES_EFORMERR, { FB_NAME_FAILED, "the server refuses to answer", NULL, 0 } },
        { ARES_EBADRESP, { FB_NAME_BROKEN, "the answer is malformed", NULL, 0 } },
        { ARES_ECANCELLED, { .outcome = 0 } },
        { ARES_ENOMEM, { FB_NAME_NO_MEMORY, "there is no memory", NULL, 0 } },
    };

    for (size_t i = 0; i < countof(replies); i++)
        if (replies[i].status == status)
            return replies[i].reply;
    return (struct names_reply) { FB_NAME_FAILED, ares_strerror(status), NULL, 0 };
}

static void answered(void *arg, int status, int timeouts, unsigned char *p, int n)
{
    struct client_asked *asked = arg;
    struct names_client *client = asked->client;
    struct names_reply reply = reply_of(status);

    (void)timeouts;
    assert(client->asked_n > 0);
    client->asked_n--;
    client_sockets_end(asked);
    arg = asked->arg;
    free(asked);
    if (client->ending)
        return;
    if (reply.outcome == FB_NAME_FOUND) {
        reply.p = p;
        reply.n = (size_t)n;
    }
    client->replied(arg, &reply);
}

void names_client_ask(struct names_client *client, const char *name, uint16_t type, void *arg)
{
    struct names_reply none = reply_of(ARES_ENOMEM);
    struct client_asked *asked = malloc(sizeof(*asked));

    CHECK_KIND(client, CLIENT_KIND);
    assert(client->asked_n < NAMES_CLIENT_ASKED);
    if (asked == NULL) {
        client->replied(arg, &none);
        return;
    }
    *asked = (struct client_asked) { .client = client, .arg = arg };
    client->asked_n++;
    client_sockets_take_credit(client);
    client->asking = asked;
    if (client->searches)
        ares_search(client->channel, name, CLASS_IN, type, answered, asked);
    else
        ares_query(client->channel, name, CLASS_IN, type, answered, asked);
    client->asking = NULL;
}

void names_client_take_back(struct names_client *client)
{
    CHECK_KIND(client, CLIENT_KIND);
    if (client->asked_n >= NAMES_CLIENT_ASKED)
        ares_cancel(client->channel);
}

/* ---- /etc/hosts ---- */

struct file_host {
    struct message *out;
    int status;
};

/* Called within ares_gethostbyaddr(), because the library looks into the file alone. */
static void host_found(void *arg, int status, int timeouts, struct hostent *host)
{
    struct file_host *found = arg;
    size_t n;

    (void)timeouts;
    found->status = status;
    if (status != ARES_SUCCESS)
        return;
    n = strlen(host->h_name) + 1;
    message_begin(found->out, MESSAGE_PTR, HOSTS_TTL, host->h_name);
    if (n > MESSAGE_NAME)
        return;
    memcpy(found->out->text, host->h_name, n);
    found->out->text_n = n;
    found->out->items[0] = (struct message_item) { .ttl = HOSTS_TTL };
    found->out->n = 1;
}

static int find_address(
    struct names_client *client, const struct address *address, struct message *out)
{
    struct file_host found = { out, ARES_ENOTFOUND };
    bool is_v4 = address->any.sa_family == AF_INET;

    ares_gethostbyaddr(client->channel,
        is_v4 ? (const void *)&address->in.sin_addr : (const void *)&address->in6.sin6_addr,
        is_v4 ? 4 : 16, address->any.sa_family, host_found, &found);
    return found.status;
}

/* A name with addresses of the second family alone has no address of the first. */
static int find_name(
    struct names_client *client, const char *name, uint16_t type, struct message *out)
{
    int family = type == MESSAGE_A ? AF_INET : AF_INET6;
    int other = type == MESSAGE_A ? AF_INET6 : AF_INET;
    struct hostent *host = NULL;
    int status = ares_gethostbyname_file(client->channel, name, family, &host);

    if (status == ARES_ENOTFOUND)
        status = ares_gethostbyname_file(client->channel, name, other, &host);
    if (status != ARES_SUCCESS)
        return status;
    message_begin(out, type, HOSTS_TTL, host->h_name);
    for (char **all = host->h_addr_list; host->h_addrtype == family && *all != NULL; all++)
        if (out->n < MESSAGE_ITEMS)
            message_add_address(out, *all);
    ares_free_hostent(host);
    return ARES_SUCCESS;
}

bool names_client_hosts(struct names_client *client, const char *name, uint16_t type,
    const struct address *address, struct message *out, bool *readable)
{
    int status = ARES_ENOTFOUND;

    CHECK_KIND(client, CLIENT_KIND);
    if (type == MESSAGE_PTR && address != NULL)
        status = find_address(client, address, out);
    else if (type == MESSAGE_A || type == MESSAGE_AAAA)
        status = find_name(client, name, type, out);
    *readable = status != ARES_EFILE;
    return status == ARES_SUCCESS;
}

/* ---- The client ---- */

static int init_channel(struct names_client *client, const char *servers)
{
    char lookups[] = "f"; /* of ares_gethostbyaddr() alone */
    struct ares_options options = {
        .flags = ARES_FLAG_NOALIASES,
        .timeout = NAMES_CLIENT_TRY_MS,
        .tries = NAMES_CLIENT_TRIES,
        .lookups = lookups,
        .sock_state_cb = client_sockets_changed,
        .sock_state_cb_data = client,
    };
    int wanted = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                 ARES_OPT_SOCK_STATE_CB | (servers != NULL ? ARES_OPT_ROTATE : 0);
    int status = ares_init_options(&client->channel, &options, wanted);

    if (status != ARES_SUCCESS)
        return status;
    client_sockets_init(client);
    if (servers != NULL)
        status = ares_set_servers_ports_csv(client->channel, servers);
    if (status != ARES_SUCCESS)
        ares_destroy(client->channel);
    return status;
}

struct names_client *names_client_create(
    struct loop *loop, const char *servers, unsigned sockets, names_client_replied *replied)
{
    struct names_client *client = calloc(1, sizeof(*client));
    int status = client == NULL ? ARES_ENOMEM : ares_library_init(ARES_LIB_INIT_ALL);

    if (status == ARES_SUCCESS) {
        client->kind = CLIENT_KIND;
        client->loop = loop;
        client->replied = replied;
        client->searches = servers == NULL;
        client->socket_most = sockets;
        status = init_channel(client, servers);
        if (status == ARES_SUCCESS)
            return client;
        ares_library_cleanup();
    }
    free(client);
    log_write(loop->log, LEVEL_EMERG, 0, "the servers of names cannot be asked: %s",
        ares_strerror(status));
    return NULL;
}

void names_client_destroy(struct names_client **clientp)
{
    struct names_client *client = *clientp;

    if (client == NULL)
        return;
    *clientp = NULL;
    CHECK_KIND(client, CLIENT_KIND);
    client->ending = true;
    ares_destroy(client->channel); /* closes the sockets */
    client_sockets_done(client);
    ares_library_cleanup();
    client->kind = 0;
    free(client);
}
