// Runs in the browser while no page of Lookout is open: it shows alarms that the push service brings.

const worker = /** @type {any} */ (self); // types know windows only

worker.addEventListener("push", (event) => {
  const { id, title, text, url } = event.data.json();
  // A notification with the same tag replaces the one before, so an alarm that comes twice is shown once.
  event.waitUntil(worker.registration.showNotification(title, { body: text, tag: id, data: { url } }));
});

worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(worker.clients.openWindow(event.notification.data.url));
});
