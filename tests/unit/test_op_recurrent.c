// Awkward semantics of RNN, GRU and LSTM.
//
// Expected numbers come from ONNX Runtime on the same inputs (op_probe patterns), unless a test
// says otherwise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_probe.h"

static void test_op_recurrent__lstm_forward_with_everything(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_absent(&test);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    static const double expected_0[] = {-0.055701647, -0.134331599, -0.137806222, 0.0944600403,
                                        -0.070751138, -0.231631666, 0.0514090508, -0.28143388,
                                        0.056537535,  -0.417741209, -0.113564402, -0.28634727};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {0.056537535, -0.417741209, -0.113564402, -0.28634727};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "1x2x2", expected_1, 1e-05);
    static const double expected_2[] = {0.546201527, -0.925577104, -0.261756629, -0.410109758};
    op_probe_check(&test, 2, RONDO_DTYPE_F32, "1x2x2", expected_2, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__lstm_reverse_with_lengths(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_string(&test, "direction", "reverse");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 1.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    test.output_count = 3;
    static const double expected_0[] = {-0.164856553, -0.320810199, -0.180235684, 0.126118571,
                                        0.0551134758, -0.375880808, 0.0,          0.0,
                                        0.0660847425, -0.222017929, 0.0,          0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {-0.164856553, -0.320810199, -0.180235684, 0.126118571};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "1x2x2", expected_1, 1e-05);
    static const double expected_2[] = {-0.326735079, -0.512612522, -0.464146107, 0.226174235};
    op_probe_check(&test, 2, RONDO_DTYPE_F32, "1x2x2", expected_2, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__lstm_bidirectional_with_lengths_and_peepholes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_string(&test, "direction", "bidirectional");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){2.0, 3.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x6", 7, 0.1);
    test.output_count = 3;
    static const double expected_0[] = {
        -0.055701647, -0.134331599,  -0.137806222, 0.0944600403, -0.558789372, 0.088401556,
        -0.27328667,  -0.0398517698, -0.070751138, -0.231631666, 0.0514090508, -0.28143388,
        -0.415641487, 0.481979877,   0.0179651324, -0.20353274,  0.0,          0.0,
        -0.113564402, -0.28634727,   0.0,          0.0,          -0.278890789, -0.0524219349};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x2x2x2", expected_0, 1e-05);
    static const double expected_1[] = {-0.070751138, -0.231631666, -0.113564402, -0.28634727,
                                        -0.558789372, 0.088401556,  -0.27328667,  -0.0398517698};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "2x2x2", expected_1, 1e-05);
    static const double expected_2[] = {-0.368964732, -0.33718586, -0.261756629, -0.410109758,
                                        -1.32540011,  0.40198651,  -0.467398494, -0.130106762};
    op_probe_check(&test, 2, RONDO_DTYPE_F32, "2x2x2", expected_2, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__lstm_clips_before_the_activations(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_float(&test, "clip", 0.2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    test.output_count = 3;
    static const double expected_0[] = {
        -0.0551306494, -0.00989433657, -0.0486627631, -0.0487255007, -0.0750090703, -0.0536116883,
        0.0255900696,  -0.0729575455,  0.0147640137,  -0.0724298358, -0.0372982323, -0.0954548419};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {0.0147640137, -0.0724298358, -0.0372982323, -0.0954548419};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "1x2x2", expected_1, 1e-05);
    static const double expected_2[] = {0.032808587, -0.162306219, -0.0829059556, -0.175383031};
    op_probe_check(&test, 2, RONDO_DTYPE_F32, "1x2x2", expected_2, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__lstm_couples_input_and_forget(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_int(&test, "input_forget", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    test.output_count = 3;
    static const double expected_0[] = {-0.204181716,  -0.0098007638, -0.134031475, -0.10585849,
                                        -0.0795120895, -0.187053695,  0.0383705795, -0.289564192,
                                        0.04511654,    -0.273035586,  -0.150908217, -0.327070326};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {0.04511654, -0.273035586, -0.150908217, -0.327070326};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "1x2x2", expected_1, 1e-05);
    static const double expected_2[] = {0.47331962, -0.774918497, -0.345713407, -0.524885297};
    op_probe_check(&test, 2, RONDO_DTYPE_F32, "1x2x2", expected_2, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__lstm_other_activations(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_strings(&test, "activations", "HardSigmoid,ScaledTanh,Affine");
    op_probe_set_floats(&test, "activation_alpha", "0.3,0.9,1.1");
    op_probe_set_floats(&test, "activation_beta", "0.4,0.7,0.1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    test.output_count = 3;
    static const double expected_0[] = {
        -0.078158699, 0.0659141019, -0.0420989618, 0.0234309975, -0.000299168547, -0.0056085079,
        0.0,          -0.173665285, 0.0,           -0.178382814, -0.0453801826,   -0.176710367};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {0.0, -0.178382814, -0.0453801826, -0.176710367};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "1x2x2", expected_1, 1e-05);
    static const double expected_2[] = {0.320781648, -0.615312338, -0.21442619, -0.336939752};
    op_probe_check(&test, 2, RONDO_DTYPE_F32, "1x2x2", expected_2, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__gru_forward(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GRU", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x12", 4, 0.05);
    op_probe_add_absent(&test);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    test.output_count = 2;
    static const double expected_0[] = {-0.312189043, -0.00305780768, 0.159553275,  -0.0422485471,
                                        -0.246920437, -0.195643678,   -0.402315348, 0.270433724,
                                        -0.430293441, 0.174562991,    -0.311263531, 0.0855600983};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {-0.430293441, 0.174562991, -0.311263531, 0.0855600983};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "1x2x2", expected_1, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__gru_bidirectional_with_lengths(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GRU", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_string(&test, "direction", "bidirectional");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x6x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x6x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x12", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){1.0, 3.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x2", 5, 0.1);
    test.output_count = 2;
    static const double expected_0[] = {-0.312189043, -0.00305780768,
                                        0.159553275,  -0.0422485471,
                                        0.14783062,   -0.14347294,
                                        -0.543164432, 0.150850013,
                                        0.0,          0.0,
                                        -0.402315348, 0.270433724,
                                        0.0,          0.0,
                                        -0.264265418, 0.493643463,
                                        0.0,          0.0,
                                        -0.311263531, 0.0855600983,
                                        0.0,          0.0,
                                        -0.772981226, -0.207234681};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x2x2x2", expected_0, 1e-05);
    static const double expected_1[] = {-0.312189043, -0.00305780768, -0.311263531, 0.0855600983,
                                        0.14783062,   -0.14347294,    -0.543164432, 0.150850013};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "2x2x2", expected_1, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__gru_linear_before_reset(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GRU", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_int(&test, "linear_before_reset", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x12", 4, 0.05);
    op_probe_add_absent(&test);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    test.output_count = 2;
    static const double expected_0[] = {-0.307849884, -0.0229840279, 0.173864916,  -0.0878705084,
                                        -0.197940782, -0.233358696,  -0.341492951, 0.229771838,
                                        -0.31660223,  0.134251729,   -0.222258016, 0.0684683025};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {-0.31660223, 0.134251729, -0.222258016, 0.0684683025};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "1x2x2", expected_1, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__gru_reverse_linear_before_reset(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GRU", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_int(&test, "linear_before_reset", 1);
    op_probe_set_string(&test, "direction", "reverse");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x12", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){2.0, 3.0});
    test.output_count = 2;
    static const double expected_0[] = {-0.156778738, 0.19484216,   -0.2148581,    -0.131216004,
                                        0.0595092215, -0.221136153, -0.469098091,  0.408073038,
                                        0.0,          0.0,          -0.0933388323, 0.120435864};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {-0.156778738, 0.19484216, -0.2148581, -0.131216004};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "1x2x2", expected_1, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__rnn_forward_without_bias(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "RNN", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 3, 0.1);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    test.output_count = 2;
    static const double expected_0[] = {0.73522222,   -0.158648551, 0.777888179,  -0.20696646,
                                        0.835211515,  -0.251100302, -0.558618307, 0.884187222,
                                        0.0575156212, 0.893624067,  -0.634148836, -0.860570788};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {0.0575156212, 0.893624067, -0.634148836, -0.860570788};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "1x2x2", expected_1, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__rnn_bidirectional_relu(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "RNN", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_string(&test, "direction", "bidirectional");
    op_probe_set_strings(&test, "activations", "Relu,LeakyRelu");
    op_probe_set_floats(&test, "activation_alpha", "0.2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x4", 4, 0.05);
    test.output_count = 2;
    static const double expected_0[] = {
        0.0,          0.0,         0.569999993,  0.0,          0.836319983, 1.14418006,
        0.345799983,  0.467000067, 1.22000003,   0.0,          0.0,         1.55800009,
        -0.115200005, 0.601000011, 0.0619999766, -0.134399995, 0.0,         1.81800008,
        0.0,          0.0,         -0.24000001,  -0.110000014, 0.680000007, 0.680000067};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x2x2x2", expected_0, 1e-05);
    static const double expected_1[] = {0.0,         1.81800008, 0.0,         0.0,
                                        0.836319983, 1.14418006, 0.345799983, 0.467000067};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "2x2x2", expected_1, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__rnn_softsign_and_elu(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "RNN", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_string(&test, "direction", "bidirectional");
    op_probe_set_strings(&test, "activations", "Softsign,Elu");
    op_probe_set_floats(&test, "activation_alpha", "0.5");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x4", 4, 0.05);
    test.output_count = 2;
    static const double expected_0[] = {
        -0.0740740672, -0.218749985, 0.363057345,  -0.218749985, 0.719243526,  1.28510642,
        0.345799983,   0.411871612,  0.591195583,  -0.166843444, -0.323206633, 0.613092601,
        -0.245284945,  0.648700058,  0.0619999766, -0.244656891, 0.0890240967, 0.622627258,
        -0.286107928,  -0.417191297, -0.349402905, -0.211525112, 0.680000007,  0.680000067};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x2x2x2", expected_0, 1e-05);
    static const double expected_1[] = {0.0890240967, 0.622627258, -0.286107928, -0.417191297,
                                        0.719243526,  1.28510642,  0.345799983,  0.411871612};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "2x2x2", expected_1, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_unknown_activations(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_strings(&test, "activations", "Sigmoid,Tanh,Sine");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_UNSUPPORTED, "attribute activations");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_too_few_activations(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_strings(&test, "activations", "Tanh");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute activations must list 3");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_unknown_direction(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_string(&test, "direction", "sideways");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute direction");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_layout_two(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_int(&test, "layout", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute layout is 2");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_negative_clip(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_set_float(&test, "clip", -1.0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute clip");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_lengths_beyond_the_sequence(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){4.0, 1.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "sequence_lens[0] is 4");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_negative_lengths(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){1.0, -1.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "sequence_lens[1] is -1");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_a_short_bias(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input B has shape [1, 8]");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_a_wrong_state(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input initial_c");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_a_wrong_weight(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input W");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_a_flat_x(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 2, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2", 3, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x16", 4, 0.05);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){3.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 5, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2", 6, 0.1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6", 7, 0.1);
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "rank 3");
    op_probe_deinit(&test);
}

static void test_op_recurrent__refuses_another_hidden_size(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LSTM", 14);
    op_probe_set_int(&test, "hidden_size", 3);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x1", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x1", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x1", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute hidden_size is 3");
    op_probe_deinit(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_recurrent__lstm_forward_with_everything),
        cmocka_unit_test(test_op_recurrent__lstm_reverse_with_lengths),
        cmocka_unit_test(test_op_recurrent__lstm_bidirectional_with_lengths_and_peepholes),
        cmocka_unit_test(test_op_recurrent__lstm_clips_before_the_activations),
        cmocka_unit_test(test_op_recurrent__lstm_couples_input_and_forget),
        cmocka_unit_test(test_op_recurrent__lstm_other_activations),
        cmocka_unit_test(test_op_recurrent__gru_forward),
        cmocka_unit_test(test_op_recurrent__gru_bidirectional_with_lengths),
        cmocka_unit_test(test_op_recurrent__gru_linear_before_reset),
        cmocka_unit_test(test_op_recurrent__gru_reverse_linear_before_reset),
        cmocka_unit_test(test_op_recurrent__rnn_forward_without_bias),
        cmocka_unit_test(test_op_recurrent__rnn_bidirectional_relu),
        cmocka_unit_test(test_op_recurrent__rnn_softsign_and_elu),
        cmocka_unit_test(test_op_recurrent__refuses_unknown_activations),
        cmocka_unit_test(test_op_recurrent__refuses_too_few_activations),
        cmocka_unit_test(test_op_recurrent__refuses_unknown_direction),
        cmocka_unit_test(test_op_recurrent__refuses_layout_two),
        cmocka_unit_test(test_op_recurrent__refuses_negative_clip),
        cmocka_unit_test(test_op_recurrent__refuses_lengths_beyond_the_sequence),
        cmocka_unit_test(test_op_recurrent__refuses_negative_lengths),
        cmocka_unit_test(test_op_recurrent__refuses_a_short_bias),
        cmocka_unit_test(test_op_recurrent__refuses_a_wrong_state),
        cmocka_unit_test(test_op_recurrent__refuses_a_wrong_weight),
        cmocka_unit_test(test_op_recurrent__refuses_a_flat_x),
        cmocka_unit_test(test_op_recurrent__refuses_another_hidden_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
