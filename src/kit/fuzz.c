/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzing of protocols: a client sends an input in pieces, and ends; the first byte chooses the
 * pieces, the pauses and the end, so a fuzzer explores these too. And a driver for systems without
 * libFuzzer, which feeds a target with files, and with inputs made from these, the same in every
 * run. */
#include "kit/kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_MOST 64
#define RUNS 2000
#define INPUT_MOST 4096

/* ---- An input ---- */

/* Whether this bit is set in the first byte of the input. */
static bool asks_for(uint8_t how, unsigned bit)
{
    return (how >> bit & 1) != 0;
}

static void say_input(fb_test *test, fb_test_peer *peer, fb_bytes bytes, uint8_t how)
{
    uint64_t random = how;

    while (bytes.n > 0) {
        size_t n = 1 + sim_draw(&random, asks_for(how, 0) ? PIECE_MOST : 4);

        n = n < bytes.n ? n : bytes.n;
        assert(n > 0);
        fb_test_say(peer, bytes.p, n);
        bytes.p += n;
        bytes.n -= n;
        if (sim_draw(&random, 2) == 0)
            fb_test_run(test);
    }
}

static void end_client(fb_test *test, fb_test_peer *peer, uint8_t how)
{
    if (asks_for(how, 1))
        fb_test_pass(test, 1000);
    if (asks_for(how, 2))
        fb_test_take(peer, 1 + how % 16);
    fb_test_run(test);
    if (asks_for(how, 3))
        fb_test_reset(peer);
    else
        fb_test_shut(peer);
    fb_test_run(test);
    fb_test_take(peer, SIZE_MAX);
}

int fb_test_fuzz(const fb_protocol *protocol, const char *server, const uint8_t *data, size_t n)
{
    uint8_t how = n > 0 ? data[0] : 0;
    fb_test *test = fb_test_start(protocol, server);
    fb_test_peer *peer;

    if (test == NULL)
        abort();
    peer = fb_test_connect(test);
    if (asks_for(how, 2))
        fb_test_take(peer, 0);
    if (n > 1)
        say_input(test, peer, (fb_bytes) { data + 1, n - 1 }, how);
    end_client(test, peer, how);
    if (fb_test_end(&test) > 0)
        abort();
    return 0;
}

/* ---- The driver ---- */

struct input {
    size_t n;
    uint8_t bytes[];
};

struct driver {
    int (*target)(const uint8_t *data, size_t n);
    struct input **inputs;
    uint32_t input_n;
    uint64_t random;
    bool failed; /* an argument could not be used */
};

static uint32_t draw_below(struct driver *driver, uint32_t below)
{
    return sim_draw(&driver->random, below);
}

/* Passes the input in memory of exactly the input's size: a sanitizer detects a read beyond the
 * end. */
static void feed_target(struct driver *driver, const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    if (copy == NULL)
        kit_misused("no memory for an input");
    if (n > 0)
        memcpy(copy, bytes, n);
    if (driver->target(copy, n) != 0)
        kit_misused("the target has not returned 0");
    free(copy);
}

static void report_path(struct driver *driver, const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    driver->failed = true;
}

/* Files */

static void load_input(struct driver *driver, int fd, size_t size, const char *path)
{
    struct input *input = kit_alloc(sizeof(*input) + size);
    ssize_t n = read(fd, input->bytes, size);

    if (n == -1) {
        report_path(driver, path);
        free(input);
        return;
    }
    input->n = (size_t)n;
    driver->inputs = realloc(driver->inputs, (driver->input_n + 1) * sizeof(*driver->inputs));
    if (driver->inputs == NULL)
        kit_misused("no memory for an input");
    driver->inputs[driver->input_n++] = input;
    fprintf(stderr, "%s\n", path); /* a crash is about the last printed path */
    feed_target(driver, input->bytes, input->n);
}

static void read_path(struct driver *driver, const char *path);

