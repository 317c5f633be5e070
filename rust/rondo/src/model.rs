//! Tensors, and models that run.
// SPDX-License-Identifier: Apache-2.0
use crate::error::{check, Error, Result};
use crate::stream::Device;
use crate::{c_text, sys, text};
use std::os::raw::c_char;
use std::ptr::null_mut;

mod sealed {
    pub trait Sealed {}
}

/// A type of elements: any bits are a value of it.
pub trait Element: sealed::Sealed + Copy + Default + 'static {
    #[doc(hidden)]
    const DTYPE: i32;
}

macro_rules! elements {
    ($($kind:ty => $dtype:ident),* $(,)?) => {
        $(impl sealed::Sealed for $kind {}
        impl Element for $kind {
            const DTYPE: i32 = sys::$dtype as i32;
        })*
    };
}

elements!(
    f32 => RONDO_DTYPE_F32, f64 => RONDO_DTYPE_F64,
    i8 => RONDO_DTYPE_I8, i16 => RONDO_DTYPE_I16, i32 => RONDO_DTYPE_I32, i64 => RONDO_DTYPE_I64,
    u8 => RONDO_DTYPE_U8, u16 => RONDO_DTYPE_U16, u32 => RONDO_DTYPE_U32, u64 => RONDO_DTYPE_U64,
);

/// A dense tensor in host memory.
pub struct Tensor(sys::rondo_tensor);

// SAFETY: the bytes are this tensor's, their count is atomic (rondo/tensor.h).
unsafe impl Send for Tensor {}
// SAFETY: nothing is written through a shared reference.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// A tensor of these extents, with a copy of the values.
    pub fn new<T: Element>(shape: &[usize], values: &[T]) -> Result<Tensor> {
        let mut raw = sys::rondo_shape { rank: shape.len() as i32, ..Default::default() };
        if shape.len() > raw.extent.len() {
            return Err(Error::invalid("a tensor has at most 8 axes"));
        }
        for (extent, &wanted) in raw.extent.iter_mut().zip(shape) {
            *extent = i64::try_from(wanted).map_err(|_| Error::invalid("an extent is too large"))?;
        }
        let mut tensor = Tensor(sys::rondo_tensor::default());
        // SAFETY: both structs live as long as the call.
        check(unsafe { sys::rondo_tensor_init(T::DTYPE, &raw, &mut tensor.0) })?;
        // SAFETY: the tensor is there.
        let bytes = unsafe { sys::rondo_tensor_get_bytes(&tensor.0) };
        if bytes != std::mem::size_of_val(values) {
            return Err(Error::invalid("the shape has another number of elements than there are"));
        }
        if bytes > 0 {
            // SAFETY: both have these bytes, and the tensor's were made just now.
            unsafe {
                std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), tensor.0.data.cast(), bytes)
            };
        }
        Ok(tensor)
    }

    /// The extents.
    pub fn shape(&self) -> Vec<usize> {
        let rank = self.0.shape.rank.max(0) as usize;
        self.0.shape.extent.iter().take(rank).map(|&extent| extent as usize).collect()
    }

    /// The elements, row by row; None where they are of another type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if self.0.dtype != T::DTYPE || !self.0.device.is_null() {
            return None;
        }
        // SAFETY: the tensor is there.
        let bytes = unsafe { sys::rondo_tensor_get_bytes(&self.0) };
        if bytes == 0 {
            return Some(&[]);
        }
        // SAFETY: so many elements of this type, any bits are a value, and the tensor keeps them.
        Some(unsafe {
            std::slice::from_raw_parts(self.0.data.cast(), bytes / std::mem::size_of::<T>())
        })
    }

    /// The elements of a tensor of strings; None for others.
    pub fn strings(&self) -> Option<Vec<String>> {
        if self.0.dtype != sys::RONDO_DTYPE_STRING as i32 {
            return None;
        }
        // SAFETY: the tensor has so many strings, each with so many bytes.
        unsafe {
            let count = sys::rondo_shape_get_count(&self.0.shape).max(0) as usize;
            let first = self.0.data.cast::<sys::rondo_string>();
            let read = |i: usize| {
                let string = &*first.add(i);
                if string.size == 0 {
                    return String::new();
                }
                let bytes = std::slice::from_raw_parts(string.data.cast::<u8>(), string.size);
                String::from_utf8_lossy(bytes).into_owned()
            };
            Some((0..count).map(read).collect())
        }
    }

    /// The name of the element type: "f32", "i64", "string".
    pub fn dtype(&self) -> String {
        // SAFETY: the text is static.
        unsafe { text(sys::rondo_dtype_get_name(self.0.dtype)) }
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: this tensor's share of the bytes.
        unsafe { sys::rondo_tensor_deinit(&mut self.0) };
    }
}

/// An input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The name to feed or fetch by.
    pub name: String,
    /// "f32" and so on.
    pub dtype: String,
    /// The extents; None where they are symbolic or unknown.
    pub shape: Option<Vec<Option<usize>>>,
}

