//! What can fail, and why.
// SPDX-License-Identifier: Apache-2.0
use crate::{sys, text};
use std::fmt;

/// What a call of this crate gives.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of a failure, as `rondo/status.h` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Status {
    Invalid,
    State,
    Unsupported,
    NoMemory,
    NoDeviceMemory,
    Unavailable,
    Driver,
    Lost,
    BadData,
    Internal,
    Cancelled,
    Mismatch,
}

impl Status {
    fn from_code(code: i32) -> Status {
        match code as u32 {
            sys::RONDO_STATUS_INVALID => Status::Invalid,
            sys::RONDO_STATUS_STATE => Status::State,
            sys::RONDO_STATUS_UNSUPPORTED => Status::Unsupported,
            sys::RONDO_STATUS_NO_MEMORY => Status::NoMemory,
            sys::RONDO_STATUS_NO_DEVICE_MEMORY => Status::NoDeviceMemory,
            sys::RONDO_STATUS_UNAVAILABLE => Status::Unavailable,
            sys::RONDO_STATUS_DRIVER => Status::Driver,
            sys::RONDO_STATUS_LOST => Status::Lost,
            sys::RONDO_STATUS_BAD_DATA => Status::BadData,
            sys::RONDO_STATUS_CANCELLED => Status::Cancelled,
            sys::RONDO_STATUS_MISMATCH => Status::Mismatch,
            _ => Status::Internal,
        }
    }
}

/// What broke a capture (`rondo/report.h`).
#[derive(Clone, Debug)]
pub struct CaptureReport {
    /// "SYNCHRONIZE" and so on.
    pub cause: String,
    /// The same in words.
    pub what: String,
    /// The call that broke it.
    pub call: String,
    /// What to do about it.
    pub cure: String,
    /// The whole report, as lines of text.
    pub text: String,
}

/// A call that failed.
#[derive(Clone, Debug)]
pub struct Error {
    /// The kind of it.
    pub status: Status,
    /// What is wrong and what to do, one line.
    pub message: String,
    /// The call that failed.
    pub call: String,
    /// Of a capture that yields no graph: what broke it.
    pub report: Option<Box<CaptureReport>>,
}

impl Error {
    /// A failure of this crate's own.
    pub(crate) fn invalid(message: &str) -> Error {
        Error { status: Status::Invalid, message: message.into(), call: String::new(), report: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.report {
            Some(report) => f.write_str(report.text.trim_end()),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

/// The error of a status that a call on this thread has just returned.
pub(crate) fn check(status: sys::rondo_status) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the record is this thread's, and stays until its next call.
    let (code, message, call) = unsafe {
        let record = &*sys::rondo_error_get_last();
        (record.status, text(record.message.as_ptr()), text(record.call.as_ptr()))
    };
    let is_told = code == status;
    Err(Error {
        status: Status::from_code(status),
        message: if is_told { message } else { String::new() },
        call: if is_told { call } else { String::new() },
        report: None,
    })
}

/// The report on the graph's latest capture; None where it did not fail.
///
/// # Safety
/// `graph` is a graph.
pub(crate) unsafe fn read_report(graph: *mut sys::rondo_graph) -> Option<Box<CaptureReport>> {
    let mut raw = sys::rondo_capture_report {
        struct_size: std::mem::size_of::<sys::rondo_capture_report>(),
        ..Default::default()
    };
    // SAFETY: `raw` has its size; texts in it are static or its own.
    unsafe {
        if sys::rondo_graph_get_report(graph, &mut raw) != 0 || raw.status == 0 {
            return None;
        }
        let mut buffer = [0u8; 4096];
        sys::rondo_capture_report_format(&raw, buffer.as_mut_ptr().cast(), buffer.len() - 1);
        Some(Box::new(CaptureReport {
            cause: text(sys::rondo_capture_cause_get_name(raw.cause)),
            what: text(raw.what),
            call: text(raw.call.as_ptr()),
            cure: text(raw.advice),
            text: text(buffer.as_ptr().cast()),
        }))
    }
}
