// The C API, written by bindgen 0.60.1 (rust/generate_bindings): do not edit.
// SPDX-License-Identifier: Apache-2.0
pub const RONDO_VERSION_MAJOR: u32 = 0;
pub const RONDO_VERSION_MINOR: u32 = 1;
pub const RONDO_VERSION_PATCH: u32 = 0;
pub const RONDO_VERSION_NUMBER: u32 = 100;
pub type __uint8_t = ::std::os::raw::c_uchar;
pub type __uint16_t = ::std::os::raw::c_ushort;
pub type __int32_t = ::std::os::raw::c_int;
pub type __uint32_t = ::std::os::raw::c_uint;
pub type __int64_t = ::std::os::raw::c_long;
pub type __uint64_t = ::std::os::raw::c_ulong;
extern "C" {
    pub fn rondo_version_get_text() -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn rondo_version_get_number() -> i32;
}
pub type rondo_status = i32;
pub const RONDO_STATUS_OK: _bindgen_ty_1 = 0;
pub const RONDO_STATUS_INVALID: _bindgen_ty_1 = 1;
pub const RONDO_STATUS_STATE: _bindgen_ty_1 = 2;
pub const RONDO_STATUS_UNSUPPORTED: _bindgen_ty_1 = 3;
pub const RONDO_STATUS_NO_MEMORY: _bindgen_ty_1 = 4;
pub const RONDO_STATUS_NO_DEVICE_MEMORY: _bindgen_ty_1 = 5;
pub const RONDO_STATUS_UNAVAILABLE: _bindgen_ty_1 = 6;
pub const RONDO_STATUS_DRIVER: _bindgen_ty_1 = 7;
pub const RONDO_STATUS_LOST: _bindgen_ty_1 = 8;
pub const RONDO_STATUS_BAD_DATA: _bindgen_ty_1 = 9;
pub const RONDO_STATUS_INTERNAL: _bindgen_ty_1 = 10;
pub const RONDO_STATUS_CANCELLED: _bindgen_ty_1 = 11;
pub const RONDO_STATUS_MISMATCH: _bindgen_ty_1 = 12;
pub type _bindgen_ty_1 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_error {
    pub struct_size: usize,
    pub status: rondo_status,
    pub driver_code: i32,
    pub driver_name: [::std::os::raw::c_char; 48usize],
    pub op: [::std::os::raw::c_char; 64usize],
    pub call: [::std::os::raw::c_char; 48usize],
    pub message: [::std::os::raw::c_char; 480usize],
    pub file: *const ::std::os::raw::c_char,
    pub line: i32,
    pub sequence: u64,
}
impl Default for rondo_error {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_error_get_last() -> *const rondo_error;
}
extern "C" {
    pub fn rondo_status_get_name(status: rondo_status) -> *const ::std::os::raw::c_char;
}
pub type rondo_log_level = i32;
pub const RONDO_LOG_ERROR: _bindgen_ty_2 = 0;
pub const RONDO_LOG_WARNING: _bindgen_ty_2 = 1;
pub const RONDO_LOG_INFO: _bindgen_ty_2 = 2;
pub const RONDO_LOG_DEBUG: _bindgen_ty_2 = 3;
pub type _bindgen_ty_2 = ::std::os::raw::c_uint;
pub type rondo_log_function = ::std::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::std::os::raw::c_void,
        level: rondo_log_level,
        message: *const ::std::os::raw::c_char,
    ),
