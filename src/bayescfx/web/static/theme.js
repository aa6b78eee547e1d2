// @ts-check
// Before anything is painted: light or dark as chosen on this page, otherwise as the system has it.
(() => {
  try {
    const chosen = localStorage.getItem("bayescfx:theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // No storage: the system's choice holds.
  }
})();
