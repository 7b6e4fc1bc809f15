/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on the configuration while it is read: a protocol calls from conf_done and `set`,
 * in the master or a single process, and in the child for the check of a configuration. The calls
 * report and allocate on behalf of settings/, and never touch a worker. */
#include "features/health/health.h"
#include "features/pass/pass.h"
#include "features/upstream/upstream.h"
#include "process/role.h"
#include "settings/apply.h"
#include "settings/calls.h"
#include "settings/protocol.h"

#include <assert.h>

int fb_conf_errorf(fb_conf *conf, const char *directive, const char *format, ...)
{
    va_list args;

    assert(role_is(ROLE_MASTER));
    va_start(args, format);
    settings_vreport(conf, directive, format, args);
    va_end(args);
    return -1;
}

void *fb_conf_alloc(fb_conf *conf, size_t n)
{
    assert(role_is(ROLE_MASTER));
    return apply_alloc(conf->apply, n);
}

const fb_target *fb_conf_target(fb_conf *conf, const char *directive, const char *text)
{
    assert(role_is(ROLE_MASTER));
    return settings_target(conf, directive, text);
}

const fb_pool *fb_conf_pool(fb_conf *conf, const char *directive, const char *name)
{
    assert(role_is(ROLE_MASTER));
    return settings_pool(conf, directive, name);
}

const fb_template *fb_conf_template(fb_conf *conf, const char *directive, const char *text)
{
    assert(role_is(ROLE_MASTER));
    return settings_template(conf, directive, text);
}

const fb_variable *fb_conf_variable(fb_conf *conf, const char *directive, const char *name)
{
    assert(role_is(ROLE_MASTER));
    return settings_variable(conf, directive, name);
}

const fb_listener *fb_conf_listener(fb_conf *conf, const char *directive, const char *text)
{
    assert(role_is(ROLE_MASTER));
    return pass_listener_of_conf(conf, directive, text);
}

const fb_upstream *fb_conf_upstream(fb_conf *conf, const char *directive, const char *text)
{
    assert(role_is(ROLE_MASTER));
    return upstream_of_conf(conf, directive, text);
}

const fb_health_check *fb_conf_health_check(fb_conf *conf, const char *directive,
    const fb_upstream *upstream, const fb_health_options *options)
{
    assert(role_is(ROLE_MASTER));
    return health_check_of_conf(conf, directive, upstream, options);
}

int fb_conf_need(fb_conf *conf, uint64_t needs)
{
    assert(role_is(ROLE_MASTER));
    return settings_need(conf, needs);
}

fb_map *fb_conf_map(fb_conf *conf, const fb_map_options *options)
{
    assert(role_is(ROLE_MASTER) && conf->protocol != NULL);
    return settings_map(conf, options);
}
