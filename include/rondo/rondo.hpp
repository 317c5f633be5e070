// rondo/rondo.hpp — the C API for C++17: owners that release, spans, a status that must be looked at.
//
//   #include <rondo/rondo.hpp>
//
//   rondo::Result<rondo::Device> device = rondo::Device::open("host");
//   if (!device) { return report(device.status()); }          // name(), message(), call()
//   rondo::Result<rondo::Stream> stream = rondo::Stream::create(*device);
//   rondo::Result<rondo::Graph> graph = rondo::Graph::capture(*device, *stream, [&] {
//       return stream->call("step", [&x] { ++x; });           // recorded, not run
//   });
//   rondo::Status status = graph->replay(*stream);
//
// Nothing throws, and nothing needs exceptions or RTTI. Owners are moved, not copied, and those of
// counted objects share by share(). What is not here is called through get(), which lends the C
// object; comments of the C headers hold for all of it. Models (Program, Executor) are here where
// rondo/models.h was included before, or RONDO_HPP_MODELS is defined.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_RONDO_HPP
#define RONDO_RONDO_HPP

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#ifdef RONDO_HPP_MODELS
#include "rondo/models.h"
#else
#include "rondo/rondo.h"
#endif

// Newer compilers of -Weverything want no addresses at all, which a C library's header is about.
#if defined(__clang__) && defined(__has_warning)
#pragma clang diagnostic push
#if __has_warning("-Wunsafe-buffer-usage")
#pragma clang diagnostic ignored "-Wunsafe-buffer-usage"
#endif
#endif

namespace rondo {

// ---- statuses and results -----------------------------------------------------------------------

// How a call went. The compiler warns where one is dropped.
class [[nodiscard]] Status {
   public:
    constexpr Status() noexcept = default;
    constexpr Status(rondo_status code) noexcept : code_(code) {
    }  // as C calls give it

    constexpr bool ok() const noexcept {
        return code_ == RONDO_STATUS_OK;
    }
    constexpr explicit operator bool() const noexcept {
        return ok();
    }
    constexpr rondo_status code() const noexcept {
        return code_;
    }
    const char *name() const noexcept {
        return rondo_status_get_name(code_);
    }

    // Of the latest failure on this thread, which is this one until the next.
    static const char *message() noexcept {
        return rondo_error_get_last()->message;
    }
    static const char *call() noexcept {
        return rondo_error_get_last()->call;
    }

    // For the rare status that does not matter.
    void ignore() const noexcept {
    }

   private:
    rondo_status code_ = RONDO_STATUS_OK;
};

constexpr bool operator==(Status a, Status b) noexcept {
    return a.code() == b.code();
}
constexpr bool operator!=(Status a, Status b) noexcept {
    return a.code() != b.code();
}

// A value, or why there is none. `*result` and `result->` are for results that were looked at.
template <typename T>
class [[nodiscard]] Result {
   public:
    Result(T &&value) noexcept : value_(std::move(value)) {
    }
    Result(Status status) noexcept : status_(status) {
    }

    bool ok() const noexcept {
        return status_.ok();
    }
    explicit operator bool() const noexcept {
        return ok();
    }
    Status status() const noexcept {
        return status_;
    }
    T &operator*() noexcept {
        return value_;
    }
    const T &operator*() const noexcept {
        return value_;
    }
    T *operator->() noexcept {
        return &value_;
    }
    const T *operator->() const noexcept {
        return &value_;
    }

   private:
    T value_;
    Status status_;
};

// ---- spans --------------------------------------------------------------------------------------

// Several elements that somebody else owns.
template <typename T>
class Span {
   public:
    constexpr Span() noexcept = default;
    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {
    }
    template <std::size_t N>
    constexpr Span(T (&array)[N]) noexcept : data_(array), size_(N) {
    }
    // Vectors, arrays, other spans: what has data() and size().
    template <typename Container, typename = std::enable_if_t<std::is_convertible_v<
                                      decltype(std::declval<Container &>().data()), T *>>>
    constexpr Span(Container &&container) noexcept
        : data_(container.data()), size_(container.size()) {
    }

    constexpr T *data() const noexcept {
        return data_;
    }
    constexpr std::size_t size() const noexcept {
        return size_;
    }
    constexpr std::size_t size_bytes() const noexcept {
        return size_ * sizeof(T);
    }
    constexpr bool empty() const noexcept {
        return size_ == 0;
    }
    constexpr T &operator[](std::size_t index) const noexcept {
        return data_[index];
    }
    constexpr T *begin() const noexcept {
        return data_;
    }
    constexpr T *end() const noexcept {
        return data_ + size_;
    }

