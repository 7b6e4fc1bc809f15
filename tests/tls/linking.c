/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's link to an engine without cryptography: see linking.h. */
#include "tls/linking.h"

#include "tls/link_keeper.h"
#include "tls/link_local.h"

#include <string.h>
#include <unistd.h>

static struct tls_profile list[] = { { .at = "a:1", .trusted = TLS_NO_FILE },
    { .at = "a:2", .role = TLS_CLIENT, .sends_name = true, .trusted = TLS_NO_FILE } };
static const struct tls_profiles profiles = { .list = list, .n = 2 };

const struct tls_engine_ops *engine_ops = &tls_engine_plain;
struct fixture *fixture;
struct tls_link *link_;
static struct tls_engine *engine;
int keeper = -1;
struct tls_handshakes *handshakes;
struct user users[TLS_HANDSHAKES_MOST + 1], peer;
uint8_t packet[TLS_PART_SIZE_MOST + 1];

void note_reply(struct tls_pending *pending, enum tls_step step, const struct tls_reply *reply)
{
    struct user *user = container_of(pending, struct user, pending);

    ck_assert((pending->number == 0) == (step != TLS_MORE));
    user->replies++;
    user->step = step;
    user->used = reply->used;
    user->out_n = reply->out_n;
    if (reply->out_n > 0)
        memcpy(user->out, reply->out, reply->out_n);
    user->session = reply->session;
    strcpy(user->text, reply->text);
}

unsigned lost;

void note_lost(struct loop *loop)
{
    ck_assert_ptr_eq(loop, fixture->loop);
    lost++;
}

uint8_t name[9] = { 'o', 'n', 'e', '.', 't', 'e', 's', 't', 's' };

void begin(struct user *user, enum tls_role role)
{
    const size_t n = role == TLS_CLIENT ? sizeof(name) : 0;
    const struct tls_start start = { .role = role, .profile = role, .name = { name, n } };

    *user = (struct user) { .pending = { .replied = note_reply } };
    ck_assert_int_eq(tls_link_begin(link_, &user->pending, &start), 0);
    ck_assert_uint_ne(user->pending.number, 0);
}

void feed(struct user *user, const void *p, size_t n)
{
    unsigned replies = user->replies;

    tls_link_feed(link_, &user->pending, (fb_bytes) { p, n });
    ck_assert_uint_eq(user->replies, replies); /* never within the call */
}

void connect_link(void)
{
    int ends[2];

    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    if (keeper != -1)
        close(keeper);
    keeper = ends[1];
    tls_link_connect(link_, ends[0]);
}

void lose(void)
{
    if (keeper != -1)
        close(keeper);
    keeper = -1;
}

void start(int kind)
{
    struct tls_files files = { .profiles = &profiles };

    lost = 0;
    fixture = fixture_start_loop(4);
    engine = engine_ops->create(&files, NULL);
    handshakes = tls_handshakes_create(engine_ops, engine);
    link_ = kind == LOCAL ? tls_link_create_local(fixture->loop, engine_ops, engine)
                          : tls_link_create(fixture->loop, note_lost);
    ck_assert_ptr_nonnull(link_);
    if (kind == REMOTE)
        connect_link();
}

void stop(void)
{
    tls_link_destroy(link_);
    tls_handshakes_destroy(handshakes);
    engine_ops->destroy(engine);
    lose();
    fixture_stop(fixture);
}

bool receive(struct tls_request *request)
{
    ssize_t n = recv(keeper, packet, sizeof(packet), MSG_DONTWAIT);

    if (n == -1)
        return false;
    ck_assert_int_eq(tls_message_read_request(request, packet, (size_t)n), 0);
    return true;
}

void reply_to(uint32_t number, enum tls_step step, const struct tls_reply *reply)
{
    size_t from = 0;

    do {
        size_t n = tls_message_write_part(number, step, reply, from, packet);

        ck_assert_int_eq(send(keeper, packet, n, MSG_DONTWAIT), (ssize_t)n);
        from += TLS_PART_MOST;
    } while (from < reply->out_n);
}

void work(void)
{
    struct tls_request request;

    for (unsigned i = 0; i < 3; i++) {
        while (keeper != -1 && receive(&request)) {
            struct tls_reply *reply;
            enum tls_step step;

            if (request.kind == TLS_CANCEL) {
                tls_handshakes_cancel(handshakes, request.number);
                continue;
            }
            if (request.kind == TLS_TICKET) {
                ck_assert_int_eq(tls_handshakes_ticket(handshakes, &request), 0);
                continue;
            }
            ck_assert_int_eq(
                tls_handshakes_feed(handshakes, &request, profiles.n, &step, &reply), 0);
            reply_to(request.number, step, reply);
        }
        fixture_turn(fixture);
    }
}
