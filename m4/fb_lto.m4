# SPDX-License-Identifier: BSD-2-Clause
# FB_LTO: link-time optimisation of the daemon, where nobody has chosen by CFLAGS. The library's
# objects hold machine code too, which the tests link: they put functions of their own in the place of
# some. The check archives an object as make does, and links it either way.
AC_DEFUN([FB_LTO],
    [lto=no
     AS_CASE([$enable_lto:$enable_debug$enable_sanitizers:$CFLAGS],
         [no:*|*:*yes*:*], [],
         [*-flto*|*-fno-lto*], [lto='as CFLAGS say'],
         [FB_TRY_LTO])
     AS_IF([test "$enable_lto$lto" = yesno],
         [AC_MSG_ERROR([--enable-lto: no compiler that can, or --enable-debug or --enable-sanitizers])])
     AS_IF([test "$lto" = yes],
         [LTO_CFLAGS='-flto=auto -ffat-lto-objects -frandom-seed=$[]@'
          LTO_LDFLAGS='-flto=auto'
          NO_LTO_CFLAGS=-fno-lto])
     AC_SUBST([LTO_CFLAGS])
     AC_SUBST([LTO_LDFLAGS])
     AC_SUBST([NO_LTO_CFLAGS])])

AC_DEFUN([FB_TRY_LTO],
    [AC_MSG_CHECKING([whether $CC and $AR have link-time optimisation])
     saved_CFLAGS=$CFLAGS
     saved_LIBS=$LIBS
     CFLAGS="$FB_CFLAGS -flto=auto -ffat-lto-objects $CFLAGS -Werror"
     AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int lto_answer(void); int lto_answer(void) { return 42; }]])],
         [AS_IF([$AR cr conftest_lto.a conftest.$ac_objext 2>&AS_MESSAGE_LOG_FD &&
                 $RANLIB conftest_lto.a 2>&AS_MESSAGE_LOG_FD],
             [LIBS="conftest_lto.a $LIBS"
              AC_LINK_IFELSE([AC_LANG_PROGRAM([[int lto_answer(void);]], [[return lto_answer() - 42;]])],
                  [CFLAGS="$saved_CFLAGS -fno-lto"
                   AC_LINK_IFELSE([AC_LANG_PROGRAM([[int lto_answer(void);]],
                       [[return lto_answer() - 42;]])], [lto=yes])])])])
     rm -f conftest_lto.a
     CFLAGS=$saved_CFLAGS
     LIBS=$saved_LIBS
     AC_MSG_RESULT([$lto])])

# FB_THIN_ARCHIVE: how the library of the build tree is made: as an archive that names its objects
# instead of holding them, where $AR makes such.
AC_DEFUN([FB_THIN_ARCHIVE],
    [LIBRARY_AR="$AR cq"
     AC_MSG_CHECKING([whether $AR makes thin archives])
     AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int thin; int thin_answer(void); int thin_answer(void) { return thin; }]])],
         [AS_IF([$AR cqT conftest_thin.a conftest.$ac_objext 2>&AS_MESSAGE_LOG_FD &&
                 test "`$SED -n '1s/^\(!<thin>\).*/\1/p' conftest_thin.a`" = '!<thin>'],
             [LIBRARY_AR="$AR cqT"])])
     rm -f conftest_thin.a
     AS_IF([test "$LIBRARY_AR" = "$AR cq"], [AC_MSG_RESULT([no])], [AC_MSG_RESULT([yes])])
     AC_SUBST([LIBRARY_AR])])
