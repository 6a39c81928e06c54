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

  /* A line at the foot of the window, for some seconds; `name` is set in bold before it. */
  tip(text, name) {
    document.querySelector(".tip")?.remove();
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    if (name) {
      const bold = document.createElement("b");
      bold.textContent = name;
      tip.append(bold, " ");
    }
    tip.append(text);
    (document.querySelector(".gradio-container") ?? document.body).append(tip);
    setTimeout(() => tip.remove(), 5000);
  },

  /* A file that a handler made, its bytes in base64. */
  file({ name, type, data }) {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    return new File([bytes], name, { type });
  },

  download(made) {
    if (!made?.data) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(window.seqviz.file(made));
    link.download = made.name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  },

  /* Through the system's share sheet where fingers are the pointer; a download elsewhere, or where it is refused. */
  async share(made) {
    if (!made?.data) return;
    const shared = { files: [window.seqviz.file(made)], title: document.title, url: window.location.href };
    if (!window.matchMedia("(pointer: coarse)").matches || !navigator.canShare?.(shared)) {
      return window.seqviz.download(made);
    }
    try {
      await navigator.share(shared);
    } catch (error) {
      if (error.name !== "AbortError") window.seqviz.download(made);
    }
  },
};

/* An example in a hint goes into the box, and is asked for. */
document.addEventListener("click", (event) => {
  const example = event.target.closest?.("[data-example]");
  const box = document.querySelector("#source textarea, #source input");
  if (!example || !box) return;
  box.value = example.dataset.example;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  setTimeout(() => document.querySelector("#translate")?.click()); /* the page knows of it a little later */
});
