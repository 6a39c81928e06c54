/* The Lab: claims turn, one card of an experiment is open at a time, and the address keeps it.
   What is open, `aria-expanded` of the buttons says; the style sheet shows it. */
(() => {
  const state = { card: new URLSearchParams(window.location.search).get("card"), turned: new Set() };
  const button = (name) => (/^\w+$/.test(name ?? "") ? document.querySelector(`[data-opens="${name}"]`) : null);
  const expanded = (one) => one?.getAttribute("aria-expanded") === "true";
  const expand = (one, open) => one.setAttribute("aria-expanded", String(open));

  window.seqviz.card = () => (button(state.card) ? state.card : null);

  /* Its figures are asked for when it is opened. */
  function show(name) {
    for (const one of document.querySelectorAll("[data-opens]")) {
      const open = one.dataset.opens === name;
      expand(one, open);
      if (open) document.querySelector(`#lab-open-${name}`)?.click();
    }
  }

  function open(name) {
    state.card = name;
    show(name);
    const address = new URL(window.location.href);
    if (name) address.searchParams.set("card", name);
    else address.searchParams.delete("card");
    if (window.seqviz.tab?.() === "lab") address.searchParams.set("tab", "lab");
    if (address.protocol !== "file:") window.history.replaceState(window.history.state, "", address);
  }

  document.addEventListener("click", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey;
    const one = event.target.closest?.(".turns, [data-opens], [data-leads]");
    if (!one || !plain) return;
    if (one.matches(".turns")) {
      expand(one, !expanded(one));
      one.closest(".claim").dataset.touched = "";
      state.turned[expanded(one) ? "add" : "delete"](one.getAttribute("aria-controls"));
    } else if (one.matches("[data-opens]")) {
      open(expanded(one) ? null : one.dataset.opens);
    } else if (one.dataset.leads === "length") {
      const tab = document.querySelectorAll("#tabs [role=tab]")[1];
      if (!tab) return;
      event.preventDefault();
      tab.click();
    } else {
      const goal = button(one.dataset.leads);
      if (!goal) return;
      event.preventDefault();
      if (!expanded(goal)) open(one.dataset.leads);
      goal.focus({ preventScroll: true });
      goal.closest(".experiment").scrollIntoView({ block: "start" });
    }
  });

  /* A card that was drawn anew, in another language or of another text, is as open as it was. */
  document.addEventListener("drawn", (event) => {
    if (event.detail !== "lab") return;
    for (const one of document.querySelectorAll(".turns")) expand(one, state.turned.has(one.getAttribute("aria-controls")));
    show(window.seqviz.card());
  });
})();