   private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

// ---- owners -------------------------------------------------------------------------------------

// A C object, and the call that destroys or releases it.
template <typename T, void (*Destroy)(T *)>
class Owner {
   public:
    constexpr Owner() noexcept = default;
    explicit constexpr Owner(T *object) noexcept : object_(object) {
    }
    Owner(Owner &&other) noexcept : object_(other.release()) {
    }
    Owner &operator=(Owner &&other) noexcept {
        if (this != &other) {
            reset(other.release());
        }
        return *this;
    }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    ~Owner() {
        reset();
    }

    T *get() const noexcept {
        return object_;
    }
    explicit operator bool() const noexcept {
        return object_ != nullptr;
    }
    // Hands the object over to the caller.
    T *release() noexcept {
        return std::exchange(object_, nullptr);
    }
    void reset(T *object = nullptr) noexcept {
        T *old = std::exchange(object_, object);
        if (old != nullptr) {
            Destroy(old);
        }
    }

   private:
    T *object_ = nullptr;
};

namespace detail {

// A result of what a C call of the form f(..., T **out) makes.
template <typename Class, typename T, typename Call>
Result<Class> make(Call &&call) noexcept {
    T *object = nullptr;
    const Status status = call(&object);
    if (!status) {
        return status;
    }
    return Class(object);
}

// A struct with its size, and zeroes.
template <typename T>
T sized() noexcept {
    T value = {};
    value.struct_size = sizeof(T);
    return value;
}

// What a C call of the form get(..., T *out) fills in.
template <typename T, typename Call>
Result<T> fill(Call &&call) noexcept {
    T value = sized<T>();
    const Status status = call(&value);
    if (!status) {
        return status;
    }
    return Result<T>(std::move(value));
}

// Calls a callable of C++ from C: a step that returns a Status.
template <typename Step>
rondo_status run_step(rondo_stream *stream, void *data) noexcept;

}  // namespace detail

class Device : public Owner<rondo_device, rondo_device_release> {
   public:
    using Owner::Owner;

    // "host", "cuda:0", "auto".
    static Result<Device> open(const char *name) noexcept {
        return detail::make<Device, rondo_device>(
            [&](rondo_device **out) { return rondo_device_open(name, out); });
    }
    Device share() const noexcept {
        rondo_device_retain(get());
        return Device(get());
    }
    const char *name() const noexcept {
        return rondo_device_get_name(get());
    }
    bool is_host() const noexcept {
        return rondo_device_is_host(get());
    }
    Status synchronize() const noexcept {
        return rondo_device_synchronize(get());
    }
    Result<rondo_device_info> info() const noexcept {
        return detail::fill<rondo_device_info>(
            [&](rondo_device_info *out) { return rondo_device_get_info(get(), out); });
    }
};

class Event : public Owner<rondo_event, rondo_event_destroy> {
   public:
    using Owner::Owner;

    static Result<Event> create(const Device &device, std::uint32_t flags = 0) noexcept {
        return detail::make<Event, rondo_event>(
            [&](rondo_event **out) { return rondo_event_create(device.get(), flags, out); });
    }
    Status synchronize() const noexcept {
        return rondo_event_synchronize(get());
    }
};

// Memory of a device; freed before its device goes, which it keeps.
class Memory {
   public:
    Memory() noexcept = default;
    Memory(Memory &&other) noexcept
        : device_(std::move(other.device_)),
          address_(std::exchange(other.address_, nullptr)),
          bytes_(std::exchange(other.bytes_, std::size_t{0})) {
    }
    Memory &operator=(Memory &&other) noexcept {
        if (this != &other) {
            free();
            device_ = std::move(other.device_);
            address_ = std::exchange(other.address_, nullptr);
            bytes_ = std::exchange(other.bytes_, std::size_t{0});
        }
        return *this;
    }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory() {
        free();
    }

