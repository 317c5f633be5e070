// examples/capture_owners.cpp — C++: a capture, its replays, one that breaks, a cache, and a model.
//
//   example_capture_owners [MODEL.onnx]
// SPDX-License-Identifier: Apache-2.0
#define RONDO_HPP_MODELS
#include <rondo/rondo.hpp>

#include <array>
#include <cstdio>

namespace {

int fail(const char *what, rondo::Status status) {
    std::printf("%s: %s: %s\n", what, status.name(), rondo::Status::message());
    return 1;
}

int capture_and_replay(const rondo::Device &device, const rondo::Stream &stream) {
    int x = 0;
    const auto graph = rondo::Graph::capture(device, stream, [&] {
        const rondo::Label label(stream, "step");
        const rondo::Status status = stream.call("one", [&x] { ++x; });
        return status ? stream.call("two", [&x] { x *= 2; }) : status;
    });
    if (!graph) {
        return fail("capture", graph.status());
    }
    for (int i = 0; i < 3; ++i) {
        if (const rondo::Status status = graph->replay(stream); !status) {
            return fail("replay", status);
        }
    }
    if (const rondo::Status status = stream.synchronize(); !status) {
        return fail("synchronize", status);
    }
    std::printf("x is %d\n", x);  // ((0 + 1) * 2 + 1) * 2 ...
    return x == 14 ? 0 : 1;
}

int break_a_capture(const rondo::Device &device, const rondo::Stream &stream) {
    const auto graph = rondo::Graph::create(device);
    if (!graph) {
        return fail("graph", graph.status());
    }
    const rondo::Status status = graph->record(stream, [&] { return stream.synchronize(); });
    std::printf("%s", graph->report().c_str());
    return !status && !graph->report().empty() ? 0 : 1;
}

int use_a_cache(const rondo::Device &device, const rondo::Stream &stream) {
    const auto cache = rondo::GraphCache::create(device);
    const auto memory = rondo::Memory::allocate(device, 64);
    if (!cache || !memory) {
        return fail("cache", cache ? memory.status() : cache.status());
    }
    const auto step = [&](rondo_stream *target) -> rondo::Status {
        return rondo_stream_fill(target, memory->get(), 7, 1, memory->size_bytes());
    };
    for (std::int32_t key = 0; key < 20; ++key) {
        if (const rondo::Status status = cache->run(key % 2, stream, step); !status) {
            return fail("run", status);
        }
    }
    return stream.synchronize() ? 0 : 1;
}

int run_a_model(const rondo::Device &device, const char *path) {
    const auto program = rondo::Program::load(path);
    if (!program) {
        return fail(path, program.status());
    }
    const auto executor = rondo::Executor::create(*program, device);
    const std::array<std::int64_t, 4> extents = {1, 3, 224, 224};
    const auto image = rondo::Tensor::create(RONDO_DTYPE_F32, extents);
    if (!executor || !image) {
        return fail("executor", executor ? image.status() : executor.status());
    }
    const std::array<rondo_binding, 1> feeds = {{{"image", image->get()}}};
    std::array<rondo_binding, 1> fetches = {{{"logits", {}}}};
    if (const rondo::Status status = executor->run(feeds, fetches); !status) {
        return fail("run", status);
    }
    const rondo::Tensor logits(fetches[0].tensor);
    std::printf("%zu numbers, the first is %g\n", logits.as<float>().size(),
                static_cast<double>(logits.as<float>()[0]));
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    const auto device = rondo::Device::open("host");
    if (!device) {
        return fail("device", device.status());
    }
    const auto stream = rondo::Stream::create(*device);
    if (!stream) {
        return fail("stream", stream.status());
    }
    int status = capture_and_replay(*device, *stream);
    status = status != 0 ? status : break_a_capture(*device, *stream);
    status = status != 0 ? status : use_a_cache(*device, *stream);
    if (status == 0 && argc > 1) {
        status = run_a_model(*device, argv[1]);
    }
    return status;
}
