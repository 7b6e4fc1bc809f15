/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of the settings of sample directives beyond a number or a text. They fail the test if the
 * row's value in samples.c was not set. */
#pragma once

#include "settings/cycle.h"

void check_env(const struct cycle *cycle);
void check_control(const struct cycle *cycle);
void check_control_read(const struct cycle *cycle);
void check_error_log(const struct cycle *cycle);
void check_rate_limit(const struct cycle *cycle);
void check_thread_pool(const struct cycle *cycle);
void check_affinity(const struct cycle *cycle);
void check_debug(const struct cycle *cycle);
void check_use(const struct cycle *cycle);
void check_option(const struct cycle *cycle);
void check_included(const struct cycle *cycle);
void check_module(const struct cycle *cycle);
void check_listen(const struct cycle *cycle);
void check_limit_zone(const struct cycle *cycle);
void check_access_log(const struct cycle *cycle);
void check_log_format(const struct cycle *cycle);
void check_log_cache(const struct cycle *cycle);
void check_trusted(const struct cycle *cycle);
void check_resolver(const struct cycle *cycle);
void check_allow(const struct cycle *cycle);
void check_deny(const struct cycle *cycle);
void check_server(const struct cycle *cycle);
void check_pass(const struct cycle *cycle);
void check_return(const struct cycle *cycle);
void check_file(const struct cycle *cycle);
void check_directio(const struct cycle *cycle);
void check_map(const struct cycle *cycle);
void check_match(const struct cycle *cycle);
void check_nothing(const struct cycle *cycle);
void check_variable(const struct cycle *cycle);
void check_daytime(const struct cycle *cycle);
void check_discard(const struct cycle *cycle);
void check_echo(const struct cycle *cycle);
void check_status_page(const struct cycle *cycle);
void check_stub_status(const struct cycle *cycle);
void check_min_rate(const struct cycle *cycle);
void check_drop(const struct cycle *cycle);
void check_lifetime(const struct cycle *cycle);
void check_upstream(const struct cycle *cycle);
void check_upstream_server(const struct cycle *cycle);
void check_upstream_drop(const struct cycle *cycle);
void check_upstream_queue(const struct cycle *cycle);
void check_upstream_resolver(const struct cycle *cycle);
void check_upstream_timeout(const struct cycle *cycle);
void check_upstream_hash(const struct cycle *cycle);
void check_upstream_least_conn(const struct cycle *cycle);
void check_upstream_least_time(const struct cycle *cycle);
void check_upstream_random(const struct cycle *cycle);

/* proxy_checks.c */
void check_proxy_bind(const struct cycle *cycle);
void check_proxy_buffer_size(const struct cycle *cycle);
void check_proxy_connect_timeout(const struct cycle *cycle);
void check_proxy_download_rate(const struct cycle *cycle);
void check_proxy_half_close(const struct cycle *cycle);
void check_proxy_next_upstream(const struct cycle *cycle);
void check_proxy_next_upstream_timeout(const struct cycle *cycle);
void check_proxy_next_upstream_tries(const struct cycle *cycle);
void check_proxy_pass(const struct cycle *cycle);
void check_proxy_protocol(const struct cycle *cycle);
void check_proxy_reset(const struct cycle *cycle);
void check_proxy_socket_keepalive(const struct cycle *cycle);
void check_proxy_timeout(const struct cycle *cycle);
void check_proxy_upload_rate(const struct cycle *cycle);
