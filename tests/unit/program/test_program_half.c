// Which ops stay in f32 when a program is turned to f16, rule by rule; what the pass makes of it;
// patterns and constants.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/edit.h"
#include "program/half/half_pass.h"
#include "program/node_pattern.h"
#include "program/shapes/specialise.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { WIDTH = 512 };

// ---- programs from text -----------------------------------------------------------------------

static int32_t add_filled(rondo_program *program, const char *name, int64_t rows, int64_t columns,
                          float value) {
    int32_t number;
    rondo_tensor tensor;
    const rondo_shape shape = {.rank = columns == 0 ? 0 : 2, .extent = {rows, columns}};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &tensor));
    for (int64_t i = 0; i < rondo_shape_get_count(&shape); ++i) {
        ((float *)tensor.data)[i] = value;
    }
    OK(rondo__program_add_constant(program, name, &tensor, &number));
    rondo_tensor_deinit(&tensor);
    return number;
}

static void add_port(rondo_program *program, const char *name, rondo_dtype dtype, int64_t rows,
                     int64_t columns) {
    int32_t number;
    const rondo_shape shape = {.rank = 2, .extent = {rows, columns}};
    OK(rondo__program_add_shaped(program, name, dtype, &shape, &number));
    OK(rondo__program_add_input(program, number));
}

static void add_helpers(rondo_program *program) {
    const struct {
        const char *name;
        size_t count;
        int64_t values[3];
    } lists[] = {{"axis", 1, {1}},  {"axes", 1, {0}}, {"from", 1, {0}}, {"columns", 1, {0}},
                 {"depth", 1, {9}}, {"to", 1, {4}},   {"last", 1, {2}}, {"flat", 1, {4 * WIDTH}}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) {
        int32_t number;
        rondo_tensor tensor;
        const rondo_shape shape = {.rank = 1, .extent = {(int64_t)lists[i].count}};
        OK(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &tensor));
        memcpy(tensor.data, lists[i].values, lists[i].count * sizeof(int64_t));
        OK(rondo__program_add_constant(program, lists[i].name, &tensor, &number));
        rondo_tensor_deinit(&tensor);
    }
    int32_t number;
    rondo_tensor pair;
    const rondo_shape two = {.rank = 1, .extent = {2}};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &two, &pair));
    OK(rondo__program_add_constant(program, "pair", &pair, &number));
    rondo_tensor_deinit(&pair);
    rondo_tensor kernel;
    const rondo_shape shape = {.rank = 2, .extent = {WIDTH, 8}};
    OK(rondo_tensor_init(RONDO_DTYPE_U8, &shape, &kernel));
    OK(rondo__program_add_constant(program, "kernel", &kernel, &number));
    rondo_tensor_deinit(&kernel);
    for (int k = 0; k < 2; ++k) {  // statistics of one number for each column
        rondo_tensor statistic;
        const rondo_shape columns = {.rank = 1, .extent = {WIDTH}};
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &columns, &statistic));
        for (size_t i = 0; i < WIDTH; ++i) {
            ((float *)statistic.data)[i] = k == 0 ? 1.0f : 1e8f;
        }
        OK(rondo__program_add_constant(program, k == 0 ? "ones" : "vast", &statistic, &number));
        rondo_tensor_deinit(&statistic);
    }
}

// Inputs and constants that every row may use.
static rondo_program *begin_program(void) {
    rondo_program *program;
    OK(rondo__program_create("p", &program));
    add_port(program, "x", RONDO_DTYPE_F32, 4, WIDTH);
    add_port(program, "small", RONDO_DTYPE_F32, 2, 8);
    add_port(program, "ids", RONDO_DTYPE_I64, 4, WIDTH);
    add_port(program, "bytes", RONDO_DTYPE_U8, 4, WIDTH);
    static const struct {
        const char *name;
        float value;
    } scalars[] = {{"one", 1.0f},        {"two", 2.0f},          {"half", 0.5f},
                   {"tiny", 1e-12f},     {"large", 5000.0f},     {"over", 1e5f},
                   {"lowest", -3.4e38f}, {"mean", 1.0f / WIDTH}, {"whole", 4097.0f}};
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; ++i) {
        (void)add_filled(program, scalars[i].name, 0, 0, scalars[i].value);
    }
    (void)add_filled(program, "w", WIDTH, WIDTH, 0.03125f);
    (void)add_filled(program, "faint", WIDTH, WIDTH, 1e-7f);
    add_helpers(program);
    return program;
}

