// kernel/cuda/cuda_steps.h — a CUDA kernel object as a list of kernel steps (launches and
// library calls), and how families build it.
//
// To launch any op, walk a fixed list of kernel steps; for each, write the tensor addresses of this
// call into prepared parameter words, and launch. So a family only describes its kernel steps once:
//
//     rondo__defines defines = {0};
//     rondo__define_type(&defines, "T", dtype);
//     rondo__step *step =
//         rondo__cuda_add_launch(kernel, rondo__cu_pad, &defines, "pad", blocks, 256);
//     rondo__step_input(step, 0);
//     rondo__step_output(step, 0);
//     rondo__step_int(step, count);
//
// Every parameter is one 8-byte word (address, i64 or double) or a tensor map of sixteen, and the
// device text declares a struct of just such members, so that host and device agree without layout
// rules. The first failure sticks to the kernel: later calls do nothing and take NULL steps, and
// the dispatcher looks at `status` once at the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/driver/cuda_tensor_map.h"
#include "kernel/flow.h"
#include "kernel/kernel.h"

enum {
    RONDO__STEP_MAPS_MAX = 3,
    RONDO__STEP_WORDS_MAX = 320,
    RONDO__STEP_ADDRESSES_MAX = 48,
    RONDO__STEP_FAULTS_MAX = 4,
    RONDO__DEFINES_MAX = 24,
    RONDO__CUDA_FORMS_MAX = 4,  // of constants, in one kernel
    RONDO__CUDA_BLOCK = 256,    // threads of a block where nothing speaks for another number
};

typedef enum rondo__address_space {
    RONDO__ADDRESS_INPUT,
    RONDO__ADDRESS_OUTPUT,
    RONDO__ADDRESS_WORKSPACE,
    RONDO__ADDRESS_FIXED,     // the same at each launch; nothing writes there
    RONDO__ADDRESS_STAND_IN,  // for FIXED, where candidates are timed: lies behind the inputs
    RONDO__ADDRESS_FAULTY,    // of a rondo__flow_watch, which `fixed` points to at each launch
} rondo__address_space;

// A tensor address that is known only at launch.
typedef struct rondo__address {
    rondo__address_space space;
    size_t index;         // of the input or output; STAND_IN: from the first input on
    size_t offset_bytes;  // added to it
    void *fixed;
} rondo__address;

// A form that is looked for elsewhere.
typedef struct rondo__moved_form {
    const void *from;  // as in FIXED addresses
    void *to;
} rondo__moved_form;

// What a launch was given.
typedef struct rondo__cuda_arguments {
    const void *const *inputs;
    void *const *outputs;
    void *workspace;
    size_t moved_count;  // where candidates are timed
    const rondo__moved_form *moved;
} rondo__cuda_arguments;

// A step that calls a library. `state` is freed with `destroy` (may be NULL).
typedef rondo_status (*rondo__cuda_call)(void *state, rondo_stream *stream,
                                         const rondo__cuda_arguments *arguments);

typedef enum rondo__step_kind {
    RONDO__STEP_LAUNCH,
    RONDO__STEP_COPY,
    RONDO__STEP_FILL,
    RONDO__STEP_CALL,
} rondo__step_kind;

// A word of a step that is an address.
typedef struct rondo__step_place {
    uint16_t word;
    rondo__address address;
} rondo__step_place;

// Words of a step that are a tensor map.
typedef struct rondo__step_tensor {
    uint16_t word;  // the first of them
    rondo__address address;
    rondo__tensor_form form;
    void *mapped;  // whose map the words are; NULL: none yet
} rondo__step_tensor;

typedef struct rondo__step {
    rondo__step_kind kind;
    rondo_launch launch;  // LAUNCH; `arguments` points at `words`
    size_t bytes;         // COPY (addresses 0 from, 1 to) and FILL (address 0, zeros)
    rondo__cuda_call call;
    void *state;
    void (*destroy)(void *state);
    bool overflowed;
    size_t word_count, address_count, map_count;
    size_t fault_count;                       // one more than there is room for: there are more
    uint16_t faults[RONDO__STEP_FAULTS_MAX];  // words that name the kernel
    // Behind the struct, in one block with it: room for the most of each, of which little is used,
    // until the kernel is finished, and then for what there is.
    uint64_t *words;
    rondo__step_place *addresses;
    rondo__step_tensor *maps;
} rondo__step;

typedef struct rondo__cuda_kernel {
    rondo__kernel head;
    const rondo__kernel_request *request;  // only while it is prepared
    rondo_device *device;
    rondo_status status;  // the first failure while building
    size_t step_count, step_capacity;
    rondo__step **steps;
    bool skips_copy;  // the first step: see rondo__cuda_add_data_copy
    // Forms of constants, in the order in which they were asked for. A candidate, which is timed
    // or thrown away, makes none: its launches find room for them behind the inputs.
    bool is_candidate;
    size_t form_count;
    size_t form_bytes[RONDO__CUDA_FORMS_MAX];
    uint8_t form_inputs[RONDO__CUDA_FORMS_MAX];
    void *forms[RONDO__CUDA_FORMS_MAX];
    // What it was prepared for; see cuda_saved.c.
    uint64_t request_hash;  // 0: it cannot be saved
    uint32_t tuning;        // a rondo_tuning
} rondo__cuda_kernel;

