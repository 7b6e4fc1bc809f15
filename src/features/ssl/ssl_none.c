/* SPDX-License-Identifier: BSD-2-Clause */
/* No TLS, in a build without OpenSSL: no directive, no variable, and no address of TLS. */
#include "features/features.h"
#include "settings/listen.h"

static void refuse_tls(struct apply *apply, struct scope *stream)
{
    const struct scope *server;
    const struct listen_address *listen;

    STAILQ_FOREACH (server, &stream->servers, link) {
        if ((server->server->needs & FB_NEEDS_TLS) != 0)
            report_error(apply->report, &server->directive->name,
                "protocol \"%s\" starts TLS, which needs OpenSSL, and this build of forkbeard "
                "lacks it",
                server->server->protocol->name);
        STAILQ_FOREACH (listen, &server->listens, link)
            if (listen->ssl)
                report_error(apply->report, listen->word,
                    "\"ssl\" of \"listen\" needs OpenSSL, which this build of forkbeard lacks");
    }
}

const struct feature ssl_feature = {
    .name = "ssl",
    .finish = refuse_tls,
};
