/* SPDX-License-Identifier: BSD-2-Clause */
/* Loops of every mechanism, for the tests of the contract, and the far ends of watched descriptors.
 * A test runs for every mechanism, in a test case named after the mechanism: a failure says
 * "...:E:select:name_of_the_test". */
#pragma once

#include "support/watched.h"

/* The simulation of the running test; NULL on the real kernel. */
extern struct sim *simulation;

/* The mechanism with the number given to a loop test. */
const struct mechanism *mechanism_at(int i);
bool is_simulated(int i);

/* Starts a loop with room for n sources. */
struct fixture *contract_start(int i, uint32_t n);
struct fixture *contract_start_with(const struct mechanism *mechanism,
    struct mechanism_values values, uint32_t n, const sigset_t *wait_mask);

/* A source on a descriptor, owned by the source; not armed. */
struct watched *watch_fd(struct fixture *fixture, int fd);
void unwatch(struct watched **watched);
/* Arms the event and fails if the mechanism refuses. */
void arm_event(struct watched *watched, enum event_direction direction);
void disarm_event(struct watched *watched, enum event_direction direction);

/* Turns without waiting until a turn has no event; for sources consuming all input. */
void turn_until_quiet(struct fixture *fixture);
/* Turns until the condition holds; fails after some seconds. */
#define turn_until(fixture, condition)                                                             \
    do {                                                                                           \
        uint64_t deadline = now_us() + TEST_PATIENCE_MS * 1000;                                    \
        while (!(condition)) {                                                                     \
            fixture_turn_waiting((fixture), 20);                                                   \
            ck_assert_msg(now_us() < deadline, "waited in vain for: %s", #condition);              \
        }                                                                                          \
    } while (0)
/* Fails unless waits for nothing take their time and run no handler. */
void check_quiet(struct fixture *fixture);

uint64_t now_us(void);

/* A connected pair of non-blocking stream sockets, unix or TCP. On a simulation the second is an
 * end of the harness, with which only the functions below can do something; as are clients. */
void make_pair(int fds[2]);
void make_tcp_pair(int fds[2]);
/* A non-blocking listening socket on the loopback address; *address is its own. */
struct sockaddr_in;
int make_listener(struct sockaddr_in *address);
/* An address where nobody listens. */
void make_nobody(struct sockaddr_in *address);
/* A non-blocking socket, connecting to the address without a wait. */
int make_client(const struct sockaddr_in *address);

void send_text(int fd, const char *text);
/* Writes until there is no more room, and reads everything. */
void fill_socket(int fd);
void drain_socket(int fd);
/* Ways to end. */
void close_end(int fd);
void shut_end(int fd);
void reset_end(int fd);

/* Receives once; says how much, and 0 at the end. */
size_t receive_once(struct watched *watched);
/* Accepts a waiting client, and closes the connection. */
void accept_once(struct watched *listener);

void start_simulation(void);
void end_simulation(void);

typedef void add_tests_fn(TCase *tcase, int from, int to);
int contract_main(const char *name, add_tests_fn *add_tests);

/* tcase_add_loop_test() for tests of descriptors, signals, processes and blocking waits, missing in
 * a simulation. */
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
