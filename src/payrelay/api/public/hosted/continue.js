// Submits the form once by itself, the first time that it is shown. Who comes back decides whether to press the button.
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
  if ("begins" in form.dataset && (!navigation || navigation.type === "navigate")) {
    form.requestSubmit(button);
  }
})();