/// An ONNX model on a device: the first run is eager, the second captured, the others are replayed.
pub struct Session {
    executor: *mut sys::rondo_executor,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    _device: Device,
}

// SAFETY: an executor is used by one thread at a time, which need not be the same.
unsafe impl Send for Session {}

struct Program(*mut sys::rondo_program);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: executors keep what they need of it.
        unsafe { sys::rondo_program_destroy(self.0) };
    }
}

type GetPort = unsafe extern "C" fn(
    *const sys::rondo_program,
    usize,
    *mut sys::rondo_port,
) -> sys::rondo_status;

impl Program {
    fn ports(&self, count: usize, get: GetPort) -> Result<Vec<Port>> {
        let read = |index| {
            let mut raw = sys::rondo_port {
                struct_size: std::mem::size_of::<sys::rondo_port>(),
                ..Default::default()
            };
            // SAFETY: the struct has its size; texts in it are the program's, and copied.
            unsafe {
                check(get(self.0, index, &mut raw))?;
                let shape = usize::try_from(raw.rank).ok().map(|rank| {
                    let extents = raw.extent.iter().take(rank);
                    extents.map(|&extent| usize::try_from(extent).ok()).collect()
                });
                let dtype = text(sys::rondo_dtype_get_name(raw.dtype));
                Ok(Port { name: text(raw.name), dtype, shape })
            }
        };
        (0..count).map(read).collect()
    }
}

impl Session {
    /// Reads a model from a file. The file must not be changed while the session lives.
    ///
    /// # Safety
    /// Weights are mapped from the file where it allows that: who cuts or changes it meanwhile changes
    /// them, or ends the process.
    pub unsafe fn load(path: &str, device: &Device) -> Result<Session> {
        let mut program = null_mut();
        // SAFETY: both arguments live as long as the call.
        check(unsafe { sys::rondo_program_load_onnx(c_text(path).as_ptr(), &mut program) })?;
        Session::make(Program(program), device)
    }

    /// Reads a model from memory, which is copied.
    pub fn parse(bytes: &[u8], device: &Device) -> Result<Session> {
        let mut program = null_mut();
        // SAFETY: so many bytes are there for the call.
        check(unsafe {
            sys::rondo_program_parse_onnx(bytes.as_ptr().cast(), bytes.len(), &mut program)
        })?;
        Session::make(Program(program), device)
    }

    fn make(program: Program, device: &Device) -> Result<Session> {
        let mut executor = null_mut();
        // SAFETY: program and device are there; NULL options are the defaults.
        check(unsafe {
            sys::rondo_executor_create(
                program.0,
                device.as_ptr(),
                std::ptr::null(),
                &mut executor,
            )
        })?;
        let mut session = Session {
            executor,
            inputs: Vec::new(),
            outputs: Vec::new(),
            _device: device.clone(),
        };
        // SAFETY: the program is there.
        let (inputs, outputs) = unsafe {
            (
                sys::rondo_program_get_input_count(program.0),
                sys::rondo_program_get_output_count(program.0),
            )
        };
        session.inputs = program.ports(inputs, sys::rondo_program_get_input)?;
        session.outputs = program.ports(outputs, sys::rondo_program_get_output)?;
        Ok(session)
    }

    /// The inputs that each run needs.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// The outputs, in the order in which `run` gives them.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Runs, waits, and gives all outputs.
    pub fn run(&mut self, feeds: &[(&str, &Tensor)]) -> Result<Vec<Tensor>> {
        let names: Vec<_> = feeds.iter().map(|(name, _)| c_text(name)).collect();
        let bind = |name: *const c_char, tensor: sys::rondo_tensor| sys::rondo_binding { name, tensor };
        let fed: Vec<_> =
            names.iter().zip(feeds).map(|(name, (_, tensor))| bind(name.as_ptr(), tensor.0)).collect();
        let wanted: Vec<_> = self.outputs.iter().map(|port| c_text(&port.name)).collect();
        let mut fetched: Vec<_> =
            wanted.iter().map(|name| bind(name.as_ptr(), Default::default())).collect();
        // SAFETY: names and tensors live as long as the call, which waits.
        check(unsafe {
            sys::rondo_executor_run(
                self.executor,
                fed.as_ptr(),
                fed.len(),
                fetched.as_mut_ptr(),
                fetched.len(),
            )
        })?;
        Ok(fetched.into_iter().map(|binding| Tensor(binding.tensor)).collect())
    }

    /// Whether the last run was a replay.
    pub fn was_replayed(&self) -> bool {
        let mut times = sys::rondo_run_times {
            struct_size: std::mem::size_of::<sys::rondo_run_times>(),
            ..Default::default()
        };
        // SAFETY: the struct has its size.
        unsafe { sys::rondo_executor_get_times(self.executor, &mut times) == 0 && times.was_replayed }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: it waits for its work.
        unsafe { sys::rondo_executor_destroy(self.executor) };
    }
}
