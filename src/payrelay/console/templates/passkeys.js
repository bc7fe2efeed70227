// Asks the device for a passkey, and sends its answer with the form. Without it the forms for passkeys stay hidden.
"use strict";
(() => {
  const said = {
    NotAllowedError: "Nothing was done: it was cancelled, or took too long. Try again.",
    InvalidStateError: "This device has a passkey for your account already.",
    SecurityError: "The browser makes no passkeys at this address.",
    NotSupportedError: "This device has no passkeys of a kind that is taken here.",
  };
  const bytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (character) => character.charCodeAt(0));
  const letters = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  const named = (list) => (list || []).map((each) => ({ ...each, id: bytes(each.id) }));

  async function made(asked) {
    const user = { ...asked.user, id: bytes(asked.user.id) };
    const publicKey = {
      ...asked, user, challenge: bytes(asked.challenge), excludeCredentials: named(asked.excludeCredentials),
    };
    const { rawId, type, response } = await navigator.credentials.create({ publicKey });
    const told = {
      clientDataJSON: letters(response.clientDataJSON), attestationObject: letters(response.attestationObject),
    };
    return { id: letters(rawId), rawId: letters(rawId), type, response: told };
  }

  async function shown(asked) {
    const publicKey = {
      ...asked, challenge: bytes(asked.challenge), allowCredentials: named(asked.allowCredentials),
    };
    const { rawId, type, response } = await navigator.credentials.get({ publicKey });
    const told = {
      clientDataJSON: letters(response.clientDataJSON),
      authenticatorData: letters(response.authenticatorData),
      signature: letters(response.signature),
      userHandle: response.userHandle ? letters(response.userHandle) : null,
    };
    return { id: letters(rawId), rawId: letters(rawId), type, response: told };
  }

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const button = form.querySelector("button");
    const state = form.querySelector("[role=status]");
    form.hidden = false;
    if (!window.PublicKeyCredential) {
      button.disabled = true;
      state.textContent = "This browser makes no passkeys at this address.";
      continue;
    }
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      state.textContent = "Your device asks you now.";
      try {
        const asked = JSON.parse(form.dataset.asked);
        const answer = await (form.dataset.passkey === "make" ? made(asked) : shown(asked));
        form.elements.answer.value = JSON.stringify(answer);
        form.submit();
      } catch (error) {
        button.disabled = false;
        state.textContent = said[error.name] || "The device gave no passkey. Try again.";
      }
    });
  }
})();
