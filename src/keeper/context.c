/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as libssl's SSL_CTX: see context.h. */
#include "keeper/context.h"

#include "keeper/challenge.h"
#include "keeper/commands.h"
#include "keeper/extract.h"
#include "keeper/groups.h"
#include "keeper/reason.h"
#include "keeper/session_context.h"
#include "keeper/suites.h"
#include "keeper/trust.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>

/* Options that no command of a configuration changes. */
#define KEPT_OPTIONS (SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_SSLv3)
#define LOST_OPTIONS                                                                               \
    (SSL_OP_ENABLE_KTLS | SSL_OP_ALLOW_CLIENT_RENEGOTIATION |                                      \
        SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION)

/* nginx's rule: without a protocol in common the handshake fails. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n,
    const unsigned char *offered, unsigned offered_n, void *data)
{
    const struct context *context = data;

    (void)ssl;
    return context->lib->SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_n,
               context->profile->alpn, context->profile->alpn_n, offered,
               offered_n) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Gives a handshake the certificate for the name that the client tests; false: there is none. */
static bool answer_challenge(const struct context *context, SSL *ssl)
{
    const struct libssl *lib = context->lib;
    struct extract *extract = lib->SSL_get_ex_data(ssl, 0);
    const char *name = lib->SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name), *failed = NULL;
    struct pair pair = { .leaf = NULL };
    int status = challenge_load(&pair, context->profile->challenges, name, extract->refusal);

    if (status == 0 && (failed = context_use_certificate(lib, ssl, &pair)) == NULL)
        failed = context_use_key(lib, ssl, &pair);
    if (failed != NULL)
        reason_take(extract->refusal, sizeof(extract->refusal), failed);
    pair_free(&pair);
    return status == 0 && failed == NULL;
}

/* libssl's callback for the server name, also of a client that has sent none. */
static int answer_name(SSL *ssl, int *alert, void *data)
{
    const struct context *context = data;
    bool refused = context->profile->challenges != NULL ? !answer_challenge(context, ssl)
                                                        : context->profile->reject;

    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return refused ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_OK;
}

static void set_versions(struct context *context)
{
    unsigned versions = context->profile->versions;
    const struct libssl *lib = context->lib;

    assert((versions & (TLS_VERSION_1_2 | TLS_VERSION_1_3)) != 0);
    lib->SSL_CTX_ctrl(context->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION,
        (versions & TLS_VERSION_1_2) != 0 ? TLS1_2_VERSION : TLS1_3_VERSION, NULL);
    lib->SSL_CTX_ctrl(context->ctx, SSL_CTRL_SET_MAX_PROTO_VERSION,
        (versions & TLS_VERSION_1_3) != 0 ? TLS1_3_VERSION : TLS1_2_VERSION, NULL);
}

/* Removes older versions that commands have added; returns the versions left, as a profile's. */
static unsigned limit_versions(struct context *context)
{
    const struct libssl *lib = context->lib;
    long least = lib->SSL_CTX_ctrl(context->ctx, SSL_CTRL_GET_MIN_PROTO_VERSION, 0, NULL);
    long most = lib->SSL_CTX_ctrl(context->ctx, SSL_CTRL_GET_MAX_PROTO_VERSION, 0, NULL);
    uint64_t options = lib->SSL_CTX_set_options(context->ctx, 0);
    bool has_1_2 = least <= TLS1_2_VERSION && (most == 0 || most >= TLS1_2_VERSION),
         has_1_3 = most == 0 || most >= TLS1_3_VERSION;

    if (least < TLS1_2_VERSION)
        lib->SSL_CTX_ctrl(context->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    if (most == 0 || most > TLS1_3_VERSION)
        lib->SSL_CTX_ctrl(context->ctx, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, NULL);
    return (has_1_2 && (options & SSL_OP_NO_TLSv1_2) == 0 ? TLS_VERSION_1_2 : 0) |
           (has_1_3 && (options & SSL_OP_NO_TLSv1_3) == 0 ? TLS_VERSION_1_3 : 0);
}

/* Servers resume sessions by tickets alone: nothing of a session stays in this process. */
static void set_sessions(struct context *context)
{
    const struct tls_profile *profile = context->profile;
    const struct libssl *lib = context->lib;

    lib->SSL_CTX_ctrl(context->ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    lib->SSL_CTX_set_timeout(context->ctx, (long)profile->session_timeout);
    lib->SSL_CTX_set_num_tickets(context->ctx, profile->tickets ? 1 : 0);
    if (!profile->tickets)
        lib->SSL_CTX_set_options(context->ctx, SSL_OP_NO_TICKET);
}

static void set_callbacks(struct context *context)
{
    const struct libssl *lib = context->lib;
    SSL_CTX *ctx = context->ctx;

    extract_prepare(lib, ctx);
    if (context->profile->role == TLS_CLIENT)
        return;
    if (context->profile->alpn_n > 0)
        lib->SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, context);
    lib->SSL_CTX_callback_ctrl(ctx, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, (void (*)(void))answer_name);
    lib->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_TLSEXT_SERVERNAME_ARG, 0, context);
    if (context->profile->stapling_file_n > 0)
        stapling_attach(&context->stapling, lib, ctx);
}

