/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of the configuration in PEM, read into memory for OpenSSL.
 *
 * Responsible for reading through files->open() alone, for the longest file, for lines about
 * mistakes, and for wiping what was read. Never opens a name, and never asks for a password. */
#pragma once

#include "tls/engine.h"

#include <openssl/bio.h>

/* The longest file: lists of revoked certificates have megabytes. */
#define PEM_FILE_MOST (16 * 1024 * 1024)

/* Room for a line about a mistake. */
#define PEM_MISTAKE 2048

/* Bytes of a digest of a file, which tells changed files from others. */
#define PEM_DIGEST 16

/* A file as it was read last. */
struct pem_seen {
    uint64_t identity;          /* a digest of device, inode, size and times; 0: unknown */
    uint8_t digest[PEM_DIGEST]; /* hash of the bytes; zero: the file could not be read */
};

/* The files of the profiles. */
struct pem_files {
    struct tls_files *opener;
    const struct tls_profiles *profiles; /* the opener's */
    struct pem_seen *seen;               /* of each file */
    enum log_level level;                /* severity of lines about mistakes */
    const char *outcome;                 /* the end of these lines, "" or "; the old one is used" */
};

/* A file that is being read; `what` is "certificate" or the like, for lines about mistakes. */
struct pem_file {
    struct pem_files *files;
    struct log *log;
    const char *what;
    uint32_t index;
    const char *of; /* a path, for "of" in lines about mistakes; or NULL */
    char *p;        /* the bytes, and a NUL behind the last */
    size_t n;
    BIO *bio; /* reads the bytes */
};

/* Whether the file's bytes differ from the bytes read last; notes the file as read now. */
bool pem_file_has_changed(struct pem_files *files, uint32_t index);
/* Reads the file; files, log, what and index are set. -1 after a line about the mistake. */
int pem_file_open(struct pem_file *file);
/* Returns what tells an open file from others, and from itself before a change; 0: unknown. */
uint64_t pem_identify(int fd);
/* Reads an open file, with `bio`; NULL, or the name of the failed call, with errno. */
const char *pem_file_read(struct pem_file *file, int fd);
/* Overwrites the bytes and frees them. */
void pem_file_close(struct pem_file *file);
/* Makes a digest of bytes; zero without memory for one, so that a file counts as changed. */
void pem_digest(const void *p, size_t n, void *digest, size_t digest_n);
/* Writes "cannot load WHAT "PATH" of "OF": CALL() failed (2: No such file or directory) in PLACE";
 * for error 0 with OpenSSL's reasons in the place of the error's. */
void pem_file_explain(
    const struct pem_file *file, int error, const char *call, char *out, size_t size);
/* Logs the same, with the outcome. */
void pem_file_mistake(const struct pem_file *file, int error, const char *call);
/* Whether OpenSSL's last error says that no further object is in the file; then drops the error. */
bool pem_is_at_end(void);
/* OpenSSL's callback for passwords, in place of the default, which asks on the terminal. */
int pem_no_password(char *to, int size, int writes, void *data);
