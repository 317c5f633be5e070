// SPDX-License-Identifier: Apache-2.0
#include "train_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "hash_bytes.h"
#include "tensor_text.h"
#include "train_settings.h"

static const rondo_tensor *find(const cli_tensor_set *set, const char *name) {
    for (size_t i = 0; i < set->count; ++i) {
        if (strcmp(set->names[i], name) == 0) {
            return &set->tensors[i];
        }
    }
    return NULL;
}

static bool is_input(const rondo_program *model, const char *name) {
    for (size_t i = 0; i < rondo_program_get_input_count(model); ++i) {
        rondo_port port = {.struct_size = sizeof port};
        if (rondo_program_get_input(model, i, &port) == RONDO_STATUS_OK &&
            strcmp(port.name, name) == 0) {
            return true;
        }
    }
    return false;
}

// The target's name; NULL, and the reason printed, where it is not clear.
static const char *choose_target(const char *path, const cli_tensor_set *set,
                                 const rondo_program *model, const char *target) {
    const char *found = NULL;
    if (target != NULL) {
        if (find(set, target) == NULL) {
            cli_print_error("%s: no array \"%s\"", path, target);
            return NULL;
        }
        return target;
    }
    for (size_t i = 0; i < set->count; ++i) {
        if (!is_input(model, set->names[i])) {
            if (found != NULL) {
                cli_print_error(
                    "%s: \"%s\" and \"%s\" are no inputs; say which is the target with "
                    "--target",
                    path, found, set->names[i]);
                return NULL;
            }
            found = set->names[i];
        }
    }
    if (found == NULL) {
        cli_print_error("%s: all arrays are inputs of the model; a target is needed", path);
    }
    return found;
}

static bool add_column(cli_train_data *data, const char *path, const char *name, const char *array,
                       const rondo_port *port) {
    const rondo_tensor *tensor = find(&data->set, array);
    if (tensor == NULL) {
        cli_print_error("%s: no array \"%s\", which the model takes", path, array);
        return false;
    }
    if (port != NULL && tensor->dtype != port->dtype) {
        cli_print_error(
            "%s: \"%s\" is %s; the model takes %s: save it so, with "
            "array.astype(...) in NumPy",
            path, array, rondo_dtype_get_name(tensor->dtype), rondo_dtype_get_name(port->dtype));
        return false;
    }
    if (tensor->dtype == RONDO_DTYPE_STRING) {
        cli_print_error("%s: \"%s\" is string; only numbers are trained with", path, array);
        return false;
    }
    if (tensor->shape.rank < 1) {
        cli_print_error("%s: \"%s\" has no axis of samples", path, array);
        return false;
    }
    const int64_t count = tensor->shape.extent[0];
    if (data->column_count > 0 && count != data->sample_count) {
        cli_print_error("%s: \"%s\" has %lld samples, \"%s\" has %lld", path, array,
                        (long long)count, data->columns[0].name, (long long)data->sample_count);
        return false;
    }
    data->sample_count = count;
    cli_train_column *column = &data->columns[data->column_count++];
    *column = (cli_train_column){.name = name, .tensor = tensor};
    const size_t row = count > 0 ? rondo_tensor_get_bytes(tensor) / (size_t)count : 0;
    const int64_t most = data->batch < count ? data->batch : count;
    column->batch = malloc((size_t)most * row + 1);
    if (column->batch == NULL) {
        return cli_fail_memory();
    }
    return true;
}

