/* Attention maps answer the pointer, a tap and the arrow keys. Every listener sits on the document, so maps
   that come later work too. Words reach the page as text only. */
(() => {
  if (window.seqvizMaps) return;
  window.seqvizMaps = true;
  const MAPS = ".sv-map, .sv-vector";
  const decoded = new WeakMap();
  const locked = new WeakMap();

  function numbers(cells) {
    const text = cells.dataset.numbers;
    const known = decoded.get(cells);
    if (known && known.text === text) return known.values;
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const values = Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
    decoded.set(cells, { text, values });
    return values;
  }

  const cellsOf = (map) => map.querySelector(".sv-cells, .sv-strip");
  const sizeOf = (cells) => ({ rows: Number(cells.dataset.rows), columns: Number(cells.dataset.columns) });
  const shown = (number) => number.toFixed(4).replace("-", "\u2212");

  /* Fill a pattern such as "{target} looks at {source}: {weight}"; words isolated, so that no direction leaks. */
  function say(map, pattern, values) {
    const readout = map.querySelector(".sv-readout");
    const parts = pattern.split(/(\{\w+\})/).map((part) => {
      const key = part.slice(1, -1);
      if (!part.startsWith("{") || !(key in values)) return part;
      const element = document.createElement(typeof values[key] === "number" ? "b" : "bdi");
      element.textContent = typeof values[key] === "number" ? shown(values[key]) : values[key];
      return element;
    });
    readout.replaceChildren(...parts);
    readout.classList.toggle("sv-on", Object.keys(values).length > 0);
  }

  function strongest(values, words, pattern) {
    const order = values.map((value, i) => [value, i]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, 3);
    return order.map(([value, i]) => `${words[i]} ${shown(value)}`).join(pattern);
  }

  /* Light a row, a column, or both (-1: none). */
  function light(map, row, column, quiet) {
    const cells = cellsOf(map);
    const { columns } = sizeOf(cells);
    const across = map.querySelector(".sv-across")?.children ?? [];
    const down = map.querySelector(".sv-down")?.children ?? [];
    for (const label of map.querySelectorAll(".sv-across .sv-on, .sv-down .sv-on")) label.classList.remove("sv-on");
    across[column]?.classList.add("sv-on");
    down[row]?.classList.add("sv-on");
    cells.style.setProperty("--r", row);
    cells.style.setProperty("--c", column);
    cells.classList.toggle("sv-has-row", row >= 0);
    cells.classList.toggle("sv-has-column", column >= 0);
    map.classList.toggle("sv-dim", row >= 0 || column >= 0);
    map.classList.toggle("sv-locked", locked.has(map));
    if (quiet) return;
    const values = numbers(cells);
    const text = map.dataset;
    const source = Array.from(across, (label) => label.textContent);
    const target = Array.from(down, (label) => label.textContent);
    if (text.sayNumber && column >= 0) {
      say(map, text.sayNumber, { place: String(column + 1), weight: values[column] });
    } else if (row >= 0 && column >= 0) {
      say(map, text.sayCell, { target: target[row], source: source[column], weight: values[row * columns + column] });
    } else if (row >= 0) {
      const most = strongest(values.slice(row * columns, (row + 1) * columns), source, " · ");
      say(map, text.sayRow, { target: target[row], most });
    } else if (column >= 0) {
      const most = strongest(target.map((_, i) => values[i * columns + column]), target, " · ");
      say(map, text.sayColumn, { source: source[column], most });
    } else {
      say(map, text.sayNothing, {});
    }
    /* The same source word in the map beside it. */
    for (const other of map.closest(".sv-pair")?.querySelectorAll(".sv-map") ?? []) {
      if (other !== map && other.dataset.source === map.dataset.source && !locked.has(other)) {
        light(other, -1, column, true);
      }
    }
  }

  function rest(map) {
    const [row, column] = locked.get(map) ?? [-1, -1];
    light(map, row, column);
  }

  /* What lies under the pointer: a cell, or a label alone. */
  function under(event) {
    const element = event.target instanceof Element ? event.target : null;
    const map = element?.closest(MAPS);
    if (!map) return null;
    const cells = element.closest(".sv-cells, .sv-strip");
    if (cells) {
      const box = cells.getBoundingClientRect();
      const { rows, columns } = sizeOf(cells);
      const place = (at, size, count) => Math.min(count - 1, Math.max(0, Math.floor((at / size) * count)));
      const row = place(event.clientY - box.top, box.height, rows);
      const column = place(event.clientX - box.left, box.width, columns);
      return { map, row: map.dataset.sayNumber ? -1 : row, column };
    }
    const label = element.closest(".sv-across span, .sv-down span");
    if (!label) return { map, row: -1, column: -1 };
    const index = Array.prototype.indexOf.call(label.parentElement.children, label);
    return label.closest(".sv-down") ? { map, row: index, column: -1 } : { map, row: -1, column: index };
  }

  let hovered = null;
  document.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    const place = under(event);
    if (hovered && hovered !== place?.map) {
      if (hovered.isConnected) rest(hovered);
      hovered = null;
    }
    if (!place) return;
    hovered = place.map;
    if (locked.has(place.map)) return;
    light(place.map, place.row, place.column);
  });

  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-sv-zoom]") : null;
    if (button) {
      const map = button.closest(MAPS);
      const zoom = Number(map.style.getPropertyValue("--sv-zoom") || 1) * Number(button.dataset.svZoom);
      map.style.setProperty("--sv-zoom", String(Math.min(2.25, Math.max(0.4, zoom))));
      return;
    }
    const place = under(event);
    if (!place || (place.row < 0 && place.column < 0)) return;
    const { map, row, column } = place;
    const now = locked.get(map);
    if (now && now[0] === row && now[1] === column) locked.delete(map);
    else locked.set(map, [row, column]);
    light(map, row, column);
  });

  /* While decoding is stepped through, the row of the step is lit in every map whose rows are the output. */
  document.addEventListener("seqviz:step", (event) => {
    const { row, piece, model } = event.detail ?? {};
    for (const map of document.querySelectorAll(".sv-map")) {
      if (map.dataset.model !== model || !["cross", "decoder", "saliency"].includes(map.dataset.kind)) continue;
      const wanted = map.dataset.unit === "pieces" ? piece : row;
      const { rows } = sizeOf(cellsOf(map));
      locked.delete(map);
      light(map, Number.isInteger(wanted) && wanted >= 0 && wanted < rows ? wanted : -1, -1);
    }
  });

  document.addEventListener("keydown", (event) => {
    const box = event.target instanceof Element ? event.target.closest(".sv-scroll, .sv-strip") : null;
    const map = box?.closest(MAPS);
    if (!map || event.ctrlKey || event.metaKey || event.altKey) return;
    const cells = cellsOf(map);
    const { rows, columns } = sizeOf(cells);
    let row = cells.classList.contains("sv-has-row") ? Number(cells.style.getPropertyValue("--r")) : -1;
    let column = cells.classList.contains("sv-has-column") ? Number(cells.style.getPropertyValue("--c")) : -1;
    const fresh = row < 0 && column < 0;
    if (event.key === "Escape") {
      locked.delete(map);
      return light(map, -1, -1);
    } else if (event.key === "ArrowRight") column += 1;
    else if (event.key === "ArrowLeft") column -= 1;
    else if (event.key === "ArrowDown") row += 1;
    else if (event.key === "ArrowUp") row -= 1;
    else if (event.key === "Home") column = 0;
    else if (event.key === "End") column = columns - 1;
    else return;
    event.preventDefault();
    row = fresh ? 0 : Math.min(rows - 1, Math.max(0, row));
    column = fresh && event.key !== "End" ? 0 : Math.min(columns - 1, Math.max(0, column));
    if (map.dataset.sayNumber) row = -1;
    locked.set(map, [row, column]);
    light(map, row, column);
    const grid = map.querySelector(".sv-grid");
    if (!grid) return;
    /* Keep the cell clear of the labels that stay in place. */
    const cell = map.querySelector(".sv-cell").getBoundingClientRect();
    const view = box.getBoundingClientRect();
    const left = view.left + box.clientLeft + map.querySelector(".sv-corner").offsetWidth;
    const top = view.top + box.clientTop + map.querySelector(".sv-corner").offsetHeight;
    if (cell.left < left) box.scrollLeft -= left - cell.left;
    if (cell.right > view.right - 20) box.scrollLeft += cell.right - view.right + 20;
    if (cell.top < top) box.scrollTop -= top - cell.top;
    if (cell.bottom > view.bottom - 20) box.scrollTop += cell.bottom - view.bottom + 20;
  });
})();