    static Result<Memory> allocate(const Device &device, std::size_t bytes,
                                   rondo_memory_kind kind = RONDO_MEMORY_DEVICE) noexcept {
        Memory memory;
        const Status status = rondo_memory_allocate(device.get(), kind, bytes, &memory.address_);
        if (!status) {
            return status;
        }
        memory.device_ = device.share();
        memory.bytes_ = bytes;
        return Result<Memory>(std::move(memory));
    }
    void *get() const noexcept {
        return address_;
    }
    std::size_t size_bytes() const noexcept {
        return bytes_;
    }
    // The bytes as elements; of a GPU only for calls that take addresses there.
    template <typename T>
    Span<T> as() const noexcept {
        return Span<T>(static_cast<T *>(address_), bytes_ / sizeof(T));
    }

   private:
    void free() noexcept {
        if (address_ != nullptr) {
            rondo_memory_free(device_.get(), std::exchange(address_, nullptr));
        }
    }

    Device device_;
    void *address_ = nullptr;
    std::size_t bytes_ = 0;
};

class Stream : public Owner<rondo_stream, rondo_stream_destroy> {
   public:
    using Owner::Owner;

    static Result<Stream> create(const Device &device) noexcept {
        return detail::make<Stream, rondo_stream>(
            [&](rondo_stream **out) { return rondo_stream_create(device.get(), nullptr, out); });
    }
    // The program's own CUstream, which stays the program's.
    static Result<Stream> wrap(const Device &device, void *native) noexcept {
        return detail::make<Stream, rondo_stream>(
            [&](rondo_stream **out) { return rondo_stream_wrap(device.get(), native, out); });
    }
    Status synchronize() const noexcept {
        return rondo_stream_synchronize(get());
    }
    Status wait(const Event &event) const noexcept {
        return rondo_stream_wait_event(get(), event.get());
    }
    Status record(const Event &event) const noexcept {
        return rondo_event_record(event.get(), get());
    }
    void *native() const noexcept {
        return rondo_stream_get_native(get());
    }

    // Copies elements in stream order; on a GPU both in device memory, unless `kind` says otherwise.
    template <typename T>
    Status copy(Span<T> to, Span<const T> from,
                rondo_copy_kind kind = RONDO_COPY_DEVICE_TO_DEVICE) const noexcept {
        const std::size_t count = to.size() < from.size() ? to.size() : from.size();
        return rondo_stream_copy(get(), to.data(), from.data(), count * sizeof(T), kind);
    }
    // Sets elements of 1, 2 or 4 bytes.
    template <typename T>
    Status fill(Span<T> to, std::uint32_t value) const noexcept {
        static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4, "1, 2 or 4 bytes");
        return rondo_stream_fill(get(), to.data(), value, sizeof(T), to.size());
    }
    // Runs a function object on the processor in stream order. It is copied as bytes, so it holds
    // references, addresses and numbers; what it refers to stays for as long as the work, or the
    // graph, does. It must not throw.
    //
    // name       a literal.
    template <typename Function>
    Status call(const char *name, Function function) const noexcept {
        static_assert(std::is_trivially_copyable_v<Function> && sizeof(Function) <= 4096,
                      "captures must be references, addresses or numbers, up to 4096 bytes");
        static_assert(alignof(Function) <= 16, "arguments are aligned to 16 bytes");
        return rondo_stream_call_host(
            get(), name,
            [](void *bytes) noexcept { (*std::launder(static_cast<Function *>(bytes)))(); },
            &function, sizeof function);
    }
    Status launch(const rondo_launch &launch) const noexcept {
        return rondo_stream_launch(get(), &launch);
    }
};

// A scope of labels: what is put on the stream in it carries the name.
class Label {
   public:
    Label(const Stream &stream, const char *text) noexcept
        : stream_(rondo_label_push(stream.get(), text) == RONDO_STATUS_OK ? stream.get()
                                                                          : nullptr) {
    }
    Label(const Label &) = delete;
    Label &operator=(const Label &) = delete;
    ~Label() {
        if (stream_ != nullptr) {
            Status(rondo_label_pop(stream_)).ignore();
        }
    }

   private:
    rondo_stream *stream_;
};

class Arena : public Owner<rondo_arena, rondo_arena_release> {
   public:
    using Owner::Owner;

    static Result<Arena> create(const Device &device,
                                const rondo_arena_options *options = nullptr) noexcept {
        return detail::make<Arena, rondo_arena>(
            [&](rondo_arena **out) { return rondo_arena_create(device.get(), options, out); });
    }
    Status begin_round() const noexcept {
        return rondo_arena_begin_round(get());
    }
};

class Graph : public Owner<rondo_graph, rondo_graph_destroy> {
   public:
    using Owner::Owner;

