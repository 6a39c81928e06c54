/* A link to what is on the screen: tab, text, and what is chosen there. */
window.seqviz.link = ({ names, limit }, lang, values) => {
  const given = Object.fromEntries(names.map((name, index) => [name, values[index]]));
  const tab = window.seqviz.tab();
  const address = new URL(window.location.href);
  address.search = "";
  address.hash = "";
  const ask = (name, value) => address.searchParams.set(name, value);
  ask("lang", lang);
  ask("tab", tab);
  const text = given.text?.trim() ? given.text : null;
  const long = (text ?? "").length > limit;
  if (!text) ask("passage", given.passage);
  else if (!long) ask("text", text);
  /* Before it is on a page, the slider stands where the server put it. */
  const stage = document.querySelector("#length-slider input") ? window.seqviz.seen().stage : given.stage;
  if (tab !== "translate") ask("stage", stage);
  if (tab === "attention") {
    ask("model", given.model);
    if (given.layer !== "best") ask("layer", given.layer === "" ? "mean" : given.layer + 1);
    if (given.head !== "") ask("head", given.head + 1);
    if (given.reading !== "predicting") ask("reading", given.reading);
  }
  const card = window.seqviz.card();
  if (tab === "lab" && card) ask("card", card);
  return { address: address.href, long };
};

/* The address follows what is on the screen, once a visitor has touched the page. */
window.seqviz.step = (page, lang, ...values) => {
  if (!navigator.userActivation?.hasBeenActive) return;
  setTimeout(() => {
    const { address } = window.seqviz.link(page, lang, values);
    if (address === window.location.href) return;
    const place = (url) => {
      const found = new URL(url);
      for (const name of ["stage", "layer", "head", "reading"]) found.searchParams.delete(name);
      return found.href;
    };
    const same = place(address) === place(window.location.href);
    window.history[same ? "replaceState" : "pushState"](window.history.state, "", address);
  }, 50); /* the tab that was chosen is marked a little later */
};
/* Back and Forward: an address restores its view when the page is opened with it. */
window.addEventListener("popstate", () => window.location.reload());

/* `page` is what the page knows: tabs, names of the values, the longest text, words by language. */
window.seqviz.copyLink = async (page, lang, ...values) => {
  const { address, long } = window.seqviz.link(page, lang, values);
  const words = page.said[lang] ?? page.said.en;
  let message = long ? words.long : words.copied;
  try {
    await navigator.clipboard.writeText(address);
  } catch {
    /* No permission, or no secure connection: an old way, or the link to be copied by hand. */
    const box = document.body.appendChild(document.createElement("textarea"));
    box.value = address;
    box.select();
    if (!document.execCommand("copy")) message = `${words.failed} ${address}`;
    box.remove();
  }
  window.seqviz.tip(message);
};
