// What is picked and what a search has found: views listen.
const state = {
  plans: [],
  areOfOneTree: false,
  known: new Map(), // items of what was picked
  picked: null, // {plan: index, kind: "node" | "item" | "query" | "block", id}
  matches: [],  // of each plan: a set of nodes
  listeners: [],
  tell() { this.listeners.forEach(listener => listener()); },
  pick(plan, kind, id) {
    const same = this.picked && this.picked.plan === plan && this.picked.kind === kind && this.picked.id === id;
    this.picked = same ? null : {plan, kind, id};
    this.tell();
  },
  clear() {
    this.picked = null;
    this.tell();
  },
  // What is picked, seen from a plan: nodes and queries of the same tree are picked in both.
  pickedIn(plan) {
    const picked = this.picked;
    if (!picked) return null;
    if (picked.plan === plan.index) return picked;
    const isShared = ["node", "query"].includes(picked.kind) && this.areOfOneTree;
    return isShared ? {...picked, plan: plan.index} : null;
  },
  // The items that have to do with it; none: nothing is picked.
  itemsIn(plan) {
    const picked = this.pickedIn(plan);
    if (!picked) return null;
    const key = `${plan.index} ${picked.kind} ${picked.id}`;
    if (!this.known.has(key)) {
      const finds = {node: () => plan.itemsOfNode(picked.id), item: () => [picked.id], query: () => plan.itemsOfQuery(picked.id), block: () => plan.itemsOfBlock(picked.id)};
      this.known.set(key, new Set(finds[picked.kind]()));
    }
    return this.known.get(key);
  },
};

const tip = {
  show(x, y, lines) {
    const box = document.getElementById("tip");
    box.replaceChildren(element("b", {}, lines[0]), ...lines.slice(1).map(line => element("div", {}, line)));
    box.hidden = false;
    const {width, height} = box.getBoundingClientRect();
    box.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
    box.style.top = `${y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18}px`;
  },
  hide() { document.getElementById("tip").hidden = true; },
};
