// tests/cpp/owners.cpp — rondo.hpp: owners move and release once, statuses say what went wrong, what
// throws or fails leaves no capture behind.
// SPDX-License-Identifier: Apache-2.0
#define RONDO_HPP_MODELS
#include <rondo/rondo.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int check_count = 0;

void check(bool is_true, const char *what, int line) {
    ++check_count;
    if (!is_true) {
        std::printf("owners.cpp:%d: %s\n", line, what);
        std::exit(1);
    }
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

void check_statuses() {
    const auto none = rondo::Device::open("toaster");
    CHECK(!none && none.status() == RONDO_STATUS_INVALID);
    CHECK(std::string_view(none.status().name()) == "INVALID");
    CHECK(std::string_view(rondo::Status::message()).find("toaster") != std::string_view::npos);
    CHECK(rondo::Status() == RONDO_STATUS_OK && rondo::Status().ok());
    CHECK(rondo::Status(RONDO_STATUS_STATE) != rondo::Status());
}

void check_owners(const rondo::Device &device) {
    auto first = rondo::Stream::create(device);
    CHECK(first.ok());
    rondo_stream *const handle = first->get();
    rondo::Stream second(std::move(*first));
    CHECK(!*first && second.get() == handle);
    rondo::Stream third;
    third = std::move(second);
    rondo::Stream &same = third;
    third = std::move(same);
    CHECK(third.get() == handle && third.synchronize().ok());
    third = rondo::Stream();
    CHECK(third.get() == nullptr && third.synchronize() == RONDO_STATUS_INVALID);

    const rondo::Device share = device.share();
    CHECK(share.get() == device.get() && share.is_host());
    CHECK(device.info()->compute_units > 0);
    auto memory = rondo::Memory::allocate(device, 1024);
    rondo::Memory moved(std::move(*memory));
    CHECK(memory->get() == nullptr && moved.size_bytes() == 1024);
    moved = rondo::Memory();
    CHECK(moved.get() == nullptr);
}

void check_spans(const rondo::Stream &stream) {
    std::vector<float> from = {1, 2, 3};
    std::array<float, 3> to = {};
    std::uint8_t bytes[5] = {};
    CHECK(stream.copy<float>(to, rondo::Span<const float>(from)).ok());
    CHECK(stream.fill(rondo::Span<std::uint8_t>(bytes), 9).ok());
    CHECK(stream.synchronize().ok());
    CHECK(to == std::array<float, 3>{1, 2, 3} && bytes[4] == 9);
    const rondo::Span<const float> seen(to);
    float sum = 0;
    for (const float value : seen) {
        sum += value;
    }
    CHECK(sum == 6.0f && seen.size_bytes() == 12 && !seen.empty() && seen[2] == 3.0f);
}

void check_captures(const rondo::Device &device, const rondo::Stream &stream) {
    const auto graph = rondo::Graph::create(device);
    CHECK(graph.ok());
    int x = 0;
    const auto one = [&] { return stream.call("one", [&x] { ++x; }); };
    for (int round = 0; round < 2; ++round) {
        CHECK(graph->record(stream, one).ok());
        CHECK(graph->report().empty());
        CHECK(graph->replay(stream).ok() && stream.synchronize().ok() && x == round + 1);
        CHECK(graph->stats()->node_count == 1);
        CHECK(graph->clear().ok());
        // A step that gives up, one that breaks the capture, and one that does so unseen.
        CHECK(graph->record(stream, [] { return rondo::Status(RONDO_STATUS_CANCELLED); }) ==
              RONDO_STATUS_CANCELLED);
        CHECK(graph->record(stream, [&] { return stream.synchronize(); }) == RONDO_STATUS_STATE);
        CHECK(graph->report().find("SYNCHRONIZE") != std::string::npos);
        CHECK(graph->record(stream, [&] {
            stream.synchronize().ignore();
            return rondo::Status();
        }) == RONDO_STATUS_STATE);
#ifdef __cpp_exceptions
        bool was_caught = false;
        try {
            (void)graph->record(stream, [&]() -> rondo::Status { throw 7; });
        } catch (int) {
            was_caught = true;
        }
        CHECK(was_caught);
#endif
        bool is_recording = true;
        CHECK(rondo::Status(rondo_stream_is_recording(stream.get(), &is_recording)).ok() &&
              !is_recording);
    }
}

void check_steps(const rondo::Device &device, const rondo::Stream &stream) {
    const auto stepper = rondo::Stepper::create(device);
    std::uint32_t word = 0;
    rondo_work work = rondo::detail::sized<rondo_work>();
    work.kind = RONDO_NODE_FILL;
    work.destination = &word;
    work.element_bytes = 4;
    work.element_count = 1;
    CHECK(stepper.ok());
    static const rondo_stepper_mode modes[] = {RONDO_STEPPER_EAGER, RONDO_STEPPER_RECORDS,
                                               RONDO_STEPPER_PATCHES, RONDO_STEPPER_PATCHES};
    for (std::uint32_t step = 0; step < 4; ++step) {
        work.fill_value = 7 * step;
        CHECK(stepper->begin(stream).ok() && stepper->mode() == modes[step]);
        CHECK(stepper->put(work).ok() && stepper->end().ok());
        CHECK(stream.synchronize().ok() && word == 7 * step);
    }
    std::size_t count = 0;
    CHECK(rondo_graph_get_node_count(stepper->graph(), &count) == RONDO_STATUS_OK && count == 1);
    CHECK(stepper->start_over().ok() && stepper->begin(stream).ok());
    CHECK(stepper->mode() == RONDO_STEPPER_EAGER && stepper->end().ok());

    rondo_node node = {};
    const auto graph = rondo::Graph::capture(device, stream, [&]() -> rondo::Status {
        const rondo::Status put = rondo_stream_add_node(stream.get(), &work, &node);
        return put;
    });
    work.fill_value = 9;
    CHECK(graph.ok() && graph->patch(node, work).ok());
    CHECK(graph->replay(stream).ok() && stream.synchronize().ok() && word == 9);
}

void check_memory(const rondo::Device &device, const rondo::Stream &stream) {
    const auto pool = rondo::Pool::create(device);
    CHECK(pool.ok());
    std::array<float, 4> seen = {};
    const auto graph = rondo::Graph::capture(device, stream, [&] {
        auto block = rondo::Block::allocate(*pool, stream, sizeof seen);
        const auto owner = rondo::Generator::create(device, 1);
        const rondo::Generator generator = owner->share();
        if (!block || !owner) {
            return block ? owner.status() : block.status();
        }
        const rondo::Status drawn = generator.normal(stream, block->as<float>());
        return drawn ? stream.copy<float>(seen, block->as<const float>()) : drawn;
    });
    CHECK(graph.ok() && graph->upload(stream).ok());
    CHECK(graph->replay(stream).ok() && stream.synchronize().ok());
    const std::array<float, 4> first = seen;
    CHECK(graph->replay(stream).ok() && stream.synchronize().ok());
    CHECK(first != seen && first[0] != 0.0f);

    const auto event = rondo::Event::create(device);
    CHECK(event.ok() && stream.record(*event).ok() && stream.wait(*event).ok());
    CHECK(event->synchronize().ok());
    const auto arena = rondo::Arena::create(device);
    CHECK(arena.ok() && arena->begin_round().ok());
}

void check_cache(const rondo::Device &device, const rondo::Stream &stream) {
    auto options = rondo::detail::sized<rondo_graph_cache_options>();
    options.policy = RONDO_CACHE_ALWAYS_CAPTURE;
    const auto cache = rondo::GraphCache::create(device, &options);
    CHECK(cache.ok());
    struct Key {
        std::int32_t batch;
        std::int32_t length;
    };
    int calls = 0;
    std::uint8_t byte = 0;
    const auto step = [&](rondo_stream *target) -> rondo::Status {
        ++calls;
        return rondo_stream_fill(target, &byte, 3, 1, 1);
    };
    rondo_cache_outcome outcome = RONDO_CACHE_NOTHING;
    for (int round = 0; round < 4; ++round) {
        CHECK(cache->run(Key{round % 2, 5}, stream, step, &outcome).ok());
    }
    CHECK(calls == 2 && outcome == RONDO_CACHE_REPLAYED);
    CHECK(cache->run(Key{9, 9}, stream, [](rondo_stream *) {
        return rondo::Status(RONDO_STATUS_BAD_DATA);
    }) == RONDO_STATUS_BAD_DATA);
    CHECK(stream.synchronize().ok() && byte == 3);
}

void check_models(const rondo::Device &device, const char *path) {
    const auto program = rondo::Program::load(path);
    CHECK(program.ok());
    auto options = rondo::Executor::options();
    const auto workers = rondo::Workers::create(1);
    const rondo::Workers share = workers->share();
    options.workers = share.get();
    const auto executor = rondo::Executor::create(*program, device, &options);
    const std::array<std::int64_t, 4> extents = {1, 3, 12, 12};
    auto x = rondo::Tensor::create(RONDO_DTYPE_F32, extents);
    CHECK(executor.ok() && x.ok() && x->shape().size() == 4);
    const rondo::Tensor moved(std::move(*x));
    CHECK(x->get().data == nullptr && moved.as<float>().size() == 432);
    const std::array<rondo_binding, 1> feeds = {{{"x", moved.get()}}};
    for (int round = 0; round < 3; ++round) {
        std::array<rondo_binding, 1> fetches = {{{"y", {}}}};
        CHECK(executor->run(feeds, fetches).ok());
        const rondo::Tensor y(fetches[0].tensor);
        CHECK(!y.as<float>().empty() && std::isfinite(y.as<float>()[0]));
    }
    CHECK(rondo::Program::load("no/such/file.onnx").status() == RONDO_STATUS_UNAVAILABLE);
}

}  // namespace

int main(int argc, char **argv) {
    check_statuses();
    {
        const auto device = rondo::Device::open("host");
        CHECK(device.ok());
        const auto stream = rondo::Stream::create(*device);
        CHECK(stream.ok());
        check_owners(*device);
        check_spans(*stream);
        check_captures(*device, *stream);
        check_steps(*device, *stream);
        check_memory(*device, *stream);
        check_cache(*device, *stream);
        if (argc > 1) {
            check_models(*device, argv[1]);
        }
    }
    std::printf("%d checks passed\n", check_count);
    return 0;
}
