// executor/checkpoint.c — variables and random numbers of an executor as a file, and the trained
// model. See rondo/training.h.
//
//   "RONDO CHECKPOINT" | u64 version | u64 variables | u64 generators
//   each variable:   u64 name bytes, name | i64 dtype, rank, extents | u64 bytes, bytes
//   each generator:  u64 name bytes (UINT64_MAX: of all), name | u64 seed, offset
//   u64 hash of all before
//
// Numbers are little-endian. The file is read as a stranger's: every size is checked.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "executor/state/generators.h"
#include "executor/state/plan.h"
#include "op/support.h"
#include "program/program.h"
#include "rondo/executor_state.h"
#include "rondo/training.h"
#include "tensor/elements.h"

static const char magic[17] = "RONDO CHECKPOINT";
enum { VERSION = 1, NAME_MAX_BYTES = 1 << 16 };

// ---- writing ------------------------------------------------------------------------------------

typedef struct writer {
    uint8_t *bytes;
    size_t count, capacity;
    rondo_status status;
} writer;

static void put(writer *w, const void *bytes, size_t count) {
    if (w->status == RONDO_STATUS_OK && w->count + count > w->capacity) {
        const size_t want = (w->count + count) + (w->count + count) / 2;
        uint8_t *grown = rondo__realloc(w->bytes, want);
        w->status = grown != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
        w->bytes = grown != NULL ? grown : w->bytes;
        w->capacity = grown != NULL ? want : w->capacity;
    }
    if (w->status == RONDO_STATUS_OK && count > 0) {
        memcpy(w->bytes + w->count, bytes, count);
        w->count += count;
    }
}

static void put_number(writer *w, uint64_t number) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; ++i) {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
    put(w, bytes, sizeof bytes);
}

static void put_name(writer *w, const char *name) {
    put_number(w, name != NULL ? strlen(name) : UINT64_MAX);
    put(w, name, name != NULL ? strlen(name) : 0);
}

static void put_variable(writer *w, const rondo_program *program, const rondo__variable *v) {
    const rondo_tensor *tensor = &v->first;
    const size_t bytes = rondo_tensor_get_bytes(tensor);
    put_name(w, program->values[v->value].name);
    put_number(w, (uint64_t)tensor->dtype);
    put_number(w, (uint64_t)tensor->shape.rank);
    for (int32_t d = 0; d < tensor->shape.rank; ++d) {
        put_number(w, (uint64_t)tensor->shape.extent[d]);
    }
    put_number(w, bytes);
    put(w, tensor->data, bytes);
}

static rondo_status put_generators(writer *w, rondo_executor *executor) {
    uint64_t count = 0;
    rondo__executor_generator *entry = executor->resources.generators;
    for (; entry != NULL; entry = entry->next) {
        count += 1;
    }
    put_number(w, count);
    for (entry = executor->resources.generators; entry != NULL; entry = entry->next) {
        rondo_generator_state state = {0};
        RETURN_IF_ERROR(rondo_generator_get_state(entry->generator, &state));
        put_name(w, entry->name);
        put_number(w, state.seed);
        put_number(w, state.offset);
    }
    return RONDO_STATUS_OK;
}

static rondo_status write_all(writer *w, rondo_executor *executor, const rondo_program *program) {
    put(w, magic, sizeof magic - 1);
    put_number(w, VERSION);
    put_number(w, program->variable_count);
    for (size_t i = 0; i < program->variable_count; ++i) {
        if (program->variables[i].first.dtype == RONDO_DTYPE_NONE) {
            return RONDO_FAIL_AS("rondo_checkpoint_save", STATE, "\"%.80s\" has no value yet",
                                 program->values[program->variables[i].value].name);
        }
        put_variable(w, program, &program->variables[i]);
    }
    RETURN_IF_ERROR(put_generators(w, executor));
    put_number(
        w, w->status == RONDO_STATUS_OK ? rondo__hash64(RONDO__HASH_SEED, w->bytes, w->count) : 0);
    return w->status;
}

rondo_status rondo_checkpoint_save(rondo_executor *executor, const char *path) {
    if (executor == NULL || path == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "path");
    }
    rondo_program *program = NULL;
    writer w = {.status = RONDO_STATUS_OK};
    RETURN_IF_ERROR(rondo_executor_snapshot(executor, &program));
    rondo_status status = write_all(&w, executor, program);
    if (status == RONDO_STATUS_OK) {
        status = rondo__file_write_atomic(path, w.bytes, w.count);
    }
    rondo__free(w.bytes);
    rondo_program_destroy(program);
    return status;
}

// ---- reading ------------------------------------------------------------------------------------

typedef struct reader {
    const uint8_t *bytes;
    size_t count, at;
    bool is_bad;
} reader;