// Adds the value on its first mention as a result.
static int32_t find_or_add(rondo_program *program, const char *name) {
    int32_t value = rondo__program_find_value(program, name);
    if (value < 0) {
        OK(rondo__program_add_value(program, name, &value));
    }
    return value;
}

// "Op name inputs > outputs", for a Cast "Cast:TO name ...".
static void add_line(rondo_program *program, char *line) {
    char *rest = NULL;
    char *op = strtok_r(line, " ", &rest);
    const char *name = strtok_r(NULL, " ", &rest);
    char *type = strchr(op, ':');
    int32_t inputs[8];
    int32_t outputs[4];
    size_t input_count = 0;
    size_t output_count = 0;
    bool is_output = false;
    if (type != NULL) {
        *type++ = '\0';
    }
    for (char *word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, ">") == 0) {
            is_output = true;
        } else if (is_output) {
            outputs[output_count++] = find_or_add(program, word);
        } else {
            inputs[input_count++] = rondo__program_find_value(program, word);
            assert_true(inputs[input_count - 1] >= 0);
        }
    }
    OK(rondo__program_add_simple(program, "", op, name, inputs, input_count, outputs,
                                 output_count));
    if (type != NULL) {
        OK(rondo__op_set_int(&program->nodes[program->node_count - 1].op, "to", atoi(type)));
    }
}

// The program with its shapes worked in; its output is the value "y".
static rondo_program *make_program(const char *lines) {
    rondo_program *program = begin_program();
    rondo_program *specialised;
    rondo_tensor feeds[4] = {{0}};
    char text[1024];
    char *rest = NULL;
    (void)snprintf(text, sizeof text, "%s", lines);
    for (char *line = strtok_r(text, ";", &rest); line != NULL; line = strtok_r(NULL, ";", &rest)) {
        add_line(program, line);
    }
    OK(rondo__program_add_output(program, rondo__program_find_value(program, "y")));
    OK(rondo__program_verify(program));
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__value *value = &program->values[program->inputs[i]];
        feeds[i].dtype = value->dtype;
        assert_true(rondo__value_get_shape(value, &feeds[i].shape));
    }
    OK(rondo__program_specialise(program, feeds, 1 << 26, &specialised, NULL));
    rondo_program_destroy(program);
    return specialised;
}

// ---- the rules --------------------------------------------------------------------------------

typedef struct rule_row {
    const char *story;
    const char *lines;
    const char *kept;  // names of the nodes that stay, in order
} rule_row;