/* Offers the profile's protocols to servers; one that chooses none is served all the same. */
static int offer_protocols(const struct context *context, struct log *log)
{
    const struct tls_profile *profile = context->profile;

    if (profile->alpn_n == 0 ||
        context->lib->SSL_CTX_set_alpn_protos(context->ctx, profile->alpn, profile->alpn_n) == 0)
        return 0;
    log_write(log, LEVEL_EMERG, 0, "SSL_CTX_set_alpn_protos() failed in %s", profile->at);
    return -1;
}

/* Sets parameters of DHE. Without a file there is no DHE, as in nginx: its exchange costs a server
 * the most. */
static int set_dhparam(struct context *context, struct pem_files *files, struct log *log)
{
    struct pem_file pem = {
        .files = files, .log = log, .what = "DH parameters", .index = context->profile->dhparam
    };
    EVP_PKEY *key;
    int status = -1;

    if (pem.index == TLS_NO_FILE)
        return 0;
    if (pem_file_open(&pem) < 0)
        return -1;
    ERR_clear_error();
    key = PEM_read_bio_Parameters(pem.bio, NULL);
    if (key == NULL)
        pem_file_mistake(&pem, 0, "PEM_read_bio_Parameters()");
    else if (!(EVP_PKEY_is_a(key, "DH") || EVP_PKEY_is_a(key, "DHX")) ||
             context->lib->SSL_CTX_set0_tmp_dh_pkey(context->ctx, key) != 1)
        pem_file_mistake(&pem, 0, "SSL_CTX_set0_tmp_dh_pkey()");
    else
        status = 0; /* the context has the key */
    if (status < 0)
        EVP_PKEY_free(key);
    pem_file_close(&pem);
    return status;
}

int context_create(struct context *context, const struct libssl *lib,
    const struct tls_profile *profile, struct pem_files *files, const struct ticket_ring *ring,
    struct log *log)
{
    struct session_context identity;
    unsigned versions;
    bool failed;

    *context = (struct context) { .lib = lib, .profile = profile };
    ERR_clear_error();
    context->ctx = lib->SSL_CTX_new(
        profile->role == TLS_CLIENT ? lib->TLS_client_method() : lib->TLS_server_method());
    if (context->ctx == NULL) {
        char reasons[REASON_TEXT];

        log_write(
            log, LEVEL_EMERG, 0, "%s", reason_take(reasons, sizeof(reasons), "SSL_CTX_new()"));
        return -1;
    }
    set_versions(context);
    set_sessions(context);
    set_callbacks(context);
    /* the chain is the file's alone; a handshake that waits for the client has no buffers */
    lib->SSL_CTX_ctrl(
        context->ctx, SSL_CTRL_MODE, SSL_MODE_NO_AUTO_CHAIN | SSL_MODE_RELEASE_BUFFERS, NULL);
    if (profile->prefer_server_ciphers)
        lib->SSL_CTX_set_options(context->ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    failed = suites_set(lib, context->ctx, profile, log) < 0;
    failed |= groups_set(lib, context->ctx, profile, log) < 0;
    session_context_begin(&identity, profile);
    failed |= trust_set(lib, context->ctx, profile, files, &identity, log) < 0;
    failed |= session_context_end(&identity, context->identity, log) < 0;
    if (profile->role == TLS_CLIENT) {
        failed |= offer_protocols(context, log) < 0;
    } else {
        failed |= set_dhparam(context, files, log) < 0;
        failed |= stapling_open(&context->stapling, lib, profile, files, log) < 0;
        failed |= tickets_open(&context->tickets, lib, context->ctx, profile, files, ring, log) < 0;
    }
    failed |= commands_run(lib, context->ctx, profile, log) < 0;
    lib->SSL_CTX_set_options(context->ctx, KEPT_OPTIONS);
    lib->SSL_CTX_clear_options(context->ctx, LOST_OPTIONS);
    if (failed)
        return -1;
    versions = limit_versions(context);
    if (versions != 0)
        return suites_restrict(lib, context->ctx, profile, versions, log);
    log_write(log, LEVEL_EMERG, 0,
        "\"%s\" leaves neither TLSv1.2 nor TLSv1.3 of the configured protocols in %s",
        commands_directive(profile), profile->at);
    return -1;
}

const char *context_use_certificate(const struct libssl *lib, SSL *ssl, const struct pair *pair)
{
    ERR_clear_error();
    if (lib->SSL_use_certificate(ssl, pair->leaf) != 1)
        return "SSL_use_certificate()";
    return lib->SSL_ctrl(ssl, SSL_CTRL_CHAIN, 1, pair->chain) == 1 ? NULL : "SSL_set1_chain()";
}

const char *context_use_key(const struct libssl *lib, SSL *ssl, const struct pair *pair)
{
    return X509_check_private_key(pair->leaf, pair->key) == 1 &&
                   lib->SSL_use_PrivateKey(ssl, pair->key) == 1
               ? NULL
               : "SSL_use_PrivateKey()";
}

void context_replace(struct context *context, struct context *fresh)
{
    assert(context->profile == fresh->profile && fresh->ctx != NULL);
    fresh->key_log = context->key_log;
    context_destroy(context);
    *context = *fresh;
    *fresh = (struct context) { .ctx = NULL };
    set_callbacks(context); /* with the context's place */
}

void context_destroy(struct context *context)
{
    if (context->ctx != NULL)
        context->lib->SSL_CTX_free(context->ctx);
    context->ctx = NULL;
    tickets_close(&context->tickets);
    stapling_close(&context->stapling);
}
