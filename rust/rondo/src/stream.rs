//! Devices, streams, buffers, graphs, generators.
// SPDX-License-Identifier: Apache-2.0
use crate::error::{check, read_report, Error, Result};
use crate::model::Element;
use crate::{c_text, sys, text};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut, NonNull};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

// ---- devices ----------------------------------------------------------------------------------

/// A GPU ("cuda:0") or this machine's processor ("host"). Clones are the same device.
pub struct Device(NonNull<sys::rondo_device>);

// SAFETY: any thread may call what devices have, several at once (rondo/rondo.h).
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// "host", "cuda:0", or "auto": the first usable GPU, otherwise the host.
    pub fn open(name: &str) -> Result<Device> {
        let mut device = null_mut();
        // SAFETY: both arguments live as long as the call.
        check(unsafe { sys::rondo_device_open(c_text(name).as_ptr(), &mut device) })?;
        NonNull::new(device).map(Device).ok_or_else(|| Error::invalid("there is no device"))
    }

    /// "host", "cuda:0".
    pub fn name(&self) -> String {
        // SAFETY: the name is the device's, and copied.
        unsafe { text(sys::rondo_device_get_name(self.as_ptr())) }
    }

    /// The C object, borrowed.
    pub fn as_ptr(&self) -> *mut sys::rondo_device {
        self.0.as_ptr()
    }
}

impl Clone for Device {
    fn clone(&self) -> Device {
        // SAFETY: the device is there; the clone gives the reference back.
        unsafe { sys::rondo_device_retain(self.as_ptr()) };
        Device(self.0)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: one reference is this object's.
        unsafe { sys::rondo_device_release(self.as_ptr()) };
    }
}

// ---- what work needs --------------------------------------------------------------------------

/// What must stay until work has run, or for as long as a graph may replay it.
#[allow(dead_code)] // kept, not read
enum Kept {
    Memory(Rc<Memory>),
    Function(Box<HostFunction>),
    Generator(Rc<GeneratorInner>),
}

/// Each thing once, however often work needs it: a stream that nobody waits for stays small.
#[derive(Default)]
struct Keeps {
    list: Vec<Kept>,
    seen: HashSet<*const ()>, // memory and generators of the list
}

impl Keeps {
    fn add(&mut self, kept: Kept) {
        let is_new = match &kept {
            Kept::Memory(memory) => self.seen.insert(Rc::as_ptr(memory).cast()),
            Kept::Generator(generator) => self.seen.insert(Rc::as_ptr(generator).cast()),
            Kept::Function(_) => true,
        };
        if is_new {
            self.list.push(kept);
        }
    }
}

type Panic = Box<dyn Any + Send + 'static>;

struct HostFunction {
    function: Mutex<Box<dyn FnMut() + Send>>,
    panic: Arc<Mutex<Option<Panic>>>,
}

/// Runs a closure for the library; `arguments` are the address of its HostFunction.
unsafe extern "C" fn run_function(arguments: *mut c_void) {
    // SAFETY: the stream or graph that was given the function keeps it until it has run.
    let host = unsafe { &**arguments.cast::<*const HostFunction>() };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if let Ok(mut function) = host.function.lock() {
            function();
        }
    }));
    if let (Err(panic), Ok(mut slot)) = (outcome, host.panic.lock()) {
        slot.get_or_insert(panic);
    }
}

struct Memory {
    address: *mut c_void,
    device: Device,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: whoever had work with it has let go of it only when that had finished.
        unsafe { sys::rondo_memory_free(self.device.as_ptr(), self.address) };
    }
}

// ---- streams ----------------------------------------------------------------------------------

struct StreamInner {
    stream: *mut sys::rondo_stream,
    device: Device,
    pending: RefCell<Keeps>,
    // Of the capture that is open: what its graph will keep.
    recorded: RefCell<Option<Keeps>>,
    panic: Arc<Mutex<Option<Panic>>>,
}

impl StreamInner {
    fn keep(&self, kept: Kept) {
        match &mut *self.recorded.borrow_mut() {
            Some(recorded) => recorded.add(kept),
            None => self.pending.borrow_mut().add(kept),
        }
    }
}

impl Drop for StreamInner {
    fn drop(&mut self) {
        // SAFETY: it waits for its work; what that needs goes behind it.
        unsafe { sys::rondo_stream_destroy(self.stream) };
    }
}

/// An ordered queue of work. It stays on its thread, and so do its buffers and graphs.
#[derive(Clone)]
pub struct Stream(Rc<StreamInner>);

