/* SPDX-License-Identifier: BSD-2-Clause */
/* What the contract's tests share. Each test is run for every mechanism, in a test case that bears
 * its name: a failure says "...:E:select:name_of_the_test". */
#pragma once

#include "event/loop.h"
#include "sim/sim.h"
#include "support/test.h"

struct bench {
    struct loop loop; /* the first member */
    struct log log;
    struct log_target target;
    char text[4096];
};

/* A source whose events are counted. */
struct watched {
    struct source source; /* the first member: a slot of the loop's table */
    struct bench *bench;
    unsigned runs[EVENT_DIRECTIONS];
    bool receives; /* a read event takes all bytes and ends "ready", else it leaves both */
    size_t received;
    bool ended; /* recv has said so */
    int error;  /* ... or failed */
    void (*then)(struct watched *watched);
    struct watched *other; /* for `then` */
};

/* Of the test that runs, NULL where it runs on the real kernel. */
extern struct sim *simulation;

/* The mechanism with the number that a loop test is given. */
const struct mechanism *mechanism_at(int i);
bool is_simulated(int i);

/* A loop with room for n sources. */
struct bench *bench_set_up(int i, uint32_t n);
struct bench *bench_with(
    const struct mechanism *mechanism, int64_t option, uint32_t n, const sigset_t *wait_mask);
/* Fails if a line was logged that no test has asked for. */
void bench_tear_down(struct bench *bench);
const char *bench_logged(struct bench *bench);

/* A source on a descriptor, which it owns; not armed. */
struct watched *watch(struct bench *bench, int fd);
void watch_no_more(struct watched **watched);
/* Arms it and fails if that is refused. */
void arm(struct watched *watched, enum event_direction direction);
void disarm(struct watched *watched, enum event_direction direction);

/* Waits once and runs what was posted. */
void turn(struct bench *bench, int timeout);
/* Turns without waiting until no event has come in one; for sources that take what is there. */
void turn_until_quiet(struct bench *bench);
/* Turns until the condition holds; fails after some seconds. */
#define turn_until(bench, condition)                                                               \
    do {                                                                                           \
        uint64_t deadline = now_us() + 10 * 1000 * 1000;                                           \
        while (!(condition)) {                                                                     \
            turn((bench), 20);                                                                     \
            ck_assert_msg(now_us() < deadline, "waited in vain for: %s", #condition);              \
        }                                                                                          \
    } while (0)
/* Fails unless waits for nothing take their time and run no handler. */
void check_quiet(struct bench *bench);

uint64_t now_us(void);

/* A connected pair of non-blocking stream sockets, unix or TCP. On a simulation the second is an end
 * of the harness, with which only the functions below can do something; as are clients. */
void make_pair(int fds[2]);
void make_tcp_pair(int fds[2]);
/* A non-blocking listening socket on the loopback address; *address is its own. */
struct sockaddr_in;
int make_listener(struct sockaddr_in *address);
/* An address where nobody listens. */
void make_nobody(struct sockaddr_in *address);
/* A non-blocking socket that connects there; it is not waited for. */
int make_client(const struct sockaddr_in *address);

void say(int fd, const char *text);
/* Writes until there is no more room, and reads it all. */
void fill(int fd);
void drain(int fd);
/* Ways to end. */
void hang_up(int fd);
void half_close(int fd);
void reset(int fd);

/* Receives once; says how much, and 0 at the end. */
size_t take(struct watched *watched);
/* Accepts a client, who is there, and closes its connection. */
void serve(struct watched *listener);

void start_simulation(void);
void end_simulation(void);

typedef void add_tests_fn(TCase *tcase, int from, int to);
int contract_main(const char *name, add_tests_fn *add_tests);

/* As tcase_add_loop_test(), for tests of what a simulation has not: descriptors, signals, processes,
 * waits that block. */
#define tcase_add_real_test(tcase, test, from, to)                                                 \
    do {                                                                                           \
        if (!is_simulated(from))                                                                   \
            tcase_add_loop_test((tcase), test, (from), (to));                                      \
    } while (0)

/* `add_tests` adds the file's tests as loop tests from `from` to `to`. */
#define CONTRACT_MAIN(name, add_tests)                                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        return contract_main(name, add_tests);                                                     \
    }
