// rondo/training.h — gradients of programs, and steps that train them.
//
//   rondo_builder_create_from(model, &builder);       // or a program that is built in code
//   rondo_builder_add_gradients(builder, "loss", (const char *[]){"w"}, (const char *[]){"dw"}, 1,
//                               NULL);
//
// Gradients are nodes as all others: of ops of ONNX, in the program that is run, captured, saved,
// and differentiated again. docs/training.md lists the ops that have one.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TRAINING_H
#define RONDO_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/builder.h"
#include "rondo/executor.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/user_op.h"

RONDO_EXTERN_C_BEGIN

// Starts a builder with all that a program has, to go on from there: its inputs, parameters, nodes
// and outputs, under their names. The program stays as it is.
//
// Ownership: as rondo_builder_create.
// Threads:   safe while no call changes the program.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_create_from(const rondo_program *program,
                                                                rondo_builder **out_builder);

typedef struct rondo_gradient_options {
    size_t struct_size;  // sizeof(rondo_gradient_options)
    const char *seed;    // a value of y's shape: how something behind changes with y; NULL: ones
    const char *const *stop;  // values that count as fixed, though they are computed
    size_t stop_count;
    const char *const
        *recompute;          // patterns (* any characters, ? one) of nodes or types of op that
    size_t recompute_count;  // run once more on the way back, so that what they make need not
                             // be kept until then; ops that draw random numbers never do
} rondo_gradient_options;

// Adds the nodes that compute how y changes with each of xs: d(sum of y) / dx, of x's type and
// shape; zeros where y does not depend on it.
//
// xs         values of the builder: inputs, parameters, or what nodes make.
// outputs    a new name for each.
//
// Where an op has kinks, or its input is at an end, the gradient is PyTorch's (docs/training.md).
// Dropout drops what it dropped; BatchNormalization follows the batch where it trains. A Loop or
// Scan must have a number of turns that is known, and is written out.
//
// Errors:    UNSUPPORTED (an op or attribute without a gradient between an x and y: the message
//            names op, node and the way to y; an x that is no real), INVALID (names; a body),
//            BAD_DATA (shapes that do not fit).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_gradients(
    rondo_builder *builder, const char *y, const char *const *xs, const char *const *outputs,
    size_t count, const rondo_gradient_options *options);

#if defined(RONDO_EXPERIMENTAL)

// A node of a user's op, whose gradient is asked for.
typedef struct rondo_gradient_node {
    size_t struct_size;         // of the library's struct
    const rondo_op_node *node;  // name, attributes (rondo/user_op.h)
    size_t input_count;
    const char *const *inputs;  // names of values; "" for one that is left out
    const bool *wants;          // whether the gradient with this input is wanted
    size_t output_count;
    const char *const *outputs;  // "" for one that is left out
    const char *const *changes;  // the gradient with each output; "" where there is none
} rondo_gradient_node;

// Adds nodes to `builder`, under new names, and writes for each input that is wanted the name of
// its gradient, of the input's shape, into out_changes ("" or nothing: zero). Names are copied
// after the call. The builder has the values of the node, and is used for nothing else.
typedef rondo_status (*rondo_gradient_function)(void *data, const rondo_gradient_node *node,
                                                rondo_builder *builder, const char **out_changes);

// Says what the gradient of a registered op is, for the whole process.
//
// Errors:    INVALID (no such op; it has one already).
// Threads:   any.
RONDO_API RONDO_MUST_USE rondo_status rondo_op_set_gradient(const char *domain, const char *name,
                                                            rondo_gradient_function function,
                                                            void *data);

#endif  // RONDO_EXPERIMENTAL

// ---- steps --------------------------------------------------------------------------------------

typedef int32_t rondo_optimizer;
enum {
    RONDO_OPTIMIZER_SGD = 0,  // with momentum, dampening, nesterov
    RONDO_OPTIMIZER_ADAM = 1,
    RONDO_OPTIMIZER_ADAMW = 2,  // the decay is taken off the weight, not added to the gradient
    RONDO_OPTIMIZER_ADAGRAD = 3,
};

// The factor of the learning rate, as a function of the number of steps s that were taken.
typedef int32_t rondo_schedule;
enum {
    RONDO_SCHEDULE_CONSTANT = 0,  // 1
    RONDO_SCHEDULE_STEP = 1,      // factor^(s / steps), in whole numbers
    RONDO_SCHEDULE_COSINE = 2,    // from 1 down to `least`, which s = steps has, and stays there
    RONDO_SCHEDULE_LINEAR = 3,    // a line from 1 to `least`, likewise
};