impl Stream {
    /// Makes a stream.
    pub fn new(device: &Device) -> Result<Stream> {
        let mut stream = null_mut();
        // SAFETY: the device is there; NULL options are the defaults.
        check(unsafe { sys::rondo_stream_create(device.as_ptr(), null(), &mut stream) })?;
        Ok(Stream(Rc::new(StreamInner {
            stream,
            device: device.clone(),
            pending: RefCell::default(),
            recorded: RefCell::default(),
            panic: Arc::default(),
        })))
    }

    /// The device of the stream.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The C object, borrowed.
    pub fn as_ptr(&self) -> *mut sys::rondo_stream {
        self.0.stream
    }

    /// Waits until all work has finished. A panic of a closure that ran on the stream goes on here.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is there.
        check(unsafe { sys::rondo_stream_synchronize(self.as_ptr()) })?;
        drop(self.0.pending.take()); // closures may drop what uses the stream
        let panic = self.0.panic.lock().ok().and_then(|mut slot| slot.take());
        match panic {
            Some(panic) => resume_unwind(panic),
            None => Ok(()),
        }
    }

    /// Memory of the device for work on this stream, filled with zeros; not while the stream records.
    pub fn buffer<T: Element>(&self, count: usize) -> Result<Buffer<T>> {
        if self.0.recorded.borrow().is_some() {
            return Err(Error::invalid("make buffers before the capture: they are filled at once"));
        }
        let bytes = count
            .checked_mul(std::mem::size_of::<T>())
            .ok_or_else(|| Error::invalid("a buffer of so many elements is too large"))?;
        let mut address = null_mut();
        let device = self.device().clone();
        // SAFETY: the device is there.
        check(unsafe {
            sys::rondo_memory_allocate(
                device.as_ptr(),
                sys::RONDO_MEMORY_DEVICE as i32,
                bytes,
                &mut address,
            )
        })?;
        let memory = Rc::new(Memory { address, device });
        let buffer = Buffer { memory, count, stream: self.0.clone(), element: PhantomData };
        self.fill_bytes(&buffer)?;
        Ok(buffer)
    }

    fn fill_bytes<T: Element>(&self, buffer: &Buffer<T>) -> Result<()> {
        self.fill_elements(buffer, 0, 1, buffer.count * std::mem::size_of::<T>())
    }

    fn fill_elements<T>(&self, to: &Buffer<T>, value: u32, size: u32, count: usize) -> Result<()> {
        self.own(to)?;
        self.0.keep(Kept::Memory(to.memory.clone()));
        // SAFETY: the memory has these bytes, and is kept until the work is done.
        check(unsafe {
            sys::rondo_stream_fill(self.as_ptr(), to.memory.address, value, size, count)
        })
    }

    /// Sets every element to the low bytes of `value`; of elements of 1, 2 or 4 bytes.
    pub fn fill<T: Element>(&self, to: &Buffer<T>, value: u32) -> Result<()> {
        self.fill_elements(to, value, std::mem::size_of::<T>() as u32, to.count)
    }

    /// Copies all elements of one buffer to another, which has as many.
    pub fn copy<T: Element>(&self, to: &Buffer<T>, from: &Buffer<T>) -> Result<()> {
        self.own(to)?;
        self.own(from)?;
        if to.count != from.count || Rc::ptr_eq(&to.memory, &from.memory) {
            return Err(Error::invalid("copy: two buffers of as many elements each are needed"));
        }
        self.0.keep(Kept::Memory(to.memory.clone()));
        self.0.keep(Kept::Memory(from.memory.clone()));
        // SAFETY: both have these bytes, do not overlap, and are kept until the work is done.
        check(unsafe {
            sys::rondo_stream_copy(
                self.as_ptr(),
                to.memory.address,
                from.memory.address,
                to.count * std::mem::size_of::<T>(),
                sys::RONDO_COPY_DEVICE_TO_DEVICE as i32,
            )
        })
    }

    /// Writes the elements, and waits; not while the stream records.
    pub fn write<T: Element>(&self, to: &Buffer<T>, values: &[T]) -> Result<()> {
        self.own(to)?;
        if values.len() != to.count {
            return Err(Error::invalid("write: the buffer has another number of elements"));
        }
        let mut values = values.to_vec();
        self.move_elements(to, &mut values, sys::RONDO_COPY_HOST_TO_DEVICE).map(drop)
    }

    /// Reads the elements when all work has finished; not while the stream records.
    pub fn read<T: Element>(&self, from: &Buffer<T>) -> Result<Vec<T>> {
        self.own(from)?;
        let mut values = vec![T::default(); from.count];
        self.move_elements(from, &mut values, sys::RONDO_COPY_DEVICE_TO_HOST)?;
        Ok(values)
    }

    /// Copies between a buffer and as many elements, and waits.
    fn move_elements<T: Element>(
        &self,
        buffer: &Buffer<T>,
        values: &mut Vec<T>,
        kind: u32,
    ) -> Result<()> {
        self.synchronize()?;
        let bytes = std::mem::size_of_val(&values[..]);
        let (inside, outside) = (buffer.memory.address, values.as_mut_ptr().cast::<c_void>());
        let is_read = kind == sys::RONDO_COPY_DEVICE_TO_HOST;
        let (to, from) = if is_read { (outside, inside) } else { (inside, outside) };
        self.0.keep(Kept::Memory(buffer.memory.clone()));
        // SAFETY: both have these bytes, and stay until the wait below has succeeded.
        check(unsafe { sys::rondo_stream_copy(self.as_ptr(), to, from, bytes, self.kind(kind)) })?;
        let waited = self.synchronize();
        if waited.is_err() {
            // The copy may be under way for ever: its memory is not given back.
            std::mem::forget(std::mem::take(values));
        }
        waited
    }

    fn kind(&self, kind: u32) -> i32 {
        // SAFETY: the device is there.
        if unsafe { sys::rondo_device_is_host(self.device().as_ptr()) } {
            sys::RONDO_COPY_DEVICE_TO_DEVICE as i32
        } else {
            kind as i32
        }
    }

    fn own<T>(&self, buffer: &Buffer<T>) -> Result<()> {
        if Rc::ptr_eq(&buffer.stream, &self.0) {
            return Ok(());
        }
        Err(Error::invalid("the buffer is for work on another stream"))
    }

    /// Runs a closure on the processor, in stream order; recorded, it runs at each replay. It must not
    /// call this crate for the same device.
    pub fn call(&self, name: &'static str, function: impl FnMut() + Send + 'static) -> Result<()> {
        let host = Box::new(HostFunction {
            function: Mutex::new(Box::new(function)),
            panic: self.0.panic.clone(),
        });
        let address: *const HostFunction = &*host;
        let label = leak_name(name);
        self.0.keep(Kept::Function(host));
        // SAFETY: the address is copied; what it points to is kept until the work is done.
        check(unsafe {
            sys::rondo_stream_call_host(
                self.as_ptr(),
                label,
                Some(run_function),
                (&address as *const *const HostFunction).cast(),
                std::mem::size_of::<*const HostFunction>(),
            )
        })
    }

    /// Records what the closure puts on the stream: nothing runs before a replay.
    ///
    /// An error or a panic of the closure gives the capture up. Where the capture was broken, the error
    /// has the report on it. The stream can record again either way.
    pub fn capture(&self, step: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        if self.0.recorded.borrow().is_some() {
            return Err(Error::invalid("the stream records already"));
        }
        let mut graph = null_mut();
        // SAFETY: the device is there; NULL options are the defaults.
        check(unsafe { sys::rondo_graph_create(self.device().as_ptr(), null(), &mut graph) })?;
        let mut inner = GraphInner { graph, kept: Keeps::default(), stream: self.0.clone() };
        // SAFETY: graph and stream are there, the stream until the end, as `inner` keeps it.
        check(unsafe {
            sys::rondo_graph_capture_begin(
                graph,
                self.as_ptr(),
                sys::RONDO_CAPTURE_THREAD_LOCAL as i32,
            )
        })?;
        *self.0.recorded.borrow_mut() = Some(Keeps::default());
        let outcome = catch_unwind(AssertUnwindSafe(|| step(self)));
        let kept = self.0.recorded.borrow_mut().take().unwrap_or_default();
        inner.kept = kept;
        let step = match outcome {
            Ok(result) => result,
            Err(panic) => {
                // SAFETY: this thread began the capture.
                unsafe { sys::rondo_graph_capture_abort(graph) };
                resume_unwind(panic)
            }
        };
        // SAFETY: this thread began the capture; a step that failed may have broken it.
        let (ended, report) = unsafe {
            match step {
                Ok(()) => (check(sys::rondo_graph_capture_end(graph)), read_report(graph)),
                Err(error) => {
                    let mut recording = true;
                    let asked = sys::rondo_stream_is_recording(self.as_ptr(), &mut recording);
                    let mut report = None;
                    if asked == 0 && !recording && sys::rondo_graph_capture_end(graph) != 0 {
                        report = read_report(graph);
                    }
                    sys::rondo_graph_capture_abort(graph);
                    (Err(error), report)
                }
            }
        };
        match ended {
            Ok(()) => Ok(Graph(inner)),
            Err(error) => Err(Error { report, ..error }),
        }
    }
}

