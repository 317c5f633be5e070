// kernel/kernel.h — launch code of ops, prepared once for fixed shapes and launched many times.
//
// The executor asks rondo__kernel_prepare for each op of a plan. On the host device it gets tuned C
// where there is any and otherwise the op's plain C reference as a host function; on
// CUDA it gets NVRTC, cuBLASLt or cuDNN code, or UNSUPPORTED, and the executor then runs the op on
// the host between segments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "kernel/tuning_choices.h"
#include "kernel/weights/bring_list.h"
#include "kernel/weights/weight_store.h"
#include "op/op.h"
#include "rondo/device.h"
#include "rondo/executor.h"
#include "rondo/random.h"
#include "rondo/status.h"
#include "rondo/tensor.h"
#include "saved/saved_record.h"

typedef struct rondo__kernel rondo__kernel;

// What to prepare. All shapes are known. Borrowed for the call, except `op`, device addresses of
// constants and `constant` tensors, which outlive the kernel.
typedef struct rondo__kernel_request {
    rondo_device *device;
    const rondo__op *op;
    // GPUs: the word that tells the host of data that the op does not allow (flow.h), looked up at
    // each launch; NULL, or of NULL: the host does not ask.
    struct rondo__flow_watch *const *watch;
    size_t input_count;
    const rondo__tensor_info
        *inputs;  // dtype NONE: absent. `constant`: value known, in host memory
    size_t output_count;
    const rondo__tensor_info *outputs;  // dtype NONE: not wanted
    bool use_reference;                 // host only: the plain C reference, nothing tuned
    rondo_generator *generator;         // for ops that draw; the kernel retains it
    rondo_communicator *communicator;   // for collectives; outlives the kernel. NULL: none
    bool is_in_body;                    // of a control op
    rondo__weight_list *weights;        // where forms of constants come from; outlives the kernel
    rondo_tuning tuning;
    rondo__tuning_choices *choices;  // where they are looked for and noted; NULL: nowhere
    bool is_survey;                  // for rondo__kernel_survey only
    uint64_t brought_inputs;     // GPUs, bit i: what is wanted of constant input i does not stay on
                                 // the device but is brought in each run: launches find it there
    rondo__bring_list *bring;    // what is, if anything is
    size_t node;                 // for `bring`
    uint64_t constant_bytes;     // of all that runs with it; 0: not known
    const rondo__record *ready;  // what rondo__kernel_write wrote in another process; NULL: nothing
} rondo__kernel_request;

// An output that holds what an input does, and new rows between or behind, or that is made of that
// input's elements one by one. It may lie where that input lies: then new rows are all that is
// written there.
typedef struct rondo__kernel_kept {
    int32_t input, output;
} rondo__kernel_kept;

enum { RONDO__KERNEL_KEPT_MAX = 24 };  // keys and values; variables

// Moves that a kernel can do without, for the executor to ask (executor/compile/skipped_moves.h).
// Each is NULL where the kernel needs the move.
typedef struct rondo__kernel_moves {
    // From now on the rows of output 0, along its last axis, begin so many elements apart.
    void (*set_output_pitch)(rondo__kernel *kernel, int64_t elements);
    // Of a Concat or Transpose: this input is in the output already, or is not read there.
    void (*skip_input)(rondo__kernel *kernel, size_t input);
    // From now on input 0 comes with channels first.
    void (*read_planes)(rondo__kernel *kernel);
} rondo__kernel_moves;

typedef rondo_status (*rondo__node_visit)(void *user_data, const rondo__line_node *node);

struct rondo__kernel {
    // Puts the work on `stream`. Addresses are of the kernel's device; an absent input or unwanted
    // output is NULL; constants have their device address, but for `owned_inputs`.
    //
    // Must not allocate, wait or touch the default stream once it ran one time (capture rule).
    rondo_status (*launch)(rondo__kernel *kernel, rondo_stream *stream, const void *const *inputs,
                           void *const *outputs, void *workspace);
    // (optional) Shows the nodes that a capture of `launch` records, in their order; it needs no
    // launch before. A node is good during the call.
    rondo_status (*visit_nodes)(rondo__kernel *kernel, const void *const *inputs,
                                void *const *outputs, void *workspace, rondo__node_visit visit,
                                void *user_data);
    // (optional) Does the work now, on the calling thread, with no stream.
    rondo_status (*run)(rondo__kernel *kernel, const void *const *inputs, void *const *outputs,
                        void *workspace);
    // (optional) From now on output 0 begins where input 0 lies, at each launch.
    void (*join_output)(rondo__kernel *kernel);
    void (*destroy)(rondo__kernel *kernel);
    const rondo__kernel_moves *moves;  // NULL: it needs all of them
    size_t workspace_bytes;    // device memory needed during launch, aligned to 256; shared with
                               // other kernels
    uint64_t owned_inputs;     // bit i: the kernel reads constant input i in a form of its own, or
                               // where it is; the executor need not put it on the device for it
    uint64_t in_place_inputs;  // bit i: output 0 may lie where input i lies, which then is spent
    rondo__kernel_kept kept[RONDO__KERNEL_KEPT_MAX];
    size_t kept_count;
    rondo__capture_rule capture;  // of this node; zero: it may be captured
    bool keeps_addresses;         // each launch must have those of the first
    bool may_run_here;            // by the thread that waits for it; zero: by others only
    bool is_restored;             // from the request's `ready`
    bool is_unbounded;            // a loop that may be stopped at loop_limit: the caller must check
    const char *implementation;   // "simd", "reference", "nvrtc", "cublaslt", "cudnn"; literal,
                                  // for inspect
    const char *reason;           // why it is not captured; as long as the kernel, or NULL
};

