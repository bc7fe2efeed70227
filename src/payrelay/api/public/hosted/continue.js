// Presses the button for the customer, once: who comes back to this page decides for himself.
"use strict";
(function () {
  var form = document.getElementById("continue");
  var button = form.querySelector("button");
  var sent = false;
  form.addEventListener("submit", function (event) {
    if (sent) {
      event.preventDefault();
      return;
    }
    sent = true;
    button.setAttribute("aria-disabled", "true");
  });
  window.addEventListener("pageshow", function (event) {
    if (event.persisted) {
      sent = false;
      button.removeAttribute("aria-disabled");
    }
  });
  var navigation = performance.getEntriesByType("navigation")[0];
  if (!navigation || navigation.type === "navigate") {
    form.requestSubmit(button);
  }
})();
