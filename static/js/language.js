// The choice of language, which leads back to what the page shows now.

/** Let the forms that choose a language return to the present address, with its part after the hash. */
export function keepAddress(forms = document.querySelectorAll("form.language")) {
  for (const form of forms) {
    form.addEventListener("submit", () => {
      form.elements.next.value = location.pathname + location.search + location.hash;
    });
  }
}