static const rule_row rule_rows[] = {
    {"strings are made of f32", "Relu r x > a;Cast:8 c a > y", "r c"},
    {"sequences hold f32", "Relu r x > a;SequenceConstruct q a a > b;SequenceAt t b from > y", "q"},
    {"ordinary ops become f16", "MatMul m x w > a;Add a a one > b;Relu r b > c;Softmax s c > y",
     ""},
    {"powers stay until values are bounded",
     "Pow p x two > a;Mul m a half > b;Tanh t b > c;Relu r c > y", "p m t"},
    {"a square is a power", "Mul s x x > a;Sigmoid g a > b;Relu r b > y", "s g"},
    {"an exponential in a sigmoid by hand",
     "Neg n x > a;Exp e a > b;Add a b one > c;Div d one c > f;Mul m x f > g;Relu r g > y",
     "e a d m"},
    {"a softmax by hand", "Exp e x > a;ReduceSum s a > b;Div d a b > c;MatMul m c w > y", "e s d"},
    {"a sum of many elements", "ReduceSum s x > a;Mul m a mean > b;Sub d x b > c;Relu r c > y",
     "s m d"},
    {"a sum of few", "ReduceSum s small > y", ""},
    {"a mean of many", "ReduceMean m x > a;Sub s x a > y", ""},
    {"a running sum", "CumSum s x axis > y", "s"},
    {"a normalisation by hand",
     "ReduceMean mu x > a;Sub d x a > b;Pow q b two > c;ReduceMean v c > e;Add o e tiny > f;"
     "Sqrt r f > g;Div n b g > h;Relu t h > y",
     "q v o r n"},
    {"by the mean of squares, as others write it",
     "ReduceSum s x > a;Mul m a mean > b;Mul q x x > c;ReduceSum u c > d;Mul v d mean > e;"
     "Mul w2 b b > f;Sub z e f > g;Sqrt r g > h;Reciprocal i h > k;Mul n x k > l;Relu t l > y",
     "s m q u v w2 z r i n"},
    {"a root traces back to the square", "Neg n x > a;Sqrt r a > b;Relu t b > y", "n r t"},
    {"a logarithm traces back to the softmax", "Softmax s x > a;Log l a > y", "s l"},
    {"a mask of -inf stands in",
     "Cast:1 c ids > a;Sub s one a > b;Mul m b lowest > d;Add t x d > e;Softmax f e > y", "c s m"},
    {"a constant mask", "Add a x lowest > b;Softmax f b > y", ""},
    {"ids and what is made of them alone",
     "Cast:1 c ids > a;Mul m a half > b;Floor f b > d;Cast:7 i d > y", "c m f i"},
    {"ids beside ordinary values", "Cast:1 c ids > a;Mul m a half > b;Add s x b > y", "c m"},
    {"bytes and flags are exact",
     "Cast:1 c bytes > a;Greater g x half > b;Cast:1 f b > d;Mul m a d > y", ""},
    {"what becomes a whole number", "MatMul m x w > a;Mul s a half > b;Cast:7 c b > y", "s c"},
    {"boxes",
     "Unsqueeze u x axes > a;Mul m a two > b;Slice i b from to last > c;"
     "NonMaxSuppression n c c > y",
     "u m i n"},
    {"a constant beyond the range", "Mul m x over > a;Sigmoid s a > b;Relu r b > y", "m s"},
    {"a factor that leads out of it", "Mul m x large > a;Relu r a > y", "m r"},
    {"a divisor that leads back", "Div d x large > y", ""},
    {"a constant below the range", "Add a x tiny > b;Div d x b > c;Relu r c > y", "a d"},
    {"a bias below the range", "MatMul m x w > a;Add b tiny a > c;Relu r c > y", ""},
    {"a bound below the range", "Clip k x tiny > b;Div d x b > c;Relu r c > y", "k d"},
    {"bounds that bind nothing", "Clip k x lowest > y", ""},
    {"weights below the range", "MatMul m x faint > y", "m"},
    {"a term below the range",
     "MatMul m x faint > a;Add b a one > c;Transpose t c > d;Transpose u d > e;Add s e x > y", ""},
    {"a term with a factor below the range", "Mul m x tiny > a;Relu r x > b;Add s a b > y", ""},
    {"two terms below the range",
     "Mul m x tiny > a;Relu r x > b;Mul n b tiny > c;Transpose t c > d;Transpose u d > e;"
     "Add s a e > y",
     "m n t u s"},
    {"a term beside a root", "Sqrt r x > a;Mul m x tiny > b;Add s b a > y", "r m s"},
    {"a term that others read, too",
     "Mul m x tiny > a;Relu r x > b;Add s a b > c;Sigmoid g a > d;Add t c d > y", "m s g"},
    {"a whole number that f16 rounds", "Add a x whole > y", "a"},
    {"a product of wide values", "Mul q x x > a;MatMul m a w > b;Log l b > c;MatMul n c w > y",
     "q m l"},
    {"quantisation",
     "Relu r x > a;DynamicQuantizeLinear q a > b s z;Cast:1 c b > d;Mul m d s > e;"
     "Relu t e > y",
     "r q m"},
    {"integer products",
     "MatMulInteger i bytes kernel > a;Cast:1 c a > b;Add s b one > d;Relu r d > y", "c s r"},
    {"indices as floats", "Mul m small two > a;OneHot o a depth pair > y", "m o"},
    {"statistics that are computed",
     "ReduceMax v x columns > a;Squeeze q a > b;Neg n b > c;Relu r x > d;"
     "BatchNormalization k d ones ones c ones > y",
     "v q n"},
    {"a normalisation of huge values",
     "MatMul m x w > a;Relu r a > b;BatchNormalization n b ones ones ones vast > c;Relu t c > y",
     "m r n"},
    {"shapes that depend on data", "Relu r x > a;NonZero z a > b;Neg n b > y", "z"},
    {"a move for an op that stays", "Transpose t x > a;Reshape u a flat > b;Pow p b two > y",
     "t u p"},
};

