/* SPDX-License-Identifier: BSD-2-Clause */
/* The errors of chains, dates, revocation and strength. The numbers are OpenSSL's, which never
 * change. */
#include "tls/verify_text.h"

#include "base/compiler.h"

#include <stddef.h>

static const struct {
    int32_t code;
    const char *text;
} verify_texts[] = {
    { 2, "unable to get issuer certificate" },
    { 3, "unable to get certificate CRL" },
    { 7, "certificate signature failure" },
    { 8, "CRL signature failure" },
    { 9, "certificate is not yet valid" },
    { 10, "certificate has expired" },
    { 11, "CRL is not yet valid" },
    { 12, "CRL has expired" },
    { 18, "self-signed certificate" },
    { 19, "self-signed certificate in certificate chain" },
    { 20, "unable to get local issuer certificate" },
    { 21, "unable to verify the first certificate" },
    { 22, "certificate chain too long" },
    { 23, "certificate revoked" },
    { 25, "path length constraint exceeded" },
    { 26, "unsuitable certificate purpose" },
    { 27, "certificate not trusted" },
    { 28, "certificate rejected" },
    { 34, "unhandled critical extension" },
    { 62, "hostname mismatch" },
    { 64, "IP address mismatch" },
    { 66, "EE certificate key too weak" },
    { 67, "CA certificate key too weak" },
    { 68, "CA signature digest algorithm too weak" },
    { 79, "invalid CA certificate" },
};

const char *tls_verify_text(int32_t code)
{
    for (size_t i = 0; i < countof(verify_texts); i++)
        if (verify_texts[i].code == code)
            return verify_texts[i].text;
    return NULL;
}
