/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/contract.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define QUIET_MS 15

static void run(struct source *source, enum event_direction direction)
{
    struct watched *watched = container_of(source, struct watched, source);

    watched->runs[direction]++;
    while (direction == EVENT_READ && watched->receives && !watched->ended && watched->error == 0) {
        uint8_t bytes[4096];
        struct io_span span = { bytes, sizeof(bytes) };
        struct io_result result = source->io->recv(source, &span);

        watched->received += result.n;
        watched->ended = result.status == IO_EOF;
        watched->error = result.error;
        if (result.status == IO_AGAIN_READ) {
            source->events[EVENT_READ].ready = false;
            break;
        }
    }
    if (watched->then != NULL)
        watched->then(watched);
}

static void run_read(struct loop *loop, struct source *source)
{
    (void)loop;
    run(source, EVENT_READ);
}

static void run_write(struct loop *loop, struct source *source)
{
    (void)loop;
    run(source, EVENT_WRITE);
}

static const struct source_ops watched_ops = {
    .run = { [EVENT_READ] = run_read, [EVENT_WRITE] = run_write },
};

static int real_n(void)
{
    int n = 0;

    while (mechanism_table[n] != NULL)
        n++;
    return n;
}

bool is_simulated(int i)
{
    return i >= real_n();
}

const struct mechanism *mechanism_at(int i)
{
    if (!is_simulated(i))
        return mechanism_table[i];
    return i == real_n() ? sim_edge(simulation) : sim_level(simulation);
}

struct bench *bench_with(
    const struct mechanism *mechanism, int64_t option, uint32_t n, const sigset_t *wait_mask)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct loop_options options = {
        .mechanism = mechanism,
        .mechanism_option = option,
        .slots = n,
        .stride = sizeof(struct watched),
        .wait_mask = wait_mask,
    };

    ck_assert_ptr_nonnull(bench);
    bench->target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(bench->target.fd, -1);
    bench->target.level = LEVEL_INFO;
    log_init(&bench->log, &bench->target, 1);
    bench->log.plain = "t";
    options.log = &bench->log;
    ck_assert_int_eq(loop_init(&bench->loop, &options), 0);
    return bench;
}

struct bench *bench_set_up(int i, uint32_t n)
{
    return bench_with(mechanism_at(i), mechanism_at(i)->option.initial, n, NULL);
}

const char *bench_logged(struct bench *bench)
{
    ssize_t n = pread(bench->target.fd, bench->text, sizeof(bench->text) - 1, 0);

    ck_assert_int_ge(n, 0);
    bench->text[n] = '\0';
    ck_assert_int_eq(ftruncate(bench->target.fd, 0), 0);
    ck_assert_int_eq(lseek(bench->target.fd, 0, SEEK_SET), 0);
    return bench->text;
}

void bench_tear_down(struct bench *bench)
{
    ck_assert_str_eq(bench_logged(bench), "");
    for (int i = 0; i < QUEUES; i++)
        ck_assert(TAILQ_EMPTY(&bench->loop.queues[i]));
    loop_done(&bench->loop);
    close(bench->target.fd);
    free(bench);
}

struct watched *watch(struct bench *bench, int fd)
{
    struct source *source = source_get(&bench->loop.sources);
    struct watched *watched = container_of(source, struct watched, source);

    ck_assert_ptr_nonnull(source);
    source->fd = fd;
    source->ops = &watched_ops;
    source->io = bench->loop.mechanism->io;
    source->io_state = bench->loop.mechanism_state;
    watched->bench = bench;
    return watched;
}

void watch_no_more(struct watched **watched)
{
    source_close(&(*watched)->bench->loop, &(*watched)->source, false);
    *watched = NULL;
}

void arm(struct watched *watched, enum event_direction direction)
{
    int result = source_arm(&watched->bench->loop, &watched->source, direction);

    ck_assert_msg(result == 0, "it cannot be watched: %s", strerror(errno));
}

size_t take(struct watched *watched)
{
    uint8_t bytes[64];
    struct io_span span = { bytes, sizeof(bytes) };
    struct io_result result = watched->source.io->recv(&watched->source, &span);

    ck_assert(result.status == IO_DONE || result.status == IO_EOF);
    return result.n;
}

void serve(struct watched *listener)
{
    struct source served = { .io = listener->source.io, .io_state = listener->source.io_state };
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    struct io_result result =
        served.io->accept(&listener->source, &served.fd, (struct sockaddr *)&peer, &length);

    ck_assert_int_eq(result.status, IO_DONE);
    served.io->close(&served, false);
}

void disarm(struct watched *watched, enum event_direction direction)
{
    source_disarm(&watched->bench->loop, &watched->source, direction);
}

void turn(struct bench *bench, int timeout)
{
    loop_wait(&bench->loop, timeout);
    loop_run(&bench->loop, QUEUE_ACCEPT);
    loop_run(&bench->loop, QUEUE_NORMAL);
}

void turn_until_quiet(struct bench *bench)
{
    bool any;

    do {
        loop_wait(&bench->loop, 0);
        any = !TAILQ_EMPTY(&bench->loop.queues[QUEUE_NORMAL]);
        loop_run(&bench->loop, QUEUE_NORMAL);
    } while (any);
}

void check_quiet(struct bench *bench)
{
    /* an edge that the loop only remembers may end the first */
    for (int i = 0; i < 3; i++) {
        uint64_t start = now_us();

        loop_wait(&bench->loop, QUIET_MS);
        for (int queue = 0; queue < QUEUES; queue++)
            ck_assert_msg(TAILQ_EMPTY(&bench->loop.queues[queue]), "something was reported");
        if (i > 0)
            ck_assert_msg(now_us() - start >= (QUIET_MS - 1) * 1000, "the wait was cut short");
    }
}

uint64_t now_us(void)
{
    struct timespec now;

    if (simulation != NULL)
        return sim_now_ms(simulation) * 1000;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int contract_main(const char *name, add_tests_fn *add_tests)
{
    static const char *const simulated[] = { "sim", "sim level" };
    Suite *suite = suite_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    for (int i = 0; i < real_n() + (int)countof(simulated); i++) {
        TCase *tcase;

        if (!is_simulated(i) && !mechanism_at(i)->available())
            continue;
        tcase = tcase_create(is_simulated(i) ? simulated[i - real_n()] : mechanism_at(i)->name);
        tcase_set_timeout(tcase, 60);
        if (is_simulated(i))
            tcase_add_checked_fixture(tcase, start_simulation, end_simulation);
        add_tests(tcase, i, i + 1);
        suite_add_tcase(suite, tcase);
    }
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner) + (srunner_ntests_run(runner) == 0);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
