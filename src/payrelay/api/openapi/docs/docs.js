// Shows the API description of this server. Calls go to this server alone.
"use strict";

// What Swagger UI leaves out, and a screen reader or a keyboard needs: names, levels of headings, tab stops.
const MISSING = [
  ["#servers", { "aria-label": "Server" }],
  ["select.examples-select-element", { "aria-label": "Example" }],
  ["textarea.body-param__text", { "aria-label": "Body of the request" }],
  [".modal-ux", { role: "dialog", "aria-modal": "true", "aria-label": "Available authorizations" }],
  [".close-modal", { "aria-label": "Close" }],
  [".information-container", { role: "region", "aria-label": "About" }],
  [".schemes-server-container", { role: "region", "aria-label": "Server and key" }],
  ["h3.opblock-tag, .models > h4, .modal-ux-header h3", { "aria-level": "2" }],
  [".opblock h4, .auth-container h4", { "aria-level": "3" }],
  [".opblock h5", { "aria-level": "4" }],
  ["pre.microlight", { tabindex: "0" }],
];

function complete() {
  for (const [selector, attributes] of MISSING) {
    for (const element of document.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) {
        if (!element.hasAttribute(name)) element.setAttribute(name, value);
      }
    }
  }
}

// A link inside a button can't be told from the button. The button updates the address as well.
const plainTitles = () => ({
  wrapComponents: {
    DeepLink: (_, system) => ({ text }) => system.React.createElement("span", null, text),
  },
});

new MutationObserver(complete).observe(document.getElementById("reference"), { childList: true, subtree: true });

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  plugins: [plainTitles],
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
  requestSnippetsEnabled: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
