/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS within a session. Part of <forkbeard/forkbeard.h>, with the same rules. Since API 4. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of fb_start_tls(). A field of 0 is the default. Later versions only append fields. */
typedef struct fb_tls_options {
    size_t size;      /* sizeof(fb_tls_options) */
    uint64_t timeout; /* ms for the handshake; 0: the server's ssl_handshake_timeout */
    fb_bytes reply;   /* the reply to the client's command, sent in plain, behind earlier output */
} fb_tls_options;

/* Returns whether fb_start_tls() would begin TLS, memory aside: so whether to offer it. */
FB_SDK int fb_can_start_tls(const fb_conn *conn);

/* Begins TLS with a client, by the server's ssl_certificate and further directives of TLS: what
 * STARTTLS of SMTP, IMAP and others asks for. `listen` has no `ssl`. `data` has to count the
 * command among the consumed bytes.
 *
 * Output written before the call leaves in plain, and so does the options' reply; output written
 * since then is kept, and sent by TLS. All input behind the consumed bytes is the client's
 * handshake: plain commands that were sent along never come to `data`, and no frame is cut from
 * them. `tls_started` is called when the handshake is done. The end without it is `closed`: as
 * FB_TLS_FAILED, for a client's certificate too that is not what ssl_verify_client asks for; as
 * FB_TLS_TIMED_OUT; or as of any connection.
 *
 * Meanwhile other callbacks are called as ever, but `unwritable`. fb_stop(), fb_resume(),
 * fb_shutdown() and the connection's timeouts have their effect behind the handshake; fb_close()
 * drops what is kept, and so does fb_pipe(), which ends both connections.
 *
 * `options` is lent until the call returns; NULL: the defaults. Returns 0; or -1, and nothing has
 * changed: the server has no certificate, the connection is no client's, has TLS or a pipe, shakes
 * hands already, one of its halves has ended, or memory is short. */
FB_SDK int fb_start_tls(fb_conn *conn, const fb_tls_options *options);

/* What has become of the peer's certificate. */
typedef enum fb_tls_verify {
    FB_TLS_NO_CERTIFICATE, /* none came */
    FB_TLS_VERIFIED,
    FB_TLS_UNVERIFIED, /* `verify_code` says why */
} fb_tls_verify;

/* What is known of a connection's TLS. Later versions only append fields. */
typedef struct fb_tls {
    size_t size;             /* sizeof(fb_tls), set by the caller */
    uint32_t version;        /* 0x0303: TLS 1.2; 0x0304: TLS 1.3 */
    uint32_t cipher;         /* IANA's number of the cipher suite */
    uint32_t group;          /* IANA's number of the group of the key exchange; 0: none */
    uint32_t resumed;        /* 1: the session of an earlier connection goes on; else 0 */
    uint32_t truncated;      /* 1: the peer has ended without saying so, as an attacker could make
                                it look: more may have been sent; else 0 */
    uint32_t verify;         /* fb_tls_verify */
    int32_t verify_code;     /* OpenSSL's X509_V_ERR_...; 0: X509_V_OK */
    uint32_t reserved;       /* 0 */
    const char *verify_text; /* OpenSSL's text of verify_code; static; "" for a rare code */
    const char *cipher_name; /* OpenSSL's name, "TLS_AES_128_GCM_SHA256"; static */
    fb_bytes sni;            /* the server's name that the client has asked for; n is 0: none */
    fb_bytes alpn;           /* the protocol that both have agreed upon; n is 0: none */
    fb_bytes certificate;    /* the peer's, DER; n is 0: none, or longer than 8192 bytes */
    uint8_t fingerprint[32]; /* SHA-256 of the certificate; zeros without one, and in a build
                                without OpenSSL */
} fb_tls;

/* Tells what is known of the TLS of a client, since `opened` on a `listen` with `ssl`, and since
 * `tls_started` after fb_start_tls(). Only for protocols with FB_KEEPS_TLS among their flags: a
 * session keeps it all until `closed` has returned, and until then the spans are valid. Fills in as
 * much of *out as `size` says. Returns 0; or -1, and *out is as before: no TLS, or not yet, no
 * client, or nothing was kept, as may be without FB_KEEPS_TLS. */
FB_SDK int fb_tls_info(const fb_conn *conn, fb_tls *out);

#ifdef __cplusplus
}
#endif
