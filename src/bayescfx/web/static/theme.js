// Before anything is painted: light or dark as chosen here before, otherwise as the system says.
(function () {
  "use strict";
  try {
    const chosen = localStorage.getItem("bayescfx:theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (_) {
    // No storage: the system's choice holds.
  }
})();
