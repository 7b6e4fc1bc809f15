# SPDX-License-Identifier: BSD-2-Clause
# FB_MECHANISMS: HAVE_KQUEUE, HAVE_EVENTPORT and HAVE_DEVPOLL, for the shell (1 or 0) and for
# Makefiles: the event mechanisms of other systems, as their kernels have them, or all over tests/shims.
AC_DEFUN([FB_MECHANISMS],
    [HAVE_KQUEUE=0
     HAVE_EVENTPORT=0
     HAVE_DEVPOLL=0
     AS_IF([test "$enable_shims" = yes],
         [HAVE_KQUEUE=1
          HAVE_EVENTPORT=1
          HAVE_DEVPOLL=1],
         [AC_CHECK_FUNC([kqueue],
             [AC_CHECK_DECL([EVFILT_USER], [HAVE_KQUEUE=1], [], [[#include <sys/types.h>
#include <sys/event.h>]])])
          AC_CHECK_FUNC([port_create], [HAVE_EVENTPORT=1])
          AC_CHECK_HEADER([sys/devpoll.h], [HAVE_DEVPOLL=1])])
     AM_CONDITIONAL([SHIMS], [test "$enable_shims" = yes])
     AM_CONDITIONAL([HAVE_KQUEUE], [test $HAVE_KQUEUE = 1])
     AM_CONDITIONAL([HAVE_EVENTPORT], [test $HAVE_EVENTPORT = 1])
     AM_CONDITIONAL([HAVE_DEVPOLL], [test $HAVE_DEVPOLL = 1])])
