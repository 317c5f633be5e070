# Pictures as inputs: decoded and resized as Pillow does (make_images.py made the pictures and what is
# expected), the values and layouts of inputs, folders of them, test data sets, scores with labels; and
# files that are broken or would be too large.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
images=$here/images
bytes=$here/models/picture_bytes.onnx
reals=$here/models/picture_reals.onnx
scores=$here/models/picture_scores.onnx

# What this build has: without libpng or libjpeg their files are refused by name, and PPM is read.
has() { # KIND FILE
    run_tool run "$bytes" --device host --image "x=$images/$2"
    [ "$status" = 0 ] && return 0
    grep -q "$1: this build has no lib" "$work/stderr" || fail "$2: $(cat "$work/stderr")"
    echo "a build without $1: its files are refused"
    return 1
}
kinds=ppm
has PNG scene.png && kinds="$kinds png"
has JPEG scene.jpg && kinds="$kinds jpg"

# same EXPECTED TOLERANCE ARGUMENT...: the output y is what the .npy has.
same() {
    expected_file=$images/$1
    tolerance=$2
    shift 2
    expect_status 0 run "$@" --device host --output-dir "$work/out"
    cp "$work/stdout" "$work/told"
    expect_status 0 compare "$work/out/y.npy" "$expected_file" --rtol 0 --atol "$tolerance"
}

told() {
    grep -qE -- "$1" "$work/told" || fail "stdout of the run lacks /$1/"
}

# Decoders, bit for bit; of JPEG what libjpeg-turbo gives, of others within a few levels.
for name in scene.png grey.png palette.png alpha.png scene.jpg progressive.jpg grey.jpg; do
    case "$kinds" in *"${name##*.}"*) ;; *) continue ;; esac
    tolerance=0
    [ "${name##*.}" = jpg ] && tolerance=4
    same "$name.npy" $tolerance "$bytes" --image "x=$images/$name" --resize none --crop none
done
for name in scene.bmp from_top.bmp scene.ppm; do
    same scene.png.npy 0 "$bytes" --image "x=$images/$name" --resize none --crop none
done
told '^input x: .*scene\.ppm, 61x43, RGB, NHWC, values as they are$'

# How the camera was held: told, and applied where that is asked for, from either byte order.
case "$kinds" in *jpg*)
    same held_1.npy 4 "$bytes" --image "x=$images/held.jpg" --resize none --crop none
    told '6x4, EXIF orientation 6 left alone \(--upright\), RGB'
    at=$(grep -abo -m1 'Exif' "$images/held.jpg" | head -n1 | cut -d: -f1) # then 2 zeros, the TIFF header
    for way in 1 2 3 4 5 6 7 8; do
        head -c $((at + 24)) "$images/held.jpg" >"$work/held.jpg" # the value of the first entry, "MM"
        printf "\\000\\$(printf %o $way)" >>"$work/held.jpg"
        tail -c +$((at + 27)) "$images/held.jpg" >>"$work/held.jpg"
        same held_$way.npy 4 "$bytes" --image "x=$work/held.jpg" --resize none --crop none --upright
    done
    told '4x6, EXIF orientation 8 made upright, RGB'
    ;;
esac
same scene.png.npy 0 "$bytes" --image "x=$images/scene.ppm" --resize none --crop none --upright

# Sizes: within one level of Pillow's BILINEAR.
same short_24.npy 1 "$bytes" --image "x=$images/scene.ppm" --resize 24 --crop 21
told '61x43, to 34x24, middle 21x21'
same stretched_20x31.npy 1 "$bytes" --image "x=$images/scene.ppm" --resize 20x31
same larger_100x70.npy 1 "$bytes" --image "x=$images/scene.ppm" --resize 100x70
same luma.npy 1e-6 "$here/models/picture_grey.onnx" --image "x=$images/scene.ppm"
told 'the convention for grey$'

# ImageNet's convention, and what says otherwise. The first pixel is (127, 0, 0).
expect_status 0 run "$reals" --device host --image "x=$images/scene.ppm"
expect_text '61x43, to 363x256, middle 224x224, RGB, NCHW, .*mean 0\.485,0\.456,0\.406.*0\.225, ImageNet'
expect_text '^y  f32 \[1, 3, 224, 224\]'
whole="--resize none --crop none"
run_reals() {
    expect_status 0 run "$reals" --device host --image "x=$images/scene.ppm" $whole "$@"
}
run_reals
expect_text 'min -2\.1179, .*values 0\.0569'
run_reals --scale 1
expect_text 'min 0, .*values 127 '
run_reals --mean 127 --std 2 --scale 1
expect_text 'values 0 '
run_reals --scale 1/127 --mean 1,0,0
expect_text 'values 0 '
run_reals --scale 1 --channels bgr
expect_text 'BGR, .*'
expect_text 'values 0 0 '
expect_status 0 run "$scores" --device host --image "x=$images/scene.ppm"
expect_text 'BGR, NCHW, .*as the model.s metadata says$'