TEST(test_program_half__rules) {
    for (size_t r = 0; r < sizeof rule_rows / sizeof rule_rows[0]; ++r) {
        const rule_row *row = &rule_rows[r];
        rondo_program *program = make_program(row->lines);
        rondo__half_decision *decisions = calloc(program->node_count + 1, sizeof *decisions);
        char kept[256] = "";
        OK(rondo__half_decide(program, NULL, decisions));
        for (size_t n = 0; n < program->node_count; ++n) {
            if (decisions[n].is_touched && decisions[n].reason != NULL) {
                const size_t used = strlen(kept);
                assert_true(strlen(decisions[n].reason) > 10);
                (void)snprintf(kept + used, sizeof kept - used, "%s%s", used > 0 ? " " : "",
                               program->nodes[n].op.name);
            }
        }
        if (strcmp(kept, row->kept) != 0) {
            fail_msg("%s: \"%s\" stay in f32, expected \"%s\"", row->story, kept, row->kept);
        }
        free(decisions);
        rondo_program_destroy(program);
    }
}

// ---- the pass ---------------------------------------------------------------------------------

// Each value is cast at most once each way, ports keep their types, results stay close.
TEST(test_program_half__casts_and_borders) {
    rondo_program *program = make_program(
        "MatMul m x w > a;Pow p a two > b;Pow q a half > c;Add s b c > d;Tanh t d > e;"
        "Add u e a > f;Mul v f e > y");
    rondo_program *single;
    rondo__half_report report;
    rondo_tensor inputs[4] = {{0}};
    rondo_tensor exact = {0};
    rondo_tensor rounded = {0};
    OK(rondo__program_clone(program, &single));
    OK(rondo__pass_half(program, NULL, &report));
    assert_int_equal(report.kept_count, 4);
    assert_int_equal(report.half_count, 3);
    assert_string_equal(report.kept[0].name, "p");
    size_t casts = 0;
    for (size_t n = 0; n < program->node_count; ++n) {
        casts += rondo__node_is(&program->nodes[n], RONDO__FUSED_Elementwise) ? 1 : 0;
    }
    assert_int_equal(casts, 4);  // x down, a up, e down, y up
    assert_int_equal(program->values[program->inputs[0]].dtype, RONDO_DTYPE_F32);
    assert_int_equal(program->values[program->outputs[0]].dtype, RONDO_DTYPE_F32);
    for (size_t i = 0; i < 4; ++i) {
        rondo_shape shape;
        assert_true(rondo__value_get_shape(&program->values[program->inputs[i]], &shape));
        OK(rondo_tensor_init(program->values[program->inputs[i]].dtype, &shape, &inputs[i]));
    }
    for (size_t i = 0; i < 4 * WIDTH; ++i) {
        ((float *)inputs[0].data)[i] = (float)(i % 7) * 0.25f;
    }
    OK(interpret_program(program, inputs, &rounded));
    OK(interpret_program(single, inputs, &exact));
    assert_true(compare_tensors(&rounded, &exact) <= 5e-3);
    for (size_t i = 0; i < 4; ++i) {
        rondo_tensor_deinit(&inputs[i]);
    }
    rondo_tensor_deinit(&exact);
    rondo_tensor_deinit(&rounded);
    rondo__half_report_deinit(&report);
    rondo_program_destroy(single);
    rondo_program_destroy(program);
}

TEST(test_program_half__f16_models_stay) {
    rondo_program *program =
        make_program("Cast:10 c x > a;Relu r a > b;Cast:1 d b > e;Neg n e > y");
    rondo__half_report report;
    const size_t node_count = program->node_count;
    OK(rondo__pass_half(program, NULL, &report));
    assert_non_null(report.note);
    assert_int_equal(report.half_count, 0);
    assert_int_equal(program->node_count, node_count);
    rondo__half_report_deinit(&report);
    rondo_program_destroy(program);
}