// Prepares an op for its device.
//
// Errors:    UNSUPPORTED (this device has no kernel for it; record says which op, dtype and
//            attribute), NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Ownership: free with rondo__kernel_destroy, after the stream has passed its launches.
// Threads:   safe; the kernel itself is used by one thread at a time.
// Capture:   not legal while a stream of the device records.
RONDO_MUST_USE rondo_status rondo__kernel_prepare(const rondo__kernel_request *request,
                                                  rondo__kernel **out_kernel);

// Says that the request will be prepared: what a GPU's kernel of it must compile is compiled
// meanwhile, on threads of its own. Whether that works is seen when it is prepared.
//
// Threads:   safe.
void rondo__kernel_survey(const rondo__kernel_request *request);

// Appends what another process can prepare the same kernel from, for an equal request and with its
// machine code. False: nothing, as that is not possible; `out` may hold a part.
//
// weights    the list that it was prepared with.
bool rondo__kernel_write(rondo_device *device, const rondo__kernel *kernel,
                         const rondo__weight_list *weights, rondo__text *out);

static inline void rondo__kernel_destroy(rondo__kernel *kernel) {  // NULL is fine
    if (kernel != NULL) {
        kernel->destroy(kernel);
    }
}

// What a room of kernels gives: kernel/host and kernel/cuda have one each.
typedef struct rondo__kernel_room {
    // UNSUPPORTED for what the room lacks.
    rondo_status (*prepare)(const rondo__kernel_request *request, rondo__kernel **out_kernel);
    bool (*write)(const rondo__kernel *kernel, const rondo__weight_list *weights, rondo__text *out);
    // Whether the device has the traits of these names, below. NULL: none has. The first two are
    // asked in half precision alone.
    bool (*adds_shortcuts)(rondo_device *device);
    bool (*fuses_few_rows)(rondo_device *device);
    bool (*appends_attention)(rondo_device *device);
    // See rondo__kernel_get_level.
    void (*get_level)(rondo_device *device, char *text, size_t text_bytes);
} rondo__kernel_room;
extern const rondo__kernel_room rondo__kernel_room_host;
extern const rondo__kernel_room rondo__kernel_room_cuda;

// What decides the forms of constants and the machine code on a device, beside the library: the
// instruction sets of the host, "avx512, bytes avx512vnni", or the generation of a GPU, "sm_90,
// tma".
void rondo__kernel_get_level(rondo_device *device, char *text, size_t text_bytes);

// Layouts and fusions a device profits from; passes ask before they rewrite.
typedef struct rondo__kernel_traits {
    bool prefers_channels_last;  // convolutions, pools and resizes want NHWC activations
    bool fuses_bytes;            // rondo.MatMulInteger and rondo.ConvInteger; bytes want NHWC, too
    bool splits_transposed;      // Conv and DepthToSpace are faster than ConvTranspose
    bool widens_images;          // a Conv of few channels is faster behind rondo.SpaceToDepth
    bool fuses_convolution;      // rondo.Conv with bias, residual and activation in one kernel
    bool fuses_matmul;        // rondo.MatMul with bias, activation, transposed or strided operands
    bool fuses_attention;     // rondo.Attention: scores, softmax and their product in one kernel
    bool keeps_shares;        // softmax in f16 before a product may give f32 at no cost
    bool fuses_group_norm;    // rondo.GroupNormalization: with the activation behind it
    bool fuses_concat;        // rondo.Concat: of images in blocks
    bool fuses_elementwise;   // rondo.Elementwise: a chain of element-wise ops in one kernel
    bool fuses_gradients;     // rondo.NormGradient and others of program/backward, and of these
    bool fuses_conv_weights;  // rondo.ConvWeights
    bool fuses_conv_back;     // rondo.InsertZeros and a Conv for a ConvTranspose
    bool lays_filters;        // rondo.LayFilters: those of a training step in one launch
    bool fuses_attention_back;  // rondo.AttentionGradient
    bool fuses_norm;            // rondo.NormMatMul: rows normalised by the product that reads them
    bool ends_batches;          // rondo.BatchNormalization with an Add and a Relu behind it
    bool fuses_rows;         // rondo.RowProduct: products of one row with what stands around them
    bool fuses_few_rows;     // the same of 2 to 8, and rondo.BitsRow, on tensor cores
    bool appends_attention;  // rondo.AppendAttention: over clusters of blocks
    bool adds_shortcuts;     // rondo.Conv with a second convolution by single pixels
    bool turns_products;     // rondo.MatMul of a constant by rows, with a bias for each row
} rondo__kernel_traits;
void rondo__kernel_get_traits(rondo_device *device, rondo_dtype dtype,
                              rondo__kernel_traits *out_traits);
