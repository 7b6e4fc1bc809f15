# SPDX-License-Identifier: BSD-2-Clause
# FB_DEPFILES: makes the empty lists of dependencies that make is to include, all at once. automake's
# own rule, which finds them made, starts three processes for each of the 1,300. Before AM_INIT_AUTOMAKE.
AC_DEFUN([FB_DEPFILES],
    [AC_CONFIG_COMMANDS([empty-depfiles],
        [lists=$(sed -n 's|^include \(.*\)$(DEPDIR)/\(.*\) # am--include-marker$|\1.deps/\2|p' Makefile)
         test -z "$lists" || {
             echo "$lists" | sed 's|/[[^/]]*$||' | sort -u | xargs mkdir -p
             echo "$lists" | xargs touch
         }])])
