/* Which stage of a growing text is seen, at once and without asking the server: on the Length tab where the
   slider stands, in the opening (`data-walk="story"`) where it has come to by itself; in other lanes (`data-walk="none"`) all
   there is.
   Everything follows from one style sheet, so that markup which comes later is right from the start. */
(() => {
  const state = { stage: 1, story: 1, curve: "same-content", metric: "bleu", growing: false, picked: undefined, picks: 0 };
  const sheet = document.head.appendChild(document.createElement("style"));
  const slider = () => document.querySelector("#length-slider input[type=range]");
  const stops = () => document.querySelector("#stops .stops");

  /* What holds its place stays there unseen, so that nothing below it moves. */
  const only = (stage, where) => `
      [data-stage]:not([data-stage="${stage}"])${where} { display: none !important; }
      .held > [data-stage]:not([data-stage="${stage}"])${where} { display: grid !important; visibility: hidden; }`;

  function apply() {
    const marks = stops();
    const counts = marks?.dataset.counts.split(" ") ?? [];
    const stage = Math.max(1, counts.length ? Math.min(state.stage, counts.length) : state.stage);
    sheet.textContent = `
      :root { --words: ${Number(counts[stage - 1] ?? 0)}; }
      ${only(stage, ":not([data-walk] *)")}
      ${only(state.story, ":is([data-walk=story] *)")}
      .stops > :nth-child(${stage}) { color: var(--ink) !important; font-weight: 700 !important; }
      [data-metric]:not([data-metric="${state.metric}"]),
      [data-curve]:not([data-curve="${state.curve}"]) { display: none !important; }
      ${state.growing ? "#grow" : "#pause"} { display: none !important; }`;
    const said = marks?.dataset.said.split("|")[stage - 1];
    if (said) slider()?.setAttribute("aria-valuetext", said);
  }

  const player = { timer: null, paused: false };

  function stop(paused) {
    clearInterval(player.timer);
    player.timer = null;
    player.paused = paused;
    if (!state.growing) return;
    const focused = document.activeElement?.closest("#pause");
    window.seqviz.look({ growing: false });
    if (focused) document.querySelector("#grow")?.focus();
  }

  function set(value) {
    const range = slider();
    range.value = value;
    range.dispatchEvent(new Event("input", { bubbles: true }));
  }

  Object.assign(window.seqviz, {
    showStage(stage) {
      state.stage = Number(stage) || 1;
      apply();
    },

    followSlider() {
      document.querySelector(".tip")?.remove();
      window.seqviz.showStage(slider()?.value ?? state.stage);
    },

    /* How often a text was picked, once more if this is not the text that was picked last. */
    pick(passage, first) {
      const last = state.picked === undefined ? first : state.picked;
      state.picked = passage;
      return (state.picks += Number(passage !== last));
    },

    /* The text has become another one, by a pick or without: then any text can be picked. */
    forgetPick(passage) {
      if (state.picked !== passage) state.picked = null;
    },

    look(change) {
      Object.assign(state, change);
      apply();
    },

    seen: () => ({ ...state }),

    /* Walk to the last stop in about ten seconds: from the first, or from where it was paused. */
    grow() {
      const range = slider();
      if (!range || range.disabled) return;
      const last = Number(range.max);
      const going = player.paused && Number(range.value) < last;
      stop(false);
      window.seqviz.look({ growing: true });
      document.querySelector("#pause")?.focus();
      if (!going) set(Number(range.min));
      const pace = Math.min(2500, Math.max(600, 10000 / Math.max(1, last - Number(range.min))));
      player.timer = setInterval(() => {
        const now = slider();
        const next = Number(now?.value) + 1;
        if (!now?.isConnected || !(next <= Number(now.max))) return stop(false);
        set(next);
        if (next === Number(now.max)) stop(false);
      }, pace);
    },

    pause() {
      stop(true);
    },
  });

  document.addEventListener("input", (event) => {
    if (event.target.closest?.("#length-slider")) window.seqviz.followSlider();
  });
  /* A hand on the slider, or another text, ends the walk. */
  for (const kind of ["pointerdown", "keydown"]) {
    document.addEventListener(kind, (event) => {
      if (event.target.closest?.("#length-slider, #passage, #source")) stop(false);
    });
  }

  /* Where there is no pointer to hover with, a tap on a word shows its title. */
  document.addEventListener("pointerup", (event) => {
    document.querySelector(".tip")?.remove();
    if (event.pointerType === "mouse") return;
    const word = event.target.closest?.(".english [title], .target [title], .passed [title]");
    if (word) window.seqviz.tip(word.title, word.textContent);
  });

  apply();
})();
