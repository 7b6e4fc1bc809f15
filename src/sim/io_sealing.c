/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of simulated sockets whose output the kernel seals. As in Linux, output is taken
 * while the socket has any room; sealed bytes without room stay beside the socket, and are lost by
 * an end of the half, which is a fault of the program, or of the connection. */
#include "os/kernel_tls.h"
#include "sim/sim_private.h"

#include <assert.h>
#include <errno.h>

int sim_io_seal(struct source *source, const struct os_tls_keys *keys, struct io_sealing *sealing)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "setsockopt()");

    assert(s != NULL && s->seal == NULL);
    errno = s->sim->seal_error;
    if (errno != 0)
        return -1;
    s->seal = sim_seal_create(keys);
    s->view.sealing = true;
    sealing->begin = s->view.sent_n;
    return 0;
}

void sim_io_push_sealed(struct sim_endpoint *s)
{
    struct sim_seal *seal = s->seal;
    size_t n = seal->n < s->view.room ? seal->n : s->view.room;

    if (n == 0 || s->view.shut || s->view.closed)
        return;
    sim_append_sent(s, seal->bytes, n);
    sim_seal_drop(seal, n);
    if (s->view.room != SIZE_MAX)
        s->view.room -= n;
}

struct io_result sim_io_send_record(struct source *source, uint8_t type, const uint8_t *p, size_t n)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "sendmsg()");

    assert(s != NULL && s->seal != NULL && n > 0);
    s->view.sends++;
    if (s->view.shut)
        sim_fault(s->sim, s->view.fd, "a record after shutdown()");
    if (s->send_error != 0)
        return (struct io_result) { .status = IO_FAILED, .error = s->send_error };
    if (s->view.room == 0 || s->seal->n > 0)
        return (struct io_result) { .status = IO_AGAIN_WRITE };
    sim_seal_add(s->seal, (enum tls_type)type, p, n);
    sim_io_push_sealed(s);
    return (struct io_result) { .status = IO_DONE, .n = n };
}

enum io_sealed sim_io_sealed(const struct source *source, struct io_sealing *sealing)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "getsockopt()");
    uint64_t records;

    assert(s != NULL && s->seal != NULL);
    sealing->most = s->seal->keys.sequence;
    if (s->send_error != 0 || s->view.broke)
        return IO_SEALED_LEFT;
    records = sealing->most - sealing->sequence;
    assert(sealing->begin + sealing->plain + records * sealing->overhead ==
           s->view.sent_n + s->seal->n);
    if (sim_happens(s->sim, s->sim->trouble.again)) /* a thread of the kernel has not run yet */
        return IO_SEALED_SOON;
    return s->seal->n == 0 ? IO_SEALED_LEFT : IO_SEALED_LATER;
}
