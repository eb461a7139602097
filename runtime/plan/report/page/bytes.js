// Where the bytes of one layer go: all in one bar, then node by node.
const kByteKinds = [
  ["first", "K and V, first read of a token"], ["again", "K and V, read again by another item"], ["partials", "partials, written and read by the merge"],
  ["queries", "queries"], ["outputs", "outputs"], ["work", "work list and merge map"],
];

function byteParts(plan) {
  const {queries, outputs, partials, work} = plan.bytes;
  const parts = {first: sum(plan.bytes.first), again: sum(plan.bytes.again), partials, queries, outputs, work};
  return {parts, total: sum(Object.values(parts))};
}

// Parts side by side, as wide as their shares of `most`, and what they are below.
function stackedBar(parts, textOf, most) {
  const total = parts.reduce((sum, [, , value]) => sum + value, 0);
  const shown = parts.filter(([, , value]) => value > 0);
  const box = element("div", {class: "stack", role: "img", "aria-label": shown.map(([, name, value]) => `${name}: ${textOf(value)}`).join(", ")});
  box.style.width = `${100 * Math.max(total / Math.max(most, 1e-9), 0.01)}%`;
  const legend = element("div", {class: "legend"});
  for (const [colour, name, value] of shown) {
    const text = `${name}: ${textOf(value)} (${share(value / total)})`;
    const part = element("i", {onmousemove: event => tip.show(event.clientX, event.clientY, [text]), onmouseleave: () => tip.hide()});
    part.style.flex = `${value} 0 0`;
    part.style.background = `var(--${colour})`;
    const key = element("i");
    key.style.background = `var(--${colour})`;
    box.append(part);
    legend.append(element("span", {}, key, text));
  }
  return [box, legend];
}

const timesText = ratio => `${fixed(ratio, ratio < 100 ? 1 : 0)} times`;

class BytesPart {
  constructor(plan) {
    this.plan = plan;
    this.shown = 12;
    const {parts, total} = byteParts(plan);
    this.list = element("div", {class: "bars"});
    this.more = element("button", {type: "button", onclick: () => { this.shown += 100; this.fill(); }});
    this.box = element("div", {},
      element("p", {}, element("b", {}, bytesText(total)), " moved for one layer, all heads"),
      stackedBar(kByteKinds.map(([kind, name]) => [kind, name, parts[kind]]), bytesText, Math.max(...state.plans.map(one => byteParts(one).total))), this.list, this.more);
    this.order = plan.drawn.filter(node => plan.bytes.first[node] > 0).sort((a, b) => this.of(b) - this.of(a) || a - b);
    state.listeners.push(() => this.fill());
    this.fill();
  }
  of(node) { return this.plan.bytes.first[node] + this.plan.bytes.again[node]; }

  fill() {
    const {plan, order} = this, most = Math.max(...order.slice(0, 1).map(node => this.of(node)), 1);
    const picked = state.pickedIn(plan), matches = state.matches[plan.index];
    const wanted = matches?.size ? order.filter(node => matches.has(node)) : order;
    const rows = wanted.slice(0, this.shown);
    if (picked?.kind === "node" && wanted.includes(picked.id) && !rows.includes(picked.id)) rows.push(picked.id);
    const part = (kind, bytes) => {
      const made = element("i");
      made.style.width = `${100 * bytes / most}%`;
      made.style.background = `var(--${kind})`;
      return made;
    };
    this.list.replaceChildren(
      element("div", {class: "bar titles"}, element("span", {}, matches?.size ? "node (that the search finds)" : "node"), element("span", {}, "K and V: first read, and again"), element("span", {class: "number"}, "bytes"), element("span", {class: "number faint"}, "read")),
      ...rows.map(node => element("button", {type: "button", class: picked?.kind === "node" && picked.id === node ? "bar picked" : "bar", title: plan.nodeName(node), onclick: () => state.pick(plan.index, "node", node)},
        element("span", {}, plan.nodeName(node)), element("span", {class: "track"}, part("first", plan.bytes.first[node]), part("again", plan.bytes.again[node])),
        element("span", {class: "number"}, bytesText(this.of(node))),
        element("span", {class: "number faint"}, timesText(this.of(node) / plan.bytes.first[node])))));
    const left = wanted.length - this.shown;
    this.more.hidden = left <= 0;
    this.more.textContent = `show ${count(Math.min(left, 100))} more${left > 100 ? ` of ${count(left)}` : ""}`;
  }
}
