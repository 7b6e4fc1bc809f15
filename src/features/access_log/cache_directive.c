/* SPDX-License-Identifier: BSD-2-Clause */
/* The directive `open_log_file_cache`: descriptors of access logs whose paths have variables. */
#include "base/check.h"
#include "base/number.h"
#include "features/access_log/directives.h"
#include "features/features.h"
#include "settings/set_value.h"

#include <limits.h>
#include <string.h>

#define INACTIVE_MS 10000
#define VALID_MS 60000
#define TIME_MOST (INT64_C(86400000) * 365)
#define EXPECTED "expected \"off\", or max=NUMBER inactive=TIME min_uses=NUMBER valid=TIME"

static int set_number_of(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *value, int64_t least, int64_t *out)
{
    if (number_parse(value, least, INT_MAX, out) == NUMBER_OK)
        return 0;
    return set_bad_value(apply, directive, arg, "expected a number of at least %d", (int)least);
}

static int set_time_of(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *value, int64_t *out)
{
    if (number_parse_msec(value, 0, TIME_MOST, out) == NUMBER_OK)
        return 0;
    return set_bad_value(apply, directive, arg, "expected a time of at most 1y");
}

static int set_part(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    struct access_cache_setting *cache)
{
    const char *text = directive->args[arg].text, *value = strchr(text, '=');
    size_t n;

    if (value == NULL)
        return set_bad_value(apply, directive, arg, EXPECTED);
    n = (size_t)(value++ - text);
    if (n == strlen("max") && strncmp(text, "max", n) == 0)
        return set_number_of(apply, directive, arg, value, 1, &cache->max);
    if (n == strlen("min_uses") && strncmp(text, "min_uses", n) == 0)
        return set_number_of(apply, directive, arg, value, 0, &cache->min_uses);
    if (n == strlen("inactive") && strncmp(text, "inactive", n) == 0)
        return set_time_of(apply, directive, arg, value, &cache->inactive);
    if (n == strlen("valid") && strncmp(text, "valid", n) == 0)
        return set_time_of(apply, directive, arg, value, &cache->valid);
    return set_bad_value(apply, directive, arg, EXPECTED);
}

int open_log_file_cache_set(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field)
{
    struct access_log_conf *conf;
    struct access_cache_setting *cache;

    (void)setting;
    *(const struct access_cache_setting **)field = NULL;
    if (strcmp(directive->args[0].text, "off") == 0)
        return directive->arg_n == 1 ? 0 : set_bad_value(apply, directive, 1, EXPECTED);
    cache = apply_alloc(apply, sizeof(*cache));
    if (cache == NULL)
        return -1;
    cache->inactive = INACTIVE_MS;
    cache->valid = VALID_MS;
    cache->min_uses = 1;
    for (unsigned i = 0; i < directive->arg_n; i++)
        if (set_part(apply, directive, i, cache) == -1)
            return -1;
    if (cache->max == 0) {
        report_error(
            apply->report, &directive->name, "\"open_log_file_cache\" must have \"max\" parameter");
        return -1;
    }
    conf = feature_conf(apply, FEATURE_ACCESS_LOG);
    cache->index = conf->cache_n++;
    *(const struct access_cache_setting **)field = cache;
    return 0;
}
