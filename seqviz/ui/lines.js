/* The lines of the Attention tab: drawn between words where the browser put them, moved when the switch turns,
   one word's alone where it is pointed at, tapped, or reached by the arrow keys. Every listener sits on the
   document, so a picture that comes later works too. Words reach the page as text only. */
(() => {
  if (window.seqvizLines) return;
  const TIME = 1100; /* milliseconds from the strip to the lines */
  const drawn = new WeakMap(); /* paths of a picture, with how each is drawn */
  const held = new WeakMap(); /* the word that was tapped or reached by a key */
  let now = null; /* 0 all through the strip, 1 each on its own */
  let frame = 0;

  const all = () => [...document.querySelectorAll(".ln")];
  const isOn = () => Boolean(document.querySelector("#attention-look input")?.checked);
  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const mix = (from, to, share) => from + (to - from) * share;
  const clamp = (number) => Math.min(1, Math.max(0, number));
  const wordsOf = (figure, side) =>
    [...figure.querySelectorAll(`.ln-${side}${side === "target" ? (figure.dataset.on === "true" ? ".ln-on" : ".ln-off") : ""} .ln-word`)];

  function weightsOf(figure) {
    const bytes = Uint8Array.from(atob(figure.dataset.numbers), (c) => c.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  }

  /* Where words and strip are: `along` the rows and `across` them; on a narrow screen rows stand. */
  function places(figure) {
    const stage = figure.querySelector(".ln-stage");
    const box = stage.getBoundingClientRect();
    const stands = getComputedStyle(stage).getPropertyValue("--ln-columns").trim() === "1";
    const rect = (element) => {
      const one = element.getBoundingClientRect();
      return stands
        ? { from: one.top - box.top, to: one.bottom - box.top, near: one.left - box.left, far: one.right - box.left }
        : { from: one.left - box.left, to: one.right - box.left, near: one.top - box.top, far: one.bottom - box.top };
    };
    const ends = (words, edge) => words.map((word) => {
      const one = rect(word);
      return [(one.from + one.to) / 2, one[edge]];
    });
    return {
      source: ends([...figure.querySelectorAll(".ln-source .ln-word")], "far"),
      off: ends([...figure.querySelectorAll(".ln-target.ln-off .ln-word")], "near"),
      on: ends([...figure.querySelectorAll(".ln-target.ln-on .ln-word")], "near"),
      strip: rect(figure.querySelector(".ln-strip")),
      pen: ([along, across]) => (stands ? [across, along] : [along, across]).map((n) => n.toFixed(1)).join(" "),
    };
  }

  const between = (strip, index, count) => mix(strip.from, strip.to, (index + 0.5) / count);
  /* From one place to another, leaving and coming across the rows. */
  const bend = ([a, c], [b, d]) => [[a, c], [a, (c + d) / 2], [b, (c + d) / 2], [b, d]];
  const path = (pen, points) => `M ${pen(points[0])} C ${points.slice(1).map(pen).join(", ")}`;
  const halfway = (p, q) => [(p[0] + q[0]) / 2, (p[1] + q[1]) / 2];

  /* The same curve as two, so that its middle can be drawn into the strip. */
  function halves([p, q, r, s]) {
    const [pq, qr, rs] = [halfway(p, q), halfway(q, r), halfway(r, s)];
    const [left, right] = [halfway(pq, qr), halfway(qr, rs)];
    return [p, pq, left, halfway(left, right), right, rs, s];
  }

  function build(figure) {
    const { source, off, on, strip, pen } = places(figure);
    const svg = figure.querySelector(".ln-lines");
    const weights = weightsOf(figure);
    const least = Number(figure.dataset.least);
    const middle = (strip.near + strip.far) / 2;
    const lines = [];
    const add = (kind, data, width, opacity, points) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", "path");
      element.setAttribute("class", kind);
      Object.assign(element.dataset, data);
      element.style.strokeWidth = width.toFixed(2);
      svg.append(element);
      lines.push({ element, opacity, points });
    };
    svg.replaceChildren();
    source.forEach((end, i) => {
      const mouth = (share) => [mix(between(strip, i, source.length), end[0], share * 0.8), strip.near];
      add("ln-in", { source: i }, 1.6, (share) => 0.7 * clamp(1 - 1.6 * share), (share) => bend(end, mouth(share)));
    });
    off.forEach((end, j) => {
      const mouth = (share) => [mix(between(strip, j, off.length), end[0], share * 0.8), strip.far];
      add("ln-out", { target: j }, 1.6, (share) => 0.7 * clamp(1 - 1.6 * share), (share) => bend(mouth(share), end));
    });
    on.forEach((end, j) => source.forEach((start, i) => {
      const weight = weights[j * source.length + i];
      if (!(weight >= least)) return;
      const late = on.length > 1 ? j / (on.length - 1) : 0; /* as the decoder writes: the first word opens first */
      const own = (share) => clamp(1.5 * share - 0.5 * late);
      const free = halves(bend(start, end));
      const at = (between(strip, i, source.length) + between(strip, j, on.length)) / 2;
      const mouth = [at, middle];
      const tight = [start, [start[0], (start[1] + middle) / 2], [at, (start[1] + middle) / 2], mouth,
        [at, (end[1] + middle) / 2], [end[0], (end[1] + middle) / 2], end];
      add("ln-pair", { source: i, target: j, weight: weight.toFixed(4) }, 0.8 + 6.2 * weight,
        (share) => (0.12 + 0.83 * weight) * clamp(1.4 * own(share) - 0.4),
        (share) => tight.map(([a, c], k) => [mix(a, free[k][0], own(share)), mix(c, free[k][1], own(share))]));
    }));
    drawn.set(figure, { lines, pen });
    paint(figure);
  }

  function paint(figure) {
    const { lines, pen } = drawn.get(figure);
    for (const { element, opacity, points } of lines) {
      const shown = opacity(now);
      element.style.strokeOpacity = shown.toFixed(3);
      element.style.display = shown > 0 ? "" : "none";
      if (shown > 0) element.setAttribute("d", path(pen, points(now)));
    }
  }

  function mark(figure, on) {
    if (figure.dataset.on === String(on)) return;
    figure.dataset.on = String(on);
    held.delete(figure);
    light(figure);
  }

  function say(figure, pattern, word, most) {
    const readout = figure.querySelector(".ln-readout");
    const bold = (text, tag) => Object.assign(document.createElement(tag), { textContent: text });
    const list = () => (most ?? []).flatMap(([other, weight], place) =>
      [...(place ? [figure.dataset.sayAnd] : []), bold(other, "bdi"), " ", bold(weight.toFixed(2), "b")]);
    const parts = pattern.split(/(\{\w+\})/).flatMap((part) =>
      part === "{word}" ? [bold(word, "bdi")] : part === "{most}" ? list() : [part]);
    readout.replaceChildren(...parts);
    readout.classList.toggle("ln-told", Boolean(word));
  }

  /* Without the full stop or comma that the picture leaves at the word. */
  const plain = (word) => {
    const text = word.querySelector("bdi").textContent;
    return text.replace(/[.,;:!?\u2026]+$/, "") || text;
  };

  /* One word's lines alone, with its two strongest in words; without a word, all of them. */
  function light(figure, word) {
    const svg = figure.querySelector(".ln-lines");
    const on = figure.dataset.on === "true";
    for (const one of figure.querySelectorAll(".ln-word")) one.classList.remove("ln-chosen", "ln-linked", "ln-most");
    for (const one of svg.querySelectorAll(".ln-lit")) one.classList.remove("ln-lit");
    svg.classList.toggle("ln-alone", Boolean(word));
    if (!word) return say(figure, on ? figure.dataset.sayLooking : figure.dataset.sayFixed, "");
    const { side, place } = word.dataset;
    const text = plain(word);
    word.classList.add("ln-chosen");
    for (const line of svg.children) {
      const kind = on ? "ln-pair" : side === "source" ? "ln-in" : "ln-out";
      if (line.classList.contains(kind) && line.dataset[side] === place) line.classList.add("ln-lit");
    }
    const Side = side === "source" ? "Source" : "Target";
    if (!on) return say(figure, figure.dataset[`sayFixed${Side}`], text);
    const others = wordsOf(figure, side === "source" ? "target" : "source");
    const weights = weightsOf(figure);
    const width = wordsOf(figure, "source").length;
    const of = (i) => (side === "source" ? weights[i * width + Number(place)] : weights[Number(place) * width + i]);
    const most = others.map((other, i) => [other, of(i), i]).sort((a, b) => b[1] - a[1] || a[2] - b[2]).slice(0, 2);
    for (const [other, weight] of most) other.classList.toggle("ln-linked", weight >= Number(figure.dataset.least));
    most[0]?.[0].classList.add("ln-most");
    say(figure, figure.dataset[`say${Side}`], text, most.map(([other, weight]) => [plain(other), weight]));
  }

  const rest = (figure) => light(figure, held.get(figure));

  function settle(figures) {
    now = isOn() ? 1 : 0;
    for (const figure of figures) figure.removeAttribute("data-moving");
  }

  window.seqvizLines = {
    /* After a picture came or changed. While one moves, the new one moves on. */
    refresh(element) {
      const figure = element.querySelector(".ln");
      if (!figure) return;
      if (!frame) settle([figure]);
      held.delete(figure);
      figure.dataset.on = String(isOn());
      light(figure);
      build(figure);
      resized.disconnect();
      resized.observe(figure.querySelector(".ln-stage"));
    },

    turn(on) {
      const figures = all();
      for (const figure of figures) mark(figure, on);
      cancelAnimationFrame(frame);
      frame = 0;
      if (now === null || still()) settle(figures);
      for (const figure of figures) build(figure);
      const goal = on ? 1 : 0;
      if (now === goal) return;
      const [start, begun] = [now, performance.now()];
      for (const figure of figures) figure.dataset.moving = "";
      const step = (time) => {
        const share = clamp((time - begun) / TIME);
        now = mix(start, goal, share * share * (3 - 2 * share));
        for (const figure of all()) if (drawn.has(figure)) paint(figure);
        frame = share < 1 ? requestAnimationFrame(step) : 0;
        if (!frame) settle(all());
      };
      frame = requestAnimationFrame(step);
    },
  };

  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const figure = target.closest(".ln");
      if (figure?.isConnected && target.offsetWidth) build(figure), rest(figure);
    }
  });

  const under = (event) => (event.target instanceof Element ? event.target.closest(".ln-word") : null);

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const word = under(event);
    if (word) light(word.closest(".ln"), word);
  });
  document.addEventListener("pointerout", (event) => {
    const word = event.pointerType === "touch" ? null : under(event);
    if (word) rest(word.closest(".ln"));
  });

  document.addEventListener("click", (event) => {
    const word = under(event);
    const figure = word?.closest(".ln");
    if (!figure) return;
    if (held.get(figure) === word && !("fresh" in word.dataset)) held.delete(figure);
    else held.set(figure, word);
    delete word.dataset.fresh;
    rest(figure);
  });

  function reach(word) {
    const figure = word.closest(".ln");
    for (const one of word.parentElement.querySelectorAll(".ln-word")) one.tabIndex = one === word ? 0 : -1;
    if (held.get(figure) !== word) word.dataset.fresh = ""; /* a click on it now holds it */
    held.set(figure, word);
    light(figure, word);
  }

  document.addEventListener("focusin", (event) => {
    const word = under(event);
    if (word) reach(word);
  });
  document.addEventListener("focusout", (event) => {
    const figure = under(event)?.closest(".ln");
    if (!figure || figure.contains(event.relatedTarget)) return;
    held.delete(figure);
    rest(figure);
  });

  document.addEventListener("keydown", (event) => {
    const word = under(event);
    if (!word || event.ctrlKey || event.metaKey || event.altKey) return;
    const figure = word.closest(".ln");
    if (event.key === "Escape") {
      held.delete(figure);
      return light(figure);
    }
    const { side } = word.dataset;
    const words = wordsOf(figure, side);
    const place = words.indexOf(word);
    const other = { ArrowDown: "target", ArrowUp: "source" }[event.key];
    let goal;
    if (event.key === "ArrowRight") goal = words[place + 1];
    else if (event.key === "ArrowLeft") goal = words[place - 1];
    else if (event.key === "Home") goal = words[0];
    else if (event.key === "End") goal = words.at(-1);
    else if (other) {
      const row = wordsOf(figure, other);
      /* To the word that counts most; without lines, to the one at the same height. */
      goal = other !== side && (row.find((one) => one.classList.contains("ln-most"))
        ?? row[Math.round((place * (row.length - 1)) / Math.max(1, words.length - 1))]);
    } else return;
    event.preventDefault();
    goal?.focus();
  });

  /* While decoding is stepped through, the word that is being written shows its lines. */
  document.addEventListener("seqviz:step", (event) => {
    for (const figure of all()) {
      const model = figure.dataset.on === "true" ? figure.dataset.looking : figure.dataset.fixed;
      if (model === event.detail?.model) light(figure, wordsOf(figure, "target")[event.detail.row]);
    }
  });
})();