TEST(test_program_half__patterns) {
    static const struct {
        const char *pattern;
        size_t count;
    } rows[] = {{"Relu", 2},     {"enc/relu", 1},  {"enc/*", 2}, {"*relu", 2},
                {"enc/?elu", 1}, {"relu", 0},      {"*", 3},     {"", 0},
                {"*u*l*", 1},    {"enc/relu?", 0}, {"Rel", 0}};
    rondo_program *program =
        make_program("Relu enc/relu x > a;Mul enc/mul a half > b;Relu dec/relu b > y");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        if (rondo__program_count_matches(program, rows[i].pattern) != rows[i].count) {
            fail_msg("\"%s\" matches %zu nodes, expected %zu", rows[i].pattern,
                     rondo__program_count_matches(program, rows[i].pattern), rows[i].count);
        }
    }
    rondo__half_decision decisions[3];
    rondo__half_mark(program, "enc/*", RONDO__PRECISION_SINGLE);
    OK(rondo__half_decide(program, NULL, decisions));
    assert_non_null(strstr(decisions[0].reason, "keep_f32"));
    assert_non_null(strstr(decisions[1].reason, "keep_f32"));
    assert_null(decisions[2].reason);
    rondo_program_destroy(program);
    program = make_program("Pow p x two > y");
    rondo__half_mark(program, "Pow", RONDO__PRECISION_HALF);
    OK(rondo__half_decide(program, NULL, decisions));
    assert_null(decisions[0].reason);
    rondo_program_destroy(program);
}

// Rounded once for all plans; what is finite stays finite.
TEST(test_program_half__constants) {
    rondo_program *program = make_program("MatMul m x w > a;Add b a lowest > y");
    rondo__half_cache *cache;
    rondo_tensor first = {0};
    rondo_tensor second = {0};
    OK(rondo__half_cache_create(program, RONDO_DTYPE_F16, &cache));
    for (size_t v = 0; v < program->value_count; ++v) {
        const rondo_tensor *constant = &program->values[v].constant;
        if (constant->dtype != RONDO_DTYPE_F32) {
            continue;
        }
        OK(rondo__half_round(cache, constant, &first));
        OK(rondo__half_round(cache, constant, &second));
        assert_ptr_equal(first.data, second.data);
        if (rondo_shape_get_count(&first.shape) == 1) {
            assert_int_equal(*(uint16_t *)first.data, 0xfbff);  // -65504
            assert_int_equal(rondo__half_get_traits(cache, constant), RONDO__HALF_INFINITE);
        }
        rondo_tensor_deinit(&first);
        rondo_tensor_deinit(&second);
    }
    rondo__half_cache_destroy(cache);
    rondo_program_destroy(program);
}

// What a constant's values say, wherever among the others they stand.
TEST(test_program_half__traits_of_constants) {
    enum { COUNT = 21 };
    static const struct {
        float others, one;
        uint32_t traits;
    } rows[] = {
        {0, 0, 0},
        {0.5f, 3, 0},
        {0.5f, -70000, RONDO__HALF_OVERFLOWS | RONDO__HALF_LARGE},
        {0.5f, 4096.5f, RONDO__HALF_LARGE},
        {0.5f, -1e30f, RONDO__HALF_INFINITE},
        {0.5f, INFINITY, 0},
        {0.5f, NAN, 0},
        {1e-6f, -2e-6f, RONDO__HALF_TINY | RONDO__HALF_SHRINKS},
        {1e-6f, 1e9f, RONDO__HALF_INFINITE | RONDO__HALF_SHRINKS},
        {1e-3f, -1.0f / 64, RONDO__HALF_SHRINKS},
        {1e-3f, 1, 0},
        {1, 2048, 0},
        {1, -2049, RONDO__HALF_WHOLE},
        {NAN, 2049, RONDO__HALF_WHOLE},
        {2049, 0.5f, 0},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
        for (int64_t count = 1; count <= COUNT; count += 4) {
            for (int64_t at = 0; at < count; ++at) {
                float x[COUNT];
                for (int64_t i = 0; i < count; ++i) {
                    x[i] = i == at ? rows[r].one : rows[r].others;
                }
                const rondo_tensor tensor = {
                    RONDO_DTYPE_F32, {.rank = 1, .extent = {count}}, x, NULL, NULL};
                const uint32_t traits = rondo__half_get_traits(NULL, &tensor);
                if (count > 1 && traits != rows[r].traits) {
                    fail_msg("row %zu, %d of %d: 0x%x, not 0x%x", r, (int)at, (int)count, traits,
                             rows[r].traits);
                }
            }
        }
    }
}

TEST_MAIN()
