/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS as a server, or a connection to a server, wants it: data, without a type of a library.
 *
 * settings fill profiles in when the configuration is read; master, workers and keepers inherit
 * them by fork(), and name profiles and files by their index. Nothing changes a profile in use. */
#pragma once

#include "base/log.h"
#include "tls/facts.h"
#include "tls/suite.h"

/* A file of the configuration. Only its index crosses between processes, never its name. */
struct tls_file {
    const char *path; /* absolute */
    const char *at;   /* FILE:LINE of the directive */
    bool appends;     /* made if needed, written at the end, and never read */
};

/* A certificate with its key. */
struct tls_pair {
    uint32_t certificate, key; /* indexes of files */
    uint32_t number;           /* below the profiles' pair_n; only equal pairs may share a number */
};

/* A name and value of ssl_conf_command. */
struct tls_command {
    const char *name, *value;
};

enum tls_verify { TLS_VERIFY_OFF, TLS_VERIFY_ON, TLS_VERIFY_OPTIONAL, TLS_VERIFY_OPTIONAL_NO_CA };

#define TLS_NO_FILE UINT32_MAX

struct template;
struct variable;

/* A cache of pairs whose paths have variables; times are milliseconds. */
struct tls_cache {
    uint32_t index; /* below the profiles' cache_n */
    uint32_t max;   /* pairs, at least 1 */
    int64_t inactive, valid;
};

/* The bytes of the names that a handshake begins with. */
#define TLS_PATHS_MOST 4096

/* Paths with variables, two for each pair: the certificate's and the key's. */
struct tls_named {
    const struct template **names; /* what follows the directory, and what only a session knows */
    const char **directories;      /* of the profiles' */
    unsigned n;                    /* paths; 0: the profile has no such pair */
    const struct tls_cache *cache; /* NULL: each handshake reads the files */
    const struct variable *asked;  /* of the name that a client asks for */
};

enum tls_role { TLS_SERVER, TLS_CLIENT };

/* A list of the configuration, by index. */
struct tls_profile {
    uint32_t index;     /* in the list */
    enum tls_role role; /* of our end */
    const char *at;     /* FILE:LINE of the server, for messages */
    struct tls_pair *pairs;
    unsigned pair_n; /* 0: ssl_reject_handshake alone, or pairs by names */
    struct tls_named named;
    uint8_t versions; /* bits: 1 TLS 1.2, 2 TLS 1.3; never 0 */
    bool prefer_server_ciphers;
    bool reject;         /* ssl_reject_handshake */
    bool sends_name;     /* the name of a client's start is sent */
    bool offload;        /* the kernel may seal output: an option KTLS among the commands */
    const char *ciphers; /* OpenSSL's list, of TLS 1.2; NULL: the default */
    const char *groups;  /* ssl_ecdh_curve; NULL: auto */
    const uint8_t *alpn; /* the protocols, each behind its length byte; NULL: none */
    unsigned alpn_n;     /* bytes */
    struct tls_command *commands;
    unsigned command_n;
    enum tls_verify verify;
    unsigned verify_depth;
    uint32_t client_ca, trusted, crl; /* files; TLS_NO_FILE */
    uint32_t dhparam, passwords;      /* files; TLS_NO_FILE */
    bool tickets;                     /* sessions are resumed, in both roles */
    uint32_t *ticket_keys;            /* files, the first of which encrypts */
    unsigned ticket_key_n;            /* 0: keys are made, and change */
    uint32_t *stapling_files;         /* responses of OCSP */
    unsigned stapling_file_n;         /* 0: none */
    const uint32_t *key_log;          /* a file for the secrets of all sessions; NULL: none */
    uint32_t session_timeout;         /* seconds */
    uint64_t handshake_timeout;       /* ms */
    uint32_t facts;                   /* wanted texts about handshakes, TLS_FACT() of each */
    /* a directory, absolute, where the engine finds the pair of each server name, and has none for
     * other names (keeper/challenge.h); NULL: the pairs above are for all names */
    const char *challenges;
};

/* The SDK's: a profile of connections to servers, as a protocol's directives ask for it. */
struct fb_tls_profile {
    const struct tls_profile *profile;
    const struct template *name; /* the server's name; NULL: the caller knows */
};

#define TLS_VERSION_1_2 1
#define TLS_VERSION_1_3 2

/* The profiles and files of a configuration. */
struct tls_profiles {
    struct tls_profile *list;
    unsigned n;
    struct tls_file *files;
    unsigned file_n;
    unsigned pair_n; /* different pairs of all profiles */
    /* absolute, each once: a keeper opens files of unknown names beneath */
    const char **directories;
    unsigned directory_n;
    unsigned cache_n; /* different caches of all profiles */
};

/* Whether a list of options with commas, a value of SSL_CONF's "Options", turns the option on. */
bool tls_option_turns_on(const char *list, const char *option);
/* Whether the kernel may seal: the last option KTLS of the commands has no minus. */
bool tls_commands_offload(const struct tls_command *commands, unsigned n);
/* Returns the first profile whose output the kernel may seal; NULL: there is none. */
const struct tls_profile *tls_profiles_offload(const struct tls_profiles *profiles);
/* Makes the kernel load what a profile asks for; a warning tells that the kernel has none. For a
 * process with its first rights. */
void tls_profiles_load_kernel(const struct tls_profiles *profiles, struct log *log);
