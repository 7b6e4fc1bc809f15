/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on names. The options may be those of another version of the header. */
#include "process/role.h"
#include "sdk/handle.h"
#include "worker/resolutions.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static fb_resolve_options copy_options(const fb_resolve_options *options)
{
    fb_resolve_options own = { .size = sizeof(own) };

    if (options != NULL)
        memcpy(&own, options, options->size < sizeof(own) ? options->size : sizeof(own));
    return own;
}

static bool is_internet(const struct address *address)
{
    return address->any.sa_family == AF_INET || address->any.sa_family == AF_INET6;
}

fb_resolution *fb_resolve(fb_worker *worker, const char *name, fb_name_type type,
    const fb_resolve_options *options,
    void (*resolved)(fb_worker *worker, const fb_names *names, void *arg), void *arg)
{
    fb_resolve_options own = copy_options(options);
    struct address address;
    struct names_query query = {
        .name = name,
        .type = type,
        .timeout = own.timeout,
        .port = own.port,
        .resolved = resolved,
        .arg = arg,
    };

    assert(role_is(ROLE_WORKER) && resolved != NULL);
    if (own.owner != NULL && !SDK_VALID(own.owner)) {
        errno = ECANCELED;
        return NULL;
    }
    if (own.address != NULL) {
        query.address = &address;
        if (!address_from(&address, own.address) || !is_internet(&address)) {
            errno = EINVAL;
            return NULL;
        }
    }
    return resolutions_begin(worker, own.owner, &query);
}

void fb_resolve_cancel(fb_resolution *resolution)
{
    assert(resolution != NULL);
    names_cancel(resolution);
}