static void read_directory(struct driver *driver, const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    char *inner;

    if (n == -1) {
        report_path(driver, path);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.' &&
            asprintf(&inner, "%s/%s", path, entries[i]->d_name) != -1) {
            read_path(driver, inner);
            free(inner);
        }
        free(entries[i]);
    }
    free(entries);
}

static void read_path(struct driver *driver, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (fd == -1 || fstat(fd, &status) == -1)
        report_path(driver, path);
    else if (S_ISDIR(status.st_mode))
        read_directory(driver, path);
    else
        load_input(driver, fd, (size_t)status.st_size, path);
    if (fd != -1)
        close(fd);
}

/* Inputs made from the files */

static const struct input *choose_input(struct driver *driver)
{
    return driver->input_n > 0 ? driver->inputs[draw_below(driver, driver->input_n)] : NULL;
}

/* Overwrites a random place with a part of a second input. */
static size_t paste_part(struct driver *driver, uint8_t *bytes, size_t n, const struct input *input)
{
    size_t at = draw_below(driver, (uint32_t)n + 1), from, part;

    if (input == NULL || input->n == 0)
        return n;
    from = draw_below(driver, (uint32_t)input->n);
    part = 1 + draw_below(driver, (uint32_t)(input->n - from));
    part = part < INPUT_MOST - at ? part : INPUT_MOST - at;
    assert(at + part <= INPUT_MOST && from + part <= input->n);
    memcpy(bytes + at, input->bytes + from, part);
    return at + part > n ? at + part : n;
}

static size_t change_bytes(struct driver *driver, uint8_t *bytes, size_t n)
{
    static const uint8_t special[] = { '\0', '\n', '\r', ' ', 0x7f, 0x80, 0xff, '0', '9', '-' };
    size_t at = draw_below(driver, (uint32_t)n + 1), part;

    switch (draw_below(driver, 5)) {
    case 0: /* another byte */
        if (at < n)
            bytes[at] = (uint8_t)draw_below(driver, 256);
        return n;
    case 1: /* a byte that often means something */
        if (at < n)
            bytes[at] = special[draw_below(driver, sizeof(special))];
        return n;
    case 2: /* one more byte */
        if (n == INPUT_MOST)
            return n;
        memmove(bytes + at + 1, bytes + at, n - at);
        bytes[at] = (uint8_t)draw_below(driver, 256);
        return n + 1;
    case 3: /* some bytes less */
        part = draw_below(driver, (uint32_t)(n - at) + 1);
        memmove(bytes + at, bytes + at + part, n - at - part);
        return n - part;
    default:
        return paste_part(driver, bytes, n, choose_input(driver));
    }
}

static void feed_invented(struct driver *driver)
{
    const struct input *input = choose_input(driver);
    uint8_t bytes[INPUT_MOST];
    size_t n = 0;

    if (input != NULL) {
        n = input->n < INPUT_MOST ? input->n : INPUT_MOST;
        memcpy(bytes, input->bytes, n);
    }
    for (uint32_t i = 1 + draw_below(driver, input != NULL ? 8 : 64); i > 0; i--)
        n = change_bytes(driver, bytes, n);
    assert(n <= INPUT_MOST);
    if (n > 0) /* the first byte chooses how the rest is sent */
        bytes[0] = (uint8_t)draw_below(driver, 256);
    feed_target(driver, bytes, n);
}

int fb_test_fuzz_main(int argc, char **argv, int (*target)(const uint8_t *data, size_t n))
{
    struct driver driver = { .target = target };
    unsigned long runs = RUNS;

    feed_target(&driver, NULL, 0);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-runs=", 6) == 0)
            runs = strtoul(argv[i] + 6, NULL, 10);
        else if (argv[i][0] != '-') /* another of libFuzzer's options */
            read_path(&driver, argv[i]);
    }
    for (unsigned long i = 0; i < runs && !driver.failed; i++)
        feed_invented(&driver);
    fprintf(stderr, "%lu files and %lu other inputs were fed\n", (unsigned long)driver.input_n,
        driver.failed ? 0 : runs);
    while (driver.input_n > 0)
        free(driver.inputs[--driver.input_n]);
    free(driver.inputs);
    return driver.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
