# SPDX-License-Identifier: BSD-2-Clause
# FB_RELOCATIONS: what position-independent code costs at run time, made smaller where the tools can.
AC_DEFUN([FB_RELOCATIONS], [
# Relocations of a position-independent program take memory of their own unless they are packed. The
# C library has to know how to unpack them.
AC_MSG_CHECKING([whether the linker and the C library have packed relocations])
saved_CFLAGS=$CFLAGS
saved_LDFLAGS=$LDFLAGS
CFLAGS="$FB_CFLAGS -fPIE $CFLAGS"
LDFLAGS="$FB_LDFLAGS -pie -Wl,-z,pack-relative-relocs -Wl,--fatal-warnings $LDFLAGS"
AC_RUN_IFELSE([AC_LANG_PROGRAM([[static int number = 42; static int *volatile pointer = &number;]],
    [[return *pointer - 42;]])],
    [FB_LDFLAGS="$FB_LDFLAGS -Wl,-z,pack-relative-relocs"; have_packed=yes], [have_packed=no],
    [have_packed=no])
CFLAGS=$saved_CFLAGS
LDFLAGS=$saved_LDFLAGS
AC_MSG_RESULT([$have_packed])

# All of the C library is bound at the start, so that a stub before each call is of no use.
AC_MSG_CHECKING([whether $CC takes -fno-plt])
saved_CFLAGS=$CFLAGS
CFLAGS="$FB_CFLAGS -fno-plt $CFLAGS -Werror"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM],
    [LIBRARY_CFLAGS="$LIBRARY_CFLAGS -fno-plt"
     SMALL_CFLAGS="$SMALL_CFLAGS -fno-plt"
     have_no_plt=yes], [have_no_plt=no])
CFLAGS=$saved_CFLAGS
AC_MSG_RESULT([$have_no_plt])])

# FB_PIE: have_pie tells whether the compiler makes position-independent executables
AC_DEFUN([FB_PIE],
    [AC_MSG_CHECKING([whether $CC makes position-independent executables])
     AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#ifndef __PIE__
#error no
#endif
]])], [have_pie=yes], [have_pie='no: the daemon lies at the same address in each start'])
     AC_MSG_RESULT([$have_pie])])
