/* SPDX-License-Identifier: BSD-2-Clause */
/* A pipe by which a child of fork() tells its parent, once, that it is ready, or why it is not: by
 * a code of one byte. A child that ends without that closes the pipe. */
#pragma once

/* Opens the pipe: ends[0] is the parent's, ends[1] the child's, and each closes the other. -1 with
 * errno. */
int ready_open(int ends[2]);
/* In the child: tells the code, and closes its end. The parent may have gone. */
void ready_tell(int end, unsigned char code);
/* In the parent: waits for the code, which it returns, and closes its end; -1: the child has ended
 * without one. */
int ready_wait(int end);
