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
};
