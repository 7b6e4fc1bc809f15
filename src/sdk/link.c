/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary contract with modules: the addresses of all calls, and the layouts of ABI 1. The
 * loader (module/module.c) refers to the table, so that the linker takes every call into a program
 * with modules: a convenience library is an archive, and loses unreferenced members. A new call is
 * appended here. */
#include "module/module.h"

#include <assert.h>

#if UINTPTR_MAX == UINT64_MAX
static_assert(offsetof(fb_ops, closed) == 72 && sizeof(fb_ops) == 88, "layout of ABI 1");
static_assert(offsetof(fb_directive, initial) == 40 && offsetof(fb_directive, set) == 56 &&
                  sizeof(fb_directive) == 72,
    "layout of ABI 1");
static_assert(offsetof(fb_protocol, name) == 16 && offsetof(fb_protocol, ops) == 64 &&
                  offsetof(fb_protocol, needs) == 96 && offsetof(fb_protocol, worker_ops) == 120 &&
                  offsetof(fb_protocol, conf_accepted) == 144 &&
                  offsetof(fb_protocol, variables) == 160 && sizeof(fb_protocol) == 176,
    "layout of ABI 1");
static_assert(offsetof(fb_connect_options, key) == 48 &&
                  offsetof(fb_connect_options, flags) == 88 && sizeof(fb_connect_options) == 96,
    "layout of API 4");
static_assert(
    sizeof(fb_variable_definition) == 24 && offsetof(fb_stream, pass) == 56, "layout of API 4");
static_assert(offsetof(fb_upstreams, end) == 32 && sizeof(fb_try) == 24, "layout of API 4");
static_assert(offsetof(fb_upstreams, probed) == 56 && sizeof(fb_probe) == 40 &&
                  sizeof(fb_health_options) == 32,
    "layout of API 4");
static_assert(sizeof(fb_metric) == 16 && sizeof(fb_item) == 40, "layout of ABI 1");
static_assert(
    sizeof(fb_frame_limit) == 16 && sizeof(fb_frame_layout) == 32 && sizeof(fb_bytes) == 16,
    "layout of ABI 1");
static_assert(sizeof(fb_map_cursor) == 16, "layout of API 4");
static_assert(
    sizeof(fb_name_record) == 40 && sizeof(fb_names) == 56 && sizeof(fb_resolve_options) == 40,
    "layout of API 4");
static_assert(offsetof(fb_file_read, error) == 24 && sizeof(fb_file_read) == 32, "layout of ABI 1");
static_assert(offsetof(fb_map_options, memory) == 32 && offsetof(fb_pipe_options, timeout) == 8,
    "layout of ABI 1");
static_assert(
    offsetof(fb_pipe_options, buffer) == 40 && sizeof(fb_pipe_options) == 56, "layout of API 4");
#endif

/* Addresses of functions of any type; none is called by this type. */
#define CALL(function) (void (*)(void))(function)

void (*const sdk_calls[])(void) = {
    CALL(fb_conf_errorf),
    CALL(fb_conf_alloc),
    CALL(fb_conf_target),
    CALL(fb_conf_map),
    CALL(fb_write),
    CALL(fb_writev),
    CALL(fb_write_ref),
    CALL(fb_send_file),
    CALL(fb_flush),
    CALL(fb_unsent),
    CALL(fb_stop),
    CALL(fb_resume),
    CALL(fb_shutdown),
    CALL(fb_close),
    CALL(fb_abort),
    CALL(fb_set_timeout),
    CALL(fb_timer),
    CALL(fb_timer_cancel),
    CALL(fb_set_idle),
    CALL(fb_alloc),
    CALL(fb_temp_alloc),
    CALL(fb_temp_reset),
    CALL(fb_conf_of),
    CALL(fb_peer_address),
    CALL(fb_local_address),
    CALL(fb_address_text),
    CALL(fb_received),
    CALL(fb_sent),
    CALL(fb_frame_until),
    CALL(fb_frame_fixed),
    CALL(fb_frame_prefixed),
    CALL(fb_connect),
    CALL(fb_make_target),
    CALL(fb_is_reused),
    CALL(fb_keep),
    CALL(fb_pipe),
    CALL(fb_worker_of),
    CALL(fb_worker_state),
    CALL(fb_wall_ms),
    CALL(fb_mono_ms),
    CALL(fb_random),
    CALL(fb_run),
    CALL(fb_ref_of),
    CALL(fb_find),
    CALL(fb_send_message),
    CALL(fb_metric_add),
    CALL(fb_metric_total),
    CALL(fb_map_get),
    CALL(fb_map_set),
    CALL(fb_map_replace),
    CALL(fb_map_add),
    CALL(fb_map_delete),
    CALL(fb_map_count),
    CALL(fb_conn_logf),
    CALL(fb_worker_logf),
    CALL(fb_count_request),
    CALL(fb_get_statistics),
    CALL(fb_read_file),
    CALL(fb_aio_of),
    CALL(fb_post),
    CALL(fb_conf_pool),
    CALL(fb_run_in),
    CALL(fb_frame_varint),
    CALL(fb_frame_counted),
    CALL(fb_own_state),
    CALL(fb_worker_timer),
    CALL(fb_worker_timer_cancel),
    CALL(fb_worker_id),
    CALL(fb_worker_number),
    CALL(fb_worker_count),
    CALL(fb_send_worker),
    CALL(fb_send_all),
    CALL(fb_map_remove),
    CALL(fb_map_append),
    CALL(fb_map_next),
    CALL(fb_map_watch),
    CALL(fb_set_receive_timeout),
    CALL(fb_state_of),
    CALL(fb_become),
    CALL(fb_connect_with),
    CALL(fb_error_of),
    CALL(fb_attach),
    CALL(fb_attached),
    CALL(fb_target_from),
    CALL(fb_watch_fd),
    CALL(fb_watch_set),
    CALL(fb_unwatch),
    CALL(fb_master_logf),
    CALL(fb_worker_conf),
    CALL(fb_resolve),
    CALL(fb_resolve_cancel),
    CALL(fb_interface),
    CALL(fb_conf_template),
    CALL(fb_conf_variable),
    CALL(fb_conf_listener),
    CALL(fb_conf_upstream),
    CALL(fb_conf_health_check),
    CALL(fb_conf_need),
    CALL(fb_parse_address),
    NULL,
};
