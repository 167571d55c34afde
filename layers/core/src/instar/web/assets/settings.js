// Settings: which model answers, a test of it, and the state of everything.

import { api, get, post } from "/assets/api.js";
import { announce, h, problemCard } from "/assets/dom.js";

const PROVIDERS = [
  ["OpenAI", "https://api.openai.com/v1"],
  ["Ollama on this computer", "http://127.0.0.1:11434/v1"],
  ["LM Studio on this computer", "http://127.0.0.1:1234/v1"],
  ["llama.cpp on this computer", "http://127.0.0.1:8080/v1"],
  ["OpenRouter", "https://openrouter.ai/api/v1"],
  ["Another address", ""],
];

export async function settingsView(onApplied) {
  const current = await get("/v1/settings");
  return h("div", { class: "page narrow" }, new ModelForm(current, onApplied).element, await doctorCard());
}

export class ModelForm {
  constructor(current, onApplied) {
    Object.assign(this, { current, onApplied });
    this.base = h("input", { id: "base-url", type: "url", autocomplete: "off", spellcheck: "false", placeholder: "https://…/v1" });
    this.base.value = current.base_url || (current.is_demo ? PROVIDERS[0][1] : "");
    this.key = h("input", { id: "api-key", type: "password", autocomplete: "off", placeholder: current.has_key ? "A key is stored; leave empty to keep it" : "Leave empty for a local model" });
    this.model = h("input", { id: "model-name", list: "model-list", autocomplete: "off", spellcheck: "false", placeholder: "Choose from the list or type a name" });
    this.model.value = current.is_demo ? "" : current.model;
    this.options = h("datalist", { id: "model-list" });
    this.said = h("div", { role: "status", class: "said" });
    this.element = h("section", { class: "card" }, h("h2", {}, "Model"), this.status(), this.form());
  }

  status() {
    if (this.current.is_demo) {
      return h("p", { class: "callout" }, "The ", h("strong", {}, "demo model"), " answers now. It has no intelligence: it can save, search, forget and list memories on command words. Enter an API key, or the address of a model on your own computer.");
    }
    return h("p", { class: "muted" }, "Answers come from ", h("strong", {}, this.current.model), this.current.from_environment ? ". The environment sets it (INSTAR_MODEL) and wins over this page." : ".");
  }

  form() {
    const provider = h("select", { id: "provider", onchange: () => { this.base.value = provider.value; this.base.focus(); } },
      PROVIDERS.map(([name, url]) => h("option", { value: url }, name)));
    const known = PROVIDERS.some(([, url]) => url === this.base.value);
    provider.value = known ? this.base.value : "";
    const list = h("button", { type: "button", class: "button", onclick: () => this.run(list, () => this.list()) }, "List models");
    const test = h("button", { type: "button", class: "button", onclick: () => this.run(test, () => this.test()) }, "Test it");
    const use = h("button", { type: "submit", class: "button primary" }, "Use this model");
    return h("form", { class: "fields", onsubmit: (event) => { event.preventDefault(); this.run(use, () => this.apply()); } },
      field("provider", "Provider", provider), field("base-url", "Base URL", this.base, "Any address that speaks the OpenAI chat API."),
      field("api-key", "API key", this.key, "Kept on this computer in a file that only you can read; never shown again."),
      field("model-name", "Model", h("div", { class: "with-button" }, this.model, this.options, list)),
      this.toolMode(), this.said, h("div", { class: "actions start" }, test, use));
  }

  toolMode() {
    const choice = (value, title, text) => h("label", { class: "choice" }, h("input", { type: "radio", name: "tools", value, checked: (this.current.tools || "native") === value }),
      h("span", {}, h("strong", {}, title), h("span", { class: "muted small" }, text)));
    this.tools = h("fieldset", {}, h("legend", {}, "How the model uses tools"),
      choice("native", "Native", "The provider's own tool calls. Right for most models."),
      choice("schema", "Schema", "As JSON in the answer. For small local models that have no tool calls."));
    return this.tools;
  }

  asked() {
    return { base_url: this.base.value.trim(), key: this.key.value.trim() || null };
  }

  async run(button, action) {
    button.disabled = true;
    button.setAttribute("aria-busy", "true");
    this.said.replaceChildren();
    try {
      await action();
    } catch (problem) {
      this.said.replaceChildren(problemCard(problem));
    } finally {
      button.disabled = false;
      button.removeAttribute("aria-busy");
    }
  }

  async list() {
    const { models } = await post("/v1/settings/models", this.asked());
    this.options.replaceChildren(...models.map((name) => h("option", { value: name })));
    if (!this.model.value && models.length) this.model.value = models[0];
    this.tell(models.length ? `${models.length} ${models.length === 1 ? "model" : "models"} found. Choose one above.` : "The provider lists no models. Type a name.");
    this.model.focus();
  }

  async test() {
    const answer = await post("/v1/settings/test", { ...this.asked(), model: this.model.value.trim() });
    this.tell(`It answers (${answer.seconds} s).`);
  }

  async apply() {
    const tools = this.tools.querySelector("input:checked").value;
    const settings = await api("PUT", "/v1/settings", { ...this.asked(), model: this.model.value.trim(), tools });
    announce("The model is set.");
    this.onApplied(settings);
  }

  tell(text) {
    this.said.replaceChildren(h("p", { class: "good" }, text));
  }
}

function field(id, label, control, hint) {
  return h("div", { class: "field" }, h("label", { for: id }, label), control, hint ? h("p", { class: "muted small" }, hint) : null);
}

async function doctorCard() {
  const place = h("section", { class: "card" }, h("h2", {}, "Health"));
  try {
    const report = await get("/v1/doctor");
    place.append(h("p", { class: "muted" }, `${report.documents} ${report.documents === 1 ? "document" : "documents"}, ${report.indexed} searchable.`),
      h("ul", { class: "checks" }, report.checks.map((check) => h("li", { class: check.status },
        h("span", { class: "check-state" }, check.status), h("span", {}, h("strong", {}, check.name), " ", check.detail, check.fix && check.status !== "ok" ? h("span", { class: "muted small block" }, check.fix) : null)))));
  } catch (problem) {
    place.append(problemCard(problem));
  }
  return place;
}
