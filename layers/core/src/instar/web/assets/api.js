// Requests to the API. Every refusal is a Problem with `detail` and `fix`.

export class Problem extends Error {
  constructor(body, status) {
    super(body.detail);
    Object.assign(this, { type: "unavailable", fix: "" }, body, { status });
  }
}

export const path = (...parts) => parts.map((part) => part.split("/").map(encodeURIComponent).join("/")).join("/");
export const whole = (name) => encodeURIComponent(name);

export async function api(method, url, body, headers = {}) {
  const init = { method, headers: { ...headers }, credentials: "same-origin" };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(url, init);
  } catch {
    throw new Problem({ detail: "Instar cannot be reached.", fix: "Check that it is running, then try again." }, 0);
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) document.dispatchEvent(new CustomEvent("signed-out"));
  throw new Problem({ detail: `The server answered ${response.status}.`, ...answer }, response.status);
}

export const get = (url) => api("GET", url);
export const post = (url, body = {}) => api("POST", url, body);

export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
