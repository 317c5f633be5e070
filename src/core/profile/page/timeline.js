// A timeline on a canvas: a heading for each thread, stream or counter, and under it rows of events
// in which nothing lies over anything else. Only what is in sight is drawn, and events narrower
// than a point are drawn as one.
// SPDX-License-Identifier: Apache-2.0

const rowHeight = 18;
const headHeight = 17;
const scaleHeight = 20;
const counterHeight = 64;

// The first index from which on `test` holds; it holds for all behind that.
function findFirst(list, test) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(list[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

function makeGroups(range) {
  const groups = [];
  const inRange = (item) => !range || (item.begin < range.end && item.end >= range.begin);
  data.threads.forEach((name, thread) => {
    const rows = [];
    for (const span of spans) {
      if (span.thread === thread && inRange(span)) {
        (rows[span.depth] = rows[span.depth] || []).push(span);
      }
    }
    const used = rows.filter((row) => row !== undefined);
    if (used.length > 0) {
      groups.push({name: "thread " + name, rows: used});
    }
  });
  const tracks = data.tracks.map(([device, stream]) => ({
    name: device + ", " + stream, rows: [[]], key: device + stream,
  }));
  for (const work of works) {
    if (inRange(work)) {
      tracks[work.track].rows[0].push(work);
    }
  }
  tracks.sort((a, b) => a.key.localeCompare(b.key, undefined, {numeric: true}));
  return groups.concat(tracks.filter((track) => track.rows[0].length > 0));
}

function makeCounters() {
  const byName = new Map();
  for (const sample of samples) {
    byName.set(sample.name, (byName.get(sample.name) || []).concat([sample]));
  }
  return [...byName].map(([name, values]) => ({
    name, counter: values, most: values.reduce((most, v) => Math.max(most, v.value), 1),
  }));
}

class Timeline {
  // options: groups; begin, end: what "all" shows; origin: where the scale has its 0; label
  constructor(place, options) {
    this.groups = options.groups;
    this.first = options.begin;
    this.last = Math.max(options.end, options.begin + 1);
    this.origin = options.origin || 0;
    this.begin = this.first;
    this.end = this.last;
    this.search = "";
    this.canvas = make("canvas", {tabIndex: 0});
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", options.label);
    place.replaceChildren(this.canvas);
    this.layOut();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.draw();
  }

  layOut() {
    let y = scaleHeight;
    for (const group of this.groups) {
      group.y = y;
      y += headHeight + (group.counter ? counterHeight : group.rows.length * rowHeight) + 4;
    }
    this.height = y + 2;
  }

  // ---- drawing

  toX(time) {
    return (time - this.begin) / (this.end - this.begin) * this.width;
  }

  toTime(x) {
    return this.begin + x / this.width * (this.end - this.begin);
  }

  draw() {
    const ratio = devicePixelRatio || 1;
    this.width = this.canvas.parentElement.clientWidth;
    if (this.width === 0) return;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = this.height + "px";
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue("--" + name).trim();
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.context.font = "11px system-ui, sans-serif";
    this.context.textBaseline = "middle";
    this.drawScale();
    for (const group of this.groups) {
      this.context.fillStyle = this.colour("quiet");
      this.context.fillText(group.name, 6, group.y + headHeight / 2);
      if (group.counter) {
        this.drawCounter(group);
      } else {
        group.rows.forEach((row, i) => this.drawRow(row, group.y + headHeight + i * rowHeight));
      }
    }
  }

  drawScale() {
    const wanted = (this.end - this.begin) / Math.max(2, this.width / 110);
    const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
    const step = Math.max(1, [1, 2, 5, 10].find((n) => n * power >= wanted) * power);
    for (let t = Math.ceil((this.begin - this.origin) / step) * step; t < this.end - this.origin;
         t += step) {
      const x = this.toX(t + this.origin);
      this.context.fillStyle = this.colour("line");
      this.context.fillRect(x, 0, 1, this.height);
      this.context.fillStyle = this.colour("quiet");
      this.context.fillText(formatTime(t), x + 3, scaleHeight / 2);
    }
  }

  drawRow(row, y) {
    const context = this.context;
    let done = -1;
    let mark = -1;
    for (let i = findFirst(row, (e) => e.end >= this.begin); i < row.length; i++) {
      const event = row[i];
      if (event.begin > this.end) break;
      const left = Math.max(this.toX(event.begin), 0);
      const right = Math.min(this.toX(event.end), this.width);
      const isFound = this.search !== "" && matches(event, this.search);
      if (right <= done && !(isFound && right > mark)) continue;
      const width = Math.max(right - left, 1);
      context.fillStyle = this.colour(isFound ? "mark" : colourOf[event.kind] || "other");
      context.globalAlpha = this.search === "" || isFound ? 1 : 0.35;
      context.fillRect(left, y, Math.max(width - (width > 3 ? 0.5 : 0), 1), rowHeight - 2);
      context.globalAlpha = 1;
      done = left + width;
      mark = isFound ? done : mark;
      if (width > 34) {
        this.drawText(event.name, left, y, width);
      }
    }
  }

  drawText(name, x, y, width) {
    const room = Math.floor((width - 6) / 5.6);
    this.context.fillStyle = this.colour("on-bar");
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width - 2, rowHeight);
    this.context.clip();
    this.context.fillText(name.length > room ? name.slice(0, Math.max(room, 1)) + "\u2026" : name,
                          x + 4, y + rowHeight / 2 - 1);
    this.context.restore();
  }

  drawCounter(group) {
    const context = this.context;
    const bottom = group.y + headHeight + counterHeight - 2;
    const toY = (value) => bottom - value / group.most * (counterHeight - 6);
    const start = Math.max(findFirst(group.counter, (s) => s.time >= this.begin) - 1, 0);
    context.beginPath();
    context.moveTo(this.toX(group.counter[start].time), bottom);
    let y = bottom;
    for (let i = start; i < group.counter.length; i++) {
      const sample = group.counter[i];
      const x = this.toX(sample.time);
      context.lineTo(x, y);
      y = toY(sample.value);
      context.lineTo(x, y);
      if (sample.time > this.end) break;
    }
    context.lineTo(this.width, y);
    context.lineTo(this.width, bottom);
    context.fillStyle = this.colour("bar");
    context.fill();
    context.strokeStyle = this.colour("memory");
    context.stroke();
    context.fillStyle = this.colour("quiet");
    const text = "most: " + formatBytes(group.most);
    context.fillText(text, Math.max(this.width - context.measureText(text).width - 6, 0),
                     group.y + headHeight / 2);
  }

  // ---- moving

  show(begin, end) {
    const span = Math.min(Math.max(end - begin, 20), this.last - this.first);
    const middle = (begin + end) / 2;
    this.begin = Math.min(Math.max(middle - span / 2, this.first), this.last - span);
    this.end = this.begin + span;
    this.draw();
  }

  // `factor` below 1 goes nearer; `time` stays where it is.
  zoom(factor, time = (this.begin + this.end) / 2) {
    const span = Math.min(Math.max((this.end - this.begin) * factor, 20), this.last - this.first);
    const part = (time - this.begin) / (this.end - this.begin);
    this.show(time - part * span, time + (1 - part) * span);
  }

  pan(part) {
    const by = part * (this.end - this.begin);
    this.show(this.begin + by, this.end + by);
  }

  // What lies at a point of the canvas; null: nothing.
  find(x, y) {
    const time = this.toTime(x);
    const slack = (this.end - this.begin) / this.width * 2;
    for (const group of this.groups) {
      const top = group.y + headHeight;
      if (group.counter && y >= group.y && y < top + counterHeight) {
        const at = findFirst(group.counter, (s) => s.time > time) - 1;
        return at < 0 ? null : {name: group.name, kind: "memory", sample: group.counter[at]};
      }
      const row = group.counter ? undefined : group.rows[Math.floor((y - top) / rowHeight)];
      if (row && y >= top) {
        const event = row[findFirst(row, (e) => e.end >= time - slack)];
        return event && event.begin <= time + slack ? event : null;
      }
    }
    return null;
  }

  listen() {
    const canvas = this.canvas;
    const fingers = new Map();
    canvas.addEventListener("pointerdown", (e) => {
      fingers.set(e.pointerId, e);
      canvas.setPointerCapture(e.pointerId);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (e) => fingers.delete(e.pointerId));
    }
    canvas.addEventListener("pointermove", (e) => {
      const before = fingers.get(e.pointerId);
      if (!before) {
        showTip(this.find(e.offsetX, e.offsetY), e);
        return;
      }
      if (fingers.size === 2) {
        const [other] = [...fingers.values()].filter((f) => f.pointerId !== e.pointerId);
        const distance = (f) => Math.max(Math.abs(f.offsetX - other.offsetX), 8);
        this.zoom(distance(before) / distance(e), this.toTime((e.offsetX + other.offsetX) / 2));
      } else {
        this.pan((before.offsetX - e.offsetX) / this.width);
      }
      fingers.set(e.pointerId, e);
      showTip(null);
    });
    canvas.addEventListener("pointerleave", () => showTip(null));
    canvas.addEventListener("click", (e) => showTip(this.find(e.offsetX, e.offsetY), e));
    canvas.addEventListener("wheel", (e) => {
      if (e.ctrlKey || e.metaKey) {
        this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.toTime(e.offsetX));
      } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        this.pan((e.deltaX || e.deltaY) / this.width);
      } else {
        return;  // the page scrolls
      }
      e.preventDefault();
    }, {passive: false});
    canvas.addEventListener("dblclick", (e) => {
      const event = this.find(e.offsetX, e.offsetY);
      if (event && event.end > event.begin) {
        const margin = (event.end - event.begin) * 0.1;
        this.show(event.begin - margin, event.end + margin);
      }
    });
    const keys = {
      "+": () => this.zoom(0.67), "=": () => this.zoom(0.67), "-": () => this.zoom(1.5),
      "0": () => this.show(this.first, this.last), ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
    };
    canvas.addEventListener("keydown", (e) => {
      if (keys[e.key] && !e.ctrlKey && !e.metaKey) {
        keys[e.key]();
        e.preventDefault();
      }
    });
  }
}