typedef struct rondo_minimize_options {
    size_t struct_size;  // sizeof(rondo_minimize_options)
    rondo_optimizer optimizer;
    double learning_rate;  // above 0
    const char *rate;      // the caller's value each step, a scalar of the builder (f32 or f64), in
                           // the place of learning_rate and schedule; NULL: none
    double momentum;       // SGD; 0 to below 1
    double dampening;
    bool nesterov;
    double beta1, beta2;  // Adam; 0: 0.9 and 0.999
    double epsilon;       // 0: 1e-8 of Adam, 1e-10 of Adagrad
    double weight_decay;
    rondo_schedule schedule;
    int64_t schedule_steps;
    double schedule_factor;
    double schedule_least;  // of the learning rate's factor, 0 to 1
    int64_t warmup_steps;   // before the schedule: a line from `warmup_start` to 1; 0: none
    double warmup_start;    // 0: a third
    double clip_value;      // each gradient stays within -+ this; 0: no
    double clip_norm;       // all gradients together have at most this norm; 0: no
    bool scale_loss;        // for half precision; a step whose gradients are not finite is left out
    double scale_start;     // 0: 65536
    double scale_growth;    // 0: 2; after `scale_interval` good steps
    double scale_backoff;   // 0: 0.5; after a bad step
    double scale_least;     // 0: 1; the scale never goes below
    int64_t scale_interval;    // 0: 2000
    int64_t scale_patience;    // bad steps before it backs off, refilled when it grows; 0: 1
    int64_t accumulate;        // runs whose gradients are averaged before a step; 0: 1. Of several
                               // ranks each adds up its own: rondo_executor_gather_variables
    const char *const *train;  // patterns of the names of parameters; NULL: all that look trained
    size_t train_count;
    const char *const *recompute;  // as in rondo_gradient_options
    size_t recompute_count;
    bool average_ranks;   // gradients are averaged over all ranks; see "several ranks" below
    size_t bucket_bytes;  // that are averaged at once, of gradients; 0: two fifths of all, a fifth
                          // with shard_updates, at least 25 MiB
    const char *const *rows;  // patterns of tables whose rows change alone, with their states; see
                              // below
    size_t rows_count;
    bool shard_updates;  // with average_ranks: each rank updates its part of the variables; see
                         // below
} rondo_minimize_options;

// Adds a whole training step: the gradients of a loss, and what each run makes of the parameters.
//
// A run of the program then reads them, computes the loss, and leaves them changed, on the device,
// without a word that the host reads. The parameters become variables (rondo/variable.h) under
// their names; one of f16 or bf16 is the rounded form of a variable "NAME.master" of f32. States
// are variables, too: "NAME.momentum", "NAME.mean", "NAME.square", "NAME.sum", and of the whole
// "train.step", "train.scale", "train.good", "train.patience", "train.micro". The values
// "train.rate" and, where it is clipped, "train.norm" (before clipping) can be made outputs.
//
// loss       a real number.
// options    NULL: SGD with a rate of 0.01.
//
// Parameters that look trained are constants of reals on which the loss depends, with more than one
// element, a product's bias or PRelu's slope, or named in full; but not the statistics of
// BatchNormalization, nor the states from which RNN, GRU and LSTM start if they are not named in
// full, nor what a body of If, Loop or Scan has for itself (a warning names one). Statistics are
// updated beside, where they are parameters. Ops that leave it open work as in training.
//
// A table that a single Gather of axis 0 reads changes in the rows that were looked up, and nowhere
// else is it read or written, with plain SGD: no momentum, decay, clipping or accumulation. A row
// that was looked up twice gets both parts, one after the other.
//
// Tables that options.rows name do so with all optimisers, and so do their states: the parts of a
// row are added up first. Adam is then PyTorch's SparseAdam, Adagrad what PyTorch's is for sparse
// gradients. With momentum rows that are not looked up rest (in PyTorch they go on moving). Beside
// "NAME.mean" and the like there is "NAME.slot", of I64, a word for each row.
//
// With options.shard_updates each rank updates its part of each large variable and of its states;
// with two ranks that is half of the elements. A rank gets its part of the averages alone, and the
// ranks gather the weights at the beginning of the next run. On hosts two ranks compute the same
// bits as without it, except for clip_norm, whose norm adds the squares in another order. Elsewhere
// the bits are the same where the sums are added in one order and rounded alike.
// Between runs such a variable lies in parts: until rondo_executor_gather_variables it can be
// neither read nor saved, and its new value cannot be fetched. Set it at all ranks alike: of what a
// rank sets its part alone counts. Nodes and outputs that are added behind the step cannot read it
// (UNSUPPORTED); of a weight they read "NAME.whole", which is gathered when a run begins.
// Variables of fewer than 4096 elements, of a number that is no multiple of 8 times the ranks, of
// bodies, and those that are outputs, are updated by all ranks.
//
// Numbers: as PyTorch computes, with each operation rounded by itself (as its kernels without fused
// multiply-add do), and powers, corrections and rates in f64. The norm is of f32, the root of the
// sum of the squares of each tensor's norm; max / (norm + 1e-6), at most 1, is multiplied.
//
// Errors:    INVALID (a number of the options: the message names it; names; nothing to train),
//            UNSUPPORTED (as rondo_builder_add_gradients; a table of options.rows that is read
//            otherwise, or with decay, clipping, accumulation or ranks).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_minimize(rondo_builder *builder,
                                                             const char *loss,
                                                             const rondo_minimize_options *options);

