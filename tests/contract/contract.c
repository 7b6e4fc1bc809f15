/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts loops of every mechanism and watches descriptors on them; runs the file's tests once for
 * every mechanism. */
#include "contract/contract.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QUIET_MS 15

static void run_watched(struct watched *watched, enum event_direction direction)
{
    while (direction == EVENT_READ && watched->receives && !watched->ended && watched->error == 0) {
        uint8_t bytes[4096];
        struct io_result result = watched_recv(watched, bytes, sizeof(bytes));

        watched->received += result.n;
        watched->ended = result.status == IO_EOF;
        watched->error = result.error;
        if (result.status == IO_AGAIN_READ) {
            watched->source.events[EVENT_READ].ready = false;
            break;
        }
    }
    if (watched->then != NULL)
        watched->then(watched);
}

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
    return i == real_n() ? &simulation->edge : &simulation->level;
}

struct fixture *contract_start_with(const struct mechanism *mechanism,
    struct mechanism_values values, uint32_t n, const sigset_t *wait_mask)
{
    const struct loop_options options = {
        .mechanism = mechanism,
        .mechanism_values = values,
        .slots = n,
        .wait_mask = wait_mask,
    };

    return fixture_start_loop_with(simulation, &options);
}

struct fixture *contract_start(int i, uint32_t n)
{
    return contract_start_with(mechanism_at(i), mechanism_defaults(mechanism_at(i)), n, NULL);
}

struct watched *watch_fd(struct fixture *fixture, int fd)
{
    struct watched *watched = watched_create(fixture, fd);

    watched->run = run_watched;
    return watched;
}

void unwatch(struct watched **watched)
{
    watched_close((*watched)->fixture, watched);
}

void arm_event(struct watched *watched, enum event_direction direction)
{
    int result = source_arm(watched->fixture->loop, &watched->source, direction);

    ck_assert_msg(result == 0, "it cannot be watched: %s", strerror(errno));
}

size_t receive_once(struct watched *watched)
{
    uint8_t bytes[64];
    struct io_result result = watched_recv(watched, bytes, sizeof(bytes));

    ck_assert(result.status == IO_DONE || result.status == IO_EOF);
    return result.n;
}

void accept_once(struct watched *listener)
{
    struct source served = { .io = listener->source.io, .io_state = listener->source.io_state };
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    struct io_result result =
        served.io->accept(&listener->source, &served.fd, (struct sockaddr *)&peer, &length);

    ck_assert_int_eq(result.status, IO_DONE);
    served.io->close(&served, false);
}

void disarm_event(struct watched *watched, enum event_direction direction)
{
    source_disarm(watched->fixture->loop, &watched->source, direction);
}

void turn_until_quiet(struct fixture *fixture)
{
    bool any;

    do {
        loop_wait(fixture->loop, 0);
        any = !loop_is_empty(fixture->loop, QUEUE_NORMAL);
        loop_run(fixture->loop, QUEUE_NORMAL);
    } while (any);
}

void check_quiet(struct fixture *fixture)
{
    unsigned whole = 0;

    /* A remembered edge of the loop may end the first wait, and io_uring, with operations renewed
     * every second, two more. */
    for (int i = 0; whole < 2; i++) {
        uint64_t start = now_us();

        ck_assert_msg(i < 5, "waits were cut short");
        loop_wait(fixture->loop, QUIET_MS);
        for (int queue = 0; queue < QUEUES; queue++)
            ck_assert_msg(loop_is_empty(fixture->loop, queue), "something was reported");
        whole += now_us() - start >= (QUIET_MS - 1) * 1000;
    }
}

uint64_t now_us(void)
{
    struct timespec now;

    if (simulation != NULL)
        return simulation->clock.mono_ms * 1000;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Asks in a child: the kernel dismantles the ring that io_uring tries in its own time, and
 * interrupts a wait of the process meanwhile, perhaps the first test's (CK_FORK=no). */
static bool is_available(const struct mechanism *mechanism)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(mechanism_available(mechanism) ? EXIT_SUCCESS : EXIT_FAILURE);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

int contract_main(const char *name, add_tests_fn *add_tests)
{
    static const char *const simulated[] = { "sim", "sim level" };
    Suite *suite = suite_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    for (int i = 0; i < real_n() + (int)countof(simulated); i++) {
        TCase *tcase;

        if (!is_simulated(i) && !is_available(mechanism_at(i)))
            continue;
        tcase = tcase_create(is_simulated(i) ? simulated[i - real_n()] : mechanism_at(i)->name);
        tcase_set_timeout(tcase, TEST_TIMEOUT_S);
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
