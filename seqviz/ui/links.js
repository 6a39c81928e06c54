/* A link to what is on the screen: tab, text, and what is chosen there. */
window.seqviz.link = (lang, names, values, limit) => {
  const given = Object.fromEntries(names.map((name, index) => [name, values[index]]));
  const tabs = ["translate", "length", "attention", "lab"];
  const shown = [...document.querySelectorAll("#tabs [role=tab]")];
  const tab = tabs[Math.max(0, shown.findIndex((one) => one.ariaSelected === "true"))];
  const address = new URL(window.location.href);
  address.search = "";
  address.hash = "";
  const ask = (name, value) => address.searchParams.set(name, value);
  ask("lang", lang);
  ask("tab", tab);
  let text = given[`text-${tab}`];
  if (tab === "length") {
    ask("passage", given.passage);
    ask("stage", document.querySelector("#length-slider input[type=range]")?.value ?? 1);
    if (given.passage !== "own") text = null;
  }
  if (tab === "attention") ask("model", given.model);
  const long = (text ?? "").length > limit;
  if (text && !long) ask("text", text);
  return { address: address.href, long };
};

window.seqviz.copyLink = async (lang, names, values, said, limit) => {
  const { address, long } = window.seqviz.link(lang, names, values, limit);
  const words = said[lang] ?? said.en;
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
  document.querySelector(".tip")?.remove();
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.textContent = message;
  (document.querySelector(".gradio-container") ?? document.body).append(tip);
  setTimeout(() => tip.remove(), 6000);
};