    static rondo_graph_options options() noexcept {
        return detail::sized<rondo_graph_options>();
    }
    static Result<Graph> create(const Device &device,
                                const rondo_graph_options *options = nullptr) noexcept {
        return detail::make<Graph, rondo_graph>(
            [&](rondo_graph **out) { return rondo_graph_create(device.get(), options, out); });
    }

    // Records what `step` puts on the stream; it returns a Status. Whatever goes wrong, also where it
    // throws, the capture is over, stream and graph can record again, and report() says what broke
    // it.
    template <typename Step>
    Status record(const Stream &stream, Step &&step,
                  rondo_capture_mode mode = RONDO_CAPTURE_THREAD_LOCAL) const {
        const Status began = rondo_graph_capture_begin(get(), stream.get(), mode);
        if (!began) {
            return began;
        }
        Abort abort(get());
        const Status recorded = step();
        if (!recorded) {
            // A step that failed on a broken capture has a report; its end tells so.
            bool is_recording = false;
            if (rondo_stream_is_recording(stream.get(), &is_recording) == RONDO_STATUS_OK &&
                !is_recording) {
                Status(rondo_graph_capture_end(get())).ignore();
            }
            return recorded;
        }
        return rondo_graph_capture_end(get());
    }
    // The same into a new graph. Where that fails there is none, and so no report: message() has
    // one line of it.
    template <typename Step>
    static Result<Graph> capture(const Device &device, const Stream &stream, Step &&step,
                                 const rondo_graph_options *options = nullptr) {
        Result<Graph> graph = create(device, options);
        if (graph) {
            const Status status = graph->record(stream, std::forward<Step>(step));
            if (!status) {
                return status;
            }
        }
        return graph;
    }
    Status replay(const Stream &stream) const noexcept {
        return rondo_graph_replay(get(), stream.get());
    }
    Status upload(const Stream &stream) const noexcept {
        return rondo_graph_upload(get(), stream.get());
    }
    Status clear() const noexcept {
        return rondo_graph_reset(get());
    }
    Result<rondo_graph_stats> stats() const noexcept {
        return detail::fill<rondo_graph_stats>(
            [&](rondo_graph_stats *out) { return rondo_graph_get_stats(get(), out); });
    }
    // What broke the latest capture, as lines of text; "" where it did not fail.
    std::string report() const {
        const Result<rondo_capture_report> report = detail::fill<rondo_capture_report>(
            [&](rondo_capture_report *out) { return rondo_graph_get_report(get(), out); });
        if (!report || report->status == RONDO_STATUS_OK) {
            return {};
        }
        std::string text(rondo_capture_report_format(&*report, nullptr, 0) + 1, '\0');
        text.resize(rondo_capture_report_format(&*report, text.data(), text.size()));
        return text;
    }
    Status patch(Span<const rondo_patch> patches) const noexcept {
        return rondo_graph_patch(get(), patches.data(), patches.size());
    }
    // One node's work; its toggle stays.
    Status patch(rondo_node node, const rondo_work &work) const noexcept {
        return rondo_graph_patch_node(get(), node, &work);
    }

   private:
    // Ends a capture that an exception of the step leaves open; nothing happens after its end.
    class Abort {
       public:
        explicit Abort(rondo_graph *graph) noexcept : graph_(graph) {
        }
        Abort(const Abort &) = delete;
        Abort &operator=(const Abort &) = delete;
        ~Abort() {
            rondo_graph_capture_abort(graph_);
        }

       private:
        rondo_graph *graph_;
    };
};

// One call at the place of each launch, which runs, is recorded or is patched (rondo/stepper.h).
class Stepper : public Owner<rondo_stepper, rondo_stepper_destroy> {
   public:
    using Owner::Owner;