// Puts w + a b in the place of weights w, which stay as they are: "NAME.lora_a" [rows, rank] and
// "NAME.lora_b" [rank, columns] are new variables, of which b starts at zero. Train these:
// options.train = {"*.lora_a", "*.lora_b"}. rondo_executor_get_trained adds them to the weights.
//
// patterns   of names of parameters of f32 or f64, matrices that are the second factor of a MatMul
//            or Gemm and larger than `rank` both ways; NULL: all.
//
// Errors:    INVALID (none matches; rank below 1; a body).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_adapters(rondo_builder *builder,
                                                                 const char *const *patterns,
                                                                 size_t count, int64_t rank);

// ---- several ranks -----------------------------------------------------------------------------
//
//   rondo_communicator_create(device, NULL, &communicator);   // in each process of mpirun
//   minimize_options.average_ranks = true;
//   executor_options.communicator = communicator;
//
// Each rank is a process with a GPU of its own, or without one; each runs the same program on its
// part of the data. Several ranks in one process take a thread each. docs/training.md, "Several
// GPUs", has the launchers.

// Which rank this process is, as its launcher says.
typedef struct rondo_ranks {
    size_t struct_size;    // sizeof(rondo_ranks); set by the caller
    int32_t rank;          // from 0
    int32_t size;          // number of ranks; 1 without a launcher
    int32_t local_rank;    // among those of this machine: the number of its GPU
    int32_t local_size;    // 0: the launcher does not say
    const char *launcher;  // "Open MPI", "torchrun", "MPICH", "SLURM", "rondo"; "": none
} rondo_ranks;

// Reads the variables of Open MPI (OMPI_COMM_WORLD_...), torchrun (RANK, WORLD_SIZE, LOCAL_RANK),
// MPICH (PMI_...) and SLURM (SLURM_PROCID, SLURM_STEP_NUM_TASKS); before them RONDO_RANK and
// RONDO_RANKS.
//
// Errors:    INVALID (a variable that is no number, or ranks that do not fit).
// Threads:   any, while none changes the environment.
RONDO_API RONDO_MUST_USE rondo_status rondo_find_ranks(rondo_ranks *out_ranks);

// What moves the numbers.
typedef int32_t rondo_transport;
enum {
    RONDO_TRANSPORT_AUTO = 0,     // NCCL on a GPU; else the launcher's MPI; else sockets
    RONDO_TRANSPORT_NCCL = 1,     // libnccl.so.2, loaded now
    RONDO_TRANSPORT_MPI = 2,      // Open MPI or MPICH, by the module that was built for it
    RONDO_TRANSPORT_SOCKETS = 3,  // the connections with rank 0
};

// Called about five times a second while ranks wait for others, by the thread that waits.
//
// what       in a few words, as "rank 0 of 2 waits for rank 1".
// Returns:   whether to go on; false ends the call with CANCELLED.
typedef bool (*rondo_waiting_function)(void *user_data, const char *what, double seconds);

typedef struct rondo_communicator_options {
    size_t struct_size;   // sizeof(rondo_communicator_options)
    int32_t rank, size;   // size 0: as rondo_find_ranks says
    const char *meeting;  // where ranks find each other: a file that is not there yet (a path with
                          // a /), or HOST:PORT of rank 0. NULL: RONDO_MEETING, MASTER_ADDR and
                          // MASTER_PORT, or, on one machine, a file that the launcher's name of
                          // the job decides
    rondo_transport transport;
    uint64_t wait_ms;    // for all ranks to come; 0: two minutes
    const char *common;  // what all ranks must have alike, as "name value" a line, up to 1980
                         // bytes: a difference is an error at all of them, which names it. NULL:
                         // nothing
    rondo_waiting_function waiting;  // NULL: none
    void *waiting_data;
} rondo_communicator_options;

