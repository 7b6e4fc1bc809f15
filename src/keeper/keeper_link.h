/* SPDX-License-Identifier: BSD-2-Clause */
/* The keeper's end of the link to its worker. */
#pragma once

#include "keeper/keeper.h"

/* Takes the socket of a new link; handshakes of the last one end. */
void keeper_link_open(struct keeper *keeper, int fd);
/* Resumes handshakes whose file has come, up to the room of the link. */
void keeper_link_resume(struct keeper *keeper);
/* Closes the link, if any, and ends its handshakes. */
void keeper_link_close(struct keeper *keeper);
