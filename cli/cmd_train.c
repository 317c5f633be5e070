// rondo train — trains a model with arrays from a file.
//
// The whole step is one program, replayed once a batch. After each epoch, and when Ctrl-C comes,
// the checkpoint is written: whole, or the one before stays. The number of runs is a variable of
// the program, so that a resumed training takes up at the very batch.
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>

#include "command.h"
#include "console.h"
#include "interrupt.h"
#include "trainer.h"

static int run_train(const cli_command *command, int argc, char **argv) {
    cli_train_settings settings = cli_train_settings_start;
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    int status = cli_train_settings_check(command, argv[0], &settings);
    if (status != CLI_DONE) {
        return status;
    }
    cli_trainer t = {.command = command, .settings = &settings, .path = argv[0]};
    if (!cli_train_ranks_find(&t.ranks)) {
        return CLI_FAILED;
    }
    if (!cli_train_ranks_are_many(&t.ranks) && (settings.shards || settings.sends_half)) {
        return cli_fail_misuse(command, "%s is of several ranks, and this is the only one",
                               settings.shards ? "--shard-updates" : "--half-averages");
    }
    cli_set_level(settings.is_quiet || !cli_train_ranks_is_first(&t.ranks) ? CLI_RESULT
                                                                           : CLI_NORMAL);
    cli_interrupt_watch();
    status = cli_trainer_open(&t);
    if (status == CLI_DONE) {
        status = cli_trainer_run(&t);
    } else if (cli_interrupt_came()) {
        status = CLI_INTERRUPTED;
    }
    cli_trainer_close(&t);
    return status;
}

