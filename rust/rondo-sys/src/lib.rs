// The C API, as bindgen writes it. The headers in include/rondo are its reference; the crate `rondo`
// is a safe layer over a part of it.
// SPDX-License-Identifier: Apache-2.0
#![no_std]
#![allow(non_camel_case_types, non_upper_case_globals, non_snake_case)]
#![allow(clippy::all)]

extern crate std;

include!("bindings.rs");
