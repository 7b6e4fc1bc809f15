/* SPDX-License-Identifier: BSD-2-Clause */
/* The tickets of a context: see tickets.h. Their form is OpenSSL's own and nginx's: AES-CBC, and
 * HMAC-SHA256 over it. */
#include "keeper/tickets.h"

#include "base/clock.h"
#include "keeper/extract.h"
#include "os/wakeup.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of files: the name, and two secrets of 16 or 32 bytes. */
#define SMALL_FILE 48
#define LARGE_FILE 80
/* The longest wait for a keeper that makes the first key of all, or has been killed while making
 * the key: twice the time of a claim. */
#define FIRST_KEY_MS 200

uint64_t tickets_clock(void)
{
    struct clock clock = { 0 };

    clock_read(&clock);
    return clock.mono_ms;
}

/* Copies the key that encrypts. Only the very first may have to be waited for. */
static int take_key(const struct tickets *tickets, struct ticket_key *key)
{
    uint64_t now = tickets_clock(), end = now + FIRST_KEY_MS;

    if (tickets->n > 0) {
        *key = tickets->keys[0];
        return 0;
    }
    while (ticket_ring_take(tickets->ring, now, key) == -1) {
        if (now >= end)
            return -1;
        os_wait_poll(NULL, 0, 1, NULL);
        now = tickets_clock();
    }
    return 0;
}

/* Copies the key that a ticket names, unless unknown. */
static enum ticket_age find_key(
    const struct tickets *tickets, const uint8_t name[TICKET_NAME], struct ticket_key *key)
{
    if (tickets->n == 0)
        return ticket_ring_find(tickets->ring, name, key);
    for (unsigned i = 0; i < tickets->n; i++)
        if (CRYPTO_memcmp(tickets->keys[i].name, name, TICKET_NAME) == 0) {
            *key = tickets->keys[i];
            return i == 0 ? TICKET_NEWEST : TICKET_OLDER;
        }
    return TICKET_UNKNOWN;
}

static const EVP_CIPHER *cipher_of(const struct ticket_key *key)
{
    assert(key->size == 16 || key->size == TICKET_SECRET_MOST);
    return key->size == 16 ? EVP_aes_128_cbc() : EVP_aes_256_cbc();
}

static bool set_mac(EVP_MAC_CTX *mac, struct ticket_key *key)
{
    OSSL_PARAM params[] = {
        OSSL_PARAM_octet_string(OSSL_MAC_PARAM_KEY, key->mac, key->size),
        OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t)"SHA256", 0),
        OSSL_PARAM_END,
    };

    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

/* The answers of libssl's callback. */
enum { TICKET_ERROR = -1, TICKET_IGNORED, TICKET_TAKEN, TICKET_RENEWED };

static int encrypt_by_key(struct ticket_key *key, unsigned char *name, unsigned char *iv,
    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    memcpy(name, key->name, TICKET_NAME);
    return RAND_bytes(iv, EVP_CIPHER_get_iv_length(cipher_of(key))) == 1 &&
                   EVP_EncryptInit_ex(cipher, cipher_of(key), NULL, key->cipher, iv) == 1 &&
                   set_mac(mac, key)
               ? TICKET_TAKEN
               : TICKET_ERROR;
}

/* With TLS 1.3 a ticket is good for one use: the client is given the next. */
static int decrypt_by_key(struct ticket_key *key, bool renews, const unsigned char *iv,
    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    if (EVP_DecryptInit_ex(cipher, cipher_of(key), NULL, key->cipher, iv) != 1 ||
        !set_mac(mac, key))
        return TICKET_ERROR;
    return renews ? TICKET_RENEWED : TICKET_TAKEN;
}

static int choose_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
    EVP_MAC_CTX *mac, int encrypts)
{
    const struct extract *extract = libssl_ex_data()(ssl, 0);
    const struct tickets *tickets = extract->tickets;
    struct ticket_key key;
    enum ticket_age age;
    int answer = TICKET_ERROR;

    if (encrypts == 1) {
        if (take_key(tickets, &key) == 0)
            answer = encrypt_by_key(&key, name, iv, cipher, mac);
    } else {
        age = find_key(tickets, name, &key);
        answer = age == TICKET_UNKNOWN
                     ? TICKET_IGNORED
                     : decrypt_by_key(&key,
                           age == TICKET_OLDER || extract->lib->SSL_version(ssl) == TLS1_3_VERSION,
                           iv, cipher, mac);
    }
    OPENSSL_cleanse(&key, sizeof(key));
    return answer;
}

/* nginx's forms of a file, of which the larger is OpenSSL's as well. */
static void parse_key(struct ticket_key *key, const uint8_t *p, size_t n)
{
    size_t size = (n - TICKET_NAME) / 2;
    const uint8_t *first = p + TICKET_NAME, *second = first + size;

    assert(n == SMALL_FILE || n == LARGE_FILE);
    memcpy(key->name, p, TICKET_NAME);
    memcpy(key->cipher, n == SMALL_FILE ? first : second, size);
    memcpy(key->mac, n == SMALL_FILE ? second : first, size);
    key->size = (uint8_t)size;
}

static int read_ticket_key(
    struct ticket_key *key, uint32_t index, struct pem_files *files, struct log *log)
{
    struct pem_file file = { .files = files, .log = log, .what = "ticket key", .index = index };
    const struct tls_file *named = &files->profiles->files[index];
    bool has_size;

    if (pem_file_open(&file) < 0)
        return -1;
    has_size = file.n == SMALL_FILE || file.n == LARGE_FILE;
    if (has_size)
        parse_key(key, (const uint8_t *)file.p, file.n);
    else
        log_write(log, files->level, 0, "\"%s\" must be %d or %d bytes in %s%s", named->path,
            SMALL_FILE, LARGE_FILE, named->at, files->outcome);
    pem_file_close(&file);
    return has_size ? 0 : -1;
}

int tickets_open(struct tickets *tickets, const struct libssl *lib, SSL_CTX *ctx,
    const struct tls_profile *profile, struct pem_files *files, const struct ticket_ring *ring,
    struct log *log)
{
    int status = 0;

    *tickets = (struct tickets) { .ring = ring };
    if (profile->ticket_key_n > 0) {
        tickets->keys = calloc(profile->ticket_key_n, sizeof(*tickets->keys));
        if (tickets->keys == NULL) {
            log_write(log, LEVEL_EMERG, 0, "no memory for the keys of tickets");
            return -1;
        }
    }
    for (; tickets->n < profile->ticket_key_n; tickets->n++)
        if (read_ticket_key(
                &tickets->keys[tickets->n], profile->ticket_keys[tickets->n], files, log) < 0)
            status = -1;
    lib->SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, choose_key);
    return status;
}

void tickets_close(struct tickets *tickets)
{
    if (tickets->keys != NULL)
        OPENSSL_cleanse(tickets->keys, tickets->n * sizeof(*tickets->keys));
    free(tickets->keys);
    *tickets = (struct tickets) { .ring = NULL };
}
