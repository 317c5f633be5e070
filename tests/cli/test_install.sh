# What `make install` puts in place can be used: through pkg-config, through CMake (shared and static),
# by the tool's man pages, and from C++.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
build=$(cd "$(dirname "$rondo")" && pwd)
prefix=$work/prefix

if grep -q '^RONDO_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
    echo "skipped: a sanitizer build is not installed"
    exit 77
fi

# try NAME COMMAND...: the command must succeed.
try() {
    name=$1
    shift
    check_count=$((check_count + 1))
    "$@" >"$work/stdout" 2>"$work/stderr" || fail "$name: status $?"
}

try install cmake --install "$build" --prefix "$prefix"
for file in include/rondo/rondo.h lib/librondo.a lib/librondo.so lib/rondo/librondo_doctor.so bin/rondo \
    lib/pkgconfig/rondo.pc lib/cmake/rondo/rondo-config.cmake share/man/man1/rondo-bench.1; do
    check_count=$((check_count + 1))
    ls "$prefix/$file" "$prefix"/lib/*/"${file#lib/}" >/dev/null 2>&1 ||
        [ -e "$prefix/$file" ] || fail "$file is not installed"
done

cat >"$work/use.c" <<'END'
#include <rondo/rondo.h>
#include <stdio.h>
int main(void) {
    size_t count = 0;
    if (rondo_device_list(NULL, 0, &count) != RONDO_STATUS_OK || count == 0) {
        return 1;
    }
    printf("rondo %s\n", rondo_version_get_text());
    return 0;
}
END
library_folder=$(dirname "$(find "$prefix" -name librondo.so | head -n 1)")
export PKG_CONFIG_PATH=$library_folder/pkgconfig LD_LIBRARY_PATH=$library_folder
try "compile with pkg-config" sh -c "\${CC:-cc} '$work/use.c' -o '$work/use' \
    \$(pkg-config --cflags --libs rondo)"
try "run with pkg-config" "$work/use"
expect_text '^rondo [0-9]'

try "compile with pkg-config, static" sh -c "\${CC:-cc} '$work/use.c' '$library_folder/librondo.a' \
    -o '$work/use_archive' \$(pkg-config --static --cflags --libs rondo)"
try "run with pkg-config, static" "$work/use_archive"
expect_text '^rondo [0-9]'

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(use C)
find_package(rondo 0.1 REQUIRED)
add_executable(use_shared ../use.c)
target_link_libraries(use_shared PRIVATE rondo::shared)
add_executable(use_static ../use.c)
target_link_libraries(use_static PRIVATE rondo::static)
END
try "configure with CMake" cmake -S "$work/project" -B "$work/project/build" \
    -DCMAKE_PREFIX_PATH="$prefix"
try "build with CMake" cmake --build "$work/project/build"
for kind in shared static; do
    try "run $kind" "$work/project/build/use_$kind"
    expect_text '^rondo [0-9]'
done

# The same from C++ alone, and only with components that there are.
mkdir "$work/cxx"
{ echo '#include <rondo/rondo.hpp>' && cat "$work/use.c"; } >"$work/use.cpp"
cat >"$work/cxx/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(use CXX)
find_package(rondo 0.1 REQUIRED COMPONENTS shared static)
find_package(rondo 0.1 QUIET COMPONENTS bogus)
if(rondo_FOUND)
  message(FATAL_ERROR "there is no component bogus")
endif()
add_executable(use_static ../use.cpp)
target_link_libraries(use_static PRIVATE rondo::static)
END
if command -v c++ >/dev/null 2>&1; then
    try "configure in C++" cmake -S "$work/cxx" -B "$work/cxx/build" -DCMAKE_PREFIX_PATH="$prefix"
    try "build in C++" cmake --build "$work/cxx/build"
    try "run in C++" "$work/cxx/build/use_static"
    expect_text '^rondo [0-9]'
fi

# As a part of another project, which names the targets alike.
source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir "$work/part"
cat >"$work/part/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(whole C)
add_subdirectory("$source" rondo)
foreach(target rondo::static rondo::shared)
  if(NOT TARGET \${target})
    message(FATAL_ERROR "there is no \${target}")
  endif()
endforeach()
if(TARGET rondo_conformance)
  message(FATAL_ERROR "another project builds our tests")
endif()
END
try "configure as a part" cmake -S "$work/part" -B "$work/part/build"

# Nothing internal is exported, by the static library neither.
try "symbols" sh -c "nm -D --defined-only '$library_folder/librondo.so' | awk '\$2 == \"T\" { print \$3 }'"
expect_text '^rondo_graph_replay$'
if grep -vE '^rondo_[a-z]' "$work/stdout" | grep -q . || grep -q '^rondo__' "$work/stdout"; then
    fail "the shared library exports: $(grep -E '^rondo__|^[^r]' "$work/stdout" | head -n 5)"
fi
static=$(find "$prefix" -name librondo.a)
try "symbols of the static library" sh -c "nm -g --defined-only '$static' | awk 'NF == 3 { print \$3 }'"
expect_text '^rondo_graph_replay$'
if grep -vE '^rondo_[a-z]' "$work/stdout" | grep -q .; then
    fail "the static library exports: $(grep -vE '^rondo_[a-z]' "$work/stdout" | head -n 5)"
fi

# What was installed goes again, and nothing else.
touch "$prefix/include/other.h"
try "uninstall" sh -c "cd '$build' && cmake -P '$source/cmake/rondo-uninstall.cmake'"
check_count=$((check_count + 1))
left=$(find "$prefix" ! -type d)
[ "$left" = "$prefix/include/other.h" ] || fail "left after uninstalling: $left"
finish_test
