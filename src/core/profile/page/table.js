// The event table: rows in rows, sorted among those under the same row, searched with the rows
// around what is found.
// SPDX-License-Identifier: Apache-2.0

class EventTable {
  constructor(table, search, note) {
    this.table = table;
    this.note = note;
    this.key = "total";
    this.isRising = false;
    this.search = "";
    this.body = make("tbody");
    search.addEventListener("input", () => {
      this.search = search.value.trim().toLowerCase();
      this.draw();
    });
  }

  // [title, field, text of a cell]
  columns() {
    const total = this.part.total;
    return [
      ["Event", "name", (row) => row.name],
      ["Calls", "calls", (row) => String(row.calls)],
      ["Total", "total", (row) => formatTime(row.total)],
      ["CPU time", "cpu", (row) => row.isWork ? "" : formatTime(row.cpu), true],
      ["GPU time", "gpu", (row) => formatTime(row.gpu), true],
      ["Min", "min", (row) => formatTime(row.min)],
      ["Max", "max", (row) => formatTime(row.max)],
      ["Ave", "ave", (row) => formatTime(row.ave)],
      ["Ratio", "total", (row) => formatRatio(row.total, total)],
    ];
  }

  show(part) {
    this.part = part;
    this.children = new Map([[-1, []]]);
    for (const row of part.rows) {
      this.children.set(row.index, []);
      this.children.get(row.parent).push(row);
    }
    const few = part.rows.length <= 150;
    this.open = new Set(part.rows.filter((row) => few || this.depthOf(row) < 1)
      .map((row) => row.index));
    this.drawHead();
    this.draw();
  }

  depthOf(row) {
    return row.parent < 0 ? 0 : 1 + this.depthOf(this.part.rows[row.parent]);
  }

  setOpen(isOpen) {
    this.open = new Set(isOpen ? this.part.rows.map((row) => row.index) : []);
    this.draw();
  }

  sortBy(key) {
    this.isRising = this.key === key ? !this.isRising : key === "name";
    this.key = key;
    this.drawHead();
    this.draw();
  }

  drawHead() {
    const row = make("tr");
    this.columns().forEach(([title, field], i) => {
      const isKey = field === this.key && title !== "Ratio";
      const arrow = isKey ? (this.isRising ? " \u25b2" : " \u25bc") : "";
      const button = make("button", {textContent: title + arrow});
      button.addEventListener("click", () => this.sortBy(field));
      const head = make("th", {scope: "col"}, button);
      if (isKey) {
        head.setAttribute("aria-sort", this.isRising ? "ascending" : "descending");
      }
      row.append(head);
    });
    this.table.replaceChildren(make("thead", {}, row), this.body);
  }

  sorted(parent) {
    const sign = this.isRising ? 1 : -1;
    const key = this.key;
    return [...this.children.get(parent)].sort((a, b) =>
      sign * (key === "name" ? a.name.localeCompare(b.name) : a[key] - b[key]) ||
      a.index - b.index);
  }

  // Rows in the order in which they are shown, with their depths.
  list() {
    const wanted = new Set();
    if (this.search !== "") {
      for (const row of this.part.rows) {
        if (matches(row, this.search)) {
          for (let at = row; at && !wanted.has(at.index); at = this.part.rows[at.parent]) {
            wanted.add(at.index);
          }
        }
      }
    }
    const shown = [];
    const walk = (parent, depth) => {
      for (const row of this.sorted(parent)) {
        if (this.search !== "" && !wanted.has(row.index)) continue;
        shown.push([row, depth]);
        if (this.open.has(row.index) || this.search !== "") {
          walk(row.index, depth + 1);
        }
      }
    };
    walk(-1, 0);
    return shown;
  }

  draw() {
    const most = 3000;
    const shown = this.list();
    const columns = this.columns();
    this.body.replaceChildren(...shown.slice(0, most).map(([row, depth]) =>
      this.drawRow(row, depth, columns)));
    const count = this.part.rows.length;
    this.note.textContent = shown.length === 0
      ? (this.search === "" ? "There are no events in this part." : "Nothing matches.")
      : `${shown.length} of ${count} rows` + (shown.length > most ? `, the first ${most} here` : "") +
        ". CPU time is the processor's in the event; GPU time is how long devices were busy with " +
        "what the event put there. They overlap.";
  }

  drawRow(row, depth, columns) {
    const line = make("tr");
    columns.forEach(([title, field, text, hasRatio], i) => {
      if (i === 0) {
        line.append(this.drawName(row, depth));
        return;
      }
      const cell = make("td", {textContent: text(row)});
      if (hasRatio && row[field] > 0 && !(field === "cpu" && row.isWork)) {
        cell.append(" ", make("small", {textContent: formatRatio(row[field], this.part.total)}));
      }
      if (title === "Ratio") {
        cell.className = "ratio";
        cell.style.setProperty("--part", Math.min(100 * row.total / this.part.total, 100) + "%");
      }
      line.append(cell);
    });
    return line;
  }

  drawName(row, depth) {
    const hasRows = this.children.get(row.index).length > 0;
    const isOpen = this.open.has(row.index) || this.search !== "";
    const handle = hasRows
      ? make("button", {textContent: isOpen ? "\u25be" : "\u25b8"})
      : make("span", {className: "leaf", textContent: row.isWork ? "\u00b7" : ""});
    if (hasRows) {
      handle.setAttribute("aria-expanded", String(isOpen));
      handle.setAttribute("aria-label", (isOpen ? "close " : "open ") + row.name);
      handle.addEventListener("click", () => {
        if (!this.open.delete(row.index)) {
          this.open.add(row.index);
        }
        this.draw();
      });
    }
    const text = make("span", {className: "text", title: row.name}, row.name);
    if (row.detail) {
      text.append(make("small", {textContent: row.detail}));
    }
    const name = make("span", {}, handle, text);
    name.style.paddingLeft = Math.min(depth * 14, 98) + "px";
    return make("td", {className: "name"}, name);
  }
}