    static rondo_stepper_options options() noexcept {
        return detail::sized<rondo_stepper_options>();
    }
    static Result<Stepper> create(const Device &device,
                                  const rondo_stepper_options *options = nullptr) noexcept {
        return detail::make<Stepper, rondo_stepper>(
            [&](rondo_stepper **out) { return rondo_stepper_create(device.get(), options, out); });
    }
    Status begin(const Stream &stream) const noexcept {
        return rondo_stepper_begin(get(), stream.get());
    }
    Status put(const rondo_work &work) const noexcept {
        return rondo_stepper_put(get(), &work);
    }
    Status put(const rondo_launch &launch) const noexcept {
        rondo_work work = detail::sized<rondo_work>();
        work.kind = RONDO_NODE_KERNEL;
        work.launch = &launch;
        return put(work);
    }
    Status end() const noexcept {
        return rondo_stepper_end(get());
    }
    rondo_stepper_mode mode() const noexcept {
        return rondo_stepper_get_mode(get());
    }
    // The next step is the first again.
    Status start_over() const noexcept {
        return rondo_stepper_reset(get());
    }
    // For dumps and statistics; the stepper's.
    rondo_graph *graph() const noexcept {
        return rondo_stepper_get_graph(get());
    }
};

class Pool : public Owner<rondo_pool, rondo_pool_release> {
   public:
    using Owner::Owner;

    static Result<Pool> create(const Device &device,
                               const rondo_pool_options *options = nullptr) noexcept {
        return detail::make<Pool, rondo_pool>(
            [&](rondo_pool **out) { return rondo_pool_create(device.get(), options, out); });
    }
    Pool share() const noexcept {
        rondo_pool_retain(get());
        return Pool(get());
    }
};

// A block of a pool; it keeps the pool. One from before a capture lives until the capture's end: what
// is given back in a capture that fails would be the caller's again (rondo/pool.h).
class Block {
   public:
    Block() noexcept = default;
    Block(Block &&other) noexcept
        : pool_(std::move(other.pool_)),
          address_(std::exchange(other.address_, nullptr)),
          bytes_(std::exchange(other.bytes_, std::size_t{0})) {
    }
    Block &operator=(Block &&other) noexcept {
        if (this != &other) {
            free().ignore();
            pool_ = std::move(other.pool_);
            address_ = std::exchange(other.address_, nullptr);
            bytes_ = std::exchange(other.bytes_, std::size_t{0});
        }
        return *this;
    }
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;
    ~Block() {
        free().ignore();
    }

    static Result<Block> allocate(const Pool &pool, const Stream &stream,
                                  std::size_t bytes) noexcept {
        Block block;
        const Status status = rondo_pool_allocate(pool.get(), stream.get(), bytes, &block.address_);
        if (!status) {
            return status;
        }
        block.pool_ = pool.share();
        block.bytes_ = bytes;
        return Result<Block>(std::move(block));
    }
    void *get() const noexcept {
        return address_;
    }
    template <typename T>
    Span<T> as() const noexcept {
        return Span<T>(static_cast<T *>(address_), bytes_ / sizeof(T));
    }
    Status free() noexcept {
        return rondo_pool_free(pool_.get(), std::exchange(address_, nullptr));
    }

   private:
    Pool pool_;
    void *address_ = nullptr;
    std::size_t bytes_ = 0;
};

class Generator : public Owner<rondo_generator, rondo_generator_release> {
   public:
    using Owner::Owner;

    static Result<Generator> create(const Device &device, std::uint64_t seed) noexcept {
        return detail::make<Generator, rondo_generator>(
            [&](rondo_generator **out) { return rondo_generator_create(device.get(), seed, out); });
    }
    Generator share() const noexcept {
        rondo_generator_retain(get());
        return Generator(get());
    }
    Status normal(const Stream &stream, Span<float> out, double mean = 0.0,
                  double deviation = 1.0) const noexcept {
        return rondo_random_normal(get(), stream.get(), RONDO_DTYPE_F32, out.data(), out.size(),
                                   mean, deviation);
    }
    Status uniform(const Stream &stream, Span<float> out, double low = 0.0,
                   double high = 1.0) const noexcept {
        return rondo_random_uniform(get(), stream.get(), RONDO_DTYPE_F32, out.data(), out.size(),
                                    low, high);
    }
};

class GraphCache : public Owner<rondo_graph_cache, rondo_graph_cache_destroy> {
   public:
    using Owner::Owner;

