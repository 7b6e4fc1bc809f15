/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract of an engine, which shakes hands. An engine is given the peer's bytes and returns
 * bytes for the peer, and at last the secrets of the session, of which no copy is kept.
 *
 * Engines: OpenSSL's (keeper/engine_openssl.c), and one without cryptography for the simulated
 * kernel and the test kit (tls/engine_plain.c). An engine runs in a keeper, or in the process
 * itself without a master; never blocks on a peer, and knows no descriptor of a peer. */
#pragma once

#include "tls/profile.h"

#include <forkbeard/types.h>

/* The longest text of a failure. */
#define TLS_TEXT 512
/* The longest name of a server, or one asked for by a client. */
#define TLS_NAME_MOST 255
/* The longest certificate of a peer that is handed on; a longer one is left out. */
#define TLS_PEER_MOST 8192
/* The peer's bytes in one call of feed(). */
#define TLS_FEED_MOST 16384
/* The bytes that a handshake may send before the peer has to answer. */
#define TLS_FLIGHT_MOST (128 * 1024)
/* The days before the end of a certificate in which lines warn of the end. */
#define TLS_EXPIRY_DAYS 14
/* The bytes of the peer that a handshake may take in all. */
#define TLS_HANDSHAKE_MOST (64 * 1024)

/* The result of a handshake. It crosses between processes as bytes, and has no pointer. */
struct tls_session {
    uint16_t version;        /* enum tls_version */
    uint16_t suite;          /* IANA's number */
    uint16_t group;          /* IANA's number; 0: none */
    uint8_t resumed;         /* bool */
    uint8_t verify;          /* enum tls_verified */
    int32_t verify_code;     /* OpenSSL's X509_V_ERR_...; 0: X509_V_OK */
    uint32_t awaits_tickets; /* bool, see ticket(); a link's reply: the number of the handshake */
    struct tls_keys in, out; /* keys of the peer's records, and of ours */
    uint16_t plain_most; /* plaintext of a record that the peer takes: TLS_PLAIN_MOST, or less */
    uint8_t session_id[32];
    uint8_t session_id_n;
    uint8_t alpn_n; /* 0: none */
    uint8_t name_n; /* the server name that the client has asked for; 0: none */
    char alpn[255], name[255];
};

/* The outcome of the verification of the peer's certificate. The handshake goes on, whatever the
 * profile's `verify` is: the receiver of the session ends the connection, as nginx does. */
enum tls_verified {
    TLS_VERIFIED_NONE, /* no certificate came */
    TLS_VERIFIED,
    TLS_VERIFY_FAILED,
    TLS_VERIFIED_OTHER, /* verified, but for other names than the start's */
};

/* The start of a handshake. */
struct tls_start {
    enum tls_role role;
    uint32_t profile; /* index, of the role */
    bool offload;     /* the profile's, for whoever begins the session: no engine's affair */
    /* The server's name, for a client: its certificate must have the name, which is sent where the
     * profile says so; TLS_NAME_MOST bytes at most. The link's copy is made with the first feed. */
    fb_bytes name;
    /* The names of the profile's pairs with variables, in order, each with a NUL behind it;
     * TLS_PATHS_MOST bytes at most. The link's copy is made with the first feed. */
    fb_bytes paths;
    /* A number for the server's address, for a client. Sessions are resumed among starts of equal
     * server, name and profile; 0: never. */
    uint64_t server;
};

enum tls_step {
    TLS_MORE,   /* more of the peer's bytes are needed */
    TLS_DONE,   /* reply->session is filled in */
    TLS_FAILED, /* reply->text says why; what is in `out` (an alert) is still to be sent */
    TLS_LATER,  /* a file is awaited: nothing was used, and the same bytes are given again */
};

/* The outcome of feed(), which sets every field but the caller's memory. */
struct tls_reply {
    size_t used;  /* bytes of the input that belong to the handshake, all of them at TLS_MORE; the
                       rest are records */
    uint8_t *out; /* memory of the caller's for what is to be sent, */
    size_t out_n; /* bytes in it, */
    size_t out_most; /* and its room: TLS_FLIGHT_MOST */
    struct tls_session session;
    uint8_t *peer; /* memory of the caller's for the peer's certificate (DER), of TLS_PEER_MOST */
    size_t peer_n; /* 0: none, or too long */
    /* memory of the caller's for the texts that the profile wants (tls/facts.h), of TLS_FACTS_MOST
     * bytes */
    uint8_t *facts;
    size_t facts_n;
    bool severe;         /* TLS_FAILED for a file of this end: no peer is to blame */
    bool local;          /* TLS_FAILED of a link, for want of a keeper: no peer is to blame */
    char text[TLS_TEXT]; /* TLS_FAILED: why, in one line; else "" */
};

