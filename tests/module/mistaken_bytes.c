/* SPDX-License-Identifier: BSD-2-Clause */
/* The mistakes of the module with bytes that were lent, with memory, and with arguments. */
#include "mistaken.h"

#include <fcntl.h>

static const fb_frame_limit limit = { .most = 100 };
static const fb_ops no_ops = { .size = sizeof(fb_ops) };

/* ---- Bytes that were lent ---- */

void mistake_input_kept(fb_conn *conn, fb_bytes in)
{
    mistaken_own(conn)->kept = in.p;
    mistaken_make_later(conn, mistaken_read_kept);
}

static void send_kept_bytes(fb_worker *worker)
{
    const struct mistaken_worker *state = fb_own_state(worker);

    fb_write(state->old, (const void *)(uintptr_t)state->kept, 4);
}

void mistake_input_sent(fb_conn *conn, fb_bytes in)
{
    mistaken_own(conn)->old = conn;
    mistaken_own(conn)->kept = in.p;
    mistaken_make_later(conn, send_kept_bytes);
}

void mistake_input_over(fb_conn *conn, fb_bytes in)
{
    const volatile uint8_t *p = in.p;

    if (p[in.n] == 'x')
        fb_close(conn);
}

void mistake_input_written(fb_conn *conn, fb_bytes in)
{
    (void)conn;
    *(volatile uint8_t *)(uintptr_t)in.p = 'x';
}

/* See mistaken_data(). */
void mistake_consumed(fb_conn *conn, fb_bytes in)
{
    (void)conn, (void)in;
}

void mistake_message_kept(fb_conn *conn, fb_bytes in)
{
    fb_worker *worker = fb_worker_of(conn);

    fb_send_worker(worker, fb_worker_id(worker), in.p, in.n);
}

void mistake_answer_kept(fb_conn *conn, fb_bytes in)
{
    fb_worker *worker = fb_worker_of(conn);

    mistaken_own(conn)->later = mistaken_read_kept;
    fb_send_worker(worker, fb_worker_id(worker), in.p, in.n);
}

static void file_is_read(fb_conn *conn, void *state, const fb_file_read *read)
{
    (void)state;
    mistaken_own(conn)->kept = read->bytes.p;
    mistaken_make_later(conn, mistaken_read_kept);
}

void mistake_read_kept(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_read_file(conn, open("/etc/passwd", O_RDONLY | O_CLOEXEC), 0, 16, file_is_read);
}

void mistake_key_kept(fb_conn *conn, fb_bytes in)
{
    fb_worker *worker = fb_worker_of(conn);

    fb_map_watch(worker, mistaken_map(conn), 1);
    fb_map_set(worker, mistaken_map(conn), in, in, 0);
}

/* ---- Red zones ---- */

/* A size unknown to the compiler. */
static volatile size_t beyond = 0;

void mistake_conn_state(fb_conn *conn, fb_bytes in)
{
    volatile char *state = fb_state_of(conn);

    (void)in;
    state[64 + beyond] = 1;
}

void mistake_worker_state(fb_conn *conn, fb_bytes in)
{
    volatile char *state = fb_worker_state(conn);

    (void)in;
    state[sizeof(struct mistaken_worker) + beyond] = 1;
}

void mistake_alloc_over(fb_conn *conn, fb_bytes in)
{
    volatile char *p = fb_alloc(conn, 16);

    (void)in;
    p[16 + beyond] = 1;
}

void mistake_alloc_by_one(fb_conn *conn, fb_bytes in)
{
    volatile char *p = fb_alloc(conn, 10);

    (void)in;
    p[10 + beyond] = 1;
}

void mistake_alloc_before(fb_conn *conn, fb_bytes in)
{
    volatile char *p = fb_alloc(conn, 10);

    (void)in;
    *(p - 1 - beyond) = 1;
}

void mistake_alloc_ended(fb_conn *conn, fb_bytes in)
{
    (void)in;
    mistaken_own(conn)->kept = fb_alloc(conn, 10);
    fb_abort(conn);
    mistaken_make_later(conn, mistaken_read_kept);
}

