// Runs before the page is painted, so that a chosen theme, or one in the address, never flashes the other one; theme.js does the rest.
try {
  const [, linked] = /&theme=(dark|light)(&|$)/.exec(location.hash) ?? [];
  const theme = linked ?? localStorage.getItem("lookout-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; then the system's preference holds.
}
