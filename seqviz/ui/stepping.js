/* Stepping through decoding: buttons, the range, arrow keys. Every listener sits on the document, so a panel that
   comes later works too. Nothing here asks the server; another piece that is chosen becomes the event
   "seqviz:choose". Words reach the page as text only. */
(() => {
  if (window.seqvizSteps) return;
  const PACE = 500; /* milliseconds a step */
  const states = new WeakMap();
  let waiting = false; /* for the output of a piece that was chosen: it then grows from there */

  const floats = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  };
  const fill = (pattern, values) => pattern.replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);

  function read(panel) {
    const data = panel.dataset;
    const old = states.get(panel);
    const source = data.id + data.steps + data.weights;
    if (old?.source === source) return old;
    const steps = JSON.parse(data.steps);
    const same = old?.id === data.id;
    if (old && !same) clearInterval(old.timer);
    const state = {
      id: data.id,
      source,
      steps,
      weights: data.weights ? floats(data.weights) : [],
      step: same ? old.step : Number(data.start),
      timer: same ? old.timer : null,
      moved: same && old.moved,
      fresh: !same,
    };
    states.set(panel, state);
    return state;
  }

  function show(panel, step) {
    const state = read(panel);
    const last = state.steps.length - 1;
    state.step = Math.min(last, Math.max(0, step));
    const now = state.steps[state.step];
    const count = fill(panel.dataset.sayCount, { number: state.step + 1, total: last + 1 });
    panel.querySelectorAll(".st-piece").forEach((piece, place) => {
      piece.classList.toggle("st-now", place === state.step);
      piece.classList.toggle("st-later", place > state.step);
      if (place > state.step) piece.setAttribute("aria-hidden", "true");
      else piece.removeAttribute("aria-hidden");
    });
    const said = panel.querySelector(".st-count");
    /* While it plays, nobody wants each step read out. */
    said.setAttribute("aria-live", state.timer ? "off" : "polite");
    said.textContent = count;
    const range = panel.querySelector("input");
    range.value = state.step;
    range.setAttribute("aria-valuetext", count);
    for (const [name, off] of [["first", 0], ["previous", 0], ["next", last], ["last", last]]) {
      panel.querySelector(`[data-st="${name}"]`).setAttribute("aria-disabled", String(state.step === off));
    }
    panel.classList.toggle("st-playing", state.timer !== null);
    const play = panel.querySelector('[data-st="play"]');
    play.title = state.timer ? panel.dataset.sayPause : panel.dataset.sayPlay;
    play.setAttribute("aria-label", play.title);

    panel.querySelectorAll(".st-next li").forEach((item, place) => {
      const row = now.rows[place];
      item.classList.toggle("st-empty", !row);
      if (!row) return;
      const button = item.firstElementChild;
      button.dataset.token = row.id;
      button.title = row.title;
      button.setAttribute("aria-disabled", String(row.tag !== ""));
      button.querySelector(".st-token > i").hidden = !row.joined;
      button.querySelector(".st-token > bdi").textContent = row.text;
      button.querySelector(".st-bar > i").style.width = row.width;
      button.querySelector("b").textContent = row.percent;
      button.querySelector(".st-tag").textContent = row.tag;
    });
    const chips = panel.querySelectorAll(".st-chips > li");
    chips.forEach((chip, place) => {
      const weight = state.weights[state.step * chips.length + place];
      chip.style.setProperty("--w", weight.toFixed(4));
      chip.title = `${chip.firstElementChild.textContent}: ${weight.toFixed(4)}`;
      chip.lastElementChild.textContent = weight.toFixed(2);
    });
    panel.querySelector(".st-hidden").textContent = now.hidden
      ? fill(panel.dataset.sayHidden, { percent: now.hidden }) : "";
    if (!state.moved) return;
    document.dispatchEvent(new CustomEvent("seqviz:step", {
      detail: { row: now.word, piece: state.step, model: panel.dataset.model },
    }));
  }

  function pause(panel) {
    const state = read(panel);
    clearInterval(state.timer);
    state.timer = null;
  }

  function go(panel, step) {
    read(panel).moved = true;
    show(panel, step);
  }

  function play(panel) {
    const state = read(panel);
    const last = state.steps.length - 1;
    if (state.timer) {
      pause(panel);
      return show(panel, state.step);
    }
    const timer = setInterval(() => {
      const current = read(panel);
      if (!panel.isConnected || current.timer !== timer) return clearInterval(timer);
      const next = current.step + 1;
      if (next >= current.steps.length - 1) pause(panel);
      go(panel, next);
    }, PACE);
    state.timer = timer;
    go(panel, state.step >= last ? 0 : state.step);
  }

  function choose(panel, ids) {
    pause(panel);
    waiting = ids.length > 0;
    panel.classList.add("st-waiting");
    setTimeout(() => panel.classList.remove("st-waiting"), 20000);
    panel.dispatchEvent(new CustomEvent("seqviz:choose", {
      bubbles: true, detail: { ids, key: panel.dataset.key },
    }));
  }

  function move(panel, name) {
    const state = read(panel);
    if (name === "play") return play(panel);
    if (name === "own") return choose(panel, []);
    pause(panel);
    const last = state.steps.length - 1;
    go(panel, { first: 0, previous: state.step - 1, next: state.step + 1, last }[name]);
  }

  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const panel = target?.closest(".st");
    if (!panel) return;
    const button = target.closest("[data-st]");
    if (button) return move(panel, button.dataset.st);
    const candidate = target.closest(".st-candidate");
    if (candidate) {
      if (candidate.getAttribute("aria-disabled") === "true") return;
      const ids = JSON.parse(panel.dataset.ids).slice(0, read(panel).step);
      return choose(panel, [...ids, Number(candidate.dataset.token)]);
    }
    const piece = target.closest(".st-piece");
    if (piece) {
      pause(panel);
      go(panel, Number(piece.dataset.place));
    }
  });

  document.addEventListener("input", (event) => {
    const panel = event.target instanceof Element ? event.target.closest(".st") : null;
    if (!panel) return;
    pause(panel);
    go(panel, Number(event.target.value));
  });

  const KEYS = { ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last", " ": "play" };
  document.addEventListener("keydown", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const panel = target?.closest(".st");
    if (!panel || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    if (event.key === " " && target.closest("button")) return; /* it presses the button */
    event.preventDefault();
    move(panel, KEYS[event.key]);
  });

  window.seqvizSteps = {
    /* After a panel came or changed: the same output stays at its step, another one begins anew. */
    refresh(element) {
      const panel = element.querySelector(".st");
      if (!panel) return;
      panel.classList.remove("st-waiting");
      const state = read(panel);
      const grow = waiting && state.fresh && Number(panel.dataset.given) > 0;
      if (state.fresh) waiting = false;
      state.fresh = false;
      state.moved ||= grow;
      show(panel, state.step);
      if (grow && !matchMedia("(prefers-reduced-motion: reduce)").matches) play(panel);
    },
  };
})();
