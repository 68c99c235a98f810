(() => {
  "use strict";
  const items = [...document.querySelectorAll("details.item")];
  const form = document.querySelector("form.filter");
  if (form && items.length) {
    const { score, outcome, text, toggle, count } = form.elements;
    const wanted = (token) => {
      const [place, end] = token.split(":");
      return (!score.value || place === score.value) && (!outcome.value || end === outcome.value);
    };
    const apply = () => {
      const words = text.value.trim().toLowerCase();
      let shown = 0;
      for (const item of items) {
        const fits =
          ((!score.value && !outcome.value) || item.dataset.s.split(" ").some(wanted)) &&
          (!words || item.textContent.toLowerCase().includes(words));
        item.hidden = !fits;
        shown += fits;
      }
      count.value = `${shown} of ${items.length}`;
    };
    let soon;
    form.addEventListener("input", () => {
      clearTimeout(soon);
      soon = setTimeout(apply, 120);
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    toggle.addEventListener("click", () => {
      const visible = items.filter((item) => !item.hidden);
      const open = visible.some((item) => !item.open);
      for (const item of visible) item.open = open;
      toggle.textContent = open ? "Close all" : "Open all";
    });
    form.hidden = false;
    apply();
  }
  // What is folded away would not be printed.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not([hidden])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
})();
