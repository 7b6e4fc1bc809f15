/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the rows of nginx_names.def: a correct configuration has no refused name. */
#include "settings/nginx_only.h"

#include "base/compiler.h"
#include "conf/report.h"
#include "settings/setting.h"

#include <assert.h>
#include <string.h>

#define LACKS_OPENSSL ": OpenSSL is missing in this build"

struct no_effect {
    const char *name;
    unsigned at;
};

#define MODULE(module, ...)
#define VARIABLES(module, ...)
#define NO_EFFECT(name, at) { #name, at },
static const struct no_effect no_effects[] = {
#include "settings/nginx_names.def"
};
#undef MODULE
#undef NO_EFFECT

#define MODULE(module, ...) __VA_ARGS__,
#define NO_EFFECT(name, at)
static const char *const names[] = {
#include "settings/nginx_names.def"
};
#undef MODULE
#undef VARIABLES

#define MODULE(module, ...)
#define VARIABLES(module, ...) __VA_ARGS__,
static const char *const variables[] = {
#include "settings/nginx_names.def"
};
#undef MODULE
#undef VARIABLES
#undef NO_EFFECT

static bool is_among(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

bool nginx_only(const char *name)
{
    return is_among(names, countof(names), name);
}

bool nginx_only_variable(const char *name)
{
    return is_among(variables, countof(variables), name);
}

/* The reason for the refusal of names, by their beginning; the first row that fits counts. */
struct lack {
    const char *prefix, *text;
};

/* Directives and variables of TLS. A build with OpenSSL has the rest that begin with "ssl_". */
static const struct lack tls_lacks[] = {
    { "proxy_ssl", LACKS_OPENSSL },
    { "ssl_buffer_size", "" },
    { "ssl_certificate_compression", ": this version does not compress certificates" },
    { "ssl_early_data", ": this version takes no early data" },
    { "ssl_ech_", ": this version has no Encrypted Client Hello" },
    { "ssl_name", "" },
    { "ssl_ocsp", ": no OCSP responder is asked, \"ssl_crl\" has revoked certificates" },
    { "ssl_stapling_responder", ": no OCSP responder is asked, see \"ssl_stapling_file\"" },
    { "ssl_verify_", LACKS_OPENSSL },
    { "ssl_verify", "" },
    { "ssl_", LACKS_OPENSSL },
    { "ssl", ": \"ssl\" is a parameter of \"listen\"" },
    { "starttls", ": STARTTLS is \"proxy_starttls\" of \"stream\"" },
    { .prefix = NULL },
};

static const char *find_lack(const struct lack *lacks, const char *name)
{
    for (; lacks->prefix != NULL; lacks++)
        if (strncmp(name, lacks->prefix, strlen(lacks->prefix)) == 0)
            return lacks->text;
    return NULL;
}

const char *nginx_lacking(const char *name)
{
    const char *lack = find_lack(tls_lacks, name);

    if (lack != NULL)
        return lack;
    if (strcmp(name, "http") == 0 || strcmp(name, "mail") == 0)
        return ": all servers belong in \"stream\"";
    if (strcmp(name, "state") == 0)
        return ": servers come from the configuration";
    if (strcmp(name, "udp_timeout") == 0)
        return ": there is no UDP here, only TCP";
    if (strcmp(name, "ip_hash") == 0 || strncmp(name, "sticky", 6) == 0)
        return ": \"hash $remote_addr consistent\" keeps a client with its server";
    if (strncmp(name, "limit_req", 9) == 0)
        return ": \"limit_conn_rate\" limits the rate of connections";
    return "";
}

const char *nginx_mechanism(const char *name)
{
    if (strcmp(name, "rtsig") == 0)
        return "nginx has rtsig for Linux before 2.6.39, the daemon has epoll there";
    if (strcmp(name, "iocp") == 0)
        return "only Windows has the mechanism";
    if (strcmp(name, "aio") == 0)
        return "aio is no event mechanism any more, files are read by the \"aio\" directive";
    return NULL;
}

bool nginx_module(const char *path)
{
    static const char end[] = "_module.so";
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t n = strlen(name);

    return strncmp(name, "ngx_", 4) == 0 && n >= sizeof(end) + 4 &&
           strcmp(name + n - (sizeof(end) - 1), end) == 0;
}

unsigned nginx_no_effect(const char *name)
{
    for (size_t i = 0; i < countof(no_effects); i++)
        if (strcmp(no_effects[i].name, name) == 0)
            return no_effects[i].at;
    return 0;
}

const char *nginx_nearest_no_effect(const char *name, unsigned at)
{
    struct nearest near = { .word = name };

    assert(at != 0);
    for (size_t i = 0; i < countof(no_effects); i++)
        if (no_effects[i].at & at)
            nearest_try(&near, no_effects[i].name);
    return near.found;
}

const char *nginx_nearest(const char *name)
{
    struct nearest near = { .word = name };

    for (size_t i = 0; i < countof(names); i++)
        nearest_try(&near, names[i]);
    return near.found;
}