static const uint8_t *take(reader *r, uint64_t count) {
    if (r->is_bad || count > r->count - r->at) {
        r->is_bad = true;
        return NULL;
    }
    const uint8_t *bytes = r->bytes + r->at;
    r->at += (size_t)count;
    return bytes;
}

static uint64_t take_number(reader *r) {
    const uint8_t *bytes = take(r, 8);
    uint64_t number = 0;
    for (int i = 0; bytes != NULL && i < 8; ++i) {
        number |= (uint64_t)bytes[i] << (8 * i);
    }
    return number;
}

// A copy; NULL where the file has none.
static rondo_status take_name(reader *r, bool may_lack, char **out_name) {
    const uint64_t count = take_number(r);
    *out_name = NULL;
    if (count == UINT64_MAX && may_lack) {
        return RONDO_STATUS_OK;
    }
    const uint8_t *bytes = count <= NAME_MAX_BYTES ? take(r, count) : NULL;
    r->is_bad = r->is_bad || bytes == NULL;
    if (bytes != NULL) {
        *out_name = rondo__strndup((const char *)bytes, (size_t)count);
        return *out_name != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    }
    return RONDO_STATUS_OK;
}

typedef struct record {
    char *name;
    rondo_tensor tensor;  // bytes of its own
    rondo_generator_state state;
} record;

typedef struct records {
    size_t variable_count, generator_count;
    record *list;
} records;

static void records_deinit(records *all) {
    for (size_t i = 0; all->list != NULL && i < all->variable_count + all->generator_count; ++i) {
        rondo__free(all->list[i].name);
        rondo_tensor_deinit(&all->list[i].tensor);
    }
    rondo__free(all->list);
}

