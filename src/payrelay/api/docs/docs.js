// Shows the description of this very server; calls go to it and to nowhere else.
"use strict";

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
  requestSnippetsEnabled: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
