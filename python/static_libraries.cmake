# Read behind project() when a wheel is built: libraries are linked in where they are installed as
# archives, so that a wheel needs the C library alone.
# SPDX-License-Identifier: Apache-2.0
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
# Debian's archive of RE2 is not made for shared libraries, so the wheel carries RE2 beside librondo.
find_library(pkgcfg_lib_RE2_re2 NAMES libre2.so)
