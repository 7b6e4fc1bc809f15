/* SPDX-License-Identifier: BSD-2-Clause */
/* Warnings of what was understood, and hardly means what it says. Private to settings/. */
#pragma once

struct apply;
struct scope;

/* Called when all of stream {} was read. */
void warnings_of_stream(struct apply *apply, const struct scope *stream);
/* Called when the number of workers is known. */
void warnings_of_workers(struct apply *apply);
