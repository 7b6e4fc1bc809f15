# SPDX-License-Identifier: BSD-2-Clause
# The flavours of tests/run, which share the job server of this make: while tests of one wait, another one
# is built. What is in the same folder comes one after the other. FLAVOURS says which are wanted.
all: $(FLAVOURS)

objects plain clang posix poll select sanitizers distcheck:
	+@../tests/flavour $@

plain sanitizers: objects
poll select: $(filter posix,$(FLAVOURS))
select: $(filter poll,$(FLAVOURS))
distcheck: plain clang

.PHONY: all objects plain clang posix poll select sanitizers distcheck
