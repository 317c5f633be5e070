# The page of rondo profile in a browser without a screen: it tests itself when it is opened with
# #self-test, at two widths, light and dark, and says so in its title. Names that look like markup
# stay names. Skipped where there is no Chromium.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
browser=
for candidate in chromium chromium-browser google-chrome; do
    command -v $candidate >/dev/null 2>&1 && browser=$candidate && break
done

# show_page FILE WIDTH SCHEME: the title that the page has in a frame so wide (a window has at least
# 500 points). Schemes are 0 (dark) and 1.
show_page() {
    cat >"$work/frame.html" <<END
<!doctype html><iframe id=inner src="$1#self-test" width=$2 height=3000></iframe>
<script>inner.onload = () => { document.title = inner.contentDocument.title; };</script>
END
    HOME=$work timeout 120 $browser --headless=new --no-sandbox --disable-gpu --no-first-run \
        --user-data-dir="$work/browser" --window-size=1600,1000 --blink-settings=preferredColorScheme="$3" \
        --allow-file-access-from-files --virtual-time-budget=3000 --dump-dom "file://$work/frame.html" \
        2>"$work/stderr" | grep -m1 -o '<title>[^<]*'
}

if [ -z "$browser" ]; then
    echo "skipped: there is no Chromium here"
    exit 77
fi
echo '<!doctype html><title>it runs</title>' >"$work/empty.html"
if ! show_page empty.html 400 1 | grep -q 'it runs'; then
    echo "skipped: $browser does not run here: $(tail -n 1 "$work/stderr")"
    exit 77
fi
for model in models/markup_names.onnx ../models/branch_and_loop/model.onnx; do
    expect_status 0 profile "$here/$model" --device host --runs 3 --html "$work/page.html"
    for look in "400 0" "1400 1"; do
        check_count=$((check_count + 1))
        title=$(show_page page.html $look)
        echo "$title" | grep -q '^<title>self-test: [0-9]* passed$' || fail "$model at $look: $title"
    done
done
finish_test
