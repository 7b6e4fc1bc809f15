/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls about TLS. Verification of a client is the same as of a client whose session
 * begins with TLS. Never knows the engine: session/secure.c shakes hands. */
#include "session/tls.h"
#include "sdk/handle.h"
#include "session/end.h"
#include "session/secure.h"
#include "text/tls_paths.h"
#include "tls/layer.h"
#include "tls/verify_text.h"

#include <assert.h>
#include <string.h>

static void client_secured(struct fb_conn *conn, const struct tls_reply *reply)
{
    assert(!conn->outgoing && conn->source.layered);
    session_tls_set(conn, reply);
    if (!conn_is_active(conn))
        return;
    if (session_tls_accepts(conn, session_server_of(conn)->tls, &reply->session)) {
        session_call_tls_started(conn);
    } else {
        session_end_note(conn, SESSION_END_TLS_FAILED);
        session_set_status(conn, STATUS_INTERNAL);
        conn_fail(conn, FB_TLS_FAILED);
    }
}

/* Returns the profile by which TLS can begin on the connection; NULL: TLS cannot. */
static const struct tls_profile *profile_to_start(const struct fb_conn *conn)
{
    const struct tls_profile *profile;

    if (conn->outgoing || !session_secure_is_possible(conn))
        return NULL;
    profile = session_server_of(conn)->tls;
    return profile != NULL && !profile->reject ? profile : NULL;
}

int fb_can_start_tls(const fb_conn *conn)
{
    return SDK_VALID(conn) && profile_to_start(conn) != NULL;
}

static int name_certificates(
    struct fb_conn *conn, struct tls_hello *hello, fb_bytes in, struct tls_start *start)
{
    return tls_paths_set(conn, session_server_of(conn)->tls, hello, in, start);
}

int fb_start_tls(fb_conn *conn, const fb_tls_options *options)
{
    const struct tls_profile *profile = SDK_VALID(conn) ? profile_to_start(conn) : NULL;
    struct session_secure_options own = { .start.role = TLS_SERVER, .done = client_secured };

    if (profile == NULL)
        return -1;
    own.start.profile = profile->index;
    own.start.offload = profile->offload;
    own.prepare = profile->named.n > 0 ? name_certificates : NULL;
    own.timeout = profile->handshake_timeout;
    if (options != NULL && options->size >= sizeof(*options)) {
        own.before = options->reply;
        if (options->timeout > 0)
            own.timeout = session_clamp_ms(options->timeout);
    }
    return session_secure_begin(conn, &own);
}

static fb_tls_verify verify_of(const struct session_tls_info *info)
{
    switch (info->verify) {
    case TLS_VERIFIED_NONE:
        return FB_TLS_NO_CERTIFICATE;
    case TLS_VERIFIED:
        return FB_TLS_VERIFIED;
    default:
        return FB_TLS_UNVERIFIED;
    }
}

int fb_tls_info(const fb_conn *conn, fb_tls *out)
{
    const struct session_tls_info *info = SDK_VALID(conn) ? session_tls_of(conn) : NULL;
    const struct tls_suite *suite;
    const char *text;
    fb_tls tls;

    if (info == NULL || conn->outgoing)
        return -1;
    suite = tls_suite_find(info->suite);
    text = tls_verify_text(info->verify_code);
    tls = (fb_tls) {
        .size = out->size,
        .version = info->version,
        .cipher = info->suite,
        .group = info->group,
        .resumed = info->resumed,
        .truncated = layer_is_truncated(conn),
        .verify = verify_of(info),
        .verify_code = info->verify_code,
        .verify_text = text != NULL ? text : "",
        .cipher_name = suite->name, /* the layer has it */
        .sni = session_tls_name(info),
        .alpn = session_tls_alpn(info),
        .certificate = session_tls_peer(info),
    };
    if (tls.certificate.n > 0)
        cipher_digest(tls.certificate.p, tls.certificate.n, tls.fingerprint);
    memcpy(out, &tls, out->size < sizeof(tls) ? out->size : sizeof(tls));
    return 0;
}
