/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of TLS to clients, as a server has them, and what is made of them: a profile
 * (tls/profile.h), which the engine of handshakes reads. Private to the feature and its tests. */
#pragma once

#include "settings/feature.h"
#include "text/variable.h"
#include "tls/profile.h"

#include <bsd/sys/tree.h>

/* Arguments of a directive that may be repeated. */
struct ssl_words {
    const struct conf_word **list;
    unsigned n;
};

/* The path of a certificate or a key. */
struct ssl_path {
    const struct conf_word *word; /* NULL: none */
    const struct template *names; /* what follows the directory; NULL: there are no variables */
    size_t directory_n;           /* bytes of the word before */
};

struct ssl_paths {
    struct ssl_path *list;
    unsigned n;
};

struct ssl_alpn {
    const uint8_t *p; /* each protocol behind its length byte */
    unsigned n;       /* bytes */
};

struct ssl_commands {
    struct tls_command *list;
    unsigned n;
};

/* The feature's struct of a server. Words of files are as written; NULL: none. */
struct ssl_values {
    struct ssl_words ticket_keys, stapling_files;
    struct ssl_paths certificates, keys;
    const struct tls_cache *cache; /* of pairs with variables; NULL: off */
    struct ssl_alpn alpn;
    struct ssl_commands commands;
    const char *ciphers, *curves; /* NULL: the default */
    const struct conf_word *client_certificate, *trusted_certificate, *crl, *dhparam, *passwords;
    const struct conf_word *key_log;
    const struct conf_word *challenges; /* a directory */
    int64_t versions;                   /* TLS_VERSION_... */
    int64_t prefer_server_ciphers, reject_handshake, session_tickets, stapling;
    int64_t verify_client, verify_depth;        /* the first is an enum tls_verify */
    int64_t handshake_timeout, session_timeout; /* ms */
};

/* The struct of a protocol's directives of TLS to servers. */
struct ssl_client_values {
    int64_t on, sends_name, verify, verify_depth, reuses_sessions;
    int64_t versions; /* TLS_VERSION_... */
    struct ssl_alpn alpn;
    struct ssl_commands commands;
    const char *ciphers; /* NULL: the default */
    struct ssl_path certificate, key;
    const struct tls_cache *cache;
    const struct conf_word *trusted_certificate, *crl, *passwords, *key_log;
    const struct template *name;
};

/* A profile of connections to servers, to be made. */
struct ssl_client {
    struct ssl_client *next;
    const fb_directive *declared;
    const struct ssl_client_values *values;
    const struct scope *server;
    bool own; /* made for a server with a directive of its own */
    struct fb_tls_profile shown;
};

struct ssl_file;
RB_HEAD(ssl_files, ssl_file);

/* The feature's struct of the configuration. */
struct ssl_conf {
    struct ssl_files files;           /* entries of tls_profiles.files, by path */
    const struct tls_profile *common; /* of servers without a directive of TLS; or NULL */
    uint32_t facts;                   /* texts for variables in use: TLS_FACT() of each */
    struct ssl_client *clients;       /* the latest first */
    unsigned client_n;
};

extern const struct variable_row variables_ssl[];

/* Forms of a certificate as PEM. */
enum ssl_pem { SSL_PEM_RAW, SSL_PEM_INDENTED, SSL_PEM_ESCAPED };

/* certificate.c: Sets the value to the bytes of a certificate as PEM; -1 without memory. */
int ssl_certificate_value(
    struct fb_conn *conn, struct value *value, fb_bytes der, enum ssl_pem form);

/* The directives of connections to servers. */
extern const struct feature_tls ssl_clients;

/* set.c: Setters, which both roles have. */
int ssl_set_alpn(struct apply *apply, const struct conf_directive *directive, void *field);
int ssl_set_conf_command(struct apply *apply, const struct conf_directive *directive, void *field);
int ssl_set_file(struct apply *apply, const struct conf_directive *directive, void *field);
int ssl_set_protocols(struct apply *apply, const struct conf_directive *directive, void *field);

/* named.c: Reads the path of a certificate or key, and refuses what nginx takes instead. */
int ssl_read_path(
    struct apply *apply, const struct conf_directive *directive, struct ssl_path *path);
int ssl_set_certificate_cache(
    struct apply *apply, const struct conf_directive *directive, void *field);
/* named.c: Returns the directory of n bytes with which a path begins, one text for all its users;
 * NULL after a report. Keepers may open files beneath. */
const char *ssl_directory(struct apply *apply, const struct conf_word *word, size_t n);
/* named.c: Whether a path of the pair has variables: then both are opened by keepers. */
bool ssl_is_named(const struct ssl_path *certificate, const struct ssl_path *key);
/* named.c: Makes room for such pairs, and adds one. */
void ssl_make_named(struct apply *apply, struct tls_named *named, unsigned pair_n);
void ssl_add_named(struct apply *apply, struct tls_named *named, const struct ssl_path *certificate,
    const struct ssl_path *key);

/* files.c: Returns a word's place as FILE:LINE; NULL after a report. */
const char *ssl_place(struct apply *apply, const struct conf_word *word);
/* files.c: Returns the index of a file, which becomes an entry at its first use; TLS_NO_FILE where
 * the word is NULL, and after a report. */
uint32_t ssl_file_index(struct apply *apply, const struct conf_word *word);
/* files.c: Fills a pair in; a certificate that many servers have with one key is one pair. */
void ssl_fill_pair(struct apply *apply, struct tls_pair *pair, const struct conf_word *certificate,
    const struct conf_word *key, const struct conf_word *passwords);
/* files.c: Returns the place of such an index of a file to append to; NULL likewise. Warns of each
 * such file, as a forgotten one gives away all sessions. */
const uint32_t *ssl_key_log(struct apply *apply, const struct conf_word *word);
/* challenge.c: Count and make the profiles of clients that test names, in the room that is left. */
unsigned ssl_count_challenges(const struct scope *stream);
void ssl_make_challenges(struct apply *apply, struct scope *stream);
/* clients.c: Makes the profiles of connections to servers, in the room that is left. */
void ssl_make_clients(struct apply *apply);
/* profiles.c: Makes all profiles. */
void ssl_make_profiles(struct apply *apply, struct scope *stream);
/* profiles.c: Tells the bindings of addresses with `ssl`, and reports one without a certificate. */
void ssl_bind(struct apply *apply, struct scope *stream);
