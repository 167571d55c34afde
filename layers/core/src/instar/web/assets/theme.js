// Runs before the page is drawn, so that the chosen theme never flashes.
(function () {
  var chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch (error) { /* storage is off: follow the system */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