void mistake_temp_over(fb_conn *conn, fb_bytes in)
{
    volatile char *p = fb_temp_alloc(conn, 32);

    (void)in;
    p[32 + beyond] = 1;
}

void mistake_temp_reset(fb_conn *conn, fb_bytes in)
{
    volatile char *p = fb_temp_alloc(conn, 32);

    (void)in;
    fb_temp_reset(conn);
    p[beyond] = 1;
}

void mistake_temp_sent(fb_conn *conn, fb_bytes in)
{
    void *p = fb_temp_alloc(conn, 32);

    (void)in;
    fb_temp_reset(conn);
    fb_write(conn, p, 32);
}

static void write_beyond_job(void *job)
{
    volatile char *p = job;

    p[8 + beyond] = 1;
}

void mistake_job_over(fb_conn *conn, fb_bytes in)
{
    fb_run(fb_worker_of(conn), write_beyond_job, mistaken_run_nothing, in.p, 8);
}

/* ---- Arguments ---- */

void mistake_null_bytes(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_write(conn, NULL, 5);
}

void mistake_null_release(fb_conn *conn, fb_bytes in)
{
    fb_write_ref(conn, in.p, in.n, NULL, NULL);
}

void mistake_null_done(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_run(fb_worker_of(conn), mistaken_ignore, NULL, NULL, 0);
}

void mistake_null_ready(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_watch_fd(fb_worker_of(conn), 0, FB_WATCH_READ, NULL, NULL);
}

void mistake_null_ops(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_become(conn, NULL, NULL);
}

void mistake_null_limit(fb_conn *conn, fb_bytes in)
{
    fb_bytes frame;

    fb_frame_fixed(conn, &in, 1, NULL, &frame);
}

void mistake_no_delimiter(fb_conn *conn, fb_bytes in)
{
    fb_bytes frame;

    fb_frame_until(conn, &in, "", 0, &limit, &frame);
}

void mistake_width(fb_conn *conn, fb_bytes in)
{
    fb_bytes frame;

    fb_frame_prefixed(conn, &in, 9, 0, &limit, &frame);
}

void mistake_frame_elsewhere(fb_conn *conn, fb_bytes in)
{
    static const uint8_t elsewhere[16];
    fb_bytes rest = { elsewhere, sizeof(elsewhere) }, frame;

    (void)in;
    fb_frame_fixed(conn, &rest, 1, &limit, &frame);
}

void mistake_metric(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_metric_add(conn, 7, 1);
}

void mistake_options_size(fb_conn *conn, fb_bytes in)
{
    const fb_connect_options options = { .owner = conn };

    (void)in;
    fb_connect_with(fb_worker_of(conn), NULL, &no_ops, NULL, &options);
}

static const fb_stream *stream_of(const fb_conn *conn)
{
    return fb_interface(fb_worker_of(conn), "stream", 1);
}

void mistake_variable_stray(fb_conn *conn, fb_bytes in)
{
    stream_of(conn)->get(conn, (const fb_variable *)(const void *)&limit, &in);
}

void mistake_status(fb_conn *conn, fb_bytes in)
{
    (void)in;
    stream_of(conn)->set_status(conn, 99);
}

int mistaken_value(fb_conn *conn, void *state, uint32_t variable, fb_bytes *out)
{
    (void)state, (void)variable;
    *out = (fb_bytes) { (const uint8_t *)(uintptr_t)mistaken_own(conn)->kept, 1 };
    return 0;
}

void mistake_value_lent(fb_conn *conn, fb_bytes in)
{
    const struct mistaken *mistaken = fb_conf_of(conn);

    mistaken_own(conn)->kept = in.p;
    stream_of(conn)->get(conn, mistaken->lent, &in);
}

void mistake_pipe_same(fb_conn *conn, fb_bytes in)
{
    (void)in;
    fb_pipe(conn, conn, NULL);
}
