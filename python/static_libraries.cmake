# Read behind project() when a wheel is built: libraries are linked in where they are installed as
# archives, so that a wheel needs the C library alone.
# SPDX-License-Identifier: Apache-2.0
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