#define AT(field) offsetof(cli_train_settings, field)
static const cli_option train_options[] = {
    {"--data", "FILE", CLI_TEXT, AT(data), NULL,
     "a .npz, or a folder of .npy: an array for each input of the\nmodel, and the target; the "
     "first "
     "axis counts samples"},
    {"--loss", NULL, CLI_CHOICE, AT(loss), "cross_entropy|mse|bce",
     "labels of classes (default), numbers, or chances. Behind a\nSoftmax or Sigmoid at the end of "
     "the model it takes what\nwent in there"},
    {"--target", "NAME", CLI_TEXT, AT(target), NULL,
     "array of the target (default: the one that is no input)"},
    {"--result", "NAME", CLI_TEXT, AT(result), NULL,
     "output that is compared with it (default: the first)"},
    {"--optimizer", NULL, CLI_CHOICE, AT(optimizer), "sgd|momentum|adam|adamw|adagrad",
     "as PyTorch computes them (default: adam)"},
    {"--learning-rate", "R", CLI_NUMBER, AT(rate), NULL, "of the first step (0.001)"},
    {"--momentum", "M", CLI_NUMBER, AT(momentum), NULL, "with --optimizer momentum (0.9)"},
    {"--weight-decay", "D", CLI_NUMBER, AT(decay), NULL, "of each weight, each step (0)"},
    {"--schedule", NULL, CLI_CHOICE, AT(schedule), "constant|cosine|linear|step",
     "of the learning rate, over all epochs (default: constant);\nstep: by --step-factor after "
     "each "
     "--step-epochs"},
    {"--step-epochs", "N", CLI_COUNT, AT(step_epochs), NULL, "with --schedule step (1)"},
    {"--step-factor", "F", CLI_NUMBER, AT(step_factor), NULL, "with --schedule step (0.1)"},
    {"--least-rate", "SHARE", CLI_NUMBER, AT(least), NULL,
     "where the schedule ends, a share of the learning rate (0)"},
    {"--warm-up", "N", CLI_COUNT, AT(warmup), NULL,
     "steps from a third of the learning rate to all of it (0)"},
    {"--clip-norm", "N", CLI_NUMBER, AT(clip_norm), NULL,
     "the most that all gradients together are long (0: any)"},
    {"--clip-value", "V", CLI_NUMBER, AT(clip_value), NULL,
     "the most that each gradient is (0: any)"},
    {"--epochs", "N", CLI_COUNT, AT(epochs), NULL, "times through the data (10)"},
    {"--batch", "B", CLI_COUNT, AT(batch), NULL,
     "samples a run, of all ranks together (32, or what the model\ntakes at once)"},
    {"--accumulate", "N", CLI_COUNT, AT(accumulate), NULL,
     "runs whose gradients are averaged for a step (1), at most\nthe batches of an epoch"},
    {"--validation", "SHARE", CLI_NUMBER, AT(held), NULL,
     "of the samples that is held out, and measured after each\nepoch (0.1)"},
    {"--dtype", NULL, CLI_CHOICE, AT(dtype), "fp32|fp16|bf16",
     "compute in single precision (default), in half precision\nwith a scaled loss, or products in "
     "bf16; weights are of f32"},
    {"--shard-updates", NULL, CLI_SWITCH, AT(shards), NULL,
     "of several ranks each updates its part of the weights"},
    {"--half-averages", NULL, CLI_SWITCH, AT(sends_half), NULL,
     "of several ranks with --dtype fp16: average matrices in it"},
    {"--train", "PATTERN", CLI_LIST, AT(train), NULL,
     "train these parameters alone (* any characters, ? one);\nmay be repeated"},
    {"--lora", "RANK", CLI_COUNT, AT(rank), NULL,
     "train low-rank adapters of matrices (those of --train, or\nall) in their place; what comes "
     "out "
     "has them added"},
    {"--rows", "PATTERN", CLI_LIST, AT(rows), NULL,
     "tables whose rows change alone, where they were looked up;\nmay be repeated"},
    {"--recompute", "PATTERN", CLI_LIST, AT(recompute), NULL,
     "ops that run once more on the way back, to save memory;\nmay be repeated"},
    {"--output", "FILE", CLI_TEXT, AT(output), NULL, "the trained model, as ONNX"},
    {"--checkpoint", "DIR", CLI_TEXT, AT(checkpoint), NULL,
     "keep the state there after each epoch, and at Ctrl-C"},
    {"--resume", NULL, CLI_SWITCH, AT(resumes), NULL,
     "go on from what is in --checkpoint, if anything is; what\ndecides its bits must be as it "
     "was"},
    {"--report", "FILE", CLI_TEXT, AT(report), NULL, "a page with a picture of the loss (HTML)"},
    {"--device", "NAME", CLI_TEXT, AT(device), NULL,
     "auto (default: the first usable GPU, a GPU for each rank,\notherwise the host), host, or "
     "cuda:N"},
    {"--graphs", NULL, CLI_CHOICE, AT(graphs), "auto|on|off|measured",
     "auto (default) captures where it can, on makes a failed\ncapture an error, off is eager, "
     "measured ends replays that\nare slower than eager runs"},
    {"--threads", "N", CLI_COUNT, AT(thread_count), NULL,
     "threads for one op on the host, 1 to 1024\n(default: see rondo help environment)"},
    {"--seed", "N", CLI_COUNT, AT(seed), NULL,
     "of the order of samples, of what is held out, and of random\nops (0)"},
    {"--quiet", NULL, CLI_SWITCH, AT(is_quiet), NULL, "say nothing but errors"},
};

const cli_command cli_command_train = {
    .name = "train",
    .operands = "MODEL",
    .summary = "train a model with arrays from a file",
    .details =
        "Loss, gradients and optimiser are one program, replayed once a batch. Ctrl-C ends "
        "after the\n"
        "batch that runs, and keeps the work. A loss that is no number is an error, and the "
        "checkpoint\n"
        "before it stays. Started by mpirun, srun or torchrun, all ranks train together: each "
        "takes "
        "a part\n"
        "of every batch, and rank 0 speaks and writes.",
    .operand_min = 1,
    .operand_max = 1,
    .options = train_options,
    .option_count = sizeof train_options / sizeof train_options[0],
    .run = run_train,
};
