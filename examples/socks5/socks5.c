/* SPDX-License-Identifier: BSD-2-Clause */
/* socks5: a proxy by RFC 1928, which connects its clients with the servers named in their requests.
 * Steps of a conversation have separate callbacks, and fb_become() leads to the next: the greeting,
 * the password of RFC 1929 if socks5_user requires a password, and the request. */
#include <arpa/inet.h>
#include <errno.h>
#include <forkbeard/forkbeard.h>
#include <netinet/in.h>
#include <string.h>

enum { SOCKS_VERSION = 5, LOGIN_VERSION = 1, CONNECT = 1 };
enum { METHOD_NONE = 0, METHOD_PASSWORD = 2, METHOD_UNACCEPTABLE = 0xff };
enum { ADDRESS_IPV4 = 1, ADDRESS_NAME = 3, ADDRESS_IPV6 = 4 };
enum {
    SUCCEEDED,
    FAILED,
    FORBIDDEN,
    NO_NETWORK,
    NO_HOST,
    REFUSED,
    NO_COMMAND = 7,
    NO_ADDRESS_TYPE
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

struct socks_conf {
    const char *user[2]; /* name and password; NULL: anybody may use the proxy */
    union address local; /* to connect from, for servers of its family */
    int64_t step_timeout, connect_timeout, timeout;
};

/* The state of a client, shared by its connection to the server. */
struct socks {
    fb_conn *client;
    const union address *to; /* addresses that are left to try */
    size_t to_n;
    int connected; /* the server has been reached */
};

/* ---- The server ---- */

/* Tells the client the result of its request, and the address seen by the server. */
static void reply(fb_conn *client, uint8_t code, const union address *seen)
{
    static const uint8_t nothing[6];
    uint8_t head[] = { SOCKS_VERSION, code, 0, ADDRESS_IPV4 };
    fb_bytes pieces[] = { { head, sizeof(head) }, { nothing, 4 }, { nothing + 4, 2 } };

    if (seen != NULL && seen->any.sa_family == AF_INET) {
        pieces[1].p = (const uint8_t *)&seen->v4.sin_addr;
        pieces[2].p = (const uint8_t *)&seen->v4.sin_port;
    } else if (seen != NULL && seen->any.sa_family == AF_INET6) {
        head[3] = ADDRESS_IPV6;
        pieces[1] = (fb_bytes) { (const uint8_t *)&seen->v6.sin6_addr, 16 };
        pieces[2].p = (const uint8_t *)&seen->v6.sin6_port;
    }
    fb_writev(client, pieces, 3);
    if (code != SUCCEEDED)
        fb_close(client);
}

static uint8_t code_of(int error)
{
    switch (error) {
    case ENETUNREACH:
        return NO_NETWORK;
    case EHOSTUNREACH:
    case ETIMEDOUT:
        return NO_HOST;
    case ECONNREFUSED:
        return REFUSED;
    case EACCES:
    case EPERM:
        return FORBIDDEN;
    default:
        return FAILED;
    }
}

static int server_opened(fb_conn *server, void *state)
{
    struct socks *socks = state;
    const struct socks_conf *conf = fb_conf_of(socks->client);
    const fb_pipe_options options = { .size = sizeof(options), .timeout = (uint64_t)conf->timeout };
    union address seen;
    int is_known = fb_local_address(server, &seen.storage) == 0;

    socks->connected = 1;
    reply(socks->client, SUCCEEDED, is_known ? &seen : NULL);
    fb_pipe(socks->client, server, &options);
    return 0;
}

static void connect_next(struct socks *socks, int error);

static void server_closed(fb_conn *server, void *state, fb_reason reason)
{
    struct socks *socks = state;

    (void)reason;
    if (!socks->connected)
        connect_next(socks, fb_error_of(server));
}

static const fb_ops server_ops = {
    .size = sizeof(fb_ops), .opened = server_opened, .closed = server_closed
};

/* Connects to the next address. Where none is left, the error of the last is the reply. */
static void connect_next(struct socks *socks, int error)
{
    const struct socks_conf *conf = fb_conf_of(socks->client);
    fb_connect_options options = {
        .size = sizeof(options),
        .owner = socks->client,
        .timeout = (uint64_t)conf->connect_timeout,
        .log_level = FB_LOG_INFO, /* level of the line that says why a server was not reached */
    };
    char text[120];

    if (socks->to_n == 0) {
        reply(socks->client, code_of(error), NULL);
        return;
    }
    socks->to_n--;
    options.address = &socks->to++->any;
    if (conf->local.any.sa_family == options.address->sa_family)
        options.local = &conf->local.any;
    fb_conn_logf(socks->client, FB_LOG_INFO, "connects to %s",
        fb_address_text((const struct sockaddr_storage *)options.address, text, sizeof(text)));
    if (fb_connect_with(fb_worker_of(socks->client), NULL, &server_ops, socks, &options) == NULL)
        reply(socks->client, FAILED, NULL);
}

/* Makes room for n addresses to try; NULL, and there are none, without memory. */
static union address *make_addresses(struct socks *socks, size_t n)
{
    union address *to = fb_alloc(socks->client, n * sizeof(*to));

