// @ts-check
// Sets the theme before the first paint: what a person chose, else what the system says. A blocking script on purpose.

(() => {
  const KEY = "lockstep-theme";
  const CHOICES = ["system", "light", "dark"];
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function chosen() {
    try {
      const stored = localStorage.getItem(KEY);
      return stored && CHOICES.includes(stored) ? stored : "system";
    } catch {
      return "system"; // storage is refused in some private windows
    }
  }

  function apply(choice) {
    root.dataset.theme = choice === "system" ? (dark.matches ? "dark" : "light") : choice;
    for (const radio of document.querySelectorAll("[data-theme-choice]")) {
      radio.setAttribute("aria-checked", String(radio.getAttribute("data-theme-choice") === choice));
    }
  }

  function choose(choice) {
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // The choice then lasts as long as the page.
    }
    apply(choice);
  }

  apply(chosen());
  dark.addEventListener("change", () => apply(chosen()));
  addEventListener("storage", (event) => event.key === KEY && apply(chosen()));
  document.addEventListener("DOMContentLoaded", () => apply(chosen()));
  document.addEventListener("click", (event) => {
    const radio = event.target instanceof Element ? event.target.closest("[data-theme-choice]") : null;
    if (radio) choose(radio.getAttribute("data-theme-choice"));
  });
})();
