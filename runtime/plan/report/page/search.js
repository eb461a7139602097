// Finds nodes by name, and items, queries and blocks by number. Enter goes from one to the next.
const search = {
  kMostShown: 30,

  find(text) {
    const wanted = text.trim().toLowerCase(), found = [];
    const [, kind, number] = wanted.match(/^(?:(item|query|block|thread|node|n)\s*)?(\d+)$/) ?? [];
    state.plans.forEach((plan, at) => {
      if (number !== undefined) {
        const id = Number(number), known = {node: plan.nodeCount, item: plan.itemCount, query: plan.queryCount, block: plan.unitBeginUs ? plan.blockCount : 0};
        const only = {n: "node", thread: "block"}[kind] ?? kind;
        for (const [one, counts] of Object.entries(known))
          if ((!only || only === one) && id < counts) found.push({plan: at, kind: one, id, text: one === "node" ? plan.nodeName(id) : `${one === "block" ? plan.worker : one} ${id}`});
      }
      if (!wanted || (at > 0 && state.areOfOneTree)) return;
      for (const node of plan.nodes.parent.keys()) {
        const isThere = found.some(one => one.plan === at && one.kind === "node" && one.id === node);
        if (!isThere && plan.nodeName(node).toLowerCase().includes(wanted)) found.push({plan: at, kind: "node", id: node, text: plan.nodeName(node)});
      }
    });
    return found;
  },
  noteOf({plan: at, kind, id}) {
    const plan = state.plans[at];
    const notes = {node: () => counted(plan.nodes.tokens[id], "token", "tokens"), item: () => counted(plan.items.tokens[id], "token", "tokens"),
      query: () => `at ${plan.nodeName(plan.queries.node[id])}`, block: () => usText(plan.loads[id])};
    return (plan.letter && !(kind === "node" && state.areOfOneTree) ? `${plan.letter}, ` : "") + notes[kind]();
  },

  go(at) {
    this.at = (at + this.found.length) % this.found.length;
    const {plan, kind, id} = this.found[this.at];
    state.picked = null;
    state.pick(plan, kind, id);
    shownIn(state.plans[plan], {kind, id});
    this.list();
  },
  list() {
    const box = document.getElementById("found");
    box.hidden = this.found.length === 0 || !this.isOpen;
    box.replaceChildren(...this.found.slice(0, this.kMostShown).map((one, at) => element("li", {"aria-selected": at === this.at ? "true" : null,
      onpointerdown: event => { event.preventDefault(); this.go(at); this.isOpen = false; this.list(); }}, element("span", {}, one.text), element("span", {}, this.noteOf(one)))));
    const left = this.found.length - this.kMostShown;
    if (left > 0) box.append(element("li", {}, element("span", {}, `and ${count(left)} more: Enter goes to the next one`)));
    box.querySelector("[aria-selected]")?.scrollIntoView({block: "nearest"});
  },
  start() {
    const input = document.getElementById("search"), status = document.getElementById("matches");
    this.found = [];
    input.addEventListener("input", () => {
      this.found = this.find(input.value);
      this.at = -1;
      this.isOpen = true;
      const isByNumber = /^\s*(item|query|block|thread)?\s*\d+\s*$/.test(input.value);
      state.matches = state.plans.map(plan => new Set(isByNumber ? [] : this.found.filter(one => one.kind === "node" && (one.plan === plan.index || state.areOfOneTree)).map(one => one.id)));
      status.textContent = !input.value.trim() ? "" : this.found.length === 0 ? "nothing found" : `${count(this.found.length)} found`;
      this.list();
      state.tell();
    });
    input.addEventListener("keydown", event => {
      if (event.key === "Escape") {
        this.isOpen = false;
        this.list();
      } else if (["Enter", "ArrowDown", "ArrowUp"].includes(event.key) && this.found.length > 0) {
        event.preventDefault();
        this.isOpen = event.key !== "Enter";
        this.go(event.key === "ArrowUp" ? this.at - 1 : event.shiftKey ? this.at - 1 : this.at + 1);
      }
    });
    input.addEventListener("blur", () => { this.isOpen = false; this.list(); });
    input.addEventListener("focus", () => { this.isOpen = true; this.list(); });
  },
};
