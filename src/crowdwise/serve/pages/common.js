"use strict";
// What the pages share: the token, and requests that carry it.

const TOKEN = "crowdwise-token";

// A token may come in the part of the address that browsers do not send: /label#token=cw_…
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  localStorage.setItem(TOKEN, given);
  history.replaceState(null, "", location.pathname + location.search);
}

class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

async function ask(path, body, method) {
  const headers = {}, token = localStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method: method ?? (body === undefined ? "GET" : "POST"), headers };
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(path, options);
  if (answer.ok) return answer;
  let text = answer.statusText;
  try { text = (await answer.json()).detail; } catch { /* not ours */ }
  throw new Refused(answer.status, text);
}

// Ask for a token until one works; resolves once there is one to try.
let asking = null;
function signIn(problem) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("sign-in"), field = document.getElementById("token");
    document.getElementById("sign-in-problem").textContent = problem ?? "";
    dialog.addEventListener("close", () => {
      if (field.value.trim()) localStorage.setItem(TOKEN, field.value.trim());
      field.value = "";
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

// The same, but signs in where that is what is missing.
async function askSignedIn(path, body, method) {
  for (;;) {
    try {
      return await ask(path, body, method);
    } catch (error) {
      if (error.status !== 401) throw error;
      await signIn(localStorage.getItem(TOKEN) ? "That token is not valid." : "");
    }
  }
}