/* The certificates of a report, and the bytes of their names and errors. */
#define TLS_REPORT_MOST 4096
#define TLS_REPORT_TEXT 512
/* The bytes of a report. */
#define TLS_REPORT_SIZE (8 * 1024 * 1024)

/* Memory for the keys of tickets, and behind these for sessions with servers, and the version of
 * its layout. Pages are touched when they are needed. */
#define TLS_TICKETS_SIZE (4096 + 512 * 8192)
#define TLS_TICKETS_LAYOUT 2

/* Pairs that are tried at a start, whose mistakes a reload is refused for; the rest are tried when
 * the start is over. */
#define TLS_PAIRS_TRIED 64

/* Memory that engines share; NULL: none. */
struct tls_memory {
    void *p;
    size_t size;
};

/* How an engine gets the files of the configuration, and the keys of tickets. */
struct tls_files {
    /* Returns a descriptor of file `index`, for reading or appending, which the caller closes; -1
     * with errno. NULL: no file is opened, for the engine without cryptography alone. */
    int (*open)(struct tls_files *files, uint32_t index);
    /* Asks for a descriptor that opened() is given later, of one file at a time; NULL: open() never
     * waits for another process. */
    void (*want)(struct tls_files *files, uint32_t index);
    /* pairs tried by create(), which fails for a bad one, unless there is want() */
    unsigned tried;
    /* records of pairs (keeper/pair_store.h), and, within create() alone, those of the generation
     * before */
    struct tls_memory pairs, former_pairs;
    const struct tls_profiles *profiles;
    void *tickets; /* TLS_TICKETS_SIZE bytes, shared by all engines, zero at first; NULL: none */
    /* the engine of another process logs what is the same for all engines of the files: swapped and
     * refused files, and certificates that expire */
    bool quiet;
};

struct tls_engine;
struct tls_handshake;

struct tls_engine_ops {
    const char *name;
    /* Loads the library, reads what the profiles need, but pairs beyond files->tried; NULL after an
     * emerg line of each mistake. Files and log outlive the engine. */
    struct tls_engine *(*create)(struct tls_files *files, struct log *log);
    void (*destroy)(struct tls_engine *engine);
    /* Reads the files that have changed since they were read last, and with want() begins to look
     * at the files of all pairs. The next handshakes of a profile are with the changed files, if
     * all of its settings, or both of a pair, are good; else an error line tells, and the profile
     * goes on with what it has until a file of it changes again. Handshakes under way are not
     * touched. A notice line tells of each replaced file. */
    void (*refresh)(struct tls_engine *engine, struct log *log);
    /* Gives the engine the file that it has asked for by want(): a descriptor, the engine's, or -1
     * and an error. NULL: the engine does not ask. */
    void (*opened)(struct tls_engine *engine, int fd, int error);
    /* Logs a line about each certificate that has expired, or will within TLS_EXPIRY_DAYS. create()
     * and refresh() log the same of what they read, unless the files are quiet. */
    void (*remind)(struct tls_engine *engine, struct log *log);
    /* Returns a line of JSON about certificates, which the caller frees, of *n bytes: an object
     * with "left_out", a number, and "certificates", of which each has "certificate" and "key",
     * indexes of files, and what is known of "names", "not_after", "swapped" and "refused" (seconds
     * since the epoch) and "error". NULL: no memory, or an engine without certificates. */
    char *(*report)(struct tls_engine *engine, size_t *n);
    /* Returns the earliest end of a certificate that is known, in seconds since the epoch, with the
     * index of its file; 0: none is known. Cheap while nothing has changed. NULL: an engine without
     * certificates. */
    int64_t (*first_end)(struct tls_engine *engine, uint32_t *file);
    /* Begins a handshake; NULL without memory. An impossible start fails in the first feed(). */
    struct tls_handshake *(*begin)(struct tls_engine *engine, const struct tls_start *start);
    /* Gives bytes of the peer to a handshake, as many as have come (none, at a client's begin).
     * TLS_MORE has used all bytes; TLS_LATER is for files with want() alone. Not called after
     * TLS_DONE or TLS_FAILED. */
    enum tls_step (*feed)(struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply);
    /* After a TLS_DONE with `awaits_tickets`: takes a whole record as it came, in which the server
     * has sent a ticket. Such records are given in order, as long as no other record of the server
     * came before; the engine keeps what it resumes with. False: no more are wanted. NULL: the
     * engine never awaits tickets. */
    bool (*ticket)(struct tls_handshake *handshake, fb_bytes record);
    /* Frees the handshake, at any time. */
    void (*end)(struct tls_handshake *handshake);
};

extern const struct tls_engine_ops tls_engine_plain;
