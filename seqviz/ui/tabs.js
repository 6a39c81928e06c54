/* A tab is drawn when it is opened, and not again until the text, the stage or the language has changed.
   Which ones show what they should, `html[data-drawn]` says. */
(() => {
  const names = ["translate", "length", "attention", "lab"];
  const drawn = new Set();
  let begun = false; /* whether text and tab of the address are in place */
  const tell = () => {
    document.documentElement.dataset.drawn = [...drawn].join(" ");
  };

  Object.assign(window.seqviz, {
    /* The tab that is on the screen. */
    tab() {
      const shown = [...document.querySelectorAll("#tabs [role=tab]")];
      return names[Math.max(0, shown.findIndex((one) => one.ariaSelected === "true"))];
    },

    /* These tabs, or all, show what no longer is so. */
    stale(...some) {
      for (const name of some.length ? some : names) drawn.delete(name);
      tell();
    },

    open(name) {
      if (begun && !drawn.has(name)) document.querySelector(`#draw-${name}`)?.click();
    },

    drawn(name) {
      drawn.add(name);
      tell();
      document.dispatchEvent(new CustomEvent("drawn", { detail: name }));
    },

    /* The page has been opened: draw the tab that its address names, once it is on the screen, and no other. */
    begin(tries = 200) {
      const asked = new URLSearchParams(window.location.search).get("tab");
      const comes = names.includes(asked) && asked !== window.seqviz.tab() && !navigator.userActivation?.hasBeenActive;
      if (comes && tries) return void setTimeout(() => window.seqviz.begin(tries - 1), 50);
      begun = true;
      window.seqviz.redraw();
    },

    redraw() {
      window.seqviz.stale();
      setTimeout(() => window.seqviz.open(window.seqviz.tab()), 50); /* the tab that was chosen is marked a little later */
    },
  });
})();
