// Awkward semantics of losses.
//
// Expected numbers come from ONNX Runtime on the same inputs, unless a row says
// otherwise.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row negative_log_likelihood_loss_rows[] = {
    // Nll mean divides by the weights: numbers from onnx.reference.
    {"NegativeLogLikelihoodLoss", 13, "f32[3,4]:~1 i64[3]:1,0,3 f32[4]:0.5,2,1,0.25",
     "reduction=s:mean", "f32[]:0.6704546"},
    {"NegativeLogLikelihoodLoss", 13, "f32[2,3,3]:~1 i64[2,3]:0,2,-1,1,1,2", "",
     "!BAD_DATA label -1 is outside [0, 3)"},
    {"NegativeLogLikelihoodLoss", 13, "f32[2,3,2]:~1 i64[2,3]:0,2,-1,1,1,2", "",
     "!BAD_DATA do not fit labels"},
    {"NegativeLogLikelihoodLoss", 13, "f32[2,3,3]:~1 i64[2,3]:0,2,-1,1,1,2", "reduction=s:max",
     "!BAD_DATA attribute reduction"},
    {"NegativeLogLikelihoodLoss", 13, "f32[2,3,3]:~1 i64[2,3]:0,2,-1,1,1,2 f32[2]:~1", "",
     "!BAD_DATA input weight"},
};
OP_ROWS_TEST(test_op_loss__negative_log_likelihood_loss, negative_log_likelihood_loss_rows)

static const op_row softmax_cross_entropy_loss_rows[] = {
    // Numbers from onnx.reference.
    {"SoftmaxCrossEntropyLoss", 13, "f32[2,3,3]:~1 i64[2,3]:0,2,-1,1,1,2 f32[3]:0.5,1,2",
     "ignore_index=-1 reduction=s:none",
     "f32[2,3]:0.3401348,2.060721,0,1.18027,1.18027,0.4404698 f32[2,3,3]:-0.6802697,"
     "-2.905361,-0.6802697,-1.18027,-0.5303606,-1.18027,-1.68027,-1.030361,-1.68027,"
     "-0.6802697,-0.6802697,-2.095235,-1.18027,-1.18027,-2.595235,-1.68027,-1.68027,"
     "-0.2202349"},
    // The logarithm is taken of no zero: the loss is the difference of the scores.
    {"SoftmaxCrossEntropyLoss", 13, "f32[1,2]:1000,-1000 i64[1]:1", "reduction=s:sum",
     "f32[]:2000"},
};
OP_ROWS_TEST(test_op_loss__softmax_cross_entropy_loss, softmax_cross_entropy_loss_rows)

TEST_MAIN()
