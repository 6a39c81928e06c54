/* Small things that are better done in the browser. */
window.seqviz = {
  /* Language of the document, and of the address, so that a link keeps it. */
  language(chosen, title) {
    document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
    if (title) document.title = title;
    const address = new URL(window.location.href);
    if (address.searchParams.get("lang") !== chosen) {
      address.searchParams.set("lang", chosen);
      window.history.replaceState(window.history.state, "", address);
    }
  },

  /* Walk the slider from its first to its last stop; a second call, or a hand on it, stops. */
  timer: null,
  grow() {
    const slider = document.querySelector("#length-slider input[type=range]");
    const button = document.querySelector("#grow");
    const stop = () => {
      clearInterval(this.timer);
      this.timer = null;
      button?.classList.remove("running");
      slider?.removeEventListener("pointerdown", stop);
      slider?.removeEventListener("keydown", stop);
    };
    if (this.timer) return stop();
    if (!slider) return;
    const set = (value) => {
      slider.value = value;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    };
    slider.addEventListener("pointerdown", stop);
    slider.addEventListener("keydown", stop);
    button?.classList.add("running");
    set(Number(slider.min));
    this.timer = setInterval(() => {
      const next = Number(slider.value) + Number(slider.step || 1);
      if (!slider.isConnected || next > Number(slider.max)) return stop();
      set(next);
    }, 1100);
  },
};
