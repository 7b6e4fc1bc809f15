/* SPDX-License-Identifier: BSD-2-Clause */
/* A keeper in the process of a test, with the far ends of the channel and of the link. */
#include "keeper/one_keeper.h"

#include "process/signals.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct tls_profile profile_list[] = { { .at = "a:1" }, { .at = "a:2" } };
static struct tls_file file_list[] = { { .path = "/a.crt", .at = "a:1" },
    { .path = "/a.key", .at = "a:1" } };

struct keeper keeper;
struct cycle cycle;
struct heritage heritage;
struct memory_log memory;
int master = -1, worker = -1;
uint8_t packet[TLS_PART_SIZE_MOST];

void send_message(uint32_t kind, uint32_t argument, int fd)
{
    ck_assert_int_eq(channel_send(master, &(struct channel_message) { kind, argument, fd }), 0);
}

void expect_message(uint32_t kind, uint32_t argument)
{
    struct channel_message message;

    ck_assert_int_eq(channel_receive(master, &message), CHANNEL_DONE);
    ck_assert_uint_eq(message.kind, kind);
    ck_assert_uint_eq(message.argument, argument);
}

void expect_no_message(void)
{
    struct channel_message message;

    ck_assert_int_eq(channel_receive(master, &message), CHANNEL_AGAIN);
}

void turn(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        keeper_turn(&keeper, 0);
    loop_check(&keeper.loop);
}

void connect_worker(void)
{
    int ends[2];

    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    if (worker != -1)
        close(worker);
    worker = ends[0];
    send_message(MESSAGE_LINK, 1, ends[1]);
    close(ends[1]);
    turn(1);
}

void prepare(unsigned files)
{
    int ends[2];

    memory_log_open(&memory, LEVEL_INFO);
    signals_install(ROLE_WORKER);
    ck_assert_int_eq(channel_open(ends), 0);
    master = ends[0];
    cycle.core.logs = memory.log.targets;
    cycle.core.log_n = memory.log.target_n;
    cycle.tls =
        (struct tls_profiles) { .list = profile_list, .n = 2, .files = file_list, .file_n = files };
    heritage = (struct heritage) {
        .cycle = &cycle,
        .shared = shared_create(false),
        .task = TASK_KEEP,
        .index = 1,
        .place = PLACE_NONE,
        .channel = ends[1],
        .simulated = true,
    };
    ck_assert_ptr_nonnull(heritage.shared);
    ck_assert(slot_acquire(heritage.shared, &heritage.slot));
}

void start(void)
{
    prepare(0);
    ck_assert_int_eq(keeper_init(&keeper, &heritage, &tls_engine_plain), 0);
    expect_message(MESSAGE_READY, 0);
    connect_worker();
}

void leave(void)
{
    if (fcntl(heritage.channel, F_GETFD) != -1)
        close(heritage.channel);
    if (master != -1)
        close(master);
    if (worker != -1)
        close(worker);
    worker = -1;
    slot_release(heritage.shared, heritage.slot);
    shared_destroy(&heritage.shared);
    memory_log_close(&memory);
}

void stop(void)
{
    keeper_done(&keeper);
    leave();
}

void send_request(
    enum tls_request_kind kind, uint32_t number, uint32_t profile, const void *in, size_t n)
{
    const struct tls_request request = {
        .kind = kind,
        .number = number,
        .start = { .role = n == 0 ? TLS_CLIENT : TLS_SERVER, .profile = profile },
        .in = { in, n },
    };

    n = tls_message_write_request(&request, packet);
    ck_assert_int_eq(send(worker, packet, n, 0), (ssize_t)n);
}

bool receive_part(struct tls_part *part)
{
    ssize_t n = recv(worker, packet, sizeof(packet), 0);

    if (n <= 0)
        return false;
    ck_assert_int_eq(tls_message_read_part(part, packet, (size_t)n), 0);
    return true;
}

bool is_link_closed(void)
{
    return recv(worker, packet, sizeof(packet), 0) == 0;
}
