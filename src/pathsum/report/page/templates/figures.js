"use strict";
// Figures answer to the pointer: the model and the value of the nearest point; a click goes to the heads of the model.
(() => {
  const NEAR = 16; // pixels
  const tip = make("div", { className: "tip", hidden: true, role: "tooltip" });
  document.body.append(tip);
  const shown = modelsOf("heads_and_edges");

  for (const data of document.querySelectorAll("script.points")) {
    const picture = data.closest("figure").querySelector("img");
    let points; // read when the pointer comes
    let near;
    const stacked = picture.closest("picture").querySelector("source");
    const read = () =>
      JSON.parse(data.textContent).points.flatMap(([model, name, label, at]) =>
        at.map(([x, y, value]) => ({ model, x, y, said: `${name}: ${value} (${label})` })),
      );
    picture.onpointermove = ({ clientX, clientY }) => {
      const box = picture.getBoundingClientRect();
      const far = ({ x, y }) => Math.hypot(box.x + x * box.width - clientX, box.y + y * box.height - clientY);
      if (stacked && matchMedia(stacked.media).matches) return; // the panels are elsewhere
      points ??= read();
      near = points.reduce((a, b) => (a && far(a) <= far(b) ? a : b), null);
      if (near && far(near) > NEAR) near = null;
      tip.hidden = !near;
      picture.style.cursor = near && shown.has(near.model) ? "pointer" : "";
      if (!near) return;
      tip.textContent = near.said;
      vary(tip, { x: `${Math.min(clientX + 14, innerWidth - tip.offsetWidth - 4)}px`, y: `${clientY + 18}px` });
    };
    picture.onpointerleave = () => (tip.hidden = true);
    picture.onclick = () => near && shown.has(near.model) && (location.hash = `#heads?model=${encodeURIComponent(near.model)}`);
  }

  // The contents show which section one reads.
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watch = new IntersectionObserver(
    (changes) => {
      for (const { target, isIntersecting } of changes) seen[isIntersecting ? "add" : "delete"](target.id);
      const here = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) id === here ? (link.ariaCurrent = "true") : link.removeAttribute("aria-current");
    },
    { rootMargin: "-80px 0px -60%" },
  );
  for (const section of document.querySelectorAll("main section")) watch.observe(section);
})();
