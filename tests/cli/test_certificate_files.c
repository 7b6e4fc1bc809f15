/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a new certificate: both or none, with their modes, and no file is replaced. */
#include "cli/certificate_files.h"

#include "support/directory.h"
#include "support/memory_log.h"
#include "support/test.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char certificate_text[1000] = "certificate\n", key_text[] = "key\n";

static struct memory_log memory;
static struct certificate_paths paths;

static void open_log(void)
{
    memory_log_open(&memory, LEVEL_NOTICE);
}

static void close_log(void)
{
    memory_log_close(&memory);
}

static int write_pair(const char *name)
{
    struct certificate made = { .certificate = certificate_text, .key = key_text };

    return certificate_files_write(&made, directory, name, &paths, &memory.log);
}

static unsigned count_entries(void)
{
    DIR *dir = opendir(directory);
    unsigned n = 0;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2; /* "." and ".." */
}

static const char *path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static void check_file(const char *path, const char *name, mode_t mode, const char *expected)
{
    char text[128] = "";
    struct stat st;
    FILE *file;

    ck_assert_str_eq(path, path_of(name));
    ck_assert_int_eq(lstat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | mode);
    ck_assert_uint_eq(st.st_nlink, 1);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(text, 1, sizeof(text) - 1, file), strlen(expected));
    ck_assert_str_eq(text, expected);
    fclose(file);
    ck_assert_int_eq(unlink(path), 0);
}

static const struct {
    const char *name, *certificate, *key;
    mode_t umask;
} pairs[] = {
    { "localhost", "localhost.crt", "localhost.key", 022 },
    { "*.example.com", "_.example.com.crt", "_.example.com.key", 0 },
    { "::1", "::1.crt", "::1.key", 077 },
};

START_TEST(both_files_are_written)
{
    umask(pairs[_i].umask);
    ck_assert_int_eq(write_pair(pairs[_i].name), 0);
    ck_assert_uint_eq(count_entries(), 2);
    check_file(paths.certificate, pairs[_i].certificate, 0644, certificate_text);
    check_file(paths.key, pairs[_i].key, 0600, key_text);
}
END_TEST

/* A link to nowhere is an existing file too. */
START_TEST(an_existing_file_is_left)
{
    static const char *const names[] = { "a.key", "a.crt" };
    char expected[256], target[16] = "";

    ck_assert_int_eq(symlink("nowhere", path_of(names[_i])), 0);
    ck_assert_int_eq(write_pair("a"), -1);
    snprintf(expected, sizeof(expected), "t: [emerg] \"%s\" exists already, and is left as it is\n",
        path_of(names[_i]));
    ck_assert_str_eq(memory_log_take(&memory), expected);
    ck_assert_uint_eq(count_entries(), 1);
    ck_assert_int_eq(readlink(path_of(names[_i]), target, sizeof(target) - 1), 7);
    ck_assert_str_eq(target, "nowhere");
    ck_assert_int_eq(unlink(path_of(names[_i])), 0);
}
END_TEST

/* The key and lines of the log fit a limit that the certificate goes beyond, as on a disk that
 * becomes full. */
START_TEST(a_failed_write_leaves_nothing)
{
    struct rlimit old, limit;

    signal(SIGXFSZ, SIG_IGN);
    memset(certificate_text, 'c', sizeof(certificate_text) - 1);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = (struct rlimit) { .rlim_cur = sizeof(certificate_text) / 2, .rlim_max = old.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(write_pair("a"), -1);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    strcpy(certificate_text, "certificate\n");
    ck_assert_ptr_nonnull(strstr(memory_log_take(&memory), "\" failed (27: File too large)\n"));
    ck_assert_uint_eq(count_entries(), 0);
}
END_TEST

START_TEST(a_missing_directory_is_reported)
{
    struct certificate made = { .certificate = certificate_text, .key = key_text };
    char missing[64];

    snprintf(missing, sizeof(missing), "%s", path_of("missing"));
    ck_assert_int_eq(certificate_files_write(&made, missing, "a", &paths, &memory.log), -1);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&memory), "(2: No such file or directory)\n"));
    ck_assert_uint_eq(count_entries(), 0);
}
END_TEST

START_TEST(a_path_has_a_limit)
{
    struct certificate made = { .certificate = certificate_text, .key = key_text };
    static char long_path[PATH_MAX];

    memset(long_path, '/', sizeof(long_path) - 8);
    ck_assert_int_eq(certificate_files_write(&made, long_path, "a", &paths, &memory.log), -1);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&memory), "[emerg] the path is too long: \""));
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_checked_fixture(tcase, open_log, close_log);
    tcase_add_loop_test(tcase, both_files_are_written, 0, sizeof(pairs) / sizeof(pairs[0]));
    tcase_add_loop_test(tcase, an_existing_file_is_left, 0, 2);
    tcase_add_test(tcase, a_failed_write_leaves_nothing);
    tcase_add_test(tcase, a_missing_directory_is_reported);
    tcase_add_test(tcase, a_path_has_a_limit);
}

TEST_MAIN("certificate_files", add_tests)
