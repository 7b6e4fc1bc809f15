/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_download_rate and proxy_upload_rate: bytes a second, given or worked out for each session.
 * A text without a size is logged, and there is no limit. */
#include "protocols/proxy/proxy.h"

#include <string.h>

#define RATE_MOST ((uint64_t)INT64_MAX)

/* Reads "100", "16k" or "1M". */
static bool parse(fb_bytes text, uint64_t *out)
{
    size_t n = text.n;
    uint64_t rate = 0, unit = 1;

    if (n > 0 && (text.p[n - 1] == 'k' || text.p[n - 1] == 'K'))
        unit = 1024;
    else if (n > 0 && (text.p[n - 1] == 'm' || text.p[n - 1] == 'M'))
        unit = (uint64_t)1024 * 1024;
    n -= unit > 1;
    for (size_t i = 0; i < n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || rate > RATE_MOST / unit / 10 - 1)
            return false;
        rate = rate * 10 + (uint64_t)(text.p[i] - '0');
    }
    *out = rate * unit;
    return n > 0;
}

int proxy_rate_evaluate(fb_conn *client, const struct proxy_rate *rate, uint64_t *out)
{
    const struct proxy_worker *own = fb_worker_state(client);
    fb_bytes text;

    if (own->stream->evaluate(client, rate->text, &text) != 0)
        return -1;
    if (!parse(text, out)) {
        *out = 0;
        fb_conn_logf(
            client, FB_LOG_ERROR, "invalid size \"%.*s\"", (int)text.n, (const char *)text.p);
    }
    return 0;
}

static int set_rate(fb_conf *conf, const char *directive, struct proxy_rate *rate, const char *arg)
{
    const fb_bytes text = { (const uint8_t *)arg, strlen(arg) };

    rate->fixed = 0;
    rate->text = NULL;
    if (strchr(arg, '$') != NULL) {
        rate->text = fb_conf_template(conf, directive, arg);
        return rate->text != NULL ? 0 : -1;
    }
    if (!parse(text, &rate->fixed))
        return fb_conf_errorf(conf, directive, "invalid size \"%s\"", arg);
    return 0;
}

int proxy_rate_set_download(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)n;
    return set_rate(conf, "proxy_download_rate", value, args[0]);
}

int proxy_rate_set_upload(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)n;
    return set_rate(conf, "proxy_upload_rate", value, args[0]);
}