// ---- the kernel -------------------------------------------------------------------------------

// An empty kernel for the request, which is borrowed until the kernel is finished.
RONDO_MUST_USE rondo_status rondo__cuda_begin_kernel(const rondo__kernel_request *request,
                                                     rondo__cuda_kernel **out_kernel);
RONDO_MUST_USE rondo_status rondo__cuda_begin_candidate(const rondo__kernel_request *request,
                                                        rondo__cuda_kernel **out_kernel);
// The finished kernel, or the failure that stuck; then the kernel is gone.
RONDO_MUST_USE rondo_status rondo__cuda_finish_kernel(rondo__cuda_kernel *kernel,
                                                      rondo__kernel **out_kernel);

// The kernel of this room; NULL: it is of another.
const rondo__cuda_kernel *rondo__cuda_kernel_of(const rondo__kernel *head);

// Takes the steps from the request's `ready`; false: they do not fit, and the kernel is as before.
bool rondo__cuda_restore_kernel(rondo__cuda_kernel *kernel);
// False: it cannot be restored from a record; `out` holds a part of one.
bool rondo__cuda_write_kernel(const rondo__kernel *kernel, const rondo__weight_list *weights,
                              rondo__text *out);
// Notes what of the request, beside constants and attributes, decides the kernel. From then on it
// can be saved, unless it is for this process alone.
void rondo__cuda_name_request(rondo__cuda_kernel *kernel);

// Puts the kernel's steps on the stream.
RONDO_MUST_USE rondo_status rondo__cuda_run_steps(rondo__cuda_kernel *kernel, rondo_stream *stream,
                                                  const rondo__cuda_arguments *arguments);

// A kernel that is half built, to which rondo__cuda_go_back takes it back, with its weights: the
// steps, the workspace and the failures of a candidate are undone.
typedef struct rondo__cuda_mark {
    rondo__cuda_kernel kernel;
    size_t weight_count, bring_count;
} rondo__cuda_mark;

void rondo__cuda_set_mark(const rondo__cuda_kernel *kernel, rondo__cuda_mark *out_mark);
void rondo__cuda_go_back(rondo__cuda_kernel *kernel, const rondo__cuda_mark *mark);

// Makes a failure stick; OK changes nothing. Returns true when the kernel is still good.
bool rondo__cuda_check(rondo__cuda_kernel *kernel, rondo_status status);

// Reserves workspace that this kernel's steps share with nothing else; returns its offset.
size_t rondo__cuda_reserve_workspace(rondo__cuda_kernel *kernel, size_t bytes);

// Puts constant input `index` into a form of the kernel's own, and owns that input from then on.
// `want` says what form that is (kernel/weights/weight_store.h); its constant is set here. False
// after a failure.
bool rondo__cuda_own_input(rondo__cuda_kernel *kernel, size_t index, rondo__weight_want *want,
                           rondo__address *out_address);

// Whether libraries of NVIDIA may serve the kernel, if they are there. A test's stand-in for a
// device has no context that a library could work in.
bool rondo__cuda_may_have_libraries(const rondo__cuda_kernel *kernel);

// Refuses with the one wording for unsupported ops; the failure sticks.
void rondo__cuda_refuse(rondo__cuda_kernel *kernel, const char *detail);

// ---- compiler options -------------------------------------------------------------------------

typedef struct rondo__defines {
    size_t count;
    char text[RONDO__DEFINES_MAX][96];
} rondo__defines;

void rondo__define_int(rondo__defines *defines, const char *name, int64_t value);
// Any option of the compiler, as it is.
void rondo__define_option(rondo__defines *defines, const char *option);
void rondo__define_text(rondo__defines *defines, const char *name, const char *value);
// A type of the device text: -DRONDO_<name>=<type>, which the text turns into a typedef <name>.
void rondo__define_word(rondo__defines *defines, const char *name, const char *type);
// The device's name of the type: f32 -> float, f16 -> f16, bool -> b8.
void rondo__define_type(rondo__defines *defines, const char *name, rondo_dtype dtype);
// An unsigned type of that many bytes (1, 2, 4, 8, or 16 for uint4): for moves without arithmetic.
void rondo__define_bytes(rondo__defines *defines, const char *name, size_t bytes);
const char *rondo__cuda_type_name(rondo_dtype dtype);

// ---- steps ------------------------------------------------------------------------------------

// Asks for the share of shared memory that was measured to be the best for the kernel `name`, on
// chips where it was (rondo__device_prefer_shared).
RONDO_MUST_USE rondo_status rondo__cuda_prefer_shared_of(rondo_device *device, void *function,
                                                         const char *name);

