/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of the configuration in PEM: see pem.h. */
#include "keeper/pem.h"

#include "keeper/reason.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void pem_file_explain(
    const struct pem_file *file, int error, const char *call, char *out, size_t size)
{
    const struct pem_files *files = file->files;
    const struct tls_file *named;
    const char *of = file->of;
    char reasons[REASON_TEXT];

    assert(file->index < files->profiles->file_n);
    named = &files->profiles->files[file->index];
    if (error == 0)
        call = reason_take(reasons, sizeof(reasons), call);
    if (error != 0)
        snprintf(out, size, "cannot load %s \"%s\": %s failed (%d: %s) in %s", file->what,
            named->path, call, error, strerror(error), named->at);
    else
        snprintf(out, size, "cannot load %s \"%s\"%s%s%s: %s in %s", file->what, named->path,
            of != NULL ? " of \"" : "", of != NULL ? of : "", of != NULL ? "\"" : "", call,
            named->at);
}

void pem_file_mistake(const struct pem_file *file, int error, const char *call)
{
    char text[PEM_MISTAKE];

    pem_file_explain(file, error, call, text, sizeof(text));
    log_write(file->log, file->files->level, 0, "%s%s", text, file->files->outcome);
}

void pem_digest(const void *p, size_t n, void *digest, size_t digest_n)
{
    uint8_t whole[EVP_MAX_MD_SIZE];

    assert(digest_n <= sizeof(whole));
    if (EVP_Digest(p, n, whole, NULL, EVP_sha256(), NULL) == 1)
        memcpy(digest, whole, digest_n);
    else
        memset(digest, 0, digest_n);
}

/* Returns what tells the file from others, and from itself before a change; 0: unknown. */
static uint64_t identify_file(const struct stat *status)
{
    const uint64_t fields[] = { (uint64_t)status->st_dev, (uint64_t)status->st_ino,
        (uint64_t)status->st_size, (uint64_t)status->st_mtim.tv_sec,
        (uint64_t)status->st_mtim.tv_nsec, (uint64_t)status->st_ctim.tv_sec,
        (uint64_t)status->st_ctim.tv_nsec };
    uint64_t identity;

    pem_digest(fields, sizeof(fields), &identity, sizeof(identity));
    return identity;
}

/* Reads as many bytes as the file had when it was opened; NULL, or the name of the failed call. */
static const char *read_pem(struct pem_file *file, int fd, const struct stat *status)
{
    ssize_t n = 1;

    if (!S_ISREG(status->st_mode) || status->st_size > PEM_FILE_MOST) {
        errno = S_ISREG(status->st_mode) ? EFBIG : S_ISDIR(status->st_mode) ? EISDIR : EINVAL;
        return "open() of a file of at most 16 MiB";
    }
    file->p = malloc((size_t)status->st_size + 1);
    if (file->p == NULL)
        return "malloc()";
    while (file->n < (size_t)status->st_size && n > 0) {
        n = read(fd, file->p + file->n, (size_t)status->st_size - file->n);
        if (n < 0 && errno != EINTR)
            return "read()";
        file->n += n > 0 ? (size_t)n : 0;
        n = n < 0 ? 1 : n;
    }
    file->p[file->n] = '\0';
    return NULL;
}

uint64_t pem_identify(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 ? identify_file(&status) : 0;
}

const char *pem_file_read(struct pem_file *file, int fd)
{
    const char *failed;
    struct stat status;

    file->p = NULL;
    file->bio = NULL;
    file->n = 0;
    failed = fstat(fd, &status) == 0 ? read_pem(file, fd, &status) : "fstat()";
    if (failed != NULL)
        return failed;
    file->bio = BIO_new_mem_buf(file->p, (int)file->n);
    errno = ENOMEM;
    return file->bio != NULL ? NULL : "malloc()";
}

/* Reads the file, and notes what was read; with `unless_same` a file that is still the one noted is
 * not read. NULL, or the name of the failed call with errno. */
static const char *load_pem(struct pem_file *file, bool unless_same)
{
    struct pem_seen *seen = &file->files->seen[file->index];
    int fd = file->files->opener->open(file->files->opener, file->index);
    uint64_t identity = fd >= 0 ? pem_identify(fd) : 0;
    bool same = unless_same && identity != 0 && identity == seen->identity;
    const char *failed = fd >= 0 ? NULL : "open()";

    if (!same)
        *seen = (struct pem_seen) { .identity = 0 };
    if (failed == NULL && !same)
        failed = pem_file_read(file, fd);
    if (failed == NULL && !same) {
        seen->identity = identity;
        pem_digest(file->p, file->n, seen->digest, sizeof(seen->digest));
    }
    descriptor_close(fd);
    return failed;
}

bool pem_file_has_changed(struct pem_files *files, uint32_t index)
{
    struct pem_file file = { .files = files, .index = index };
    struct pem_seen before = files->seen[index];

    assert(index < files->profiles->file_n);
    load_pem(&file, true);
    pem_file_close(&file);
    return memcmp(before.digest, files->seen[index].digest, PEM_DIGEST) != 0;
}

int pem_file_open(struct pem_file *file)
{
    const char *failed = load_pem(file, false);

    if (failed == NULL)
        return 0;
    pem_file_mistake(file, errno, failed);
    pem_file_close(file);
    return -1;
}

void pem_file_close(struct pem_file *file)
{
    BIO_free(file->bio);
    if (file->p != NULL)
        OPENSSL_cleanse(file->p, file->n);
    free(file->p);
    file->p = NULL;
    file->bio = NULL;
}

bool pem_is_at_end(void)
{
    unsigned long error = ERR_peek_last_error();

    if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    return true;
}

int pem_no_password(char *to, int size, int writes, void *data)
{
    (void)to;
    (void)size;
    (void)writes;
    (void)data;
    return -1;
}