// ---- what an event is -------------------------------------------------------------------------

function matches(event, search) {
  return event.name.toLowerCase().includes(search) ||
    (event.detail || "").toLowerCase().includes(search);
}

function isCopy(event) {
  return event.kind === "copy" || event.kind === "memcpy";
}

function describe(event) {
  if (event.sample) {
    return formatBytes(event.sample.value) + "\nat " + formatTime(event.sample.time);
  }
  const lines = [event.kind + (event.way ? ", " + event.way : "") +
    (event.isAsync ? ", not waited for" : "")];
  if (event.detail) {
    lines.push(event.detail);
  }
  lines.push(formatTime(event.end - event.begin) + ", from " + formatTime(event.begin));
  if (event.bytes > 0) {
    const seconds = (event.end - event.begin) * 1e-9;
    lines.push(formatBytes(event.bytes) + (seconds > 0 && isCopy(event)
      ? ", " + formatBytes(event.bytes / seconds) + "/s" : ""));
  }
  return lines.join("\n");
}

function showTip(event, at) {
  const tip = get("tip");
  tip.hidden = !event;
  if (!event) return;
  tip.replaceChildren(make("b", {textContent: event.name}), describe(event));
  const box = tip.getBoundingClientRect();
  const x = Math.min(at.clientX + 14, innerWidth - box.width - 8);
  const y = at.clientY + 16 + box.height > innerHeight ? at.clientY - box.height - 10
                                                       : at.clientY + 16;
  tip.style.left = Math.max(x, 4) + "px";
  tip.style.top = Math.max(y, 4) + "px";
}
