# SPDX-License-Identifier: BSD-2-Clause
# FB_HARDENING: adds to FB_CFLAGS each flag that compiler, linker and the flags before it take, unless
# the user has chosen it. The sanitizers look for the same mistakes, and for more. Shadow stacks cost
# nothing where the processor has none; landing pads for jumps would cost an instruction a call, and
# no Linux turns them on for programs.
AC_DEFUN([FB_HARDENING],
    [hardening=
     AS_IF([test "$enable_sanitizers" = no],
         [FB_TRY_HARDENING([-D_FORTIFY_SOURCE=3])
          AS_CASE([$hardening], [*_FORTIFY*], [], [FB_TRY_HARDENING([-D_FORTIFY_SOURCE=2])])
          FB_TRY_HARDENING([-fstack-protector-strong])
          FB_TRY_HARDENING([-fstack-clash-protection])
          FB_TRY_HARDENING([-fcf-protection=return])
          FB_TRY_HARDENING([-mbranch-protection=standard])])
     FB_CFLAGS="$FB_CFLAGS$hardening"])

AC_DEFUN([FB_TRY_HARDENING],
    [AC_MSG_CHECKING([whether $CC takes $1])
     saved_CFLAGS=$CFLAGS
     CFLAGS="$FB_CFLAGS $hardening $1 $CFLAGS -Werror"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>]],
         [[char text[16]; return snprintf(text, sizeof(text), "%p", (void *)text) > 15;]])],
         [AC_MSG_RESULT([yes]); hardening="$hardening $1"], [AC_MSG_RESULT([no])])
     CFLAGS=$saved_CFLAGS])
