/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories, processes and ports of a test program, released at its end. */
#pragma once

#include "support/test.h"

#include <netinet/in.h>

/* The place of sanitizers' reports, below a test's directory: any user may write there. */
#define RESOURCES_REPORTS "reports"

/* The program's fixture: makes a directory for all tests of the program; afterwards shows the logs
 * of failed tests, ends leftover processes, and removes the directory. */
void resources_fixture(TCase *tcase);

/* Begins a test: a new empty directory, and orphans become children of the test. */
void resources_begin_test(char *directory, size_t size);
/* Fails if there are reports, or files that are neither the harness's nor among `owned`; removes
 * the directory. */
void resources_end_test(const char *directory, const char *const *owned, unsigned owned_n);

/* Free TCP ports in a row, for IPv4 and IPv6. The sockets keep programs, clients too, from taking
 * the ports and leave them free for listeners with SO_REUSEADDR. */
void resources_reserve_ports(in_port_t *ports, int *sockets, unsigned n);