    static Result<GraphCache> create(const Device &device,
                                     const rondo_graph_cache_options *options = nullptr) noexcept {
        return detail::make<GraphCache, rondo_graph_cache>([&](rondo_graph_cache **out) {
            return rondo_graph_cache_create(device.get(), options, out);
        });
    }
    // Puts the step of a key on the stream, by a replay or as `step(rondo_stream *)` does it, which
    // returns a Status. The key's bytes count, so it must have no padding. Not for caches that
    // capture in the background, whose step outlives the call.
    template <typename Key, typename Step>
    Status run(const Key &key, const Stream &stream, Step &&step,
               rondo_cache_outcome *outcome = nullptr) const noexcept {
        static_assert(std::has_unique_object_representations_v<Key>,
                      "a key is compared by its bytes, so it has neither padding nor floats");
        using Plain = std::remove_reference_t<Step>;
        Plain *address = std::addressof(step);
        return rondo_graph_cache_run(get(), &key, sizeof key, stream.get(), detail::run_step<Plain>,
                                     &address, outcome);
    }
};

namespace detail {

template <typename Step>
rondo_status run_step(rondo_stream *stream, void *data) noexcept {
    const Status status = (**static_cast<Step **>(data))(stream);
    return status.code();
}

}  // namespace detail

// ---- models -------------------------------------------------------------------------------------

#ifdef RONDO_MODELS_H

// A tensor, and its share of the bytes.
class Tensor {
   public:
    Tensor() noexcept = default;
    explicit Tensor(const rondo_tensor &taken) noexcept : tensor_(taken) {
    }
    Tensor(Tensor &&other) noexcept : tensor_(std::exchange(other.tensor_, rondo_tensor{})) {
    }
    Tensor &operator=(Tensor &&other) noexcept {
        if (this != &other) {
            rondo_tensor_deinit(&tensor_);
            tensor_ = std::exchange(other.tensor_, rondo_tensor{});
        }
        return *this;
    }
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;
    ~Tensor() {
        rondo_tensor_deinit(&tensor_);
    }

    static Result<Tensor> create(rondo_dtype dtype, Span<const std::int64_t> extents) noexcept {
        Tensor tensor;
        rondo_shape shape = {};
        shape.rank = static_cast<std::int32_t>(extents.size());
        for (std::size_t axis = 0; axis < extents.size() && axis < RONDO_RANK_MAX; ++axis) {
            shape.extent[axis] = extents[axis];
        }
        const Status status = rondo_tensor_init(dtype, &shape, &tensor.tensor_);
        if (!status) {
            return status;
        }
        return Result<Tensor>(std::move(tensor));
    }
    const rondo_tensor &get() const noexcept {
        return tensor_;
    }
    Span<const std::int64_t> shape() const noexcept {
        return {tensor_.shape.extent, static_cast<std::size_t>(tensor_.shape.rank)};
    }
    // The elements of a tensor in host memory.
    template <typename T>
    Span<T> as() const noexcept {
        return Span<T>(static_cast<T *>(tensor_.data),
                       rondo_tensor_get_bytes(&tensor_) / sizeof(T));
    }

   private:
    rondo_tensor tensor_ = {};
};

// Processors that executors on the host share: options.workers = workers.get().
class Workers : public Owner<rondo_workers, rondo_workers_release> {
   public:
    using Owner::Owner;

    static Result<Workers> create(std::uint32_t count) noexcept {
        return detail::make<Workers, rondo_workers>(
            [&](rondo_workers **out) { return rondo_workers_create(count, out); });
    }
    Workers share() const noexcept {
        rondo_workers_retain(get());
        return Workers(get());
    }
};

class Program : public Owner<rondo_program, rondo_program_destroy> {
   public:
    using Owner::Owner;

    static Result<Program> load(const char *path) noexcept {
        return detail::make<Program, rondo_program>(
            [&](rondo_program **out) { return rondo_program_load_onnx(path, out); });
    }
};

class Executor : public Owner<rondo_executor, rondo_executor_destroy> {
   public:
    using Owner::Owner;

    static rondo_executor_options options() noexcept {
        return detail::sized<rondo_executor_options>();
    }
    static Result<Executor> create(const Program &program, const Device &device,
                                   const rondo_executor_options *options = nullptr) noexcept {
        return detail::make<Executor, rondo_executor>([&](rondo_executor **out) {
            return rondo_executor_create(program.get(), device.get(), options, out);
        });
    }
    // Feeds inputs, runs, fetches outputs, waits. A fetch without data is allocated, and then the
    // caller's: Tensor(fetch.tensor) owns it.
    Status run(Span<const rondo_binding> feeds, Span<rondo_binding> fetches) const noexcept {
        return rondo_executor_run(get(), feeds.data(), feeds.size(), fetches.data(),
                                  fetches.size());
    }
};

#endif  // RONDO_MODELS_H

}  // namespace rondo

#if defined(__clang__) && defined(__has_warning)
#pragma clang diagnostic pop
#endif

#endif  // RONDO_RONDO_HPP