# A folder: the lines of its pictures in the order of their numbers, and what is broken by name.
case "$kinds" in *png*)
    expect_status 1 run "$scores" --device host --image "x=$images/set" --top 1 --output-dir "$work/set"
    grep -q 'set/p3\.png: begins as no image' "$work/stderr" || fail "a broken picture is not named"
    grep '^p' "$work/stdout" | cut -d' ' -f1 | tr '\n' ' ' >"$work/names"
    [ "$(cat "$work/names")" = "p1.png p2.png p10.png " ] || fail "other pictures: $(cat "$work/names")"
    expect_text '^p2\.png  2 200 '
    expect_status 1 run "$scores" --device host --image "x=$images/set" --top 1 --quiet
    [ ! -s "$work/stdout" ] || fail "--quiet prints lines for pictures: $(head -n1 "$work/stdout")"
    for name in p1 p2 p10; do
        [ -s "$work/set/$name.png/y.npy" ] || fail "no output of $name.png"
    done
    ;;
esac
mkdir "$work/none"
expect_error 1 'none: has no pictures' run "$scores" --image "x=$work/none"

# Scores with labels.
printf 'blue\ngreen\r\nred' >"$work/labels"
expect_status 0 run "$scores" --device host --image "x=$images/scene.ppm" --labels "$work/labels" --top 2
expect_text '^   1\. [0-2] (blue|green|red) '
expect_text '^   2\. [0-2] (blue|green|red) '
[ "$(grep -c '^   [0-9]' "$work/stdout")" = 2 ] || fail "--top 2 shows other than two"
printf '\357\273\277blue\ngreen\nred\n\r\n\n' >"$work/marked" # a byte order mark, and empty lines last
expect_status 0 run "$scores" --device host --image "x=$images/scene.ppm" --labels "$work/marked" --top 3
expect_text '^   [1-3]\. 0 blue '
printf 'blue\n' >"$work/short"
expect_status 1 run "$scores" --device host --image "x=$images/scene.ppm" --labels "$work/short"
grep -q 'has 1 labels, and output "y" has 3 classes' "$work/stderr" || fail "labels that do not fit"
expect_error 1 'No such file' run "$scores" --labels "$work/absent"
expect_error 2 '--top is at most 100' run "$scores" --top 101

# Test data sets, compared with their outputs.
expect_status 0 run "$here/models/norm/model.onnx" --device host --test-set "$here/models/norm"
expect_text '^test_data_set_0  .*; as output_0\.pb$'
expect_status 0 run "$here/models/norm/model.onnx" --device host \
    --test-set "$here/models/norm/test_data_set_0//" --output-dir "$work/sets_out"
expect_text '^test_data_set_0  '
[ -n "$(ls "$work/sets_out/test_data_set_0")" ] || fail "a set's outputs are not in its folder"
mkdir -p "$work/sets/test_data_set_1" # without an input: named, and not run with the one before
cp -r "$here/models/norm/test_data_set_0" "$work/sets/"
expect_status 1 run "$here/models/norm/model.onnx" --device host --test-set "$work/sets"
expect_text '^test_data_set_0  '
grep -q 'test_data_set_1: has no input_0\.pb for input' "$work/stderr" || fail "a set without an input"
! grep -q '^test_data_set_1' "$work/stdout" || fail "a set without an input was run"
expect_error 1 'has no test_data_set_0 and no input_0\.pb' run "$scores" --test-set "$work/none"
expect_error 2 'exclude each other' run "$scores" --test-set x --image x=y

# What does not fit.
ppm=$images/scene.ppm
expect_error 1 'input "x" takes f32 \[batch, 3\]: a picture is for inputs of 3 or 4 axes' \
    run "$here/models/add_relu.onnx" --image "x=$ppm"
expect_error 1 'the shape is \[1, 3, 20, 20\], input "x" takes f32 \[n, 3, 21, 21\]$' \
    run "$scores" --quiet --image "x=$ppm" --crop 20
expect_error 1 'takes f32 \[n, 3, 21, 21\]; or a picture, with --image' \
    run "$scores" --shape x=1x3x20x20
expect_error 1 '300 x 300 pixels cannot be cut out of 363 x 256' run "$reals" --image "x=$ppm" \
    --resize 256 --crop 300
expect_error 1 'values of u8 are given as they are' run "$bytes" --image "x=$ppm" --mean 1
expect_error 1 'a picture has 1 or 3 channels; --layout' run "$scores" --image "x=$ppm" --layout nhwc
expect_error 1 'given with --image and with --input' run "$reals" --image "x=$ppm" --input x=random
expect_error 1 'no such input; the inputs are: x f32' run "$reals" --image "q=$ppm"
expect_error 1 'a picture \(PPM\), which --image x=' run "$reals" --input "x=$ppm"
for option in --resize=24 --crop=24 --mean=1 --std=1 --scale=1 --layout=nchw --channels=bgr --upright; do
    expect_error 2 "${option%%=*} is for pictures: --image NAME=FILE says which" run "$reals" $option