/// Names of work stay for as long as the library does; each is made once.
fn leak_name(name: &'static str) -> *const std::os::raw::c_char {
    use std::collections::HashMap;
    static NAMES: Mutex<Option<HashMap<&'static str, &'static std::ffi::CStr>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let names = names.get_or_insert_with(HashMap::new);
    names.entry(name).or_insert_with(|| Box::leak(c_text(name).into_boxed_c_str())).as_ptr()
}

// ---- buffers ----------------------------------------------------------------------------------

/// Elements in a device's memory, for work on one stream.
pub struct Buffer<T> {
    memory: Rc<Memory>,
    count: usize,
    stream: Rc<StreamInner>,
    element: PhantomData<T>,
}

impl<T> Buffer<T> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

// ---- graphs -----------------------------------------------------------------------------------

struct GraphInner {
    graph: *mut sys::rondo_graph,
    #[allow(dead_code)] // kept, not read
    kept: Keeps,
    stream: Rc<StreamInner>,
}

impl Drop for GraphInner {
    fn drop(&mut self) {
        // SAFETY: it waits for replays; what they need goes behind it.
        unsafe { sys::rondo_graph_destroy(self.graph) };
    }
}

/// Work that was recorded once.
pub struct Graph(GraphInner);

impl Graph {
    /// Puts the recorded work on the stream that it was recorded on.
    pub fn replay(&self) -> Result<()> {
        if self.0.stream.recorded.borrow().is_some() {
            return Err(Error::invalid("the stream records: a replay cannot be recorded"));
        }
        // SAFETY: both are there, and what the nodes need is the graph's.
        check(unsafe { sys::rondo_graph_replay(self.0.graph, self.0.stream.stream) })
    }