static rondo_status take_variable(reader *r, record *out_record) {
    rondo_shape shape = {0};
    RETURN_IF_ERROR(take_name(r, false, &out_record->name));
    const uint64_t dtype = take_number(r);
    const uint64_t rank = take_number(r);
    r->is_bad = r->is_bad || rank > RONDO_RANK_MAX || dtype > INT32_MAX ||
                rondo_dtype_get_bytes((rondo_dtype)dtype) == 0 ||
                !rondo__dtype_is_plain((rondo_dtype)dtype);
    for (uint64_t d = 0; d < rank && !r->is_bad; ++d) {
        shape.extent[d] = (int64_t)take_number(r);
        r->is_bad = r->is_bad || shape.extent[d] < 0;
    }
    shape.rank = r->is_bad ? 0 : (int32_t)rank;
    const uint64_t count = take_number(r);
    const uint8_t *bytes = take(r, count);
    const rondo_tensor like = {.dtype = (rondo_dtype)dtype, .shape = shape};
    if (r->is_bad || rondo_shape_get_count(&shape) < 0 || rondo_tensor_get_bytes(&like) != count) {
        r->is_bad = true;
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo_tensor_init(like.dtype, &shape, &out_record->tensor));
    if (count > 0) {
        memcpy(out_record->tensor.data, bytes, (size_t)count);
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_records(reader *r, records *all) {
    enum { RECORD_BYTES = 24 };  // at least
    const uint8_t *start = take(r, sizeof magic - 1);
    if (start == NULL || memcmp(start, magic, sizeof magic - 1) != 0 || take_number(r) != VERSION ||
        r->count < 8 + r->at) {
        r->is_bad = true;
        return RONDO_STATUS_OK;
    }
    reader end = {.bytes = r->bytes, .count = r->count, .at = r->count - 8};
    r->count -= 8;
    r->is_bad = take_number(&end) != rondo__hash64(RONDO__HASH_SEED, r->bytes, r->count);
    const uint64_t variables = take_number(r);
    if (r->is_bad || variables > r->count / RECORD_BYTES) {
        r->is_bad = true;
        return RONDO_STATUS_OK;
    }
    all->list = rondo__calloc((size_t)variables + r->count / RECORD_BYTES + 1, sizeof *all->list);
    if (all->list == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (uint64_t i = 0; i < variables && !r->is_bad; ++i) {
        all->variable_count += 1;
        RETURN_IF_ERROR(take_variable(r, &all->list[i]));
    }
    const uint64_t generators = take_number(r);
    r->is_bad = r->is_bad || generators > r->count / RECORD_BYTES;
    for (uint64_t i = 0; i < generators && !r->is_bad; ++i) {
        record *added = &all->list[all->variable_count + i];
        all->generator_count += 1;
        RETURN_IF_ERROR(take_name(r, true, &added->name));
        added->state.seed = take_number(r);
        added->state.offset = take_number(r);
    }
    r->is_bad = r->is_bad || r->at != r->count;
    return RONDO_STATUS_OK;
}

// ---- taking it over -----------------------------------------------------------------------------

static const char load_name[] = "rondo_checkpoint_load";

static const record *find_record(const records *all, const char *name) {
    for (size_t i = 0; i < all->variable_count; ++i) {
        if (strcmp(all->list[i].name, name) == 0) {
            return &all->list[i];
        }
    }
    return NULL;
}

static rondo_status check_fit(const rondo_program *program, const records *all, const char *path) {
    for (size_t i = 0; i < program->variable_count; ++i) {
        const rondo__value *v = &program->values[program->variables[i].value];
        const record *found = find_record(all, v->name);
        if (found == NULL) {
            return RONDO_FAIL_AS(load_name, BAD_DATA, "%s has no variable \"%.80s\"", path,
                                 v->name);
        }
        bool fits = found->tensor.dtype == v->dtype && found->tensor.shape.rank == v->rank;
        for (int32_t d = 0; fits && d < v->rank; ++d) {
            fits = v->dims[d].number < 0 || v->dims[d].number == found->tensor.shape.extent[d];
        }
        if (!fits) {
            return RONDO_FAIL_AS(load_name, BAD_DATA, "%s has \"%.80s\" of another type or shape",
                                 path, v->name);
        }
    }
    return all->variable_count == program->variable_count
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(load_name, BAD_DATA, "%s has %zu variables, the program %zu", path,
                               all->variable_count, program->variable_count);
}

// Generators that the file does not have had drawn nothing, and are where they start.
static rondo_status restart_others(rondo_executor *executor, const records *all) {
    const record *given = all->list + all->variable_count;
    for (rondo__executor_generator *entry = executor->resources.generators; entry != NULL;
         entry = entry->next) {
        bool is_given = false;
        for (size_t i = 0; i < all->generator_count && !is_given; ++i) {
            is_given = entry->name == NULL || given[i].name == NULL
                           ? entry->name == given[i].name
                           : strcmp(entry->name, given[i].name) == 0;
        }
        if (!is_given) {
            RETURN_IF_ERROR(rondo_generator_set_state(entry->generator,
                                                      &(rondo_generator_state){entry->seed, 0}));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status take_over(rondo_executor *executor, const records *all) {
    for (size_t i = 0; i < all->variable_count; ++i) {
        RETURN_IF_ERROR(
            rondo_executor_set_variable(executor, all->list[i].name, &all->list[i].tensor));
    }
    for (size_t i = 0; i < all->generator_count; ++i) {
        const record *given = &all->list[all->variable_count + i];
        rondo_generator *generator = NULL;
        RETURN_IF_ERROR(
            rondo__executor_find_generator(executor, given->name, given->state.seed, &generator));
        RETURN_IF_ERROR(rondo_generator_set_state(generator, &given->state));
    }
    return restart_others(executor, all);
}

// Ended by records_deinit, also after a failure.
static rondo_status open_records(const char *call, const char *path, records *out_all) {
    rondo__file file = {0};
    *out_all = (records){0};
    RETURN_IF_ERROR(rondo__file_map(path, &file));
    reader r = {.bytes = file.bytes, .count = file.byte_count};
    rondo_status status = read_records(&r, out_all);
    if (status == RONDO_STATUS_OK && r.is_bad) {
        status = RONDO_FAIL_AS(call, BAD_DATA, "%s is no checkpoint, or is damaged", path);
    }
    rondo__file_unmap(&file);
    return status;
}

rondo_status rondo_checkpoint_load(rondo_executor *executor, const char *path) {
    if (executor == NULL || path == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "path");
    }
    records all;
    rondo_status status = open_records(load_name, path, &all);
    if (status == RONDO_STATUS_OK) {
        status = check_fit(executor->main.source, &all, path);
    }
    if (status == RONDO_STATUS_OK) {
        status = take_over(executor, &all);
    }
    records_deinit(&all);
    return status;
}

rondo_status rondo_checkpoint_read(const char *path, const char *variable,
                                   rondo_tensor *out_value) {
    if (out_value != NULL) {
        *out_value = (rondo_tensor){0};
    }
    if (path == NULL || variable == NULL || out_value == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          path == NULL       ? "path"
                          : variable == NULL ? "variable"
                                             : "out_value");
    }
    records all;
    rondo_status status = open_records(__func__, path, &all);
    const record *found = status == RONDO_STATUS_OK ? find_record(&all, variable) : NULL;
    if (found != NULL) {
        status = rondo_tensor_init(found->tensor.dtype, &found->tensor.shape, out_value);
        if (status == RONDO_STATUS_OK && found->tensor.data != NULL) {
            memcpy(out_value->data, found->tensor.data, rondo_tensor_get_bytes(out_value));
        }
    } else if (status == RONDO_STATUS_OK) {
        status = RONDO_FAIL(BAD_DATA, "%s has no variable \"%.80s\"", path, variable);
    }
    records_deinit(&all);
    return status;
}

// ---- the trained model --------------------------------------------------------------------------

// The present value of the variable NAME, or NAME.ending; NULL: there is none.
static const rondo_tensor *find_variable(const rondo_program *program, const char *name,
                                         const char *ending) {
    char *full = rondo__strformat("%s%s", name, ending);
    const int32_t value =
        full != NULL ? rondo__program_find_value(program, full) : RONDO__VALUE_NONE;
    const rondo__variable *found = value >= 0 ? rondo__program_find_variable(program, value) : NULL;
    rondo__free(full);
    return found != NULL && found->first.dtype != RONDO_DTYPE_NONE ? &found->first : NULL;
}

// w + a b, each element summed in double.
static void add_product(const rondo_tensor *a, const rondo_tensor *b, rondo_tensor *w) {
    const int64_t rows = w->shape.extent[0];
    const int64_t columns = w->shape.extent[1];
    const int64_t rank = a->shape.extent[1];
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
            double sum = rondo__tensor_get_number(w, i * columns + j);
            for (int64_t k = 0; k < rank; ++k) {
                sum += rondo__tensor_get_number(a, i * rank + k) *
                       rondo__tensor_get_number(b, k * columns + j);
            }
            char *to =
                (char *)w->data + (size_t)(i * columns + j) * rondo_dtype_get_bytes(w->dtype);
            rondo__convert_elements(RONDO_DTYPE_F64, &sum, w->dtype, to, 1);
        }
    }
}

static bool fits_adapter(const rondo_tensor *a, const rondo_tensor *b, const rondo_shape *w) {
    return a != NULL && b != NULL && w->rank == 2 && a->shape.rank == 2 && b->shape.rank == 2 &&
           a->shape.extent[0] == w->extent[0] && b->shape.extent[1] == w->extent[1] &&
           a->shape.extent[1] == b->shape.extent[0];
}

// Makes *out_taken what the parameter is after training; dtype NONE: it was not trained.
static rondo_status find_trained(const rondo_program *from, const rondo__value *parameter,
                                 rondo_tensor *out_taken) {
    const rondo_tensor *old = &parameter->constant;
    const rondo_tensor *now = find_variable(from, parameter->name, "");
    now = now != NULL ? now : find_variable(from, parameter->name, ".master");
    const rondo_tensor *a = find_variable(from, parameter->name, ".lora_a");
    const rondo_tensor *b = find_variable(from, parameter->name, ".lora_b");
    const bool is_adapted = fits_adapter(a, b, &old->shape);
    *out_taken = (rondo_tensor){0};
    if (!is_adapted && (now == NULL || !rondo_shape_is_equal(&now->shape, &old->shape))) {
        return RONDO_STATUS_OK;
    }
    const rondo_tensor *source = is_adapted ? old : now;
    RETURN_IF_ERROR(rondo_tensor_init(old->dtype, &old->shape, out_taken));
    rondo__convert_elements(source->dtype, source->data, old->dtype, out_taken->data,
                            (size_t)rondo_shape_get_count(&old->shape));
    if (is_adapted) {
        add_product(a, b, out_taken);
    }
    return RONDO_STATUS_OK;
}

static rondo_status take_trained(const rondo_program *from, rondo_program *model) {
    size_t count = 0;
    for (size_t v = 0; v < model->value_count; ++v) {
        const rondo__value *value = &model->values[v];
        rondo_tensor taken = {0};
        if (value->constant.dtype != RONDO_DTYPE_NONE) {
            RETURN_IF_ERROR(find_trained(from, value, &taken));
        }
        if (taken.dtype == RONDO_DTYPE_NONE) {
            continue;
        }
        rondo__program_put_constant(model, (int32_t)v, &taken);
        rondo_tensor_deinit(&taken);
        count += 1;
    }
    return count > 0 ? RONDO_STATUS_OK
                     : RONDO_FAIL_AS("rondo_executor_get_trained", INVALID,
                                     "no parameter of the model is a variable of the executor's");
}

rondo_status rondo_executor_get_trained(rondo_executor *executor, const rondo_program *model,
                                        rondo_program **out_program) {
    if (executor == NULL || model == NULL || out_program == NULL) {
        if (out_program != NULL) {
            *out_program = NULL;
        }
        return RONDO_FAIL(INVALID, "%s is NULL",
                          executor == NULL ? "executor"
                          : model == NULL  ? "model"
                                           : "out_program");
    }
    *out_program = NULL;
    rondo_program *now = NULL;
    rondo_program *copy = NULL;
    RETURN_IF_ERROR(rondo_executor_snapshot(executor, &now));
    rondo_status status = rondo__program_clone_whole(model, &copy);
    if (status == RONDO_STATUS_OK) {
        status = take_trained(now, copy);
    }
    rondo_program_destroy(now);
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(copy);
        return status;
    }
    *out_program = copy;
    return RONDO_STATUS_OK;
}