    socks->to = to;
    socks->to_n = to != NULL ? n : 0;
    return to;
}

static void connect_to(struct socks *socks, const union address *address)
{
    union address *to = make_addresses(socks, 1);

    if (to != NULL)
        *to = *address;
    connect_next(socks, ENOMEM);
}

static void resolved(fb_worker *worker, const fb_names *names, void *arg)
{
    struct socks *socks = arg;
    union address *to = names->n > 0 ? make_addresses(socks, names->n) : NULL;

    (void)worker;
    if (names->outcome != FB_NAME_FOUND)
        fb_conn_logf(socks->client, FB_LOG_INFO, "\"%s\": %s", names->name, names->why);
    for (size_t i = 0; i < socks->to_n; i++)
        memcpy(&to[i], names->records[i].address, names->records[i].address_n);
    connect_next(
        socks, names->n > 0 || names->outcome == FB_NAME_NO_MEMORY ? ENOMEM : EHOSTUNREACH);
}

static void resolve(struct socks *socks, const uint8_t *p, size_t n)
{
    fb_resolve_options options = { .size = sizeof(options), .owner = socks->client };
    char name[256];

    memcpy(name, p, n);
    name[n] = '\0';
    options.port = (uint16_t)(p[n] << 8 | p[n + 1]);
    if (memchr(name, '\0', n) != NULL || fb_resolve(fb_worker_of(socks->client), name,
                                             FB_NAME_ADDRESSES, &options, resolved, socks) == NULL)
        reply(socks->client, FAILED, NULL);
}

/* ---- The client, step by step ---- */

/* Cuts a step's message of n bytes, which has to be whole in time. Of a message that is not whole
 * its beginning tells how many bytes there are at least: more than have come. */
static int cut(fb_conn *client, fb_bytes *rest, size_t n, fb_bytes *message)
{
    const struct socks_conf *conf = fb_conf_of(client);
    const fb_frame_limit limit = { .most = 1024, .timeout = (uint64_t)conf->step_timeout };

    return fb_frame_fixed(client, rest, n, &limit, message);
}

static size_t request_size(fb_bytes in)
{
    if (in.n >= 5 && in.p[3] == ADDRESS_IPV4)
        return 10;
    if (in.n >= 5 && in.p[3] == ADDRESS_IPV6)
        return 22;
    if (in.n >= 5 && in.p[3] == ADDRESS_NAME)
        return 7 + (size_t)in.p[4];
    return 5;
}

static size_t request_data(fb_conn *client, void *state, fb_bytes in)
{
    struct socks *socks = state;
    fb_bytes rest = in, request;
    union address to = { .storage.ss_family = AF_UNSPEC };

    if (!cut(client, &rest, request_size(in), &request))
        return 0;
    fb_stop(client); /* early bytes wait until the server is there */
    fb_set_timeout(client, 0);
    if (request.p[0] != SOCKS_VERSION) {
        fb_close(client);
    } else if (request.p[1] != CONNECT) {
        reply(client, NO_COMMAND, NULL);
    } else if (request.p[3] == ADDRESS_NAME) {
        resolve(socks, request.p + 5, request.p[4]);
    } else if (request.p[3] == ADDRESS_IPV4) {
        to.v4.sin_family = AF_INET;
        memcpy(&to.v4.sin_addr, request.p + 4, 4);
        memcpy(&to.v4.sin_port, request.p + 8, 2);
        connect_to(socks, &to);
    } else if (request.p[3] == ADDRESS_IPV6) {
        to.v6.sin6_family = AF_INET6;
        memcpy(&to.v6.sin6_addr, request.p + 4, 16);
        memcpy(&to.v6.sin6_port, request.p + 20, 2);
        connect_to(socks, &to);
    } else {
        reply(client, NO_ADDRESS_TYPE, NULL);
    }
    return in.n - rest.n;
}

static const fb_ops request_ops = { .size = sizeof(fb_ops), .data = request_data };

/* Compares in a time that tells nothing but the length. */
static int is_same(const uint8_t *p, size_t n, const char *text)
{
    int differs = 0;

    if (n != strlen(text))
        return 0;
    for (size_t i = 0; i < n; i++)
        differs |= p[i] ^ (uint8_t)text[i];
    return !differs;
}

static size_t login_size(fb_bytes in)
{
    size_t name_n = in.n < 2 ? 0 : in.p[1];

    return in.n < 3 + name_n ? 3 + name_n : 3 + name_n + in.p[2 + name_n];
}

static size_t login_data(fb_conn *client, void *state, fb_bytes in)
{
    const struct socks_conf *conf = fb_conf_of(client);
    fb_bytes rest = in, login;
    const uint8_t *password;
    int is_user;

    if (!cut(client, &rest, login_size(in), &login))
        return 0;
    password = login.p + 2 + login.p[1];
    is_user = login.p[0] == LOGIN_VERSION;
    is_user &= is_same(login.p + 2, login.p[1], conf->user[0]);
    is_user &= is_same(password + 1, password[0], conf->user[1]);
    fb_write(client, (uint8_t[]) { LOGIN_VERSION, !is_user }, 2);
    if (is_user) {
        fb_become(client, &request_ops, state);
    } else {
        fb_conn_logf(client, FB_LOG_INFO, "wrong user or password");
        fb_close(client);
    }
    return in.n - rest.n;
}

static const fb_ops login_ops = { .size = sizeof(fb_ops), .data = login_data };

static int client_opened(fb_conn *client, void *state)
{
    const struct socks_conf *conf = fb_conf_of(client);
    struct socks *socks = state;

    socks->client = client;
    fb_set_receive_timeout(client, (uint64_t)conf->step_timeout); /* while it is read */
    return 0;
}

static size_t greeting_data(fb_conn *client, void *state, fb_bytes in)
{
    const struct socks_conf *conf = fb_conf_of(client);
    uint8_t method = conf->user[0] != NULL ? METHOD_PASSWORD : METHOD_NONE;
    fb_bytes rest = in, greeting;

    if (!cut(client, &rest, in.n < 2 ? 2 : 2 + (size_t)in.p[1], &greeting))
        return 0;
    if (greeting.p[0] != SOCKS_VERSION) {
        fb_conn_logf(client, FB_LOG_INFO, "the client does not speak SOCKS 5");
        fb_close(client);
    } else if (memchr(greeting.p + 2, method, greeting.p[1]) == NULL) {
        fb_write(client, (uint8_t[]) { SOCKS_VERSION, METHOD_UNACCEPTABLE }, 2);
        fb_close(client);
    } else {
        fb_write(client, (uint8_t[]) { SOCKS_VERSION, method }, 2);
        fb_become(client, method == METHOD_PASSWORD ? &login_ops : &request_ops, state);
    }
    return in.n - rest.n;
}

static const fb_ops greeting_ops = {
    .size = sizeof(fb_ops), .opened = client_opened, .data = greeting_data
};

/* ---- The directives ---- */

static int set_user(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    if (strlen(args[0]) > 255 || strlen(args[1]) > 255)
        return fb_conf_errorf(conf, NULL, "a name and a password have at most 255 bytes");
    memcpy(value, args, n * sizeof(*args));
    return 0;
}

static int set_local(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    union address *local = value;

    (void)n;
    if (inet_pton(AF_INET, args[0], &local->v4.sin_addr) == 1)
        local->v4.sin_family = AF_INET;
    else if (inet_pton(AF_INET6, args[0], &local->v6.sin6_addr) == 1)
        local->v6.sin6_family = AF_INET6;
    else
        return fb_conf_errorf(conf, NULL, "\"%s\" is no address", args[0]);
    return fb_conf_need(conf, FB_NEEDS_BIND);
}

static const fb_directive directives[] = {
    { .name = "socks5", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "socks5_user",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct socks_conf, user),
        .room = sizeof(const char *[2]),
        .set = set_user,
        .args_least = 2,
        .args_most = 2 },
    { .name = "socks5_local",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct socks_conf, local),
        .room = sizeof(union address),
        .set = set_local,
        .args_least = 1,
        .args_most = 1 },
    { .name = "socks5_step_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct socks_conf, step_timeout),
        .initial = "10s" },
    { .name = "socks5_connect_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct socks_conf, connect_timeout),
        .initial = "30s" },
    { .name = "socks5_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct socks_conf, timeout),
        .initial = "10m" },
};

FB_PROTOCOL(socks5) = {
    FB_PROTOCOL_HEADER,
    .name = "socks5",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct socks),
    .conf_state = sizeof(struct socks_conf),
    .ops = &greeting_ops,
    .needs = FB_NEEDS_CONNECT | FB_NEEDS_RESOLVER,
};