done
for option in --resize --crop; do
    for value in 0 1x 3x3x3 -1 65537 a; do
        expect_error 2 "$option \"$value\": write it as in" run "$reals" --image "x=$ppm" \
            $option=$value
    done
done
expect_error 2 '--mean "1,2": write one or three' run "$reals" --image "x=$ppm" --mean 1,2
expect_error 2 '--std "0": write one or three numbers other than 0' run "$reals" --image "x=$ppm" --std 0
expect_error 2 '--scale "1/": write a number' run "$reals" --image "x=$ppm" --scale 1/

# A model that decodes: pixels as Pillow has them, to the bit; and what is no picture that is read here.
for name in $(for kind in $kinds; do echo scene.$kind; done) scene.bmp; do
    cp "$images/$name" "$work/picture.bin"
    for pixels in rgb bgr grey; do
        case "$name" in *.jpg)
            expect_status 0 run "$here/models/decode_$pixels.onnx" --device host --input "x=$work/picture.bin"
            ;;
        *)
            same decoded_$pixels.npy 0 "$here/models/decode_$pixels.onnx" --input "x=$work/picture.bin"
            ;;
        esac
    done
done
refuse_decoding() { # PATTERN
    expect_error 1 "ImageDecoder node \"decode\": $1" run "$here/models/decode_rgb.onnx" --device host \
        --input "x=$work/picture.bin"
}
cp "$images/set/notes.txt" "$work/picture.bin"
refuse_decoding 'begins as no image that is read here'
head -c 3000 "$images/scene.bmp" >"$work/picture.bin"
refuse_decoding 'the file is cut short'
head -c 53 "$images/scene.bmp" >"$work/picture.bin"
refuse_decoding 'its header is not that of a BMP'

# Broken files: one line that names the file, and no memory for extents that nobody has.
refuse() { # FILE PATTERN
    expect_error 1 "$1: .*$2" run "$bytes" --device host --image "x=$3/$1"
}
refuse notes.txt 'begins as no image that is read here' "$images/set"
case "$kinds" in *png*)
    refuse cut_scene.png 'PNG: the file is cut short' "$images"
    refuse head_scene.png 'PNG: the file is cut short' "$images"
    refuse huge.png 'PNG: the image would be 2147483647 x 2147483647 pixels; at most 100000000' "$images"
    refuse wide.png 'PNG: the image would be 50000 x 50000 pixels; at most 100000000' "$images"
    refuse empty.png 'PNG: Invalid IHDR' "$images"
    refuse flipped.png 'PNG: ' "$images"
    ;;
esac
case "$kinds" in *jpg*)
    refuse cut_scene.jpg 'JPEG: the file is cut short' "$images"
    refuse head_scene.jpg 'JPEG: the file is cut short' "$images"
    refuse wide.jpg 'JPEG: the image would be 65000 x 65000 pixels; at most 100000000' "$images"
    refuse cmyk.jpg 'JPEG: has 4 channels' "$images"
    ;;
esac
printf 'P6\n99999 99999\n255\n' >"$work/wide.ppm"
refuse wide.ppm 'PPM: the file is cut short' "$work"
printf 'P6\n4 4\n65535\n' >"$work/deep.ppm"
refuse deep.ppm 'PPM: its largest value is 65535' "$work"
bmp() { # WIDTH HEIGHT BITS WAY, as four bytes of octal each but BITS, two
    printf 'BM\0\0\0\0\0\0\0\0\066\0\0\0\050\0\0\0'"$1$2"'\001\0'"$3$4"
    head -c 64 /dev/zero
}
four='\004\0\0\0' none='\0\0\0\0'
bmp "$four" "$four" '\010\0' "$none" >"$work/few.bmp"
refuse few.bmp 'BMP: has 8 bits a pixel, packed in way 0' "$work"
bmp "$four" "$four" '\040\0' '\003\0\0\0' >"$work/packed.bmp"
refuse packed.bmp 'BMP: has 32 bits a pixel, packed in way 3' "$work"
bmp "$none" "$four" '\030\0' "$none" >"$work/thin.bmp"
refuse thin.bmp 'BMP: the image has no pixels' "$work"
bmp '\377\377\377\377' '\0\0\0\200' '\040\0' "$none" >"$work/wide.bmp"
refuse wide.bmp 'BMP: the file is cut short' "$work"
printf 'P6\n4' >"$work/head.ppm"
refuse head.ppm 'PPM: its header' "$work"
: >"$work/empty.ppm"
refuse empty.ppm 'begins as no image' "$work"
finish_test