// splitmix64: a step of a generator that is the same everywhere.
static uint64_t draw(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void shuffle(int64_t *list, int64_t count, uint64_t seed) {
    for (int64_t i = count - 1; i > 0; --i) {
        const int64_t other = (int64_t)(draw(&seed) % (uint64_t)(i + 1));
        const int64_t kept = list[i];
        list[i] = list[other];
        list[other] = kept;
    }
}

static bool make_order(cli_train_data *data, const char *path, double held) {
    const int64_t count = data->sample_count;
    data->order = malloc(((size_t)count + 1) * sizeof *data->order);
    data->shuffled = malloc(((size_t)count + 1) * sizeof *data->shuffled);
    if (data->order == NULL || data->shuffled == NULL) {
        return cli_fail_memory();
    }
    for (int64_t i = 0; i < count; ++i) {
        data->order[i] = i;
    }
    data->held_count = (int64_t)((double)count * held);
    if (data->held_count > 0) {
        shuffle(data->order, count, data->seed);
    }
    if (count - data->held_count < 1) {
        cli_print_error("%s: there are %lld samples; none is left to train with", path,
                        (long long)count);
        return false;
    }
    return true;
}

bool cli_train_data_open(const char *path, const rondo_program *model, const char *target,
                         double held, int64_t batch, uint64_t seed, cli_train_data *out_data) {
    *out_data = (cli_train_data){.batch = batch, .held_batch = batch, .seed = seed};
    if (!cli_tensor_set_read(path, &out_data->set)) {
        return false;
    }
    const size_t inputs = rondo_program_get_input_count(model);
    out_data->columns = calloc(inputs + 1, sizeof *out_data->columns);
    if (out_data->columns == NULL) {
        return cli_fail_memory();
    }
    const char *chosen = choose_target(path, &out_data->set, model, target);
    out_data->target = chosen;
    for (size_t i = 0; i < inputs && chosen != NULL; ++i) {
        rondo_port port = {.struct_size = sizeof port};
        if (rondo_program_get_input(model, i, &port) != RONDO_STATUS_OK ||
            !add_column(out_data, path, port.name, port.name, &port)) {
            return false;
        }
    }
    return chosen != NULL && add_column(out_data, path, "train.target", chosen, NULL) &&
           make_order(out_data, path, held);
}

void cli_train_data_close(cli_train_data *data) {
    for (size_t i = 0; i < data->column_count; ++i) {
        free(data->columns[i].batch);
    }
    free(data->columns);
    free(data->order);
    free(data->shuffled);
    cli_tensor_set_free(&data->set);
}

int64_t cli_train_data_count(const cli_train_data *data, bool is_held) {
    const int64_t count = is_held ? data->held_count : data->sample_count - data->held_count;
    const int64_t batch = is_held ? data->held_batch : data->batch;
    return (data->drops ? count : count + batch - 1) / batch;
}

int64_t cli_train_data_find_batch(const rondo_program *model) {
    for (size_t i = 0; i < rondo_program_get_input_count(model); ++i) {
        rondo_port port = {.struct_size = sizeof port};
        if (rondo_program_get_input(model, i, &port) == RONDO_STATUS_OK && port.rank > 0 &&
            port.extent[0] > 0) {
            return port.extent[0];
        }
    }
    return -1;
}

bool cli_train_data_drop_rest(cli_train_data *data, const char *path, int64_t at_once) {
    const int64_t held = data->held_count;
    data->drops = true;
    data->held_batch = at_once;
    data->held_count -= held % at_once;
    const int64_t trained = data->sample_count - data->held_count;
    if (trained < data->batch) {
        cli_print_error(
            "%s: %lld samples are left to train with, and the model takes %lld at once; give "
            "more, or a smaller --validation",
            path, (long long)trained, (long long)data->batch);
        return false;
    }
    if (held != data->held_count) {
        cli_say(CLI_NORMAL,
                "%lld samples are held out, where %lld were to be: the model takes "
                "%lld at once",
                (long long)data->held_count, (long long)held, (long long)at_once);
    }
    if (trained % data->batch != 0) {
        cli_say(
            CLI_NORMAL,
            "each epoch leaves out %lld samples, others each time: the model takes %lld at once",
            (long long)(trained % data->batch), (long long)data->batch);
    }
    return true;
}

// What the loss says of a number of the target; NULL: it takes it.
static const char *find_fault(cli_train_loss loss, double number, double classes) {
    if (loss == CLI_CROSS_ENTROPY) {
        return number >= 0.0 && (classes < 0.0 || number < classes)
                   ? NULL
                   : "which is no label of a class: they count from 0";
    }
    if (!isfinite(number)) {
        return "which is no number to come near to";
    }
    return loss == CLI_BINARY && !(number >= 0.0 && number <= 1.0)
               ? "which is no chance: bce takes 0 to 1"
               : NULL;
}

// Numbers of a sample; -1: not known before a run.
static int64_t count_numbers(const rondo_port *result) {
    int64_t count = 1;
    for (int32_t d = 1; d < result->rank && count >= 0; ++d) {
        count = result->extent[d] >= 0 ? count * result->extent[d] : -1;
    }
    return result->rank > 0 ? count : -1;
}

bool cli_train_data_check_target(const cli_train_data *data, const char *path, cli_train_loss loss,
                                 const rondo_port *result) {
    const rondo_tensor *target = cli_train_data_get_target(data)->tensor;
    const int64_t row = rondo_shape_get_count(&target->shape) / data->sample_count;
    const int64_t wanted = count_numbers(result);
    const bool has_classes = result->rank > 1 && result->extent[1] >= 0;
    if (loss != CLI_CROSS_ENTROPY && wanted >= 0 && wanted != row) {
        cli_print_error("%s: \"%s\" has %lld numbers a sample, and the result \"%s\" has %lld",
                        path, data->target, (long long)row, result->name, (long long)wanted);
        return false;
    }
    for (int64_t i = 0; i < row * data->sample_count; ++i) {
        const double number = cli_tensor_get_element(target, (size_t)i);
        const char *fault =
            find_fault(loss, number, has_classes ? (double)result->extent[1] : -1.0);
        if (fault != NULL) {
            cli_print_error(
                "%s: the target \"%s\" has %g at sample %lld, %s%s", path, data->target, number,
                (long long)(i / row), fault,
                loss == CLI_CROSS_ENTROPY && has_classes ? ", below those of the result" : "");
            return false;
        }
    }
    return true;
}

double cli_train_data_find_spoilt(const rondo_tensor *before, const rondo_tensor *now) {
    const size_t count = cli_is_real(now->dtype) && now->data != before->data
                             ? (size_t)rondo_shape_get_count(&now->shape)
                             : 0;
    const float *singles = now->dtype == RONDO_DTYPE_F32 ? now->data : NULL;
    for (size_t i = 0; i < count; ++i) {
        if (singles != NULL && isfinite(singles[i])) {
            continue;
        }
        const double element = cli_tensor_get_element(now, i);
        if (!isfinite(element) && isfinite(cli_tensor_get_element(before, i))) {
            return element;
        }
    }
    return 0.0;
}

uint64_t cli_train_data_hash(const cli_train_data *data) {
    uint64_t hash = 0;
    for (size_t c = 0; c < data->column_count; ++c) {
        const rondo_tensor *tensor = data->columns[c].tensor;
        hash = cli_hash(hash, &tensor->dtype, sizeof tensor->dtype);
        hash = cli_hash(hash, tensor->shape.extent,
                        (size_t)tensor->shape.rank * sizeof tensor->shape.extent[0]);
        hash = cli_hash(hash, tensor->data, rondo_tensor_get_bytes(tensor));
    }
    return hash;
}

void cli_train_data_shuffle(cli_train_data *data, int64_t epoch) {
    const int64_t count = data->sample_count - data->held_count;
    memcpy(data->shuffled, data->order, (size_t)count * sizeof *data->order);
    uint64_t seed = data->seed ^ UINT64_C(0x5851f42d4c957f2d);
    shuffle(data->shuffled, count, draw(&seed) + (uint64_t)epoch);
}

int64_t cli_train_data_measure(const cli_train_data *data, bool is_held, int64_t index) {
    const int64_t all = is_held ? data->held_count : data->sample_count - data->held_count;
    const int64_t batch = is_held ? data->held_batch : data->batch;
    const int64_t left = all - index * batch;
    return left < batch ? left : batch;
}

void cli_train_data_take(cli_train_data *data, bool is_held, int64_t index, int64_t first,
                         int64_t count, rondo_binding *feeds) {
    const int64_t trained = data->sample_count - data->held_count;
    const int64_t *list = (is_held ? data->order + trained + index * data->held_batch
                                   : data->shuffled + index * data->batch) +
                          first;
    cli_train_data_outline(data, count, feeds);
    for (size_t c = 0; c < data->column_count; ++c) {
        const rondo_tensor *from = data->columns[c].tensor;
        const size_t row = rondo_tensor_get_bytes(from) / (size_t)data->sample_count;
        for (int64_t i = 0; i < count; ++i) {
            memcpy(data->columns[c].batch + (size_t)i * row,
                   (const char *)from->data + (size_t)list[i] * row, row);
        }
        feeds[c].tensor.data = data->columns[c].batch;
    }
}

void cli_train_data_outline(const cli_train_data *data, int64_t count, rondo_binding *feeds) {
    for (size_t c = 0; c < data->column_count; ++c) {
        const rondo_tensor *from = data->columns[c].tensor;
        feeds[c] = (rondo_binding){.name = data->columns[c].name, .tensor = {.dtype = from->dtype}};
        feeds[c].tensor.shape = from->shape;
        feeds[c].tensor.shape.extent[0] = count;
    }
}

const cli_train_column *cli_train_data_get_target(const cli_train_data *data) {
    return &data->columns[data->column_count - 1];
}
