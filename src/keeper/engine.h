/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine of this build: OpenSSL's, or, without OpenSSL, an engine which refuses to start. */
#pragma once

#include "tls/engine.h"

extern const struct tls_engine_ops engine_openssl;