// Joins the other ranks, and waits until all are there.
//
// Before a run whose collectives differ from those of its run before, the ranks compare them:
// count, kinds, types, sizes and order. A rank that ends, is killed, or fails in a run ends the
// others' runs, now and later, with an error that names it. A run that did not begin leaves
// variables as they are, so that they can be saved; one that was under way may have written a part.
//
// Errors:    UNAVAILABLE (a rank did not come, or ended; no NCCL, or no module for MPI), INVALID
//            (ranks that do not fit together: the message has both), UNSUPPORTED (transport), STATE
//            (this thread has a communicator already), CANCELLED (options.waiting).
// Ownership: executors retain it.
// Threads:   one thread a communicator makes it and runs its executors.
// Capture:   not legal while a stream of the device records.
RONDO_API RONDO_MUST_USE rondo_status
rondo_communicator_create(rondo_device *device, const rondo_communicator_options *options,
                          rondo_communicator **out_communicator);

// Leaves the other ranks, when the executors have given it up, too.
RONDO_API void rondo_communicator_destroy(rondo_communicator *communicator);

typedef int32_t rondo_reduction;
enum {
    RONDO_REDUCTION_SUM = 0,
    RONDO_REDUCTION_AVERAGE = 1,  // of real numbers
};

// Adds a node that gives every rank the sum, or the average, of what all ranks have: of each input
// by itself, at once. It has no gradient, and cannot stand in a body.
//
// inputs     values of f16, bf16, f32, f64, i32 or i64; up to 240.
// outputs    a new name for each.
//
// Numbers: all ranks get the same bits. On the host halves are added in f32, and through sockets in
// the order of the ranks; NCCL and MPI choose an order.
//
// Errors:    INVALID (names, count; a body).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_all_reduce(rondo_builder *builder,
                                                                   rondo_reduction reduction,
                                                                   const char *const *inputs,
                                                                   const char *const *outputs,
                                                                   size_t count);

// Lets every rank have all of every variable, where each updates its part (options.shard_updates of
// rondo_builder_minimize), and the average of what each has added up by itself
// (options.accumulate): before they are read or saved. All ranks call it, between the same runs.
// Where all have all of them it does nothing.
//
// Errors:    STATE (a variable has no value, or a failed run may have written it; a run is being
//            recorded), UNAVAILABLE and MISMATCH as a run.
// Threads:   one thread per executor.
// Cost:      waits; the bytes of these variables between the ranks.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_gather_variables(rondo_executor *executor);

// ---- what is kept -------------------------------------------------------------------------------

// Writes all variables of an executor, those of the optimiser and the counts of steps included, and
// where its random numbers stand, into a file: whole, or the one that was there stays.
//
// Errors:    STATE (a variable has no value, or ranks have parts of it:
//            rondo_executor_gather_variables), UNAVAILABLE (the file cannot be written: the message
//            has path and reason).
// Cost:      waits; a copy of all variables in host memory.
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_save(rondo_executor *executor,
                                                            const char *path);

// Reads it back, on any device: runs go on with the same bits as if there had been no end between,
// where the device computes the same.
//
// Errors:    UNAVAILABLE (no such file), BAD_DATA (it is damaged, or of a program with other
//            variables: the message names the first). Nothing has changed then.
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_load(rondo_executor *executor,
                                                            const char *path);

// Reads one variable of a checkpoint, without an executor: how far a training came, say, or a
// number that the program keeps there for itself.
//
// Errors:    UNAVAILABLE (no such file), BAD_DATA (it is damaged, or has no such variable).
// Ownership: caller ends *out_value with rondo_tensor_deinit.
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_read(const char *path, const char *variable,
                                                            rondo_tensor *out_value);

// Gives out `model`, from which the executor's program was built (rondo_builder_create_from), with
// the values that its parameters have after training, statistics of norms, too: to be saved as
// ONNX, or to infer. Ops, inputs and outputs are the model's.
//
// Errors:    INVALID (no parameter of the model is a variable of the executor's), STATE (a variable
//            has no value).
// Ownership: caller destroys *out_program.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_get_trained(rondo_executor *executor,
                                                                 const rondo_program *model,
                                                                 rondo_program **out_program);

RONDO_EXTERN_C_END

#endif  // RONDO_TRAINING_H
