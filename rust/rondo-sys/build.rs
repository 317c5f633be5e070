// Links librondo: from $RONDO_LIB_DIR (a build folder, say), from where pkg-config says, or from where
// the linker looks by itself.
// SPDX-License-Identifier: Apache-2.0
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=RONDO_LIB_DIR");
    println!("cargo:rustc-link-lib=dylib=rondo");
    if let Ok(folder) = std::env::var("RONDO_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        return;
    }
    let said = Command::new("pkg-config").args(["--libs-only-L", "rondo"]).output();
    if let Ok(said) = said {
        for flag in String::from_utf8_lossy(&said.stdout).split_whitespace() {
            if let Some(folder) = flag.strip_prefix("-L") {
                println!("cargo:rustc-link-search=native={folder}");
            }
        }
    }
}