    /// Makes the first replay cost no more than later ones.
    pub fn upload(&self) -> Result<()> {
        // SAFETY: both are there.
        check(unsafe { sys::rondo_graph_upload(self.0.graph, self.0.stream.stream) })
    }

    /// How many nodes the graph has.
    pub fn node_count(&self) -> Result<u64> {
        let mut stats = sys::rondo_graph_stats {
            struct_size: std::mem::size_of::<sys::rondo_graph_stats>(),
            ..Default::default()
        };
        // SAFETY: the struct has its size.
        check(unsafe { sys::rondo_graph_get_stats(self.0.graph, &mut stats) })?;
        Ok(stats.node_count)
    }

    /// The C object, borrowed.
    pub fn as_ptr(&self) -> *mut sys::rondo_graph {
        self.0.graph
    }
}

// ---- random numbers ---------------------------------------------------------------------------

struct GeneratorInner(*mut sys::rondo_generator);

impl Drop for GeneratorInner {
    fn drop(&mut self) {
        // SAFETY: one reference is this object's; graphs have their own.
        unsafe { sys::rondo_generator_release(self.0) };
    }
}

/// Random numbers that replays draw anew, the same on every device. It stays on its thread.
pub struct Generator(Rc<GeneratorInner>);

impl Generator {
    /// At the start of the seed's sequence.
    pub fn new(device: &Device, seed: u64) -> Result<Generator> {
        let mut generator = null_mut();
        // SAFETY: the device is there.
        check(unsafe { sys::rondo_generator_create(device.as_ptr(), seed, &mut generator) })?;
        Ok(Generator(Rc::new(GeneratorInner(generator))))
    }

    /// Fills the buffer with normally distributed numbers.
    pub fn normal(&self, stream: &Stream, out: &Buffer<f32>) -> Result<()> {
        stream.own(out)?;
        stream.0.keep(Kept::Memory(out.memory.clone()));
        stream.0.keep(Kept::Generator(self.0.clone()));
        // SAFETY: the memory has that many elements, and is kept until the work is done.
        check(unsafe {
            sys::rondo_random_normal(
                self.0 .0,
                stream.as_ptr(),
                sys::RONDO_DTYPE_F32 as i32,
                out.memory.address,
                out.count,
                0.0,
                1.0,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_work_needs_is_kept_once() {
        let stream = Stream::new(&Device::open("host").unwrap()).unwrap();
        let x = stream.buffer::<f32>(4).unwrap();
        for _ in 0..1000 {
            stream.fill(&x, 0).unwrap();
        }
        assert_eq!(stream.0.pending.borrow().list.len(), 1);
        stream.synchronize().unwrap();
        assert!(stream.0.pending.borrow().list.is_empty());
    }

    thread_local!(static OWN: RefCell<Option<Stream>> = const { RefCell::new(None) });

    struct Late;

    impl Drop for Late {
        fn drop(&mut self) {
            OWN.with(|own| own.borrow().as_ref().unwrap().call("late", || {}).unwrap());
        }
    }

    #[test]
    fn a_closure_that_goes_may_put_work_on_the_stream() {
        let stream = Stream::new(&Device::open("host").unwrap()).unwrap();
        OWN.with(|own| *own.borrow_mut() = Some(stream.clone()));
        let late = Late;
        stream.call("first", move || _ = &late).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(stream.0.pending.borrow().list.len(), 1);
        stream.synchronize().unwrap();
        OWN.with(|own| own.borrow_mut().take());
    }
}
