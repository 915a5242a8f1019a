// Runs before the page is painted, so that a chosen theme never flashes the other one; theme.js does the rest.
try {
  const theme = localStorage.getItem("lookout-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; then the system's preference holds.
}
