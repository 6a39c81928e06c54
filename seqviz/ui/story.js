/* The opening: the text grows by itself, once, where motion is welcome; then it stands at its last stage. */
(() => {
  const FIRST = 2000, STEP = 1400; /* milliseconds */
  const player = { timer: null, begun: false };
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const story = () => document.querySelector("#story");
  const last = () => Number(story()?.dataset.stages ?? 1);

  function show(stage, playing) {
    window.seqviz.look({ story: stage });
    document.documentElement.classList.toggle("story-plays", playing);
  }

  function stop(stage) {
    clearTimeout(player.timer);
    player.timer = null;
    show(stage ?? window.seqviz.seen().story, false);
  }

  function play(stage = 1) {
    clearTimeout(player.timer);
    show(stage, stage < last());
    if (stage < last()) player.timer = setTimeout(() => play(stage + 1), stage === 1 ? FIRST : STEP);
    else player.timer = null;
  }

  function begin() {
    if (player.begun || !story()) return;
    player.begun = true;
    if (still.matches) stop(last());
    else play();
  }

  const tabs = () => [...document.querySelectorAll("#tabs [role=tab]")];
  const go = {
    own: () => document.querySelector("#source textarea, #source input")?.focus(),
    length: () => tabs()[1]?.click(),
    attention: () => tabs()[2]?.click(),
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-story], [data-go]");
    if (button?.dataset.story === "play") play();
    else if (button?.dataset.story === "pause") stop();
    else if (button) go[button.dataset.go]?.();
    else {
      /* A lane shows the newest words; a tap opens it. In an open one a tap on a word tells of the word. */
      const lane = event.target.closest?.(".lane");
      if (!lane?.classList.contains("open") || !event.target.closest("[title]")) lane?.classList.toggle("open");
    }
  });
  document.addEventListener("input", (event) => {
    if (event.target.closest?.("#source")) stop(last());
  });

  new MutationObserver(begin).observe(document.documentElement, { childList: true, subtree: true });
  begin();
})();
