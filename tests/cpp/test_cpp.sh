# rondo.hpp: sh test_cpp.sh BUILD. Its test and the example are compiled by each C++ compiler that is
# here, clang++ with every warning it has, and run; a dropped status does not compile.
# SPDX-License-Identifier: Apache-2.0
set -u
build=$(cd "$1" && pwd) || exit 1
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0

fail() {
    echo "failed: $*"
    [ ! -f "$work/said" ] || cat "$work/said"
    exit 1
}

awk '/^```cpp$/ { on = 1; next } /^```/ { on = 0 } on' docs/cpp.md >"$work/page.cpp"

every="-Weverything -Wno-c++98-compat -Wno-c++98-compat-pedantic -Wno-padded"
most="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast"
case $(grep '^RONDO_SANITIZE:' "$build/CMakeCache.txt") in
    *=) sanitize= ;;
    *=*) sanitize=-fsanitize=$(sed -n 's/^RONDO_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt") ;;
esac

# try COMPILER FLAG...
try() {
    compiler=$1
    shift
    command -v "$compiler" >/dev/null 2>&1 || return 0
    for file in "$work/page.cpp" tests/cpp/owners.cpp examples/capture_owners.cpp; do
        program=$work/$(basename "$file" .cpp)
        # shellcheck disable=SC2086  # flags
        "$compiler" -std=c++17 "$@" $sanitize -Werror -Iinclude "$file" -o "$program" -L"$build" -lrondo \
            -Wl,-rpath,"$build" >"$work/said" 2>&1 || fail "$compiler $* $file"
        case $file in
            tests/*) model=tests/models/vit_mini/model.onnx ;;
            *) model=examples/models/squeezenet1_1/model.onnx ;;
        esac
        "$program" "$model" >"$work/said" 2>&1 || fail "$compiler $*: $file says"
        count=$((count + 1))
    done
    cp "$work/said" "$work/example"
    for line in 'rondo::Device::open("host")' 'stream.synchronize()' 'rondo::Status(stream.synchronize())'; do
        printf '#include <rondo/rondo.hpp>\nvoid use(const rondo::Stream &stream);\nvoid use(const rondo::Stream &stream) { (void)stream; %s; }\n' \
            "$line" >"$work/dropped.cpp"
        # shellcheck disable=SC2086
        ! "$compiler" -std=c++17 -Werror -Iinclude -fsyntax-only "$work/dropped.cpp" 2>"$work/said" ||
            fail "$compiler lets \"$line\" pass"
        grep -q nodiscard "$work/said" || fail "$compiler: \"$line\" fails for another reason"
    done
}

# A sanitizer's library is one compiler's.
# shellcheck disable=SC2086
if [ -n "$sanitize" ]; then
    try g++ $most
else
    try clang++ $every -fno-exceptions -fno-rtti
    try clang++ $every
    try g++ $most
    try c++ -std=c++20
fi
[ $count -gt 0 ] || { echo "skipped: there is no C++ compiler here"; exit 77; }
grep -q '^x is 14$' "$work/example" && grep -q 'cure:' "$work/example" && grep -q '^1000 numbers' "$work/example" ||
    { cp "$work/example" "$work/said"; fail "the example says something else"; }
echo "$count programs compiled and run"
