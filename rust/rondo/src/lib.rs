//! Capture GPU work once, replay it at hardware speed; run ONNX models.
//!
//! ```
//! # fn main() -> rondo::Result<()> {
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use std::sync::Arc;
//!
//! let device = rondo::Device::open("host")?;
//! let stream = rondo::Stream::new(&device)?;
//! let x = stream.buffer::<f32>(4)?;
//! let count = Arc::new(AtomicU32::new(0));
//! let seen = count.clone();
//! let graph = stream.capture(|stream| {
//!     stream.fill(&x, 0)?; // recorded, not run
//!     stream.call("count", move || {
//!         seen.fetch_add(1, Ordering::Relaxed);
//!     })
//! })?;
//! graph.replay()?;
//! graph.replay()?;
//! stream.synchronize()?;
//! assert_eq!(count.load(Ordering::Relaxed), 2);
//! assert_eq!(stream.read(&x)?, [0.0; 4]);
//! # Ok(())
//! # }
//! ```
//!
//! What is safe here is what types can hold to: a stream, its buffers and its graphs stay on one thread
//! and belong together, so that no work meets memory that is gone, or in another order. Several streams
//! that share memory, foreign streams, raw kernel launches, patches, learned steps and DLPack are left to
//! the C API (`rondo::sys`), whose rules no type here could check.
// SPDX-License-Identifier: Apache-2.0
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]

mod error;
mod model;
mod stream;

pub use error::{CaptureReport, Error, Result, Status};
pub use model::{Element, Port, Session, Tensor};
pub use rondo_sys as sys;
pub use stream::{Buffer, Device, Generator, Graph, Stream};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Page;

use std::ffi::CStr;
use std::os::raw::c_char;

/// The version of the library in use.
pub fn version() -> String {
    // SAFETY: the text is static.
    unsafe { text(sys::rondo_version_get_text()) }
}

/// # Safety
/// `address` is NULL or a text with a zero at its end.
unsafe fn text(address: *const c_char) -> String {
    if address.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(address) }.to_string_lossy().into_owned()
}

/// A text for C. Zeros inside end it, as they would there.
fn c_text(text: &str) -> std::ffi::CString {
    let end = text.find('\0').unwrap_or(text.len());
    std::ffi::CString::new(&text[..end]).unwrap_or_default()
}
