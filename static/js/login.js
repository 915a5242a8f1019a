// The login leads back to what the address shows after its hash, such as the incident of an alarm; the server never sees that.

const loginForm = /** @type {HTMLFormElement} */ (document.querySelector("form.login"));
loginForm.addEventListener("submit", () => {
  const { next } = /** @type {any} */ (loginForm.elements);
  next.value = (next.value || "/") + location.hash;
});
