/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the filter of system calls, as data. Private to sandbox/. The kernel uses 32 bits of
 * an int argument, a filter gets 64 bits: a rule that denies must compare only these 32. */
#pragma once

#include "settings/needs.h"

#include <sched.h>
#include <seccomp.h>
#include <stdint.h>

/* Rights of a filter, besides FB_NEEDS_... and NEEDS_... */
#define RIGHT_WRITES (UINT64_C(1) << 48) /* to write files of the configuration */
#define RIGHT_PORTS (UINT64_C(1) << 49)  /* to connect to ports of the configuration */
#define RIGHT_HELD (UINT64_C(1) << 50)   /* Landlock denies connections to other ports */
#define RIGHT_CLONES (UINT64_C(1) << 51) /* the runtime of the build starts processes */
#define RIGHT_SEALS (UINT64_C(1) << 53)  /* to give the kernel keys of TLS */
/* a protocol of an older SDK cannot declare needs, so no need is denied */
#define RIGHT_OPEN (UINT64_C(1) << 52)
/* With one of these, protocols or their libraries may have own sockets; or connect anywhere. */
#define RIGHTS_OF_SOCKETS                                                                          \
    (FB_NEEDS_UDP | FB_NEEDS_CONNECT | FB_NEEDS_NAMES | FB_NEEDS_LISTEN | FB_NEEDS_EXEC |          \
        RIGHT_OPEN)
#define RIGHTS_TO_CONNECT (FB_NEEDS_CONNECT | FB_NEEDS_NAMES | FB_NEEDS_EXEC)

/* Position of the flags among the arguments of clone(). */
#if defined(__s390__) || defined(__CRIS__)
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif
/* Headers may be older; the number is the kernel's. */
#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif
#define NAMESPACES                                                                                 \
    ((uint64_t)CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |       \
        CLONE_NEWPID | CLONE_NEWNET)

/* Compare an argument: the 32 bits of an int; all bits of a mask, or none; all 64 bits. */
#define ARG_IS(arg, value) { arg, SCMP_CMP_MASKED_EQ, UINT32_MAX, value }
#define ARG_HAS(arg, bits) { arg, SCMP_CMP_MASKED_EQ, bits, bits }
#define ARG_HAS_NOT(arg, bits) { arg, SCMP_CMP_MASKED_EQ, bits, 0 }
#define ARG_COMPARE(arg, op, value) { arg, op, value, 0 }

/* Calls with arguments, allowed or denied by the table of the rule. */
struct rule {
    const char *const *calls;    /* up to NULL; names unknown to the architecture are passed over */
    uint64_t with;               /* rights, one is enough; 0: no right is needed */
    uint64_t unless;             /* rights that exclude the rule */
    struct scmp_arg_cmp when[2]; /* conditions; an `op` of 0 ends them */
    unsigned arg;                /* number of an argument with one of the values, if any */
    unsigned value_n;
    const unsigned *values;
};

/* Tables, which end with a rule without calls. */
extern const struct rule seccomp_denied[];    /* by `on` */
extern const struct rule seccomp_allowed[];   /* by `strict` */
extern const struct rule seccomp_keeper[];    /* by `strict`, to a keeper */
extern const struct rule seccomp_libraries[]; /* options of own sockets: denied, or allowed */
