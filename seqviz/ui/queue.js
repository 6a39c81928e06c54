/* What Gradio says in English alone, and in places that this page hides, said in the page's language:
   the place in the queue, a full queue, a lost connection. `said` is texts by language. */
window.seqviz.followQueue = (said) => {
  const texts = () => said[document.documentElement.lang.startsWith("zh") ? "zh" : "en"];

  /* Gradio keeps "queue: 3/8 | 1.2s" in the tracker of every output that waits, hidden or not. */
  const place = () => {
    for (const tracker of document.querySelectorAll(".progress-text")) {
      const found = /queue:\s*(\d+)/.exec(tracker.textContent);
      if (found) return Number(found[1]);
    }
    return 0;
  };
  let bar = null;
  let seen = 0; // how often in a row: a wait too short to be read is not announced
  setInterval(() => {
    const now = place();
    seen = now ? seen + 1 : 0;
    document.body.classList.toggle("in-queue", seen > 1);
    if (seen < 2) {
      bar?.remove();
      bar = null;
      return;
    }
    if (!bar) {
      bar = document.createElement("div");
      bar.className = "queue";
      bar.setAttribute("role", "status");
      (document.querySelector(".gradio-container") ?? document.body).append(bar);
    }
    const text = texts().place.replace("{place}", now);
    if (bar.textContent !== text) bar.textContent = text;
  }, 300);

  const spoken = [
    [/currently busy|queue is full/i, "full"],
    [/connection (errored out|to the server was lost)/i, "lost"],
  ];
  new MutationObserver((changes) => {
    for (const node of changes.flatMap((change) => [...change.addedNodes])) {
      const toasts = node.querySelectorAll?.("[data-testid=toast-body]") ?? [];
      for (const toast of node.matches?.("[data-testid=toast-body]") ? [node] : toasts) {
        const text = toast.querySelector("[data-testid=toast-text]");
        const [, key] = spoken.find(([pattern]) => pattern.test(text?.textContent ?? "")) ?? [];
        if (!key) continue;
        text.textContent = texts()[key];
        const title = toast.querySelector(".toast-title");
        if (title) title.textContent = texts()[`${key}_title`];
      }
    }
  }).observe(document, { childList: true, subtree: true });
};
