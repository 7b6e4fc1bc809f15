/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of the key exchange: see groups.h. */
#include "keeper/groups.h"

#include "base/compiler.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <string.h>

/* X25519 takes a quarter less time than P-256. The hybrid, which a quantum computer would not break
 * later, came with OpenSSL 3.5. */
#define DEFAULT_GROUPS "X25519:P-256:P-384"
#define HYBRID_GROUP "X25519MLKEM768:"
#define HYBRID_SINCE 0x30500000ul

static const struct group_number {
    int nid;
    uint16_t number;
} group_numbers[] = {
    { NID_X9_62_prime256v1, 23 },
    { NID_secp384r1, 24 },
    { NID_secp521r1, 25 },
    { NID_brainpoolP256r1, 26 },
    { NID_brainpoolP384r1, 27 },
    { NID_brainpoolP512r1, 28 },
    { NID_X25519, 29 },
    { NID_X448, 30 },
    { NID_ffdhe2048, 256 },
    { NID_ffdhe3072, 257 },
    { NID_ffdhe4096, 258 },
    { NID_ffdhe6144, 259 },
    { NID_ffdhe8192, 260 },
};

static long set_list(const struct libssl *lib, SSL_CTX *ctx, char *list)
{
    return lib->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_GROUPS_LIST, 0, list);
}

/* Cuts the list to the first name that the library does not take alone, if there is one. */
static void find_unknown(const struct libssl *lib, SSL_CTX *ctx, char *list)
{
    char *at = list, *end;

    do {
        end = strchr(at, ':');
        if (end != NULL)
            *end = '\0';
        if (set_list(lib, ctx, at) != 1) {
            memmove(list, at, strlen(at) + 1);
            return;
        }
        if (end != NULL)
            *end = ':';
        at = end != NULL ? end + 1 : NULL;
    } while (at != NULL);
}

int groups_set(
    const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile, struct log *log)
{
    const char *names = profile->groups;
    char *list;

    if (names == NULL)
        names =
            OpenSSL_version_num() >= HYBRID_SINCE ? HYBRID_GROUP DEFAULT_GROUPS : DEFAULT_GROUPS;
    list = OPENSSL_strdup(names);
    if (list == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the groups of \"ssl_ecdh_curve\"");
        return -1;
    }
    if (set_list(lib, ctx, list) == 1) {
        OPENSSL_free(list);
        return 0;
    }
    find_unknown(lib, ctx, list);
    ERR_clear_error();
    log_write(log, LEVEL_EMERG, 0, "\"ssl_ecdh_curve\" has \"%s\", which %s does not know in %s",
        list, OpenSSL_version(OPENSSL_VERSION), profile->at);
    OPENSSL_free(list);
    return -1;
}

uint16_t groups_number(long negotiated)
{
    if ((negotiated & TLSEXT_nid_unknown) != 0)
        return (uint16_t)(negotiated & UINT16_MAX);
    for (size_t i = 0; i < countof(group_numbers); i++)
        if (group_numbers[i].nid == negotiated)
            return group_numbers[i].number;
    return 0;
}