>;
extern "C" {
    pub fn rondo_log_set_sink(function: rondo_log_function, user_data: *mut ::std::os::raw::c_void);
}
extern "C" {
    pub fn rondo_log_set_level(level: rondo_log_level);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_device {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_stream {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_event {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_device_info {
    pub struct_size: usize,
    pub name: [::std::os::raw::c_char; 32usize],
    pub description: [::std::os::raw::c_char; 128usize],
    pub reason: [::std::os::raw::c_char; 480usize],
    pub available: bool,
    pub memory_bytes: u64,
    pub free_bytes: u64,
    pub compute_units: i32,
    pub arch_major: i32,
    pub arch_minor: i32,
    pub driver_version: i32,
}
impl Default for rondo_device_info {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_device_list(
        infos: *mut rondo_device_info,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_device_open(
        name: *const ::std::os::raw::c_char,
        out_device: *mut *mut rondo_device,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_device_retain(device: *mut rondo_device);
}
extern "C" {
    pub fn rondo_device_release(device: *mut rondo_device);
}
extern "C" {
    pub fn rondo_device_get_info(
        device: *mut rondo_device,
        out_info: *mut rondo_device_info,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_device_get_name(device: *const rondo_device) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn rondo_device_is_host(device: *const rondo_device) -> bool;
}
extern "C" {
    pub fn rondo_device_synchronize(device: *mut rondo_device) -> rondo_status;
}
pub type rondo_feature = i32;
pub const RONDO_FEATURE_IF: _bindgen_ty_3 = 0;
pub const RONDO_FEATURE_IF_ELSE: _bindgen_ty_3 = 1;
pub const RONDO_FEATURE_SWITCH: _bindgen_ty_3 = 2;
pub const RONDO_FEATURE_WHILE: _bindgen_ty_3 = 3;
pub const RONDO_FEATURE_HOST_IN_BODY: _bindgen_ty_3 = 4;
pub type _bindgen_ty_3 = ::std::os::raw::c_uint;
extern "C" {
    pub fn rondo_device_supports(device: *mut rondo_device, feature: rondo_feature)
        -> rondo_status;
}
pub type rondo_memory_kind = i32;
pub const RONDO_MEMORY_DEVICE: _bindgen_ty_4 = 0;
pub const RONDO_MEMORY_PINNED: _bindgen_ty_4 = 1;
pub type _bindgen_ty_4 = ::std::os::raw::c_uint;
extern "C" {
    pub fn rondo_memory_allocate(
        device: *mut rondo_device,
        kind: rondo_memory_kind,
        bytes: usize,
        out_address: *mut *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_memory_free(device: *mut rondo_device, address: *mut ::std::os::raw::c_void);
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_stream_options {
    pub struct_size: usize,
    pub priority: i32,
}
extern "C" {
    pub fn rondo_stream_create(
        device: *mut rondo_device,
        options: *const rondo_stream_options,
        out_stream: *mut *mut rondo_stream,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_stream_wrap(
        device: *mut rondo_device,
        native: *mut ::std::os::raw::c_void,
        out_stream: *mut *mut rondo_stream,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_stream_destroy(stream: *mut rondo_stream);
}
extern "C" {
    pub fn rondo_stream_get_device(stream: *const rondo_stream) -> *mut rondo_device;
}
extern "C" {
    pub fn rondo_stream_get_native(stream: *const rondo_stream) -> *mut ::std::os::raw::c_void;
}
extern "C" {
    pub fn rondo_stream_synchronize(stream: *mut rondo_stream) -> rondo_status;
}
extern "C" {
    pub fn rondo_stream_query(stream: *mut rondo_stream, out_is_idle: *mut bool) -> rondo_status;
}
extern "C" {
    pub fn rondo_stream_wait_event(
        stream: *mut rondo_stream,
        event: *mut rondo_event,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_stream_is_recording(
        stream: *mut rondo_stream,
        out_is_recording: *mut bool,
    ) -> rondo_status;
}
pub const RONDO_EVENT_TIMED: _bindgen_ty_5 = 1;
pub const RONDO_EVENT_EXTERNAL: _bindgen_ty_5 = 2;
pub type _bindgen_ty_5 = ::std::os::raw::c_uint;
extern "C" {
    pub fn rondo_event_create(
        device: *mut rondo_device,
        flags: u32,
        out_event: *mut *mut rondo_event,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_event_destroy(event: *mut rondo_event);
}
extern "C" {
    pub fn rondo_event_record(event: *mut rondo_event, stream: *mut rondo_stream) -> rondo_status;
}
extern "C" {
    pub fn rondo_event_query(event: *mut rondo_event, out_is_complete: *mut bool) -> rondo_status;
}
extern "C" {
    pub fn rondo_event_synchronize(event: *mut rondo_event) -> rondo_status;
}
extern "C" {
    pub fn rondo_event_get_elapsed_ns(
        start: *mut rondo_event,
        end: *mut rondo_event,
        out_ns: *mut i64,
    ) -> rondo_status;
}
pub type rondo_copy_kind = i32;
pub const RONDO_COPY_HOST_TO_DEVICE: _bindgen_ty_6 = 0;
pub const RONDO_COPY_DEVICE_TO_HOST: _bindgen_ty_6 = 1;
pub const RONDO_COPY_DEVICE_TO_DEVICE: _bindgen_ty_6 = 2;
pub type _bindgen_ty_6 = ::std::os::raw::c_uint;
extern "C" {
    pub fn rondo_stream_copy(
        stream: *mut rondo_stream,
        destination: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        kind: rondo_copy_kind,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_stream_fill(
        stream: *mut rondo_stream,
        destination: *mut ::std::os::raw::c_void,
        value: u32,
        element_bytes: u32,
        count: usize,
    ) -> rondo_status;
}
pub type rondo_host_function =
    ::std::option::Option<unsafe extern "C" fn(arguments: *mut ::std::os::raw::c_void)>;
extern "C" {
    pub fn rondo_stream_call_host(
        stream: *mut rondo_stream,
        name: *const ::std::os::raw::c_char,
        function: rondo_host_function,
        arguments: *const ::std::os::raw::c_void,
        argument_bytes: usize,
    ) -> rondo_status;
}
pub const RONDO_LAUNCH_OVERLAP: _bindgen_ty_7 = 1;
pub const RONDO_LAUNCH_ONE_PARAMETER: _bindgen_ty_7 = 2;
pub const RONDO_LAUNCH_COOPERATIVE: _bindgen_ty_7 = 4;
pub type _bindgen_ty_7 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_launch {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub function: *mut ::std::os::raw::c_void,
    pub grid: [u32; 3usize],
    pub block: [u32; 3usize],
    pub shared_bytes: u32,
    pub arguments: *const ::std::os::raw::c_void,
    pub argument_bytes: usize,
    pub flags: u32,
    pub cluster: [u32; 3usize],
    pub priority: i32,
}
impl Default for rondo_launch {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_stream_launch(
        stream: *mut rondo_stream,
        launch: *const rondo_launch,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_graph {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_arena {
    _unused: [u8; 0],
}
pub type rondo_capture_mode = i32;
pub const RONDO_CAPTURE_THREAD_LOCAL: _bindgen_ty_8 = 0;
pub const RONDO_CAPTURE_GLOBAL: _bindgen_ty_8 = 1;
pub const RONDO_CAPTURE_RELAXED: _bindgen_ty_8 = 2;
pub type _bindgen_ty_8 = ::std::os::raw::c_uint;
pub type rondo_pageable_sources = i32;
pub const RONDO_PAGEABLE_REFUSE: _bindgen_ty_9 = 0;
pub const RONDO_PAGEABLE_SNAPSHOT: _bindgen_ty_9 = 1;
pub type _bindgen_ty_9 = ::std::os::raw::c_uint;
pub type rondo_graph_keeps = i32;
pub const RONDO_KEEP_EXECUTABLE: _bindgen_ty_10 = 0;
pub const RONDO_KEEP_TEMPLATE: _bindgen_ty_10 = 1;
pub const RONDO_KEEP_TEMPLATE_ONLY: _bindgen_ty_10 = 2;
pub type _bindgen_ty_10 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_graph_options {
    pub struct_size: usize,
    pub keep: rondo_graph_keeps,
    pub label: *const ::std::os::raw::c_char,
    pub arena: *mut rondo_arena,
    pub pageable_sources: rondo_pageable_sources,
    pub check_addresses: bool,
}
impl Default for rondo_graph_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_graph_create(
        device: *mut rondo_device,
        options: *const rondo_graph_options,
        out_graph: *mut *mut rondo_graph,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_destroy(graph: *mut rondo_graph);
}
extern "C" {
    pub fn rondo_graph_capture_begin(
        graph: *mut rondo_graph,
        stream: *mut rondo_stream,
        mode: rondo_capture_mode,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_capture_end(graph: *mut rondo_graph) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_capture_abort(graph: *mut rondo_graph);
}
pub type rondo_step_function = ::std::option::Option<
    unsafe extern "C" fn(
        stream: *mut rondo_stream,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status,
>;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_step_options {
    pub struct_size: usize,
    pub mode: rondo_capture_mode,
    pub capture_only: bool,
}
pub type rondo_step_outcome = i32;
pub const RONDO_STEP_NOTHING: _bindgen_ty_11 = 0;
pub const RONDO_STEP_CAPTURED: _bindgen_ty_11 = 1;
pub const RONDO_STEP_RAN_EAGERLY: _bindgen_ty_11 = 2;
pub type _bindgen_ty_11 = ::std::os::raw::c_uint;
extern "C" {
    pub fn rondo_graph_capture_step(
        graph: *mut rondo_graph,
        stream: *mut rondo_stream,
        options: *const rondo_step_options,
        step: rondo_step_function,
        user_data: *mut ::std::os::raw::c_void,
        out_outcome: *mut rondo_step_outcome,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_replay(graph: *mut rondo_graph, stream: *mut rondo_stream) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_upload(graph: *mut rondo_graph, stream: *mut rondo_stream) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_reset(graph: *mut rondo_graph) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_graph_stats {
    pub struct_size: usize,
    pub node_count: u64,
    pub kernel_count: u64,
    pub copy_count: u64,
    pub replay_count: u64,
    pub capture_ns: u64,
    pub instantiate_ns: u64,
    pub device_bytes: u64,
    pub device_bytes_is_estimate: bool,
    pub executed_count: u64,
    pub arena_live_bytes: u64,
    pub arena_reserved_bytes: u64,
    pub arena_peak_bytes: u64,
}
extern "C" {
    pub fn rondo_graph_get_stats(
        graph: *const rondo_graph,
        out_stats: *mut rondo_graph_stats,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_instantiate(graph: *mut rondo_graph) -> rondo_status;
}
extern "C" {
    pub fn rondo_stream_add_graph(
        stream: *mut rondo_stream,
        graph: *mut rondo_graph,
    ) -> rondo_status;
}
pub type rondo_capture_cause = i32;
pub const RONDO_CAUSE_NONE: _bindgen_ty_12 = 0;
pub const RONDO_CAUSE_SYNCHRONIZE: _bindgen_ty_12 = 1;
pub const RONDO_CAUSE_ALLOCATION: _bindgen_ty_12 = 2;
pub const RONDO_CAUSE_LEGACY_STREAM: _bindgen_ty_12 = 3;
pub const RONDO_CAUSE_PAGEABLE_COPY: _bindgen_ty_12 = 4;
pub const RONDO_CAUSE_UNJOINED_STREAM: _bindgen_ty_12 = 5;
pub const RONDO_CAUSE_OTHER_THREAD: _bindgen_ty_12 = 6;
pub const RONDO_CAUSE_OTHER_DEVICE: _bindgen_ty_12 = 7;
pub const RONDO_CAUSE_ABORTED: _bindgen_ty_12 = 8;
pub const RONDO_CAUSE_OUT_OF_MEMORY: _bindgen_ty_12 = 9;
pub const RONDO_CAUSE_WORK_REFUSED: _bindgen_ty_12 = 10;
pub const RONDO_CAUSE_STREAM_DESTROYED: _bindgen_ty_12 = 11;
pub const RONDO_CAUSE_INSTANTIATION: _bindgen_ty_12 = 12;
pub const RONDO_CAUSE_MERGE: _bindgen_ty_12 = 13;
pub const RONDO_CAUSE_OUTSIDE_WORK: _bindgen_ty_12 = 14;
pub const RONDO_CAUSE_UNSEEN_CALL: _bindgen_ty_12 = 15;
pub const RONDO_CAUSE_OTHER: _bindgen_ty_12 = 16;
pub type _bindgen_ty_12 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_capture_report {
    pub struct_size: usize,
    pub status: rondo_status,
    pub cause: rondo_capture_cause,
    pub what: *const ::std::os::raw::c_char,
    pub advice: *const ::std::os::raw::c_char,
    pub message: [::std::os::raw::c_char; 480usize],
    pub call: [::std::os::raw::c_char; 48usize],
    pub op: [::std::os::raw::c_char; 64usize],
    pub label: [::std::os::raw::c_char; 128usize],
    pub driver_code: i32,
    pub driver_name: [::std::os::raw::c_char; 48usize],
    pub file: *const ::std::os::raw::c_char,
    pub line: i32,
    pub stream_number: u32,
    pub thread_number: u64,
    pub thread_name: [::std::os::raw::c_char; 16usize],
    pub is_other_thread: bool,
    pub has_last_node: bool,
    pub is_index_exact: bool,
    pub last_node_index: u64,
    pub last_node_name: [::std::os::raw::c_char; 64usize],
    pub last_node_label: [::std::os::raw::c_char; 128usize],
    pub last_node_depth: u32,
}
impl Default for rondo_capture_report {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_graph_get_report(
        graph: *const rondo_graph,
        out_report: *mut rondo_capture_report,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_capture_report_format(
        report: *const rondo_capture_report,
        text: *mut ::std::os::raw::c_char,
        capacity: usize,
    ) -> usize;
}
extern "C" {
    pub fn rondo_capture_cause_get_name(
        cause: rondo_capture_cause,
    ) -> *const ::std::os::raw::c_char;
}
pub type rondo_dtype = i32;
pub const RONDO_DTYPE_NONE: _bindgen_ty_13 = 0;
pub const RONDO_DTYPE_F32: _bindgen_ty_13 = 1;
pub const RONDO_DTYPE_F64: _bindgen_ty_13 = 2;
pub const RONDO_DTYPE_F16: _bindgen_ty_13 = 3;
pub const RONDO_DTYPE_BF16: _bindgen_ty_13 = 4;
pub const RONDO_DTYPE_I8: _bindgen_ty_13 = 5;
pub const RONDO_DTYPE_I16: _bindgen_ty_13 = 6;
pub const RONDO_DTYPE_I32: _bindgen_ty_13 = 7;
pub const RONDO_DTYPE_I64: _bindgen_ty_13 = 8;
pub const RONDO_DTYPE_U8: _bindgen_ty_13 = 9;
pub const RONDO_DTYPE_U16: _bindgen_ty_13 = 10;
pub const RONDO_DTYPE_U32: _bindgen_ty_13 = 11;
pub const RONDO_DTYPE_U64: _bindgen_ty_13 = 12;
pub const RONDO_DTYPE_BOOL: _bindgen_ty_13 = 13;
pub const RONDO_DTYPE_STRING: _bindgen_ty_13 = 14;
pub const RONDO_DTYPE_SEQUENCE: _bindgen_ty_13 = 15;
pub const RONDO_DTYPE_OPTIONAL: _bindgen_ty_13 = 16;
pub const RONDO_DTYPE_C64: _bindgen_ty_13 = 17;
pub const RONDO_DTYPE_C128: _bindgen_ty_13 = 18;
pub const RONDO_DTYPE_I4: _bindgen_ty_13 = 19;
pub const RONDO_DTYPE_U4: _bindgen_ty_13 = 20;
pub const RONDO_DTYPE_I2: _bindgen_ty_13 = 21;
pub const RONDO_DTYPE_U2: _bindgen_ty_13 = 22;
pub const RONDO_DTYPE_F4E2M1: _bindgen_ty_13 = 23;
pub const RONDO_DTYPE_F8E4M3FN: _bindgen_ty_13 = 24;
pub const RONDO_DTYPE_F8E4M3FNUZ: _bindgen_ty_13 = 25;
pub const RONDO_DTYPE_F8E5M2: _bindgen_ty_13 = 26;
pub const RONDO_DTYPE_F8E5M2FNUZ: _bindgen_ty_13 = 27;
pub const RONDO_DTYPE_F8E8M0: _bindgen_ty_13 = 28;
pub const RONDO_DTYPE_COUNT: _bindgen_ty_13 = 29;
pub type _bindgen_ty_13 = ::std::os::raw::c_uint;
pub const RONDO_RANK_MAX: _bindgen_ty_14 = 8;
pub type _bindgen_ty_14 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_shape {
    pub rank: i32,
    pub extent: [i64; 8usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_string {
    pub data: *const ::std::os::raw::c_char,
    pub size: usize,
}
impl Default for rondo_string {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_storage {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_tensor {
    pub dtype: rondo_dtype,
    pub shape: rondo_shape,
    pub data: *mut ::std::os::raw::c_void,
    pub storage: *mut rondo_storage,
    pub device: *mut rondo_device,
}
impl Default for rondo_tensor {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_dtype_get_bytes(dtype: rondo_dtype) -> usize;
}
extern "C" {
    pub fn rondo_dtype_get_name(dtype: rondo_dtype) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn rondo_shape_get_count(shape: *const rondo_shape) -> i64;
}
extern "C" {
    pub fn rondo_shape_is_equal(a: *const rondo_shape, b: *const rondo_shape) -> bool;
}
extern "C" {
    pub fn rondo_shape_format(
        shape: *const rondo_shape,
        buffer: *mut ::std::os::raw::c_char,
        buffer_bytes: usize,
    ) -> *mut ::std::os::raw::c_char;
}
extern "C" {
    pub fn rondo_tensor_init(
        dtype: rondo_dtype,
        shape: *const rondo_shape,
        out_tensor: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_init_device(
        device: *mut rondo_device,
        dtype: rondo_dtype,
        shape: *const rondo_shape,
        out_tensor: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_is_on_host(tensor: *const rondo_tensor) -> bool;
}
extern "C" {
    pub fn rondo_tensor_copy(
        stream: *mut rondo_stream,
        source: *const rondo_tensor,
        destination: *const rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_init_strings(
        shape: *const rondo_shape,
        strings: *const rondo_string,
        out_tensor: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_init_sequence(
        items: *const rondo_tensor,
        count: usize,
        out_tensor: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_init_optional(
        item: *const rondo_tensor,
        out_tensor: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_get_item(tensor: *const rondo_tensor, index: usize) -> *const rondo_tensor;
}
extern "C" {
    pub fn rondo_tensor_share(tensor: *const rondo_tensor, out_tensor: *mut rondo_tensor);
}
extern "C" {
    pub fn rondo_tensor_deinit(tensor: *mut rondo_tensor);
}
extern "C" {
    pub fn rondo_tensor_get_bytes(tensor: *const rondo_tensor) -> usize;
}
extern "C" {
    pub fn rondo_f16_from_float(value: f32) -> u16;
}
extern "C" {
    pub fn rondo_f16_to_float(bits: u16) -> f32;
}
extern "C" {
    pub fn rondo_narrow_from_float(dtype: rondo_dtype, value: f32) -> u8;
}
extern "C" {
    pub fn rondo_narrow_to_float(dtype: rondo_dtype, bits: u8) -> f32;
}
pub type rondo_text_format = i32;
pub const RONDO_TEXT_PLAIN: _bindgen_ty_15 = 0;
pub const RONDO_TEXT_JSON: _bindgen_ty_15 = 1;
pub const RONDO_TEXT_DOT: _bindgen_ty_15 = 2;
pub const RONDO_TEXT_SVG: _bindgen_ty_15 = 3;
pub type _bindgen_ty_15 = ::std::os::raw::c_uint;
pub type rondo_write_function = ::std::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::std::os::raw::c_void,
        text: *const ::std::os::raw::c_char,
        bytes: usize,
    ) -> bool,
>;
extern "C" {
    pub fn rondo_text_escape(
        text: *const ::std::os::raw::c_char,
        buffer: *mut ::std::os::raw::c_char,
        buffer_bytes: usize,
    ) -> usize;
}
pub type rondo_node_kind = i32;
pub const RONDO_NODE_KERNEL: _bindgen_ty_16 = 0;
pub const RONDO_NODE_HOST: _bindgen_ty_16 = 1;
pub const RONDO_NODE_COPY: _bindgen_ty_16 = 2;
pub const RONDO_NODE_FILL: _bindgen_ty_16 = 3;
pub const RONDO_NODE_EMPTY: _bindgen_ty_16 = 4;
pub const RONDO_NODE_EVENT_WAIT: _bindgen_ty_16 = 5;
pub const RONDO_NODE_EVENT_RECORD: _bindgen_ty_16 = 6;
pub const RONDO_NODE_CHILD: _bindgen_ty_16 = 7;
pub const RONDO_NODE_CONDITIONAL: _bindgen_ty_16 = 8;
pub const RONDO_NODE_OTHER: _bindgen_ty_16 = 9;
pub type _bindgen_ty_16 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_graph_node {
    pub struct_size: usize,
    pub kind: rondo_node_kind,
    pub name: *const ::std::os::raw::c_char,
    pub label: *const ::std::os::raw::c_char,
    pub grid: [u32; 3usize],
    pub block: [u32; 3usize],
    pub shared_bytes: u32,
    pub copy_kind: rondo_copy_kind,
    pub destination: *const ::std::os::raw::c_void,
    pub source: *const ::std::os::raw::c_void,
    pub byte_count: u64,
    pub fill_value: u32,
    pub element_bytes: u32,
    pub width: u64,
    pub height: u64,
    pub depth: u64,
    pub pitch_bytes: u64,
    pub event: *const ::std::os::raw::c_void,
    pub predicate: *const ::std::os::raw::c_void,
    pub branch_count: u32,
    pub inner_count: u64,
    pub native: *const ::std::os::raw::c_void,
}
impl Default for rondo_graph_node {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_graph_edge {
    pub from: u64,
    pub to: u64,
    pub is_programmatic: bool,
}
extern "C" {
    pub fn rondo_graph_get_node_count(
        graph: *mut rondo_graph,
        out_count: *mut usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_get_node(
        graph: *mut rondo_graph,
        index: usize,
        out_node: *mut rondo_graph_node,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_list_edges(
        graph: *mut rondo_graph,
        edges: *mut rondo_graph_edge,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_dump(
        graph: *mut rondo_graph,
        format: rondo_text_format,
        write: rondo_write_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_measure_device_bytes(
        graph: *mut rondo_graph,
        out_bytes: *mut u64,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_get_native(
        graph: *mut rondo_graph,
        out_template: *mut *mut ::std::os::raw::c_void,
        out_executable: *mut *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_watchdog {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_stall {
    pub struct_size: usize,
    pub device: *const ::std::os::raw::c_char,
    pub driver_version: i32,
    pub graph: *const ::std::os::raw::c_char,
    pub last_label: *const ::std::os::raw::c_char,
    pub mark: u64,
    pub mark_count: u64,
    pub stream: u32,
    pub waited_ns: u64,
    pub text: *const ::std::os::raw::c_char,
}
impl Default for rondo_stall {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type rondo_stall_function = ::std::option::Option<
    unsafe extern "C" fn(user_data: *mut ::std::os::raw::c_void, stall: *const rondo_stall),
>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_watchdog_options {
    pub struct_size: usize,
    pub timeout_ns: u64,
    pub function: rondo_stall_function,
    pub user_data: *mut ::std::os::raw::c_void,
}
impl Default for rondo_watchdog_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_watchdog_create(
        device: *mut rondo_device,
        options: *const rondo_watchdog_options,
        out_watchdog: *mut *mut rondo_watchdog,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_watchdog_destroy(watchdog: *mut rondo_watchdog);
}
extern "C" {
    pub fn rondo_watchdog_mark(
        watchdog: *mut rondo_watchdog,
        graph: *mut rondo_graph,
        stream: *mut rondo_stream,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_watchdog_replay(
        watchdog: *mut rondo_watchdog,
        graph: *mut rondo_graph,
        stream: *mut rondo_stream,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_watchdog_get_stall_count(watchdog: *mut rondo_watchdog) -> u64;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_difference {
    pub struct_size: usize,
    pub place: [::std::os::raw::c_char; 40usize],
    pub label: [::std::os::raw::c_char; 128usize],
    pub field: [::std::os::raw::c_char; 40usize],
    pub before: [::std::os::raw::c_char; 72usize],
    pub after: [::std::os::raw::c_char; 72usize],
}
impl Default for rondo_difference {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type rondo_update_result = i32;
pub const RONDO_UPDATE_PATCHED: _bindgen_ty_17 = 0;
pub const RONDO_UPDATE_INSTANTIATED: _bindgen_ty_17 = 1;
pub type _bindgen_ty_17 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_update_report {
    pub struct_size: usize,
    pub result: rondo_update_result,
    pub has_difference: bool,
    pub difference: rondo_difference,
}
impl Default for rondo_update_report {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_graph_update(
        graph: *mut rondo_graph,
        source: *mut rondo_graph,
        out_report: *mut rondo_update_report,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_recapture(
        graph: *mut rondo_graph,
        stream: *mut rondo_stream,
        options: *const rondo_step_options,
        step: rondo_step_function,
        user_data: *mut ::std::os::raw::c_void,
        out_report: *mut rondo_update_report,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_compare(
        before: *mut rondo_graph,
        after: *mut rondo_graph,
        differences: *mut rondo_difference,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_difference_format(
        difference: *const rondo_difference,
        text: *mut ::std::os::raw::c_char,
        capacity: usize,
    ) -> usize;
}
pub type rondo_symbol_kind = i32;
pub const RONDO_SYMBOL_FUNCTION: _bindgen_ty_18 = 0;
pub const RONDO_SYMBOL_MEMORY: _bindgen_ty_18 = 1;
pub const RONDO_SYMBOL_EVENT: _bindgen_ty_18 = 2;
pub const RONDO_SYMBOL_HOST_FUNCTION: _bindgen_ty_18 = 3;
pub type _bindgen_ty_18 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_graph_symbol {
    pub name: *const ::std::os::raw::c_char,
    pub address: *mut ::std::os::raw::c_void,
    pub byte_count: usize,
    pub kind: rondo_symbol_kind,
}
impl Default for rondo_graph_symbol {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_graph_save(
        graph: *mut rondo_graph,
        path: *const ::std::os::raw::c_char,
        symbols: *const rondo_graph_symbol,
        symbol_count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_load(
        graph: *mut rondo_graph,
        path: *const ::std::os::raw::c_char,
        symbols: *const rondo_graph_symbol,
        symbol_count: usize,
    ) -> rondo_status;
}
pub type rondo_scope_kind = i32;
pub const RONDO_SCOPE_IF: _bindgen_ty_19 = 0;
pub const RONDO_SCOPE_IF_ELSE: _bindgen_ty_19 = 1;
pub const RONDO_SCOPE_SWITCH: _bindgen_ty_19 = 2;
pub const RONDO_SCOPE_WHILE: _bindgen_ty_19 = 3;
pub type _bindgen_ty_19 = ::std::os::raw::c_uint;
pub type rondo_body_function = ::std::option::Option<
    unsafe extern "C" fn(
        stream: *mut rondo_stream,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status,
>;
extern "C" {
    pub fn rondo_control_if(
        stream: *mut rondo_stream,
        predicate: *const ::std::os::raw::c_void,
        then_body: rondo_body_function,
        else_body: rondo_body_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_control_switch(
        stream: *mut rondo_stream,
        index: *const ::std::os::raw::c_void,
        bodies: *const rondo_body_function,
        body_count: u32,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_control_while(
        stream: *mut rondo_stream,
        predicate: *const ::std::os::raw::c_void,
        body: rondo_body_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_node {
    pub recording: u64,
    pub number: u64,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_work {
    pub struct_size: usize,
    pub kind: rondo_node_kind,
    pub launch: *const rondo_launch,
    pub name: *const ::std::os::raw::c_char,
    pub function: rondo_host_function,
    pub arguments: *const ::std::os::raw::c_void,
    pub argument_bytes: usize,
    pub copy_kind: rondo_copy_kind,
    pub source: *const ::std::os::raw::c_void,
    pub destination: *mut ::std::os::raw::c_void,
    pub byte_count: usize,
    pub fill_value: u32,
    pub element_bytes: u32,
    pub element_count: usize,
    pub graph: *mut rondo_graph,
    pub event: *mut rondo_event,
    pub scope: rondo_scope_kind,
    pub predicate: *const ::std::os::raw::c_void,
    pub bodies: *const rondo_body_function,
    pub body_count: u32,
    pub user_data: *mut ::std::os::raw::c_void,
}
impl Default for rondo_work {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_stream_get_last_node(
        stream: *mut rondo_stream,
        out_node: *mut rondo_node,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_stream_add_node(
        stream: *mut rondo_stream,
        work: *const rondo_work,
        out_node: *mut rondo_node,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_get_node_index(
        graph: *mut rondo_graph,
        node: rondo_node,
        out_index: *mut usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_get_node_handle(
        graph: *mut rondo_graph,
        index: usize,
        out_node: *mut rondo_node,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_find_nodes(
        graph: *mut rondo_graph,
        label: *const ::std::os::raw::c_char,
        nodes: *mut rondo_node,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_node_state {
    pub struct_size: usize,
    pub kind: rondo_node_kind,
    pub name: *const ::std::os::raw::c_char,
    pub is_enabled: bool,
    pub can_be_patched: bool,
    pub function: *const ::std::os::raw::c_void,
    pub grid: [u32; 3usize],
    pub block: [u32; 3usize],
    pub shared_bytes: u32,
    pub arguments: *const ::std::os::raw::c_void,
    pub argument_bytes: usize,
    pub copy_kind: rondo_copy_kind,
    pub source: *const ::std::os::raw::c_void,
    pub destination: *const ::std::os::raw::c_void,
    pub byte_count: u64,
    pub fill_value: u32,
    pub element_bytes: u32,
    pub cluster: [u32; 3usize],
    pub is_cooperative: bool,
    pub priority: i32,
    pub event: *const ::std::os::raw::c_void,
    pub predicate: *const ::std::os::raw::c_void,
}
impl Default for rondo_node_state {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_graph_read_node(
        graph: *mut rondo_graph,
        node: rondo_node,
        out_state: *mut rondo_node_state,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_build_begin(graph: *mut rondo_graph) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_add_node(
        graph: *mut rondo_graph,
        after: *const rondo_node,
        after_count: usize,
        work: *const rondo_work,
        out_node: *mut rondo_node,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_add_step(
        graph: *mut rondo_graph,
        after: *const rondo_node,
        after_count: usize,
        step: rondo_step_function,
        user_data: *mut ::std::os::raw::c_void,
        nodes: *mut rondo_node,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_clone(
        graph: *mut rondo_graph,
        label: *const ::std::os::raw::c_char,
        out_clone: *mut *mut rondo_graph,
    ) -> rondo_status;
}
pub type rondo_toggle = i32;
pub const RONDO_TOGGLE_KEEP: _bindgen_ty_20 = 0;
pub const RONDO_TOGGLE_ENABLE: _bindgen_ty_20 = 1;
pub const RONDO_TOGGLE_DISABLE: _bindgen_ty_20 = 2;
pub type _bindgen_ty_20 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_patch {
    pub node: rondo_node,
    pub work: *const rondo_work,
    pub toggle: rondo_toggle,
}
impl Default for rondo_patch {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_graph_patch(
        graph: *mut rondo_graph,
        patches: *const rondo_patch,
        count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_patch_node(
        graph: *mut rondo_graph,
        node: rondo_node,
        work: *const rondo_work,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_stepper {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_stepper_options {
    pub struct_size: usize,
    pub eager_steps: u32,
    pub records_at_once: bool,
    pub mode: rondo_capture_mode,
    pub label: *const ::std::os::raw::c_char,
    pub measures: bool,
}
impl Default for rondo_stepper_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type rondo_stepper_mode = i32;
pub const RONDO_STEPPER_EAGER: _bindgen_ty_21 = 0;
pub const RONDO_STEPPER_RECORDS: _bindgen_ty_21 = 1;
pub const RONDO_STEPPER_PATCHES: _bindgen_ty_21 = 2;
pub type _bindgen_ty_21 = ::std::os::raw::c_uint;
extern "C" {
    pub fn rondo_stepper_create(
        device: *mut rondo_device,
        options: *const rondo_stepper_options,
        out_stepper: *mut *mut rondo_stepper,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_stepper_destroy(stepper: *mut rondo_stepper);
}
extern "C" {
    pub fn rondo_stepper_begin(
        stepper: *mut rondo_stepper,
        stream: *mut rondo_stream,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_stepper_put(stepper: *mut rondo_stepper, work: *const rondo_work) -> rondo_status;
}
extern "C" {
    pub fn rondo_stepper_skip(stepper: *mut rondo_stepper, work: *const rondo_work)
        -> rondo_status;
}
extern "C" {
    pub fn rondo_stepper_end(stepper: *mut rondo_stepper) -> rondo_status;
}
extern "C" {
    pub fn rondo_stepper_reset(stepper: *mut rondo_stepper) -> rondo_status;
}
extern "C" {
    pub fn rondo_stepper_get_mode(stepper: *const rondo_stepper) -> rondo_stepper_mode;
}
extern "C" {
    pub fn rondo_stepper_describe(
        stepper: *const rondo_stepper,
        format: rondo_text_format,
        write: rondo_write_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_stepper_get_graph(stepper: *const rondo_stepper) -> *mut rondo_graph;
}
extern "C" {
    pub fn rondo_label_push(
        stream: *mut rondo_stream,
        text: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_label_pop(stream: *mut rondo_stream) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_profile {
    _unused: [u8; 0],
}
pub type rondo_profile_source = i32;
pub const RONDO_PROFILE_SOURCE_AUTO: _bindgen_ty_22 = 0;
pub const RONDO_PROFILE_SOURCE_CUPTI: _bindgen_ty_22 = 1;
pub const RONDO_PROFILE_SOURCE_EVENTS: _bindgen_ty_22 = 2;
pub const RONDO_PROFILE_SOURCE_NONE: _bindgen_ty_22 = 3;
pub type _bindgen_ty_22 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_profile_options {
    pub struct_size: usize,
    pub source: rondo_profile_source,
    pub record_limit: u64,
}
extern "C" {
    pub fn rondo_profile_create(
        options: *const rondo_profile_options,
        out_profile: *mut *mut rondo_profile,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_profile_destroy(profile: *mut rondo_profile);
}
extern "C" {
    pub fn rondo_profile_start(profile: *mut rondo_profile) -> rondo_status;
}
extern "C" {
    pub fn rondo_profile_stop(profile: *mut rondo_profile) -> rondo_status;
}
extern "C" {
    pub fn rondo_profile_begin(name: *const ::std::os::raw::c_char) -> rondo_status;
}
extern "C" {
    pub fn rondo_profile_end() -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_profile_summary {
    pub struct_size: usize,
    pub total_ns: u64,
    pub computation_ns: u64,
    pub framework_ns: u64,
    pub device_ns: u64,
    pub async_calls: u64,
    pub async_ns: u64,
    pub async_bytes: u64,
    pub sync_calls: u64,
    pub sync_ns: u64,
    pub sync_bytes: u64,
    pub thread_count: u64,
    pub span_count: u64,
    pub work_count: u64,
    pub dropped_count: u64,
    pub source: *const ::std::os::raw::c_char,
}
impl Default for rondo_profile_summary {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_profile_get_summary(
        profile: *mut rondo_profile,
        out_summary: *mut rondo_profile_summary,
    ) -> rondo_status;
}
pub type rondo_profile_key = i32;
pub const RONDO_PROFILE_BY_TOTAL: _bindgen_ty_23 = 0;
pub const RONDO_PROFILE_BY_CALLS: _bindgen_ty_23 = 1;
pub const RONDO_PROFILE_BY_MIN: _bindgen_ty_23 = 2;
pub const RONDO_PROFILE_BY_MAX: _bindgen_ty_23 = 3;
pub const RONDO_PROFILE_BY_AVERAGE: _bindgen_ty_23 = 4;
pub const RONDO_PROFILE_BY_GPU: _bindgen_ty_23 = 5;
pub type _bindgen_ty_23 = ::std::os::raw::c_uint;
pub type rondo_profile_category = i32;
pub const RONDO_PROFILE_USER: _bindgen_ty_24 = 0;
pub const RONDO_PROFILE_RUN: _bindgen_ty_24 = 1;
pub const RONDO_PROFILE_PLAN: _bindgen_ty_24 = 2;
pub const RONDO_PROFILE_TUNE: _bindgen_ty_24 = 3;
pub const RONDO_PROFILE_CAPTURE: _bindgen_ty_24 = 4;
pub const RONDO_PROFILE_INSTANTIATE: _bindgen_ty_24 = 5;
pub const RONDO_PROFILE_PATCH: _bindgen_ty_24 = 6;
pub const RONDO_PROFILE_REPLAY: _bindgen_ty_24 = 7;
pub const RONDO_PROFILE_OP: _bindgen_ty_24 = 8;
pub const RONDO_PROFILE_COMPUTE: _bindgen_ty_24 = 9;
pub const RONDO_PROFILE_COPY: _bindgen_ty_24 = 10;
pub const RONDO_PROFILE_WAIT: _bindgen_ty_24 = 11;
pub const RONDO_PROFILE_ALLOCATE: _bindgen_ty_24 = 12;
pub type _bindgen_ty_24 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_profile_row {
    pub struct_size: usize,
    pub parent: u64,
    pub depth: u32,
    pub thread: u32,
    pub category: rondo_profile_category,
    pub is_device_work: bool,
    pub name: *const ::std::os::raw::c_char,
    pub detail: *const ::std::os::raw::c_char,
    pub calls: u64,
    pub total_ns: u64,
    pub cpu_ns: u64,
    pub gpu_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub bytes: u64,
}
impl Default for rondo_profile_row {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_profile_get_rows(
        profile: *mut rondo_profile,
        key: rondo_profile_key,
        per_thread: bool,
        rows: *mut rondo_profile_row,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
pub type rondo_profile_format = i32;
pub const RONDO_PROFILE_PLAIN: _bindgen_ty_25 = 0;
pub const RONDO_PROFILE_JSON: _bindgen_ty_25 = 1;
pub const RONDO_PROFILE_TRACE: _bindgen_ty_25 = 2;
pub const RONDO_PROFILE_HTML: _bindgen_ty_25 = 3;
pub type _bindgen_ty_25 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_profile_write_options {
    pub struct_size: usize,
    pub format: rondo_profile_format,
    pub key: rondo_profile_key,
    pub per_thread: bool,
    pub title: *const ::std::os::raw::c_char,
    pub event: *const ::std::os::raw::c_char,
    pub picture: *const ::std::os::raw::c_char,
    pub row_limit: usize,
}
impl Default for rondo_profile_write_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_profile_write(
        profile: *mut rondo_profile,
        options: *const rondo_profile_write_options,
        write: rondo_write_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_log_record {
    pub struct_size: usize,
    pub level: rondo_log_level,
    pub message: *const ::std::os::raw::c_char,
    pub room: *const ::std::os::raw::c_char,
    pub file: *const ::std::os::raw::c_char,
    pub line: i32,
    pub thread: u64,
    pub time_ns: u64,
}
impl Default for rondo_log_record {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type rondo_log_record_function = ::std::option::Option<
    unsafe extern "C" fn(user_data: *mut ::std::os::raw::c_void, record: *const rondo_log_record),
>;
extern "C" {
    pub fn rondo_log_set_record_sink(
        function: rondo_log_record_function,
        user_data: *mut ::std::os::raw::c_void,
    );
}
extern "C" {
    pub fn rondo_log_set_levels(levels: *const ::std::os::raw::c_char) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_pool {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_pool_options {
    pub struct_size: usize,
    pub kind: rondo_memory_kind,
    pub limit_bytes: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_pool_stats {
    pub struct_size: usize,
    pub live_bytes: u64,
    pub live_count: u64,
    pub pending_bytes: u64,
    pub reserved_bytes: u64,
    pub live_peak_bytes: u64,
    pub reserved_peak_bytes: u64,
    pub allocation_count: u64,
    pub driver_call_count: u64,
}
extern "C" {
    pub fn rondo_pool_create(
        device: *mut rondo_device,
        options: *const rondo_pool_options,
        out_pool: *mut *mut rondo_pool,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_pool_retain(pool: *mut rondo_pool);
}
extern "C" {
    pub fn rondo_pool_release(pool: *mut rondo_pool);
}
extern "C" {
    pub fn rondo_pool_allocate(
        pool: *mut rondo_pool,
        stream: *mut rondo_stream,
        bytes: usize,
        out_address: *mut *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_pool_free(
        pool: *mut rondo_pool,
        address: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_pool_use(
        pool: *mut rondo_pool,
        stream: *mut rondo_stream,
        address: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_pool_trim(
        pool: *mut rondo_pool,
        keep_bytes: u64,
        out_released: *mut u64,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_pool_get_stats(
        pool: *mut rondo_pool,
        out_stats: *mut rondo_pool_stats,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_arena_options {
    pub struct_size: usize,
    pub allows_any_order: bool,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_arena_stats {
    pub struct_size: usize,
    pub live_bytes: u64,
    pub live_count: u64,
    pub reserved_bytes: u64,
    pub live_peak_bytes: u64,
    pub reserved_peak_bytes: u64,
    pub graph_count: u64,
}
extern "C" {
    pub fn rondo_arena_create(
        device: *mut rondo_device,
        options: *const rondo_arena_options,
        out_arena: *mut *mut rondo_arena,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_get_arena(
        graph: *mut rondo_graph,
        out_arena: *mut *mut rondo_arena,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_arena_retain(arena: *mut rondo_arena);
}
extern "C" {
    pub fn rondo_arena_release(arena: *mut rondo_arena);
}
extern "C" {
    pub fn rondo_arena_begin_round(arena: *mut rondo_arena) -> rondo_status;
}
extern "C" {
    pub fn rondo_arena_get_stats(
        arena: *mut rondo_arena,
        out_stats: *mut rondo_arena_stats,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_stream_copy_between(
        stream: *mut rondo_stream,
        to: *mut rondo_device,
        destination: *mut ::std::os::raw::c_void,
        from: *mut rondo_device,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_device_copies_directly(
        to: *mut rondo_device,
        from: *mut rondo_device,
        out_is_direct: *mut bool,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_generator {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_generator_state {
    pub seed: u64,
    pub offset: u64,
}
extern "C" {
    pub fn rondo_generator_create(
        device: *mut rondo_device,
        seed: u64,
        out_generator: *mut *mut rondo_generator,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_generator_retain(generator: *mut rondo_generator);
}
extern "C" {
    pub fn rondo_generator_release(generator: *mut rondo_generator);
}
extern "C" {
    pub fn rondo_generator_set_seed(generator: *mut rondo_generator, seed: u64) -> rondo_status;
}
extern "C" {
    pub fn rondo_generator_set_state(
        generator: *mut rondo_generator,
        state: *const rondo_generator_state,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_generator_get_state(
        generator: *mut rondo_generator,
        out_state: *mut rondo_generator_state,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_random_words(
        generator: *mut rondo_generator,
        stream: *mut rondo_stream,
        out: *mut u32,
        count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_random_uniform(
        generator: *mut rondo_generator,
        stream: *mut rondo_stream,
        dtype: rondo_dtype,
        out: *mut ::std::os::raw::c_void,
        count: usize,
        low: f64,
        high: f64,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_random_normal(
        generator: *mut rondo_generator,
        stream: *mut rondo_stream,
        dtype: rondo_dtype,
        out: *mut ::std::os::raw::c_void,
        count: usize,
        mean: f64,
        deviation: f64,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_random_bernoulli(
        generator: *mut rondo_generator,
        stream: *mut rondo_stream,
        dtype: rondo_dtype,
        out: *mut ::std::os::raw::c_void,
        count: usize,
        probability: f64,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_random_bernoulli_each(
        generator: *mut rondo_generator,
        stream: *mut rondo_stream,
        probability_dtype: rondo_dtype,
        probabilities: *const ::std::os::raw::c_void,
        dtype: rondo_dtype,
        out: *mut ::std::os::raw::c_void,
        count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_random_dropout(
        generator: *mut rondo_generator,
        stream: *mut rondo_stream,
        dtype: rondo_dtype,
        x: *const ::std::os::raw::c_void,
        y: *mut ::std::os::raw::c_void,
        mask: *mut u8,
        count: usize,
        ratio: f64,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_random_range {
    pub state: *const u64,
    pub relative: u64,
    pub count: u64,
}
impl Default for rondo_random_range {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_generator_reserve(
        generator: *mut rondo_generator,
        stream: *mut rondo_stream,
        counters: u64,
        out_range: *mut rondo_random_range,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_random_get_device_text() -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn rondo_random_philox(seed: u64, stream_id: u64, index: u64, out_words: *mut u32);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_graph_cache {
    _unused: [u8; 0],
}
pub type rondo_cache_policy = i32;
pub const RONDO_CACHE_MEASURED: _bindgen_ty_26 = 0;
pub const RONDO_CACHE_ALWAYS_CAPTURE: _bindgen_ty_26 = 1;
pub const RONDO_CACHE_NEVER_CAPTURE: _bindgen_ty_26 = 2;
pub type _bindgen_ty_26 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_graph_cache_options {
    pub struct_size: usize,
    pub label: *const ::std::os::raw::c_char,
    pub entry_limit: usize,
    pub byte_limit: u64,
    pub key_limit: usize,
    pub policy: rondo_cache_policy,
    pub mode: rondo_capture_mode,
    pub arena: *mut rondo_arena,
    pub pageable_sources: rondo_pageable_sources,
    pub capture_in_background: bool,
    pub user_data_bytes: usize,
}
impl Default for rondo_graph_cache_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type rondo_cache_outcome = i32;
pub const RONDO_CACHE_NOTHING: _bindgen_ty_27 = 0;
pub const RONDO_CACHE_RAN_EAGERLY: _bindgen_ty_27 = 1;
pub const RONDO_CACHE_REPLAYED: _bindgen_ty_27 = 2;
pub const RONDO_CACHE_CAPTURED_AND_REPLAYED: _bindgen_ty_27 = 3;
pub const RONDO_CACHE_UPDATED: _bindgen_ty_27 = 4;
pub type _bindgen_ty_27 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_graph_cache_stats {
    pub struct_size: usize,
    pub hit_count: u64,
    pub miss_count: u64,
    pub eager_count: u64,
    pub capture_count: u64,
    pub capture_fail_count: u64,
    pub instantiate_count: u64,
    pub update_count: u64,
    pub eviction_count: u64,
    pub give_up_count: u64,
    pub entry_count: u64,
    pub pinned_count: u64,
    pub key_count: u64,
    pub bytes: u64,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_graph_cache_entry {
    pub struct_size: usize,
    pub has_graph: bool,
    pub is_pinned: bool,
    pub run_count: u64,
    pub eager_count: u64,
    pub replay_count: u64,
    pub capture_count: u64,
    pub eager_ns: u64,
    pub replay_ns: u64,
    pub eager_device_ns: u64,
    pub replay_device_ns: u64,
    pub capture_ns: u64,
    pub instantiate_ns: u64,
    pub update_ns: u64,
    pub payback_run_count: u64,
    pub node_count: u64,
    pub bytes: u64,
    pub reason: [::std::os::raw::c_char; 256usize],
}
impl Default for rondo_graph_cache_entry {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_graph_cache_create(
        device: *mut rondo_device,
        options: *const rondo_graph_cache_options,
        out_cache: *mut *mut rondo_graph_cache,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_cache_destroy(cache: *mut rondo_graph_cache);
}
extern "C" {
    pub fn rondo_graph_cache_run(
        cache: *mut rondo_graph_cache,
        key: *const ::std::os::raw::c_void,
        key_bytes: usize,
        stream: *mut rondo_stream,
        step: rondo_step_function,
        user_data: *mut ::std::os::raw::c_void,
        out_outcome: *mut rondo_cache_outcome,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_cache_wait(cache: *mut rondo_graph_cache) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_cache_pin(
        cache: *mut rondo_graph_cache,
        key: *const ::std::os::raw::c_void,
        key_bytes: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_cache_unpin(
        cache: *mut rondo_graph_cache,
        key: *const ::std::os::raw::c_void,
        key_bytes: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_cache_forget(
        cache: *mut rondo_graph_cache,
        key: *const ::std::os::raw::c_void,
        key_bytes: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_cache_clear(cache: *mut rondo_graph_cache) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_cache_get_stats(
        cache: *mut rondo_graph_cache,
        out_stats: *mut rondo_graph_cache_stats,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_graph_cache_get_entry(
        cache: *mut rondo_graph_cache,
        key: *const ::std::os::raw::c_void,
        key_bytes: usize,
        out_entry: *mut rondo_graph_cache_entry,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_cache_key {
    pub bytes: *const ::std::os::raw::c_void,
    pub byte_count: usize,
}
impl Default for rondo_cache_key {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_graph_cache_list_keys(
        cache: *mut rondo_graph_cache,
        keys: *mut rondo_cache_key,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
pub const RONDO_DLPACK_MAJOR: _bindgen_ty_28 = 1;
pub const RONDO_DLPACK_MINOR: _bindgen_ty_28 = 1;
pub type _bindgen_ty_28 = ::std::os::raw::c_uint;
pub const RONDO_DLPACK_CPU: _bindgen_ty_29 = 1;
pub const RONDO_DLPACK_CUDA: _bindgen_ty_29 = 2;
pub const RONDO_DLPACK_CUDA_HOST: _bindgen_ty_29 = 3;
pub const RONDO_DLPACK_CUDA_MANAGED: _bindgen_ty_29 = 13;
pub type _bindgen_ty_29 = ::std::os::raw::c_uint;
pub const RONDO_DLPACK_INT: _bindgen_ty_30 = 0;
pub const RONDO_DLPACK_UINT: _bindgen_ty_30 = 1;
pub const RONDO_DLPACK_FLOAT: _bindgen_ty_30 = 2;
pub const RONDO_DLPACK_BFLOAT: _bindgen_ty_30 = 4;
pub const RONDO_DLPACK_COMPLEX: _bindgen_ty_30 = 5;
pub const RONDO_DLPACK_BOOL: _bindgen_ty_30 = 6;
pub const RONDO_DLPACK_FLOAT8_E4M3FN: _bindgen_ty_30 = 10;
pub const RONDO_DLPACK_FLOAT8_E4M3FNUZ: _bindgen_ty_30 = 11;
pub const RONDO_DLPACK_FLOAT8_E5M2: _bindgen_ty_30 = 12;
pub const RONDO_DLPACK_FLOAT8_E5M2FNUZ: _bindgen_ty_30 = 13;
pub const RONDO_DLPACK_FLOAT8_E8M0FNU: _bindgen_ty_30 = 14;
pub const RONDO_DLPACK_FLOAT4_E2M1FN: _bindgen_ty_30 = 17;
pub type _bindgen_ty_30 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_dlpack_device {
    pub type_: i32,
    pub id: i32,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_dlpack_type {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_dlpack_tensor {
    pub data: *mut ::std::os::raw::c_void,
    pub device: rondo_dlpack_device,
    pub rank: i32,
    pub type_: rondo_dlpack_type,
    pub extents: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}
impl Default for rondo_dlpack_tensor {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_dlpack_managed {
    pub tensor: rondo_dlpack_tensor,
    pub context: *mut ::std::os::raw::c_void,
    pub deleter: ::std::option::Option<unsafe extern "C" fn(self_: *mut rondo_dlpack_managed)>,
}
impl Default for rondo_dlpack_managed {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_dlpack_versioned {
    pub major: u32,
    pub minor: u32,
    pub context: *mut ::std::os::raw::c_void,
    pub deleter: ::std::option::Option<unsafe extern "C" fn(self_: *mut rondo_dlpack_versioned)>,
    pub flags: u64,
    pub tensor: rondo_dlpack_tensor,
}
impl Default for rondo_dlpack_versioned {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_dlpack_info {
    pub struct_size: usize,
    pub device: rondo_dlpack_device,
    pub type_: rondo_dlpack_type,
    pub is_read_only: bool,
    pub is_copied: bool,
}
extern "C" {
    pub fn rondo_tensor_from_dlpack(
        managed: *mut rondo_dlpack_managed,
        out_tensor: *mut rondo_tensor,
        out_info: *mut rondo_dlpack_info,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_from_dlpack_versioned(
        managed: *mut rondo_dlpack_versioned,
        out_tensor: *mut rondo_tensor,
        out_info: *mut rondo_dlpack_info,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_dlpack_get_device(
        device: *const rondo_device,
        kind: rondo_memory_kind,
        out_device: *mut rondo_dlpack_device,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_to_dlpack(
        tensor: *const rondo_tensor,
        device: *const rondo_dlpack_device,
        type_: *const rondo_dlpack_type,
        out_managed: *mut *mut rondo_dlpack_managed,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_to_dlpack_versioned(
        tensor: *const rondo_tensor,
        device: *const rondo_dlpack_device,
        type_: *const rondo_dlpack_type,
        flags: u64,
        out_managed: *mut *mut rondo_dlpack_versioned,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_learned {
    _unused: [u8; 0],
}
pub type rondo_argument_kind = i32;
pub const RONDO_ARGUMENT_POINTER: _bindgen_ty_31 = 0;
pub const RONDO_ARGUMENT_INT8: _bindgen_ty_31 = 1;
pub const RONDO_ARGUMENT_INT16: _bindgen_ty_31 = 2;
pub const RONDO_ARGUMENT_INT32: _bindgen_ty_31 = 3;
pub const RONDO_ARGUMENT_INT64: _bindgen_ty_31 = 4;
pub const RONDO_ARGUMENT_UINT8: _bindgen_ty_31 = 5;
pub const RONDO_ARGUMENT_UINT16: _bindgen_ty_31 = 6;
pub const RONDO_ARGUMENT_UINT32: _bindgen_ty_31 = 7;
pub const RONDO_ARGUMENT_UINT64: _bindgen_ty_31 = 8;
pub const RONDO_ARGUMENT_BOOL: _bindgen_ty_31 = 9;
pub const RONDO_ARGUMENT_FLOAT: _bindgen_ty_31 = 10;
pub const RONDO_ARGUMENT_DOUBLE: _bindgen_ty_31 = 11;
pub const RONDO_ARGUMENT_STRUCT: _bindgen_ty_31 = 12;
pub type _bindgen_ty_31 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub union rondo_value {
    pub pointer: *mut ::std::os::raw::c_void,
    pub integer: i64,
    pub unsigned_integer: u64,
    pub single: f32,
    pub number: f64,
    pub bytes: *const ::std::os::raw::c_void,
}
impl Default for rondo_value {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct rondo_argument {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub kind: rondo_argument_kind,
    pub bytes: u64,
    pub extent: u64,
    pub alignment: u64,
    pub memory: rondo_memory_kind,
    pub is_unchecked: bool,
    pub least: rondo_value,
    pub most: rondo_value,
    pub multiple_of: u64,
    pub values: *const rondo_value,
    pub value_count: usize,
    pub is_exclusive: bool,
}
impl Default for rondo_argument {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type rondo_learned_function = ::std::option::Option<
    unsafe extern "C" fn(
        stream: *mut rondo_stream,
        arguments: *const rondo_value,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status,
>;
pub type rondo_learned_fallback = i32;
pub const RONDO_LEARN_CHEAPEST: _bindgen_ty_32 = 0;
pub const RONDO_LEARN_EAGER: _bindgen_ty_32 = 1;
pub const RONDO_LEARN_REFUSE: _bindgen_ty_32 = 2;
pub const RONDO_LEARN_CACHE: _bindgen_ty_32 = 3;
pub const RONDO_LEARN_FIXED: _bindgen_ty_32 = 4;
pub const RONDO_LEARN_RECAPTURE: _bindgen_ty_32 = 5;
pub type _bindgen_ty_32 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_learned_options {
    pub struct_size: usize,
    pub label: *const ::std::os::raw::c_char,
    pub fallback: rondo_learned_fallback,
    pub arena: *mut rondo_arena,
    pub mode: rondo_capture_mode,
    pub check_addresses: bool,
    pub check_every: u32,
    pub seed: u64,
    pub cache: *const rondo_graph_cache_options,
    pub learn_ns: u64,
    pub draws_wanted: u64,
    pub measures: bool,
}
impl Default for rondo_learned_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_learned_create(
        device: *mut rondo_device,
        options: *const rondo_learned_options,
        arguments: *const rondo_argument,
        argument_count: usize,
        function: rondo_learned_function,
        user_data: *mut ::std::os::raw::c_void,
        out_learned: *mut *mut rondo_learned,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_learned_destroy(learned: *mut rondo_learned);
}
extern "C" {
    pub fn rondo_learned_learn(
        learned: *mut rondo_learned,
        stream: *mut rondo_stream,
        values: *const rondo_value,
        count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_learned_try(
        learned: *mut rondo_learned,
        values: *const rondo_value,
        count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_learned_run(
        learned: *mut rondo_learned,
        stream: *mut rondo_stream,
        values: *const rondo_value,
        count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_learned_get_graph(learned: *mut rondo_learned) -> *mut rondo_graph;
}
pub type rondo_learned_state = i32;
pub const RONDO_LEARNED_NOT_YET: _bindgen_ty_33 = 0;
pub const RONDO_LEARNED_PROVED: _bindgen_ty_33 = 1;
pub const RONDO_LEARNED_REFUSED: _bindgen_ty_33 = 2;
pub type _bindgen_ty_33 = ::std::os::raw::c_uint;
pub type rondo_refusal = i32;
pub const RONDO_REFUSAL_NONE: _bindgen_ty_34 = 0;
pub const RONDO_REFUSAL_STEP_FAILED: _bindgen_ty_34 = 1;
pub const RONDO_REFUSAL_NODES: _bindgen_ty_34 = 2;
pub const RONDO_REFUSAL_FUNCTION: _bindgen_ty_34 = 3;
pub const RONDO_REFUSAL_WORD: _bindgen_ty_34 = 4;
pub const RONDO_REFUSAL_AMBIGUOUS: _bindgen_ty_34 = 5;
pub const RONDO_REFUSAL_OPAQUE: _bindgen_ty_34 = 6;
pub const RONDO_REFUSAL_FIXED: _bindgen_ty_34 = 7;
pub const RONDO_REFUSAL_INNER: _bindgen_ty_34 = 8;
pub const RONDO_REFUSAL_MEMORY: _bindgen_ty_34 = 9;
pub const RONDO_REFUSAL_TABLE: _bindgen_ty_34 = 10;
pub const RONDO_REFUSAL_UNSEEN: _bindgen_ty_34 = 11;
pub const RONDO_REFUSAL_CHANGED: _bindgen_ty_34 = 12;
pub const RONDO_REFUSAL_LAUNCH: _bindgen_ty_34 = 13;
pub const RONDO_REFUSAL_EXCLUDED: _bindgen_ty_34 = 14;
pub type _bindgen_ty_34 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_learned_report {
    pub struct_size: usize,
    pub state: rondo_learned_state,
    pub node_count: u64,
    pub word_count: u64,
    pub slot_count: u64,
    pub changing_count: u64,
    pub recording_count: u64,
    pub learn_ns: u64,
    pub refusal: rondo_refusal,
    pub what: *const ::std::os::raw::c_char,
    pub advice: *const ::std::os::raw::c_char,
    pub has_node: bool,
    pub node: u64,
    pub node_name: [::std::os::raw::c_char; 64usize],
    pub node_label: [::std::os::raw::c_char; 128usize],
    pub word: [::std::os::raw::c_char; 48usize],
    pub message: [::std::os::raw::c_char; 480usize],
    pub step_status: rondo_status,
    pub fallback: rondo_learned_fallback,
    pub fallback_ns: u64,
    pub finding_count: u64,
    pub unseen_count: u64,
    pub excluded_count: u64,
    pub special_count: u64,
    pub draw_count: u64,
    pub missed_share: f64,
}
impl Default for rondo_learned_report {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_learned_get_report(
        learned: *const rondo_learned,
        out_report: *mut rondo_learned_report,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_learned_finding {
    pub struct_size: usize,
    pub refusal: rondo_refusal,
    pub is_warning: bool,
    pub what: *const ::std::os::raw::c_char,
    pub advice: *const ::std::os::raw::c_char,
    pub has_node: bool,
    pub node: u64,
    pub node_name: [::std::os::raw::c_char; 64usize],
    pub node_label: [::std::os::raw::c_char; 128usize],
    pub word: [::std::os::raw::c_char; 48usize],
    pub message: [::std::os::raw::c_char; 480usize],
}
impl Default for rondo_learned_finding {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_learned_list_findings(
        learned: *const rondo_learned,
        findings: *mut rondo_learned_finding,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_learned_slot {
    pub struct_size: usize,
    pub node: u64,
    pub node_name: [::std::os::raw::c_char; 64usize],
    pub node_label: [::std::os::raw::c_char; 128usize],
    pub word: [::std::os::raw::c_char; 48usize],
    pub bytes: u32,
    pub argument: u32,
    pub second: u32,
    pub formula: [::std::os::raw::c_char; 96usize],
}
impl Default for rondo_learned_slot {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_learned_list_slots(
        learned: *const rondo_learned,
        slots: *mut rondo_learned_slot,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_learned_describe(
        learned: *const rondo_learned,
        format: rondo_text_format,
        write: rondo_write_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_refusal_get_name(refusal: rondo_refusal) -> *const ::std::os::raw::c_char;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_learned_stats {
    pub struct_size: usize,
    pub run_count: u64,
    pub unchanged_count: u64,
    pub patched_node_count: u64,
    pub fallback_count: u64,
    pub check_count: u64,
    pub recording_count: u64,
    pub fallback_eager_count: u64,
}
extern "C" {
    pub fn rondo_learned_get_stats(
        learned: *const rondo_learned,
        out_stats: *mut rondo_learned_stats,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_allocator {
    pub struct_size: usize,
    pub allocate: ::std::option::Option<
        unsafe extern "C" fn(
            user_data: *mut ::std::os::raw::c_void,
            bytes: usize,
            alignment: usize,
        ) -> *mut ::std::os::raw::c_void,
    >,
    pub reallocate: ::std::option::Option<
        unsafe extern "C" fn(
            user_data: *mut ::std::os::raw::c_void,
            address: *mut ::std::os::raw::c_void,
            bytes: usize,
        ) -> *mut ::std::os::raw::c_void,
    >,
    pub free: ::std::option::Option<
        unsafe extern "C" fn(
            user_data: *mut ::std::os::raw::c_void,
            address: *mut ::std::os::raw::c_void,
        ),
    >,
    pub user_data: *mut ::std::os::raw::c_void,
}
impl Default for rondo_allocator {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_set_allocator(allocator: *const rondo_allocator) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_workers {
    _unused: [u8; 0],
}
extern "C" {
    pub fn rondo_workers_create(count: u32, out_workers: *mut *mut rondo_workers) -> rondo_status;
}
extern "C" {
    pub fn rondo_workers_retain(workers: *mut rondo_workers);
}
extern "C" {
    pub fn rondo_workers_release(workers: *mut rondo_workers);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_program {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_port {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub dtype: rondo_dtype,
    pub rank: i32,
    pub extent: [i64; 8usize],
    pub symbol: [*const ::std::os::raw::c_char; 8usize],
    pub item_dtype: [rondo_dtype; 2usize],
    pub labels: *const rondo_tensor,
}
impl Default for rondo_port {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_program_destroy(program: *mut rondo_program);
}
extern "C" {
    pub fn rondo_program_get_input_count(program: *const rondo_program) -> usize;
}
extern "C" {
    pub fn rondo_program_get_output_count(program: *const rondo_program) -> usize;
}
extern "C" {
    pub fn rondo_program_get_input(
        program: *const rondo_program,
        index: usize,
        out_port: *mut rondo_port,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_get_output(
        program: *const rondo_program,
        index: usize,
        out_port: *mut rondo_port,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_get_optional_input_count(program: *const rondo_program) -> usize;
}
extern "C" {
    pub fn rondo_program_get_optional_input(
        program: *const rondo_program,
        index: usize,
        out_port: *mut rondo_port,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_set_dimension(
        program: *mut rondo_program,
        symbol: *const ::std::os::raw::c_char,
        extent: i64,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_get_metadata(
        program: *const rondo_program,
        key: *const ::std::os::raw::c_char,
    ) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn rondo_program_load_onnx(
        path: *const ::std::os::raw::c_char,
        out_program: *mut *mut rondo_program,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_load_options {
    pub struct_size: usize,
    pub memory_limit_bytes: u64,
    pub allow_newer_opset: bool,
}
extern "C" {
    pub fn rondo_program_load_onnx_with(
        path: *const ::std::os::raw::c_char,
        options: *const rondo_load_options,
        out_program: *mut *mut rondo_program,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_parse_onnx(
        bytes: *const ::std::os::raw::c_void,
        byte_count: usize,
        out_program: *mut *mut rondo_program,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_parse_onnx_with(
        bytes: *const ::std::os::raw::c_void,
        byte_count: usize,
        options: *const rondo_load_options,
        out_program: *mut *mut rondo_program,
    ) -> rondo_status;
}
pub type rondo_unsupported_function = ::std::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::std::os::raw::c_void,
        domain: *const ::std::os::raw::c_char,
        op: *const ::std::os::raw::c_char,
        version: i64,
        detail: *const ::std::os::raw::c_char,
        count: usize,
    ),
>;
extern "C" {
    pub fn rondo_onnx_list_unsupported(
        path: *const ::std::os::raw::c_char,
        visit: rondo_unsupported_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_save_onnx(
        program: *const rondo_program,
        path: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_tensor_load_onnx(
        path: *const ::std::os::raw::c_char,
        out_tensor: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_port_load_onnx(
        port: *const rondo_port,
        path: *const ::std::os::raw::c_char,
        out_tensor: *mut rondo_tensor,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_builder {
    _unused: [u8; 0],
}
pub type rondo_attribute_kind = i32;
pub const RONDO_ATTRIBUTE_INT: _bindgen_ty_35 = 1;
pub const RONDO_ATTRIBUTE_FLOAT: _bindgen_ty_35 = 2;
pub const RONDO_ATTRIBUTE_STRING: _bindgen_ty_35 = 3;
pub const RONDO_ATTRIBUTE_TENSOR: _bindgen_ty_35 = 4;
pub const RONDO_ATTRIBUTE_INTS: _bindgen_ty_35 = 5;
pub const RONDO_ATTRIBUTE_FLOATS: _bindgen_ty_35 = 6;
pub const RONDO_ATTRIBUTE_STRINGS: _bindgen_ty_35 = 7;
pub const RONDO_ATTRIBUTE_GRAPH: _bindgen_ty_35 = 8;
pub type _bindgen_ty_35 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_attribute {
    pub name: *const ::std::os::raw::c_char,
    pub kind: rondo_attribute_kind,
    pub float_value: f32,
    pub int_value: i64,
    pub string_value: *const ::std::os::raw::c_char,
    pub tensor: *const rondo_tensor,
    pub count: usize,
    pub ints: *const i64,
    pub floats: *const f32,
    pub strings: *const *const ::std::os::raw::c_char,
    pub body: *mut rondo_builder,
    pub program: *const rondo_program,
}
impl Default for rondo_attribute {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_builder_options {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub opset: i32,
}
impl Default for rondo_builder_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_builder_create(
        options: *const rondo_builder_options,
        out_builder: *mut *mut rondo_builder,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_destroy(builder: *mut rondo_builder);
}
extern "C" {
    pub fn rondo_builder_add_input(
        builder: *mut rondo_builder,
        port: *const rondo_port,
    ) -> rondo_status;
}
pub type rondo_parameter_kind = i32;
pub const RONDO_PARAMETER_COPIED: _bindgen_ty_36 = 0;
pub const RONDO_PARAMETER_SHARED: _bindgen_ty_36 = 1;
pub const RONDO_PARAMETER_INPUT: _bindgen_ty_36 = 2;
pub type _bindgen_ty_36 = ::std::os::raw::c_uint;
extern "C" {
    pub fn rondo_builder_add_parameter(
        builder: *mut rondo_builder,
        name: *const ::std::os::raw::c_char,
        tensor: *const rondo_tensor,
        kind: rondo_parameter_kind,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_add_constant(
        builder: *mut rondo_builder,
        name: *const ::std::os::raw::c_char,
        dtype: rondo_dtype,
        shape: *const rondo_shape,
        elements: *const ::std::os::raw::c_void,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_builder_node_options {
    pub struct_size: usize,
    pub domain: *const ::std::os::raw::c_char,
    pub version: i32,
    pub name: *const ::std::os::raw::c_char,
    pub attributes: *const rondo_attribute,
    pub attribute_count: usize,
}
impl Default for rondo_builder_node_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_builder_add_node(
        builder: *mut rondo_builder,
        op: *const ::std::os::raw::c_char,
        inputs: *const *const ::std::os::raw::c_char,
        input_count: usize,
        outputs: *const *const ::std::os::raw::c_char,
        output_count: usize,
        options: *const rondo_builder_node_options,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_begin_place(
        builder: *mut rondo_builder,
        place: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_end_place(builder: *mut rondo_builder) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_add_output(
        builder: *mut rondo_builder,
        name: *const ::std::os::raw::c_char,
        declared: *const rondo_port,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_finish(
        builder: *mut rondo_builder,
        out_program: *mut *mut rondo_program,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_add_embedding(
        builder: *mut rondo_builder,
        ids: *const ::std::os::raw::c_char,
        table: *const ::std::os::raw::c_char,
        output: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_add_l2_normalize(
        builder: *mut rondo_builder,
        x: *const ::std::os::raw::c_char,
        axis: i64,
        epsilon: f32,
        output: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_add_square_error_cost(
        builder: *mut rondo_builder,
        x: *const ::std::os::raw::c_char,
        label: *const ::std::os::raw::c_char,
        output: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_add_mean(
        builder: *mut rondo_builder,
        x: *const ::std::os::raw::c_char,
        output: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_add_shape(
        builder: *mut rondo_builder,
        x: *const ::std::os::raw::c_char,
        output: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_add_slice(
        builder: *mut rondo_builder,
        x: *const ::std::os::raw::c_char,
        axes: *const i64,
        starts: *const i64,
        ends: *const i64,
        steps: *const i64,
        count: usize,
        output: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_parameter {
    pub name: *const ::std::os::raw::c_char,
    pub tensor: *const rondo_tensor,
}
impl Default for rondo_parameter {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_program_list_parameters(
        program: *const rondo_program,
        capacity: usize,
        out_parameters: *mut rondo_parameter,
        out_count: *mut usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_get_opset(
        program: *const rondo_program,
        domain: *const ::std::os::raw::c_char,
    ) -> i32;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_program_node {
    pub struct_size: usize,
    pub op: *const ::std::os::raw::c_char,
    pub domain: *const ::std::os::raw::c_char,
    pub version: i32,
    pub name: *const ::std::os::raw::c_char,
    pub input_count: usize,
    pub output_count: usize,
    pub attribute_count: usize,
    pub place: *const ::std::os::raw::c_char,
}
impl Default for rondo_program_node {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_program_get_node_count(program: *const rondo_program) -> usize;
}
extern "C" {
    pub fn rondo_program_get_node(
        program: *const rondo_program,
        index: usize,
        out_node: *mut rondo_program_node,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_get_node_input(
        program: *const rondo_program,
        node: usize,
        index: usize,
    ) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn rondo_program_get_node_output(
        program: *const rondo_program,
        node: usize,
        index: usize,
    ) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn rondo_program_get_node_attribute(
        program: *const rondo_program,
        node: usize,
        index: usize,
        out_attribute: *mut rondo_attribute,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_describe(
        program: *const rondo_program,
        format: rondo_text_format,
        write: rondo_write_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
pub type rondo_start_kind = i32;
pub const RONDO_START_NONE: _bindgen_ty_37 = 0;
pub const RONDO_START_CONSTANT: _bindgen_ty_37 = 1;
pub const RONDO_START_UNIFORM: _bindgen_ty_37 = 2;
pub const RONDO_START_NORMAL: _bindgen_ty_37 = 3;
pub const RONDO_START_XAVIER_UNIFORM: _bindgen_ty_37 = 4;
pub const RONDO_START_XAVIER_NORMAL: _bindgen_ty_37 = 5;
pub const RONDO_START_HE_UNIFORM: _bindgen_ty_37 = 6;
pub const RONDO_START_HE_NORMAL: _bindgen_ty_37 = 7;
pub const RONDO_START_TENSOR: _bindgen_ty_37 = 8;
pub type _bindgen_ty_37 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_start {
    pub struct_size: usize,
    pub kind: rondo_start_kind,
    pub a: f64,
    pub b: f64,
    pub seed: u64,
    pub fan_in: u64,
    pub fan_out: u64,
    pub tensor: *const rondo_tensor,
}
impl Default for rondo_start {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_builder_add_variable(
        builder: *mut rondo_builder,
        port: *const rondo_port,
        start: *const rondo_start,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_set_update(
        builder: *mut rondo_builder,
        variable: *const ::std::os::raw::c_char,
        value: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_make_variables(
        program: *const rondo_program,
        names: *const *const ::std::os::raw::c_char,
        name_count: usize,
        out_program: *mut *mut rondo_program,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_variable {
    pub name: *const ::std::os::raw::c_char,
    pub update: *const ::std::os::raw::c_char,
    pub start: *const rondo_start,
}
impl Default for rondo_variable {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_program_list_variables(
        program: *const rondo_program,
        capacity: usize,
        out_variables: *mut rondo_variable,
        out_count: *mut usize,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_op_node {
    _unused: [u8; 0],
}
pub type rondo_op_infer_function = ::std::option::Option<
    unsafe extern "C" fn(
        node: *mut rondo_op_node,
        inputs: *const rondo_tensor,
        input_count: usize,
        outputs: *mut rondo_tensor,
        output_count: usize,
    ) -> rondo_status,
>;
pub type rondo_op_compute_function = ::std::option::Option<
    unsafe extern "C" fn(
        node: *mut rondo_op_node,
        inputs: *const rondo_tensor,
        input_count: usize,
        outputs: *mut rondo_tensor,
        output_count: usize,
    ) -> rondo_status,
>;
pub type rondo_op_capture = i32;
pub const RONDO_OP_CAPTURE_UNKNOWN: _bindgen_ty_38 = 0;
pub const RONDO_OP_CAPTURE_YES: _bindgen_ty_38 = 1;
pub const RONDO_OP_CAPTURE_NO: _bindgen_ty_38 = 2;
pub type _bindgen_ty_38 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_op_preparation {
    pub struct_size: usize,
    pub device: *mut rondo_device,
    pub input_count: usize,
    pub inputs: *const rondo_tensor,
    pub output_count: usize,
    pub outputs: *const rondo_tensor,
    pub state: *mut ::std::os::raw::c_void,
    pub workspace_bytes: usize,
    pub capture: rondo_op_capture,
    pub reason: *const ::std::os::raw::c_char,
}
impl Default for rondo_op_preparation {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_op_launch {
    pub struct_size: usize,
    pub stream: *mut rondo_stream,
    pub input_count: usize,
    pub inputs: *const rondo_tensor,
    pub output_count: usize,
    pub outputs: *const rondo_tensor,
    pub workspace: *mut ::std::os::raw::c_void,
    pub workspace_bytes: usize,
    pub state: *mut ::std::os::raw::c_void,
}
impl Default for rondo_op_launch {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_op_kernel {
    pub launch: ::std::option::Option<
        unsafe extern "C" fn(
            node: *mut rondo_op_node,
            launch: *const rondo_op_launch,
        ) -> rondo_status,
    >,
    pub prepare: ::std::option::Option<
        unsafe extern "C" fn(
            node: *mut rondo_op_node,
            preparation: *mut rondo_op_preparation,
        ) -> rondo_status,
    >,
    pub release: ::std::option::Option<
        unsafe extern "C" fn(data: *mut ::std::os::raw::c_void, state: *mut ::std::os::raw::c_void),
    >,
}
pub const RONDO_OP_IMPURE: _bindgen_ty_39 = 1;
pub type _bindgen_ty_39 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_op_definition {
    pub struct_size: usize,
    pub domain: *const ::std::os::raw::c_char,
    pub name: *const ::std::os::raw::c_char,
    pub version_min: i32,
    pub version_max: i32,
    pub input_min: u32,
    pub input_max: u32,
    pub output_min: u32,
    pub output_max: u32,
    pub attributes: *const *const ::std::os::raw::c_char,
    pub infer: rondo_op_infer_function,
    pub compute: rondo_op_compute_function,
    pub host: rondo_op_kernel,
    pub cuda: rondo_op_kernel,
    pub capture: rondo_op_capture,
    pub flags: u32,
    pub data: *mut ::std::os::raw::c_void,
}
impl Default for rondo_op_definition {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_op_register(definition: *const rondo_op_definition) -> rondo_status;
}
extern "C" {
    pub fn rondo_op_get_data(node: *const rondo_op_node) -> *mut ::std::os::raw::c_void;
}
extern "C" {
    pub fn rondo_op_get_attribute(
        node: *const rondo_op_node,
        name: *const ::std::os::raw::c_char,
        out_attribute: *mut rondo_attribute,
    ) -> bool;
}
extern "C" {
    pub fn rondo_op_fail(
        node: *const rondo_op_node,
        status: rondo_status,
        message: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_executor {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_communicator {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_run_arena {
    _unused: [u8; 0],
}
pub type rondo_graphs_mode = i32;
pub const RONDO_GRAPHS_AUTO: _bindgen_ty_40 = 0;
pub const RONDO_GRAPHS_ON: _bindgen_ty_40 = 1;
pub const RONDO_GRAPHS_OFF: _bindgen_ty_40 = 2;
pub const RONDO_GRAPHS_MEASURED: _bindgen_ty_40 = 3;
pub type _bindgen_ty_40 = ::std::os::raw::c_uint;
pub type rondo_branches_mode = i32;
pub const RONDO_BRANCHES_AUTO: _bindgen_ty_41 = 0;
pub const RONDO_BRANCHES_ON: _bindgen_ty_41 = 1;
pub const RONDO_BRANCHES_OFF: _bindgen_ty_41 = 2;
pub type _bindgen_ty_41 = ::std::os::raw::c_uint;
pub type rondo_tuning = i32;
pub const RONDO_TUNING_AUTO: _bindgen_ty_42 = 0;
pub const RONDO_TUNING_OFF: _bindgen_ty_42 = 1;
pub const RONDO_TUNING_FAST: _bindgen_ty_42 = 2;
pub const RONDO_TUNING_FULL: _bindgen_ty_42 = 3;
pub const RONDO_TUNING_KEEP: _bindgen_ty_42 = 4;
pub type _bindgen_ty_42 = ::std::os::raw::c_uint;
pub type rondo_self_check_action = i32;
pub const RONDO_SELF_CHECK_FAIL: _bindgen_ty_43 = 0;
pub const RONDO_SELF_CHECK_KEEP_EAGER: _bindgen_ty_43 = 1;
pub type _bindgen_ty_43 = ::std::os::raw::c_uint;
pub type rondo_progress_function = ::std::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::std::os::raw::c_void,
        what: *const ::std::os::raw::c_char,
        done: usize,
        total: usize,
    ),
>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_executor_options {
    pub struct_size: usize,
    pub graphs: rondo_graphs_mode,
    pub dtype: rondo_dtype,
    pub seed: u64,
    pub op_by_op: bool,
    pub reference: bool,
    pub plan_limit: usize,
    pub progress: rondo_progress_function,
    pub progress_data: *mut ::std::os::raw::c_void,
    pub thread_count: u32,
    pub memory_limit_bytes: u64,
    pub loop_limit: u64,
    pub keep_f32: *const *const ::std::os::raw::c_char,
    pub keep_f32_count: usize,
    pub use_f16: *const *const ::std::os::raw::c_char,
    pub use_f16_count: usize,
    pub plan_limit_bytes: u64,
    pub self_check_every: u64,
    pub self_check_action: rondo_self_check_action,
    pub stream: *mut rondo_stream,
    pub training: bool,
    pub branches: rondo_branches_mode,
    pub place: *const *const ::std::os::raw::c_char,
    pub place_count: usize,
    pub no_folding: bool,
    pub tuning: rondo_tuning,
    pub tuning_file: *const ::std::os::raw::c_char,
    pub weight_limit_bytes: u64,
    pub workers: *mut rondo_workers,
    pub communicator: *mut rondo_communicator,
    pub run_arena: *mut rondo_run_arena,
    pub keep_templates: bool,
    pub watchdog: *mut rondo_watchdog,
}
impl Default for rondo_executor_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_binding {
    pub name: *const ::std::os::raw::c_char,
    pub tensor: rondo_tensor,
}
impl Default for rondo_binding {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_run_times {
    pub struct_size: usize,
    pub latency_ns: u64,
    pub enqueue_ns: u64,
    pub host_to_device_ns: u64,
    pub compute_ns: u64,
    pub device_to_host_ns: u64,
    pub was_replayed: bool,
    pub ran_op_count: u64,
    pub replayed_op_count: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_executor_stats {
    pub struct_size: usize,
    pub op_count: u64,
    pub segment_count: u64,
    pub bypassed_count: u64,
    pub node_count: u64,
    pub plan_count: u64,
    pub capture_ns: u64,
    pub instantiate_ns: u64,
    pub first_replay_ns: u64,
    pub prepare_ns: u64,
    pub arena_bytes: u64,
    pub arena_naive_bytes: u64,
    pub constant_bytes: u64,
    pub graph_bytes: u64,
    pub eager_run_count: u64,
    pub replay_run_count: u64,
    pub random_op_count: u64,
    pub shared_constant_bytes: u64,
    pub plan_bytes: u64,
    pub plan_hit_count: u64,
    pub plan_miss_count: u64,
    pub plan_eviction_count: u64,
    pub memory_bytes: u64,
    pub device_memory_bytes: u64,
    pub in_place_run_count: u64,
    pub branch_count: u64,
    pub spilled_constant_bytes: u64,
    pub state_bytes: u64,
}
extern "C" {
    pub fn rondo_executor_create(
        program: *mut rondo_program,
        device: *mut rondo_device,
        options: *const rondo_executor_options,
        out_executor: *mut *mut rondo_executor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_destroy(executor: *mut rondo_executor);
}
extern "C" {
    pub fn rondo_executor_run(
        executor: *mut rondo_executor,
        feeds: *const rondo_binding,
        feed_count: usize,
        fetches: *mut rondo_binding,
        fetch_count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_rerun(executor: *mut rondo_executor) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_cancel(executor: *mut rondo_executor) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_set_graphs(
        executor: *mut rondo_executor,
        graphs: rondo_graphs_mode,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_set_training(
        executor: *mut rondo_executor,
        training: bool,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_get_times(
        executor: *const rondo_executor,
        out_times: *mut rondo_run_times,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_get_stats(
        executor: *const rondo_executor,
        out_stats: *mut rondo_executor_stats,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_list_graphs(
        executor: *mut rondo_executor,
        graphs: *mut *mut rondo_graph,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_describe(
        executor: *mut rondo_executor,
        format: rondo_text_format,
        write: rondo_write_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_describe_feeds(
        executor: *mut rondo_executor,
        feeds: *const rondo_binding,
        feed_count: usize,
        format: rondo_text_format,
        write: rondo_write_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_infer_outputs(
        executor: *mut rondo_executor,
        feeds: *const rondo_binding,
        feed_count: usize,
        outputs: *mut rondo_binding,
        capacity: usize,
        out_count: *mut usize,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_precision_loss {
    pub struct_size: usize,
    pub is_found: bool,
    pub op: [::std::os::raw::c_char; 48usize],
    pub node: [::std::os::raw::c_char; 160usize],
    pub error_before: f64,
    pub error_after: f64,
    pub output_error: f64,
    pub compared_count: u64,
}
impl Default for rondo_precision_loss {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_executor_find_loss(
        program: *mut rondo_program,
        device: *mut rondo_device,
        options: *const rondo_executor_options,
        feeds: *const rondo_binding,
        feed_count: usize,
        limit: f64,
        out_loss: *mut rondo_precision_loss,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_write_tuning(
        executor: *mut rondo_executor,
        write: rondo_write_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_save(
        executor: *mut rondo_executor,
        path: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_plan_options {
    pub struct_size: usize,
    pub allow_remake: bool,
    pub made_of: *const rondo_program,
}
impl Default for rondo_plan_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_program_load_plan(
        path: *const ::std::os::raw::c_char,
        options: *const rondo_plan_options,
        out_program: *mut *mut rondo_program,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_program_get_plan_options(
        program: *const rondo_program,
        out_options: *mut rondo_executor_options,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_load(
        path: *const ::std::os::raw::c_char,
        device: *mut rondo_device,
        executor_options: *const rondo_executor_options,
        plan_options: *const rondo_plan_options,
        out_program: *mut *mut rondo_program,
        out_executor: *mut *mut rondo_executor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_plan_describe(
        path: *const ::std::os::raw::c_char,
        format: rondo_text_format,
        write: rondo_write_function,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
pub type rondo_placement_kind = i32;
pub const RONDO_PLACEMENT_OP: _bindgen_ty_44 = 0;
pub const RONDO_PLACEMENT_TRANSFER: _bindgen_ty_44 = 1;
pub const RONDO_PLACEMENT_TENSOR: _bindgen_ty_44 = 2;
pub type _bindgen_ty_44 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_placement {
    pub kind: rondo_placement_kind,
    pub type_: *const ::std::os::raw::c_char,
    pub name: *const ::std::os::raw::c_char,
    pub place: *const ::std::os::raw::c_char,
    pub reason: *const ::std::os::raw::c_char,
    pub bytes: u64,
}
impl Default for rondo_placement {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_executor_list_placements(
        executor: *mut rondo_executor,
        feeds: *const rondo_binding,
        feed_count: usize,
        capacity: usize,
        out_placements: *mut rondo_placement,
        out_count: *mut usize,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_transfer_count {
    pub count: u64,
    pub bytes: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct rondo_transfer_stats {
    pub struct_size: usize,
    pub run_count: u64,
    pub to_device: rondo_transfer_count,
    pub to_host: rondo_transfer_count,
    pub synchronous_to_device: rondo_transfer_count,
    pub synchronous_to_host: rondo_transfer_count,
    pub between_devices: rondo_transfer_count,
    pub synchronous_between_devices: rondo_transfer_count,
    pub weights: rondo_transfer_count,
}
extern "C" {
    pub fn rondo_executor_get_transfers(
        executor: *const rondo_executor,
        out_stats: *mut rondo_transfer_stats,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_self_check_report {
    pub struct_size: usize,
    pub segment_count: u64,
    pub value_count: u64,
    pub is_different: bool,
    pub is_first: bool,
    pub op: [::std::os::raw::c_char; 48usize],
    pub node: [::std::os::raw::c_char; 160usize],
    pub value: [::std::os::raw::c_char; 160usize],
    pub dtype: rondo_dtype,
    pub element: u64,
    pub different_count: u64,
    pub eager: [::std::os::raw::c_char; 48usize],
    pub replayed: [::std::os::raw::c_char; 48usize],
}
impl Default for rondo_self_check_report {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_executor_self_check(
        executor: *mut rondo_executor,
        feeds: *const rondo_binding,
        feed_count: usize,
        fetches: *mut rondo_binding,
        fetch_count: usize,
        out_report: *mut rondo_self_check_report,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_get_self_check(
        executor: *const rondo_executor,
        out_report: *mut rondo_self_check_report,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_get_stream(executor: *const rondo_executor) -> *mut rondo_stream;
}
extern "C" {
    pub fn rondo_executor_run_async(
        executor: *mut rondo_executor,
        feeds: *const rondo_binding,
        feed_count: usize,
        fetches: *mut rondo_binding,
        fetch_count: usize,
        done: *mut rondo_event,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_wait(executor: *mut rondo_executor) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_record(
        executor: *mut rondo_executor,
        stream: *mut rondo_stream,
        feeds: *const rondo_binding,
        feed_count: usize,
        fetches: *const rondo_binding,
        fetch_count: usize,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_run_arena_options {
    pub struct_size: usize,
    pub address: *mut ::std::os::raw::c_void,
    pub bytes: usize,
}
impl Default for rondo_run_arena_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_run_arena_create(
        device: *mut rondo_device,
        options: *const rondo_run_arena_options,
        out_arena: *mut *mut rondo_run_arena,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_run_arena_destroy(arena: *mut rondo_run_arena);
}
extern "C" {
    pub fn rondo_run_arena_get_bytes(arena: *const rondo_run_arena) -> u64;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_bound_run {
    _unused: [u8; 0],
}
extern "C" {
    pub fn rondo_bound_run_create(
        executor: *mut rondo_executor,
        out_run: *mut *mut rondo_bound_run,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_bound_run_destroy(run: *mut rondo_bound_run);
}
extern "C" {
    pub fn rondo_bound_run_set_feed(
        run: *mut rondo_bound_run,
        name: *const ::std::os::raw::c_char,
        tensor: *const rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_bound_run_set_fetch(
        run: *mut rondo_bound_run,
        name: *const ::std::os::raw::c_char,
        tensor: *const rondo_tensor,
    ) -> rondo_status;
}
pub type rondo_fetch_allocator = ::std::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::std::os::raw::c_void,
        name: *const ::std::os::raw::c_char,
        wanted: *const rondo_tensor,
        bytes: usize,
    ) -> *mut ::std::os::raw::c_void,
>;
extern "C" {
    pub fn rondo_bound_run_set_allocator(
        run: *mut rondo_bound_run,
        allocate: rondo_fetch_allocator,
        user_data: *mut ::std::os::raw::c_void,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_bound_run_run(run: *mut rondo_bound_run) -> rondo_status;
}
extern "C" {
    pub fn rondo_bound_run_run_async(
        run: *mut rondo_bound_run,
        done: *mut rondo_event,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_bound_run_get_fetch(
        run: *mut rondo_bound_run,
        name: *const ::std::os::raw::c_char,
        out_tensor: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_bind(
        executor: *mut rondo_executor,
        output: *const ::std::os::raw::c_char,
        input: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_reserve_variable(
        executor: *mut rondo_executor,
        name: *const ::std::os::raw::c_char,
        bytes: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_get_variable(
        executor: *mut rondo_executor,
        name: *const ::std::os::raw::c_char,
        out_tensor: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_set_variable(
        executor: *mut rondo_executor,
        name: *const ::std::os::raw::c_char,
        tensor: *const rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_reset_variables(executor: *mut rondo_executor) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_snapshot(
        executor: *mut rondo_executor,
        out_program: *mut *mut rondo_program,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_op {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_op_options {
    pub struct_size: usize,
    pub domain: *const ::std::os::raw::c_char,
    pub version: i32,
    pub attributes: *const rondo_attribute,
    pub attribute_count: usize,
    pub seed: u64,
}
impl Default for rondo_op_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_op_prepare(
        device: *mut rondo_device,
        name: *const ::std::os::raw::c_char,
        options: *const rondo_op_options,
        inputs: *const rondo_tensor,
        input_count: usize,
        output_count: usize,
        out_op: *mut *mut rondo_op,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_op_destroy(op: *mut rondo_op);
}
extern "C" {
    pub fn rondo_op_get_output(
        op: *const rondo_op,
        index: usize,
        out_description: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_op_put(
        op: *mut rondo_op,
        stream: *mut rondo_stream,
        inputs: *const rondo_tensor,
        input_count: usize,
        outputs: *const rondo_tensor,
        output_count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_create_from(
        program: *const rondo_program,
        out_builder: *mut *mut rondo_builder,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_gradient_options {
    pub struct_size: usize,
    pub seed: *const ::std::os::raw::c_char,
    pub stop: *const *const ::std::os::raw::c_char,
    pub stop_count: usize,
    pub recompute: *const *const ::std::os::raw::c_char,
    pub recompute_count: usize,
}
impl Default for rondo_gradient_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_builder_add_gradients(
        builder: *mut rondo_builder,
        y: *const ::std::os::raw::c_char,
        xs: *const *const ::std::os::raw::c_char,
        outputs: *const *const ::std::os::raw::c_char,
        count: usize,
        options: *const rondo_gradient_options,
    ) -> rondo_status;
}
pub type rondo_optimizer = i32;
pub const RONDO_OPTIMIZER_SGD: _bindgen_ty_45 = 0;
pub const RONDO_OPTIMIZER_ADAM: _bindgen_ty_45 = 1;
pub const RONDO_OPTIMIZER_ADAMW: _bindgen_ty_45 = 2;
pub const RONDO_OPTIMIZER_ADAGRAD: _bindgen_ty_45 = 3;
pub type _bindgen_ty_45 = ::std::os::raw::c_uint;
pub type rondo_schedule = i32;
pub const RONDO_SCHEDULE_CONSTANT: _bindgen_ty_46 = 0;
pub const RONDO_SCHEDULE_STEP: _bindgen_ty_46 = 1;
pub const RONDO_SCHEDULE_COSINE: _bindgen_ty_46 = 2;
pub const RONDO_SCHEDULE_LINEAR: _bindgen_ty_46 = 3;
pub type _bindgen_ty_46 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_minimize_options {
    pub struct_size: usize,
    pub optimizer: rondo_optimizer,
    pub learning_rate: f64,
    pub rate: *const ::std::os::raw::c_char,
    pub momentum: f64,
    pub dampening: f64,
    pub nesterov: bool,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub weight_decay: f64,
    pub schedule: rondo_schedule,
    pub schedule_steps: i64,
    pub schedule_factor: f64,
    pub schedule_least: f64,
    pub warmup_steps: i64,
    pub warmup_start: f64,
    pub clip_value: f64,
    pub clip_norm: f64,
    pub scale_loss: bool,
    pub scale_start: f64,
    pub scale_growth: f64,
    pub scale_backoff: f64,
    pub scale_least: f64,
    pub scale_interval: i64,
    pub scale_patience: i64,
    pub accumulate: i64,
    pub train: *const *const ::std::os::raw::c_char,
    pub train_count: usize,
    pub recompute: *const *const ::std::os::raw::c_char,
    pub recompute_count: usize,
    pub average_ranks: bool,
    pub bucket_bytes: usize,
    pub rows: *const *const ::std::os::raw::c_char,
    pub rows_count: usize,
    pub shard_updates: bool,
}
impl Default for rondo_minimize_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_builder_minimize(
        builder: *mut rondo_builder,
        loss: *const ::std::os::raw::c_char,
        options: *const rondo_minimize_options,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_builder_add_adapters(
        builder: *mut rondo_builder,
        patterns: *const *const ::std::os::raw::c_char,
        count: usize,
        rank: i64,
    ) -> rondo_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_ranks {
    pub struct_size: usize,
    pub rank: i32,
    pub size: i32,
    pub local_rank: i32,
    pub local_size: i32,
    pub launcher: *const ::std::os::raw::c_char,
}
impl Default for rondo_ranks {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_find_ranks(out_ranks: *mut rondo_ranks) -> rondo_status;
}
pub type rondo_transport = i32;
pub const RONDO_TRANSPORT_AUTO: _bindgen_ty_47 = 0;
pub const RONDO_TRANSPORT_NCCL: _bindgen_ty_47 = 1;
pub const RONDO_TRANSPORT_MPI: _bindgen_ty_47 = 2;
pub const RONDO_TRANSPORT_SOCKETS: _bindgen_ty_47 = 3;
pub type _bindgen_ty_47 = ::std::os::raw::c_uint;
pub type rondo_waiting_function = ::std::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::std::os::raw::c_void,
        what: *const ::std::os::raw::c_char,
        seconds: f64,
    ) -> bool,
>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rondo_communicator_options {
    pub struct_size: usize,
    pub rank: i32,
    pub size: i32,
    pub meeting: *const ::std::os::raw::c_char,
    pub transport: rondo_transport,
    pub wait_ms: u64,
    pub common: *const ::std::os::raw::c_char,
    pub waiting: rondo_waiting_function,
    pub waiting_data: *mut ::std::os::raw::c_void,
}
impl Default for rondo_communicator_options {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn rondo_communicator_create(
        device: *mut rondo_device,
        options: *const rondo_communicator_options,
        out_communicator: *mut *mut rondo_communicator,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_communicator_destroy(communicator: *mut rondo_communicator);
}
pub type rondo_reduction = i32;
pub const RONDO_REDUCTION_SUM: _bindgen_ty_48 = 0;
pub const RONDO_REDUCTION_AVERAGE: _bindgen_ty_48 = 1;
pub type _bindgen_ty_48 = ::std::os::raw::c_uint;
extern "C" {
    pub fn rondo_builder_add_all_reduce(
        builder: *mut rondo_builder,
        reduction: rondo_reduction,
        inputs: *const *const ::std::os::raw::c_char,
        outputs: *const *const ::std::os::raw::c_char,
        count: usize,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_gather_variables(executor: *mut rondo_executor) -> rondo_status;
}
extern "C" {
    pub fn rondo_checkpoint_save(
        executor: *mut rondo_executor,
        path: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_checkpoint_load(
        executor: *mut rondo_executor,
        path: *const ::std::os::raw::c_char,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_checkpoint_read(
        path: *const ::std::os::raw::c_char,
        variable: *const ::std::os::raw::c_char,
        out_value: *mut rondo_tensor,
    ) -> rondo_status;
}
extern "C" {
    pub fn rondo_executor_get_trained(
        executor: *mut rondo_executor,
        model: *const rondo_program,
        out_program: *mut *mut rondo_program,
    ) -> rondo_status;
}
