/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the rows of nginx_names.def: a correct configuration has no refused name. */
#include "settings/nginx_only.h"

#include "base/compiler.h"
#include "conf/report.h"
#include "settings/setting.h"

#include <assert.h>
#include <string.h>

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

/* Whether a word of the name, between "_", is "ssl". */
static bool is_of_tls(const char *name)
{
    for (const char *word = name; word != NULL; word = strchr(word, '_')) {
        word += *word == '_';
        if (strcmp(word, "ssl") == 0 || strncmp(word, "ssl_", 4) == 0)
            return true;
    }
    return strcmp(name, "starttls") == 0;
}

const char *nginx_lacking(const char *name)
{
    if (is_of_tls(name))
        return ": this version has no TLS";
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
