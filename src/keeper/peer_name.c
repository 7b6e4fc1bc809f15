/* SPDX-License-Identifier: BSD-2-Clause */
/* Server names by OpenSSL's rules (RFC 6125): see peer_name.h. */
#include "keeper/peer_name.h"

#include "tls/server_name.h"

#include <assert.h>
#include <openssl/x509v3.h>
#include <string.h>

int peer_name_send(const struct libssl *lib, SSL *ssl, fb_bytes name)
{
    uint8_t address[TLS_ADDRESS_MOST];
    char text[TLS_NAME_MOST + 1];

    assert(name.n <= TLS_NAME_MOST);
    if (name.n == 0 || tls_server_address(name, address) > 0)
        return 0;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    return lib->SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, text) == 1
               ? 0
               : -1;
}

void peer_name_check(X509 *peer, fb_bytes name, struct tls_session *session)
{
    uint8_t address[TLS_ADDRESS_MOST];
    unsigned n = tls_server_address(name, address);
    bool matches;

    assert(peer != NULL && session->verify == TLS_VERIFIED);
    if (n > 0)
        matches = X509_check_ip(peer, address, n, 0) == 1;
    else /* a length of 0 would be strlen() to the library */
        matches = name.n > 0 && X509_check_host(peer, (const char *)name.p, name.n, 0, NULL) == 1;
    if (matches)
        return;
    session->verify = TLS_VERIFIED_OTHER;
    session->verify_code = n > 0 ? X509_V_ERR_IP_ADDRESS_MISMATCH : X509_V_ERR_HOSTNAME_MISMATCH;
}
