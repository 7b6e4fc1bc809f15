/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol that answers lines in upper case, and can make every mistake for the kit to find:
 * "faulty MISTAKE;". */
#pragma once

#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_faulty;

/* The descriptor of the mistakes "leaks_descriptor" and "closes_descriptor". */
extern int faulty_descriptor;
