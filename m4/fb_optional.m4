# SPDX-License-Identifier: BSD-2-Clause
# FB_OPTIONAL(OPTION, LIBRARY, SPEC, DEBIAN-PACKAGE, OPTION-LOST, LOST, [LINUX-FEATURE], [POSIX-LOST])
#
# A library that the build can do without: the option --without-OPTION, the check, and the library's
# line in the summary and in the lists of -V. SPEC is what pkg-config is asked for, or "HEADER LIBRARY
# FUNCTION" of a library that pkg-config does not know, or the HEADER of a library without code. OPTION-LOST tells, after "so that", in the help
# what the build lacks without the library, and LOST, after "without it", in the summary. A
# LINUX-FEATURE is left out of the posix flavour, whose summary tells POSIX-LOST.
#
# For OPTION io-uring and LIBRARY liburing: LIBURING_CFLAGS and LIBURING_LIBS are substituted, the
# shell has have_io_uring (yes or no) and HAVE_IO_URING (1 or 0), and Makefiles the conditional
# HAVE_IO_URING. The order of the calls is the order in the help, in the summary and in -V.
AC_DEFUN([FB_OPTIONAL], [FB_OPTIONAL_AS([$1], [$2], [$3], [$4], [$5], [$6], [$7], [$8],
    m4_translit([[$1]], [-], [_]))])

m4_define([FB_UPPER], [m4_translit([[$1]], [a-z-], [A-Z_])])
m4_define([FB_PREFIX], [m4_translit([[$1]], [a-z-], [A-Z])])
m4_define([FB_IS_HEADER], [m4_if(m4_index([$1 ], [.h ]), [-1], [$3], [$2])])

# Has the option as a name of the shell besides: io_uring.
m4_define([FB_OPTIONAL_AS], [
AC_ARG_WITH([$1], [AS_HELP_STRING([--without-$1],
    [build without $2, so that $5 @<:@check@:>@])], [], [with_$9=check])
m4_ifval([$7], [AS_IF([test "$system" = posix],
    [AS_IF([test "$with_$9" = yes], [AC_MSG_ERROR([--with-$1: only Linux has $7])])
     with_$9=no])])
have_$9=no
AS_IF([test "$with_$9" != no],
    [FB_IS_HEADER([$3], [FB_CHECK_HEADER(FB_PREFIX([$2]), [have_$9], m4_unquote(m4_split([$3])))],
        [PKG_CHECK_MODULES(FB_PREFIX([$2]), [$3], [have_$9=yes], [:])])
     AS_IF([test "$with_$9$have_$9" = yesno],
         [AC_MSG_ERROR([--with-$1 needs $2: install $4])])])
AM_CONDITIONAL([HAVE_]FB_UPPER([$1]), [test "$have_$9" = yes])
AS_IF([test "$have_$9" = yes],
    [HAVE_[]FB_UPPER([$1])=1
     BUILD_LIBRARIES="$BUILD_LIBRARIES, $2[]FB_IS_HEADER([$3], [],
         [ `$PKG_CONFIG --modversion m4_bpatsubst([$3], [ .*])`])"
     FB_SUMMARY([$2], [yes])],
    [HAVE_[]FB_UPPER([$1])=0
     BUILD_WITHOUT="$BUILD_WITHOUT${BUILD_WITHOUT:+, }$2"
     lost="without it $6"
     m4_ifval([$8], [AS_IF([test "$system" = posix], [lost="$8"])])
     FB_SUMMARY([$2], [no: $lost])])
])

# FB_CHECK_HEADER(PREFIX, VARIABLE, HEADER, [LIBRARY, FUNCTION]): sets PREFIX_LIBS and VARIABLE
m4_define([FB_CHECK_HEADER],
    [$1_LIBS=
     AC_CHECK_HEADER([$3],
         [m4_ifval([$4], [AC_CHECK_LIB([$4], [$5], [$1_LIBS=-l$4; $2=yes], [:])], [$2=yes])])
     AC_SUBST([$1_LIBS])])

# FB_SUMMARY(NAME, TEXT): a further line of the summary
AC_DEFUN([FB_SUMMARY], [summary="$summary
  m4_format([%-18s], [$1]) $2"])