// A launch of `name` from CUDA C `text`. `blocks` is clamped to at least 1 and to what a grid can
// hold, so kernels over elements loop with a grid stride. NULL after a failure.
rondo__step *rondo__cuda_add_launch(rondo__cuda_kernel *kernel, const char *text,
                                    const rondo__defines *defines, const char *name, int64_t blocks,
                                    uint32_t threads);
rondo__step *rondo__cuda_add_step(rondo__cuda_kernel *kernel, rondo__step_kind kind);
rondo__step *rondo__cuda_add_copy(rondo__cuda_kernel *kernel, rondo__address from,
                                  rondo__address to, size_t bytes);
// The first step: output 0 starts as a copy of input 0, which the kernel leaves out where it is
// told that the one lies where the other does.
void rondo__cuda_add_data_copy(rondo__cuda_kernel *kernel, size_t bytes);
// The same of a kernel whose first step brings input 0 to the beginning of the output.
void rondo__cuda_may_skip_first(rondo__cuda_kernel *kernel, bool may);
rondo__step *rondo__cuda_add_zero(rondo__cuda_kernel *kernel, rondo__address to, size_t bytes);
// Takes `state`, also when it fails.
rondo__step *rondo__cuda_add_call(rondo__cuda_kernel *kernel, rondo__cuda_call call, void *state,
                                  void (*destroy)(void *state));

rondo__address rondo__address_input(size_t index);
rondo__address rondo__address_output(size_t index);
rondo__address rondo__address_workspace(size_t offset_bytes);
rondo__address rondo__address_fixed(void *memory);
// Whether nothing ever writes there, so that a kernel may read it before its turn.
bool rondo__address_is_fixed(const rondo__address *address);
rondo__address rondo__address_offset(rondo__address address, size_t bytes);
void *rondo__address_resolve(const rondo__address *address, const rondo__cuda_arguments *arguments);

// Each appends one parameter word.
void rondo__step_address(rondo__step *step, rondo__address address);
void rondo__step_input(rondo__step *step, size_t index);
void rondo__step_output(rondo__step *step, size_t index);
// NULL stands for an address of 0, which kernels take for absent.
void rondo__step_optional(rondo__step *step, const rondo__address *address);
void rondo__step_optional_input(rondo__step *step, const rondo__cuda_kernel *kernel, size_t index);
void rondo__step_optional_output(rondo__step *step, const rondo__cuda_kernel *kernel, size_t index);
void rondo__step_int(rondo__step *step, int64_t value);
void rondo__step_ints(rondo__step *step, const int64_t *values, int32_t count);
void rondo__step_float(rondo__step *step, double value);  // a double on the device
// Appends a `faults` of the device text: where the kernel tells of data that the op does not
// allow.
void rondo__step_faults(rondo__step *step, const rondo__cuda_kernel *kernel, rondo__fault fault);
// Appends the 16 words of a tensor map; they begin the arguments or follow other maps.
void rondo__step_map(rondo__step *step, rondo__address address, const rondo__tensor_form *form);
// Fills up the arguments to a multiple of 128 bytes, as a struct with maps is.
void rondo__step_end_maps(rondo__step *step);

// Shared memory of a block, at most, on chips that kernels for tensor cores are made for.
int64_t rondo__cuda_get_shared_bytes(const rondo_device_info *info);

// Blocks of RONDO__CUDA_BLOCK threads for `count` elements.
int64_t rondo__cuda_blocks(int64_t count);

// ---- request helpers --------------------------------------------------------------------------

// Input or output as the request has it; an absent one has dtype NONE.
const rondo__tensor_info *rondo__cuda_input(const rondo__cuda_kernel *kernel, size_t index);
const rondo__tensor_info *rondo__cuda_output(const rondo__cuda_kernel *kernel, size_t index);
bool rondo__cuda_has_input(const rondo__cuda_kernel *kernel, size_t index);
bool rondo__cuda_wants_output(const rondo__cuda_kernel *kernel, size_t index);

// The integers of a constant input (i64 or i32), at most `capacity`. Returns their count, or -1
// when the value is not known at prepare time or does not fit; then the kernel is refused.
int64_t rondo__cuda_read_ints(rondo__cuda_kernel *kernel, size_t index, int64_t *out_values,
                              int64_t capacity);

// Axes from the attribute (old opsets) or from constant input `index`, made positive. Returns the
// count, or -1 after refusing. Without either, 0.
int64_t rondo__cuda_read_axes(rondo__cuda_kernel *kernel, const char *attribute, size_t index,
                              int32_t rank, int64_t *out_axes);

// axis + rank when negative, clamped to what a shape has.
int32_t rondo__cuda_wrap_axis(int64_t axis, int32_t rank);
int64_t rondo__cuda_product(const rondo_shape *shape, int32_t from, int32_t to);
bool rondo__cuda_is_float(rondo_dtype dtype);  // f16, bf16, f32
