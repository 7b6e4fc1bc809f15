# SPDX-License-Identifier: BSD-2-Clause
# FB_GOLD: how test programs are linked: by gold where there is one, in a third of the time, and
# without symbols, which only the sanitizers' reports need. "make TEST_STRIP=" keeps them for a
# debugger.
AC_DEFUN([FB_GOLD],
    [TEST_LDFLAGS=$FB_LDFLAGS
     TEST_STRIP=
     AS_IF([test "$enable_sanitizers" = no], [TEST_STRIP=-Wl,-s])
     AC_MSG_CHECKING([whether $CC links with gold])
     saved_CFLAGS=$CFLAGS
     CFLAGS="$FB_CFLAGS $CFLAGS -fuse-ld=gold $TEST_LDFLAGS $TEST_STRIP -Werror"
     AC_LINK_IFELSE([AC_LANG_PROGRAM], [TEST_LDFLAGS="-fuse-ld=gold $TEST_LDFLAGS"; have_gold=yes],
         [have_gold=no])
     CFLAGS=$saved_CFLAGS
     AC_MSG_RESULT([$have_gold])
     AC_SUBST([TEST_LDFLAGS])
     AC_SUBST([TEST_STRIP])])
