/* SPDX-License-Identifier: Apache-2.0 */
/* swagger-init.js - Start Swagger UI on our own document; nothing is asked of any other server. */
"use strict";
window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
  presets: [window.SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
