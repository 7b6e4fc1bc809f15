# SPDX-License-Identifier: BSD-2-Clause
# FB_SONAME(VARIABLE, LIBRARY, FLAGS, FUNCTION, OTHERWISE): substitutes VARIABLE by the name under which
# the dynamic loader knows LIBRARY, as a linked program has it. OTHERWISE: no program with FUNCTION can
# be linked.
AC_DEFUN([FB_SONAME],
    [AC_MSG_CHECKING([the name of $2 for dlopen()])
     saved_LIBS=$LIBS
     LIBS="-l$2 $3 $LIBS"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([[void $4(void);]], [[$4();]])],
         [$1=`$OBJDUMP -p conftest$ac_exeext | $SED -n 's/.*NEEDED  *\(lib$2\.so.*\)/\1/p'`],
         [$1=])
     LIBS=$saved_LIBS
     AC_MSG_RESULT([${$1:-none}])
     AS_IF([test -z "$$1"], [$5])
     AC_SUBST([$1])])
