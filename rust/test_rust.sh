# The crates: sh test_rust.sh BUILD. Bindings are what bindgen writes; then build, tests, documents'
# examples, with Debian's cargo where it is here, and nothing from a network.
# SPDX-License-Identifier: Apache-2.0
set -u
build=$(cd "$1" && pwd) || exit 1
cd "$(dirname "$0")" || exit 1
status=0
./generate_bindings --check || status=$?
[ $status = 0 ] || [ $status = 77 ] || exit 1

grep -q '^RONDO_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" && {
    echo "skipped: Rust links no sanitizer's library"
    exit 77
}
[ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && PATH=/usr/bin:$PATH
command -v cargo >/dev/null 2>&1 && command -v rustc >/dev/null 2>&1 || {
    echo "skipped: there is no cargo or rustc here (Debian: cargo, rustc)"
    exit 77
}
rustc --version
export RONDO_LIB_DIR="$build" LD_LIBRARY_PATH="$build" CARGO_TARGET_DIR="$build/rust" RONDO_LOG=error
export CARGO_NET_OFFLINE=true
# Newer compilers find more to say.
case $(rustc --version) in "rustc 1.63."*) export RUSTFLAGS="-D warnings" ;; esac
cargo test --offline --locked --workspace || exit 1
cargo run --offline --locked --quiet --example first ../examples/models/squeezenet1_1/model.onnx >"$build/rust/said" ||
    exit 1
cat "$build/rust/said"
grep -q '^x is 14$' "$build/rust/said" && grep -q 'cure:' "$build/rust/said" &&
    grep -q '1000 numbers, replayed: true' "$build/rust/said" || { echo "the example says something else"; exit 1; }
exit $status
